"""The counts of a profiled launch: the memory in which compiled code counts, and what its words mean for instructions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Bound
from ptxvm.engine.jit.abi.counter_rows import CLASSES, MOST_WORDS, PLACE
from ptxvm.engine.jit.abi.launch_record import AT
from ptxvm.engine.jit.abi.metadata import Facts
from ptxvm.engine.jit.cfg.uncounted import Uncounted
from ptxvm.machine.image import Image
from ptxvm.machine.memory import Memory
from ptxvm.profile.counter import APART, Counts, no_counts
from ptxvm.profile.metrics import POSITION

REACH = 1 << 32  # bytes of global memory whose places fit the 32 bits that compiled code computes them in
EVERY = (1 << 64) - 1


class EventMemory:
    """The words in which one host thread counts, and the table of places that its code searches."""

    def __init__(self, memory: Memory) -> None:
        self.words = np.zeros(MOST_WORDS, np.int64)  # of which the host only backs what is touched
        self.places = np.array(list(places(memory)), np.uint64).reshape(-1, PLACE)

    def enter(self, record: memoryview) -> None:
        """Fill in the fields of the launch record that profiled code reads."""
        line = 64
        first = -self.words.ctypes.data % line
        self.words = self.words[first // self.words.itemsize :]
        record[AT["counters"]] = self.words.ctypes.data
        record[AT["places"]], record[AT["place_count"]] = self.places.ctypes.data, len(self.places)


def places(memory: Memory) -> Iterator[tuple[int, int, int, int]]:
    """Where each allocation lies for the counters: its start and length, what is added to an address, and its class.

    Allocations of global memory begin at multiples of 256 bytes, wherever the host has them; others at 0.
    """
    end = 0
    for each in memory.table.items:
        if each.space not in CLASSES:
            continue
        begin = end if each.space is Space.GLOBAL else 0
        if each.space is Space.GLOBAL:
            end += -(-(each.end - each.origin) // APART) * APART
        yield each.start, each.end - each.start, (begin - each.origin) & EVERY, CLASSES.index(each.space)
    if end > REACH:
        raise Uncounted("more than 4 GiB of memory")


class EventCounts:
    """The counts of a launch, over all host threads: the metrics of each instruction."""

    def __init__(self) -> None:
        self.counts: dict[Bound, Counts] = {}

    def add(self, image: Image, facts: Facts, words: npt.NDArray[np.int64]) -> None:
        """Add what a host thread has counted."""
        bounds: dict[int, Bound] = {}
        for word, instruction, metric, factor in facts.weights:
            count = int(words[word])
            if not count:
                continue
            if instruction not in bounds:
                bounds[instruction] = facts.bound(image, instruction)
            row = self.counts.setdefault(bounds[instruction], no_counts())
            row[POSITION[metric]] += factor * count


__all__ = ["EventCounts", "EventMemory"]
