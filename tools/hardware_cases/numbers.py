"""Random numbers of the types of PTX, as bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[Any]

# The exponent's bits and the fraction's bits.
FLOATS = {
    "f16": (5, 10), "bf16": (8, 7), "tf32": (8, 23), "f32": (8, 23), "f64": (11, 52),
    "e4m3": (4, 3), "e5m2": (5, 2),
}  # fmt: skip
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "e4m3": 8, "e5m2": 8}
BITS |= {"s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1, "s32": 32}
MODES = ("near", "wide", "bits")
"""How far numbers are apart: exponents within a few of that of one, any exponents, any bits (NaN, too)."""


def elements(rng: np.random.Generator, type: str, mode: str, count: int) -> Words:
    """Elements of a type, in the low bits of words."""
    bits = BITS[type]
    words = rng.integers(0, 1 << 63, count, np.uint64) << np.uint64(1) ^ rng.integers(0, 1 << 32, count, np.uint64)
    if type not in FLOATS or mode == "bits":
        low: Words = words & np.uint64((1 << bits) - 1)
        return low
    exponent, fraction = FLOATS[type]
    bias = (1 << exponent - 1) - 1
    spread = min(4, bias - 1)
    least, most = (bias - spread, bias + spread) if mode == "near" else (0, 2 * bias)
    powers = rng.integers(least, most + 1, count, np.uint64)
    kept = words & np.uint64((1 << bits - 1 | (1 << fraction) - 1) & (1 << 64) - 1)
    found: Words = kept & ~np.uint64(((1 << exponent) - 1) << fraction) | powers << np.uint64(fraction)
    return found


def packed(values: Words, bits: int) -> Words:
    """Elements in words of 32 bits, the first in the low bits; an f64 fills a word of 64."""
    if bits == 64:
        return values
    each = 32 // bits
    parts = values.reshape(*values.shape[:-1], -1, each) << np.arange(0, 32, bits, dtype=np.uint64)
    together: Words = np.bitwise_or.reduce(parts, axis=-1)
    return together


PAIRS = np.array([0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110], np.uint64)
"""Metadata of a group of four: the places of two elements that are not zero."""


def metadata(rng: np.random.Generator, type: str, count: int) -> Words:
    """Words of metadata of a sparse operand; the two halves of a tf32 lie side by side."""
    nibbles = rng.choice(PAIRS[[0, -1]] if type == "tf32" else PAIRS, (count, 8)) << np.arange(0, 32, 4, dtype=np.uint64)
    words: Words = np.bitwise_or.reduce(nibbles, axis=-1)
    return words


AWKWARD = np.array(
    [
        0, 1, 2, 31, 32, 33, 63, 64, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF,
        1 << 63, (1 << 63) - 1, (1 << 64) - 1, 0x3C00, 0x7C00, 0x7C01, 0xFC00, 0x03FF, 0x0400, 0x3F80, 0x7F80, 0x7FC1,
        0x3F800000, 0x7F800000, 0xFF800000, 0x7F800001, 0x7FC00001, 0xFFC00000, 0x007FFFFF, 0x00800000, 0x00000001,
        0x80000001, 0x7F7FFFFF, 0x4F000000, 0xCF000000, 0x3F000000, 0x3C003C00, 0x7C017E00, 0x80000400,
        0x3FF0000000000000, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF0000000000001, 0x7FF8000000000123,
        0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x8000000000000001, 0x7FEFFFFFFFFFFFFF, 0x41E0000000000000,
    ],
    np.uint64,
)  # fmt: skip


def mixed(rng: np.random.Generator, count: int) -> Words:
    """Words of 64 bits for whatever type: any bits, small numbers, floats near one of each size, and what breaks things."""
    any_bits = elements(rng, "f64", "bits", count)
    halves = packed(elements(rng, "f16", "near", 2 * count), 16)
    singles = elements(rng, "f32", "near", count)
    doubles = elements(rng, "f64", "near", count)
    small = rng.integers(0, 70, count, np.uint64)
    choices = np.stack([any_bits, small, np.uint64(0) - small, halves, singles, doubles, rng.choice(AWKWARD, count)])
    chosen: Words = choices[rng.integers(0, len(choices), count), np.arange(count)]
    return chosen
