"""The counts of a profiled launch: the memory in which compiled code counts, and what its words mean for instructions."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Bound, Function
from ptxvm.engine.jit.abi.counter_rows import CLASSES, FIRST_KEYS, KEY_WORDS, MOST_KEYS, PLACE
from ptxvm.engine.jit.abi.launch_record import AT
from ptxvm.engine.jit.abi.metadata import Batch, Facts, Weight
from ptxvm.engine.jit.cfg.uncounted import Uncounted
from ptxvm.engine.jit.run import kept_requests
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.backing import address_of
from ptxvm.machine.image import Image
from ptxvm.profile.counter import APART, Counts, consequences
from ptxvm.profile.metrics import COUNTED, POSITION

REACH = 1 << 32  # bytes of global memory whose places fit the 32 bits that compiled code computes them in
EVERY = (1 << 64) - 1
CLEARED = 1 << 13  # words, up to which it is quicker to clear those of the launch before than to take new ones


class EventMemory:
    """The words in which one host thread counts, and the table of places that its code searches."""

    def __init__(self) -> None:
        self.words = words()

    def enter(self, record: memoryview, allocations: Iterable[Allocation], used: int) -> None:
        """Begin a launch whose code uses so many words: they are 0, and the launch record says where all is."""
        if used <= CLEARED:
            self.words[:used] = 0
        else:
            self.words = words()
        self.places = np.array([*chain.from_iterable(places(allocations))], np.uint64)
        record[AT["counters"]] = address_of(self.words)
        record[AT["places"]], record[AT["place_count"]] = address_of(self.places), len(self.places) // PLACE


def words() -> npt.NDArray[np.int64]:
    """All words, 0, of which the host only backs what is touched: in small pages, since a kernel counts in few of them."""
    held = mmap.mmap(-1, (FIRST_KEYS + MOST_KEYS) * np.dtype(np.int64).itemsize)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        held.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(held, np.int64)


def places(allocations: Iterable[Allocation]) -> Iterator[tuple[int, int, int, int]]:
    """The table of allocations for the counters: of each its start and length, what is added to an address, and its class.

    Allocations of global memory begin at multiples of 256 bytes, wherever the host has them; others at 0.
    """
    end = 0
    for each in allocations:
        if each.space not in CLASSES:
            continue
        begin = end if each.space is Space.GLOBAL else 0
        if each.space is Space.GLOBAL:
            end += -(-(each.end - each.origin) // APART) * APART
        yield each.start, each.end - each.start, (begin - each.origin) & EVERY, CLASSES.index(each.space)
    if end > REACH:
        raise Uncounted("more than 4 GiB of memory")


class Meaning:
    """The meaning of the words: a matrix of weights, of the metrics of instructions, as arrays of its entries."""

    def __init__(self, image: Image, weights: Sequence[Weight], bound: Callable[[Image, int], Bound]) -> None:
        numbers = list(dict.fromkeys(weight.instruction for weight in weights))
        self.bounds = [bound(image, number) for number in numbers]
        rows = {number: n for n, number in enumerate(numbers)}
        entries = [(each.word, rows[each.instruction], POSITION[each.metric], each.factor) for each in weights]
        self._words, self._rows, self._columns, self._factors = np.array(entries, np.int64).reshape(-1, 4).T
        follow = [
            (n, POSITION[name], POSITION[cause], factor)
            for n, each in enumerate(self.bounds) for name, cause, factor in consequences(each)
        ]  # fmt: skip
        self._follow = np.array(follow, np.int64).reshape(-1, 4).T

    def entries(self, words: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The word of each entry of the matrix."""
        return words[self._words]

    def entries_of(self, words: Mapping[int, int]) -> npt.NDArray[np.int64]:
        """The entries for some words; the others are 0."""
        held = np.zeros(1 + int(self._words.max(initial=0)), np.int64)
        for word, count in words.items():
            if word < len(held):  # the last ones may mean nothing
                held[word] = count
        return self.entries(held)

    def counts(self, entries: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The metrics of all instructions, a row each."""
        found = np.zeros((len(self.bounds), len(COUNTED)), np.int64)
        np.add.at(found, (self._rows, self._columns), self._factors * entries)
        rows, columns, causes, factors = self._follow
        np.add.at(found, (rows, columns), factors * found[rows, causes])
        return found


class EventCounts(Mapping[Bound, Counts]):
    """The counts of a launch, over all host threads: the metrics of each instruction, computed when they are asked for.

    `meanings` has what the words of each list of weights mean, which the launches of a kernel share.
    """

    def __init__(self, meanings: dict[Function, tuple[Facts, Meaning]]) -> None:
        self._found: dict[Meaning, npt.NDArray[np.int64]] = {}
        self._kept: list[tuple[Meaning, Batch, npt.NDArray[np.uint32]]] = []
        self._meanings = meanings

    def add(self, image: Image, kernel: Function, facts: Facts, words: npt.NDArray[np.int64]) -> None:
        """Add what a host thread has counted; the requests that it has kept are counted when they are asked for."""
        known, meaning = self._meanings.get(kernel, (None, None))
        if known is not facts or meaning is None:
            meaning = Meaning(image, facts.weights, facts.bound)
            self._meanings[kernel] = facts, meaning
        entries = meaning.entries(words)
        self._found[meaning] = self._found[meaning] + entries if meaning in self._found else entries
        for batch in facts.batches:
            if kept := int(words[batch.kept]):
                keys = words[batch.keys : batch.keys + kept * KEY_WORDS].view(np.uint32).reshape(kept, -1)
                self._kept.append((meaning, batch, keys.copy()))

    def __getitem__(self, bound: Bound) -> Counts:
        """The counts of an instruction that was executed."""
        return self._counts[bound]

    def __iter__(self) -> Iterator[Bound]:
        """The instructions that were executed."""
        return iter(self._counts)

    def __len__(self) -> int:
        """How many instructions were executed."""
        return len(self._counts)

    @cached_property
    def _counts(self) -> dict[Bound, Counts]:
        """The counts of each instruction that was executed; those of the copies of an inlined function are one's."""
        counts: dict[Bound, Counts] = {}
        rows: dict[Meaning, dict[int, int]] = {}
        for meaning, batch, keys in self._kept:
            counted = rows.setdefault(meaning, {})
            for word, count in kept_requests.row(batch, keys).items():
                counted[batch.row + word] = counted.get(batch.row + word, 0) + count
        for meaning, entries in self._found.items():
            found = meaning.counts(entries + meaning.entries_of(rows.get(meaning, {})))
            for n in np.flatnonzero(found.any(axis=1)).tolist():
                bound = meaning.bounds[n]
                counts[bound] = counts[bound] + found[n] if bound in counts else found[n]
        return counts


__all__ = ["EventCounts", "EventMemory", "Meaning"]
