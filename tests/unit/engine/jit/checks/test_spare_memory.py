"""Memory that instrumented launches leave to later ones: what is in it means nothing to these."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm
from ptxvm.engine.jit.checks import spare_memory
from ptxvm.engine.jit.memory.tags import EPOCH, LAST

KERNEL = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data, .param .u32 turn) {
    .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<4>;
    ld.param.u64 %d0, [data]; ld.param.u32 %r0, [turn];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r1, %r2, 64, %r1; xor.b32 %r1, %r1, %r0;
    mul.wide.u32 %d1, %r1, 4; add.u64 %d0, %d0, %d1;
    ld.global.u32 %r3, [%d0]; add.u32 %r3, %r3, 1; st.global.u32 [%d0], %r3;
    setp.ne.u32 %p, %r1, 0; @%p ret;
    LAST
    ret;
}
"""
FINE = KERNEL.replace("LAST", "")
WRONG = KERNEL.replace("LAST", "ld.global.u32 %r3, [%d0+256];")  # which the other CTA writes


@pytest.fixture
def made(monkeypatch):
    """How often memory for tags has been asked of the host."""
    monkeypatch.setattr(spare_memory, "TAGS", spare_memory.SpareTags())
    found = []
    fresh = spare_memory.TagMemory.fresh
    monkeypatch.setattr(spare_memory.TagMemory, "fresh", lambda count: found.append(count) or fresh(count))
    return found


def hazards(kernel, data, turn, check=("race",), engine="jit"):
    findings = kernel.launch(2, 64, [data, np.uint32(turn)], engine=engine, check=check).findings
    return [each.hazard for each in findings]


def test_tags_of_earlier_launches_mean_nothing(made, quick):
    fine, wrong, data = ptxvm.load(FINE).kernel(), ptxvm.load(WRONG).kernel(), np.zeros(128, np.uint32)
    for turn in (0, 1, 127, 64):  # each time another thread, in the end one of another CTA
        assert hazards(fine, data, turn) == []
    assert quick()
    assert len(made) == 1
    assert data.tolist() == [4] * 128
    assert hazards(wrong, data, 0) == hazards(wrong, data, 0, engine="interp") != []
    assert not quick()


def test_bytes_without_a_value_are_those_of_the_launch(made, quick):
    kernel, data = ptxvm.load(FINE).kernel(), np.zeros(128, np.uint32)
    checks = ("race", "init")
    assert (
        len(kernel.launch(2, 64, [ptxvm.DeviceArray(128, np.uint32), np.uint32(0)], engine="jit", check=checks).findings) == 1
    )
    assert not quick()
    written = ptxvm.load(FINE.replace("ld.global.u32 %r3, [%d0]", "mov.u32 %r3, 6")).kernel()
    for _ in range(2):
        assert hazards(written, ptxvm.DeviceArray(128, np.uint32), 0, checks) == []
        assert hazards(kernel, data, 0, checks) == []
    assert quick()
    assert len(made) <= 2


def test_tags_are_cleared_before_epochs_run_out(made, quick, monkeypatch):
    monkeypatch.setattr(spare_memory, "START", LAST - 8 * EPOCH)
    kernel, data = ptxvm.load(FINE).kernel(), np.zeros(128, np.uint32)
    for turn in range(20):
        assert hazards(kernel, data, turn) == []
    assert quick()
    assert len(made) == 1


def test_tags_of_larger_memory_are_numbered_anew_too(made, quick, monkeypatch):
    """The epochs run out in a launch that reaches less memory than one before and one after."""
    monkeypatch.setattr(spare_memory, "START", LAST - 12 * EPOCH)
    fine, many = ptxvm.load(FINE).kernel(), ptxvm.load(FINE).kernel()
    data, large = np.zeros(64 * 16, np.uint32), np.zeros(1 << 16, np.uint32)
    fine.launch(1024, 64, [large, np.uint32(0)], engine="jit", check=("race",))
    for turn in range(3):
        assert hazards(fine, large, turn) == []
        assert many.launch(16, 64, [data, np.uint32(turn)], engine="jit", check=("race",)).findings == []
        assert hazards(fine, large, turn) == []
    assert quick()


def test_pieces_are_given_once(made):
    memory = spare_memory.TagMemory.fresh(100)
    for first, count in ((50, 10), (0, 20), (10, 30), (15, 5), (55, 20)):
        memory.touch(first, count)[:] = 1
    for piece in memory.pieces():
        np.add(piece, 1, out=piece)
    assert memory.tags[:80].tolist() == [2] * 40 + [0] * 10 + [2] * 25 + [0] * 5
    assert memory.size == 4 * 65


def test_what_is_left_first_is_dropped_first(monkeypatch):
    monkeypatch.setattr(spare_memory, "MOST_COPIES", 3000)
    spare = spare_memory.SpareCopies()
    blocks = [np.empty(size, np.uint8) for size in (1000, 1500, 900)]
    for each in blocks:
        spare.give(each)
    assert spare.take(800).base is blocks[2]
    assert spare.take(1000).base is blocks[1]
    assert spare.take(1000).base is None
