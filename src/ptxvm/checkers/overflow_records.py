"""Overflow records: reads or writes of a cell that its last read or write does not stand for.

Reads of one cell seldom order each other.  A later write may be ordered after some of them and not the others, so none may be
lost (FastTrack, Flanagan and Freund 2009, keeps a vector of reads for the same reason).  The same holds for morally strong
writes.  The records stand in the order of the accesses, cell beside record; only the last record of a thread stays.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Covers = Callable[[Ints, Ints], Mask]  # do later records stand for earlier records of the same threads?

CAPACITY = 1 << 16  # entries before the first tidying


class OverflowRecords:
    """Records with their cells; a cell may have any number of them."""

    def __init__(self, cells: int, covers: Covers, bits: int) -> None:
        """The low `bits` bits of a record are its thread."""
        self.covers, self._bits = covers, bits
        self._here = np.zeros(cells, np.bool_)  # may the cell have records?
        self._asking = np.zeros(cells, np.int32)  # scratch: the number of the asking access, from 1
        self._parts: list[tuple[Ints, Ints]] = []
        self._count, self._capacity = 0, CAPACITY

    def add(self, cells: Ints, records: Ints) -> None:
        """Add records; each is the latest of its thread."""
        if not len(cells):
            return
        self._here[cells] = True
        self._parts.append((cells, records))
        self._count += len(cells)
        if self._count > self._capacity:
            self._compact()

    def any_of(self, cells: Ints) -> bool:
        """May one of these cells have records?"""
        return bool(self._here[cells].any())

    def of(self, cells: Ints, *, taking: bool = False) -> tuple[Ints, Ints, tuple[Ints, Ints]]:
        """The records of some cells: their cells, the records, and the pairs of a record and an access, by positions.

        With `taking`, the records are removed.
        """
        where, records = self.held
        numbers = np.arange(1, len(cells) + 1)
        self._asking[cells] = numbers
        asking = self._asking[where].astype(np.int64) - 1
        alone = bool((self._asking[cells] == numbers).all())
        self._asking[cells] = 0
        mine = asking >= 0
        if taking:
            self._here[cells] = False
            self._put(where[~mine], records[~mine])
        where, records = where[mine], records[mine]
        return where, records, (np.arange(len(where)), asking[mine]) if alone else _pairs(where, cells)

    def replace(self, cells: Ints, old: Ints, new: Ints) -> None:
        """Replace records by others, as if the accesses happened now."""
        if not self._count or not self.any_of(cells):
            return
        where, records = self.held
        found = np.flatnonzero(self._among(where, cells))
        found = found[np.isin(records[found], old)]
        mine = self._among(cells, where[found])  # few of them have records, as a rule
        keys = zip(cells[mine].tolist(), old[mine].tolist(), strict=True)
        instead = dict(zip(keys, new[mine].tolist(), strict=True))
        moved = [(n, instead[key]) for n in found.tolist() if (key := (int(where[n]), int(records[n]))) in instead]
        if moved:
            at = np.array([n for n, _ in moved], np.int64)
            rest = np.ones(len(where), np.bool_)
            rest[at] = False
            self._put(where[rest], records[rest])
            self.add(where[at], np.array([record for _, record in moved], np.int64))

    def _among(self, cells: Ints, others: Ints) -> Mask:
        """Which cells are among others?"""
        self._asking[others] = 1
        found: Mask = self._asking[cells] > 0
        self._asking[others] = 0
        return found

    def halve(self) -> None:
        """Split each cell into two halves."""
        where, records = self.held
        self._here, self._asking = np.repeat(self._here, 2), np.repeat(self._asking, 2)
        self._put((where[:, None] * 2 + np.arange(2)).ravel(), records.repeat(2))

    @property
    def held(self) -> tuple[Ints, Ints]:
        """The cells, and the record of each."""
        if len(self._parts) > 1:
            self._parts = [(np.concatenate([c for c, _ in self._parts]), np.concatenate([r for _, r in self._parts]))]
        return self._parts[0] if self._parts else (np.zeros(0, np.int64), np.zeros(0, np.int64))

    def _put(self, cells: Ints, records: Ints) -> None:
        self._parts, self._count = [(cells, records)], len(cells)

    def _compact(self) -> None:
        """Drop records that a later record of the same thread stands for."""
        where, records = self.held
        key = where << self._bits | records & (1 << self._bits) - 1
        order = np.argsort(key, kind="stable")
        key, made = key[order], records[order]
        stays = np.ones(len(order), np.bool_)
        stays[:-1] = (key[1:] != key[:-1]) | ~((made[1:] == made[:-1]) | self.covers(made[1:], made[:-1]))
        rest = np.sort(order[stays])
        self._put(where[rest], records[rest])
        self._capacity = max(CAPACITY, 2 * self._count)


def _pairs(where: Ints, cells: Ints) -> tuple[Ints, Ints]:
    """Pairs of each record with all accesses to its cell."""
    order = np.argsort(cells, kind="stable")
    ranked = cells[order]
    first, end = np.searchsorted(ranked, where), np.searchsorted(ranked, where, "right")
    many = end - first
    held = np.arange(len(where)).repeat(many)
    within = np.arange(len(held)) - (np.cumsum(many) - many).repeat(many)
    return held, order[first.repeat(many) + within]


__all__ = ["OverflowRecords"]
