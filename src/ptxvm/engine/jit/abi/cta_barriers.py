"""The barriers of a CTA as compiled code keeps them: arrivals, waiting lanes, and states of warps (PTX 9.7.13.1).

This record belongs to a resident CTA.  It is used where barriers are for some threads only, where warps give way to
others, and where several CTAs are resident at once; a kernel whose barriers are for the whole CTA does without it.  Its
words, of 32 bits:

    cta (2)                         the number of the CTA; -1 where none is under way
    expected, ayes, voters          of each barrier: how many threads it waits for (-1: all), and the votes so far
    arrived, waiting                of each barrier, for each warp: the lanes that have come, and those that wait
    alive, released, state          of each warp: the lanes that have not ended, those that may go on, where it stands
    outcome                         of each warp, for each barrier: ayes and voters of the last time that it opened
"""

from __future__ import annotations

from dataclasses import dataclass

BARRIERS = 16  # of a CTA
ALL = -1  # instead of a number of threads


@dataclass(frozen=True, slots=True)
class CtaBarriers:
    """Where the words of the record are, for CTAs of some warps."""

    warps: int

    def of_barrier(self, word: str) -> int:
        """Where `expected`, `ayes` or `voters` begins."""
        return 16 + BARRIERS * ("expected", "ayes", "voters").index(word)

    def of_lanes(self, word: str) -> int:
        """Where `arrived` or `waiting` begins."""
        return 64 + BARRIERS * self.warps * ("arrived", "waiting").index(word)

    def of_warp(self, word: str) -> int:
        """Where `alive`, `released` or `state` begins."""
        return 64 + self.warps * (2 * BARRIERS + ("alive", "released", "state").index(word))

    @property
    def outcome(self) -> int:
        """Where the outcomes begin."""
        return self.of_warp("state") + self.warps

    @property
    def size(self) -> int:
        """Bytes of the record, a multiple of 64."""
        return -(-4 * (self.outcome + 2 * BARRIERS * self.warps) // 64) * 64

    @property
    def offsets(self) -> dict[str, int]:
        """Where everything is, by the names that the functions of the run time have for it (`runtime/cta_barriers.ll`)."""
        barriers = {word: self.of_barrier(word) for word in ("expected", "ayes", "voters")}
        lanes = {word: self.of_lanes(word) for word in ("arrived", "waiting")}
        of_warps = {word: self.of_warp(word) for word in ("alive", "released")}
        return {"warps": self.warps, "outcome": self.outcome, **barriers, **lanes, **of_warps}
