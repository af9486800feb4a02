"""The stores of a launch by thread, in their order, and the first one at which two launches part."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.types import Type
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.isa.effects import Verb
from ptxvm.named_tuple import NamedTuple
from ptxvm.profile.trace import Extent

Numbers: TypeAlias = npt.NDArray[np.integer]

ROW = np.dtype(
    [("thread", "i8"), ("place", "i4"), ("offset", "i8"), ("size", "i4"), ("low", "u8"), ("high", "u8"), ("by", "i4")]
)
COMPARED = ("place", "offset", "size", "low", "high")


class RecordedStore(NamedTuple):
    """A store of one element: the instruction, NAME+OFFSET, and the bits; of an atomic those of an operand."""

    bound: Bound
    verb: Verb
    type: Type
    place: str
    bits: int


@dataclass(frozen=True, slots=True)
class Parting:
    """Where two launches part: the thread, which of its stores, and the store of each; None where it has no such one."""

    cta: Extent
    thread: Extent
    number: int
    first: RecordedStore | None
    second: RecordedStore | None


class StoreLog:
    """The stores of all threads of a launch to global memory, element by element, to compare launches by.

    Atomics are logged with their operands: what they find in memory depends on the order of threads.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget what was logged."""
        self._rows: list[npt.NDArray[np.void]] = []
        self._by: list[tuple[Bound, Verb, Type]] = []
        self._placed: list[str] = []
        self.places: dict[str, int] = {}
        self.where: Callable[[int], tuple[Extent, Extent]] = lambda _: ((0, 0, 0), (0, 0, 0))

    def begin(self, grid: Extent, block: Extent) -> None:
        """A launch begins."""
        del grid, block
        self.clear()

    def stored(self, by: tuple[Bound, Verb, Type], place: str, threads: Numbers, offsets: Numbers, bits: list[int]) -> None:
        """Threads of the grid have stored an element each at offsets of a place."""
        rows = np.zeros(len(threads), ROW)
        rows["thread"], rows["offset"], rows["size"] = threads, offsets, by[2].bytes
        rows["place"] = self.places.setdefault(place, len(self.places))
        rows["low"], rows["high"] = [each % 2**64 for each in bits], [each >> 64 for each in bits]
        rows["by"] = len(self._by)
        self._by.append(by)
        self._placed.append(place)
        self._rows.append(rows)

    def rows(self) -> npt.NDArray[np.void]:
        """All stores in the order of the launch."""
        return np.concatenate(self._rows) if self._rows else np.zeros(0, ROW)

    def rows_as(self, other: StoreLog) -> npt.NDArray[np.void]:
        """All stores, with the places numbered as in another log."""
        rows = self.rows()
        if len(rows):
            numbers = [other.places.setdefault(place, len(other.places)) for place in self.places]
            rows["place"] = np.array(numbers, "i4")[rows["place"]]
        return rows

    def store(self, rows: npt.NDArray[np.void]) -> RecordedStore | None:
        """The store of the only row that there is; None where there is none."""
        if not len(rows):
            return None
        row, number = rows[0], int(rows[0]["by"])
        place = f"{self._placed[number]}+{int(row['offset'])}"
        return RecordedStore(*self._by[number], place, int(row["low"]) | int(row["high"]) << 64)


class ByThread(NamedTuple):
    """Stores sorted by thread: the position of each in the order of the launch, and its number among those of its thread."""

    rows: npt.NDArray[np.void]
    position: Numbers
    number: Numbers

    def keys(self, most: int) -> Numbers:
        """A number for each thread and store of it, of at most so many."""
        keys: Numbers = self.rows["thread"] * most + self.number
        return keys

    def first(self, some: Numbers) -> int:
        """The earliest of some stores."""
        return int(some[np.argmin(self.position[some])])


def first_parting(first: StoreLog, second: StoreLog) -> Parting | None:
    """The store at which two launches part, the earliest of the first launch; None where all stores are equal."""
    mine, theirs = by_thread(first.rows()), by_thread(second.rows_as(first))
    most = max((int(each.number.max()) + 1 for each in (mine, theirs) if len(each.rows)), default=1)
    keys, other_keys = mine.keys(most), theirs.keys(most)
    positions = np.searchsorted(other_keys, keys)
    there = np.isin(keys, other_keys)
    pairs = mine.rows[there], theirs.rows[positions[there]]
    parted = ~there
    parted[there] = np.any([pairs[0][name] != pairs[1][name] for name in COMPARED], axis=0)
    if parted.any():
        key = int(keys[mine.first(np.flatnonzero(parted))])
    elif len(extra := np.flatnonzero(~np.isin(other_keys, keys))):
        key = int(other_keys[theirs.first(extra)])
    else:
        return None
    cta, thread = first.where(key // most)
    of_first, of_second = first.store(mine.rows[keys == key]), second.store(theirs.rows[other_keys == key])
    return Parting(cta, thread, key % most + 1, of_first, of_second)


def by_thread(rows: npt.NDArray[np.void]) -> ByThread:
    """Stores by thread, each thread's in their order."""
    order = np.argsort(rows["thread"], kind="stable")
    threads = rows["thread"][order]
    return ByThread(rows[order], order, np.arange(len(rows)) - np.searchsorted(threads, threads))


__all__ = ["Parting", "RecordedStore", "StoreLog", "first_parting"]
