"""Instrumented tracing: beside its values the code follows unset bytes and the provenance of addresses.

The shadows of registers lie in planes of the register file behind the values: of `n` slots, slot `s` has its tag in `s + n`
and its unset bytes in `s + 2 * n`.  In the code, `C.shadow` is the shadow state of the cohort.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Unpack

import numpy as np

from ptxvm.algebra.ports import AccessAttributes
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, pred
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound
from ptxvm.analysis.provenance import SPACES
from ptxvm.analysis.symbols import Register, Variable
from ptxvm.analysis.unset import passes_memory, use
from ptxvm.dataclass import dataclass
from ptxvm.engine.interp import ports
from ptxvm.engine.interp.segment import Slots, Tracer
from ptxvm.engine.interp.shadow_algebra import SET, ShadowAlgebra, whole
from ptxvm.isa.transfers import Pattern, Transfer
from ptxvm.isa.warpgroup import WarpgroupProduct
from ptxvm.machine.per_lane import PerLane

TAGS, UNSET = 1, 2  # planes


@dataclass(frozen=True, slots=True)
class TrackedValues:
    """The values that are followed in a function: registers that may be unset, and registers that may hold addresses.

    Accesses in `several` are checked against the object that their address comes from.  `memory` and `parameters` say that
    addresses may be stored there; `locals` says that bytes of the stack may be read before they are written.
    """

    unset: frozenset[Register] = frozenset()
    tagged: frozenset[Register] = frozenset()
    several: frozenset[Bound] = frozenset()
    memory: bool = False
    parameters: bool = False
    locals: bool = False

    @property
    def nothing(self) -> bool:
        """Is nothing followed?"""
        return not (self.unset or self.tagged or self.several or self.memory or self.parameters or self.locals)

    def tags_in(self, space: Space) -> bool:
        """May an address lie in a state space?"""
        return self.parameters if space is Space.PARAM else self.memory


class Planes:
    """The planes of a register file: the slots of the shadows."""

    def __init__(self, slots: Slots, following: TrackedValues) -> None:
        self.following, self.size = following, len(slots.types)
        self.register = dict(slots.slots(following.unset | following.tagged))

    def of(self, slot: int) -> Iterator[int]:
        """The planes of the register in a slot."""
        register = self.register.get(slot)
        if register in self.following.tagged:
            yield TAGS
        if register in self.following.unset:
            yield UNSET

    def shadow_slot(self, slot: int, plane: int) -> int:
        """The slot of a register's shadow in a plane."""
        return slot + plane * self.size

    def unset(self) -> Iterator[tuple[int, np.uint32]]:
        """The slots of the masks of registers that may be unset, with the masks for wholly unset values."""
        for slot, register in self.register.items():
            if register in self.following.unset:
                yield self.shadow_slot(slot, UNSET), np.uint32(whole(register.type))

    def zeros(self) -> list[PerLane]:
        """The planes of a fresh file."""
        return [np.int64(0)] * self.size + [SET] * self.size


@dataclass(frozen=True, slots=True)
class RegisterRead:
    """A read of a register by an instruction; `partly` says that some of the bytes may be enough."""

    bound: Bound
    register: Register
    partly: bool = False

    @property
    def all_bytes(self) -> int:
        """The mask of all bytes of the register."""
        return whole(self.register.type)


@dataclass(slots=True)
class TrackedTracer(Tracer):
    """Traces instructions together with the shadows of their values."""

    planes: Planes = field(kw_only=True)
    bound: Bound | None = None
    waited: bool = False
    partly: list[str] = field(default_factory=list)  # registers of the instruction that may be partly unset
    alg: ShadowAlgebra = field(init=False)

    def __post_init__(self) -> None:
        self.alg = ShadowAlgebra(self.code, self.consumed)

    @property
    def following(self) -> TrackedValues:
        """The values that are followed."""
        return self.planes.following

    # ── instructions ────────────────────────────────────────────────────────────────────

    def instruction(self, bound: Bound, stage: str = "run") -> None:
        """Trace one instruction, and report the unset registers that it reads."""
        self.bound = bound
        self.waited = stage == "run" and "waits" in bound.i.of.effects
        self.partly = []
        before = dict(self.alg.unset)
        Tracer.instruction(self, bound, stage)
        self.alg.unset = before | {raw: mask for raw, mask in self.alg.unset.items() if raw not in before}

    def guard_of(self, bound: Bound) -> str | None:
        """The guard; unset registers are reported before the instruction has any effect."""
        used = use(bound)
        for register in used.guards:
            self.read(RegisterRead(bound, register), None)
        guard = Tracer.guard_of(self, bound)
        partly = bound.i.of.effects <= {"mem"}
        for register in used.reads:
            self.read(RegisterRead(bound, register, partly), guard)
        return guard

    def read(self, read: RegisterRead, guard: str | None) -> None:
        """Report an unset register; the algebra follows the bytes of its mask that are left."""
        if read.register not in self.following.unset:
            return
        raw = self.slot(self.slots.of(read.register), read.register.type).raw
        mask = self.alg.unset.pop(raw, None)
        if mask is None or self.waited:
            return
        left = self.code.emit(f"C.shadow.unset({self.code.refer(read)}, L, {guard}, {mask})", pure=False)
        if read.partly:
            self.alg.unset[raw] = left
            self.partly.append(read.register.name)

    def consumed(self, raw: str) -> None:
        """Report the use of a value with unset bytes."""
        mask = self.alg.unset.get(raw)
        if mask is not None and self.bound is not None and not self.waited:
            name = self.partly[0] if len(self.partly) == 1 else ""
            self.code.run(f"C.shadow.consumed({self.code.refer(self.bound)}, {name!r}, L, {self.guard}, {mask})")
            self.alg.unset.pop(raw)

    def port(self, name: str, bound: Bound) -> ports.Port:
        """The ports, in versions that follow values."""
        made = TRACKED.get(name)
        return made(self, bound) if made is not None else Tracer.port(self, name, bound)

    def peers(self, bound: Bound, types: tuple[Type, ...]) -> ports.Peers:
        """The lanes that have met, with the shadows of what they gave."""
        return TrackedPeers(self, bound, None, types)

    # ── registers ───────────────────────────────────────────────────────────────────────

    def slot(self, slot: int, type: Type) -> Value:
        """The value in a slot of the file, with its shadows."""
        known = slot in self.current
        value = Tracer.slot(self, slot, type)
        for plane in () if known else self.planes.of(slot):
            name = f"R[{self.planes.shadow_slot(slot, plane)}]"
            shadow = self.code.emit(name if self.whole else f"C.shadow.taken({name}, L)")
            (self.alg.tags if plane == TAGS else self.alg.unset)[value.raw] = shadow
        return value

    def stores(self, live: int | None) -> Iterator[str]:
        """The writes of the registers that are live after the segment, and of their shadows."""
        yield from Tracer.stores(self, live)
        for slot in sorted(self.written):
            if live is not None and slot > 0 and not self.is_live(slot, live):
                continue
            raw = self.current[slot].raw
            for plane in self.planes.of(slot):
                name, index = (self.alg.tag if plane == TAGS else self.alg.mask)(raw), self.planes.shadow_slot(slot, plane)
                yield f"R[{index}] = {name}.copy()" if self.whole else f"put(R, {index}, L, {name}, C.size)"

    def variable_address(self, variable: Variable, offset: int = 0) -> Value:
        """The address of a variable, tagged with the variable as its object."""
        value = Tracer.variable_address(self, variable, offset)
        if not self.following.tagged or variable.space not in SPACES or not variable.size:
            return value
        named = self.code.emit(f"{self.code.refer(same)}({value.raw}, {self.code.refer(variable)})")  # no constant now
        tag = self.code.emit(f"C.shadow.tag_of({self.code.refer(variable)}, {self.code.refer(self.function)}, L)", pure=False)
        self.alg.tags[named] = tag
        return Value(self.alg, value.type, named)


def same(value: PerLane, variable: Variable) -> PerLane:  # noqa: ARG001 - it tells apart variables that begin at one offset
    """An address, as that of a variable."""
    return value


# ── ports ───────────────────────────────────────────────────────────────────────────────


class TrackedMemory(ports.Memory):
    """`mem`, with the shadows of the values that it moves."""

    alg: ShadowAlgebra

    def __init__(self, tracer: TrackedTracer, bound: Bound) -> None:
        super().__init__(tracer.alg, bound, tracer.guard)
        self.following, self.tracer = tracer.following, tracer

    def hold(self, address: Value, *, writing: bool) -> None:
        """Check the access against the object that its address comes from."""
        self.alg.use(address.raw)
        if self.bound in self.following.several and address.raw in self.alg.tags:
            self.code.run(f"C.shadow.hold({self.code.refer(self.bound)}, L, {writing}, {self.alg.tags[address.raw]})")

    def load(
        self, space: Space, type: Type, address: Value, count: int = 1, **attributes: Unpack[AccessAttributes]
    ) -> list[Value]:
        """A gather, with tags and unset bytes."""
        self.hold(address, writing=False)
        values = super().load(space, type, address, count, **attributes)
        where = f"{self.access}, L, {self.guard}, {address.raw}"
        if self.following.tags_in(space):
            self._shadows(self.alg.tags, values, f"C.shadow.loaded_tags({where})")
        if self.following.locals and passes_memory(self.bound):
            self._shadows(self.alg.unset, values, f"C.shadow.lacking({where})")
        return values

    def _shadows(self, shadows: dict[str, str], values: Sequence[Value], text: str) -> None:
        whole = self.code.emit(text, pure=False)
        for n, value in enumerate(values):
            shadows[value.raw] = self.code.emit(f"{whole}[{n}]", pure=False)

    def store(
        self, space: Space, type: Type, address: Value, values: Sequence[Value], **attributes: Unpack[AccessAttributes]
    ) -> None:
        """A scatter, with tags and unset bytes."""
        self.hold(address, writing=True)
        super().store(space, type, address, values, **attributes)
        where = f"{self.access}, L, {self.guard}, {address.raw}"
        if self.following.tags_in(space):
            self.code.run(f"C.shadow.store_tags({where}, ({''.join(f'{self.alg.tag(v.raw)}, ' for v in values)}))")
        if any(value.raw in self.alg.unset for value in values):
            name = self.tracer.partly[0] if len(self.tracer.partly) == 1 else ""
            masks = "".join(f"{self.alg.mask(v.raw)}, " for v in values)
            self.code.run(f"C.shadow.store_unset({where}, {name!r}, ({masks}))")

    def atomic(
        self, space: Space, type: Type, address: Value, update: Callable[..., Value], operands: Sequence[Value],
        **attributes: Unpack[AccessAttributes],
    ) -> Value:  # fmt: skip
        """Read, update, write, with the tags before and after."""
        self.hold(address, writing=True)
        for each in operands:
            self.alg.use(each.raw)
        value = super().atomic(space, type, address, update, operands, **attributes)
        self._update_tags(self.access, address, attributes.get("operation"), value, operands)
        return value

    def atomic_vector(
        self, space: Space, type: Type, address: Value, update: Callable[..., Value], operands: Sequence[Value],
        **attributes: Unpack[AccessAttributes],
    ) -> list[Value]:  # fmt: skip
        """Update the elements of a vector, with the tags before and after."""
        self.hold(address, writing=True)
        for each in operands:
            self.alg.use(each.raw)
        values = super().atomic_vector(space, type, address, update, operands, **attributes)
        element = self._refer(space, type, 1, attributes)
        for n, (value, each) in enumerate(zip(values, operands, strict=True)):
            self._update_tags(element, address + n * type.bytes, attributes.get("operation"), value, [each])
        return values

    def _update_tags(
        self, access: str, address: Value, operation: str | None, old: Value, operands: Sequence[Value]
    ) -> None:  # fmt: skip
        """Read the tags of what an atomic has replaced, and store those of its outcome."""
        if self.following.memory:
            tags = "".join(f"{self.alg.tag(each.raw)}, " for each in operands)
            raws = "".join(f"{each.raw}, " for each in operands)
            where = f"{access}, L, {self.guard}, {address.raw}"
            text = f"C.shadow.update_tags({where}, {operation or ''!r}, {old.raw}, ({raws}), ({tags}))"
            self.alg.tags[old.raw] = self.code.emit(text, pure=False)

    def to_generic(self, space: Space, address: Value) -> Value:
        """A generic address of the same object."""
        return self._same(address, super().to_generic(space, address))

    def from_generic(self, space: Space, address: Value) -> Value:
        """A window address of the same object."""
        return self._same(address, super().from_generic(space, address))

    def _same(self, address: Value, made: Value) -> Value:
        self.alg.use(address.raw)
        if address.raw in self.alg.tags:
            self.alg.tags[made.raw] = self.alg.tags[address.raw]
        return made

    def allocate_stack(self, size: Value, alignment: Value | int) -> Value:
        """A block of `alloca`, which is a new object."""
        self.alg.use(size.raw)
        made = super().allocate_stack(size, alignment)
        if self.following.tagged:
            self.alg.tags[made.raw] = self.code.emit("C.shadow.new_block", pure=False)
        return made


class TrackedTasks(ports.Tasks):
    """`tasks`: copies, whose addresses are checked against their objects."""

    alg: ShadowAlgebra

    def __init__(self, tracer: TrackedTracer, bound: Bound) -> None:
        super().__init__(tracer.alg, bound, tracer.guard)
        self._memory = TrackedMemory(tracer, bound)

    def copy(self, target: Value, source: Value, size: Value, source_size: Value | None) -> None:
        """Start a copy."""
        self._hold(target, source)
        super().copy(target, source, size, source_size)

    def transfer(
        self, kind: Transfer, completed: Callable[..., Value], **operands: Sequence[Value | None] | Value | None
    ) -> None:
        """Start a transfer."""
        for name, writing in (("a", kind.to is not Space.GLOBAL or kind.pattern is not Pattern.TENSOR), ("b", False)):
            address = operands.get(name)
            if isinstance(address, Value):
                self._memory.hold(address, writing=writing)
        super().transfer(kind, completed, **operands)

    def multiply(
        self, product: WarpgroupProduct, d: Sequence[Value], a: Sequence[Value], b: Value, enabled: Value,
        further: Sequence[Sequence[Value]] = (),
    ) -> list[Value]:  # fmt: skip
        """Start a product, which reads D where it is enabled, and writes all of it."""
        for register, value in zip(use(self.bound).updates, d, strict=True):
            if (mask := self.alg.unset.pop(value.raw, None)) is not None:
                read = self.code.refer(RegisterRead(self.bound, register))
                self.code.run(f"C.shadow.unset({read}, L, {enabled.raw}, {mask})")
        return super().multiply(product, d, a, b, enabled, further)

    def _hold(self, target: Value, source: Value) -> None:
        self._memory.hold(target, writing=True)
        self._memory.hold(source, writing=False)


class TrackedWarp(ports.Warp):
    """`warp`: lanes exchange values together with their shadows."""

    alg: ShadowAlgebra

    def __init__(self, tracer: TrackedTracer, bound: Bound) -> None:
        super().__init__(tracer.alg, bound, tracer.guard)
        self.tracer = tracer

    def converge(self, members: Value, *payload: Value) -> ports.Request:
        """Wait for the other lanes."""
        self._give(payload)
        return super().converge(members, *payload)

    def together(self, *payload: Value) -> ports.Peers:
        """The lanes that execute the instruction together."""
        self._give(payload)
        made = super().together(*payload)
        return TrackedPeers(self.tracer, self.bound, self.guard, made.types)

    def _give(self, payload: Sequence[Value]) -> None:
        for plane in exchanged(self.tracer, self.bound):
            shadow = self.alg.tag if plane == TAGS else self.alg.mask
            self.code.run(f"C.shadow.give(L, {plane}, ({''.join(f'{shadow(each.raw)}, ' for each in payload)}))")


class TrackedPeers(ports.Peers):
    """The values of the lanes that have met, with their shadows."""

    alg: ShadowAlgebra

    def __init__(self, tracer: TrackedTracer, bound: Bound, guard: str | None, types: tuple[Type, ...]) -> None:
        super().__init__(tracer.alg, bound, guard, types)
        self.tracer = tracer

    def at(self, lane: Value, payload: int = 0, *, meant: bool = False) -> Value:
        """The value that another lane gave."""
        made = super().at(lane, payload, meant=meant)
        for plane in exchanged(self.tracer, self.bound) if self.types[payload] is not pred else ():
            shadow = self.code.emit(f"C.shadow.peer(L, {plane}, {payload}, {lane.raw})", pure=False)
            (self.alg.tags if plane == TAGS else self.alg.unset)[made.raw] = shadow
        return made


def exchanged(tracer: TrackedTracer, bound: Bound) -> Iterator[int]:
    """The planes of the shadows that lanes exchange at a collective: masks of unset bytes only of values that it passes on."""
    if tracer.following.tagged:
        yield TAGS
    if tracer.following.unset and bound.i.of.passed:
        yield UNSET


TRACKED: dict[str, Callable[[TrackedTracer, Bound], ports.Port]] = {
    "mem": TrackedMemory,
    "tasks": TrackedTasks,
    "warp": TrackedWarp,
}

__all__ = ["Planes", "TrackedTracer", "TrackedValues"]
