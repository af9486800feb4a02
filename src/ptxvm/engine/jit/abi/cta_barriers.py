"""The layout of a CTA's barrier record: arrivals, waiting lanes and warp states (PTX 9.7.13.1, 9.7.13.3).

A resident CTA has such a record if its kernel has barriers for some threads only, if its warps yield to each other, or if
several CTAs are resident at once.  A kernel whose barriers are all for the whole CTA needs none.  The words of 32 bits:

    cta (2)                         the number of the CTA; -1 in a free slot
    expected, ayes, voters          of each barrier: how many threads it expects (-1: all), and the votes so far
    arrived, waiting                of each barrier, for each warp: the lanes that have arrived, and those that wait
    alive, released, state          of each warp: the lanes that have not ended, those that were released, its state
    cluster_arrived, cluster_waiting    of each warp: the lanes at the barrier of the cluster, and those that wait there
    warpgroup_waiting               of each warp: the lanes that wait for the other warps of the warpgroup
    outcome                         of each warp, for each barrier: ayes and voters when it opened last
"""

from __future__ import annotations

from ptxvm.dataclass import dataclass

BARRIERS = 16  # of a CTA
OF_WARP = ("alive", "released", "state", "cluster_arrived", "cluster_waiting", "warpgroup_waiting")
ALL = -1  # in `expected`: all threads of the CTA


@dataclass(frozen=True, slots=True)
class CtaBarriers:
    """The offsets of the words of the record, for CTAs of so many warps."""

    warps: int

    def of_barrier(self, word: str) -> int:
        """The offset of `expected`, `ayes` or `voters`."""
        return 16 + BARRIERS * ("expected", "ayes", "voters").index(word)

    def of_lanes(self, word: str) -> int:
        """The offset of `arrived` or `waiting`."""
        return 64 + BARRIERS * self.warps * ("arrived", "waiting").index(word)

    def of_warp(self, word: str) -> int:
        """The offset of a word of `OF_WARP`."""
        return 64 + self.warps * (2 * BARRIERS + OF_WARP.index(word))

    @property
    def outcome(self) -> int:
        """The offset of the outcomes."""
        return self.of_warp(OF_WARP[-1]) + self.warps

    @property
    def size(self) -> int:
        """Bytes of the record, a multiple of 64."""
        return -(-4 * (self.outcome + 2 * BARRIERS * self.warps) // 64) * 64

    @property
    def offsets(self) -> dict[str, int]:
        """All offsets, by the names that `runtime/cta_barriers.ll` has for them."""
        barriers = {word: self.of_barrier(word) for word in ("expected", "ayes", "voters")}
        lanes = {word: self.of_lanes(word) for word in ("arrived", "waiting")}
        of_warps = {word: self.of_warp(word) for word in OF_WARP}
        return {"warps": self.warps, "outcome": self.outcome, **barriers, **lanes, **of_warps}
