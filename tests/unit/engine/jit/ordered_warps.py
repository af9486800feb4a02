"""The order of the accesses of warps that meet at barriers, apart from the machine's own clocks."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence


class Ordered:
    """Vector clocks of warps, kept here once more: may a warp access a word without a race?"""

    def __init__(self, warps: int) -> None:
        self.now = [1] * warps
        self.known = [[0] * warps for _ in range(warps)]
        self.past: dict[Hashable, list[tuple[int, int, str]]] = {}

    def fine(self, warp: int, word: Hashable, how: str) -> bool:
        """May a warp read ("ld") or write ("st") a word?"""
        before = [(v, c) for v, c, other in self.past.get(word, ()) if "st" in (how, other)]
        return all(self.known[warp][v] >= c for v, c in before)

    def arrive(self, warps: Iterable[int]) -> Sequence[int]:
        """Warps arrive at a barrier; returns what they know."""
        row = [0] * len(self.now)
        for warp in warps:
            row = [max(pair) for pair in zip(row, self.known[warp], strict=True)]
            row[warp] = max(row[warp], self.now[warp])
            self.now[warp] += 1
        return row

    def learn(self, warps: Iterable[int], row: Sequence[int]) -> None:
        """Warps have waited at a barrier that passes on what is known."""
        for warp in warps:
            self.known[warp] = [max(pair) for pair in zip(self.known[warp], row, strict=True)]

    def meets(self, arriving: Sequence[int], waiting: Sequence[int]) -> None:
        """Some warps arrive at a barrier, and others arrive and wait."""
        self.learn(waiting, self.arrive((*arriving, *waiting)))
