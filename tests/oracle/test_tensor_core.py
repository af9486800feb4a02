"""`mma` against what tensor cores computed, and against exact integers.

Source: shared/fidelity/mma_vectors.npz (microsoft/MMA-Sim, validated by its authors on cards of each architecture).
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from warp_matrices import TARGETS, multiply

VECTORS = Path(__file__).parents[3] / "shared" / "fidelity" / "mma_vectors.npz"


@cache
def vectors() -> dict[tuple[str, str], list[list[np.ndarray]]]:
    """The products by architecture and kind: A, B, C and D of each."""
    file = np.load(VECTORS)
    found: dict[tuple[str, str], list[list[np.ndarray]]] = {}
    for key in file.files:
        architecture, kind, name, matrix = key.split("|")
        if matrix == "A":
            product = [file[f"{architecture}|{kind}|{name}|{m}"] for m in "ABCD"]
            found.setdefault((architecture, kind), []).append(product)
    return found


def dimensions(name: str) -> tuple[int, int, int]:
    m, n, k = map(int, re.findall(r"\d+", name))
    return m, n, k


@pytest.mark.skipif(not VECTORS.is_file(), reason="the reference data is missing")
def test_there_are_704_products():
    assert sum(map(len, vectors().values())) == 704


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("architecture", "kind"), vectors() if VECTORS.is_file() else [])
def test_products_are_what_silicon_computes(architecture, kind):
    shape, _, types = kind.partition(".")
    a, b, c, d = (np.stack(part) for part in zip(*vectors()[architecture, kind], strict=True))
    got = multiply(dimensions(shape), types, a, b, c, target=TARGETS[architecture])
    assert [n for n in range(len(d)) if not (got[n] == d[n]).all()] == []


@pytest.mark.skipif(not VECTORS.is_file(), reason="the reference data is missing")
@pytest.mark.parametrize("orders", [("row", "row"), ("col", "row"), ("col", "col")])
@pytest.mark.parametrize("types", ["f16.f16.f16.f16", "f32.f16.f16.f16", "f32.f16.f16.f32"])
def test_m8n8k4_in_every_order(orders, types):
    a, b, c, d = (np.stack(part) for part in zip(*vectors()["Volta", f"m8n8k4.{types}"], strict=True))
    assert (multiply((8, 8, 4), types, a, b, c, target="sm_70", orders=orders) == d).all()


SMALL = {"s8": (-128, 128), "u8": (0, 256), "s4": (-8, 8), "u4": (0, 16), "b1": (0, 2)}
INTEGER_SHAPES = [
    *[((m, 8, k), a, b) for m, k in ((8, 16), (16, 16), (16, 32)) for a in ("s8", "u8") for b in ("s8", "u8")],
    *[((m, 8, k), a, b) for m, k in ((8, 32), (16, 32), (16, 64)) for a in ("s4", "u4") for b in ("s4", "u4")],
]
LARGEST = 2**31 - 1


def integers(rng, type, size):
    return rng.integers(*SMALL[type], size)


def bits(type, values):
    """The low bits that hold small integers."""
    return values & (1 << int(type[1:])) - 1


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("shape", "a_type", "b_type"), INTEGER_SHAPES)
def test_integers_wrap_or_saturate(shape, a_type, b_type, rng):
    m, n, k = shape
    a, b = integers(rng, a_type, (4, m, k)), integers(rng, b_type, (4, k, n))
    c = rng.integers(-(2**31), 2**31, (4, m, n))
    c[0], c[1] = rng.integers(-1000, 1000, (m, n)), LARGEST
    given = bits(a_type, a), bits(b_type, b), c.astype(np.uint32)
    types, exact = f"s32.{a_type}.{b_type}.s32", a @ b + c
    wrapped = multiply(shape, types, *given, target="sm_80")
    assert (wrapped == exact.astype(np.uint32)).all()
    limited = multiply(shape, types, *given, target="sm_80", before=".satfinite")
    assert (limited.view(np.int32) == np.clip(exact, -(2**31), LARGEST)).all()
    assert (exact > LARGEST).any()


@pytest.mark.parametrize("operation", ["xor", "and"])
@pytest.mark.parametrize("shape", [(8, 8, 128), (16, 8, 128), (16, 8, 256)])
def test_bits_are_counted(shape, operation, rng):
    m, n, k = shape
    a, b, c = integers(rng, "b1", (3, m, k)), integers(rng, "b1", (3, k, n)), rng.integers(-9, 9, (3, m, n))
    left, right = a[:, :, None, :], b.swapaxes(1, 2)[:, None]
    ones = (left ^ right if operation == "xor" else left & right).sum(axis=-1)
    got = multiply(shape, "s32.b1.b1.s32", a, b, c.astype(np.uint32), target="sm_80", after=f".{operation}.popc")
    assert (got.view(np.int32) == ones + c).all()


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
def test_f64_rounds_at_each_step(rounding):
    tiny, one = 2.0**-60, 1.0
    a, b, c = np.zeros((1, 8, 4)), np.zeros((1, 4, 8)), np.ones((1, 8, 8))
    a[0, 0], b[0, :, 0] = tiny, one  # 1 + 2**-60, four times
    a[0, 1], b[0, :, 1] = -tiny, one
    got = multiply(
        (8, 8, 4), "f64.f64.f64.f64", *(x.view(np.uint64) for x in (a, b, c)), target="sm_80", before=f".{rounding}"
    ).view(np.float64)[0]
    step = 2.0**-52  # above 1; below it is half of that
    assert got[0, 0] == {"rp": 1.0 + 4 * step}.get(rounding, 1.0)
    assert got[1, 1] == {"rz": 1.0 - 2 * step, "rm": 1.0 - 2 * step}.get(rounding, 1.0)
    assert got[2, 2] == 1.0


@pytest.mark.parametrize("target", ["sm_90", "sm_100"])
def test_small_floats_in_f16_of_hopper_go_through_f16(target):
    """For sm_90, ptxas sums the products of the lower halves, those of the upper ones, then adds C, rounded."""
    a, b, c = np.zeros((1, 16, 32), np.uint8), np.full((1, 32, 8), 0x38, np.uint8), np.zeros((1, 16, 8), np.uint16)
    a[0, 0, :3], b[0, 0] = (0x68, 0x38, 0x38), 0x60  # of e4m3: 64 * 32, 1 * 1 in a lower half and 1 * 1 in an upper one
    types = "f16.e4m3.e4m3.f16"
    results = [multiply((16, 8, 32), types, a, b, c, target=t)[0] for t in (target, "sm_120")]
    converted, direct = (bits.view(np.float16)[0, 0] for bits in results)
    assert converted == 2048.0  # 2049 is rounded to it, twice
    assert direct == 2050.0


DOTS = VECTORS.with_name("dots_hopper_blackwell.npz")
EACH = 8  # dot products in a matrix product: those on the diagonal of D


def diagonals(file, name):
    """Recorded dot products as matrices: the rows of A, the columns of B, the diagonals of C and D."""
    a, b, c, d = (file[f"{name}|{m}"] for m in "ABCD")
    count = len(a) // EACH
    rows, columns = np.zeros((count, 16, 32), a.dtype), np.zeros((count, 32, 8), b.dtype)
    rows[:, :EACH], columns[:] = a.reshape(count, EACH, 32), b.reshape(count, EACH, 32).swapaxes(1, 2)
    added = np.zeros((count, 16, 8), np.uint32)
    added[:, np.arange(EACH), np.arange(EACH)] = c.reshape(count, EACH)
    return rows, columns, added, d.reshape(count, EACH)
