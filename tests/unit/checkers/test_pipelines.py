"""What goes wrong in pipelines of copies and mbarriers: waits that are missing or of the wrong phase, barriers never armed.

Each finding names what waits or reads, and what copies or made the mbarrier (PTX 9.7.9.25.3, 9.7.13.15).
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

INIT = "mbarrier.init.shared::cta.b64 [%bar], 1;"
ARM = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 16;"
COPY = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%s], [%i], 16, [%bar];"
WAIT = "again: mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], 0; @!%p bra again;"
READ = "ld.shared.b32 %v, [%s];"
WRITE = "st.shared.b32 [%s], 7;"


def source(*lines: str) -> str:
    """%v is the number of the thread."""
    body = "\n".join(lines)
    return f"""
        .version 8.6
        .target sm_90
        .address_size 64
        .visible .entry k(.param .u64 in)
        {{
        .reg .b64 %i; .reg .b32 %s, %bar, %v; .reg .pred %p;
        .shared .align 16 .b8 tile[64];
        ld.param.u64 %i, [in]; mov.u32 %s, tile; add.u32 %bar, %s, 32; mov.u32 %v, %tid.x;
        {body}
        ret;
        }}"""


def findings(*lines: str, block: int = 1) -> list[ptxvm.Finding]:
    kernel = ptxvm.load(source(*lines)).kernel("k")
    return kernel.launch(1, block, [np.zeros(4, np.uint32)], check=("race", "sync")).findings


def line(lines: tuple[str, ...], wanted: str) -> int:
    return 1 + next(n for n, text in enumerate(source(*lines).splitlines()) if text.strip() == wanted)


def test_a_copy_that_is_waited_for_has_no_findings():
    assert findings(INIT, ARM, COPY, WAIT, READ) == []


@pytest.mark.parametrize("use", [READ, WRITE])
@pytest.mark.parametrize("wait", ["", WAIT.replace("0; @", "1; @")], ids=["no wait", "the phase before"])
def test_a_buffer_that_is_used_before_the_copy_has_ended_is_a_race(wait, use):
    lines = (INIT, ARM, COPY, wait, use)
    (found,) = findings(*lines)
    assert (found.kind, found.hazard) == ("race", "RAW" if use == READ else "WAW")
    assert [each.line for each in found.accesses] == [line(lines, COPY), line(lines, use)]


def test_a_write_before_a_copy_in_the_other_direction_needs_a_proxy_fence():
    store = "cp.async.bulk.global.shared::cta.bulk_group [%i], [%s], 16;"
    end = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
    assert findings(WRITE, "fence.proxy.async;", store, end) == []
    (found,) = findings(WRITE, store, end)
    assert found.missing.startswith("fence.proxy.async")
    assert [each.line for each in found.accesses] == [line((WRITE, store, end), WRITE), line((WRITE, store, end), store)]


def test_a_buffer_is_in_use_until_the_store_has_read_it():
    store = "cp.async.bulk.global.shared::cta.bulk_group [%i], [%s], 16; cp.async.bulk.commit_group;"
    assert findings(store, "cp.async.bulk.wait_group.read 0;", WRITE) == []
    (found,) = findings(store, WRITE, "cp.async.bulk.wait_group.read 0;")
    assert (found.kind, found.hazard) == ("race", "WAR")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ((INIT, COPY, WAIT), "1 arrival of 1 to come, and 16 bytes have come that no expect_tx announced"),
        ((INIT.replace("1;", "2;"), ARM, COPY, WAIT), "1 arrival of 2 to come"),
        ((INIT, ARM.replace("16", "32"), COPY, WAIT), "0 arrivals of 1 to come, and 16 bytes"),
    ],
    ids=["never armed", "one arrival too few", "bytes too few"],
)
def test_a_phase_that_cannot_end_is_a_deadlock_that_says_what_is_missing(lines, said):
    (found,) = findings(*lines)
    assert found.kind == "deadlock"
    assert said in found.message
    assert f"line {line(lines, lines[0])} initialised" in found.message
    assert found.line == line(lines, WAIT)


@pytest.mark.parametrize("bytes_", ["12", "20"])
def test_the_mbarrier_with_wrong_bytes_is_named_though_others_wait_for_its_end(bytes_):
    """The second warp waits for the first, which waits for a copy whose bytes were announced wrongly."""
    second, arm = "[%bar+8]", ARM.replace("16", bytes_)
    lines = (
        "setp.ne.u32 %p, %v, 0; @%p bra made;", INIT, INIT.replace("[%bar]", second), "made:", "bar.sync 0;",
        "setp.lt.u32 %p, %v, 32; @%p bra first;", WAIT.replace("[%bar]", second).replace("again", "other"), "ret;",
        "first: setp.ne.u32 %p, %v, 0; @%p bra again;", arm, COPY, WAIT,
    )  # fmt: skip
    (found,) = findings(*lines, block=64)
    assert found.kind == "deadlock"
    assert found.line == line(lines, WAIT)
    assert f"of line {line(lines, arm)} and of line {line(lines, COPY)})" in found.message


def test_warps_that_wait_for_each_other_are_a_deadlock():
    """Each waits for the other's arrival before its own."""
    second = "[%bar+8]"
    arrive = "mbarrier.arrive.shared::cta.b64 _, [%bar];"
    found = findings(
        "setp.ne.u32 %p, %v, 0; @%p bra started;", INIT, INIT.replace("[%bar]", second), "started: bar.sync 0;",
        "setp.ge.u32 %p, %v, 32; @%p bra group;",
        WAIT, arrive.replace("[%bar]", second), "ret;",
        "group:", WAIT.replace("again", "mine").replace("[%bar]", second), arrive,
        block=64,
    )  # fmt: skip
    assert [each.kind for each in found] == ["deadlock"]
    assert "64 threads wait" in found[0].message


@pytest.mark.parametrize(("copier", "barrier"), [(0, "bar.warp.sync"), (63, "a barrier of the CTA (bar.sync)")])
def test_a_copy_of_what_other_threads_have_just_stored_needs_a_barrier_before_it(copier, barrier):
    """No wait for a copy orders what comes before it (PTX 9.7.9.25)."""
    kernel = ptxvm.load(f"""
        .version 8.0
        .target sm_90
        .address_size 64
        .visible .entry k(.param .u64 out)
        {{
        .reg .b64 %p; .reg .b32 %t, %s; .reg .pred %last; .shared .align 16 .b32 tile[64];
        ld.param.u64 %p, [out]; mov.u32 %t, %tid.x; mov.u32 %s, tile; mad.lo.u32 %s, %t, 4, %s;
        st.shared.b32 [%s], %t;
        fence.proxy.async.shared::cta;
        setp.eq.u32 %last, %t, {copier}; mov.u32 %s, tile;
        @%last cp.async.bulk.global.shared::cta.bulk_group [%p], [%s], 128;
        @%last cp.async.bulk.commit_group;
        @%last cp.async.bulk.wait_group 0;
        ret;
        }}""").kernel("k")
    found = kernel.launch(1, 64, [np.zeros(32, np.uint32)], check=("race",)).findings
    assert [(each.kind, each.hazard) for each in found] == [("race", "RAW")]
    assert found[0].missing.startswith(barrier)
