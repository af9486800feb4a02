"""Tracing: the algebra that writes NumPy source, so that a meaning that runs once becomes straight-line code.

A value is the name of a variable of that code.  Equal expressions share a variable.  `origin` tells which variables may
share their memory with a register, so that the code never lets two registers share theirs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ptxvm.algebra.types import Type
from ptxvm.algebra.value import Rounding, Value
from ptxvm.engine.interp import arrays, primitives
from ptxvm.machine.per_lane import PerLane

INFIX: dict[np.ufunc, str] = {
    np.add: "+", np.subtract: "-", np.multiply: "*", np.divide: "/", np.bitwise_and: "&", np.bitwise_or: "|",
    np.bitwise_xor: "^", np.equal: "==", np.not_equal: "!=", np.less: "<", np.less_equal: "<=", np.greater: ">",
    np.greater_equal: ">=",
}  # fmt: skip
VARIABLE = re.compile(r"\bt\d+\b")
MAY_RETURN_ARGUMENT = {"flush_subnormal", "canonical_nan", "clamp01"}


class TracedCode:
    """Lines of source under construction, with the objects that they name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}  # the namespace of traced code
        self.known: dict[str, str] = {}
        self.objects: dict[int, str] = {}
        self.origin: dict[str, str] = {}
        self.pure: set[str] = set()
        self.count = 0

    def fresh(self) -> str:
        """A new variable."""
        self.count += 1
        return f"t{self.count}"

    def emit(self, text: str, *, origin: str = "", pure: bool = True) -> str:
        """A variable for the value of an expression."""
        if pure and text in self.known:
            return self.known[text]
        name = self.fresh()
        self.lines.append(f"{name} = {text}")
        if pure:
            self.known[text] = name
            self.pure.add(name)
        self.origin[name] = self.origin.get(origin, origin) or name
        return name

    def run(self, text: str) -> None:
        """A statement."""
        self.lines.append(text)

    def needed(self, after: list[str]) -> list[str]:
        """The lines without dead ones: without values that neither later lines nor those `after` use."""
        used = {name for line in after for name in VARIABLE.findall(line)}
        kept = []
        for line in reversed(self.lines):
            name, _, text = line.partition(" = ")
            if name in self.pure and name not in used:
                continue
            used.update(VARIABLE.findall(text if name in self.pure else line))
            kept.append(line)
        return kept[::-1]

    def refer(self, thing: object) -> str:
        """The name by which the code refers to an object."""
        name = self.objects.get(id(thing))
        if name is None:
            name = self.objects[id(thing)] = f"k{len(self.objects)}"
            self.names[name] = thing
        return name


class TraceAlgebra:
    """Values are names of variables of the code."""

    def __init__(self, code: TracedCode) -> None:
        self.code = code

    def apply(self, function: Callable[..., PerLane], *args: str) -> str:
        """A variable for the result of a function."""
        sign = INFIX.get(function) if isinstance(function, np.ufunc) else None
        if sign:
            return self.code.emit(f"{args[0]} {sign} {args[1]}")
        return self.code.emit(f"{self.code.refer(function)}({', '.join(args)})")

    def const(self, type: Type, x: float) -> str:
        """A constant as a NumPy scalar, which the code refers to by name."""
        value = arrays.const(type, x)
        key = f"{value.dtype}:{value.tobytes().hex()}"
        name = self.code.known.get(key)
        if name is None:
            name = self.code.known[key] = self.code.refer(value)
            self.code.origin[name] = "constant"
        return name

    def integer(self, op: str, type: Type, a: str, b: str) -> str:
        """Operations on integers and predicates; a constant shift within the width is NumPy's own."""
        if op in ("shl", "shr") and isinstance(n := self.code.names.get(b), np.integer) and 0 <= int(n) < type.bits:
            return self.code.emit(f"{a} {'<<' if op == 'shl' else '>>'} {b}")
        return self.apply(primitives.integer(op, type), a, b)

    def bits(self, op: str, type: Type, a: str) -> str:
        """`popc clz reverse`."""
        return self.apply(primitives.BITS[op], a)

    def floating(self, op: str, type: Type, rounding: Rounding, *args: str) -> str:
        """Correctly rounded arithmetic."""
        return self.apply(primitives.floating(op, type, rounding), *args)

    def compare(self, op: str, type: Type, a: str, b: str) -> str:
        """A comparison; the result is a predicate."""
        return self.apply(primitives.compare(op, type), a, b)

    def select(self, type: Type, condition: str, a: str, b: str) -> str:
        """`a` where the condition holds, else `b`."""
        return self.apply(arrays.select, condition, a, b)

    def cast(self, op: str, source: Type, target: Type, a: str, rounding: Rounding) -> str:
        """A conversion; a view keeps its origin."""
        function = primitives.cast(op, source, target, rounding)
        if function is None:
            return a
        dtype = self.code.refer(arrays.dtype(target))
        if op == "view":
            return self.code.emit(f"{a}.view({dtype})", origin=a)
        if op == "resize" and arrays.B128 not in (arrays.dtype(source), arrays.dtype(target)):
            return self.code.emit(f"{a}.astype({dtype})")
        return self.apply(function, a)

    def round(self, mode: str, type: Type, a: str) -> str:
        """Round to an integral value."""
        return self.apply(primitives.round_integral(mode), a)

    def lookup(self, type: Type, table: tuple[int, ...], index: str) -> str:
        """An entry of a table."""
        return self.apply(primitives.lookup(table, type), index)


def _replacement(name: str) -> Callable[[Value], Value]:
    function = primitives.derived(name)

    def call(a: Value) -> Value:
        code: TracedCode = a.alg.code  # type: ignore[attr-defined]
        origin = a.raw if name in MAY_RETURN_ARGUMENT else ""
        raw = code.emit(f"{code.refer(function)}({a.raw})", origin=origin)
        return Value(a.alg, primitives.derived_type(name, a.type), raw)

    return call


for _name in primitives.DERIVED:
    setattr(TraceAlgebra, f"derived_{_name}", staticmethod(_replacement(_name)))
