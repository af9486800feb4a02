"""Asynchronous copies along one path: their groups, and when they end (PTX 9.7.9.25)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from ptxvm.model.events import Event, Kind
from ptxvm.model.paths import FOREVER, Path
from ptxvm.model.values import Key


@dataclass(frozen=True, slots=True)
class Begun:
    """A copy: its kind, how many groups of that kind were made before, and its events."""

    kind: str
    group: int
    events: range


class Copying:
    """The copies of a path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.begun: list[Begun] = []
        self.groups = Counter[str]()
        self.told = Counter[str]()

    def began(self, kind: str, first: int) -> None:
        """The events from the first on are a copy."""
        self.begun.append(Begun(kind, self.groups[kind], range(first, len(self.path.events))))

    def group(self, kind: str) -> None:
        """What began since the last group is one."""
        self.groups[kind] += 1

    def end(self, kind: str, left: int, *, reading: bool) -> list[Event]:
        """All groups but the last few end now, or at least their reads do; returns what has ended."""
        ended = []
        for copy in self.begun:
            if copy.kind == kind and copy.group < self.groups[kind] - left:
                ended += [n for n in copy.events if self._ends(self.path.events[n], reading=reading)]
        for n in ended:
            self.path.events[n] = replace(self.path.events[n], end=self.path.time)
        return [self.path.events[n] for n in ended]

    @staticmethod
    def _ends(event: Event, *, reading: bool) -> bool:
        return event.end == FOREVER and (event.kind is Kind.READ or not reading)

    def keys(self, kind: str, *, last: bool) -> frozenset[Key]:
        """The events of the copies of a kind so far, or of those about which no mbarrier was told."""
        copies = [copy for copy in self.begun if copy.kind == kind]
        first, self.told[kind] = self.told[kind] if last else 0, len(copies)
        return frozenset(self.path.events[n].key for copy in copies[first:] for n in copy.events)
