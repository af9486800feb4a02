"""The table of allocations, while it changes.  Expectations are arithmetic by hand."""

from __future__ import annotations

from threading import RLock

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.machine.allocation import Allocation, AllocationTable

PLACES = [0x1000 * n for n in range(1, 7)]
ADDRESSES = np.array(PLACES, np.uint64)


def table() -> AllocationTable:
    """Six allocations of 256 bytes."""
    made = AllocationTable(RLock())
    for start in PLACES:
        made.insert(Allocation(start, 256, Space.GLOBAL, f"at {start:#x}"))
    return made


def fitting(some: AllocationTable) -> list[bool]:
    """Where a word can be read, of all places."""
    return some.fitting(ADDRESSES, 4, Space.GLOBAL, None, writing=False).tolist()


def test_columns_are_of_one_moment():
    some = table()
    columns = some.columns
    some.remove(some.items[2])
    assert columns.reached(Space.GLOBAL, writing=False).tolist() == [True] * 6
    assert some.columns.reached(Space.GLOBAL, writing=False).tolist() == [True] * 5
    assert fitting(some) == [True, True, False, True, True, True]


def test_an_allocation_that_is_released_while_columns_are_made_does_not_stay_in_them(monkeypatch):
    some = table()
    made: list[object] = []
    array = np.array

    def interrupted(*words, **how):  # as a collection of arrays may be
        if not made:
            made.append(None)
            some.remove(some.items[2])
        return array(*words, **how)

    monkeypatch.setattr("ptxvm.machine.allocation.np.array", interrupted)
    assert fitting(some)[2]  # the moment before
    monkeypatch.undo()
    assert fitting(some) == [True, True, False, True, True, True]


def test_lanes_that_a_smaller_launch_has_not_have_no_window_in_its_memory():
    """As lanes of a launch beside it, whose addresses are wild."""
    some, windows = AllocationTable(RLock()), Allocation(0x1000, 128, Space.SHARED, "the shared memory")
    windows.window, windows.home = 64, np.array([0, 64], np.int64)
    some.insert(windows)
    lanes, address = np.array([0, 1, 2]), np.array([0x1000, 0x1040, 0x1000], np.uint64)
    assert some.fitting(address, 4, Space.SHARED, lanes, writing=False).tolist() == [True, True, False]


def test_hidden_memory_that_is_removed_leaves_what_has_its_address():
    """An empty allocation may begin where another does, and what is hidden is in no table."""
    some, hidden = table(), Allocation(0x1800, 64, Space.GLOBAL, "hidden")
    empty = Allocation(0x2000, 0, Space.GLOBAL, "empty")
    some.insert(empty)
    some.insert(hidden)
    some.remove(hidden, remember=False)
    some.remove(hidden)
    some.remove(empty)
    assert fitting(some) == [True] * 6
    assert some.freed(0x1800, 4) is not None


def test_an_access_does_not_mean_freed_memory_of_a_space_that_it_cannot_reach():
    """Host arrays lie where shared memory of earlier launches was: `st.global` means what is beside them (PTX 5, 8.1)."""
    some, shared = table(), Allocation(0x12000, 256, Space.SHARED, "the shared memory")
    some.insert(shared)
    some.remove(shared)
    kinds = {space: some.explain(0x12000, 4, space, writing=True).kind for space in (Space.GLOBAL, Space.SHARED, Space.GENERIC)}
    assert kinds == {Space.GLOBAL: "out-of-bounds", Space.SHARED: "use-after-free", Space.GENERIC: "use-after-free"}
