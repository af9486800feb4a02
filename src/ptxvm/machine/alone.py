"""Threads that run one at a time, each as often as one likes, while somebody else decides what they read.

An engine that can do so sets a `Stage`; a `Script` decides, and is told what the thread does.  The memory model explores
kernels that way (PTX 8): it is the machine that says what an instruction does, and the model what a read may see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ptxvm.analysis.program import Bound, Function
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.launch import LaunchShape


@dataclass(frozen=True, slots=True)
class Touch:
    """An access of one thread: the elements of `size` bytes that lie one behind the other from a byte of memory on.

    A packed type has `parts` scalars in each element (PTX 8.2.5).  `offset` counts as in `machine.events`.
    """

    bound: Bound
    allocation: Allocation
    offset: int
    size: int
    count: int = 1
    parts: int = 1
    order: str = "weak"
    scope: str = ""


class Script(Protocol):
    """Decides what a thread reads; every other method tells what it does, in program order."""

    def enters(self, code: Sequence[Bound]) -> None:
        """The thread begins to run these instructions, one after the other."""

    def goes_back(self) -> None:
        """The thread jumps back; raises `Enough` where it need not be followed further."""

    def reads(self, touch: Touch) -> Sequence[int] | None:
        """The bits of each element; None for what memory holds."""
        ...

    def writes(self, touch: Touch, values: Sequence[int]) -> None:
        """The bits of each element."""

    def updates(self, touch: Touch, modify: Callable[[int], int], compared: int | None) -> int:
        """The bits that an atomic operation finds; `modify` says what it leaves, `compared` with what a `cas` compares."""
        ...

    def fences(self, order: str, scope: str) -> None:
        """A fence."""

    def meets(self, bound: Bound, number: int, threads: int | None) -> None:
        """The thread waits at a barrier of its CTA, and has gone on."""

    def arrives(self, bound: Bound, number: int, threads: int) -> None:
        """The thread arrives at a barrier of its CTA without waiting."""

    def meets_warp(self, bound: Bound, members: int) -> None:
        """The thread waits for lanes of its warp, and has gone on."""


class Enough(Exception):  # noqa: N818 - nothing is wrong
    """A script wants to see no more of a thread."""


class Stage(Protocol):
    """A grid whose threads can be run alone."""

    kernel: Function
    shape: LaunchShape

    def run(self, thread: int, script: Script, keep: Sequence[str] = ()) -> Mapping[str, int] | None:
        """Run one thread to its end; the bits of some registers there, or None where the script had enough."""
        ...


__all__ = ["Enough", "Script", "Stage", "Touch"]
