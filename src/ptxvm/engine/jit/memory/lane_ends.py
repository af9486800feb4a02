"""Bounds of accesses at equal distances: the first and the last active lane tell of all.

Lanes that are not active may be far out of bounds, as those of `if (t < d) { … }` are, so a comparison of all lanes would fail.
"""

from __future__ import annotations

from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.ir.builder import Code
from ptxvm.engine.jit.ir.lane_values import Affine, Scalar, text
from ptxvm.engine.jit.values.vector_algebra import VectorAlgebra
from ptxvm.isa.special_registers import WARP

FARTHEST = 1 << 40  # bytes between neighbours, so that no lane wraps


@dataclass(frozen=True, slots=True)
class Progression:
    """An affine address whose lanes are at equal distances: those of the first lane of each warp, and the distance."""

    firsts: tuple[Scalar, ...]
    step: Scalar

    @classmethod
    def of(cls, alg: VectorAlgebra, raw: Affine, bits: int, *, throughout: bool) -> Progression | None:
        """The progression of an address, in each warp or `throughout` all of them; None if it is none."""
        each = alg.width if throughout else WARP
        steps = [k[1] - k[0] for k, _ in raw.terms]
        starts = range(0, alg.width, each)
        for (k, _), step in zip(raw.terms, steps, strict=True):
            if any(k[first + n] != k[first] + n * step for first in starts for n in range(each)):
                return None
        firsts = tuple(_total(alg, raw.base, [k[first] for k, _ in raw.terms], raw, bits) for first in starts)
        return cls(firsts, _total(alg, 0, steps, raw, bits))


def _total(alg: VectorAlgebra, base: Scalar, factors: list[int], raw: Affine, bits: int) -> Scalar:
    for factor, (_, u) in zip(factors, raw.terms, strict=True):
        base = alg.scalar("add", bits, base, alg.scalar("mul", bits, u, factor & (1 << bits) - 1))
    return base


def inside(code: Code, found: Progression, lanes: str, bits: int, log: int, low: str, bound: str) -> str:
    """Is each active lane a multiple of 1 << log from `low`, and within `bound` of them?  No lane is, if none is active."""
    word, width = f"i{bits}", code.width
    mask = code.mask_bits(lanes)
    ends = []
    for name in ("cttz", "ctlz"):
        code.unit.declarations[f"llvm.{name}.i{width}"] = f"declare i{width} @llvm.{name}.i{width}(i{width}, i1 immarg)"
        zeros = code.call(f"i{width}", f"llvm.{name}.i{width}", (f"i{width}", mask), ("i1", "false"))
        ends.append(zeros if width == 64 else code.emit(f"{'zext' if width < 64 else 'trunc'} i{width} {zeros} to i64"))
    first, last = ends[0], code.emit(f"sub i64 {width - 1}, {ends[1]}")
    narrow = first if bits == 64 else code.emit(f"trunc i64 {first} to i32")
    step = text(word, found.step)
    begin = code.emit(f"add {word} {text(word, found.firsts[0])}, {code.emit(f'mul {word} {step}, {narrow}')}")
    offset = code.emit(f"sub {word} {begin}, {low}")
    if bits == 32:
        offset, step = code.emit(f"zext i32 {offset} to i64"), code.emit(f"sext i32 {step} to i64")
    distance = code.emit(f"mul i64 {step}, {code.emit(f'sub i64 {last}, {first}')}")
    final = code.emit(f"add i64 {offset}, {distance}")
    tests = [code.emit(f"icmp ult i64 {_rotated(code, end, log)}, {bound}") for end in (offset, final)]
    if bits == 64:
        moved = code.emit(f"add i64 {step}, {FARTHEST}")
        tests.append(code.emit(f"icmp ult i64 {moved}, {2 * FARTHEST}"))
    aligned = code.emit(f"and i64 {code.emit(f'or i64 {offset}, {step}')}, {(1 << log) - 1}")
    tests.append(code.emit(f"icmp eq i64 {aligned}, 0"))
    good = tests[0]
    for test in tests[1:]:
        good = code.emit(f"and i1 {good}, {test}")
    return good


def _rotated(code: Code, offset: str, log: int) -> str:
    """Rotate the low bits to the top, where they make an unaligned offset too large."""
    return code.intrinsic("i64", "llvm.fshr.i64", ("i64", offset), ("i64", offset), ("i64", str(log))) if log else offset


def in_box(alg: VectorAlgebra, raw: Affine, size: int, low: str, bound: str) -> str:
    """The same of all lanes, whose distances are known at run time, by the least address and the greatest."""
    code, log = alg.code, size.bit_length() - 1
    first: Scalar = raw.base
    span: Scalar = 0
    bits = "0"
    for pattern, u in raw.terms:
        ends = [text("i64", alg.scalar("mul", 64, u, k & (1 << 64) - 1)) for k in (min(pattern), max(pattern))]
        least, most = (
            code.intrinsic("i64", f"llvm.{name}.i64", *[("i64", each) for each in ends]) for name in ("smin", "smax")
        )
        first = alg.scalar("add", 64, first, least)
        span = alg.scalar("add", 64, span, code.emit(f"sub i64 {most}, {least}"))
        bits = code.emit(f"or i64 {bits}, {text('i64', u)}")
    offset = code.emit(f"sub i64 {text('i64', first)}, {low}")
    if log:  # an offset that is not aligned becomes a large one
        offset = code.intrinsic("i64", "llvm.fshr.i64", ("i64", offset), ("i64", offset), ("i64", str(log)))
    length = code.emit(f"lshr i64 {text('i64', span)}, {log}")
    limit = code.intrinsic("i64", "llvm.usub.sat.i64", ("i64", bound), ("i64", length))
    inside = code.emit(f"icmp ult i64 {offset}, {limit}")
    aligned = code.emit(f"icmp eq i64 {code.emit(f'and i64 {bits}, {size - 1}')}, 0")
    return code.emit(f"and i1 {inside}, {aligned}")
