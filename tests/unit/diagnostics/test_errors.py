"""A fault says what is wrong, at which line, of which thread, and of which of the grids that launched each other."""

from __future__ import annotations

import pickle

from ptxvm.diagnostics.errors import Fault, Place

PARENT = Place("outer", 7, "call launch;", (0, 0, 0), (3, 0, 0))
CHILD = Place("inner", 9, "st.u32 [%d], %r;", (1, 0, 0), (2, 0, 0), grid=5, launched=PARENT)


def test_a_fault_without_a_place_is_one_line() -> None:
    assert str(Fault("trap", "a trap")) == "trap: a trap"


def test_a_fault_has_its_line_its_source_and_its_thread() -> None:
    place = Place("k", 4, "trap;", (0, 1, 0), (31, 0, 0), file="a.ptx", source="a.cu:12")
    assert str(Fault("trap", "a trap", place=place)).splitlines() == [
        "trap: a trap",
        "  at a.ptx:4: trap;",
        "  from a.cu:12",
        "  in kernel k, CTA (0, 1, 0), thread (31, 0, 0)",
    ]


def test_a_place_without_a_line_or_a_thread_says_neither() -> None:
    assert str(Fault("trap", "a trap", place=Place("k", source="a.cu:12"))).splitlines() == ["trap: a trap", "  from a.cu:12"]


def test_a_grid_that_a_kernel_launched_names_the_launch() -> None:
    lineage = "grid 5 ('inner'; CTA (0, 0, 0), thread (3, 0, 0) of 'outer' launched it at line 7 (call launch;))"
    assert CHILD.lineage == lineage
    assert str(Fault("trap", "a trap", place=CHILD)).splitlines()[-1] == f"  of {lineage}"


def test_a_fault_goes_to_another_process() -> None:
    sent = pickle.dumps(Fault("out-of-bounds", "reading", address=16, size=4, place=CHILD))
    fault = pickle.loads(sent)  # noqa: S301 - our own
    assert (fault.kind, fault.message, fault.address, fault.size, fault.place) == ("out-of-bounds", "reading", 16, 4, CHILD)
