"""The ports of the machine as the tracer sees them: each method writes a call of the cohort into the code.

In the code, `C` is the cohort, `L` the lanes that run (None where all do), `g` the guard of an instruction.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Unpack

import numpy as np

from ptxvm.algebra.asynchronous import AsyncKind, MbarrierStep, Proxy
from ptxvm.algebra.memory_order import FenceKind, Order, Scope
from ptxvm.algebra.ports import AccessAttributes, Symbol
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, b32, b64, pred, u32, u64
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound, Function as PtxFunction
from ptxvm.analysis.symbols import Label, Prototype, Table
from ptxvm.dataclass import dataclass
from ptxvm.engine import textures
from ptxvm.engine.argument_words import Argument
from ptxvm.engine.carry_flag import CarryFlag
from ptxvm.engine.interp import arrays
from ptxvm.engine.interp.accesses import Access, CopyInstruction, Transferring, Update, window_of
from ptxvm.engine.interp.trace import TraceAlgebra
from ptxvm.isa.effects import Jump
from ptxvm.isa.fragments import Product
from ptxvm.isa.tensor_memory import TensorWork
from ptxvm.isa.transfers import Transfer
from ptxvm.isa.warpgroup import WARPS, WarpgroupProduct
from ptxvm.machine import settings, texture_unit
from ptxvm.machine.tensor_core import Architecture, architecture_for


@dataclass(eq=False, slots=True)
class Multiplication:
    """A product of matrices, and the tensor cores that compute it."""

    bound: Bound
    product: Product
    architecture: Architecture


@dataclass(eq=False)
class Multiplying:
    """An asynchronous product in the code: what it computes, and the tensor cores that do it."""

    bound: Bound
    spec: WarpgroupProduct
    architecture: Architecture

    @cached_property
    def access(self) -> Access:
        """The read of a piece of a matrix in shared memory."""
        return Access(
            self.bound, Space.SHARED, b32, 4, {"asynchronous": True, "group": AsyncKind.PRODUCT, "proxy": Proxy.ASYNC}
        )


@dataclass(eq=False)
class TensorAccess:
    """Work on tensor memory in the code."""

    bound: Bound
    work: TensorWork

    @cached_property
    def read(self) -> Access:
        """The read of a piece of shared memory, whose end a commit tells."""
        return Access(self.bound, Space.SHARED, b32, 4, {"asynchronous": True, "group": AsyncKind.TENSOR, "proxy": Proxy.ASYNC})

    @cached_property
    def write(self) -> Access:
        """The write of a word to shared memory."""
        return Access(self.bound, Space.SHARED, b32)


@dataclass(slots=True)
class Action:
    """The control flow at the end of a segment: a jump, its symbol, and variables of the code."""

    jump: Jump
    symbol: Symbol = None
    raws: tuple[str, ...] = ()
    extra: Symbol = None


class Wait(enum.Enum):
    """The threads that an instruction waits for."""

    WARP = "lanes of the warp"
    COLUMNS = "lanes of the warp, then columns of tensor memory"
    CTA = "threads of the CTA"
    CLUSTER = "threads of the cluster"


@dataclass(slots=True)
class Request:
    """The request of an instruction that waits, as variables of the code."""

    wait: Wait
    raws: tuple[str | None, ...]
    types: tuple[Type, ...] = ()
    warps: int = 1  # that meet, of those which wait for lanes


class Port:
    """The base of all ports: the algebra of the code, and the instruction that is traced."""

    def __init__(self, alg: TraceAlgebra, bound: Bound, guard: str | None) -> None:
        self.alg, self.code, self.bound, self.guard = alg, alg.code, bound, guard

    def value(self, type: Type, text: str) -> Value:
        """A variable for an impure expression, which is evaluated anew each time."""
        return Value(self.alg, type, self.code.emit(text, pure=False))


class Memory(Port):
    """`mem`; `access` is the name of the last access that was traced."""

    access = ""

    def _refer(self, space: Space, type: Type, count: int, attributes: AccessAttributes) -> str:
        """The name of an access of the instruction in the code."""
        return self.code.refer(Access(self.bound, window_of(space), type, count, attributes))

    def load(
        self, space: Space, type: Type, address: Value, count: int = 1, **attributes: Unpack[AccessAttributes]
    ) -> list[Value]:
        """A gather."""
        self.access = access = self._refer(space, type, count, attributes)
        text = f"C.mem.load({access}, L, {self.guard}, {address.raw})"
        if count == 1:
            return [self.value(type, text)]
        whole = self.code.emit(text, pure=False)
        return [Value(self.alg, type, self.code.emit(f"{whole}[{n}]", pure=False)) for n in range(count)]

    def store(
        self, space: Space, type: Type, address: Value, values: Sequence[Value], **attributes: Unpack[AccessAttributes]
    ) -> None:
        """A scatter."""
        self.access = access = self._refer(space, type, len(values), attributes)
        raws = ", ".join(v.raw for v in values)
        self.code.run(f"C.mem.store({access}, L, {self.guard}, {address.raw}, ({raws},))")

    def atomic(
        self, space: Space, type: Type, address: Value, update: Callable[..., Value], operands: Sequence[Value],
        **attributes: Unpack[AccessAttributes],
    ) -> Value:  # fmt: skip
        """Read, update, write, in the order of the lanes where they conflict."""
        types = (type, *(o.type for o in operands))
        return self.value(
            type, self._updating(self._refer(space, type, 1, attributes), types, address, update, operands, attributes)
        )

    def atomic_vector(
        self, space: Space, type: Type, address: Value, update: Callable[..., Value], operands: Sequence[Value],
        **attributes: Unpack[AccessAttributes],
    ) -> list[Value]:  # fmt: skip
        """Update the elements of a vector, each in the order of the lanes where they conflict."""
        access = self._refer(space, type, len(operands), attributes)
        whole = self.code.emit(self._updating(access, (type, type), address, update, operands, attributes), pure=False)
        return [Value(self.alg, type, self.code.emit(f"{whole}[{n}]", pure=False)) for n in range(len(operands))]

    def _updating(
        self, access: str, types: tuple[Type, ...], address: Value, update: Callable[..., Value], operands: Sequence[Value],
        attributes: AccessAttributes,
    ) -> str:  # fmt: skip
        """The text of an atomic, whose update takes values of some types."""
        self.access = access
        how = self.code.refer(Update(update, types, attributes.get("operation") or ""))
        raws = "".join(f"{o.raw}, " for o in operands)
        return f"C.mem.atomic({access}, L, {self.guard}, {address.raw}, {how}, ({raws}))"

    def replicas(self, address: Value) -> Iterator[tuple[Value, Value]]:
        """The accesses to each have the lanes that have such a memory as their guard."""
        outer = self.guard
        for number in range(settings.devices() - 1):
            distance = self.value(u64, f"C.mem.distances({number}, L, {address.raw})")
            there = distance.compare("ne", distance.lift(0))
            self.guard = there.raw if outer is None else self.code.emit(f"{outer} & {there.raw}")
            yield there, address + distance
            self.guard = outer

    def fence(self, order: FenceKind, scope: Scope, address: Value | None = None) -> None:
        """A fence; the accesses of one lane are in order without it, but watchers record it."""
        bound, asked, among = (self.code.refer(each) for each in (self.bound, order, scope))
        where = address.raw if address is not None else None
        self.code.run(f"C.fence({bound}, L, {self.guard}, {asked}, {among}, {where})")

    def phase_over(
        self, space: Space, address: Value, over: Value, *, state: Value | None = None, **attributes: Unpack[AccessAttributes]
    ) -> None:
        """The end of an mbarrier phase has been tested; only watchers record it."""
        access = self._refer(space, b64, 1, attributes)
        if state is not None:
            self.code.run(f"C.state_asked({access}, L, {self.guard}, {address.raw}, {state.raw})")
        self.code.run(f"C.phase_over({access}, L, {self.guard}, {address.raw}, {over.raw})")

    def prefetch(self, space: Space, address: Value, **attributes: Unpack[AccessAttributes]) -> None:
        """No effect."""

    def to_generic(self, space: Space, address: Value) -> Value:
        """Add the base of the window."""
        return self.value(u64, f"C.mem.to_generic({self.code.refer(space)}, L, {address.raw})")

    def from_generic(self, space: Space, address: Value) -> Value:
        """Subtract the base of the window."""
        return self.value(u64, f"C.mem.from_generic({self.code.refer(space)}, L, {address.raw})")

    def within(self, space: Space, address: Value) -> Value:
        """Is the address in the state space?"""
        return self.value(pred, f"C.mem.within({self.code.refer(space)}, L, {address.raw})")

    def mapped(self, space: Space, address: Value, rank: Value) -> Value:
        """The corresponding address in another CTA of the cluster."""
        return self.value(u64, f"C.mem.mapped({self.code.refer(space)}, L, {address.raw}, {rank.raw})")

    def rank(self, space: Space, address: Value) -> Value:
        """The rank of the CTA in which an address lies."""
        return self.value(u64, f"C.mem.rank({self.code.refer(space)}, L, {address.raw})")

    def allocate_stack(self, size: Value, alignment: Value | int) -> Value:
        """Grow the frame."""
        bound = self.code.refer(self.bound)
        step = alignment.raw if isinstance(alignment, Value) else alignment
        return self.value(u64, f"C.allocate_stack({bound}, L, {self.guard}, {size.raw}, {step})")

    def stack_pointer(self, restore: Value | None = None) -> Value:
        """Read or set the end of the frame."""
        if restore is None:
            return self.value(u64, "C.stack_pointer(L)")
        return self.value(u64, f"C.restore_stack(L, {self.guard}, {restore.raw})")


class Peers(Port):
    """The lanes of the collective that was just released."""

    def __init__(self, alg: TraceAlgebra, bound: Bound, guard: str | None, types: tuple[Type, ...]) -> None:
        super().__init__(alg, bound, guard)
        self.types = types

    def at(self, lane: Value, payload: int = 0, *, meant: bool = False) -> Value:
        """The value that another lane gave."""
        type = self.types[payload]
        if meant:
            self.code.run(f"C.lanes_meant({self.code.refer(self.bound)}, L, {self.guard}, {lane.raw})")
        dtype = self.code.refer(arrays.dtype(type))
        return self.value(type, f"C.peer(L, {payload}, {dtype}, {lane.raw})")

    def ballot(self, payload: int = 0) -> Value:
        """A mask of the lanes whose predicate is true."""
        dtype = self.code.refer(arrays.dtype(pred))
        return self.value(u32, f"C.ballot(L, {payload}, {dtype})")

    def multiply(
        self, product: Product, a: Sequence[Value], b: Sequence[Value], c: Sequence[Value], *further: Sequence[Value]
    ) -> list[Value]:
        """A product of matrices, by the tensor cores of the module's target."""
        work = self.code.refer(Multiplication(self.bound, product, architecture_for(self.bound)))
        fragments = ", ".join("(" + "".join(f"{v.raw}, " for v in part) + ")" for part in (a, b, c, *further))
        whole = self.code.emit(f"C.multiply({work}, L, {fragments})", pure=False)
        type = b64 if product.d.register == b64.bits else b32
        return [self.value(type, f"{whole}[{n}]") for n in range(product.d.registers)]

    @property
    def members(self) -> Value:
        """The lanes that take part."""
        return self.value(u32, "C.members_of(L)")


class Warp(Port):
    """`warp`."""

    @property
    def lane(self) -> Value:
        """The number of the lane."""
        return Value(self.alg, u32, self.code.emit("C.special('laneid', L)"))

    def active(self) -> Value:
        """A mask of the lanes that execute the instruction."""
        return self.value(u32, f"C.active(L, {self.guard})")

    def converge(self, members: Value, *payload: Value) -> Request:
        """Wait for the other lanes."""
        return Request(Wait.WARP, (members.raw, *(p.raw for p in payload)), tuple(p.type for p in payload))

    def converge_warpgroup(self, members: Value) -> Request:
        """Wait for the other lanes of the warpgroup."""
        return replace(self.converge(members), warps=WARPS)

    def together(self, *payload: Value) -> Peers:
        """The lanes that execute the instruction together."""
        raws = ", ".join(p.raw for p in payload)
        self.code.run(f"C.gather_active(L, {self.guard}, ({raws},))")
        return Peers(self.alg, self.bound, self.guard, tuple(p.type for p in payload))


class Votes(Port):
    """The outcome of a barrier."""

    def count(self) -> Value:
        """How many votes are true."""
        return self.value(u32, "C.votes(L)[0]")

    def all(self) -> Value:
        """Are all votes true?"""
        return self.value(pred, "C.votes(L)[1]")

    def any(self) -> Value:
        """Is any vote true?"""
        return self.value(pred, "C.votes(L)[2]")


class Cta(Port):
    """`cta`."""

    def barrier(self, number: Value, threads: Value | None = None, vote: Value | None = None) -> Request:
        """Wait for the other threads of the CTA."""
        raws = (number.raw, threads.raw if threads else None, vote.raw if vote else None)
        return Request(Wait.CTA, raws)

    def arrive(self, number: Value, threads: Value) -> None:
        """Arrive at a barrier without waiting."""
        bound = self.code.refer(self.bound)
        self.code.run(f"C.arrive({bound}, L, {self.guard}, {number.raw}, {threads.raw})")


class Cluster(Port):
    """`cluster`."""

    @property
    def size(self) -> Value:
        """The number of its CTAs."""
        return Value(
            self.alg, u32, self.code.emit(f"C.special('cluster_nctarank', L).astype({self.code.refer(np.dtype(np.uint32))})")
        )

    def arrive_at_cluster(self, order: Order) -> None:
        """Arrive at the barrier of the cluster."""
        bound = self.code.refer(self.bound)
        self.code.run(f"C.arrive_at_cluster({bound}, L, {self.guard}, {order is Order.RELEASE})")

    def await_cluster(self) -> Request:
        """Wait for the other threads of the cluster."""
        return Request(Wait.CLUSTER, ())


class Flow(Port):
    """`flow`: records the action for the end of the segment."""

    action: Action | None = None

    def goto(self, target: Label) -> None:
        """Go to a label."""
        self.action = Action(Jump.GOTO, target)

    def switch(self, index: Value, table: Table) -> None:
        """Go to one of several labels."""
        self.action = Action(Jump.SWITCH, table, (index.raw,))

    def call(
        self,
        function: PtxFunction | Value,
        arguments: list[Argument] | None = None,
        results: list[Argument] | None = None,
        prototype: Prototype | None = None,
    ) -> None:
        """Call a function, by symbol or by address."""
        raws = (function.raw,) if isinstance(function, Value) else ()
        self.action = Action(Jump.CALL, None if raws else function, raws, (arguments, results, prototype))

    def leave(self) -> None:
        """Return from the function."""
        self.action = Action(Jump.LEAVE)

    def exit(self) -> None:
        """End the thread."""
        self.action = Action(Jump.EXIT)

    def trap(self) -> None:
        """Raise a fault."""
        self.action = Action(Jump.TRAP)

    def breakpoint(self) -> None:
        """No effect: no debugger is attached."""
        self.action = Action(Jump.BREAKPOINT)

    def event(self, number: Value | None = None, mask: Value | None = None) -> None:
        """No effect: there are no performance counters."""
        self.action = Action(Jump.EVENT)


class Tasks(Port):
    """`tasks`: asynchronous copies and products; `updated` are the slots of the registers that the instruction updates."""

    updated: Sequence[int] = ()

    def multiply(
        self, product: WarpgroupProduct, d: Sequence[Value], a: Sequence[Value], b: Value, enabled: Value,
        further: Sequence[Sequence[Value]] = (),
    ) -> list[Value]:  # fmt: skip
        """Start a product, which writes the registers of D in the file when it ends."""
        work = self.code.refer(Multiplying(self.bound, product, architecture_for(self.bound)))
        parts = "".join(f"{v.raw}, " for v in a)
        words = "".join("(" + "".join(f"{v.raw}, " for v in part) + "), " for part in further)
        at = f"{tuple(self.updated)}, ({parts}), {b.raw}, {enabled.raw}, ({words})"
        self.code.run(f"C.copies.start_product({work}, L, R, {at})")
        return list(d)

    def copy(self, target: Value, source: Value, size: Value, source_size: Value | None) -> None:
        """Start a copy."""
        copying = self.code.refer(CopyInstruction(self.bound, int(self.code.names[size.raw])))
        there = source_size.raw if source_size is not None else None
        self.code.run(f"C.copies.start({copying}, L, {self.guard}, {target.raw}, {source.raw}, {there})")

    def transfer(
        self, kind: Transfer, completed: Callable[..., Value], **operands: Sequence[Value | None] | Value | None
    ) -> None:
        """Start a transfer."""
        copying = self.code.refer(Transferring(self.bound, kind, Update(completed, (b64, u64), "")))
        named = ", ".join(
            f"{name!r}: ({''.join(f'{each.raw}, ' for each in values_of(value))})" for name, value in operands.items()
        )
        self.code.run(f"C.copies.transfer({copying}, L, {self.guard}, {{{named}}})")

    def fence_registers(self, kind: AsyncKind) -> None:
        """Order accesses before those of the next work; only watchers record it."""
        self.code.run(f"C.work_fenced(L, {self.guard}, {self.code.refer(kind)})")

    def commit(self, kind: AsyncKind = AsyncKind.COPY) -> None:
        """Commit a group of copies."""
        self.code.run(f"C.copies.commit(L, {self.guard}, {self.code.refer(kind)})")

    def wait(self, groups: Value | None, kind: AsyncKind = AsyncKind.COPY, *, reading: bool = False) -> None:
        """Wait until at most so many groups are left."""
        left = int(self.code.names[groups.raw]) if groups is not None else 0
        self.code.run(f"C.copies.wait(L, {self.guard}, {left}, {self.code.refer(kind)}, {reading})")

    def arrive(
        self, space: Space, address: Value, update: Callable[[Value], Value], before: Callable[[Value], Value] | None,
        mask: Value | None = None, kind: AsyncKind = AsyncKind.COPY,
    ) -> None:  # fmt: skip
        """Update an mbarrier at once, and again when the work ends."""
        if before is not None:
            Memory(self.alg, self.bound, self.guard).atomic(
                space, b64, address, before, [], order=Order.RELAXED, scope=Scope.CTA, mbarrier=MbarrierStep.POSTPONE
            )
        attributes = AccessAttributes(
            order=Order.RELEASE, scope=Scope.CTA, mbarrier=MbarrierStep.ARRIVE, asynchronous=True, group=kind
        )
        window = space.window if mask is None else space
        access = self.code.refer(Access(self.bound, window, b64, 1, attributes))
        how = self.code.refer(Update(update, (b64,), ""))
        ctas = None if mask is None else mask.raw
        self.code.run(f"C.copies.arrive({access}, L, {self.guard}, {address.raw}, {how}, {ctas})")


def values_of(operand: Sequence[Value | None] | Value | None) -> list[Value]:
    """The values of an operand: of a vector its elements, of one that is left out none."""
    several = [operand] if isinstance(operand, Value) or operand is None else operand
    return [each for each in several if each is not None]


class TensorMemory(Port):
    """`tmem`; `written` are the slots of the registers that the instruction writes."""

    written: Sequence[int] = ()

    def converge_for_columns(self, members: Value, columns: Value) -> Request:
        """Wait for the other lanes, then for columns."""
        return Request(Wait.COLUMNS, (members.raw, columns.raw), (columns.type,))

    def tensor(self, work: TensorWork, **operands: Value) -> list[Value]:
        """Do or start work."""
        named = ", ".join(f"{name!r}: {value.raw}" for name, value in operands.items())
        how = self.code.refer(TensorAccess(self.bound, work))
        if not work.results:
            self.code.run(f"C.tensor.perform({how}, L, {self.guard}, {{{named}}})")
            return []
        whole = self.code.emit(f"C.tensor.load({how}, L, R, {tuple(self.written)}, {{{named}}})", pure=False)
        return [self.value(type, f"{whole}[{n}]") for n, type in enumerate(work.results)]


class Clock(Port):
    """`clock`."""

    def sleep(self, nanoseconds: Value) -> None:
        """Give way at the end of the segment, so that other cohorts run."""
        self.code.run("C.yield_slice()")


@dataclass(eq=False, slots=True)
class TextureAccess:
    """An instruction's access to the texture unit, and the dtypes of its results."""

    bound: Bound
    work: texture_unit.Work
    dtypes: tuple[np.dtype[np.generic], ...] = ()


class Textures(Port, textures.Textures):
    """`tex`."""

    def ask(self, work: texture_unit.Work, types: Sequence[Type], **operands: Sequence[Value] | None) -> list[Value]:
        """The results of the texture unit for some operands."""
        access = self.code.refer(TextureAccess(self.bound, work, tuple(arrays.dtype(t) for t in types)))
        named = ", ".join(
            f"{name!r}: ({''.join(f'{value.raw}, ' for value in values)})"
            for name, values in operands.items()
            if values is not None
        )
        text = f"C.texture({access}, L, {self.guard}, {{{named}}})"
        if not types:
            self.code.run(text)
            return []
        whole = self.code.emit(text, pure=False)
        return [self.value(type, f"{whole}[{n}]") for n, type in enumerate(types)]


class ConditionCode(CarryFlag, Port):
    """`cc`: a register of the cohort's frame."""
