"""The base of the algebra: values over lanes as LLVM operands, and the operations that its helpers need."""

from __future__ import annotations

import struct
from abc import abstractmethod
from typing import Self

from ptxvm.algebra.types import Type, bf16, f16, f32, f64
from ptxvm.algebra.value import Algebra, Rounding, Value
from ptxvm.engine.jit.ir import constant_folding
from ptxvm.engine.jit.ir.builder import Code
from ptxvm.engine.jit.ir.lane_values import (
    Affine,
    Pattern,
    Raw,
    Scalar,
    Scaled,
    Terms,
    Varying,
    known_lanes,
    scalar_type,
    splat_literal,
    sums,
    text,
    vector_literal,
    vector_type,
)

CANONICAL = 0x7FFF_FFFF
MANY = 128  # lanes of f32, whose masks are more than the processor has registers for
Extremes = tuple[str, str]  # a predicate holds surely in all lanes, surely in none: two operands of i1


class VectorAlgebra(Algebra):
    """The part of the algebra that its helpers (roundings, tables, approximations) use; it writes into `code`."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.width = code.width
        self.extremes: dict[str, Extremes] = {}
        self.derives = False  # whether functions are written by their derivations
        self.flushed: dict[str, str] = {}  # vectors, and their flushed values, where these exist already
        self.unflushed: dict[str, str] = {}  # and the other way round
        self.low: dict[str, tuple[str, int]] = {}  # the low half of vectors of 64 bits: a vector, and a constant to add
        self.scaled: dict[str, Scaled] = {}  # vectors of 64 bits that are multiples of vectors of 32 bits

    def within(self, code: Code) -> Self:
        """The same algebra for another function of the module."""
        return type(self)(code)

    @abstractmethod
    def widened(self, times: int) -> Self:
        """The same algebra for vectors that are so many times as long."""

    # ── operations ──────────────────────────────────────────────────────────────────────

    @abstractmethod
    def integer(self, op: str, type: Type, a: Raw, b: Raw) -> Raw:
        """An operation on integers, which may wrap."""

    @abstractmethod
    def scalar(self, op: str, bits: int, a: Scalar, b: Scalar) -> Scalar:
        """An operation on scalars."""

    @abstractmethod
    def collect(self, bits: int, terms: tuple[tuple[Pattern, Scalar, int], ...]) -> Terms:
        """The terms of a sum, each pattern once."""

    @abstractmethod
    def floating(self, op: str, type: Type, rounding: Rounding, *args: Raw) -> Raw:
        """An operation on floating-point numbers."""

    @abstractmethod
    def compare(self, op: str, type: Type, a: Raw, b: Raw) -> Raw:
        """A comparison."""

    @abstractmethod
    def select(self, type: Type, condition: Raw, a: Raw, b: Raw) -> Raw:
        """Select one of two values, lane by lane."""

    @abstractmethod
    def cast(self, op: str, source: Type, target: Type, a: Raw, rounding: Rounding) -> Raw:
        """A value as another type."""

    @abstractmethod
    def derived_flush_subnormal(self, a: Value) -> Value:
        """Subnormal numbers as zeros of their sign."""

    # ── representation ──────────────────────────────────────────────────────────────────

    def vector_type(self, type: Type) -> str:
        """The LLVM type of all lanes."""
        return vector_type(type, self.width)

    def known(self, type: Type, raw: Raw) -> Pattern | None:
        """The bits of every lane, where all are known."""
        return known_lanes(type, raw, self.width)

    def const(self, type: Type, x: float) -> Raw:
        """Integers modulo their width, floats by value."""
        if type is f64:
            return Affine(constant_folding.f64_bits(x))
        if type.is_float and not type.is_packed:
            bits = constant_folding.f32_bits(float(x))
            if type.bits == 32:
                return Affine(bits)
            if type is f16:
                return Affine(struct.unpack("<H", struct.pack("<e", x))[0] if x == x else 0x7E00)  # noqa: PLR0124
            if type is bf16:
                return Affine(constant_folding.bf16_bits(bits))
        return Affine(int(x) & (1 << type.bits) - 1)

    def vector(self, type: Type, raw: Raw) -> str:
        """Any value as an LLVM vector."""
        if isinstance(raw, Varying):
            return raw.name
        llvm = scalar_type(type)
        if (lanes := self.known(type, raw)) is not None:
            return splat_literal(llvm, lanes[0]) if not raw.terms else vector_literal(llvm, lanes)
        bits = type.bits
        fixed = sums(0, raw.fixed, self.width)
        total = ""
        if not isinstance(raw.base, int):
            total = self.code.splat(llvm, raw.base)
        elif raw.base:
            fixed = tuple(n + raw.base for n in fixed)
        for pattern, u in raw.terms:
            if isinstance(u, str):
                scaled = self.code.emit(
                    f"mul <{self.width} x {llvm}> {self.code.splat(llvm, u)}, {vector_literal(llvm, pattern)}"
                )
                total = self.code.emit(f"add <{self.width} x {llvm}> {total}, {scaled}") if total else scaled
        if any(n & (1 << bits) - 1 for n in fixed):
            total = self.code.emit(f"add <{self.width} x {llvm}> {total}, {vector_literal(llvm, fixed)}")
        return total

    def operands(self, type: Type, *raws: Raw) -> tuple[bool, str, list[str]]:
        """Scalars if all values are uniform, else vectors: whether they vary, their LLVM type, the operands."""
        if all(isinstance(r, Affine) and not r.terms for r in raws):
            llvm = scalar_type(type)
            return False, llvm, [text(llvm, r.base) for r in raws if isinstance(r, Affine)]
        return True, self.vector_type(type), [self.vector(type, r) for r in raws]

    def result(self, varies: bool, name: str, *, loose: bool = False) -> Raw:  # noqa: FBT001
        """An LLVM operand as a value."""
        return Varying(name, loose=loose) if varies else Affine(name, loose=loose)

    def suffix(self, varies: bool, llvm: str) -> str:  # noqa: FBT001
        """The part of an intrinsic's name that says its type."""
        one = llvm.rsplit(maxsplit=1)[-1].rstrip(">") if varies else llvm
        short = {"float": "f32", "double": "f64", "half": "f16"}.get(one, one)
        return f"v{self.width}{short}" if varies else short

    def tight(self, type: Type, raw: Raw) -> Raw:
        """The value with canonical NaNs."""
        if not raw.loose:
            return raw
        if isinstance(raw, Affine) and raw.constant is not None:
            return Affine(CANONICAL if raw.constant & 0x7FFF_FFFF > 0x7F80_0000 else raw.constant)
        varies, llvm, (a,) = self.operands(type, raw)
        if varies and self.width >= MANY:
            return self.result(varies, self._tight_if_any(a))
        wrong = self.code.emit(f"fcmp uno {llvm} {a}, {a}")
        word = self.vector_type(type.as_bits) if varies else "i32"
        nan = splat_literal("i32", CANONICAL) if varies else str(CANONICAL)
        condition = f"<{self.width} x i1>" if varies else "i1"
        # among integers: to LLVM one NaN is as good as another
        bits = self.code.bitcast(llvm, a, word)
        made = self.code.emit(f"select {condition} {wrong}, {word} {nan}, {word} {bits}")
        return self.result(varies, self.code.bitcast(word, made, llvm))

    def _tight_if_any(self, a: str) -> str:
        """A vector of f32 with canonical NaNs; one test of its two halves tells whether it has any."""
        code, half, word, known = self.code, self.width // 2, f"<{self.width} x i32>", f"tight {a}"
        if known in code.memo:
            return code.memo[known]
        low, high = (code.shuffle("float", self.width, a, "poison", list(range(n, n + half))) for n in (0, half))
        odd = code.emit(f"fcmp uno <{half} x float> {low}, {high}")
        none = code.emit(f"icmp eq i{half} {code.emit(f'bitcast <{half} x i1> {odd} to i{half}')}, 0")
        bits = code.bitcast(f"<{self.width} x float>", a, word)
        here, some, onward = code.label(), code.label(), code.label()
        code.jump(here)
        code.block(here)
        code.branch(none, onward, some, likely=True)
        with code.scope():
            code.block(some)
            wrong = code.emit(f"fcmp uno <{self.width} x float> {a}, {a}")
            made = code.emit(f"select <{self.width} x i1> {wrong}, {word} {splat_literal('i32', CANONICAL)}, {word} {bits}")
            code.jump(onward)
        code.block(onward)
        held = code.emit(f"phi {word} [ {bits}, %{here} ], [ {made}, %{some} ]", pure=False)
        code.memo[known] = code.bitcast(word, held, f"<{self.width} x float>")
        return code.memo[known]

    def lenient(self, type: Type, raw: Raw) -> Raw:
        """A constant that is no NaN as a loose value, so that it joins with loose ones."""
        if type is f32 and isinstance(raw, Affine) and raw.constant is not None and raw.constant & 0x7FFF_FFFF <= 0x7F80_0000:
            return Affine(raw.base, loose=True)
        return raw

    def alike(self, type: Type, a: Raw, b: Raw) -> tuple[Raw, Raw]:
        """Two values that are to be joined: both loose, or both with canonical NaNs."""
        a, b = self.lenient(type, a), self.lenient(type, b)
        if a.loose and b.loose:
            return a, b
        return self.tight(type, a), self.tight(type, b)
