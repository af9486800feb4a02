"""The last fences of each thread, with what it knew at each: an access that it knew is before the fence."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterator
from functools import partial
from typing import Generic, TypeVar

import numpy as np

from ptxvm.checkers.clocks import Clocks, Knowledge
from ptxvm.machine.events import Threads
from ptxvm.named_tuple import NamedTuple

FENCES = 8  # of a thread that are remembered: a thread that runs ahead of others makes further ones

Kind = TypeVar("Kind")


class Fence(NamedTuple):
    """A fence of a thread: its clock, and what it knew."""

    thread: int
    stamp: int
    known: Knowledge


class RememberedFences(Generic[Kind]):
    """The last fences of threads, by kind."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self._fences: dict[Kind, dict[int, deque[Fence]]] = defaultdict(partial(defaultdict, partial(deque, maxlen=FENCES)))

    def add(self, threads: Threads, kinds: Collection[Kind]) -> None:
        """Threads have executed a fence that is of these kinds."""
        for thread in threads.tolist():
            fence = Fence(thread, int(self.clocks.now[thread]), self.clocks.snapshot(np.array([thread], np.int64)))
            for kind in kinds:
                self._fences[kind][thread].append(fence)
        self.clocks.tick(threads)

    def of(self, kind: Kind) -> Iterator[Fence]:
        """Those of all threads."""
        return (fence for fences in self._fences[kind].values() for fence in fences)

    def of_thread(self, kind: Kind, thread: int) -> Iterator[Fence]:
        """Those of one thread."""
        return iter(self._fences[kind].get(thread, ()))

    def covers(self, fence: Fence, thread: int, stamp: int) -> bool:
        """Does a fence come after what a thread did at a time of its clock?"""
        home = int(self.clocks.home(thread))
        return home in fence.known and bool(fence.known[home][thread - home] >= stamp)


__all__ = ["Fence", "RememberedFences"]
