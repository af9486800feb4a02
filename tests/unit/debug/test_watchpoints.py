"""Watchpoints of memory whose content an instruction leaves as it is."""

from __future__ import annotations

import numpy as np
import pytest
from ring_kernel import session_of

from ptxvm.algebra.types import u32
from ptxvm.debug.session import Session
from ptxvm.debug.stops import Reason

WRITES = """.version 7.0
.target sm_80
.address_size 64
.visible .entry writes(.param .u64 x)
{
.reg .b64 %rd<3>;
.reg .b32 %r<3>;
ld.param.u64 %rd1, [x];
mov.u32 %r1, 5;
st.global.u32 [%rd1+8], %r1;
st.global.u32 [%rd1+8], 7;
st.global.u32 [%rd1+8], 7;
ld.global.u32 %r2, [%rd1+8];
st.global.u32 [%rd1+4], 7;
st.global.u32 [%rd1+8], 9;
red.global.max.u32 [%rd1+8], 3;
ret;
}
"""
SAME, FIRST, AGAIN, READ, OTHER, LAST, MAXIMUM = range(10, 17)


@pytest.fixture
def writes():
    """A session over one thread that writes the third of four words, of which that is 5."""
    session = session_of(WRITES, 1, 1, [np.array([1, 2, 5, 4], np.uint32)])
    session.start()
    yield session
    session.close()


def lines_of_stops(session: Session) -> list[int]:
    """The lines after whose instructions a watchpoint stops, up to the end."""
    found = []
    while (stop := session.resume()).reason is Reason.WATCHPOINT:
        found.append(stop.changes[0].line)
    assert stop.reason is Reason.ENDED
    return found


@pytest.mark.parametrize(
    ("accesses", "lines"),
    [
        ("write", [FIRST, LAST]),
        ("read", [READ, MAXIMUM]),
        ("access", [SAME, FIRST, AGAIN, READ, LAST, MAXIMUM]),
    ],
)
def test_a_write_that_changes_nothing_stops_only_where_all_accesses_do(writes, accesses, lines):
    made = writes.watch("x[2]", accesses)
    assert lines_of_stops(writes) == lines
    assert made.hits == len(lines)


def test_backwards_a_write_that_changed_nothing_does_not_stop_either(writes):
    writes.watch("x[2]")
    assert lines_of_stops(writes) == [FIRST, LAST]
    places = []
    while writes.reverse_resume().reason is Reason.WATCHPOINT:
        places.append(writes.execution.timeline.next().bound.line)
    assert places == [LAST, FIRST]


def test_of_an_array_the_element_that_changed_is_told(writes):
    writes.watch_bytes(writes.bytes_at(writes.view(), writes.place("x[0]"), 16), u32, "x")
    assert [(c.old, c.new) for c in (writes.resume().changes[0], writes.resume().changes[0])] == [("5", "7"), ("2", "7")]
