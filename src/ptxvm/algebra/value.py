"""Values during execution, and the few primitives that an engine gives them.

A meaning in the catalog is written over `Value`.  What a value *is* belongs to the engine:
lane arrays (the interpreter), names in generated source (its tracer), LLVM values (the JIT),
or nothing at all (the check of the types).  An engine implements `Algebra` and no more.

Every primitive is total: a shift past the width gives zero or the sign, a division by zero
gives all ones, a conversion out of range saturates and takes NaN to zero.  Everything else
is derived from these, once, in `algebra.derived`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from ptxvm.algebra.types import Type, pred

Rounding = Literal["rn", "rz", "rm", "rp", "odd"]
"""To nearest even, to zero, down, up; `odd` keeps what was lost as the lowest bit, for a second rounding."""


# From whether the source and the target are floats.
CONVERSIONS = {(True, True): "ftof", (True, False): "ftoi", (False, True): "itof", (False, False): "resize"}


Raw: TypeAlias = Any
"""What an engine holds for a value: an array, the name of a variable, or nothing.  Only the engine knows."""


class Algebra(Protocol):
    """What an engine must know how to do.  A `Raw` is the engine's own representation of a value."""

    def const(self, type: Type, x: float) -> Raw:
        """A constant; integers are taken modulo their width, floats by value."""

    def integer(self, op: str, type: Type, a: Raw, b: Raw) -> Raw:
        """`add sub mul mul_hi div rem and or xor shl shr min max` on integers and predicates.

        The amount of a shift has the type of what is shifted, read as unsigned.
        """

    def bits(self, op: str, type: Type, a: Raw) -> Raw:
        """`popc` `clz` `reverse`, as a value of the same type."""

    def floating(self, op: str, type: Type, rounding: Rounding, *args: Raw) -> Raw:
        """`add sub mul div sqrt fma` on f32 and f64, correctly rounded; subnormals are kept, NaN is any NaN."""

    def compare(self, op: str, type: Type, a: Raw, b: Raw) -> Raw:
        """`eq ne lt le gt ge`; a comparison with NaN is false, but for `ne`."""

    def select(self, type: Type, condition: Raw, a: Raw, b: Raw) -> Raw:
        """`a` where the condition holds, else `b`."""

    def cast(self, op: str, source: Type, target: Type, a: Raw, rounding: Rounding) -> Raw:
        """`view` (same bits), `resize` (integers), `itof`, `ftoi` (truncates, saturates, NaN is 0), `ftof`."""

    def round(self, mode: str, type: Type, a: Raw) -> Raw:
        """A float to an integral float: `rni rzi rmi rpi`."""

    def lookup(self, type: Type, table: tuple[int, ...], index: Raw) -> Raw:
        """An entry of a table of integers, as a value of the type; the u32 index is within the table."""


class Value:
    """An operand during execution: a type, and whatever the engine holds for it."""

    __slots__ = ("alg", "raw", "type")

    def __init__(self, alg: Algebra, type: Type, raw: Raw) -> None:
        self.alg, self.type, self.raw = alg, type, raw

    def lift(self, x: Value | float) -> Value:
        """`x` as a value of this type; a value must have its size already, and be a float as it is or is not."""
        if not isinstance(x, Value):
            return Value(self.alg, self.type, self.alg.const(self.type, x))
        if x.type.bits != self.type.bits or x.type.is_float != self.type.is_float:
            raise TypeError(f"{self.type} with {x.type}")
        return x.view(self.type)

    def _integer(self, op: str, other: Value | int) -> Value:
        if self.type.is_float:
            raise TypeError(f"integer {op} on {self.type}")
        return Value(self.alg, self.type, self.alg.integer(op, self.type, self.raw, self.lift(other).raw))

    def _arithmetic(self, op: str, other: Value | float) -> Value:
        if self.type.is_float:
            return self.floating(op, other)
        return self._integer(op, other)  # type: ignore[arg-type]

    def floating(self, op: str, *others: Value | float, rounding: Rounding = "rn") -> Value:
        """A correctly rounded `add sub mul div sqrt fma` of this and the others."""
        raws = [self.lift(o).raw for o in others]
        return Value(self.alg, self.type, self.alg.floating(op, self.type, rounding, self.raw, *raws))

    def compare(self, op: str, other: Value | float) -> Value:
        """The predicate `self op other`, for `eq ne lt le gt ge`."""
        return Value(self.alg, pred, self.alg.compare(op, self.type, self.raw, self.lift(other).raw))

    def __add__(self, other: Value | float) -> Value:
        return self._arithmetic("add", other)

    def __sub__(self, other: Value | float) -> Value:
        return self._arithmetic("sub", other)

    def __mul__(self, other: Value | float) -> Value:
        return self._arithmetic("mul", other)

    def __and__(self, other: Value | int) -> Value:
        return self._integer("and", other)

    def __or__(self, other: Value | int) -> Value:
        return self._integer("or", other)

    def __xor__(self, other: Value | int) -> Value:
        return self._integer("xor", other)

    def __lshift__(self, other: Value | int) -> Value:
        return self._integer("shl", other)

    def __rshift__(self, other: Value | int) -> Value:
        return self._integer("shr", other)

    def __floordiv__(self, other: Value | int) -> Value:
        """Integer quotient, truncated; all ones where the divisor is zero."""
        return self._integer("div", other)

    def __mod__(self, other: Value | int) -> Value:
        """Integer remainder with the sign of the dividend; the dividend where the divisor is zero."""
        return self._integer("rem", other)

    def mul_hi(self, other: Value | int) -> Value:
        """The upper half of the full integer product."""
        return self._integer("mul_hi", other)

    def min(self, other: Value | int) -> Value:
        """The lesser of two integers."""
        return self._integer("min", other)

    def max(self, other: Value | int) -> Value:
        """The greater of two integers."""
        return self._integer("max", other)

    def __lt__(self, other: Value | float) -> Value:
        return self.compare("lt", other)

    def __le__(self, other: Value | float) -> Value:
        return self.compare("le", other)

    def __gt__(self, other: Value | float) -> Value:
        return self.compare("gt", other)

    def __ge__(self, other: Value | float) -> Value:
        return self.compare("ge", other)

    def eq(self, other: Value | float) -> Value:
        """Equal; named, since `==` compares Python objects."""
        return self.compare("eq", other)

    def ne(self, other: Value | float) -> Value:
        """Not equal; true for NaN."""
        return self.compare("ne", other)

    def __invert__(self) -> Value:
        return self ^ (1 if self.type is pred else -1)

    def __neg__(self) -> Value:
        """Two's complement; floats flip their sign bit in `derived.negate`."""
        return self.lift(0) - self

    def popc(self) -> Value:
        """How many bits are one."""
        return Value(self.alg, self.type, self.alg.bits("popc", self.type, self.raw))

    def clz(self) -> Value:
        """How many leading bits are zero; the width for zero."""
        return Value(self.alg, self.type, self.alg.bits("clz", self.type, self.raw))

    def reverse(self) -> Value:
        """The bits in the opposite order."""
        return Value(self.alg, self.type, self.alg.bits("reverse", self.type, self.raw))

    def to(self, target: Type, rounding: Rounding = "rn") -> Value:
        """Converted to `target`.

        Integers extend (as this type is signed) or truncate; integers to floats and floats to floats
        round; floats to integers truncate and saturate, NaN is 0; predicates become 0 and 1.
        """
        if target is self.type:
            return self
        if target is pred:
            return self.ne(0)
        op = CONVERSIONS[self.type.is_float, target.is_float]
        return Value(self.alg, target, self.alg.cast(op, self.type, target, self.raw, rounding))

    def view(self, target: Type) -> Value:
        """The same bits, as another type of the same width."""
        if target is self.type:
            return self
        if target.bits != self.type.bits:
            raise TypeError(f"{self.type} viewed as {target}")
        return Value(self.alg, target, self.alg.cast("view", self.type, target, self.raw, "rn"))

    def round(self, mode: str) -> Value:
        """A float rounded to an integral value: `rni rzi rmi rpi`."""
        return Value(self.alg, self.type, self.alg.round(mode, self.type, self.raw))


def lookup(table: tuple[int, ...], index: Value, type: Type) -> Value:
    """The entry of a table that a u32 index, which must lie within it, picks."""
    return Value(index.alg, type, index.alg.lookup(type, table, index.raw))


def select(condition: Value, a: Value | float, b: Value | float) -> Value:
    """`a` where the condition holds, else `b`; at least one of them is a Value and gives the type."""
    like = a if isinstance(a, Value) else b
    if not isinstance(like, Value):
        raise TypeError("select needs a Value among its two choices")
    a, b = like.lift(a), like.lift(b)
    return Value(condition.alg, a.type, condition.alg.select(a.type, condition.raw, a.raw, b.raw))


Operand: TypeAlias = Any
"""An argument or a result of a derived operation: values, types and numbers."""

F = TypeVar("F", bound=Callable[..., Operand])


def derived(function: F) -> F:
    """An operation written over the primitives, which an engine may replace by one of the same name.

    The engine's has the name `derived_NAME`, takes the same arguments, and is compared with this one by a test.
    """
    name = f"derived_{function.__name__}"

    @wraps(function)
    def call(first: Value, *rest: Operand) -> Operand:
        replacement = getattr(first.alg, name, None)
        return function(first, *rest) if replacement is None else replacement(first, *rest)

    return call  # type: ignore[return-value]
