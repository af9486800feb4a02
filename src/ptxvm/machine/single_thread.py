"""The protocol of single-thread execution: a script chooses the values of the reads of one thread.

An engine that can do so sets a `Stage`; a `Script` decides, and is told what the thread does.  The memory model explores
kernels that way (PTX 8): it is the machine that says what an instruction does, and the model what a read may see.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ptxvm.algebra.memory_order import FenceKind, Order, Scope
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Register
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
    order: Order = Order.WEAK
    scope: Scope | Literal[""] = ""
    proxy: str = "generic"


@dataclass(frozen=True, slots=True)
class Holder:
    """What holds a value that a call hands on: a register of the function so deep in calls, or bytes of local memory."""

    register: Register | None = None
    depth: int = 0
    offset: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class Meeting:
    """What some threads of a CTA come to together, by their numbers in the CTA.

    `name` says what it is (`bar` is a barrier of the CTA), `number` which of these, `threads` how many a barrier waits for.
    """

    bound: Bound
    name: str
    number: int
    threads: int | None = None
    members: tuple[int, ...] = ()


Payload = tuple[int, ...]
"""The bits of what a thread gives to others."""


class Script(Protocol):
    """Decides what a thread reads; every other method tells what it does, in program order."""

    def enters(self, code: Sequence[Bound], depth: int, standing: Callable[[], Hashable]) -> None:
        """The thread begins to run these instructions, one after the other, in a function so deep in calls.

        `standing` says before they run all on which depends what the thread will do from here on.
        """

    def hands_on(self, source: Holder | None, target: Holder) -> None:
        """A call hands over an argument or a result; None is a constant."""

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

    def fences(self, bound: Bound, order: FenceKind, scope: Scope) -> None:
        """A fence."""

    def meets(self, meeting: Meeting) -> None:
        """The thread waits for others, and has gone on."""

    def arrives(self, meeting: Meeting) -> None:
        """The thread arrives at a barrier of its CTA without waiting."""

    def exchanges(self, meeting: Meeting, given: Payload) -> Mapping[int, Payload]:
        """The thread meets the members and gives them values; what each of the others gives."""
        ...

    def learns(self, thread: int) -> None:
        """The last instruction has used what that thread gave."""

    def finds_over(self, order: Order, scope: Scope) -> None:
        """What was read last said that a phase of an mbarrier is over."""

    def copies(self, bound: Bound, kind: str, sources: Sequence[tuple[Touch, bytes]], target: Touch) -> None:
        """An asynchronous copy of one kind begins: of what the script says, or else memory holds, and then zeros."""

    def groups(self, kind: str) -> None:
        """What began since the last time is a group of copies."""

    def awaits(self, kind: str, left: int, *, reading: bool) -> None:
        """The thread has waited until so many groups are left, or have not read their sources."""

    def tells(self, touch: Touch, kind: str, modify: Callable[[int], int], *, last: bool) -> None:
        """An mbarrier is told of the end of the copies of a kind so far, or of the last only: an atomic operation."""


class Enough(Exception):  # noqa: N818 - nothing is wrong
    """A script wants to see no more of a thread."""


class Stage(Protocol):
    """A grid whose threads can be run alone."""

    kernel: Function
    shape: LaunchShape

    def run(self, thread: int, script: Script, keep: Sequence[str] = ()) -> Mapping[str, int] | None:
        """Run one thread to its end; the bits of some registers there, or None where the script had enough."""
        ...


__all__ = ["Enough", "Holder", "Meeting", "Payload", "Script", "Stage", "Touch"]
