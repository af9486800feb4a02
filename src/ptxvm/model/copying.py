"""Asynchronous copies along one path: their groups, and when they end (PTX 9.7.9.25)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ptxvm.algebra.asynchronous import AsyncKind
from ptxvm.dataclass import dataclass
from ptxvm.model.memory_events import Event, EventKind
from ptxvm.model.paths import FOREVER, Path
from ptxvm.model.values import Key


@dataclass(frozen=True, slots=True)
class PendingCopy:
    """A copy: its kind, the number of earlier groups of that kind, and its events."""

    kind: AsyncKind
    group: int
    events: range


class PathCopies:
    """The asynchronous copies of a path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.begun: list[PendingCopy] = []
        self.groups = Counter[AsyncKind]()
        self.signalled = Counter[AsyncKind]()

    def began(self, kind: AsyncKind, first: int) -> None:
        """Record a copy; its events are those from `first` on."""
        self.begun.append(PendingCopy(kind, self.groups[kind], range(first, len(self.path.events))))

    def group(self, kind: AsyncKind) -> None:
        """Complete a group of the copies since the last group."""
        self.groups[kind] += 1

    def end(self, kind: AsyncKind, left: int, *, reading: bool) -> list[Event]:
        """End all but the last `left` groups, or only their reads; returns the events that have ended."""
        ended = []
        for copy in self.begun:
            if copy.kind is kind and copy.group < self.groups[kind] - left:
                ended += [n for n in copy.events if self._ends(self.path.events[n], reading=reading)]
        for n in ended:
            self.path.events[n] = replace(self.path.events[n], end=self.path.time)
        return [self.path.events[n] for n in ended]

    @staticmethod
    def _ends(event: Event, *, reading: bool) -> bool:
        return event.end == FOREVER and (event.kind is EventKind.READ or not reading)

    def keys(self, kind: AsyncKind, *, last: bool) -> frozenset[Key]:
        """The events of the copies of a kind; with `last`, only those since the last call."""
        copies = [copy for copy in self.begun if copy.kind is kind]
        first, self.signalled[kind] = self.signalled[kind] if last else 0, len(copies)
        return frozenset(self.path.events[n].key for copy in copies[first:] for n in copy.events)
