"""Sets of bytes of an array: half-open runs where these are few, else a bit for each byte."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from ptxvm.dataclass import dataclass
from ptxvm.machine.events import Flags
from ptxvm.machine.per_lane import Array

CHUNK = 1 << 17  # words of a map that are looked at together
EACH = 256  # bytes of an array, for which there may be one run: two numbers take half the memory of its bits
FEW = 1 << 12  # runs that are copied one after the other
WORD = 8  # bytes
EVERY = np.uint64(2**64 - 1)


@dataclass(frozen=True)
class ByteSet:
    """Some of the bytes of an array of a size."""

    size: int
    runs: Array | None = None  # rows of start and end, in order
    bits: Array | None = None

    @classmethod
    def of_map(cls, map: Array, parts: Sequence[tuple[int, int]] | None = None) -> ByteSet:
        """The bytes that a map has ones for; it has zeros for the others, and for all that is in none of some parts, in order.

        The addresses of the map and of its parts are multiples of 8.
        """
        edges: list[Array] = []
        found = 0
        for start, end in [(0, len(map))] if parts is None else parts:
            for each in _edges(map[start:end]):
                edges.append(each + start)
                found += len(each)
                if found > 2 * (len(map) // EACH + FEW):
                    return cls(len(map), bits=np.packbits(map != 0))
            if found % 2:  # the last one is not closed
                edges.append(np.array([end], np.int64))
                found += 1
        whole = np.concatenate(edges) if edges else np.empty(0, np.int64)
        return cls(len(map), runs=whole.reshape(-1, 2))

    def __bool__(self) -> bool:
        return self.bits is not None or bool(len(self.runs if self.runs is not None else ()))

    @cached_property
    def index(self) -> slice | Flags:
        """The bytes, as an index of the array: a slice of one run is much cheaper than a flag for each byte."""
        if self.runs is None:
            flags: Flags = np.unpackbits(self.bits, count=self.size).view(np.bool_)  # type: ignore[arg-type]
            return flags
        if len(self.runs) == 1:
            return slice(*self.runs[0].tolist())
        edges = np.zeros(self.size + 1, np.int8)
        edges[self.runs[:, 0]] += 1
        edges[self.runs[:, 1]] -= 1
        return np.cumsum(edges[:-1], dtype=np.int8).view(np.bool_)

    def taken(self, array: Array) -> Array:
        """The values of the bytes, one after the other."""
        if self.runs is None or not 1 < len(self.runs) <= FEW:
            return array[self.index]
        return np.concatenate([array[start:end] for start, end in self.runs.tolist()])

    def put(self, array: Array, values: Array) -> None:
        """Set the bytes to values, as `taken` gives them."""
        if self.runs is None or not 1 < len(self.runs) <= FEW:
            array[self.index] = values
            return
        at = 0
        for start, end in self.runs.tolist():
            array[start:end] = values[at : at + end - start]
            at += end - start


def _edges(map: Array) -> Iterator[Array]:
    """The positions at which a map has another byte than before, in order.  Most words of it are alike, and are skipped."""
    words = map[: len(map) // WORD * WORD].view(np.uint64)
    for first in range(0, len(words), CHUNK):
        part = words[first : first + CHUNK]
        changed = (part != 0) & (part != EVERY)
        changed[1:] |= part[1:] != part[:-1]
        changed[0] |= part[0] != (words[first - 1] if first else 0)
        there = np.flatnonzero(changed) + first
        yield _changes(map, (there[:, None] * WORD + np.arange(WORD)).ravel())
    yield _changes(map, np.arange(len(words) * WORD, len(map)))


def _changes(map: Array, positions: Array) -> Array:
    """Those of some positions at which a map has another byte than before; there is nothing before the first."""
    before = np.where(positions > 0, map[np.maximum(positions, 1) - 1], 0)
    found: Array = positions[map[positions] != before]
    return found


def are_apart(written: Sequence[ByteSet], read: Sequence[ByteSet]) -> bool:
    """Has no byte two writers, nor a reader besides its writer?

    Sets of one number belong together.  False too where a set is no runs, which alone are quickly compared.
    """
    if any(each.runs is None for each in (*written, *read)):
        return False
    runs = np.concatenate([np.empty((0, 2), np.int64), *(each.runs for each in written if each.runs is not None)])
    owners = np.repeat(np.arange(len(written)), [len(each.runs) if each.runs is not None else 0 for each in written])
    order = np.argsort(runs[:, 0], kind="stable")
    runs, owners = runs[order], owners[order]
    if (runs[1:, 0] < runs[:-1, 1]).any():
        return False
    for number, each in enumerate(read):
        if each.runs is None or not len(each.runs):
            continue
        first = np.searchsorted(runs[:, 1], each.runs[:, 0], "right")
        last = np.searchsorted(runs[:, 0], each.runs[:, 1], "left")
        own = np.concatenate([[0], np.cumsum(owners == number)])
        if (own[last] - own[first] != last - first).any():
            return False
    return True


__all__ = ["ByteSet", "are_apart"]
