"""The memory of lanes on the interpreter."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import cast

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.engine.interp.lane_memory import LaneMemory
from ptxvm.isa.effects import Access, Verb
from ptxvm.machine.allocation import Allocation, AllocationTable


def test_an_array_that_is_collected_meanwhile_takes_no_allocation_away() -> None:
    """The garbage collector runs at any time, and what it frees leaves the table: the others keep their places."""
    table = AllocationTable(nullcontext())
    every = [Allocation(0x1000 * n, 64, Space.GLOBAL, f"array {n}") for n in (1, 2, 3)]
    for each in every:
        table.insert(each)
    memory = cast(
        "LaneMemory",
        SimpleNamespace(
            window=lambda _: None, threads_of=lambda lanes: lanes, _whole=lambda address: address,
            machine=SimpleNamespace(table=table),
        ),
    )  # fmt: skip
    addresses = np.array([0x1000, 0x2000, 0x3010], np.uint64)
    touched = LaneMemory.touched_by_lane(memory, Access(Verb.READ, Space.GLOBAL), np.arange(3), addresses)
    found = [next(touched)]
    table.remove(every[0])
    found += touched
    assert [(allocation, threads.tolist(), offsets.tolist()) for _, (allocation, threads, offsets) in found] == [
        (every[0], [0], [0]),
        (every[1], [1], [0]),
        (every[2], [2], [16]),
    ]
