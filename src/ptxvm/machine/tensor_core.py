"""The matrix products of the tensor cores, bit for bit, by architecture (`fidelity/mma_vectors.npz`).

Floats: so many products at once are added to the accumulator as integers.  The products are exact; products and
accumulator are aligned to the largest exponent among them (that of a product being the sum of its factors' exponents,
whether or not the significand carries), cut off a number of bits below it, and summed exactly.  Zeros have no exponent.
An accumulator of f32 is truncated, one of f16 rounded to nearest even.  A longer product is a chain of such sums.

f64 is a chain of fused multiply-adds, integers are exact and wrap or saturate, and bits are counted.

All is done on stacks of matrices: arrays `(matrices, rows, columns)` of the elements' bits.  An f64 holds every product
and every cut-off sum exactly, so the "integers" are f64 numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from functools import cache
from typing import TypeAlias

import ml_dtypes
import numpy as np

from ptxvm.algebra.types import Type, f16, f32, f64, s32
from ptxvm.analysis.program import Bound
from ptxvm.isa.fragments import Core, Product, Scaling, Sparsity
from ptxvm.machine.per_lane import Array
from ptxvm.named_tuple import NamedTuple

Matrices: TypeAlias = Array
"""A stack of matrices, or the rows of one."""

FusedMultiplyAdd = Callable[[str, Matrices, Matrices, Matrices], Matrices]
"""`fma(rounding, a, b, c)` on rows of f64."""


class Architecture(IntEnum):
    """The families of tensor cores, each by the number of its first target."""

    VOLTA = 70
    TURING = 75
    AMPERE = 80
    ADA = 89
    HOPPER = 90
    BLACKWELL = 100
    RTX_BLACKWELL = 120


def architecture_of(target: int) -> Architecture:
    """The architecture of `sm_N`; the first that has tensor cores where it is older."""
    return max((a for a in Architecture if a <= target), default=Architecture.VOLTA)


def architecture_for(bound: Bound) -> Architecture:
    """The tensor cores of the target of an instruction's module."""
    program = bound.program
    return architecture_of(program.target.number if program is not None else 0)


class Accumulation(NamedTuple):
    """How a tensor core adds products of floats.

    `length` products are added at once, cut off `fraction` bits below the largest exponent; an f32 result has
    `accumulator_bits` bits of fraction.  A `converted` unit takes fp8 as f16: it sums the lower, then the upper halves of
    the registers from zero on, and adds the accumulator at last, with an ordinary addition.  The largest exponent is at
    least that of a `floor`, by the type of the accumulator.  A unit of a `group` adds so many products of small numbers
    exactly, before their scales are applied; the sum has the exponent of the scales.
    """

    length: int
    fraction: int
    accumulator_bits: int = 23
    converted: bool = False
    floor: tuple[float, float] = (0.0, 0.0)
    group: int = 1

    def least(self, accumulated: Type) -> float:
        """The floor for an accumulator."""
        return self.floor[accumulated is f16]


V, T, A, L, H, B, R = Architecture
FLOOR = (2.0**-133, 2.0**-21)  # of accumulators of f32 and f16, since Hopper
FLOOR_OF_GROUPS = (2.0**-139, 2.0**-139)

# From each architecture on, until the next that is named.  Where the first is newer than the target, it stands in.
UNITS: dict[str, dict[Architecture, Accumulation]] = {
    "f16": {V: Accumulation(4, 23), T: Accumulation(8, 24), H: Accumulation(16, 25, floor=FLOOR)},
    "bf16": {A: Accumulation(8, 24), H: Accumulation(16, 25, floor=FLOOR)},
    "tf32": {A: Accumulation(4, 24), H: Accumulation(8, 25, floor=FLOOR)},
    # ptxas makes a chain of two narrower products of a `wmma` (recorded on an H200).
    "tf32 of wmma": {A: Accumulation(4, 24), H: Accumulation(4, 25, floor=FLOOR)},
    # Hopper and the Blackwell of data centres have no such `mma`: ptxas converts fp8 to f16 there (recorded on an H200).
    "fp8": {
        L: Accumulation(16, 13, accumulator_bits=13),
        H: Accumulation(16, 25, converted=True, floor=FLOOR),
        R: Accumulation(32, 25, floor=FLOOR),
    },
}
WARPGROUP = Accumulation(32, 13, accumulator_bits=13, floor=FLOOR)  # of fp8, in `wgmma`
FIFTH_GENERATION = Accumulation(32, 25, floor=FLOOR)  # of 8 bits and less, in `tcgen05.mma`, and of blocks with a scale
HALF_BYTES = Accumulation(64, 35, floor=FLOOR_OF_GROUPS, group=16)  # of blocks of half bytes with a scale


def unit_of(product: Product, architecture: Architecture) -> Accumulation:
    """The unit for a product of floats."""
    if product.scaling is not None:
        return HALF_BYTES if product.a.halved else FIFTH_GENERATION
    kind = product.a.type.name if product.a.type.name in UNITS else "fp8"
    if kind == "fp8" and product.core is not Core.MMA:
        return WARPGROUP if product.core is Core.WGMMA else FIFTH_GENERATION
    since = UNITS.get(f"{kind} of {product.core.value}", UNITS[kind])
    first = max((a for a in since if a <= architecture), default=min(since))
    return since[first]


def multiply(
    product: Product, architecture: Architecture, a: Matrices, b: Matrices, c: Matrices, fma: FusedMultiplyAdd,
    further: Sequence[Matrices] = (),
) -> Matrices:  # fmt: skip
    """The bits of D = A * B + C, for stacks of matrices of bits; `further` are the metadata and scales of the product."""
    if product.d.type is s32:
        return integers(product, a, b, c, *further)
    with np.errstate(all="ignore"):
        if product.d.type is f64:
            return doubles(product, a, b, c, fma)
        if product.a.matrices > 1 and architecture > Architecture.TURING:
            return quarters(product, a, b, c)
        return floats(product, unit_of(product, architecture), a, b, c, further)


# ── floats ──────────────────────────────────────────────────────────────────────────────

# The dtype of an accumulator, its bits, its largest number, its NaN.
ACCUMULATORS: dict[Type, tuple[type, type, float, int]] = {
    f16: (np.float16, np.uint16, 65504.0, 0x7FFF),
    f32: (np.float32, np.uint32, float(np.finfo(np.float32).max), 0x7FFF_FFFF),
}
AT_ONCE = 1 << 15  # products that fit in the caches


def floats(
    product: Product, unit: Accumulation, a: Matrices, b: Matrices, c: Matrices, further: Sequence[Matrices] = ()
) -> Matrices:
    """A product of f16, bf16, tf32 or narrower floats."""
    count, rows, depth = a.shape
    step = max(1, AT_ONCE // (rows * depth * b.shape[2]))
    parts = [slice(n, n + step) for n in range(0, count, step)]
    results = [chain(product, unit, a[part], b[part], c[part], [each[part] for each in further]) for part in parts]
    return results[0] if len(results) == 1 else np.concatenate(results)


def chain(product: Product, unit: Accumulation, a: Matrices, b: Matrices, c: Matrices, further: Sequence[Matrices]) -> Matrices:
    """The products, added in steps of the unit's length; in f32, unless C and D are both f16."""
    accumulated = f16 if product.c.type is product.d.type is f16 else f32
    left, right = (
        decoded(each.type, bits, f16 if unit.converted else each.type, halved=each.halved)
        for each, bits in ((product.a, a), (product.b, b))
    )
    added, _ = decoded(product.c.type, c, product.c.type)
    total = np.zeros_like(added) if unit.converted else added
    if unit.group > 1:
        total = aligned_sum(*scaled_groups(product, unit.group, left[0], right[0], further), total, accumulated, unit)
        return encoded(product.d.type, rounded(accumulated, unit.accumulator_bits, total))
    if product.sparsity is not None:
        columns = positions(product.sparsity, further[0])
        right = opposite(right[0], columns), opposite(right[1], columns)
    scales = None if product.scaling is None else scales_of(product.scaling, *further[-2:])
    for part in steps(a.shape[2], unit):
        values, powers = (
            products(x[:, :, part], y[:, part] if y.ndim == a.ndim else y[:, :, part]) for x, y in zip(left, right, strict=True)
        )
        if scales is not None:
            values, powers = scaled(values, powers, scales)
        total = aligned_sum(values, powers, total, accumulated, unit)
        total = rounded(accumulated, unit.accumulator_bits, total)
    if unit.converted:
        total = total.astype(ACCUMULATORS[accumulated][0]) + added.astype(ACCUMULATORS[accumulated][0])
    if product.finite:
        largest = ACCUMULATORS[product.d.type][2]
        total = np.where(np.isnan(total), 0.0, np.clip(total, -largest, largest))
    return encoded(product.d.type, total)


def quarters(product: Product, a: Matrices, b: Matrices, c: Matrices) -> Matrices:
    """`mma.m8n8k4` of f16 after Turing, which had the last cores for it: fused multiply-adds of f32 (ptxas 13.0, an H200).

    The products are exact in f32, so that an addition does what a fused multiply-add does.
    """
    x, y, added = (decoded(each.type, bits, each.type)[0].astype(np.float32) for each, bits in
                   ((product.a, a), (product.b, b), (product.c, c)))  # fmt: skip
    terms = [x[:, :, n, None] * y[:, n, None, :] for n in range(a.shape[2])]
    if product.d.type is f16:
        total = added + (terms[0] + terms[1]) + (terms[2] + terms[3])
    else:
        total = added + (0 + terms[0] + terms[1] + terms[2] + terms[3])
    return encoded(product.d.type, total)


def steps(depth: int, unit: Accumulation) -> Iterator[Matrices | slice]:
    """The products along the depth that are added at once, sum by sum."""
    order = np.arange(depth)
    if unit.converted:  # a register holds four
        yield from order.reshape(-1, 2, 2).swapaxes(0, 1).reshape(2, -1)
        return
    for start in range(0, depth, unit.length):
        yield slice(start, start + unit.length)


def products(a: Matrices, b: Matrices) -> Matrices:
    """The products of rows and columns, before they are summed: `(depth, n, rows, columns)`.

    B is `(n, depth, columns)`, or `(n, rows, depth, columns)` where each row of A meets other elements of it.
    """
    across = np.moveaxis(b, 1, 0)[:, :, None, :] if b.ndim == a.ndim else np.moveaxis(b, 2, 0)
    return np.moveaxis(a, 2, 0)[..., None] * across


def aligned_sum(values: Matrices, powers: Matrices, total: Matrices, accumulated: Type, unit: Accumulation) -> Matrices:
    """The sum of products and accumulator, each cut off so many bits below the largest exponent.

    `powers` are the powers of two of the products' exponents; `values` is used up.
    """
    largest = np.maximum(powers.max(axis=0), power(total, LEAST_POWER[accumulated]))
    scale = 2.0**unit.fraction / np.maximum(largest, unit.least(accumulated) or SMALLEST)
    values *= scale
    parts = np.trunc(values, out=values).sum(axis=0) + np.trunc(total * scale)
    found: Matrices = (parts + 0.0) / scale  # an exact zero is positive
    return found


SMALLEST = 2.0**-600  # below every product
LEAST_POWER = {f32: 2.0**-126, f16: 2.0**-14}  # of accumulators; subnormal numbers have it
EXPONENT = np.uint64(0x7FF0_0000_0000_0000)


def power(value: Matrices, least: float) -> Matrices:
    """2 to the exponent of each number; 0 for zeros, and for what is not finite."""
    found = np.maximum((value.view(np.uint64) & EXPONENT).view(np.float64), least)
    return np.where((value == 0) | ~np.isfinite(value), 0.0, found)


def rounded(type: Type, kept: int, value: Matrices) -> Matrices:
    """The exact sum as an accumulator, still in f64: f16 to nearest even, f32 truncated; beyond it infinity."""
    if type is f16:
        return value.astype(np.float16).astype(np.float64)
    mask = np.uint64(-(1 << 52 - kept) & 0xFFFF_FFFF_FFFF_FFFF)
    cut = (value.view(np.uint64) & mask).view(np.float64)
    size = np.abs(value)
    if np.count_nonzero(small := size < LEAST_POWER[f32]):
        step = 2.0 ** (126 + kept)
        cut = np.where(small, np.trunc(value * step) / step, cut)
    return np.where(size < 2.0**128, cut, value * np.inf)


# ── formats ─────────────────────────────────────────────────────────────────────────────

# The NumPy dtypes of small formats, and their least exponents.
FORMATS: dict[str, tuple[type, int]] = {
    "f16":  (np.float16, -14),
    "bf16": (ml_dtypes.bfloat16, -126),
    "e4m3": (ml_dtypes.float8_e4m3fn, -6),
    "e5m2": (ml_dtypes.float8_e5m2, -14),
    "e3m2": (ml_dtypes.float6_e3m2fn, -2),
    "e2m3": (ml_dtypes.float6_e2m3fn, 0),
    "e2m1": (ml_dtypes.float4_e2m1fn, 0),
    "ue8m0": (ml_dtypes.float8_e8m0fnu, -127),
    "ue4m3": (ml_dtypes.float8_e4m3fn, -6),
}  # fmt: skip
SHIFT = {"e2m1": 2}  # where the bits stand in their byte (PTX 9.7.14.5.14)
SIGNIFICANT = {"ue4m3": 7}  # the bits of their byte that count
TF32 = np.uint32(0xFFFF_E000)


def decoded(type: Type, bits: Matrices, exponents: Type, *, halved: bool = False) -> tuple[Matrices, Matrices]:
    """The values of floats as f64, and the powers of two of their exponents in a format."""
    if type.bits == 32:
        value = (bits if type is f32 else bits & TF32).view(np.float32).astype(np.float64)
        return value, power(value, LEAST_POWER[f32])
    values, powers = table(type, exponents, 0 if halved else SHIFT.get(type.name, 0))
    return values[bits], powers[bits]


@cache
def table(type: Type, exponents: Type, shift: int = 0) -> tuple[Matrices, Matrices]:
    """The value of every bit pattern of a small float, and the power of two of its exponent in a format."""
    held = FORMATS[type.name][0]
    container = max(8, type.bits)
    patterns = np.arange(1 << container) >> shift & (1 << SIGNIFICANT.get(type.name, type.bits)) - 1
    values = patterns.astype(f"u{container // 8}").view(held).astype(np.float64)
    return values, power(values, 2.0 ** FORMATS[exponents.name][1])


def encoded(type: Type, value: Matrices) -> Matrices:
    """The bits of f16 or f32 results; NaN has one pattern."""
    held, bits, _, nan = ACCUMULATORS[type]
    found: Matrices = np.where(np.isnan(value), bits(nan), value.astype(held).view(bits))
    return found


# ── sparse matrices and scales ──────────────────────────────────────────────────────────


def positions(sparsity: Sparsity, metadata: Matrices) -> Matrices:
    """The position in K of each stored element of A: `(n, rows, stored)` (PTX 9.7.14.6.1)."""
    count, rows, chunks = metadata.shape
    first = np.arange(chunks)[:, None] * sparsity.chunk
    indices = np.stack((metadata & 3, metadata >> 2), axis=-1).astype(np.int64)
    if sparsity.chunk == 2:  # the two indices are of the halves of one element
        found = first + (indices[..., :1] >> 1)
    elif sparsity.chunk == 4:
        found = first + indices
    else:
        found = first + (indices[..., None] * 2 + np.arange(2)).reshape(count, rows, chunks, 4)
    columns: Matrices = found.reshape(count, rows, -1)
    return columns


def filled(sparsity: Sparsity, a: Matrices, metadata: Matrices, depth: int) -> Matrices:
    """A whole sparse A, with zeros."""
    found = np.zeros((*a.shape[:2], depth), a.dtype)
    np.put_along_axis(found, positions(sparsity, metadata), a, axis=2)
    return found


def opposite(b: Matrices, columns: Matrices) -> Matrices:
    """The elements of B that the stored elements of each row of A meet: `(n, rows, stored, columns)`."""
    found: Matrices = b[np.arange(len(b))[:, None, None], columns]
    return found


def scales_of(scaling: Scaling, a: Matrices, b: Matrices) -> tuple[Matrices, Matrices]:
    """The scales of each block of K: their values and the powers of two of their exponents, `(blocks, n, rows, columns)`."""
    values, powers = zip(*(decoded(scaling.a.type, each, scaling.a.type) for each in (a, b)), strict=True)
    return products(*values), products(*powers)


def scaled(values: Matrices, powers: Matrices, scales: tuple[Matrices, Matrices]) -> tuple[Matrices, Matrices]:
    """Products with the scales of their blocks applied."""
    factors, exponents = (np.repeat(each, len(values) // len(scales[0]), axis=0) for each in scales)
    return values * factors, powers * exponents


def scaled_groups(
    product: Product, group: int, a: Matrices, b: Matrices, further: Sequence[Matrices]
) -> tuple[Matrices, Matrices]:
    """The exact sums of products of so many stored elements of A that are neighbours, with the scales of their blocks.

    Also the powers of two of the scales' exponents; both are `(groups, n, rows, columns)`.
    """
    (of_rows, powers_of_rows), (of_columns, powers_of_columns) = (
        decoded(each.type, bits, each.type) for each, bits in zip(product.further[-2:], further[-2:], strict=True)
    )
    if product.sparsity is not None:
        a, group = filled(product.sparsity, a, further[0], b.shape[1]), 2 * group
    count, rows, depth = a.shape
    groups = depth // group
    each = groups // of_rows.shape[2]  # of a block
    left = a.reshape(count, rows, groups, group) * np.repeat(of_rows, each, axis=2)[..., None]
    right = b.reshape(count, groups, group, b.shape[2]) * np.repeat(of_columns, each, axis=1)[:, :, None]
    sums: Matrices = left.transpose(2, 0, 1, 3) @ right.swapaxes(0, 1)
    powers = products(powers_of_rows, powers_of_columns).repeat(each, axis=0)
    return sums, np.where(sums == 0, 0.0, powers)


# ── f64 ─────────────────────────────────────────────────────────────────────────────────


def doubles(product: Product, a: Matrices, b: Matrices, c: Matrices, fma: FusedMultiplyAdd) -> Matrices:
    """A chain of fused multiply-adds."""
    left, right, total = (x.view(np.float64) for x in (a, b, c))
    total = total.ravel()
    for k in range(a.shape[2]):
        x, y = np.broadcast_arrays(left[:, :, k, None], right[:, k, None, :])
        total = fma(product.rounding, x.ravel(), y.ravel(), total)
    return total.view(np.uint64).reshape(c.shape)


# ── integers and bits ───────────────────────────────────────────────────────────────────


def integers(product: Product, a: Matrices, b: Matrices, c: Matrices, metadata: Matrices | None = None) -> Matrices:
    """A product of small integers, or the count of the ones of `a op b`; in f32, as no sum reaches 2**24."""
    left, right = number(product.a.type, a), number(product.b.type, b)
    if product.sparsity is not None and metadata is not None:
        total: Matrices = products(left, opposite(right, positions(product.sparsity, metadata))).sum(axis=0)
    else:
        total = left @ right
    if product.operation == "xor":
        total = left.sum(axis=2, keepdims=True) + right.sum(axis=1, keepdims=True) - 2 * total
    exact: Matrices = total.astype(np.int64) + c.view(np.int32)
    if product.finite:
        exact = np.clip(exact, *s32.range)
    found: Matrices = exact.astype(np.uint32)
    return found


def number(type: Type, bits: Matrices) -> Matrices:
    """The values of small integers as f32."""
    value = bits.astype(np.float32)
    return np.where(value < 1 << type.bits - 1, value, value - (1 << type.bits)) if type.is_signed else value


__all__ = ["UNITS", "Accumulation", "Architecture", "architecture_for", "architecture_of", "multiply"]
