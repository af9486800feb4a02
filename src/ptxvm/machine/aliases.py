"""Aliases: memory that is mapped at several addresses (PTX 8.2.2), as that of a multicast object is, too (PTX 8.2.3).

A check that follows accesses to memory asks here: all addresses of a byte stand for one place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.state_space import Space
from ptxvm.machine.allocation import Allocation
from ptxvm.named_tuple import NamedTuple

Offsets = npt.NDArray[np.int64]
Selection: TypeAlias = slice | npt.NDArray[np.bool_]
"""Those of some accesses that lie in one place."""

ALL = slice(None)


class MappedPart(NamedTuple):
    """A part of some memory, by a number of its own, and the address at which it is mapped."""

    start: int
    size: int
    memory: int
    offset: int

    @property
    def base(self) -> int:
        """The address at which all of the memory would begin."""
        return self.start - self.offset


class Aliases:
    """The parts of memory that several addresses stand for, each with an allocation that stands for the memory."""

    def __init__(self, parts: Iterable[MappedPart]) -> None:
        by_memory: defaultdict[int, list[MappedPart]] = defaultdict(list)
        for part in sorted(parts):
            by_memory[part.memory].append(part)
        wholes = {memory: _whole(several) for memory, several in by_memory.items() if _overlap(several)}
        found = [(part, whole) for memory, whole in wholes.items() for part in by_memory[memory]]
        found.sort(key=lambda each: each[0].start)
        self._starts = np.array([part.start for part, _ in found], np.uint64)
        self._ends = np.array([part.start + part.size for part, _ in found], np.uint64)
        self._found = found

    def __bool__(self) -> bool:
        return bool(self._found)

    def places(self, allocation: Allocation, offsets: Offsets) -> Iterator[tuple[Selection, Allocation, Offsets]]:
        """Where accesses to an allocation lie: for some of them each, what stands for the memory, and the offsets in it."""
        if allocation.space is not Space.GLOBAL or not self._found:
            yield ALL, allocation, offsets
            return
        addresses = offsets.view(np.uint64) + allocation.base
        at = np.searchsorted(self._starts, addresses, "right") - 1
        at[(at >= 0) & (addresses >= self._ends[at])] = -1
        for number in np.unique(at).tolist():
            mine = at == number
            if number < 0:
                yield mine, allocation, offsets[mine]
                continue
            part, whole = self._found[number]
            yield mine, whole, offsets[mine] + (allocation.origin - part.base)


def _overlap(parts: list[MappedPart]) -> bool:
    """Have some parts of one memory bytes in common?"""
    spans = sorted((part.offset, part.offset + part.size) for part in parts)
    return any(end > start for (_, end), (start, _) in pairwise(spans))


def _whole(parts: list[MappedPart]) -> Allocation:
    """What stands for a memory: it begins where the first of its parts says."""
    size = max(part.offset + part.size for part in parts)
    return Allocation(parts[0].base, size, Space.GLOBAL, "mapped memory", detail=f"mapped at {len(parts)} addresses")


class MappedMemory:
    """What is mapped in this process, as its driver says."""

    def __init__(self) -> None:
        self._parts: Callable[[], Iterable[MappedPart]] = tuple
        self._aliases: Aliases | None = None

    def follow(self, parts: Callable[[], Iterable[MappedPart]]) -> None:
        """Ask there from now on."""
        self._parts, self._aliases = parts, None

    def changed(self) -> None:
        """Something else is mapped."""
        self._aliases = None

    @property
    def aliases(self) -> Aliases:
        """The aliases that there are now."""
        if self._aliases is None:
            self._aliases = Aliases(self._parts())
        return self._aliases


MAPPED = MappedMemory()

__all__ = ["MAPPED", "Aliases", "MappedMemory", "MappedPart"]
