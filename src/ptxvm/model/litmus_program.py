"""The program of a litmus test: threads in a hierarchy of scopes, their instructions, and variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ptxvm.algebra.asynchronous import Proxy
from ptxvm.algebra.memory_order import Order, Scope
from ptxvm.dataclass import dataclass

Operand = int | str
"""A number, or the name of a register."""


@dataclass(frozen=True)
class Location:
    """A range of bytes of a variable (PTX 8.2); a size of 0 is the whole variable."""

    variable: str
    offset: int = 0
    size: int = 0

    def __str__(self) -> str:
        return self.variable + (f"+{self.offset}" if self.offset else "")


@dataclass(frozen=True)
class LitmusInstruction:
    """The base of all instructions; `text` is the source text."""

    text: str = field(kw_only=True, default="", compare=False)


@dataclass(frozen=True)
class MemoryInstruction(LitmusInstruction):
    """The base of all memory operations (PTX 8.4): an order, the scope of a strong one, and a proxy."""

    order: Order = field(kw_only=True, default=Order.WEAK)
    scope: Scope | None = field(kw_only=True, default=None)
    proxy: Proxy = field(kw_only=True, default=Proxy.GENERIC)


@dataclass(frozen=True)
class Load(MemoryInstruction):
    """Read scalars, one for each register of a vector."""

    registers: tuple[str, ...]
    locations: tuple[Location, ...]


@dataclass(frozen=True)
class Store(MemoryInstruction):
    """Write scalars, one for each element of a vector."""

    locations: tuple[Location, ...]
    values: tuple[Operand, ...]


@dataclass(frozen=True)
class Atomic(MemoryInstruction):
    """Read, modify and write; `red` has no register."""

    operation: str
    register: str | None
    location: Location
    operands: tuple[Operand, ...]


@dataclass(frozen=True)
class Copy(MemoryInstruction):
    """An asynchronous copy (PTX 8.9.1.1): after earlier operations of its thread, and before none until the thread waits."""

    target: Location
    source: Location


@dataclass(frozen=True)
class WaitForCopies(LitmusInstruction):
    """`cp.async.wait_all`: wait for all copies of the thread."""


@dataclass(frozen=True)
class Fence(LitmusInstruction):
    """`fence` and `membar`."""

    order: Order
    scope: Scope


@dataclass(frozen=True)
class ProxyFence(LitmusInstruction):
    """`fence.proxy`; its proxy may be `alias`."""

    proxy: Proxy


@dataclass(frozen=True)
class Barrier(LitmusInstruction):
    """`bar`, and `barrier.cluster`: a thread arrives, waits, or both.

    `name` is the barrier as the test writes it, `identity` its number when that is only known at run time, and `count`
    how many threads open it; without one it is opened by all threads of the scope that name it.
    """

    name: str
    identity: Operand = 0
    count: Operand | None = None
    arrives: bool = True
    waits: bool = True
    scope: Scope = Scope.CTA
    of_warp: bool = False
    """Is it for the lanes of one warp?"""
    orders: bool = True
    """Does it order memory?  `barrier.cluster.arrive.relaxed` does not (PTX 9.7.13.3)."""


@dataclass(frozen=True)
class Compute(LitmusInstruction):
    """Arithmetic on registers; a move is an exchange."""

    operation: str
    register: str
    left: Operand
    right: Operand


@dataclass(frozen=True)
class Branch(LitmusInstruction):
    """Go to the label if the comparison holds; `0 == 0` always does."""

    comparison: str
    left: Operand
    right: Operand
    label: str


@dataclass(frozen=True)
class Thread:
    """A thread and its position in the hierarchy of scopes (PTX 8.5)."""

    name: str
    cta: tuple[int, int, int]
    """The device, the cluster and the CTA."""
    code: tuple[LitmusInstruction, ...]
    labels: Mapping[str, int]
    registers: Mapping[str, int]

    def within(self, scope: Scope | None, other: Thread) -> bool:
        """Does this scope of the thread include the other thread (PTX 8.5)?"""
        return scope is not None and self.cta[: DEPTH[scope]] == other.cta[: DEPTH[scope]]


DEPTH = {Scope.SYS: 0, Scope.GPU: 1, Scope.CLUSTER: 2, Scope.CTA: 3}
"""The number of coordinates that threads of one scope share."""


@dataclass(frozen=True)
class Alias:
    """A second virtual address of a variable, or its name in another proxy (PTX 8.2.2)."""

    proxy: Proxy
    of: str


@dataclass(frozen=True)
class Elements:
    """The elements of an array or of a signed variable: their number, and their size in bytes."""

    count: int
    size: int
    signed: bool = False

    def named(self, variable: str, value: int) -> dict[str, int]:
        """The elements of a value: `x`, or `x[0]`, `x[1]`, …"""
        raw = value.to_bytes(self.count * self.size, "little")
        parts = [raw[at : at + self.size] for at in range(0, len(raw), self.size)]
        numbers = [int.from_bytes(part, "little", signed=self.signed) for part in parts]
        return {variable: numbers[0]} if self.count == 1 else {f"{variable}[{n}]": number for n, number in enumerate(numbers)}
