"""Instrumentation: beside each value the algebra follows a mask of its unset bytes, and a tag for its provenance.

Both are arrays over lanes, or one scalar for all.  The mask has one bit for each unset byte.  A tag is NUMBER (0), the
number of the object that the value is an address of, or LOST for a value that was computed from addresses and is none.  The
rules follow the operations of a meaning, whatever the instruction: an address plus or minus a number is an address of the
same object, the difference of two addresses of one object is a number, and a product or a mixture of addresses is LOST.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptxvm.algebra.types import Type, pred
from ptxvm.algebra.value import Rounding, Value
from ptxvm.analysis.provenance import WORD
from ptxvm.engine.interp import arrays, primitives
from ptxvm.engine.interp.trace import TraceAlgebra, TracedCode
from ptxvm.machine.per_lane import PerLane

NUMBER, LOST = np.int64(0), np.int64(-1)
SET = np.uint32(0)
JOINING = frozenset({"add", "and", "or"})
SHIFTS = frozenset({"shl", "shr"})
BYTE = 8


# ── tags ────────────────────────────────────────────────────────────────────────────────


def joined(a: PerLane, b: PerLane) -> PerLane:
    """The tag of a sum: the tag of the address, where the other operand is a number."""
    return np.where(b == 0, a, np.where(a == 0, b, LOST))[()]


def apart(a: PerLane, b: PerLane) -> PerLane:
    """The tag of a difference."""
    return np.where(b == 0, a, np.where((a == b) & (a > 0), NUMBER, LOST))[()]


def lost(*tags: PerLane) -> PerLane:
    """The tag of a result that is no address, whatever its operands are."""
    found: PerLane = False
    for tag in tags:
        found = found | (tag != 0)
    return np.where(found, LOST, NUMBER)[()]


# ── masks of unset bytes ────────────────────────────────────────────────────────────────


def whole(type: Type) -> int:
    """The mask of all bytes of a type."""
    return (1 << max(type.bits // BYTE, 1)) - 1


def either(a: PerLane, b: PerLane) -> PerLane:
    """The bytes that are unset in either mask."""
    return a | b


def but(mask: PerLane, kept: np.uint32) -> PerLane:
    """The bytes of a mask that are kept."""
    return mask & kept


def moved(mask: PerLane, bits: int, all_bytes: np.uint32) -> PerLane:
    """The mask of a value that is shifted left, or right where `bits` is negative."""
    wide = np.asarray(mask).astype(np.uint64)
    low, rest = divmod(abs(bits), BYTE)
    if bits >= 0:
        found = wide << np.uint64(low)
        found = found | found << np.uint64(1) if rest else found
    else:
        found = wide >> np.uint64(low)
        found = found | found >> np.uint64(1) if rest else found
    return (found & np.uint64(all_bytes)).astype(np.uint32)[()]


def extended(mask: PerLane, top: np.uint32, more: np.uint32) -> PerLane:
    """The mask of a sign-extended value: the new bytes are unset where the top byte is."""
    return np.where(mask & top, mask | more, mask)[()]


# ── the algebra ─────────────────────────────────────────────────────────────────────────


class ShadowAlgebra(TraceAlgebra):
    """Writes code for the shadows beside the code for the values.

    `tags` and `unset` map variables of the code to their shadows; a variable in neither is a set number.  `use` is called
    for an operand whose unset bytes cannot be followed any further.
    """

    def __init__(self, code: TracedCode, use: Callable[[str], None]) -> None:
        super().__init__(code)
        self.tags: dict[str, str] = {}
        self.unset: dict[str, str] = {}
        self.constants: dict[str, object] = {}
        self.use = use

    # ── what an operation makes of shadows ──────────────────────────────────────────────

    def tag(self, raw: str) -> str:
        """The variable for the tag of a value."""
        return self.tags.get(raw) or self.code.refer(NUMBER)

    def mask(self, raw: str) -> str:
        """The variable for the unset bytes of a value."""
        return self.unset.get(raw) or self.code.refer(SET)

    def consumed(self, type: Type, raw: str, *args: str) -> str:
        """A result that is no address and whose bytes depend on all bytes of the operands."""
        for each in args:
            self.use(each)
        self.forget(type, raw, *args)
        return raw

    def forget(self, type: Type, raw: str, *args: str) -> None:
        """A result that is an address of no known object."""
        found = [self.tags[each] for each in args if each in self.tags]
        if found and type is not pred and raw not in args:
            self.tags[raw] = self.apply(lost, *found)

    # ── the operations ──────────────────────────────────────────────────────────────────

    def integer(self, op: str, type: Type, a: str, b: str) -> str:
        """Operations on integers and predicates."""
        raw = super().integer(op, type, a, b)
        self._fold(raw, primitives.integer(op, type), a, b)
        if a in self.tags or b in self.tags:
            self._integer_tag(op, type, raw, a, b)
        if a in self.unset or b in self.unset:
            self._integer_unset(op, type, raw, a, b)
        return raw

    def _integer_tag(self, op: str, type: Type, raw: str, a: str, b: str) -> None:
        if type is pred:
            return
        here = [each for each in (a, b) if each in self.tags]
        if type.bits < WORD or not self._keeps(op, b, here, a):
            self.forget(type, raw, a, b)
        elif len(here) == 1:
            self.tags[raw] = self.tags[here[0]]
        else:
            self.tags[raw] = self.apply(joined if op in JOINING else apart, self.tags[a], self.tags[b])

    def _keeps(self, op: str, b: str, here: list[str], a: str) -> bool:
        """May the result be an address of the same object?"""
        if op in SHIFTS:
            return self.known(b) == 0
        return op in JOINING or (op == "sub" and a in here)

    def _integer_unset(self, op: str, type: Type, raw: str, a: str, b: str) -> None:
        every = np.uint32(whole(type))
        if op in ("and", "or", "xor"):
            sides = [self.unset[each] for each in (a, b) if each in self.unset]
            made = sides[0] if len(sides) == 1 else self.apply(either, *sides)
            kept = self._decided(op, type, self.known(b if a in self.unset else a))
            self.unset[raw] = self.apply(but, made, self.code.refer(kept)) if kept != every else made
        elif op in SHIFTS and (amount := self.known(b)) is not None and not (op == "shr" and type.is_signed):
            bits = amount if op == "shl" else -amount
            self.unset[raw] = self.code.emit(f"{self.code.refer(moved)}({self.unset[a]}, {bits}, {self.code.refer(every)})")
        else:
            self.use(a)
            self.use(b)

    def _decided(self, op: str, type: Type, constant: int | None) -> np.uint32:
        """The bytes of a result that a constant operand does not determine."""
        if constant is None or op == "xor":
            return np.uint32(whole(type))
        settled = 0 if op == "and" else 0xFF
        width = max(type.bits // BYTE, 1)
        return np.uint32(sum(1 << n for n in range(width) if constant >> BYTE * n & 0xFF != settled))

    def _fold(self, raw: str, function: Callable[..., object] | None, *args: str) -> None:
        """Record a result that is computed from constants, as amounts of shifts are, as a constant."""
        values = [self.constant(each) for each in args]
        if function is not None and all(value is not None for value in values):
            with np.errstate(all="ignore"):
                self.constants[raw] = function(*values)

    def constant(self, raw: str) -> PerLane:
        """The value of a constant, as it is represented."""
        value = self.constants.get(raw)
        return self.code.names.get(raw) if value is None else value

    def known(self, raw: str) -> int | None:
        """The value of a constant integer or predicate."""
        value = self.constant(raw)
        if isinstance(value, np.void) and value.dtype == arrays.B128:
            return int(value["lo"]) | int(value["hi"]) << 64
        return int(value) if isinstance(value, np.integer | np.bool_) else None

    def select(self, type: Type, condition: str, a: str, b: str) -> str:
        """`a` where the condition holds, else `b`; so are the shadows."""
        if (decided := self.known(condition)) is not None:
            return a if decided else b
        raw = super().select(type, condition, a, b)
        self.use(condition)
        if a in self.tags or b in self.tags:
            self.tags[raw] = self.apply(arrays.select, condition, self.tag(a), self.tag(b))
        if a in self.unset or b in self.unset:
            self.unset[raw] = self.apply(arrays.select, condition, self.mask(a), self.mask(b))
        return raw

    def cast(self, op: str, source: Type, target: Type, a: str, rounding: Rounding) -> str:
        """A view keeps the shadows; a resized value keeps the shadows of the bytes that stay."""
        raw = super().cast(op, source, target, a, rounding)
        self._fold(raw, primitives.cast(op, source, target, rounding), a)
        if raw == a or (a not in self.tags and a not in self.unset):
            return raw
        if op not in ("view", "resize") or pred in (source, target):
            return self.consumed(target, raw, a)
        if a in self.tags:
            if target.bits >= WORD:
                self.tags[raw] = self.tags[a]
            else:
                self.forget(target, raw, a)
        if a in self.unset:
            self.unset[raw] = self._resized(source, target, self.unset[a])
        return raw

    def _resized(self, source: Type, target: Type, mask: str) -> str:
        before, after = whole(source), whole(target)
        if after < before:
            return self.apply(but, mask, self.code.refer(np.uint32(after)))
        if after > before and source.is_signed:
            top, more = np.uint32(before & ~(before >> 1)), np.uint32(after & ~before)
            return self.apply(extended, mask, self.code.refer(top), self.code.refer(more))
        return mask

    def bits(self, op: str, type: Type, a: str) -> str:
        """`popc clz reverse`."""
        return self.consumed(type, super().bits(op, type, a), a)

    def floating(self, op: str, type: Type, rounding: Rounding, *args: str) -> str:
        """Correctly rounded arithmetic."""
        return self.consumed(type, super().floating(op, type, rounding, *args), *args)

    def compare(self, op: str, type: Type, a: str, b: str) -> str:
        """A comparison; the result is a predicate."""
        raw = super().compare(op, type, a, b)
        self._fold(raw, primitives.COMPARE[op], a, b)
        return self.consumed(pred, raw, a, b)

    def round(self, mode: str, type: Type, a: str) -> str:
        """Round to an integral value."""
        return self.consumed(type, super().round(mode, type, a), a)

    def lookup(self, type: Type, table: tuple[int, ...], index: str) -> str:
        """An entry of a table."""
        return self.consumed(type, super().lookup(type, table, index), index)


def _consuming(name: str) -> Callable[[Value], Value]:
    function = getattr(TraceAlgebra, f"derived_{name}")

    def call(a: Value) -> Value:
        alg, made = a.alg, function(a)
        if isinstance(alg, ShadowAlgebra):
            alg.consumed(made.type, made.raw, a.raw)
        return made  # type: ignore[no-any-return]

    return call


for _name in primitives.DERIVED:
    setattr(ShadowAlgebra, f"derived_{_name}", staticmethod(_consuming(_name)))
