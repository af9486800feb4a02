"""The algebra that writes LLVM IR: a value is a `Raw`, scalar where it is the same in all lanes."""

from __future__ import annotations

import struct
from typing import Any

from ptxvm.algebra.derived import approximations
from ptxvm.algebra.types import Type, bf16, f16, f32, f64, pred, s64, u32, u64
from ptxvm.algebra.value import Rounding, Value
from ptxvm.engine.jit import estimates, extremes, folding, quadratics, roots, rounding as rounded, tables
from ptxvm.engine.jit.code import Code
from ptxvm.engine.jit.raw import (
    Lin,
    Pattern,
    Raw,
    Scalar,
    Terms,
    Vec,
    from_lanes,
    known_lanes,
    literal,
    primitive,
    scalar_type,
    splat_literal,
    sums,
    text,
    vector_literal,
    vector_type,
    wrapped,
)

INTEGER = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
RELATIONS = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
BITS = {"popc": "ctpop", "clz": "ctlz", "reverse": "bitreverse"}
CANONICAL = 0x7FFF_FFFF
MANY = 128  # lanes of f32, whose masks are more than the processor has registers for


class LlvmAlgebra:
    """Writes into `code`.  `wide_guard` emits the guard of a linear value that is extended; None refuses them."""

    def __init__(
        self, code: Code, transcendental: Any = None, guard: Any = None, buffer: Any = None, *, fast: bool = False
    ) -> None:
        self.writer: type[quadratics.Writer] = estimates.FastWriter if fast else roots.Exact  # of approximate functions
        self.buffer = buffer  # gives scratch memory of the function
        self.code, self._transcendental, self._guard = code, transcendental, guard
        self.width = code.width
        self.extremes: dict[str, extremes.Extremes] = {}
        self.derives = False  # whether functions are written by their derivations
        self.flushed: dict[str, str] = {}  # vectors, and what flushing makes of them, where that is there already
        self.unflushed: dict[str, str] = {}  # and the other way round
        self.low: dict[str, tuple[str, int]] = {}  # of vectors of 64 bits the low half: a vector, and what is added to it

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
            return Lin(struct.unpack("<Q", struct.pack("<d", x))[0])
        if type.is_float and not type.is_packed:
            bits = folding.f32_bits(float(x))
            if type.bits == 32:
                return Lin(bits)
            if type is f16:
                return Lin(struct.unpack("<H", struct.pack("<e", x))[0] if x == x else 0x7E00)  # noqa: PLR0124
            if type is bf16:
                return Lin(folding.bf16_bits(bits))
        return Lin(int(x) & (1 << type.bits) - 1)

    def vector(self, type: Type, raw: Raw) -> str:
        """Any value as an LLVM vector."""
        if isinstance(raw, Vec):
            return raw.name
        llvm = scalar_type(type)
        if (lanes := self.known(type, raw)) is not None:
            return splat_literal(llvm, lanes[0]) if not raw.terms else vector_literal(llvm, lanes)
        bits = type.bits
        fixed = sums(0, tuple((k, u) for k, u in raw.terms if isinstance(u, int)), self.width)
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
        """All as scalars, if all are uniform, else as vectors: whether they vary, their LLVM type, the operands."""
        if all(isinstance(r, Lin) and not r.terms for r in raws):
            llvm = scalar_type(type)
            return False, llvm, [text(llvm, r.base) for r in raws if isinstance(r, Lin)]
        return True, self.vector_type(type), [self.vector(type, r) for r in raws]

    def result(self, varies: bool, name: str, *, loose: bool = False) -> Raw:  # noqa: FBT001
        """An LLVM operand as a value."""
        return Vec(name, loose=loose) if varies else Lin(name, loose=loose)

    def suffix(self, varies: bool, llvm: str) -> str:  # noqa: FBT001
        """The part of an intrinsic's name that says its type."""
        one = llvm.rsplit(maxsplit=1)[-1].rstrip(">") if varies else llvm
        short = {"float": "f32", "double": "f64", "half": "f16"}.get(one, one)
        return f"v{self.width}{short}" if varies else short

    def tight(self, type: Type, raw: Raw) -> Raw:
        """The value with its NaNs as everybody may see them."""
        if not raw.loose:
            return raw
        if isinstance(raw, Lin) and raw.constant is not None:
            return Lin(CANONICAL if raw.constant & 0x7FFF_FFFF > 0x7F80_0000 else raw.constant)
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
        """A vector with its NaNs as everybody may see them, f32; one test tells that there are none, of its two halves."""
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
        """A constant that is no NaN goes with loose values."""
        if type is f32 and isinstance(raw, Lin) and raw.constant is not None and raw.constant & 0x7FFF_FFFF <= 0x7F80_0000:
            return Lin(raw.base, loose=True)
        return raw

    def alike(self, type: Type, a: Raw, b: Raw) -> tuple[Raw, Raw]:
        """Two values that will be one: both loose, or both with their NaNs as they are."""
        a, b = self.lenient(type, a), self.lenient(type, b)
        if a.loose and b.loose:
            return a, b
        return self.tight(type, a), self.tight(type, b)

    # ── integers ────────────────────────────────────────────────────────────────────────

    def integer(self, op: str, type: Type, a: Raw, b: Raw) -> Raw:
        """Integers and predicates; linear values stay so where they can."""
        first, second = self.known(type, a), self.known(type, b)
        if first is not None and second is not None:
            return from_lanes(type, folding.integers(op, type, first, second))
        if isinstance(a, Lin) and isinstance(b, Lin) and type.kind != "p":
            found = self._linear(op, type, a, b)
            if found is not None:
                return found
        varies, llvm, (x, y) = self.operands(type, a, b)
        if op in INTEGER:
            made = self.result(varies, self.code.emit(f"{op} {llvm} {x}, {y}"))
            if op == "add" and x in self.low and second is not None and len({*second}) == 1:
                root, more = self.low[x]
                self.low[made.name] = root, wrapped(more + second[0], 32)  # type: ignore[union-attr]
            return self._with_extremes(made, extremes.of_logic(self, op, a, b)) if type.kind == "p" else made
        if op in ("shl", "shr"):
            return self._shift(op, type, varies, llvm, x, y, b)
        if op in ("min", "max"):
            name = f"llvm.{'s' if type.is_signed else 'u'}{op}.{self.suffix(varies, llvm)}"
            return self.result(varies, self.code.intrinsic(llvm, name, (llvm, x), (llvm, y)))
        if op == "mul_hi":
            return self._mul_hi(type, varies, x, y)
        return self._divide(op, type, a, b)

    def _linear(self, op: str, type: Type, a: Lin, b: Lin) -> Lin | None:
        """A sum, a difference, or a product with something uniform; None for what is not linear."""
        bits = type.bits
        if op in ("add", "sub"):
            sign = 1 if op == "add" else -1
            base = self.scalar(op, bits, a.base, b.base)
            terms = self.collect(bits, (*((k, u, 1) for k, u in a.terms), *((k, u, sign) for k, u in b.terms)))
            bank = a.bank + b.base if op == "add" and a.bank is not None and b.constant is not None else None  # type: ignore[operator]
            return Lin(base, terms, bank=bank, shift=min(self._zeros(a), self._zeros(b)))
        if op == "shl" and b.constant is not None:
            if b.constant >= bits:
                return Lin(0)
            op, b = "mul", Lin(1 << b.constant)
        if op == "mul":
            if a.terms and not b.terms:
                a, b = b, a
            if not a.terms:
                terms = self.collect(bits, tuple((k, self.scalar("mul", bits, u, a.base), 1) for k, u in b.terms))
                shift = min(bits, self._zeros(a) + self._zeros(b))
                return Lin(self.scalar("mul", bits, a.base, b.base), terms, shift=shift)
        if a.terms and b.constant is not None and op in ("and", "shr"):
            return self._low_bits(op, type, a, b.constant)
        return None

    def _zeros(self, a: Lin) -> int:
        """How many low bits of the base are known to be zero."""
        if isinstance(a.base, int):
            return (a.base & -a.base).bit_length() - 1 if a.base else 64
        return a.shift

    def _low_bits(self, op: str, type: Type, a: Lin, b: int) -> Lin | None:
        """`and` with a mask of low bits, or a shift, where the lanes differ in bits that the base has not."""
        if any(not isinstance(u, int) for _, u in a.terms):
            return None
        offsets = sums(0, tuple((k, u) for k, u in a.terms if isinstance(u, int)), self.width)
        zeros = self._zeros(a)
        if min(offsets) < 0 or max(offsets) >> zeros:
            return None
        if op == "and":
            if b & (b + 1):
                return None
            low = from_lanes(type, tuple(n & b for n in offsets))
            if b.bit_length() <= zeros:
                return low if isinstance(low, Lin) else None
            if isinstance(low, Lin) and low.base == 0 and all(n & b == n for n in offsets):
                return Lin(self.scalar("and", type.bits, a.base, b), a.terms, shift=zeros)
            return None
        if b >= type.bits:
            return None
        low = from_lanes(type, tuple(n >> b for n in offsets))
        if not isinstance(low, Lin) or b > zeros:
            return None
        moved: Scalar = self.code.emit(
            f"{'ashr' if type.is_signed else 'lshr'} i{type.bits} {text(f'i{type.bits}', a.base)}, {b}"
        )
        return Lin(self.scalar("add", type.bits, moved, low.base), low.terms, shift=max(0, zeros - b) if low.base == 0 else 0)

    def scalar(self, op: str, bits: int, a: Scalar, b: Scalar) -> Scalar:
        """One operation on scalars, done now where both are known."""
        if isinstance(a, int) and isinstance(b, int):
            value = {"add": a + b, "sub": a - b, "mul": a * b, "and": a & b}[op]
            return value & (1 << bits) - 1
        if (op in ("add", "sub") and b == 0) or (op == "mul" and b == 1):
            return a
        if (op == "add" and a == 0) or (op == "mul" and a == 1):
            return b
        if op == "mul" and (a == 0 or b == 0):
            return 0
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
        if varies and type.bits <= 32 and not plain:
            quotient = self._divide_by_floats(type, x, safe)
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

    def _divide_by_floats(self, type: Type, x: str, y: str) -> str:
        """Exact for 32 bits: a quotient that is not whole is farther from a whole one than f64 rounds."""
        one, double = f"<{self.width} x i{type.bits}>", f"<{self.width} x double>"
        to, back = ("sitofp", "fptosi") if type.is_signed else ("uitofp", "fptoui")
        a, b = (self.code.emit(f"{to} {one} {v} to {double}") for v in (x, y))
        quotient = self.code.emit(f"fdiv {double} {a}, {b}")
        return self.code.emit(f"{back} {double} {quotient} to {one}")

    def bits(self, op: str, type: Type, a: Raw) -> Raw:
        """`popc clz reverse`."""
        varies, llvm, (x,) = self.operands(type, a)
        name = f"llvm.{BITS[op]}.{self.suffix(varies, llvm)}"
        more = [("i1", "false")] if op == "clz" else []
        return self.result(varies, self.code.intrinsic(llvm, name, (llvm, x), *more))

    # ── floats ──────────────────────────────────────────────────────────────────────────

    def floating(self, op: str, type: Type, rounding: Rounding, *args: Raw) -> Raw:
        """Correctly rounded arithmetic; any NaN will do."""
        varies, llvm, given = self.operands(type, *args)
        if rounding != "rn" or (op == "sqrt" and type is f32):
            # LLVM takes `select(x < 0, NaN, sqrt(x))` for sqrt(x), as if there were one NaN: it must not see the root
            return rounded.arithmetic(self, op, type, rounding, args)
        if op in ("sqrt", "fma"):
            name = f"llvm.{op}.{self.suffix(varies, llvm)}"
            return self.result(varies, self.code.intrinsic(llvm, name, *[(llvm, x) for x in given]))
        return self.result(varies, self.code.emit(f"f{op} {llvm} {given[0]}, {given[1]}"))

    def compare(self, op: str, type: Type, a: Raw, b: Raw) -> Raw:
        """A predicate."""
        if type.is_float and type.bits < 32:
            a, b, type = self.cast("ftof", type, f32, a, "rn"), self.cast("ftof", type, f32, b, "rn"), f32
        first, second = self.known(type, a), self.known(type, b)
        if not type.is_float and first is not None and second is not None:
            return from_lanes(pred, tuple(folding.compare(op, type, x, y) for x, y in zip(first, second, strict=True)))
        varies, llvm, (x, y) = self.operands(type, a, b)
        if type.is_float and not type.is_packed:
            word = "une" if op == "ne" else f"o{op}"
            return self.result(varies, self.code.emit(f"fcmp {word} {llvm} {x}, {y}"))
        word = op if op in ("eq", "ne") else f"{'s' if type.is_signed else 'u'}{op}"
        made = self.result(varies, self.code.emit(f"icmp {word} {llvm} {x}, {y}"))
        return self._with_extremes(made, extremes.of_comparison(self, op, type, a, b))

    def surely(self, predicate: Raw) -> extremes.Extremes | None:
        """Whether it surely holds in all lanes, and surely in none, where that is known without a vector."""
        return self.extremes.get(predicate.name) if isinstance(predicate, Vec) else None

    def _with_extremes(self, made: Raw, found: extremes.Extremes | None) -> Raw:
        if found is not None and isinstance(made, Vec):
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
        if known is not None and first is not None and second is not None:
            return from_lanes(type, tuple(x if c else y for c, x, y in zip(known, first, second, strict=True)))
        a, b = self.alike(type, a, b)
        loose = a.loose and b.loose
        if isinstance(condition, Lin):
            c = text("i1", condition.base)
            if isinstance(a, Lin) and isinstance(b, Lin) and [k for k, _ in a.terms] == [k for k, _ in b.terms]:
                pairs = zip(a.terms, b.terms, strict=True)
                terms = tuple((k, self._choose(type, c, u, v)) for (k, u), (_, v) in pairs)
                return Lin(self._choose(type, c, a.base, b.base), terms, loose=loose)
            llvm = self.vector_type(type)
            x, y = self.vector(type, a), self.vector(type, b)
            return Vec(self.code.emit(f"select i1 {c}, {llvm} {x}, {llvm} {y}"), loose=loose)
        llvm = self.vector_type(type)
        x, y = self.vector(type, a), self.vector(type, b)
        return Vec(self.code.emit(f"select <{self.width} x i1> {condition.name}, {llvm} {x}, {llvm} {y}"), loose=loose)

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
        varies, llvm, (x,) = self.operands(source, a)
        result = self.vector_type(target) if varies else scalar_type(target)
        word = "fptosi" if target.is_signed else "fptoui"
        name = f"llvm.{word}.sat.{self.suffix(varies, result)}.{self.suffix(varies, llvm)}"
        return self.result(varies, self.code.intrinsic(result, name, (llvm, x)))

    def _view(self, source: Type, target: Type, a: Raw) -> Raw:
        before, after = scalar_type(source), scalar_type(target)
        if before == after:
            return a
        a = self.tight(source, a)
        if isinstance(a, Lin) and a.constant is not None:
            return Lin(a.constant)
        if isinstance(a, Vec) and a.lanes is not None:
            return from_lanes(target, a.lanes)
        varies, llvm, (x,) = self.operands(source, a)
        result = self.vector_type(target) if varies else after
        return self.result(varies, self.code.bitcast(llvm, x, result))

    def _resize(self, source: Type, target: Type, a: Raw) -> Raw:
        if source.kind != "p" and source.bits == target.bits:
            return a
        if (lanes := self.known(source, a)) is not None:
            signed = source.is_signed
            return from_lanes(target, tuple(wrapped(n, source.bits) if signed else n for n in lanes))
        narrow, wide = f"i{source.bits}", f"i{target.bits}"
        if isinstance(a, Lin) and source.kind != "p":
            if target.bits < source.bits:
                return self._truncated(a, source.bits, target.bits)
            if a.terms and self._guard is not None and source.bits == 32 and target.bits == 64:
                found: Lin | None = self._guard(self, source, a)
                if found is not None:
                    return found
        varies, llvm, (x,) = self.operands(source, a)
        result = self.vector_type(target) if varies else wide
        if target.bits == 32 and x in self.low:
            root, more = self.low[x]
            return Vec(self.code.emit(f"add {result} {root}, {self._constant(varies, target, more)}") if more else root)
        word = "trunc" if target.bits < source.bits else "sext" if source.is_signed else "zext"
        made = self.code.emit(f"{word} {llvm} {x} to {result}")
        if varies and source.bits == 32 and target.bits == 64:
            self.low[made] = x, 0
        del narrow
        if isinstance(a, Lin) and not varies:
            return Lin(made, shift=a.shift)
        return self.result(varies, made)

    def low_half(self, a: Raw) -> Raw:
        """The low 32 bits of a u64, and zeros above them."""
        return self._resize(u32, u64, self._resize(u64, u32, a))

    def _truncated(self, a: Lin, before: int, after: int) -> Lin:
        def cut(u: Scalar) -> Scalar:
            if isinstance(u, int):
                return u & (1 << after) - 1
            made = self.code.emit(f"trunc i{before} {u} to i{after}")
            root, constant = self.code.sums.get(u, (u, 0))
            self.code.sums[made] = f"{root} to i{after}", wrapped(constant, after)
            return made

        return Lin(cut(a.base), self.collect(after, tuple((k, cut(u), 1) for k, u in a.terms)), shift=min(a.shift, after))

    def round(self, mode: str, type: Type, a: Raw) -> Raw:
        """To an integral value."""
        if type.bits < 32:
            wide = self.round(mode, f32, rounded.between_floats(self, type, f32, a, "rn"))
            return rounded.between_floats(self, f32, type, wide, "rn")
        varies, llvm, (x,) = self.operands(type, a)
        word = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}[mode]
        return self.result(varies, self.code.intrinsic(llvm, f"llvm.{word}.{self.suffix(varies, llvm)}", (llvm, x)))

    def transcendental(self, function: str, type: Type, a: Raw) -> Raw:
        """`sin cos lg2 ex2 tanh`, out of line."""
        found: Raw = self._transcendental(self, function, type, a)
        return found

    def lookup(self, type: Type, table: tuple[int, ...], index: Raw) -> Raw:
        """An entry of a table, which is a constant of the module."""
        return tables.lookup(self, type, table, index)

    # ── derived operations, quicker ─────────────────────────────────────────────────────

    def derived_is_nan(self, a: Value) -> Value:
        """Is it NaN?"""
        if a.type.bits < 32:
            return a.compare("ne", a)
        varies, llvm, (x,) = self.operands(a.type, a.raw)
        return Value(self, pred, self.result(varies, self.code.emit(f"fcmp uno {llvm} {x}, {x}")))

    def derived_canonical_nan(self, a: Value) -> Value:
        """NaN of f32 becomes the canonical one when somebody looks; that of f16 and bf16 at once."""
        if a.type is f64:
            return a
        raw = a.raw
        if a.type is f32:
            if isinstance(raw, Lin):
                if raw.constant is not None and raw.constant & 0x7FFF_FFFF <= 0x7F80_0000:
                    return a
                return Value(self, f32, Lin(raw.base, raw.terms, loose=True))
            return Value(self, f32, Vec(raw.name, loose=True))
        bits = a.view(a.type.as_bits)
        infinity = 0x7C00 if a.type is f16 else 0x7F80
        wrong = self.compare("gt", a.type.as_unsigned, (bits & 0x7FFF).raw, Lin(infinity))
        return Value(self, a.type, self.select(bits.type, wrong, Lin(0x7FFF), bits.raw))

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
            small = self.compare("lt", a.type.as_unsigned, (bits & 0x7FFF).raw, Lin(least))
            return Value(self, a.type, self.select(bits.type, small, (bits & 0x8000).raw, bits.raw))
        if isinstance(a.raw, Vec) and a.raw.name in self.flushed:
            return Value(self, a.type, Vec(self.flushed[a.raw.name]))
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

    # ── functions ───────────────────────────────────────────────────────────────────────

    def derived_rcp(self, a: Value) -> Value:
        """1/a."""
        return quadratics.function(self, "rcp", a, approximations.rcp.__wrapped__)  # type: ignore[attr-defined]

    def derived_sqrt(self, a: Value) -> Value:
        """The root."""
        return quadratics.function(self, "sqrt", a, approximations.sqrt.__wrapped__)  # type: ignore[attr-defined]

    def derived_rsqrt(self, a: Value) -> Value:
        """1 over the root."""
        return quadratics.function(self, "rsqrt", a, approximations.rsqrt.__wrapped__)  # type: ignore[attr-defined]

    def derived_lg2(self, a: Value) -> Value:
        """The logarithm to base 2."""
        return quadratics.function(self, "lg2", a, approximations.lg2.__wrapped__)  # type: ignore[attr-defined]

    def derived_ex2(self, a: Value) -> Value:
        """2**a."""
        return quadratics.function(self, "ex2", a, approximations.ex2.__wrapped__)  # type: ignore[attr-defined]


__all__ = ["LlvmAlgebra", "primitive", "s64", "u32", "u64"]
