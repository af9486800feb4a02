"""Runs instructions on one warp, whose 32 lanes have registers of their own, and tells what each instruction wrote.

The instructions stand in a kernel of one warp, which loads the registers that they read and stores those that they write after
each of them.  It runs on the interpreter.  Instructions that do more than compute registers, such as loads, do not run: of an
access the addresses are told, and a value may be given for what a register gets.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from itertools import count

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, pred
from ptxvm.analysis import constants
from ptxvm.analysis.shapes import names_in
from ptxvm.api import Kernel, load
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import InvalidPTX
from ptxvm.isa.special_registers import WARP, SpecialRegister, lookup
from ptxvm.reference.accesses import Place, WarpAccess, access_of, place_of
from ptxvm.reference.evaluation import CARRY, BadValue, bits_of, computes_registers, names_an_address, wanted
from ptxvm.reference.inference import Names
from ptxvm.reference.reading import Reading
from ptxvm.syntax import tree
from ptxvm.syntax.parser import parse
from ptxvm.syntax.source import Source

LANE = "lane"
"""The name of a lane's number in values."""

NAME = re.compile(r"%\w+(\.\w+)?")
"""The name of a register, special ones with their component."""

SLOT = 16
"""Bytes of a register of a lane in memory: the most that one has."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """The bits of a register in the lanes of a warp, and the type to read them as.

    `active` are the lanes whose guard held; the others have what they had, which is only `known` where something gave it.
    """

    name: str
    type: Type
    bits: tuple[int, ...]
    active: tuple[bool, ...] = (True,) * WARP
    known: tuple[bool, ...] = (True,) * WARP

    @property
    def is_uniform(self) -> bool:
        """Have all lanes the same?"""
        return len(set(self.bits)) == 1 and all(self.active)


@dataclass(frozen=True, slots=True)
class WarpStep:
    """An instruction, what it wrote, and what it accessed.

    `unknown` are registers without a value: those that the instruction depends on, or that only memory would give.
    """

    reading: Reading
    outputs: tuple[Lanes, ...]
    access: WarpAccess | None = None
    unknown: tuple[str, ...] = ()


GuardedBy = tuple[str, bool] | None


class NotTogether(ValueError):  # noqa: N818 - it says what is wrong
    """The instructions do not go together; the message says why."""


# ── what goes in ────────────────────────────────────────────────────────────────────────


def can_run(reading: Reading) -> bool:
    """Does the instruction work on registers alone, those of other lanes included?

    A generic address of global memory is its address there (PTX 6.4.1.1), so that `cvta` of one is a copy.
    """
    copies = reading.decoded.form.opcode == "cvta" and reading.decoded.ss == Space.GLOBAL
    return (computes_registers(reading) or copies) and not names_an_address(reading)


def goes_on(reading: Reading) -> bool:
    """Does the next instruction follow, whatever this one does?"""
    return "flow" not in reading.decoded.of.effects


def is_collective(reading: Reading) -> bool:
    """Does a lane's result depend on other lanes?"""
    return "warp" in reading.decoded.of.effects


def needed(readings: Sequence[Reading]) -> dict[str, Type]:
    """The registers that are read before they are written, with the type that the first reader takes them for.

    What is written under a guard is there under the same guard; what is written under both of a predicate is there always.
    Raises `NotTogether` where a register has two sizes.
    """
    merged(readings)
    found: dict[str, Type] = {}
    written: dict[str, set[GuardedBy]] = {}
    for reading in readings:
        guard = _guarded_by(reading)
        for name, type in _reads(reading).items():
            if written.get(name, set()).isdisjoint({None, guard}) and (name == CARRY or name in reading.names.registers):
                found.setdefault(name, type)
        _enter(written, dict(_writes(reading)).keys(), guard if can_run(reading) else None)
    return found


def _guarded_by(reading: Reading) -> GuardedBy:
    """The predicate of the guard, and whether it is negated; None without a guard."""
    guard = reading.bound.node.guard
    return None if guard is None else (guard.name.text, guard.negated)


def _enter(written: dict[str, set[GuardedBy]], names: Collection[str], guard: GuardedBy) -> None:
    """Enter registers that are written under a guard; what was written under a predicate that changes may be anywhere."""
    for guards in written.values():
        guards.difference_update((name, negated) for name in names for negated in (False, True))
    if guard is not None and guard[0] in names:
        return
    for name in names:
        guards = written.setdefault(name, set())
        guards.add(guard)
        if guard is not None and (guard[0], not guard[1]) in guards:
            guards.add(None)


def _reads(reading: Reading) -> dict[str, Type]:
    """The registers that decide what the instruction writes, or where it accesses memory, with their types."""
    place = None if can_run(reading) else place_of(reading)
    found = wanted(reading) if can_run(reading) else {place.register: place.type} if place is not None else {}
    guard = reading.bound.node.guard
    return found if guard is None else {**found, guard.name.text: pred}


def _writes(reading: Reading) -> list[tuple[str, Type]]:
    """The registers that it writes, the carry flag included."""
    return [*written_by(reading), *([(CARRY, pred)] if reading.bound.summary.writes_carry else [])]


def loaded(readings: Sequence[Reading]) -> dict[str, Type]:
    """The registers that get what only memory has, or another place beside registers, with their types."""
    read = needed(readings)
    return {name: type for each in readings if not can_run(each) for name, type in written_by(each) if name not in read}


def optional(readings: Sequence[Reading]) -> dict[str, Type]:
    """What may be given beside what is `needed`, each with its type.

    Special registers, which else are those of a kernel of one warp; what is `loaded`; and registers that no instruction reads,
    but of which a lane keeps the old value where its guard is false.
    """
    read, written = needed(readings), set[str]()
    found = loaded(readings)
    for reading in readings:
        found |= _special_registers(reading) if can_run(reading) else {}
        names = dict(written_by(reading))
        if reading.bound.node.guard is None:
            written |= names.keys()
        else:
            found |= {name: type for name, type in names.items() if name not in written | read.keys() | found.keys()}
    return found


def _special_registers(reading: Reading) -> dict[str, Type]:
    """The special registers of one element that the instruction reads."""
    named = {name: _special(name) for name in wanted(reading)}
    return {name: found.type for name, found in named.items() if found is not None and found.count == 1}


def _special(name: str) -> SpecialRegister | None:
    return lookup(*name.split(".")) if name.startswith("%") else None


def written_by(reading: Reading) -> list[tuple[str, Type]]:
    """The registers that an instruction writes, with their types."""
    found, i = [], reading.decoded
    for operand in i.destinations():
        node = reading.bound.operands.get(operand)
        for name in names_in(node) if node is not None else ():
            declared = reading.names.registers.get(name.text)
            if declared is not None:
                type = i.type_of(operand)
                found.append((name.text, type if type is not None and type.bits == declared.bits else declared))
    return found


def masks(readings: Sequence[Reading]) -> set[str]:
    """The registers whose bits are lanes."""
    return {
        name.text
        for reading in readings
        for operand, node in reading.bound.operands.items()
        if "mask" in reading.decoded.operand_type(operand).marks and reading.decoded.type_of(operand) is not pred
        for name in names_in(node)
    }


FRACTION = re.compile(r"\d\.|\.\d|\d[eE][-+]?\d")
INTEGER = re.compile(r"(?<![\w.])\d+(?![\w.])")


def lane_values(text: str, type: Type) -> tuple[int, ...]:
    """The bits that a text stands for in each lane: one value for all, 32 of them, or an expression in `lane`.

    A predicate is true where such an expression is not 0.  Raises `BadValue`.
    """
    if re.search(rf"\b{LANE}\b", text):
        found = _of_expression(text, floats=type.is_float and not type.is_packed)
        if type is pred:  # as in C, everything but 0 is true
            return tuple(int(value != 0) for value in found)
        return tuple(bits_of(str(value), type) for value in found)
    parts = text.split(",")
    if len(parts) == WARP:
        return tuple(bits_of(part, type) for part in parts)
    return (bits_of(text, type),) * WARP


def _of_expression(text: str, *, floats: bool) -> list[int | float]:
    """A constant expression of PTX (4.5), with the number of each lane for its name.

    Of floats it may have fractions, as `lane*0.5`: its integers are then floats too, which PTX does not mix (4.5.5).
    """
    text = text.replace("%", " % ")  # which begins a name where no blank follows
    texts = [re.sub(rf"\b{LANE}\b", str(lane), text) for lane in range(WARP)]
    floats = floats and FRACTION.search(text) is not None
    if floats:
        texts = [INTEGER.sub(r"\g<0>.0", each) for each in texts]
    body = "".join(f"mov.{'f' if floats else 's'}64 %x, ({each});\n" for each in texts)
    module, wrong = parse(Source(f".version 8.0\n.target sm_80\n.entry k ()\n{{\n{body}}}\n"))
    function = module.statements[-1]
    if wrong or not isinstance(function, tree.Function) or not isinstance(function.body, tree.Block):
        raise BadValue(f"'{text}' is no expression of numbers and '{LANE}'")
    moves = [each for each in function.body.statements if isinstance(each, tree.Instruction)]
    try:
        found = [constants.evaluate(each.operands[1]) for each in moves]
    except constants.ConstantError as error:
        raise BadValue(f"'{text}': {error}") from None
    values = [value for value in found if isinstance(value, float if floats else int)]
    if len(values) != WARP:
        raise BadValue(f"'{text}' is no expression of integers and '{LANE}'")
    return values


# ── the kernel ──────────────────────────────────────────────────────────────────────────


def run(readings: Sequence[Reading], values: Mapping[str, tuple[int, ...]]) -> list[WarpStep]:
    """What each instruction writes, from the bits in each lane of all that is `needed`, and of what is `optional` where known.

    Raises `NotTogether` where no version and target takes them all, or a register has two sizes.
    """
    inputs = needed(readings) | {name: type for name, type in optional(readings).items() if name in values}
    later = loaded(readings).keys() & inputs.keys()
    plan = list(_planned(readings, later))
    memory = np.zeros((max(1, len(inputs)), WARP, SLOT), np.uint8)
    for n, name in enumerate(inputs):
        for lane, bits in enumerate(values[name]):
            memory[n, lane] = np.frombuffer(bits.to_bytes(SLOT, "little"), np.uint8)
    kernel_text = list(_body(plan, inputs, later))
    found = np.zeros((max(1, sum(each.slots for each in plan)), WARP, SLOT), np.uint8)
    _loaded(readings, kernel_text).launch(1, WARP, [memory, found], engine="interp")
    return list(_steps(plan, found, dict.fromkeys(inputs.keys() - later, (True,) * WARP)))


@dataclass(frozen=True, slots=True)
class _Planned:
    """An instruction in the kernel: where it accesses memory, and what it writes, as far as both have values.

    `unknown` are registers without a value: those that it depends on, or that only memory would give.
    """

    reading: Reading
    place: Place | None
    outputs: Sequence[tuple[str, Type]]
    unknown: tuple[str, ...]

    @property
    def slots(self) -> int:
        """Registers that are stored for it: the lanes that are active, the address, and what it writes."""
        return 1 + (self.place is not None) + len(self.outputs)


def _planned(readings: Sequence[Reading], given: Container[str]) -> Iterator[_Planned]:
    """What is known of each instruction where some of the registers that are `loaded` have values."""
    unknown: set[str] = set()
    for reading in readings:
        written, computes = _writes(reading), can_run(reading)
        depends = tuple(name for name in _reads(reading) if name in unknown)
        lacks = () if computes else tuple(name for name, _ in written if name not in given)
        if depends or lacks:
            unknown |= dict(written).keys()
        elif reading.bound.node.guard is None:
            unknown -= dict(written).keys()
        place = None if computes or depends else place_of(reading)
        yield _Planned(reading, place, [] if depends or lacks else written, depends or lacks)


def _steps(plan: Sequence[_Planned], found: np.ndarray, known: dict[str, tuple[bool, ...]]) -> Iterator[WarpStep]:
    """What each instruction wrote; `known` are the lanes in which a register has a value, and grows."""
    slots = iter(map(_bits, found))
    for each in plan:
        active = tuple(map(bool, next(slots)))
        access = None if each.place is None else access_of(each.place, next(slots), active)
        for name, _ in each.outputs:
            known[name] = tuple(map(operator.or_, known.get(name, (False,) * WARP), active))
        lanes = tuple(Lanes(name, type, next(slots), active, known[name]) for name, type in each.outputs)
        yield WarpStep(each.reading, lanes, access, each.unknown)


def _bits(slot: np.ndarray) -> tuple[int, ...]:
    return tuple(int.from_bytes(lane.tobytes(), "little") for lane in slot)


def _body(plan: Sequence[_Planned], inputs: Mapping[str, Type], later: Container[str]) -> Iterator[str]:
    """The lines of the kernel's body, behind the declarations of its registers; some inputs are values of `later` loads."""
    registers = merged([each.reading for each in plan])
    where = {name: f"[$in+{n * WARP * SLOT}]" for n, name in enumerate(inputs)}
    yield ".reg .b32 $word; .reg .b64 $in, $out; .reg .pred $some;"
    yield "mov.u32 $word, %laneid; ld.param.u64 $in, [$given]; ld.param.u64 $out, [$found];"
    yield f"mad.wide.u32 $in, $word, {SLOT}, $in; mad.wide.u32 $out, $word, {SLOT}, $out;"
    stand_ins = {}
    for n, (name, type) in enumerate(inputs.items()):
        if _special(name) is not None:
            stand_ins[name] = f"$value{n}"
            yield f".reg .{type.name} $value{n};"
            yield from _load(f"$value{n}", type, where[name])
        elif name not in later:
            yield from _load(name, registers.get(name, pred), where[name])
    slots = (f"[$out+{n * WARP * SLOT}]" for n in count())
    for each in plan:
        yield from _active(each.reading, next(slots))
        if each.place is not None:
            yield from _store(each.place.register, registers[each.place.register], next(slots))
        if not can_run(each.reading):
            for name, _ in each.outputs:
                yield from _load(name, registers[name], where[name], _guard_text(each.reading))
        elif not each.unknown:
            text = each.reading.text if each.reading.text.endswith((";", "}")) else f"{each.reading.text};"
            yield NAME.sub(lambda found: stand_ins.get(found[0], found[0]), text)
        for name, _ in each.outputs:
            yield from _store(name, registers.get(name, pred), next(slots))


def _active(reading: Reading, where: str) -> Iterator[str]:
    """Stores whether a lane executes an instruction."""
    guard = reading.bound.node.guard
    holds = "1" if guard is None else f"{int(not guard.negated)}, {int(guard.negated)}, {guard.name.text}"
    yield f"{'mov' if guard is None else 'selp'}.u32 $word, {holds}; st.global.u32 {where}, $word;"


def _guard_text(reading: Reading) -> str:
    guard = reading.bound.node.guard
    return "" if guard is None else f"@{'!' * guard.negated}{guard.name.text} "


def _load(name: str, type: Type, where: str, guard: str = "") -> Iterator[str]:
    if type is not pred:
        yield f"{guard}ld.global.b{type.bits} {name}, {where};"
        return
    yield f"ld.global.u32 $word, {where};"
    yield f"{guard}setp.ne.u32 {name}, $word, 0;" if name != CARRY else "add.cc.u32 $word, $word, 0xffffffff;"


def _store(name: str, type: Type, where: str) -> Iterator[str]:
    if type is not pred:
        yield f"st.global.b{type.bits} {where}, {name};"
        return
    yield f"selp.u32 $word, 1, 0, {name};" if name != CARRY else "addc.u32 $word, 0, 0;"
    yield f"st.global.u32 {where}, $word;"


def merged(readings: Sequence[Reading]) -> dict[str, Type]:
    """The registers of all instructions: of the type that all take, or untyped where they take several."""
    found: dict[str, Type] = {}
    for reading in readings:
        for name, type in reading.names.registers.items():
            before = found.setdefault(name, type)
            if before.bits != type.bits or (pred in (before, type) and before is not type):
                raise NotTogether(f"{name} is a .{before.name} in one instruction and a .{type.name} in '{reading.text}'")
            if before is not type:
                found[name] = type.as_bits
    return found


def _loaded(readings: Sequence[Reading], body: Sequence[str]) -> Kernel:
    names = Names(registers=merged(readings))
    for reading in readings:
        names.vectors |= reading.names.vectors
    refused: InvalidPTX | None = None
    for version, target in dict.fromkeys((reading.version, reading.target) for reading in readings):
        head = f".version {version[0]}.{version[1]}\n.target {target}\n.address_size 64\n"
        entry = ".visible .entry k(.param .u64 $given, .param .u64 $found)"
        text = "\n".join([head, entry, "{", *names.body_lines(), *body, "ret;", "}", ""])
        try:
            return load(text).kernel()
        except InvalidPTX as error:
            refused = refused or error
    said = refused.diagnostics[0].message if refused is not None and refused.diagnostics else "nothing to run"
    raise NotTogether(f"no version of PTX and target takes all of these instructions: {said}")
