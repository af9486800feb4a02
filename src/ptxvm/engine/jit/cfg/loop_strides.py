"""Loop strides: how far an iteration of a loop moves the address of an access.

The values that a loop carries are followed through its body as polynomials over registers: those that it changes, as they are
when an iteration begins, and those that stay.  What has been added to an address when the next iteration begins is its stride.
It only says what to prefetch: sums are taken not to wrap, all instructions to run once in each iteration.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from ptxvm.algebra.types import Type
from ptxvm.algebra.value import Algebra, Rounding, Value
from ptxvm.analysis.divergence import by_meaning, registers_of
from ptxvm.analysis.flow import address_registers, bit_of
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.shapes import constant
from ptxvm.analysis.symbols import Register
from ptxvm.dataclass import dataclass
from ptxvm.engine.data_flow import written
from ptxvm.engine.loops import Loop, loops
from ptxvm.syntax import tree

Monomial: TypeAlias = "tuple[object, ...]"
"""Registers that are multiplied, in some order; `STAYS` is a value that the loop does not change."""

Form: TypeAlias = "dict[Monomial, int]"
"""A polynomial: the factor of each monomial, none of which is 0."""

STAYS = object()
LARGEST = 12  # monomials; longer polynomials are not followed
DEGREE = 2
WIDEST = 64  # bits of a value that is shifted


@dataclass(frozen=True, slots=True)
class Stride:
    """What an iteration adds to an address: the sum of products of registers that the loop does not change.

    `waits` where warps of the CTA take turns within an iteration.
    """

    products: tuple[tuple[tuple[Register, ...], int], ...]
    waits: bool

    def is_below(self, length: int) -> bool:
        """Is it a number of bytes below some length?"""
        return all(not registers and abs(factor) < length for registers, factor in self.products)


def loop_strides(function: Function) -> dict[Bound, Stride]:
    """The strides of accesses, in the innermost loop that each is in, where they are known and not 0."""
    code, found, seen = function.instructions, dict[Bound, Stride](), set[int]()
    for first, last in sorted(loops(code), key=lambda loop: loop[1] - loop[0]):
        own = [n for n in range(first, last + 1) if n not in seen]
        if any(code[n].summary.accesses for n in own):
            body = _Body(code, own, (first, last))
            found.update(body.strides())
        seen.update(own)
    return found


class _Body:
    """The instructions of a loop that are in no loop within it."""

    def __init__(self, code: list[Bound], own: list[int], loop: Loop) -> None:
        whole, here = range(loop[0], loop[1] + 1), {*own}
        self.body = [code[n] for n in own]
        self.lost = written(code[n] for n in whole if n not in here)  # what inner loops change
        self.changed = self.lost | written(self.body)
        self.waits = any("waits" in code[n].i.of.effects for n in whole)
        self.forms: dict[Register, Form | None] = {}
        self.algebra = Forms(self)

    def strides(self) -> Iterator[tuple[Bound, Stride]]:
        """The accesses with their strides."""
        addresses: list[tuple[Bound, Form]] = []
        for bound in self.body:
            registers = list(address_registers(bound))
            if bound.summary.accesses and len(registers) == 1 and (form := self.form(registers[0])) is not None:
                addresses.append((bound, form))
            self._step(bound)
        for bound, form in addresses:
            moved = self._moved(form)
            symbols = [each for monomial in moved or () for each in monomial]
            if moved and all(isinstance(each, Register) and not each.type.is_float for each in symbols):
                yield bound, Stride(tuple(moved.items()), self.waits)  # type: ignore[arg-type]

    def form(self, register: Register) -> Form | None:
        """The polynomial of a register; None for unknown."""
        if register in self.forms:
            return self.forms[register]
        return None if bit_of(register) & self.lost else {(register,): 1}

    def carried(self, form: Form) -> bool:
        """Does the loop change the value?"""
        return any(self._changes(each) for monomial in form for each in monomial)

    def _changes(self, symbol: object) -> bool:
        return isinstance(symbol, Register) and bool(bit_of(symbol) & self.changed)

    def _step(self, bound: Bound) -> None:
        for result in bound.results():
            self.forms[result] = None  # of a call
        for name, form in zip(bound.i.destinations(), self._results(bound), strict=False):  # None where it has no result
            for register in registers_of(bound.operands.get(name), bound):
                self.forms[register] = form if bound.node.guard is None else None

    def _results(self, bound: Bound) -> tuple[Form | None, ...]:
        i = bound.i
        unknown = (None,) * len(i.destinations())
        if i.of.effects and not (bound.summary.converts_address and not bound.summary.accesses):
            return unknown
        operands = []
        for name in i.of.sources:
            type, node = i.type_of(name), bound.operands.get(name)
            if type is None or node is None:
                return unknown
            operands.append(Value(self.algebra, type, self._operand(node, bound)))
        if i.of.effects:
            return (operands[0].raw,)
        made = by_meaning(i, operands)
        return unknown if made is None else tuple(each.raw if isinstance(each, Value) else None for each in made)

    def _operand(self, node: tree.Operand, bound: Bound) -> Form | None:
        if isinstance(node, tree.Name):
            symbol = bound.scope.find(node.text)
            return self.form(symbol) if isinstance(symbol, Register) and symbol.count == 1 else {(STAYS,): 1}
        known = constant(node)
        return polynomial({(): known}) if isinstance(known, int) else {(STAYS,): 1}

    def _moved(self, form: Form) -> Form | None:
        """What an iteration adds to a polynomial."""
        total: Form = {}
        for monomial, factor in form.items():
            moving = [each for each in monomial if self._changes(each)]
            if not moving:
                continue
            now = self.form(moving[0])  # type: ignore[arg-type]
            if len(moving) > 1 or now is None:
                return None
            step = plus(now, {(moving[0],): 1}, -1)
            if self.carried(step):
                return None
            rest = list(monomial)
            rest.remove(moving[0])
            added = times(step, {tuple(rest): factor})
            if added is None:
                return None
            total = plus(total, added)
        return total


# ── polynomials ─────────────────────────────────────────────────────────────────────────


def polynomial(parts: Form) -> Form:
    """The parts whose factors are not 0."""
    return {monomial: factor for monomial, factor in parts.items() if factor}


def number(form: Form) -> int | None:
    """The number that a polynomial is, if it is one."""
    return form.get((), 0) if form.keys() <= {()} else None


def plus(a: Form, b: Form, sign: int = 1) -> Form:
    """A sum, or a difference."""
    total = dict(a)
    for monomial, factor in b.items():
        total[monomial] = total.get(monomial, 0) + sign * factor
    return polynomial(total)


def times(a: Form, b: Form) -> Form | None:
    """A product; None where it is too long to be followed."""
    total: Form = {}
    for one, factor in a.items():
        for other, by in b.items():
            monomial = tuple(sorted((*one, *other), key=lambda each: getattr(each, "name", "")))
            if len(monomial) > DEGREE:
                return None
            total[monomial] = total.get(monomial, 0) + factor * by
    return polynomial(total) if len(total) <= LARGEST else None


class Forms(Algebra):
    """An algebra whose values are polynomials."""

    def __init__(self, body: _Body) -> None:
        self.body = body

    def other(self, *values: Form | None) -> Form | None:
        """What is computed of some values in other ways: it stays where they do."""
        known = [each for each in values if each is not None and not self.body.carried(each)]
        return {(STAYS,): 1} if len(known) == len(values) else None

    def const(self, type: Type, x: float) -> Form | None:
        """A constant."""
        return polynomial({(): x}) if isinstance(x, int) else {(STAYS,): 1}

    def integer(self, op: str, type: Type, a: Form | None, b: Form | None) -> Form | None:
        """Sums and products."""
        if a is None or b is None:
            return None
        found: Form | None = None
        if op in ("add", "sub"):
            found = plus(a, b, 1 if op == "add" else -1)
        elif op == "mul":
            found = times(a, b)
        elif (by := number(b)) is not None:
            found = self._with_number(op, a, by)
        return found if found is not None and len(found) <= LARGEST else self.other(a, b)

    def _with_number(self, op: str, a: Form, by: int) -> Form | None:
        if op == "shl" and 0 <= by < WIDEST:
            return times(a, {(): 1 << by})
        value = number(a)
        if op not in ("min", "max") or value is None:
            return None
        return polynomial({(): min(value, by) if op == "min" else max(value, by)})  # the amount of a shift

    def cast(self, op: str, source: Type, target: Type, a: Form | None, rounding: Rounding) -> Form | None:
        """The same integer, as far as it goes."""
        return a if op in ("view", "resize") and not source.is_float and not target.is_float else self.other(a)

    def bits(self, op: str, type: Type, a: Form | None) -> Form | None:
        """Of one value."""
        return self.other(a)

    def floating(self, op: str, type: Type, rounding: Rounding, *args: Form | None) -> Form | None:
        """Of several."""
        return self.other(*args)

    def compare(self, op: str, type: Type, a: Form | None, b: Form | None) -> Form | None:
        """Of two."""
        return self.other(a, b)

    def select(self, type: Type, condition: Form | None, a: Form | None, b: Form | None) -> Form | None:
        """Of three."""
        return self.other(condition, a, b)

    def round(self, mode: str, type: Type, a: Form | None) -> Form | None:
        """Of one value."""
        return self.other(a)

    def lookup(self, type: Type, table: tuple[int, ...], index: Form | None) -> Form | None:
        """Of one value."""
        return self.other(index)
