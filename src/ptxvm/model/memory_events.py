"""Events of an execution: what the instructions of a path do to memory (PTX 8.2 and 8.4)."""

from __future__ import annotations

from dataclasses import field
from enum import Enum

from ptxvm.algebra.asynchronous import Proxy
from ptxvm.algebra.memory_order import Order, Scope
from ptxvm.dataclass import dataclass
from ptxvm.model.litmus_program import Barrier, Location, Thread
from ptxvm.model.values import Key, Value


class EventKind(Enum):
    """The operation types of PTX 8.4 that have a meaning of their own here.

    A barrier is two events, an arrival and a wait: as one event it would precede itself in base causality order.
    """

    READ = "R"
    WRITE = "W"
    FENCE = "F"
    PROXY_FENCE = "PF"
    ARRIVAL = "A"
    WAIT = "B"


@dataclass(frozen=True, eq=False, slots=True)
class Event:
    """One operation on a scalar, a fence, or one half of a barrier.

    Program order is kept as an interval: an event precedes those of its thread that start when it has ended.  So the
    elements of a vector are unordered (PTX 8.2.4), and an asynchronous operation goes on until it is waited for.
    """

    kind: EventKind
    key: Key
    text: str
    thread: Thread | None = None
    """None for the writes that initialise memory (PTX 8.2.4 in 6.4, 8.2.6 in 9.1)."""
    start: int = 0
    end: int = 0
    location: Location | None = None
    order: Order = Order.WEAK
    scope: Scope | None = None
    proxy: Proxy = Proxy.GENERIC
    value: Value = 0
    """The value that a write writes."""
    atomic: Key | None = None
    """Of both halves of an atomic operation: the key of its read."""
    is_red: bool = False
    data: frozenset[Key] = frozenset()
    control: frozenset[Key] = frozenset()
    """The reads on which the value (`data`) and the occurrence (`control`) of the event depend."""
    barrier: Barrier | None = None
    identity: Value = 0
    count: Value | None = None
    made_of: int = field(default=0)
    """The number of instructions that its thread ran before; the scalars of one instruction share it."""
    follows: frozenset[Key] = frozenset()
    """Longer operations that the event follows all the same: the copies whose end it signals."""

    @property
    def is_memory(self) -> bool:
        """A read or a write?"""
        return self.kind in (EventKind.READ, EventKind.WRITE)

    @property
    def is_strong(self) -> bool:
        """PTX 8.4: a fence, or a memory operation with an order other than weak."""
        return self.kind is EventKind.FENCE or (self.is_memory and self.order.strong)

    def __str__(self) -> str:
        where = self.thread.name if self.thread else "init"
        return f"{where}: {self.text}"
