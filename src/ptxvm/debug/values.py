"""Values of a stopped grid: registers, special registers and memory, for one lane or for several at one place in the code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import TypeAlias

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.analysis.program import Bound
from ptxvm.analysis.scope import Family
from ptxvm.analysis.symbols import Label, Register, Variable
from ptxvm.dataclass import dataclass
from ptxvm.debug.dwarf import dwarf
from ptxvm.debug.source_types import (
    ArrayOf,
    BitField,
    InMemory,
    Number,
    Pointer,
    SourceType,
    SourceVariable,
    SourceVariables,
    Structure,
)
from ptxvm.diagnostics import did_you_mean
from ptxvm.engine.interp import arrays
from ptxvm.engine.interp.lanes import at
from ptxvm.engine.interp.routine import Routine
from ptxvm.engine.interp.segment import put
from ptxvm.engine.interp.stepping_schedule import SteppingSchedule
from ptxvm.isa import special_registers
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.image import Placement
from ptxvm.machine.per_lane import Array, LaneNumbers, PerLane

Pointees: TypeAlias = Mapping[str, Type]
"""The type of the elements of the array that a parameter of the kernel points to, by the name of the parameter."""


class NoValue(ValueError):  # noqa: N818 - it says what happened
    """An expression has no value; the message says why."""


@dataclass(frozen=True, slots=True)
class Values:
    """A value for each lane, as the engine holds values of the type: an array; `source` is the type of the source."""

    type: Type
    raw: Array
    source: Number | Pointer | None = None


@dataclass(frozen=True, slots=True)
class RegisterPlace:
    """An element of a register; `source` is the type that the source gives to what it holds."""

    register: Register
    part: int = 0
    source: Number | Pointer | None = None

    @property
    def type(self) -> Type:
        """The type of the element."""
        return self.register.type if self.source is None else scalar(self.source)


@dataclass(frozen=True, slots=True)
class MemoryPlace:
    """Elements in memory: the address of the first one for each lane, in its space; `dimensions` are those of an array.

    `source` is the type of the source; of an array of numbers it is that of an element.  Of structures, and of arrays of
    others, the elements are bytes.  `variable` is the one that this is the whole of.
    """

    space: Space
    address: Array
    type: Type
    dimensions: tuple[int, ...] = ()
    variable: Variable | None = None
    source: SourceType | None = None

    @property
    def count(self) -> int:
        """How many elements it has."""
        return prod(self.dimensions)

    def element(self, index: Array) -> MemoryPlace:
        """An element of the first dimension, by its number for each lane."""
        if isinstance(self.source, ArrayOf):
            held = self.source.element
            return typed(self.space, self.address + (index * held.size).astype(np.uint64), held)
        rest = self.dimensions[1:]
        step = self.type.bytes * prod(rest)
        return replace(self, address=self.address + (index * step).astype(np.uint64), dimensions=rest, variable=None)


Place: TypeAlias = RegisterPlace | MemoryPlace
"""What a value can be read from, and written to."""


def typed(space: Space, address: Array, source: SourceType) -> MemoryPlace:
    """Memory that has a type of the source."""
    element, dimensions = source, list[int]()
    while isinstance(element, ArrayOf):
        dimensions.append(element.count)
        element = element.element
    if isinstance(element, Number):
        return MemoryPlace(space, address, element.type, tuple(dimensions), source=element)
    if isinstance(source, BitField):
        return MemoryPlace(space, address, source.storage, source=source)
    if isinstance(source, Pointer):
        return MemoryPlace(space, address, scalar(source), source=source)
    return MemoryPlace(space, address, Type.named["b8"], (source.size,), source=source)


def scalar(source: Number | Pointer) -> Type:
    """The type of PTX that a number or an address has."""
    return source.type if isinstance(source, Number) else Type.named[f"b{8 * source.size}"]


@dataclass(frozen=True, slots=True)
class View:
    """Some lanes of a cohort that are at one place in the code: the frame of one function, at an instruction of it."""

    schedule: SteppingSchedule
    routine: Routine
    depth: int
    index: int
    lanes: LaneNumbers
    pointees: Pointees

    @property
    def bound(self) -> Bound:
        """The instruction; the last one of the function past its end."""
        code = self.routine.function.instructions
        return code[min(self.index, len(code) - 1)]

    def spread(self, value: PerLane) -> Array:
        """A value that may be uniform, as an array."""
        return np.broadcast_to(value, len(self.lanes))

    # ── names ───────────────────────────────────────────────────────────────────────────

    def named(self, name: str, component: str | None = None) -> Place | Values:
        """What a name stands for here: a register, a variable, a special register, a label.  NoValue for another name."""
        symbol = self.bound.scope.declared(name)
        if (symbol is None or isinstance(symbol, Variable)) and (own := self.source_variables.get(name)) is not None:
            place = self.placed(name, own)
            return place if component is None else self.member(place, component)
        if symbol is None:
            symbol = self.bound.scope.declared(f"{self.schedule.kernel.function.name}_{name}") or self.of_source(name)
        match symbol:
            case Register() if self.routine.slots.has(symbol):
                return RegisterPlace(symbol, self.part(symbol, component))
            case Register() | Family():
                raise NoValue(f"no instruction of '{self.routine.function.name}' uses '{name}'")
            case Variable():
                return self.variable(symbol)
            case Label():
                return Values(Type.named["u32"], self.spread(np.uint32(symbol.index)))
        if (found := self.special(name, component) or self.enumerator(name)) is not None:
            return found
        function = self.routine.function
        registers = [each.name for each in function.registers]
        known = [*self.source_variables, *registers, *(each.name for each in function.variables)]
        raise NoValue(f"there is no '{name}' here; {did_you_mean(name, known) or self.elsewhere}")

    def enumerator(self, name: str) -> Values | None:
        """The value that a name of an enumeration of the source stands for."""
        number = self.type_called(name)
        if not isinstance(number, Number):
            return None
        value = next((each for each, known in number.names.items() if known == name), None)
        if value is None:
            return None
        return Values(number.type, self.spread(arrays.const(number.type, value)), number)

    def type_called(self, name: str) -> SourceType | None:
        """The structure or the enumeration of the source with a name, or with a value of that name."""
        program = self.routine.function.program
        return None if program is None else dwarf(program).named.get(name)

    @property
    def elsewhere(self) -> str:
        """Where names are listed."""
        program = self.routine.function.program
        trouble = "" if program is None else dwarf(program).trouble
        return trouble or "see info locals, info registers and info variables"

    def of_source(self, name: str) -> Variable | None:
        """The variable that C++ calls so: its mangled name ends with the length of the name, and the name."""
        function = self.routine.function
        module = function.program.variables if function.program is not None else {}
        known = [*function.variables, *module.values()]
        return next((each for each in known if each.name.startswith("_Z") and each.name.endswith(f"E{len(name)}{name}")), None)

    @property
    def source_variables(self) -> SourceVariables:
        """The variables of the source that are in sight, where the PTX has debugging information."""
        program = self.routine.function.program
        return {} if program is None else dwarf(program).variables(self.routine.function, self.index)

    def placed(self, name: str, found: SourceVariable) -> Place:
        """The place of a variable of the source; what a reference refers to stands for it."""
        symbol = self.bound.scope.declared(found.location.name) if found.location is not None else None
        match symbol, found.type:
            case Register(), Number() | Pointer() if self.routine.slots.has(symbol):
                place: Place = RegisterPlace(symbol, source=found.type)
            case Variable(), _ if isinstance(found.location, InMemory):
                held = self.variable(symbol)
                place = typed(held.space, held.address + np.uint64(found.location.offset), found.type)
            case _:
                raise NoValue(f"'{name}' has no value here: it has been optimised away, or lies in several places")
        is_reference = isinstance(found.type, Pointer) and found.type.is_reference
        return self.pointed(place) if is_reference else place

    def pointed(self, place: Place | Values, index: Array | None = None) -> MemoryPlace:
        """What a pointer points to, or an element further on."""
        source = place.source
        if not isinstance(source, Pointer):
            raise NoValue("an address has no type: write `.global.f32[%rd1]` or `*(float*)%rd1` for `*%rd1`")
        if source.target is None:
            raise NoValue("a `void*` has no type: write `.global.f32[…]` or `*(float*)…`")
        start = self.read(place).raw.astype(np.uint64)
        if index is not None:
            start = start + (index * source.target.size).astype(np.uint64)
        return typed(source.space, start, source.target)

    def member(self, place: Place | Values, name: str) -> MemoryPlace:
        """A member of a structure."""
        source = None if isinstance(place, Values) else place.source
        if not isinstance(source, Structure) or not isinstance(place, MemoryPlace):
            raise NoValue(f"what stands before '.{name}' is no structure")
        if name not in source.members:
            raise NoValue(f"'{source.name}' has no member '{name}'; {did_you_mean(name, source.members) or listed(source)}")
        offset, type = source.members[name]
        return typed(place.space, place.address + np.uint64(offset), type)

    def part(self, register: Register, component: str | None) -> int:
        """The number of the element of a vector that a component selects."""
        part = special_registers.COMPONENTS.get(component, register.count) if component is not None else 0
        if part >= register.count:
            raise NoValue(f"'{register.name}' has no element .{component}")
        return part

    def special(self, name: str, component: str | None) -> Values | None:
        """The values of a special register; None where there is none of that name."""
        register = special_registers.lookup(name, component) if name.startswith("%") else None
        if register is None:
            return None
        if register.count > 1 and component is None:
            raise NoValue(f"'{name}' is a vector: name an element, such as {name}.x")
        full = register.name if component is None else f"{register.name}.{'xyzw'[register.component or 0]}"
        raw = self.schedule.cohort.special(full, self.lanes)
        return Values(register.type, self.spread(np.asarray(raw).astype(arrays.dtype(register.type))))

    def variable(self, variable: Variable) -> MemoryPlace:
        """The memory of a variable."""
        placement, at_ = self.schedule.code.image.locate(variable, self.routine.function)
        cohort, space = self.schedule.cohort, variable.space
        match placement:
            case Placement.PARAMETER:
                base: PerLane = cohort.parameter_bank
            case Placement.FRAME:
                base = at(cohort.frames[self.depth], self.lanes)
            case Placement.GENERIC_FRAME:
                base, space = cohort.mem.local.to_generic(at(cohort.frames[self.depth], self.lanes), self.lanes), Space.GENERIC
            case Placement.ABSOLUTE:
                clustered = space.window is Space.SHARED
                base = cohort.mem.shared_base(self.lanes) if clustered else np.uint64(0)
        known = tuple(each if each is not None else 0 for each in variable.dimensions)
        vector = (variable.vector,) if variable.vector > 1 else ()
        address = self.spread(np.asarray(base) + np.uint64(at_))
        return MemoryPlace(space, address, variable.type, (*known, *vector), variable)

    def indexed(self, place: Place | Values, index: Array) -> MemoryPlace:
        """An element of an array, or of what a parameter points to."""
        if isinstance(place, MemoryPlace) and place.dimensions and not isinstance(place.source, Structure):
            return place.element(index)
        if isinstance(place.source, Pointer):
            return self.pointed(place, index)
        if isinstance(place, MemoryPlace) and place.variable is not None and place.variable.name in self.pointees:
            pointee = self.pointees[place.variable.name]
            start = self.read(place).raw.astype(np.uint64)
            return MemoryPlace(Space.GENERIC, start + (index * pointee.bytes).astype(np.uint64), pointee)
        raise NoValue("that is no array; name the type of what is there, as in `.global.f32[%rd1 + 4]`")

    # ── reading and writing ─────────────────────────────────────────────────────────────

    def read(self, place: Place | Values) -> Values:
        """The values of a place; NoValue where memory has no such bytes."""
        if isinstance(place, Values):
            return place
        if isinstance(place, RegisterPlace):
            raw = self.spread(at(self.file(place)[self.slot(place)], self.lanes))
            return Values(place.type, raw if place.source is None else recast(raw, arrays.dtype(place.type)), place.source)
        if place.count > 1 or 0 in place.dimensions or isinstance(place.source, Structure):
            said = "a structure: name a member" if isinstance(place.source, Structure) else "an array: name an element"
            raise NoValue(f"that is {said} of it, or print it alone")
        raw = self.load(place, arrays.dtype(place.type))
        if isinstance(place.source, BitField):
            return extracted(raw, place.source)
        return Values(place.type, raw, place.source if isinstance(place.source, Number | Pointer) else None)

    def load(self, place: MemoryPlace, held: np.dtype[np.generic]) -> Array:
        """What memory has at a place."""
        memory = self.schedule.cohort.mem
        window = memory.window(place.space)
        try:
            if window is not None:
                found: PerLane = window.load(held, window.offsets(place.address, self.lanes), 1, self.lanes)
            else:
                found = memory.machine.load(held, place.address, 1, space=place.space, lanes=self.lanes)
        except AccessFault as wrong:
            raise NoValue(wrong.message) from None
        return self.spread(found)

    def write(self, place: Place, values: Values) -> None:
        """Write the values to a place; NoValue where memory has no such bytes, or is read-only."""
        held = arrays.dtype(place.type)
        if isinstance(place, RegisterPlace):
            slot, raw = self.slot(place), values.raw.astype(held)
            raw = raw if place.source is None else recast(raw, arrays.dtype(place.register.type))
            put(self.file(place), slot, self.lanes, raw, self.schedule.cohort.size)
            return
        if isinstance(place.source, BitField):
            values = inserted(self.load(place, held), values.raw.astype(held), place.source)
        memory = self.schedule.cohort.mem
        window = memory.window(place.space)
        try:
            if window is not None:
                window.store(held, window.offsets(place.address, self.lanes), values.raw.astype(held), 1, self.lanes)
            else:
                memory.machine.store(held, place.address, values.raw.astype(held), 1, space=place.space, lanes=self.lanes)
        except AccessFault as wrong:
            raise NoValue(wrong.message) from None

    def file(self, place: RegisterPlace) -> list[PerLane]:
        """The file that has a register."""
        module = self.routine.slots.of(place.register, place.part) < 0
        return self.schedule.cohort.own if module else self.schedule.file(self.routine, self.depth)

    def slot(self, place: RegisterPlace) -> int:
        """The slot of a register in its file."""
        slot = self.routine.slots.of(place.register, place.part)
        return max(slot, ~slot)


def recast(raw: Array, held: np.dtype[np.generic]) -> Array:
    """Values as a type of perhaps another width holds their bits: the lower ones, or with the sign or zeros before them."""
    bits = np.ascontiguousarray(raw)
    if bits.dtype.kind != "i" or bits.dtype.itemsize >= held.itemsize:
        bits = bits.view(f"u{bits.dtype.itemsize}")
    found: Array = bits.astype(f"u{held.itemsize}").view(held)
    return found


def extracted(raw: Array, field: BitField) -> Values:
    """The value of a bit field, of the integers that hold it."""
    held = arrays.dtype(field.number.type)
    bits = (raw >> raw.dtype.type(field.first)).astype(np.uint64) & np.uint64((1 << field.width) - 1)
    if field.number.type.is_signed:
        sign = np.uint64(1 << field.width - 1)
        bits = (bits ^ sign) - sign
    return Values(field.number.type, bits.astype(held), field.number)


def inserted(before: Array, raw: Array, field: BitField) -> Values:
    """The integers that hold a bit field, with other values of it."""
    one = before.dtype.type
    mask = one(((1 << field.width) - 1) << field.first)
    return Values(field.storage, (before & ~mask) | ((raw << one(field.first)) & mask))


def listed(source: Structure) -> str:
    """The members of a structure, in words."""
    return f"it has {', '.join(source.members) or 'none'}"


def bits_of(values: Values) -> list[int]:
    """The bits of each value."""
    held, mask = np.ascontiguousarray(values.raw), (1 << values.type.bits) - 1
    size, data = held.dtype.itemsize, held.tobytes()
    return [int.from_bytes(data[n : n + size], "little") & mask for n in range(0, len(data), size)]


__all__ = ["MemoryPlace", "NoValue", "Place", "Pointees", "RegisterPlace", "Values", "View", "bits_of", "typed"]
