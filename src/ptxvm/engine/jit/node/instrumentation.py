"""Instrumentation: what the code of a kernel checks by itself while it runs, and what was noticed when it was written."""

from __future__ import annotations

from dataclasses import dataclass, field

GRAIN = 4  # bytes of a cell, at most


@dataclass(slots=True)
class Shadow:
    """What the code of a kernel watches, and what was noticed while it was written.

    `grain` is bytes of a cell of shared memory, and of the rest; `finest` the smallest accesses met.  `doubts` are what
    the tags cannot judge; `scheduled` tells that values depend on the order in which threads run.
    """

    checks: frozenset[str]
    grain: dict[bool, int] = field(default_factory=lambda: {True: GRAIN, False: GRAIN})
    finest: dict[bool, int] = field(default_factory=lambda: {True: GRAIN, False: GRAIN})
    doubts: set[str] = field(default_factory=set)
    scheduled: bool = False

    @property
    def race(self) -> bool:
        """Does it look for races?"""
        return "race" in self.checks

    @property
    def init(self) -> bool:
        """Does it look for reads of bytes that were never written?"""
        return "init" in self.checks

    def note(self, space: str, size: int) -> None:
        """An access of elements of some size."""
        for shared in (True, False) if space == "generic" else (space == "shared",):
            self.finest[shared] = min(self.finest[shared], size)
        if space == "generic":
            self.finest = dict.fromkeys(self.finest, min(self.finest.values()))

    @property
    def fits(self) -> bool:
        """Is no access smaller than a cell?"""
        return all(self.finest[shared] >= grain for shared, grain in self.grain.items())

    def finer(self) -> Shadow:
        """One that fits."""
        return Shadow(self.checks, dict(self.finest), dict(self.finest))
