"""The algebra that writes LLVM IR: operations on uniform values become scalar, on affine values stay affine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Self

from ptxvm.algebra.derived import approximations, elementary, floats
from ptxvm.algebra.types import Type, f16, f32, f64, pred, u32, u64
from ptxvm.algebra.value import Rounding, Value
from ptxvm.engine.jit.ir import constant_folding, cpu
from ptxvm.engine.jit.ir.builder import Code
from ptxvm.engine.jit.ir.lane_values import (
    Affine,
    Pattern,
    Raw,
    Scalar,
    Scaled,
    Terms,
    Varying,
    from_lanes,
    literal,
    possible_bits,
    scalar_type,
    splat_literal,
    text,
    wrapped,
)
from ptxvm.engine.jit.values import (
    affine_integers,
    approx_avx2,
    approx_exact,
    approx_fast,
    approx_rsqrt,
    extremes,
    float_to_integer,
    nan_fences,
    packed_elements,
    rounding as rounded,
    scaled_integers,
    table_lookup,
    uniform_bounds,
    vector_products,
    vector_quotients,
)
from ptxvm.engine.jit.values.vector_algebra import Extremes, VectorAlgebra

INTEGER = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
BITS = {"popc": "ctpop", "clz": "ctlz", "reverse": "bitreverse"}


def approximations_writer(*, fast: bool) -> type[approx_exact.FunctionWriter] | None:
    """The writer of the approximate functions for the vector registers of the processor, if it has the instructions."""
    if approx_exact.available():
        return approx_fast.FastWriter if fast else approx_rsqrt.ExactRsqrt
    return approx_avx2.Avx2Writer if approx_avx2.available() else None


class LlvmAlgebra(VectorAlgebra):
    """The whole algebra.  `guard` writes the check of an affine value that is extended; None refuses to extend it."""

    def __init__(
        self,
        code: Code,
        guard: Callable[[LlvmAlgebra, Type, Affine], Affine | None] | None = None,
        buffer: Callable[[str, int], str] | None = None,
        *,
        fast: bool = False,
    ) -> None:
        super().__init__(code)
        self.fast = fast
        self.writer = approximations_writer(fast=fast)
        self.buffer = buffer or self._on_stack  # gives scratch memory of the function
        self.stack: dict[tuple[str, int], str] = {}
        self._guard = guard

    def _on_stack(self, llvm: str, number: int) -> str:
        """Scratch memory of a function that has nothing but this code: it is made where the function begins."""
        if (llvm, number) not in self.stack:
            self.stack[llvm, number] = self.code.name()
            self.code.lines.insert(0, f"  {self.stack[llvm, number]} = alloca {llvm}, align 64")
        return self.stack[llvm, number]

    # ── integers ────────────────────────────────────────────────────────────────────────

    def integer(self, op: str, type: Type, a: Raw, b: Raw) -> Raw:
        """Integers and predicates; affine values stay so where they can."""
        first, second = self.known(type, a), self.known(type, b)
        if first is not None and second is not None:
            return from_lanes(type, constant_folding.integers(op, type, first, second))
        if isinstance(a, Affine) and isinstance(b, Affine) and type.kind != "p":
            found = affine_integers.result(self, op, type, a, b)
            if found is not None:
                return found
            if not a.terms and not b.terms:
                made = self._computed(op, type, a, b)
                if isinstance(made, Affine):
                    return replace(made, bits=affine_integers.uniform_bits(op, type, a, b))
        made = self._computed(op, type, a, b)
        if type.bits == 64 and (scaled := scaled_integers.of_operation(self.scaled, op, a, b)) is not None:
            self.scaled[made.name] = scaled  # type: ignore[union-attr]
        return made

    def _computed(self, op: str, type: Type, a: Raw, b: Raw) -> Raw:
        """By an instruction: of scalars, or of vectors."""
        varies, llvm, (x, y) = self.operands(type, a, b)
        if op in INTEGER:
            made = self.result(varies, self.code.emit(f"{op} {llvm} {x}, {y}"))
            if op == "add" and x in self.low and isinstance(b, Affine) and b.constant is not None:
                root, more = self.low[x]
                self.low[made.name] = root, wrapped(more + b.constant, 32)  # type: ignore[union-attr]
            return self._with_extremes(made, uniform_bounds.of_logic(self, op, a, b)) if type.kind == "p" else made
        if op in ("shl", "shr"):
            return self._shift(op, type, varies, llvm, x, y, b)
        if op in ("min", "max"):
            name = f"llvm.{'s' if type.is_signed else 'u'}{op}.{self.suffix(varies, llvm)}"
            return self.result(varies, self.code.intrinsic(llvm, name, (llvm, x), (llvm, y)))
        if op == "mul_hi":
            return self._mul_hi(type, varies, x, y)
        return self._divide(op, type, a, b)

    def scalar(self, op: str, bits: int, a: Scalar, b: Scalar) -> Scalar:
        """One operation on scalars, done now where both are known."""
        if isinstance(a, int) and isinstance(b, int):
            value = {"add": a + b, "sub": a - b, "mul": a * b, "and": a & b, "xor": a ^ b}[op]
            return value & (1 << bits) - 1
        if (op in ("add", "sub") and b == 0) or (op == "mul" and b == 1):
            return a
        if (op == "add" and a == 0) or (op == "mul" and a == 1):
            return b
        if op == "mul" and (a == 0 or b == 0):
            return 0
        if op == "add" and isinstance(a, int):
            a, b = b, a
        made = self.code.emit(f"{op} i{bits} {text(f'i{bits}', a)}, {text(f'i{bits}', b)}")
        if op in ("add", "sub") and isinstance(a, str) and isinstance(b, int):
            root, constant = self.code.sums.get(a, (a, 0))
            self.code.sums[made] = root, wrapped(constant + (b if op == "add" else -b), bits)
        return made

    def collect(self, bits: int, terms: tuple[tuple[Pattern, Scalar, int], ...]) -> Terms:
        """Terms with each pattern once, none of them zero."""
        found: dict[Pattern, Scalar] = {}
        for pattern, u, sign in terms:
            scaled = u if sign > 0 else self.scalar("sub", bits, 0, u)
            total = self.scalar("add", bits, found[pattern], scaled) if pattern in found else scaled
            found[pattern] = wrapped(total, bits) if isinstance(total, int) else total
        return tuple(sorted((k, u) for k, u in found.items() if u != 0))

    def _shift(self, op: str, type: Type, varies: bool, llvm: str, x: str, n: str, amount: Raw) -> Raw:  # noqa: FBT001
        """Past the width a shift gives 0, or the sign."""
        word = {"shl": "shl", "shr": "ashr" if type.is_signed else "lshr"}[op]
        lanes = self.known(type, amount)
        if lanes is not None and all(k < type.bits for k in lanes):
            return self.result(varies, self.code.emit(f"{word} {llvm} {x}, {n}"))
        most = self._constant(varies, type, type.bits - 1)
        least = self.code.intrinsic(llvm, f"llvm.umin.{self.suffix(varies, llvm)}", (llvm, n), (llvm, most))
        moved = self.code.emit(f"{word} {llvm} {x}, {least}")
        if word == "ashr":
            return self.result(varies, moved)
        inside = self.code.emit(f"icmp ule {llvm} {n}, {most}")
        condition = f"<{self.width} x i1>" if varies else "i1"
        zero = self._constant(varies, type, 0)
        return self.result(varies, self.code.emit(f"select {condition} {inside}, {llvm} {moved}, {llvm} {zero}"))

    def _constant(self, varies: bool, type: Type, bits: int) -> str:  # noqa: FBT001
        llvm = scalar_type(type)
        return splat_literal(llvm, bits) if varies else literal(llvm, bits)

    def _mul_hi(self, type: Type, varies: bool, x: str, y: str) -> Raw:  # noqa: FBT001
        if varies and type.bits >= 32:
            halves = vector_products.high if type.bits == 32 else vector_products.high_of_64
            return self.result(varies, halves(self.code, x, y, signed=type.is_signed))
        one, wide = f"i{type.bits}", f"i{2 * type.bits}"
        narrow, double = (f"<{self.width} x {one}>", f"<{self.width} x {wide}>") if varies else (one, wide)
        extend = "sext" if type.is_signed else "zext"
        a = self.code.emit(f"{extend} {narrow} {x} to {double}")
        b = self.code.emit(f"{extend} {narrow} {y} to {double}")
        product = self.code.emit(f"mul {double} {a}, {b}")
        amount = splat_literal(wide, type.bits) if varies else str(type.bits)
        high = self.code.emit(f"lshr {double} {product}, {amount}")
        return self.result(varies, self.code.emit(f"trunc {double} {high} to {narrow}"))

    def _divide(self, op: str, type: Type, a: Raw, b: Raw) -> Raw:
        """Never by zero, and never the least number by -1: LLVM traps there."""
        varies, llvm, (x, y) = self.operands(type, a, b)
        one, zero, ones = (self._constant(varies, type, n) for n in (1, 0, (1 << type.bits) - 1))
        condition = f"<{self.width} x i1>" if varies else "i1"
        sign = "s" if type.is_signed else "u"
        known = self.known(type, b)
        plain = known is not None and all(n not in (0, (1 << type.bits) - 1) for n in known)
        nothing = self.code.emit(f"icmp eq {llvm} {y}, {zero}")
        safe = y if plain else self.code.emit(f"select {condition} {nothing}, {llvm} {one}, {llvm} {y}")
        if type.is_signed and not plain:
            minus = self.code.emit(f"icmp eq {llvm} {safe}, {ones}")
            safe = self.code.emit(f"select {condition} {minus}, {llvm} {one}, {llvm} {safe}")
        one_divisor = isinstance(b, Affine) and not b.terms
        if varies and type.bits == 64 and (one_divisor or cpu.has("avx512dq")):
            quotients = vector_quotients.by_one_of_64 if one_divisor else vector_quotients.of_64
            quotient = quotients(self.code, x, safe, signed=type.is_signed)
        elif varies and type.bits <= 32 and not plain:
            quotient = (vector_quotients.by_one if one_divisor else vector_quotients.of_32)(self.code, type, x, safe)
        else:
            quotient = self.code.emit(f"{sign}div {llvm} {x}, {safe}")
        if type.is_signed and not plain:
            negated = self.code.emit(f"sub {llvm} {zero}, {x}")
            quotient = self.code.emit(f"select {condition} {minus}, {llvm} {negated}, {llvm} {quotient}")
        if op == "div":
            if not plain:
                quotient = self.code.emit(f"select {condition} {nothing}, {llvm} {ones}, {llvm} {quotient}")
            return self.result(varies, quotient)
        product = self.code.emit(f"mul {llvm} {quotient}, {y}")
        rest = self.code.emit(f"sub {llvm} {x}, {product}")
        if plain:
            return self.result(varies, rest)
        return self.result(varies, self.code.emit(f"select {condition} {nothing}, {llvm} {x}, {llvm} {rest}"))

    def bits(self, op: str, type: Type, a: Raw) -> Raw:
        """`popc clz reverse`."""
        varies, llvm, (x,) = self.operands(type, a)
        name = f"llvm.{BITS[op]}.{self.suffix(varies, llvm)}"
        more = [("i1", "false")] if op == "clz" else []
        return self.result(varies, self.code.intrinsic(llvm, name, (llvm, x), *more))

    # ── floats ──────────────────────────────────────────────────────────────────────────

    def floating(self, op: str, type: Type, rounding: Rounding, *args: Raw) -> Raw:
        """Correctly rounded arithmetic; any NaN will do."""
        varies, llvm, operands = self.operands(type, *args)
        if rounding != "rn" or (op == "sqrt" and type is f32):
            # LLVM takes `select(x < 0, NaN, sqrt(x))` for sqrt(x), as if there were one NaN: it must not see the root
            return rounded.arithmetic(self, op, type, rounding, args)
        operands = [nan_fences.operand(self, type, raw, x, varies=varies) for raw, x in zip(args, operands, strict=True)]
        if op in ("sqrt", "fma"):
            name = f"llvm.{op}.{self.suffix(varies, llvm)}"
            return self.result(varies, self.code.intrinsic(llvm, name, *[(llvm, x) for x in operands]))
        return self.result(varies, self.code.emit(f"f{op} {llvm} {operands[0]}, {operands[1]}"))

    def compare(self, op: str, type: Type, a: Raw, b: Raw) -> Raw:
        """A predicate."""
        if type.is_float and type.bits < 32:
            a, b, type = self.cast("ftof", type, f32, a, "rn"), self.cast("ftof", type, f32, b, "rn"), f32
        first, second = self.known(type, a), self.known(type, b)
        if not type.is_float and first is not None and second is not None:
            return from_lanes(pred, constant_folding.comparisons(op, type, first, second))
        if isinstance(a, Affine) and isinstance(b, Affine) and not type.is_float:
            decided = affine_integers.comparison(op, type, a, b, self.width)
            if decided is not None:
                return Affine(decided)
            found = affine_integers.relation(self, op, type, a, b) or affine_integers.of_rows(self, op, type, a, b)
            if found is not None:
                return found
        varies, llvm, (x, y) = self.operands(type, a, b)
        if type.is_float and not type.is_packed:
            word = "une" if op == "ne" else f"o{op}"
            return self.result(varies, self.code.emit(f"fcmp {word} {llvm} {x}, {y}"))
        word = op if op in ("eq", "ne") else f"{'s' if type.is_signed else 'u'}{op}"
        made = self.result(varies, self.code.emit(f"icmp {word} {llvm} {x}, {y}"))
        return self._with_extremes(made, uniform_bounds.of_comparison(self, op, type, a, b))

    def surely(self, predicate: Raw) -> Extremes | None:
        """Whether it surely holds in all lanes, and surely in none, where that is known without a vector."""
        return self.extremes.get(predicate.name) if isinstance(predicate, Varying) else None

    def _with_extremes(self, made: Raw, found: Extremes | None) -> Raw:
        if found is not None and isinstance(made, Varying):
            self.extremes[made.name] = found
        return made

    def select(self, type: Type, condition: Raw, a: Raw, b: Raw) -> Raw:
        """One or the other."""
        known = self.known(pred, condition)
        if known is not None and len(set(known)) == 1:
            return a if known[0] else b
        if a == b:
            return a
        first, second = self.known(type, a), self.known(type, b)
        if first is not None and first == second:
            return b if a.loose else a
        if known is not None and first is not None and second is not None:
            return from_lanes(type, tuple(x if c else y for c, x, y in zip(known, first, second, strict=True)))
        a, b = self.alike(type, a, b)
        loose = a.loose and b.loose
        if isinstance(condition, Affine):
            c = text("i1", condition.base)
            if isinstance(a, Affine) and isinstance(b, Affine) and [k for k, _ in a.terms] == [k for k, _ in b.terms]:
                pairs = zip(a.terms, b.terms, strict=True)
                terms = tuple((k, self._choose(type, c, u, v)) for (k, u), (_, v) in pairs)
                bits = possible_bits(a, type.bits) | possible_bits(b, type.bits)
                return Affine(self._choose(type, c, a.base, b.base), terms, loose=loose, bits=bits)
            llvm = self.vector_type(type)
            x, y = self.vector(type, a), self.vector(type, b)
            return Varying(self.code.emit(f"select i1 {c}, {llvm} {x}, {llvm} {y}"), loose=loose)
        llvm = self.vector_type(type)
        x, y = self.vector(type, a), self.vector(type, b)
        return Varying(self.code.emit(f"select <{self.width} x i1> {condition.name}, {llvm} {x}, {llvm} {y}"), loose=loose)

    def _choose(self, type: Type, condition: str, a: Scalar, b: Scalar) -> Scalar:
        if a == b:
            return a
        llvm = scalar_type(type)
        return self.code.emit(f"select i1 {condition}, {llvm} {text(llvm, a)}, {llvm} {text(llvm, b)}")

    # ── conversions ─────────────────────────────────────────────────────────────────────

    def cast(self, op: str, source: Type, target: Type, a: Raw, rounding: Rounding) -> Raw:
        """Every conversion."""
        if op == "view":
            return self._view(source, target, a)
        if op == "resize":
            return self._resize(source, target, a)
        if op == "itof":
            return rounded.from_integer(self, source, target, a, rounding)
        if op == "ftof":
            return rounded.between_floats(self, source, target, a, rounding)
        if source.bits < 32:
            a, source = rounded.between_floats(self, source, f32, a, "rn"), f32
        return float_to_integer.truncated(self, source, target, a)

    def _view(self, source: Type, target: Type, a: Raw) -> Raw:
        before, after = scalar_type(source), scalar_type(target)
        if before == after:
            return a
        a = self.tight(source, a)
        if isinstance(a, Affine) and a.constant is not None:
            return Affine(a.constant)
        if isinstance(a, Varying) and a.lanes is not None:
            return from_lanes(target, a.lanes)
        varies, llvm, (x,) = self.operands(source, a)
        result = self.vector_type(target) if varies else after
        return self.result(varies, self.code.bitcast(llvm, x, result))

    def _resize(self, source: Type, target: Type, a: Raw) -> Raw:
        if source.kind != "p" and source.bits == target.bits:
            return a
        if (lanes := self.known(source, a)) is not None:
            return from_lanes(target, constant_folding.extended(source, lanes))
        if isinstance(a, Affine) and source.kind != "p":
            if target.bits < source.bits:
                return self._truncated(a, source.bits, target.bits)
            if a.terms and self._guard is not None and source.bits == 32 and target.bits == 64:
                found: Affine | None = self._guard(self, source, a)
                if found is not None:
                    return found
        varies, llvm, (x,) = self.operands(source, a)
        result = self.vector_type(target) if varies else f"i{target.bits}"
        if target.bits == 32 and x in self.low:
            root, more = self.low[x]
            return Varying(self.code.emit(f"add {result} {root}, {self._constant(varies, target, more)}") if more else root)
        word = "trunc" if target.bits < source.bits else "sext" if source.is_signed else "zext"
        made = self.code.emit(f"{word} {llvm} {x} to {result}")
        if varies and source.bits == 32 and target.bits == 64:
            self.low[made] = x, 0
            self.scaled[made] = Scaled(x, source.is_signed)
        if isinstance(a, Affine) and not varies:
            return Affine(made, bits=affine_integers.extended_bits(source, a))
        return self.result(varies, made)

    def low_half(self, a: Raw) -> Raw:
        """The low 32 bits of a u64, and zeros above them."""
        return self._resize(u32, u64, self._resize(u64, u32, a))

    def _truncated(self, a: Affine, before: int, after: int) -> Affine:
        def cut(u: Scalar) -> Scalar:
            if isinstance(u, int):
                return u & (1 << after) - 1
            made = self.code.emit(f"trunc i{before} {u} to i{after}")
            root, constant = self.code.sums.get(u, (u, 0))
            self.code.sums[made] = f"{root} to i{after}", wrapped(constant, after)
            return made

        return Affine(
            cut(a.base), self.collect(after, tuple((k, cut(u), 1) for k, u in a.terms)), bits=possible_bits(a, before)
        )

    def round(self, mode: str, type: Type, a: Raw) -> Raw:
        """To an integral value."""
        if type.bits < 32:
            wide = self.round(mode, f32, rounded.between_floats(self, type, f32, a, "rn"))
            return rounded.between_floats(self, f32, type, wide, "rn")
        varies, llvm, (x,) = self.operands(type, a)
        word = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}[mode]
        return self.result(varies, self.code.intrinsic(llvm, f"llvm.{word}.{self.suffix(varies, llvm)}", (llvm, x)))

    def lookup(self, type: Type, table: tuple[int, ...], index: Raw) -> Raw:
        """An entry of a table, which is a constant of the module."""
        return table_lookup.lookup(self, type, table, index)

    # ── derived operations, quicker ─────────────────────────────────────────────────────

    def derived_is_nan(self, a: Value) -> Value:
        """Is it NaN?"""
        if a.type.bits < 32:
            return a.compare("ne", a)
        varies, llvm, (x,) = self.operands(a.type, a.raw)
        return Value(self, pred, self.result(varies, self.code.emit(f"fcmp uno {llvm} {x}, {x}")))

    def derived_canonical_nan(self, a: Value) -> Value:
        """A NaN of f32 becomes canonical when its bits become visible; that of f16 and bf16 at once."""
        if a.type is f64:
            return a
        raw = a.raw
        if a.type is f32:
            if isinstance(raw, Affine):
                if raw.constant is not None and raw.constant & 0x7FFF_FFFF <= 0x7F80_0000:
                    return a
                return Value(self, f32, Affine(raw.base, raw.terms, loose=True))
            return Value(self, f32, Varying(raw.name, loose=True))
        bits = a.view(a.type.as_bits)
        infinity = 0x7C00 if a.type is f16 else 0x7F80
        wrong = self.compare("gt", a.type.as_unsigned, (bits & 0x7FFF).raw, Affine(infinity))
        return Value(self, a.type, self.select(bits.type, wrong, Affine(0x7FFF), bits.raw))

    def derived_negate(self, a: Value) -> Value:
        """The sign flipped, of NaN too."""
        made: Value = floats.negate.__wrapped__(a)  # type: ignore[attr-defined]
        if a.type is not f64 or (isinstance(made.raw, Affine) and made.raw.constant is not None):
            return made
        varies, _, (x,) = self.operands(f64, made.raw)
        return Value(self, f64, self.result(varies, nan_fences.fenced(self, x, varies=varies)))

    def derived_minimum(self, a: Value, b: Value) -> Value:
        """The lesser, -0 below +0; the number where the other is NaN."""
        if a.type.bits < 32:
            return floats.minimum.__wrapped__(a, b)  # type: ignore[attr-defined,no-any-return]
        return extremes.extreme(self, a, b, greatest=False)

    def derived_maximum(self, a: Value, b: Value) -> Value:
        """The greater, +0 above -0; the number where the other is NaN."""
        if a.type.bits < 32:
            return floats.maximum.__wrapped__(a, b)  # type: ignore[attr-defined,no-any-return]
        return extremes.extreme(self, a, b, greatest=True)

    def derived_truncated_square(self, x: Value) -> Value:
        """x*x of 17 bits, without some of the partial products: masks in place of products with one bit."""
        high = x >> 9
        crossed = x.lift(0)
        for i in range(2, 9):
            crossed = crossed + (-(x >> i & 1) & x >> 18 - i)
        return ((high * high - (high & 1)).to(u64) << 18) + (crossed.to(u64) << 19)

    def derived_flush_subnormal(self, a: Value) -> Value:
        """Subnormal values become zero of the same sign."""
        if a.type.bits < 32:
            bits = a.view(a.type.as_bits)
            least = 1 << (10 if a.type is f16 else 7)
            small = self.compare("lt", a.type.as_unsigned, (bits & 0x7FFF).raw, Affine(least))
            return Value(self, a.type, self.select(bits.type, small, (bits & 0x8000).raw, bits.raw))
        if isinstance(a.raw, Varying) and a.raw.name in self.flushed:
            return Value(self, a.type, Varying(self.flushed[a.raw.name]))
        varies, llvm, (x,) = self.operands(a.type, a.raw)
        kind = self.suffix(varies, llvm)
        size = self.code.intrinsic(llvm, f"llvm.fabs.{kind}", (llvm, x))
        tiny = 0x0080_0000 if a.type.bits == 32 else 1 << 52
        under = self.code.emit(f"fcmp olt {llvm} {size}, {self._constant(varies, a.type, tiny)}")
        zero = self.code.intrinsic(llvm, f"llvm.copysign.{kind}", (llvm, self._constant(varies, a.type, 0)), (llvm, x))
        condition = f"<{self.width} x i1>" if varies else "i1"
        made = self.code.emit(f"select {condition} {under}, {llvm} {zero}, {llvm} {x}")
        if varies and a.type is f32:
            self.unflushed[made] = x
        return Value(self, a.type, self.result(varies, made, loose=a.raw.loose))

    def widened(self, times: int) -> Self:
        """The same algebra for vectors that are so many times as long."""
        return type(self)(self.code.widened(times), buffer=self.buffer, fast=self.fast)

    def derived_each(self, function: Callable[..., Value], *operands: Value) -> Value | None:
        """A function of corresponding elements of packed values, or None."""
        return packed_elements.each(self, function, operands)

    # ── functions ───────────────────────────────────────────────────────────────────────

    def _in_registers(self, function: Callable[[Value], Value], a: Value) -> Value:
        """A derived function of f32, by the writer of the processor where that suits."""
        return approx_exact.function(self, self.writer, function.__name__, a, function.__wrapped__)  # type: ignore[attr-defined]

    def derived_rcp(self, a: Value) -> Value:
        """1/a."""
        return self._in_registers(approximations.rcp, a)

    def derived_sqrt(self, a: Value) -> Value:
        """The root."""
        return self._in_registers(approximations.sqrt, a)

    def derived_rsqrt(self, a: Value) -> Value:
        """1 over the root."""
        return self._in_registers(approximations.rsqrt, a)

    def derived_lg2(self, a: Value) -> Value:
        """The logarithm to base 2."""
        return self._in_registers(approximations.lg2, a)

    def derived_ex2(self, a: Value) -> Value:
        """2**a."""
        return self._in_registers(approximations.ex2, a)

    def derived_sin(self, a: Value) -> Value:
        """The sine."""
        return self._in_registers(approximations.sin, a)

    def derived_sin_nearest(self, a: Value) -> Value:
        """The sine of an angle that is rounded."""
        return self._in_registers(approximations.sin_nearest, a)

    def derived_cos(self, a: Value) -> Value:
        """The cosine."""
        return self._in_registers(approximations.cos, a)

    def derived_cos_nearest(self, a: Value) -> Value:
        """The cosine of an angle that is rounded."""
        return self._in_registers(approximations.cos_nearest, a)

    def derived_tanh(self, a: Value) -> Value:
        """The hyperbolic tangent."""
        if self.writer is approx_fast.FastWriter:
            found = self._in_registers(elementary.tanh, a)
            if isinstance(found.raw, Varying):
                self.flushed.pop(found.raw.name, None)  # it may be subnormal, as no ordinary result of the others is
            return found
        return approx_exact.shared(self, "tanh", a, elementary.tanh.__wrapped__)  # type: ignore[attr-defined]
