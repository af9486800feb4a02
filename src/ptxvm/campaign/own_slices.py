"""Output slices: arrays of which each CTA writes a slice of its own, by affine addresses (dependence analysis).

An address is an affine function of `%ctaid.x` and `%tid`, evaluated by the meanings of instructions for one launch, whose
sizes and numbers are constants.  Where all stores through a parameter grow alike with `%ctaid.x`, and what a CTA can write is
no longer than that step, no two CTAs write the same byte.  The arrays of the result are not read by the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ptxvm.algebra.memory_order import Order
from ptxvm.algebra.types import Type
from ptxvm.algebra.value import Algebra, Rounding, Value
from ptxvm.analysis.divergence import by_meaning, post_dominators, registers_of, written_once
from ptxvm.analysis.flow import bit_of, reads_and_writes, segments
from ptxvm.analysis.outputs import WINDOWS, from_memory, loaded, only_reads, only_writes, reaches_memory, sources, used
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.shapes import constant
from ptxvm.analysis.symbols import Register, Variable
from ptxvm.dataclass import dataclass
from ptxvm.isa.special_registers import SpecialRegister, lookup
from ptxvm.machine.launch import LaunchShape
from ptxvm.named_tuple import NamedTuple
from ptxvm.syntax import tree

WORD = 64  # bits of an address


class Slice(NamedTuple):
    """What a CTA may write of an array: `step` bytes from `first + step * ctaid` on; `whole` if each CTA writes them all."""

    first: int
    step: int
    whole: bool


@dataclass(frozen=True, slots=True)
class Affine:
    """A constant, and factors of `%ctaid.x` and the three components of `%tid`; an offset from a parameter if there is one."""

    constant: int
    factors: tuple[int, int, int, int] = (0, 0, 0, 0)
    base: Variable | None = None

    def plus(self, other: Affine, sign: int = 1) -> Affine:
        """The sum, or the difference."""
        factors = tuple(a + sign * b for a, b in zip(self.factors, other.factors, strict=True))
        return Affine(self.constant + sign * other.constant, factors, self.base or other.base)  # type: ignore[arg-type]

    def times(self, factor: int) -> Affine:
        """The product."""
        return Affine(self.constant * factor, tuple(each * factor for each in self.factors))  # type: ignore[arg-type]


def own_slices(function: Function, args: Sequence[object], shape: LaunchShape) -> dict[int, Slice]:
    """The slices of all arrays that a kernel writes, by the number of the argument.

    Empty where some array that it writes is not known to have slices, or is read, or an address comes from elsewhere.
    """
    if shape.grid[1:] != (1, 1):
        return {}
    known, strange, stores = sources(function), from_memory(function), dict[Variable, list[Bound]]()
    read = set[Variable]()
    for bound in function.instructions:
        if bound.calls:
            return {}
        if not reaches_memory(bound) or bound.summary.spaces <= WINDOWS:
            continue
        through = used(bound, known)
        if len(through) != 1 or strange & reads_and_writes(bound)[0] or not (only_reads(bound) or only_writes(bound)):
            return {}
        (parameter,) = through
        if only_reads(bound):
            read.add(parameter)
        else:
            stores.setdefault(parameter, []).append(bound)
    forms, parameters = Forms(function, args, shape), list(function.signature.parameters)
    found = {parameters.index(each): forms.slice_of(each, stores[each]) for each in stores if each not in read}
    complete = len(found) == len(stores) and all(found.values())
    return {n: each for n, each in found.items() if each is not None} if complete else {}


class Forms(Algebra):
    """An algebra whose values are affine in the numbers of a thread; None is any other value.

    A form is that of the signed value of some bits, whose range it never leaves; where it is not negative, it is that of the
    unsigned value too.
    """

    def __init__(self, function: Function, args: Sequence[object], shape: LaunchShape) -> None:
        self.function, self.args, self.shape = function, args, shape
        self.most = (shape.ctas - 1, *(each - 1 for each in shape.block))
        found = segments(function)
        entered = found[0].live_in if found else 0
        self.once = {each for each in written_once(function) if not each.of_module and not entered & bit_of(each)}
        self.known: dict[Register, Affine | None] = {}
        self.special = {
            "tid": (Affine(0, (0, 1, 0, 0)), Affine(0, (0, 0, 1, 0)), Affine(0, (0, 0, 0, 1))),
            "ctaid": (Affine(0, (1, 0, 0, 0)), Affine(0), Affine(0)),
            "ntid": tuple(Affine(each) for each in shape.block),
            "nctaid": tuple(Affine(each) for each in shape.grid),
        }
        for bound in function.instructions:  # in their order: of a register that is written further below nothing is known
            for name in bound.i.destinations():
                for register in self.once.intersection(registers_of(bound.operands.get(name), bound)):
                    self.known[register] = self.made(register, bound)
        self.always = {number for at in always_reached(function) for number in range(found[at].start, found[at].end)}

    # ── questions ───────────────────────────────────────────────────────────────────────

    def slice_of(self, parameter: Variable, stores: Sequence[Bound]) -> Slice | None:
        """What a CTA may write through a parameter; None where the slices of several may overlap."""
        spans, steps = list[tuple[int, int]](), set[int]()
        for bound in stores:
            size = stored_bytes(bound)
            form = self.address(bound) if size else None
            if form is None or form.base is not parameter:
                return None
            least, most = self.bounds(Affine(form.constant, (0, *form.factors[1:])))
            spans.append((least, most + size))
            steps.add(form.factors[0])
        first, end, step = min(least for least, _ in spans), max(most for _, most in spans), steps.pop()
        if steps or end - first > step:
            return None
        wholes = (span == (first, first + step) and self.fills(bound) for bound, span in zip(stores, spans, strict=True))
        return Slice(first, step, any(wholes))

    def fills(self, bound: Bound) -> bool:
        """Do all threads of a CTA execute a store, and the elements that they write follow one another?"""
        form = self.address(bound)
        number = self.function.instructions.index(bound)
        return (
            form is not None and number in self.always and bound.node.guard is None
            and self.shape.block[1:] == (1, 1) and form.factors[1] == stored_bytes(bound)
        )  # fmt: skip

    def address(self, bound: Bound) -> Affine | None:
        """The address that a plain access uses."""
        (address,) = (each for each in bound.operands.values() if isinstance(each, tree.Address))
        node: tree.Operand = address.items[0]
        offset: object = 0
        if isinstance(node, tree.Binary):
            offset = constant(node.right) if node.op == "+" else None  # a minus is that of the number
            node = node.left
        form = self.of_name(node, bound) if isinstance(node, tree.Name) else None
        return form.plus(Affine(offset)) if form is not None and isinstance(offset, int) else None

    def bounds(self, form: Affine) -> tuple[int, int]:
        """The least and the most value, without the base."""
        parts = [factor * most for factor, most in zip(form.factors, self.most, strict=True)]
        return form.constant + sum(min(each, 0) for each in parts), form.constant + sum(max(each, 0) for each in parts)

    # ── registers ───────────────────────────────────────────────────────────────────────

    def of_name(self, node: tree.Name, bound: Bound) -> Affine | None:
        """The form of a register that one instruction writes, before all that read it, or of a special one."""
        symbol = bound.scope.find(node.text)
        if isinstance(symbol, Register):
            return self.known.get(symbol) if node.component is None else None
        special = lookup(node.text, node.component) if symbol is None and node.text.startswith("%") else None
        return None if special is None else self.of_special(special)

    def of_special(self, register: SpecialRegister) -> Affine | None:
        """The form of a component of a special register."""
        parts, part = self.special.get(register.name, ()), register.component
        return parts[part] if part is not None and part < len(parts) else None

    def made(self, register: Register, bound: Bound) -> Affine | None:
        """What the instruction that writes a register leaves there."""
        i = bound.i
        if bound.summary.reads:
            return self.of_parameter(register, bound)
        if i.of.effects and not (bound.summary.converts_address and not bound.summary.accesses):
            return None
        operands = list[Value]()
        for name in i.of.sources:
            type, node = i.type_of(name), bound.operands.get(name)
            if type is None or node is None:
                return None
            operands.append(Value(self, type, self.of_operand(node, type, bound)))
        if bound.summary.converts_address:
            form: Affine | None = operands[0].raw
            return form
        made = by_meaning(i, operands)
        single = made is not None and len(made) == 1 and isinstance(made[0], Value)
        return self.within(register.type, made[0].raw) if single and made is not None else None  # type: ignore[attr-defined]

    def of_operand(self, node: tree.Operand, type: Type, bound: Bound) -> Affine | None:
        """The form of an operand."""
        number = constant(node)
        if isinstance(number, int):
            return self.const(type, number)
        return self.of_name(node, bound) if isinstance(node, tree.Name) else None

    def of_parameter(self, register: Register, bound: Bound) -> Affine | None:
        """What a load of a whole parameter gives: an array's address, or the number that was passed."""
        parameters = list(self.function.signature.parameters)
        address = next((each for each in bound.operands.values() if isinstance(each, tree.Address)), None)
        held = [each for each in loaded(bound) if each in parameters]
        plain = address is not None and len(address.items) == 1 and isinstance(address.items[0], tree.Name)
        if len(held) != 1 or not plain or register.type.bits != 8 * held[0].size or stored_bytes(bound) != held[0].size:
            return None
        number = parameters.index(held[0])
        value = self.args[number] if number < len(self.args) else None
        if isinstance(value, np.ndarray):
            return Affine(0, base=held[0])
        integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
        return self.const(register.type, int(value)) if integer else None  # type: ignore[call-overload]

    # ── the algebra ─────────────────────────────────────────────────────────────────────

    def within(self, type: Type, form: Affine | None) -> Affine | None:
        """A form whose signed values a type can hold; None else."""
        if form is None or type.is_float:
            return None
        least, most = self.bounds(form)
        return form if -(1 << type.bits - 1) <= least and most < 1 << type.bits - 1 else None

    def const(self, type: Type, x: float) -> Affine | None:
        """A constant, as a signed number."""
        half = 1 << type.bits - 1
        return Affine((x + half) % (2 * half) - half) if isinstance(x, int) and not type.is_float else None

    def integer(self, op: str, type: Type, a: Affine | None, b: Affine | None) -> Affine | None:
        """Sums, differences, products with constants; `or` where it is a sum."""
        if a is None or b is None:
            return None
        match op:
            case "add" if a.base is None or b.base is None:
                return self.within(type, a.plus(b))
            case "sub" if b.base is None:
                return self.within(type, a.plus(b, -1))
        if a.base is not None or b.base is not None:
            return None
        return self.within(type, self.scaled(op, a, b))

    def scaled(self, op: str, a: Affine, b: Affine) -> Affine | None:
        """A product with a constant, a shift by one, and what bits of other places make together."""
        if op == "mul" and not any(a.factors):
            a, b = b, a
        number = None if any(b.factors) else b.constant
        match op:
            case "mul" if number is not None:
                return a.times(number)
            case "shl" if number is not None and 0 <= number < WORD:
                return a.times(1 << number)
            case "min" if number is not None and not any(a.factors):  # of the amount of a shift
                return Affine(min(a.constant, number))
            case "or":
                return a.plus(b) if self.disjoint(a, b) or self.disjoint(b, a) else None
        return None

    def disjoint(self, a: Affine, b: Affine) -> bool:
        """Is `a` always a multiple of a power of two, and `b` less than that?"""
        step = int(np.gcd.reduce(np.array([a.constant, *a.factors], object)))
        least, most = self.bounds(b)
        return step == 0 or (least >= 0 and most < (step & -step))

    def cast(self, op: str, source: Type, target: Type, a: Affine | None, rounding: Rounding) -> Affine | None:
        """The same number in another width; a negative one only where its sign goes with it."""
        if a is None or source.is_float or target.is_float or op not in ("view", "resize"):
            return None
        if a.base is not None:
            return a if source.bits == target.bits else None
        widens = target.bits > source.bits and not source.is_signed
        return None if widens and self.bounds(a)[0] < 0 else self.within(target, a)

    def bits(self, op: str, type: Type, a: object) -> None:
        """No form."""

    def floating(self, op: str, type: Type, rounding: Rounding, *args: object) -> None:
        """No form."""

    def compare(self, op: str, type: Type, a: object, b: object) -> None:
        """No form."""

    def select(self, type: Type, condition: object, a: Affine | None, b: Affine | None) -> Affine | None:
        """One of two that are alike."""
        return a if a == b else None

    def round(self, mode: str, type: Type, a: object) -> None:
        """No form."""

    def lookup(self, type: Type, table: tuple[int, ...], index: object) -> None:
        """No form."""


def stored_bytes(bound: Bound) -> int:
    """The bytes that a plain access reads or writes at once; 0 for any other instruction."""
    summary = bound.summary
    access = summary.accesses[0]
    single = len(summary.accesses) == 1 and not summary.copies and not summary.bulk and access.type is not None
    plain = single and access.order is Order.WEAK and not access.asynchronous and access.mbarrier is None
    return access.element * access.count if plain else 0


def always_reached(function: Function) -> set[int]:
    """The segments that each thread of a kernel comes to, if it ends: those that post-dominate the first."""
    found = segments(function)
    exit = len(found)
    after = list[list[int]]()
    for segment in found:
        last = function.instructions[segment.end - 1]
        ends = not segment.successors or last.summary.ends_thread
        after.append([*dict.fromkeys(segment.successors), *([exit] if ends else [])])
    parents, reached, at = post_dominators(after, exit), set[int](), 0
    while at != exit and at in parents and found:
        reached.add(at)
        at = parents[at]
    return reached


__all__ = ["Slice", "own_slices"]
