"""Races between launches on streams: what streams, events and the host's waiting order (CUDA C++ programming guide)."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm
from ptxvm.machine.allocation import RESTING
from ptxvm.machine.streams import DEVICE, StreamLaunch

TEXT = """
.version 6.4
.target sm_70
.address_size 64
.entry write(.param .u64 data) {
    .reg .b64 %d; .reg .b32 %t;
    ld.param.u64 %d, [data]; mov.u32 %t, %tid.x;
    mad.wide.u32 %d, %t, 4, %d;
    st.global.u32 [%d], %t;
    ret;
}
.entry read(.param .u64 data) {
    .reg .b64 %d; .reg .b32 %t;
    ld.param.u64 %d, [data]; mov.u32 %t, %tid.x;
    mad.wide.u32 %d, %t, 4, %d;
    ld.global.u32 %t, [%d];
    ret;
}
.entry count(.param .u64 data) {
    .reg .b64 %d;
    ld.param.u64 %d, [data];
    red.global.add.u32 [%d], 1;
    ret;
}
.entry count_in_cta(.param .u64 data) {
    .reg .b64 %d;
    ld.param.u64 %d, [data];
    red.relaxed.cta.global.add.u32 [%d], 1;
    ret;
}
"""


@pytest.fixture
def module():
    return ptxvm.load(TEXT)


@pytest.fixture
def data():
    return np.zeros(32, np.uint32)


def launched(module, name, data, stream):
    return module.kernel(name).launch(1, 32, [data], stream=stream, check=("race",)).findings


@pytest.mark.parametrize(
    ("first", "second", "hazard"),
    [("write", "read", "RAW"), ("read", "write", "WAR"), ("write", "write", "WAW"), ("count", "read", "RAW"),
     ("count", "count_in_cta", "WAW")],
)  # fmt: skip
def test_launches_on_two_streams_race(module, data, first, second, hazard):
    one, other = ptxvm.Stream("one"), ptxvm.Stream("other")
    assert launched(module, first, data, one) == []
    (found,) = [each for each in launched(module, second, data, other) if "launch" in each.message]
    assert (found.kind, found.hazard, found.space) == ("race", hazard, "global")
    earlier, later = found.accesses
    assert (earlier.place.kernel, later.place.kernel) == (first, second)
    assert later.grid == earlier.grid + 1
    assert list(earlier.bytes) == list(later.bytes) == [0, 1, 2, 3]
    assert "stream 'one' records" in found.missing
    assert f"('{first}' on stream 'one')" in found.message


@pytest.mark.parametrize(("first", "second"), [("read", "read"), ("count", "count")])
def test_reads_and_atomics_do_not_race(module, data, first, second):
    launched(module, first, data, ptxvm.Stream())
    assert launched(module, second, data, ptxvm.Stream()) == []


def test_one_stream_is_in_order(module, data):
    stream = ptxvm.Stream()
    launched(module, "write", data, stream)
    assert launched(module, "write", data, stream) == []


def test_an_event_orders_what_is_before_it(module, data):
    one, other = ptxvm.Stream(), ptxvm.Stream()
    launched(module, "write", data, one)
    event = one.record()
    other.wait(event)
    assert launched(module, "read", data, other) == []


def test_an_event_does_not_order_what_is_after_it(module, data):
    one, other = ptxvm.Stream(), ptxvm.Stream()
    event = one.record(ptxvm.Event())
    launched(module, "write", data, one)
    other.wait(event)
    assert [each.hazard for each in launched(module, "read", data, other)] == ["RAW"]


def test_waiting_is_transitive(module, data):
    one, two, three = ptxvm.Stream(), ptxvm.Stream(), ptxvm.Stream()
    launched(module, "write", data, one)
    two.wait(one)
    three.wait(two.record())
    assert launched(module, "write", data, three) == []


@pytest.mark.parametrize("wait", ["stream", "event", "default stream"])
def test_the_host_waits(module, data, wait):
    one, other = ptxvm.Stream(), ptxvm.Stream()
    launched(module, "write", data, one)
    if wait == "stream":
        one.sync()
    elif wait == "event":
        one.record().sync()
    else:
        assert launched(module, "read", data, None) == []
    assert launched(module, "write", data, other) == []


def test_launches_that_touch_other_bytes_do_not_race(module):
    data = np.zeros(64, np.uint32)
    launched(module, "write", data[:32], ptxvm.Stream())
    assert launched(module, "write", data[32:], ptxvm.Stream()) == []
    assert [each.hazard for each in launched(module, "read", data[31:63], ptxvm.Stream())] == ["RAW"]


def test_a_stream_without_a_check_only_orders(module, data):
    module.kernel("write").launch(1, 32, [data], stream=ptxvm.Stream())
    assert data.tolist() == list(range(32))


# ── what is remembered ──────────────────────────────────────────────────────────────────


def test_a_stream_remembers_what_its_last_launches_did(module):
    """A launch that does again what an earlier one of its stream did takes its place; others stay."""
    arrays, streams = [np.zeros(32, np.uint32) for _ in range(2)], [ptxvm.Stream() for _ in range(3)]
    before = len(DEVICE.under_way)
    for n in range(60):
        launched(module, ("count", "read")[n % 4 // 2], arrays[n % 2], streams[n % 3])
    assert len(DEVICE.under_way) - before == 12  # streams, kernels, arrays
    for stream in streams:
        stream.sync()
    assert len(DEVICE.under_way) == before


def test_what_is_done_to_other_bytes_is_remembered(module):
    data, one = np.zeros(80, np.uint32), ptxvm.Stream()
    for part in (data[:32], data[24:56], data[48:]):
        launched(module, "write", part, one)
    for first in (0, 8, 40):
        (found,) = launched(module, "read", data[first : first + 32], ptxvm.Stream())
        assert found.hazard == "RAW"
        assert found.accesses[0].address == data.ctypes.data + 4 * first


def test_nothing_is_forgotten_that_finds_a_race(module, rng, monkeypatch):
    """Random streams, events and waits: the findings are those of a device that remembers everything."""
    names, data = ("write", "read", "count", "count_in_cta"), np.zeros(96, np.uint32)
    steps = [(rng.integers(6), rng.integers(3), rng.integers(3), rng.integers(4), rng.integers(3)) for _ in range(60)]

    def play():
        streams, found = [ptxvm.Stream() for _ in range(3)], []
        for what, one, other, kernel, part in steps:
            if what == 0:
                streams[one].wait(streams[other])
            elif what == 1 and part == 0:
                streams[one].sync()
            else:
                view = data[16 * part : 16 * part + 32]
                races = [each for each in launched(module, names[kernel], view, streams[one]) if "launch" in each.message]
                found.append({(each.hazard, *(party.place.kernel for party in each.accesses)) for each in races})
        for stream in streams:
            stream.sync()
        return found

    forgetting = play()
    monkeypatch.setattr(StreamLaunch, "supersedes", lambda *_: False)
    assert play() == forgetting
    assert any(forgetting)


# ── memory that is freed, and given to another array ────────────────────────────────────


def reused(allocate, used, wait):
    """Free an array that a launch used, until a new one has its address; the findings of the launch, and the new one."""
    kept = []
    for _ in range(50):
        array = allocate()
        stream, address = ptxvm.Stream("one"), array.address
        result = used(array, stream)
        if wait:
            stream.sync()
        array.free()
        for _ in range(3):
            ptxvm.DeviceArray(RESTING // 2, np.uint8).free()
        other = allocate()
        if other.address == address:
            return result.findings, other
        kept.append(other)
    pytest.skip("the host never gave an address twice")


def zeros():
    return ptxvm.DeviceArray.from_host(np.zeros(32, np.uint32))


@pytest.mark.parametrize("wait", [False, True], ids=["in use", "waited for"])
def test_a_new_array_at_the_address_of_a_freed_one_is_another(module, wait):
    """No launch races with one that used the old array; that it was freed too early is told by the launch that used it."""

    def used(array, stream):
        return module.kernel("write").launch(1, 32, [array], stream=stream, check=("race",))

    findings, other = reused(zeros, used, wait)
    assert launched(module, "write", other, ptxvm.Stream("two")) == []
    if wait:
        assert findings == []
        return
    (finding,) = findings
    assert finding.kind == "freed-in-use"
    assert "freed while in use: the host frees a DeviceArray (128 bytes, uint32[32])" in finding.message
    assert "'write' on stream 'one'), which may still use it" in finding.message
    assert finding.accesses[0].line == 9


def test_an_array_that_no_launch_touched_is_freed_at_any_time(module, data):
    """It is the accesses that count, not the arguments."""
    array, stream = zeros(), ptxvm.Stream()
    result = module.kernel("write").launch(1, 32, [data], stream=stream, check=("race",))
    array.free()
    assert result.findings == []
    stream.sync()


def test_other_arrays_still_race(module, data):
    array, stream = zeros(), ptxvm.Stream()
    launched(module, "write", array, stream)
    launched(module, "write", data, stream)
    array.free()
    assert [each.hazard for each in launched(module, "read", data, ptxvm.Stream())] == ["RAW"]


HEAP = """
.version 6.4
.target sm_70
.address_size 64
.extern .func (.param .b64 r) malloc (.param .b64 a);
.extern .func free (.param .b64 a);
.entry scratch(.param .u64 data) {
    .reg .b64 %d, %n; .reg .b32 %r; .param .b64 size; .param .b64 block; .param .b64 gone;
    st.param.b64 [size], 64;
    call (block), malloc, (size);
    ld.param.b64 %d, [block];
    st.u32 [%d], 1;
    st.param.b64 [gone], %d;
    call free, (gone);
    ret;
}
"""


def test_blocks_of_the_heap_are_one_for_each_launch():
    """Grids that run at once get different blocks, though here one after the other has the same address."""
    kernel = ptxvm.load(HEAP).kernel()
    for name in ("one", "two", "three"):
        assert kernel.launch(1, 1, [0], stream=ptxvm.Stream(name), check=("race",)).findings == []


def test_one_instruction_of_two_launches_is_told_once(module, data):
    launched(module, "write", data, ptxvm.Stream())
    (found,) = launched(module, "write", data, ptxvm.Stream())
    assert found.message.endswith("and the write at line 9 touches the same bytes in both")
