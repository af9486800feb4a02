"""Instrumentation: the checks that are compiled into a kernel, and findings of its translation."""

from __future__ import annotations

from dataclasses import field

from ptxvm.algebra.state_space import Space
from ptxvm.dataclass import dataclass
from ptxvm.machine.options import Check

GRAIN = 4  # bytes of a cell, at most


@dataclass(slots=True)
class Shadow:
    """The shadow memory of an instrumented kernel, and findings of its translation.

    `grain` is the size of a cell in bytes, for shared memory (True) and for other memory; `finest` the smallest access
    seen.  Generic accesses reach both, and make them `alike`.  `doubts` are accesses that tags cannot judge; `scheduled` says
    that values depend on the thread schedule.
    """

    checks: frozenset[Check]
    grain: dict[bool, int] = field(default_factory=lambda: {True: GRAIN, False: GRAIN})
    finest: dict[bool, int] = field(default_factory=lambda: {True: GRAIN, False: GRAIN})
    alike: bool = False
    doubts: set[str] = field(default_factory=set)
    scheduled: bool = False

    @property
    def race(self) -> bool:
        """Does it check for races?"""
        return "race" in self.checks

    @property
    def init(self) -> bool:
        """Does it check for reads of uninitialised bytes?"""
        return "init" in self.checks

    @property
    def tags(self) -> bool:
        """Are accesses followed by tags, which belong to one allocation?"""
        return self.race or self.init

    @property
    def bounds_only(self) -> bool:
        """Does it check nothing but where accesses go, whatever the order?"""
        return self.checks == {"memory"}

    def note(self, space: Space, size: int) -> None:
        """Note an access of elements of some size."""
        for shared in (True, False) if space is Space.GENERIC else (space is Space.SHARED,):
            self.finest[shared] = min(self.finest[shared], size)
        self.alike |= space is Space.GENERIC
        if self.alike:
            self.finest = dict.fromkeys(self.finest, min(self.finest.values()))

    @property
    def fits(self) -> bool:
        """Is each access at least as large as a cell?"""
        return all(self.finest[shared] >= grain for shared, grain in self.grain.items())

    def finer(self) -> Shadow:
        """A shadow memory whose cells are as small as the smallest access."""
        return Shadow(self.checks, dict(self.finest), dict(self.finest))
