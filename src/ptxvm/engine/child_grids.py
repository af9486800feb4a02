"""Child grids: what threads have launched and has not run, the calls by which they do, and the listeners of launches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ptxvm.analysis.program import Function
from ptxvm.dataclass import dataclass
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.builtins import Extent
from ptxvm.machine.launch import LaunchShape


@dataclass(eq=False, slots=True)
class RuntimeCall:
    """The call of a library function by one thread: its grid, its cohort and lane, its position among the calling lanes."""

    grid: int
    cohort: Any  # the engine's own
    lane: int
    position: int

    @property
    def thread(self) -> tuple[int, tuple[Extent, Extent]]:
        """The calling thread."""
        return self.grid, self.cohort.coordinates(self.lane)

    @property
    def cta(self) -> tuple[int, Extent]:
        """The CTA of the calling thread."""
        grid, (cta, _) = self.thread
        return grid, cta


@dataclass(eq=False, slots=True)
class ChildGrid:
    """A launched grid that has not run yet, and the CTA that launched it."""

    kernel: Function
    shape: LaunchShape
    shared: int
    buffer: Allocation
    cta: tuple[int, Extent] = (0, (0, 0, 0))
    last: bool = False

    @property
    def order(self) -> tuple[bool, Extent]:
        """The sort key of the children of one grid; children with equal keys run in the order of their launches."""
        x, y, z = self.cta[1]
        return self.last, (z, y, x)


@dataclass(eq=False, slots=True)
class SuspendedGrid:
    """A stepped grid that waits for others: what it has launched, and the calls of its threads that wait."""

    number: int
    waiting: list[ChildGrid]
    generations: list[list[ChildGrid]]
    parents: list[ChildGrid]
    waiters: list[RuntimeCall]


class LaunchListener(Protocol):
    """A listener for launches of child grids."""

    def asked(self, buffer: Allocation, call: RuntimeCall) -> None:
        """A thread has allocated a buffer for the parameters of a launch."""

    def stored(self, allocation: Allocation, offset: int, size: int) -> None:
        """A function has stored a result for its thread."""

    def unlaunched(self, buffers: Sequence[Allocation]) -> None:
        """All grids have ended, and these buffers were never launched with."""

    def launched(self, child: ChildGrid, call: RuntimeCall, stream: int) -> None:
        """A thread has launched a grid into a stream."""

    def recorded(self, event: int, call: RuntimeCall, stream: int) -> None:
        """A thread has recorded an event on a stream: it stands for the grids that are there."""

    def awaits(self, event: int, call: RuntimeCall, stream: int) -> None:
        """A thread has let a stream wait for an event."""

    def begins(self, child: ChildGrid, parameters: Allocation) -> None:
        """A child grid begins, with its parameters."""

    def ended(self, child: ChildGrid) -> None:
        """A child grid has ended, and all that it launched."""

    def waited(self, call: RuntimeCall) -> None:
        """A thread has waited for the grids of its CTA."""


__all__ = ["ChildGrid", "LaunchListener", "RuntimeCall", "SuspendedGrid"]
