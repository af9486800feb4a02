"""The clusters of a grid that have not begun, which the grid's own threads may cancel (PTX 9.7.13.17)."""

from __future__ import annotations

from ptxvm.machine.launch import LaunchShape

WAVES = 4  # in which the clusters of a grid begin whose threads may cancel some
CANCELLED = 1  # the lowest bit of an answer
WORD, HALF = 32, 64  # bits


class ClusterQueue:
    """Begins clusters, and cancels them, in the order of their numbers."""

    def __init__(self, shape: LaunchShape) -> None:
        self.shape = shape
        self._next = 0  # the number of a CTA

    @property
    def wave(self) -> int:
        """How many CTAs begin together in a grid whose threads may cancel clusters: some, so that others are left to them."""
        clusters = self.shape.ctas // self.shape.cluster_size
        return max(1, clusters // WAVES) * self.shape.cluster_size

    def begin(self, most: int) -> range:
        """The next CTAs, in whole clusters; empty where all have begun or are cancelled."""
        first = self._next
        self._next = min(first + most, self.shape.ctas)
        return range(first, self._next)

    @property
    def begun(self) -> int:
        """How many CTAs have begun, or were cancelled: those with the lowest numbers."""
        return self._next

    def cancel(self) -> list[int]:
        """The answer to a request: two words of 64 bits.

        The lowest bit says whether a cluster was cancelled; the words of 32 bits above are the place of its first CTA.
        """
        cancelled = self.begin(self.shape.cluster_size)
        if not cancelled:
            return [0, 0]
        x, y, z = self.shape.ctaid(cancelled.start)
        bits = CANCELLED | x << WORD | y << 2 * WORD | z << 3 * WORD
        return [bits % (1 << HALF), bits >> HALF]
