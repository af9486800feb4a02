"""The protocol of single-thread execution: a script supplies the values that one thread reads.

An engine sets a `Stage`; a `Script` decides, and receives the actions of the thread.  The memory model explores kernels
that way (PTX 8): the machine executes instructions, and the model decides which writes a read may see.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Protocol

from ptxvm.algebra.asynchronous import AsyncKind, Proxy
from ptxvm.algebra.memory_order import FenceKind, Order, Scope
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Register
from ptxvm.dataclass import dataclass
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.launch import LaunchShape


@dataclass(frozen=True, slots=True)
class ThreadAccess:
    """An access of one thread: consecutive elements of `size` bytes, from a byte of memory on.

    A packed type has `parts` scalars in each element (PTX 8.2.5).  `offset` counts as in `machine.events`.
    """

    bound: Bound
    allocation: Allocation
    offset: int
    size: int
    count: int = 1
    parts: int = 1
    order: Order = Order.WEAK
    scope: Scope | None = None
    proxy: Proxy = Proxy.GENERIC


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of a passed value: a register of the function at a depth of calls, or bytes of local memory."""

    register: Register | None = None
    depth: int = 0
    offset: int = 0
    size: int = 0


class Meeting(enum.StrEnum):
    """A kind of meeting of threads: at a barrier of the CTA or of the warp, or a collective of lanes that exchange values."""

    CTA = "bar"
    WARP = "bar.warp"
    EXCHANGE = "exchange"


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """A barrier or collective at which some threads of a CTA meet; threads have their numbers in the CTA.

    `number` says which of its kind it is, `threads` how many a barrier waits for.
    """

    bound: Bound
    kind: Meeting
    number: int
    threads: int | None = None
    members: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The kind, or the instruction that exchanges values: lanes meet at the same one."""
        return self.bound.i.mnemonic if self.kind is Meeting.EXCHANGE else self.kind


Payload = tuple[int, ...]
"""The bits of what a thread gives to others."""


class Script(Protocol):
    """Supplies the values that a thread reads; its other methods receive the thread's actions, in program order."""

    def enters(self, code: Sequence[Bound], depth: int, standing: Callable[[], Hashable]) -> None:
        """The thread begins to run these consecutive instructions, in a function at a depth of calls.

        `standing` says before they run all on which depends what the thread will do from here on.
        """

    def passes(self, source: Holder | None, target: Holder) -> None:
        """A call passes an argument or a result from one holder to another; None is a constant."""

    def jumps_back(self) -> None:
        """The thread jumps back; raises `StopThread` to stop following it."""

    def reads(self, touch: ThreadAccess) -> Sequence[int] | None:
        """The bits of each element; None for the contents of memory."""
        ...

    def writes(self, touch: ThreadAccess, values: Sequence[int]) -> None:
        """The thread writes the bits of each element."""

    def updates(self, touch: ThreadAccess, modify: Callable[[int], int], compared: int | None) -> int:
        """The old bits of an atomic; `modify` gives the new ones, and `compared` is what a `cas` compares with."""
        ...

    def fences(self, bound: Bound, order: FenceKind, scope: Scope) -> None:
        """The thread executes a fence."""

    def synchronizes(self, meeting: Rendezvous) -> None:
        """The thread waits for others, and has gone on."""

    def arrives(self, meeting: Rendezvous) -> None:
        """The thread arrives at a barrier of its CTA without waiting."""

    def exchanges(self, meeting: Rendezvous, payload: Payload) -> Mapping[int, Payload]:
        """The thread meets the members and gives them values; returns the values of the others."""
        ...

    def learns(self, thread: int) -> None:
        """The last instruction has used a value of that thread."""

    def observes_phase(self, order: Order, scope: Scope) -> None:
        """The last read has found a phase of an mbarrier over."""

    def copies(
        self, bound: Bound, kind: AsyncKind, sources: Sequence[tuple[ThreadAccess, bytes]], target: ThreadAccess
    ) -> None:
        """An asynchronous copy begins: of bytes that the script chooses or memory holds, then of zeros."""

    def groups(self, kind: AsyncKind) -> None:
        """The copies since the last group form a new one."""

    def awaits(self, kind: AsyncKind, left: int, *, reading: bool) -> None:
        """The thread has waited until at most so many groups are left, or still have to read their sources."""

    def signals(self, touch: ThreadAccess, kind: AsyncKind, modify: Callable[[int], int], *, last: bool) -> None:
        """An atomic on an mbarrier follows the copies of a kind so far, or only the last copy."""


class StopThread(Exception):  # noqa: N818 - nothing is wrong
    """A script stops following a thread."""


class Stage(Protocol):
    """A grid whose threads can run alone."""

    kernel: Function
    shape: LaunchShape

    def run(self, thread: int, script: Script, keep: Sequence[str] = ()) -> Mapping[str, int] | None:
        """Run one thread to its end; the final bits of some registers, or None where the script stopped it."""
        ...


__all__ = ["Holder", "Payload", "Rendezvous", "Script", "Stage", "StopThread", "ThreadAccess"]
