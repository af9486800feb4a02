"""Races between launches on streams: what streams, events and the host's waiting order (CUDA C++ programming guide)."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

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
