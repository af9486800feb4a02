"""The primitives of `algebra.value.Algebra` over NumPy arrays: one element per lane.

Every function takes arrays, NumPy scalars (a uniform register) or a mixture, and gives an array or a scalar of the same
dtype; all are total, and quiet only under `np.errstate(all="ignore")`, which is the caller's.  `DTYPES` says how a type
is held; packed types are held as their bits.

    dtype(type)    const(type, x)
    integers       add sub mul and or xor are NumPy's operators, min max its minimum and maximum; shl(a, b)  shr(a, b)
                   div(a, b)  rem(a, b)  mul_hi(a, b)  popc(a)  clz(a)  reverse(a)
    floats         floating(op, rounding, dtype, *args) for add sub mul div sqrt fma; fma_f32(a, b, c) and
                   fma_f64(a, b, c) are its `rn`; in `rn` + - * / and np.sqrt need no function
    compare        NumPy's operators do what the algebra asks
    select         select(condition, a, b)
    casts          view(a, dtype)  resize(a, dtype)  itof(a, dtype, rounding)  ftoi(a, dtype)  ftof(a, dtype, rounding)
    round          round_integral(mode, a), by ROUND[mode]
    derived        derived_NAME(a) for is_nan magnitude negate flush_subnormal canonical_nan clamp01
    b128           b128_resize(a, dtype)  b128_logic(op, a, b)  b128_equal(a, b)  b128_shl(a, b)  b128_shr(a, b)
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from ptxvm.algebra.types import Type, bf16, f16, f32, f64, pred, tf32
from ptxvm.engine import fused
from ptxvm.engine.fenv import rounded
from ptxvm.engine.software_rounding import cast
from ptxvm.machine.per_lane import PerLane

B128 = np.dtype([("lo", np.uint64), ("hi", np.uint64)])
F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
BF16 = np.dtype(ml_dtypes.bfloat16)
U16, U64 = np.dtype(np.uint16), np.dtype(np.uint64)
S64 = np.dtype(np.int64)
WORDS = {n: np.dtype(f"u{n}") for n in (1, 2, 4, 8)}
LEAST_NORMAL = {held: held.type(2.0**exponent) for held, exponent in ((F16, -14), (BF16, -126), (F32, -126), (F64, -1022))}


def _held(type: Type) -> np.dtype[np.generic]:
    known: dict[Type, np.dtype[np.generic]] = {pred: np.dtype(bool), f16: F16, bf16: BF16, f32: F32, tf32: F32, f64: F64}
    if type in known:
        return known[type]
    if type.bits > 64:
        return B128
    size = next(n for n in (1, 2, 4, 8) if type.bits <= 8 * n)
    return np.dtype(f"i{size}" if type.is_signed and not type.is_packed else f"u{size}")


DTYPES = {type: _held(type) for type in Type.named.values()}


def dtype(type: Type) -> np.dtype[np.generic]:
    """The NumPy dtype that holds values of the type."""
    return DTYPES[type]


def const(type: Type, x: float) -> PerLane:
    """A constant as a NumPy scalar; integers (and the bits of packed types) modulo their width, floats by value."""
    held = DTYPES[type]
    if held.kind in "ui":
        return WORDS[held.itemsize].type(int(x) & (1 << type.bits) - 1).view(held)
    if held is B128:
        return np.array((int(x) & (1 << 64) - 1, int(x) >> 64 & (1 << 64) - 1), B128)[()]
    return held.type(x)


# ── integers ────────────────────────────────────────────────────────────────────────────


def shl(a: PerLane, b: PerLane) -> PerLane:
    """`a << b`, 0 from the width on: NumPy's own shifts are total, and read a negative amount as a large one."""
    return a << b


def shr(a: PerLane, b: PerLane) -> PerLane:
    """`a >> b`, 0 or the sign from the width on."""
    return a >> b


def div(a: PerLane, b: PerLane) -> PerLane:
    """The quotient, truncated; all bits are 1 where the divisor is 0."""
    held, zero = a.dtype, b == 0
    b = b | zero  # a divisor of 1 instead
    if held.itemsize < 8:  # exact in f64: a quotient that is not whole is farther from a whole one than f64 rounds
        quotient = (a.astype(F64) / b).astype(S64).astype(held)
    elif held.kind == "u":
        quotient = a // b
    else:
        size = _absolute(a) // _absolute(b)
        quotient = select((a ^ b) < 0, U64.type(0) - size, size).view(held)
    return select(zero, ~held.type(0), quotient) if np.count_nonzero(zero) else quotient


def rem(a: PerLane, b: PerLane) -> PerLane:
    """The remainder, with the sign of the dividend; the dividend itself where the divisor is 0."""
    return select(b == 0, a, a - div(a, b) * b)


def _absolute(a: PerLane) -> PerLane:
    """The magnitude of an s64 as u64."""
    return select(a < 0, U64.type(0) - a.view(U64), a.view(U64))


def mul_hi(a: PerLane, b: PerLane) -> PerLane:
    """The upper half of the full product."""
    held = a.dtype
    bits = 8 * held.itemsize
    if bits < 64:
        wide = S64 if held.kind == "i" else U64
        return (a.astype(wide) * b.astype(wide) >> wide.type(bits)).astype(held)
    high = _mul_hi_u64(a.view(U64), b.view(U64))
    if held.kind == "u":
        return high
    sign = S64.type(63)
    return high.view(S64) - (a >> sign & b) - (b >> sign & a)


def _mul_hi_u64(a: PerLane, b: PerLane) -> PerLane:
    half, mask = U64.type(32), U64.type(0xFFFF_FFFF)
    a0, a1, b0, b1 = a & mask, a >> half, b & mask, b >> half
    cross = a1 * b0 + (a0 * b0 >> half)
    other = a0 * b1 + (cross & mask)
    return a1 * b1 + (cross >> half) + (other >> half)


def popc(a: PerLane) -> PerLane:
    """How many bits are 1."""
    held = a.dtype
    return np.bitwise_count(a.view(WORDS[held.itemsize])).astype(held)


def clz(a: PerLane) -> PerLane:
    """How many leading bits are 0, from the exponent of the number as an f64."""
    held = a.dtype
    a, bits = a.view(WORDS[held.itemsize]), 8 * held.itemsize
    if bits == 64:
        a = a & ~(a >> U64.type(1))  # so that it does not round up to the next power of two
    exponent = a.astype(F64).view(U64) >> U64.type(52)
    return np.minimum(U64.type(1022 + bits) - exponent, U64.type(bits)).astype(held)


SWAPS = ((1, 0x5555_5555_5555_5555), (2, 0x3333_3333_3333_3333), (4, 0x0F0F_0F0F_0F0F_0F0F))


def reverse(a: PerLane) -> PerLane:
    """The bits in the opposite order."""
    held = a.dtype
    word = WORDS[held.itemsize].type
    a = a.view(word).byteswap()
    for distance, mask in SWAPS:
        n, m = word(distance), word(mask & (1 << 8 * held.itemsize) - 1)
        a = (a >> n & m) | ((a & m) << n)
    return a.view(held)


# ── 128 bits, as two words ──────────────────────────────────────────────────────────────


def pair(lo: PerLane, hi: PerLane) -> PerLane:
    """A b128 of its two words."""
    made = np.empty(np.broadcast(lo, hi).shape, B128)
    made["lo"], made["hi"] = lo, hi
    return made[()]


def b128_resize(a: PerLane, held: np.dtype[np.generic]) -> PerLane:
    """An integer to b128, extended by its signedness; or b128 to an integer."""
    if held != B128:
        return a["lo"].astype(held)
    if a.dtype == B128:
        return a
    lo = a.astype(U64)
    return pair(lo, (a.astype(S64) >> S64.type(63)).view(U64) if a.dtype.kind == "i" else U64.type(0))


def b128_logic(op: str, a: PerLane, b: PerLane) -> PerLane:
    """`and or xor` of each word."""
    ufunc = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[op]
    return pair(ufunc(a["lo"], b["lo"]), ufunc(a["hi"], b["hi"]))


def b128_equal(a: PerLane, b: PerLane) -> PerLane:
    """`a == b`."""
    return (a["lo"] == b["lo"]) & (a["hi"] == b["hi"])


def _amount(b: PerLane) -> PerLane:
    """The amount of a shift, in one word."""
    return select(b["hi"] == 0, b["lo"], U64.type(128))


def b128_shl(a: PerLane, b: PerLane) -> PerLane:
    """`a << b`."""
    n, word = _amount(b), U64.type(64)
    return pair(a["lo"] << n, (a["hi"] << n) | (a["lo"] >> (word - n)) | (a["lo"] << (n - word)))


def b128_shr(a: PerLane, b: PerLane) -> PerLane:
    """`a >> b`, unsigned."""
    n, word = _amount(b), U64.type(64)
    return pair((a["lo"] >> n) | (a["hi"] << (word - n)) | (a["hi"] >> (n - word)), a["hi"] >> n)


# ── floats ──────────────────────────────────────────────────────────────────────────────

UFUNCS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt}


def floating(op: str, rounding: str, held: np.dtype[np.generic], *args: PerLane) -> PerLane:
    """`add sub mul div sqrt fma` on f32 or f64, correctly rounded."""
    if op == "fma":
        return fused.fma(rounding, held, *args)
    return rounded(rounding, UFUNCS[op], *args)


def select(condition: PerLane, a: PerLane, b: PerLane) -> PerLane:
    """`a` where the condition holds, else `b`."""
    made: PerLane = np.where(condition, a, b)
    return made[()]


ROUND = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def round_integral(mode: str, a: PerLane) -> PerLane:
    """A float to an integral float."""
    return ROUND[mode](a)


# ── casts ───────────────────────────────────────────────────────────────────────────────


def view(a: PerLane, held: np.dtype[np.generic]) -> PerLane:
    """The same bits."""
    return a.view(held)


def resize(a: PerLane, held: np.dtype[np.generic]) -> PerLane:
    """Integer to integer: truncated, or extended by the signedness of the source; a predicate gives 0 or 1."""
    return b128_resize(a, held) if B128 in (held, a.dtype) else a.astype(held)


def itof(a: PerLane, held: np.dtype[np.generic], rounding: str) -> PerLane:
    """Integer to float; to f16 and bf16 by way of an f32 that is rounded to odd."""
    if held in (F64, F32):
        return rounded(rounding, cast, a, held)
    return ftof(rounded("odd", cast, a, F32), held, rounding)


def ftoi(a: PerLane, held: np.dtype[np.integer]) -> PerLane:
    """Float to integer, truncated and saturated; NaN is 0."""
    a = a.astype(F64)
    a = select(a == a, a, F64.type(0))  # noqa: PLR0124 (only NaN differs from itself)
    limits = np.iinfo(held)
    if held.itemsize < 8:
        a = np.minimum(np.maximum(a, F64.type(limits.min)), F64.type(limits.max))
        return a.astype(S64).astype(held)
    a = np.maximum(a, F64.type(limits.min))
    over = a >= F64.type(limits.max)  # the limit rounds up: 2^63 or 2^64
    if np.count_nonzero(over):
        return select(over, held.type(limits.max), select(over, F64.type(0), a).astype(held))
    return a.astype(held)


def ftof(a: PerLane, held: np.dtype[np.generic], rounding: str) -> PerLane:
    """Float to float, rounded once; a signalling NaN becomes a quiet one with the same payload."""
    if a.dtype == F16 and held == F64:  # NumPy would copy the bits of a NaN
        a = a.astype(F32)
    if held in (F64, a.dtype):
        return a.astype(held)
    if held == F32:
        return rounded(rounding, cast, a, held) if a.dtype == F64 else a.astype(held)
    if held == BF16:  # ml_dtypes would round an f64 twice, and f16 fits in f32
        a = rounded("odd", cast, a, F32) if a.dtype == F64 else a.astype(F32)
    if a.dtype == BF16:
        a = a.astype(F32)
    near = a.astype(held)
    return near if rounding == "rn" else _corrected(near, a, rounding)


def _corrected(near: PerLane, exact: PerLane, rounding: str) -> PerLane:
    """The nearest f16 or bf16, moved by one step where the mode wants the other neighbour."""
    bits, back = near.view(U16), np.abs(near.astype(exact.dtype))
    size = np.abs(exact)
    far, short = back > size, back < size
    if rounding == "rz":
        moved = bits - far
    elif rounding == "odd":
        moved = (bits - far) | (far | short)
    else:  # away from zero, or towards it
        moved = select(np.signbit(exact) == (rounding == "rm"), bits + short, bits - far)
    return moved.view(near.dtype)


# ── derived operations, quicker ─────────────────────────────────────────────────────────


def derived_is_nan(a: PerLane) -> PerLane:
    """Is the value NaN?"""
    return a != a  # noqa: PLR0124 (only NaN differs from itself)


def _bits(a: PerLane) -> tuple[PerLane, PerLane]:
    """The bits of a float, and the sign of its format."""
    word = WORDS[a.dtype.itemsize]
    return a.view(word), word.type(1 << 8 * word.itemsize - 1)


def derived_magnitude(a: PerLane) -> PerLane:
    """The bits without the sign."""
    bits, sign = _bits(a)
    return bits & ~sign


def derived_negate(a: PerLane) -> PerLane:
    """The sign flipped, of NaN too."""
    bits, sign = _bits(a)
    return (bits ^ sign).view(a.dtype)


def derived_flush_subnormal(a: PerLane) -> PerLane:
    """Subnormal values become zero of the same sign."""
    small = np.abs(a) < LEAST_NORMAL[a.dtype]
    if not np.count_nonzero(small):
        return a
    bits, sign = _bits(a)
    return select(small, bits & sign, bits).view(a.dtype)


def derived_canonical_nan(a: PerLane) -> PerLane:
    """NaN of f16, bf16 and f32 with all bits set but the sign."""
    wrong = a != a  # noqa: PLR0124 (only NaN differs from itself)
    if a.dtype == F64 or not np.count_nonzero(wrong):
        return a
    bits, sign = _bits(a)
    return select(wrong, ~sign, bits).view(a.dtype)


def derived_clamp01(a: PerLane) -> PerLane:
    """Limited to [+0, 1]; NaN becomes +0."""
    one, zero = a.dtype.type(1), a.dtype.type(0)
    return select(a > zero, np.minimum(a, one), zero)
