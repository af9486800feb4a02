"""Overflow records: the reads or writes of a cell beside the last one, which does not stand for them.

Reads of one cell seldom order each other, so a later write may know any of them and not the rest: none may be lost
(FastTrack, Flanagan and Freund 2009, keeps a vector of reads for the same reason).  Nor do writes that are morally strong.
They are kept in the order in which they were made, cell beside record; of one thread only the last stays.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Covers = Callable[[Ints, Ints], Mask]  # do later records stand for earlier ones of the same threads?

ROOM = 1 << 16  # entries before the first tidying


class OverflowRecords:
    """Records beside their cells, any number for each."""

    def __init__(self, cells: int, covers: Covers, bits: int) -> None:
        """`bits` of a record are the thread's."""
        self.covers, self._bits = covers, bits
        self._here = np.zeros(cells, np.bool_)  # may a cell have any?
        self._turn = np.zeros(cells, np.int32)  # scratch: the number of the asking access, from 1
        self._parts: list[tuple[Ints, Ints]] = []
        self._count, self._room = 0, ROOM

    def add(self, cells: Ints, records: Ints) -> None:
        """Keep more; they are the latest of their threads."""
        if not len(cells):
            return
        self._here[cells] = True
        self._parts.append((cells, records))
        self._count += len(cells)
        if self._count > self._room:
            self._tidy()

    def any_of(self, cells: Ints) -> bool:
        """May one of these cells have a record here?"""
        return bool(self._here[cells].any())

    def of(self, cells: Ints, *, taking: bool = False) -> tuple[Ints, Ints, tuple[Ints, Ints]]:
        """What cells have: their cells, the records, and the pairs of a record and an asking access, by positions.

        Taken ones are kept no longer.
        """
        where, records = self._all()
        numbers = np.arange(1, len(cells) + 1)
        self._turn[cells] = numbers
        asking = self._turn[where].astype(np.int64) - 1
        alone = bool((self._turn[cells] == numbers).all())
        self._turn[cells] = 0
        mine = asking >= 0
        if taking:
            self._here[cells] = False
            self._put(where[~mine], records[~mine])
        where, records = where[mine], records[mine]
        return where, records, (np.arange(len(where)), asking[mine]) if alone else _pairs(where, cells)

    def replace(self, cells: Ints, old: Ints, new: Ints) -> None:
        """Let records be others, as if they were made now."""
        if not self._count or not self.any_of(cells):
            return
        where, records = self._all()
        instead = dict(zip(zip(cells.tolist(), old.tolist(), strict=True), new.tolist(), strict=True))
        found = np.flatnonzero(np.isin(records, old) & np.isin(where, cells)).tolist()
        moved = [(n, instead[key]) for n in found if (key := (int(where[n]), int(records[n]))) in instead]
        if moved:
            at = np.array([n for n, _ in moved], np.int64)
            rest = np.ones(len(where), np.bool_)
            rest[at] = False
            self._put(where[rest], records[rest])
            self.add(where[at], np.array([record for _, record in moved], np.int64))

    def halve(self) -> None:
        """Cells are half as large from now on."""
        where, records = self._all()
        self._here, self._turn = np.repeat(self._here, 2), np.repeat(self._turn, 2)
        self._put((where[:, None] * 2 + np.arange(2)).ravel(), records.repeat(2))

    def _all(self) -> tuple[Ints, Ints]:
        if len(self._parts) > 1:
            self._parts = [(np.concatenate([c for c, _ in self._parts]), np.concatenate([r for _, r in self._parts]))]
        return self._parts[0] if self._parts else (np.zeros(0, np.int64), np.zeros(0, np.int64))

    def _put(self, cells: Ints, records: Ints) -> None:
        self._parts, self._count = [(cells, records)], len(cells)

    def _tidy(self) -> None:
        """Drop what later ones of the same thread stand for."""
        where, records = self._all()
        key = where << self._bits | records & (1 << self._bits) - 1
        order = np.argsort(key, kind="stable")
        key, made = key[order], records[order]
        stays = np.ones(len(order), np.bool_)
        stays[:-1] = (key[1:] != key[:-1]) | ~((made[1:] == made[:-1]) | self.covers(made[1:], made[:-1]))
        rest = np.sort(order[stays])
        self._put(where[rest], records[rest])
        self._room = max(ROOM, 2 * self._count)


def _pairs(where: Ints, cells: Ints) -> tuple[Ints, Ints]:
    """Each of some records with all accesses of its cell."""
    order = np.argsort(cells, kind="stable")
    ranked = cells[order]
    first, end = np.searchsorted(ranked, where), np.searchsorted(ranked, where, "right")
    many = end - first
    held = np.arange(len(where)).repeat(many)
    within = np.arange(len(held)) - (np.cumsum(many) - many).repeat(many)
    return held, order[first.repeat(many) + within]


__all__ = ["OverflowRecords"]
