"""Instrumented tracing: beside its values the code follows undefined bits and the provenance of addresses.

The shadows of registers lie in planes of the register file (`planes`).  In the code, `C.shadow` is the shadow state of the
cohort.  An instruction that only computes hands undefined bits on, as do loads, stores, `shfl` and products of the matrices
of a warp; any other one observes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Unpack

import numpy as np

from ptxvm.algebra.ports import AccessAttributes
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, pred
from ptxvm.algebra.value import Value
from ptxvm.analysis.flow import address_registers
from ptxvm.analysis.program import Bound
from ptxvm.analysis.provenance import SPACES
from ptxvm.analysis.symbols import Register, Variable
from ptxvm.analysis.unset import observes, passes_memory, use
from ptxvm.dataclass import dataclass
from ptxvm.engine.interp import ports
from ptxvm.engine.interp.planes import ORIGIN, TAGS, UNSET, Planes, TrackedValues
from ptxvm.engine.interp.segment import Tracer
from ptxvm.engine.interp.shadow_algebra import ShadowAlgebra
from ptxvm.isa.fragments import Product
from ptxvm.isa.transfers import Pattern, Transfer
from ptxvm.isa.warpgroup import WarpgroupProduct
from ptxvm.machine.per_lane import PerLane


@dataclass(slots=True)
class TrackedTracer(Tracer):
    """Traces instructions together with the shadows of their values."""

    planes: Planes = field(kw_only=True)
    waited: bool = False
    read_names: dict[str, str] = field(default_factory=dict)  # the registers that an instruction reads, by their variables
    address_name: str = ""  # the register of its address
    skipped: Bound | None = None  # the instruction, where it has a guard
    alg: ShadowAlgebra = field(init=False)

    def __post_init__(self) -> None:
        self.alg = ShadowAlgebra(self.code)

    @property
    def following(self) -> TrackedValues:
        """The values that are followed."""
        return self.planes.following

    # ── instructions ────────────────────────────────────────────────────────────────────

    def instruction(self, bound: Bound, stage: str = "run") -> None:
        """Trace one instruction, and report the undefined values that it observes."""
        self.waited = stage == "run" and "waits" in bound.i.of.effects
        self.read_names, self.address_name = {}, ""
        before = dict(self.alg.unset)
        self.skipped = bound if bound.node.guard is not None else None
        Tracer.instruction(self, bound, stage)
        self.alg.unset = before | {raw: unset for raw, unset in self.alg.unset.items() if raw not in before}

    def guard_of(self, bound: Bound) -> str | None:
        """The guard; what an instruction observes of its operands is reported before it has any effect.

        An instruction on memory observes its address, and the port `mem` reports it.
        """
        used, observed = use(bound), observes(bound)
        if observed:
            self.report(bound, used.guards, None)
        guard = Tracer.guard_of(self, bound)
        if not observed:
            return guard
        if bound.i.of.effects <= {"mem", "cc"}:
            addresses = frozenset(address_registers(bound))
            for register in used.reads:
                if register in self.following.unset and register not in addresses:
                    self.read_names[self.register_value(register).raw] = register.name
            followed = [each.name for each in addresses if each in self.following.unset]
            self.address_name = followed[0] if len(followed) == 1 else ""
        else:
            self.report(bound, used.reads, guard)
        return guard

    def register_value(self, register: Register) -> Value:
        """The value of a register."""
        return self.slot(self.slots.of(register), register.type)

    def report(self, bound: Bound, registers: Iterable[Register], guard: str | None) -> None:
        """Report registers that are observed; they count as defined from then on."""
        for register in registers:
            if register in self.following.unset:
                self.observe(bound, self.register_value(register), register.name, guard)

    def observe(self, bound: Bound, value: Value, name: str, guard: str | None) -> None:
        """Report a value where it is undefined; it counts as defined for the rest of the instruction."""
        if value.raw not in self.alg.unset:
            return
        if not self.waited:
            self.tell(bound, value, name, guard)
        del self.alg.unset[value.raw]

    def tell(self, bound: Bound, value: Value, name: str, guard: str | None) -> None:
        """Write the report of a value that may be undefined."""
        mask, origin = self.alg.mask(value.type, value.raw), self.alg.origin(value.raw)
        self.code.run(f"C.shadow.observed({self.code.refer(bound)}, {name!r}, L, {guard}, {mask}, {origin})")

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
            shadow = self.shadow(slot, plane)
            if plane == TAGS:
                self.alg.tags[value.raw] = shadow
            else:
                self.alg.undefine(value.raw, shadow, self.shadow(slot, ORIGIN))
        return value

    def shadow(self, slot: int, plane: int) -> str:
        """The shadow of a slot in the file."""
        name = f"R[{self.planes.shadow_slot(slot, plane)}]"
        return self.code.emit(name if self.whole else f"C.shadow.taken({name}, L)")

    def assign(self, slot: int, type: Type, value: Value) -> None:
        """Give a slot a new value, where the guard holds; elsewhere a register that is still unset has its origin here."""
        before = self.slot(slot, type).raw if self.skipped is not None and self.planes.may_be_undefined(slot) else ""
        Tracer.assign(self, slot, type, value)
        raw = self.current[slot].raw
        if before in self.alg.unset and raw in self.alg.unset and slot in self.planes.register:
            register = self.planes.register[slot]
            origins = self.planes.origins
            unwritten = self.code.refer(origins.unwritten(register, self.function))
            skipped = self.code.refer(origins.skipped(register, self.skipped))
            named = f"{self.code.refer(kept_out)}({self.guard}, {self.alg.origin(raw)}, {unwritten}, {skipped})"
            self.alg.undefine(raw, self.alg.mask(type, raw), self.code.emit(named))

    def stores(self, live: int | None) -> Iterator[str]:
        """The writes of the registers that are live after the segment, and of their shadows."""
        yield from Tracer.stores(self, live)
        for slot in sorted(self.written):
            if live is not None and slot > 0 and not self.is_live(slot, live):
                continue
            value = self.current[slot]
            for plane in self.planes.of(slot):
                if plane == TAGS:
                    yield self.shadow_store(slot, TAGS, self.alg.tag(value.raw))
                else:
                    yield self.shadow_store(slot, UNSET, self.alg.mask(self.planes.types[slot], value.raw))
                    yield self.shadow_store(slot, ORIGIN, self.alg.origin(value.raw))

    def shadow_store(self, slot: int, plane: int, name: str) -> str:
        """The write of a shadow."""
        index = self.planes.shadow_slot(slot, plane)
        return f"R[{index}] = {name}.copy()" if self.whole else f"put(R, {index}, L, {name}, C.size)"

    def variable_address(self, variable: Variable, offset: int = 0) -> Value:
        """The address of a variable, tagged with the variable as its object."""
        value = Tracer.variable_address(self, variable, offset)
        if not self.following.tagged or variable.space not in SPACES or not variable.size:
            return value
        named = self.code.emit(f"{self.code.refer(same)}({value.raw}, {self.code.refer(variable)})")  # no constant now
        tag = self.code.emit(f"C.shadow.tag_of({self.code.refer(variable)}, {self.code.refer(self.function)}, L)", pure=False)
        self.alg.tags[named] = tag
        return Value(self.alg, value.type, named)


def kept_out(guard: PerLane, origin: PerLane, unwritten: PerLane, skipped: PerLane) -> PerLane:
    """The origin of a register after a guarded write: of the lanes that it has left unwritten, that write."""
    made: PerLane = np.where(~guard & (origin == unwritten), skipped, origin)
    return made[()]


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

    def observe(self, value: Value, name: str | None = None) -> None:
        """Report a value where it is undefined."""
        named = self.tracer.read_names.get(value.raw, "") if name is None else name
        self.tracer.observe(self.bound, value, named, self.guard)

    def hold(self, address: Value, *, writing: bool) -> None:
        """Check the access against the object that its address comes from."""
        self.observe(address, self.tracer.address_name)
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
            masks = self.code.emit(f"C.shadow.lacking({where})", pure=False)
            for n, value in enumerate(values):
                mask, origin = (self.code.emit(f"{masks}[{n}][{part}]", pure=False) for part in range(2))
                self.alg.undefine(value.raw, mask, origin)
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
            names = tuple(self.tracer.read_names.get(value.raw, "") for value in values)
            masks = "".join(f"{self.alg.mask(v.type, v.raw)}, " for v in values)
            origins = "".join(f"{self.alg.origin(v.raw)}, " for v in values)
            self.code.run(f"C.shadow.store_unset({where}, {names!r}, ({masks}), ({origins}))")

    def atomic(
        self, space: Space, type: Type, address: Value, update: Callable[..., Value], operands: Sequence[Value],
        **attributes: Unpack[AccessAttributes],
    ) -> Value:  # fmt: skip
        """Read, update, write, with the tags before and after."""
        self.hold(address, writing=True)
        for each in operands:
            self.observe(each)
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
            self.observe(each)
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
        if address.raw in self.alg.tags:
            self.alg.tags[made.raw] = self.alg.tags[address.raw]
        self.alg.smear(made.raw, address.raw)
        return made

    def within(self, space: Space, address: Value) -> Value:
        """Is the address in the state space?"""
        return self._computed(super().within(space, address), address)

    def mapped(self, space: Space, address: Value, rank: Value) -> Value:
        """The corresponding address in another CTA of the cluster."""
        return self._computed(super().mapped(space, address, rank), address, rank)

    def rank(self, space: Space, address: Value) -> Value:
        """The rank of the CTA in which an address lies."""
        return self._computed(super().rank(space, address), address)

    def _computed(self, made: Value, *operands: Value) -> Value:
        self.alg.smear(made.raw, *(each.raw for each in operands))
        return made

    def allocate_stack(self, size: Value, alignment: Value | int) -> Value:
        """A block of `alloca`, which is a new object."""
        self.observe(size)
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
            if value.raw in self.alg.unset:
                self._memory.tracer.tell(self.bound, value, register.name, enabled.raw)
                del self.alg.unset[value.raw]
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
            shadows = "".join(f"{shadow_of(self.alg, plane, each)}, " for each in payload)
            self.code.run(f"C.shadow.give(L, {plane}, ({shadows}))")


class TrackedPeers(ports.Peers):
    """The values of the lanes that have met, with their shadows."""

    alg: ShadowAlgebra

    def __init__(self, tracer: TrackedTracer, bound: Bound, guard: str | None, types: tuple[Type, ...]) -> None:
        super().__init__(tracer.alg, bound, guard, types)
        self.tracer = tracer

    def at(self, lane: Value, payload: int = 0, *, meant: bool = False) -> Value:
        """The value that another lane gave."""
        made = super().at(lane, payload, meant=meant)
        planes = exchanged(self.tracer, self.bound) if self.types[payload] is not pred else ()
        shadows = {p: self.code.emit(f"C.shadow.peer(L, {p}, {payload}, {lane.raw})", pure=False) for p in planes}
        if TAGS in shadows:
            self.alg.tags[made.raw] = shadows[TAGS]
        if UNSET in shadows:
            self.alg.undefine(made.raw, shadows[UNSET], shadows[ORIGIN])
        return made

    def multiply(
        self, product: Product, a: Sequence[Value], b: Sequence[Value], c: Sequence[Value], *further: Sequence[Value]
    ) -> list[Value]:
        """A product of matrices, with its undefined elements."""
        made = super().multiply(product, a, b, c, *further)
        if any(each.raw in self.alg.unset for part in (a, b, c) for each in part):
            masks, origins = (
                ", ".join("(" + "".join(f"{shadow_of(self.alg, plane, each)}, " for each in part) + ")" for part in (a, b, c))
                for plane in (UNSET, ORIGIN)
            )
            text = f"C.shadow.product({self.code.refer(product)}, L, ({masks}), ({origins}))"
            whole = self.code.emit(text, pure=False)
            for n, value in enumerate(made):
                mask, origin = (self.code.emit(f"{whole}[{n}][{part}]", pure=False) for part in range(2))
                self.alg.undefine(value.raw, mask, origin)
        return made


def shadow_of(alg: ShadowAlgebra, plane: int, value: Value) -> str:
    """The shadow of a value in a plane."""
    if plane == UNSET:
        return alg.mask(value.type, value.raw)
    return (alg.tag if plane == TAGS else alg.origin)(value.raw)


def exchanged(tracer: TrackedTracer, bound: Bound) -> Iterator[int]:
    """The planes of the shadows that lanes exchange at a collective: undefined bits only of values that it passes on."""
    if tracer.following.tagged:
        yield TAGS
    if tracer.following.unset and bound.i.of.passed:
        yield from (UNSET, ORIGIN)


TRACKED: dict[str, Callable[[TrackedTracer, Bound], ports.Port]] = {
    "mem": TrackedMemory,
    "tasks": TrackedTasks,
    "warp": TrackedWarp,
}

__all__ = ["TrackedTracer"]
