"""Reductions and conversions of elements, with the values of PTX 9.7.9.25.4.2 and of the atomics of 9.7.13.5."""

from __future__ import annotations

import operator

import ml_dtypes
import numpy as np
import pytest

from ptxvm.algebra.state_space import Space
from ptxvm.isa.transfers import Pattern, Transfer
from ptxvm.machine.reductions import combine_each, combined, moved

BF16 = ml_dtypes.bfloat16
LOAD = Transfer(next(iter(Pattern)), Space.SHARED, Space.GLOBAL)


@pytest.mark.parametrize(
    ("operation", "element", "held", "old", "new", "want"),
    [
        ("inc", "u32", np.uint32, [4, 5, 9], [5, 5, 5], [5, 0, 0]),
        ("dec", "u32", np.uint32, [4, 0, 9], [5, 5, 5], [3, 5, 5]),
        ("min", "s64", np.int64, [-3, 2], [1, -7], [-3, -7]),
        ("max", "u32", np.uint32, [2**31, 1], [1, 2**32 - 1], [2**31, 2**32 - 1]),
        ("add", "u64", np.uint64, [2**64 - 1], [2], [1]),
        ("xor", "b64", np.uint64, [0xF0], [0xFF], [0x0F]),
        ("add", "f16", np.float16, [2048, 65504], [1, 16], [2048, np.inf]),  # to the even neighbour, and beyond
        ("add", "bf16", BF16, [256, 1], [1, 2**-8], [256, 1]),
        ("add", "f64", np.float64, [1], [2.0**-60], [1]),
        ("min", "f16", np.float16, [np.nan, -0.0, 1], [3, 0.5, -2], [3, -0.0, -2]),
    ],
)
def test_elements_are_combined(operation, element, held, old, new, want):
    rows = [np.array(each, held).view(np.uint8).reshape(1, -1) for each in (old, new, want)]
    assert (combined(operation, element, rows[0], rows[1], flushes=False) == rows[2]).all()


def test_sums_of_f32_flush_subnormals_and_have_one_nan():
    old, new = (np.array(each, np.float32).view(np.uint8).reshape(1, -1) for each in ([1e-39, 1, np.inf], [2e-38, 2, -np.inf]))
    flushed = combined("add", "f32", old, new, flushes=True).view(np.uint32).ravel().tolist()
    kept = combined("add", "f32", old, new, flushes=False).view(np.float32).ravel()
    assert flushed == [np.float32(2e-38).view(np.uint32), np.float32(3).view(np.uint32), 0x7FFFFFFF]
    assert kept[0] == np.float32(1e-39) + np.float32(2e-38)


def test_tf32_has_ten_bits_and_subnormals_stay():
    """Recorded on an H200 (`tests/oracle/test_recorded_cases.py`)."""
    bits = np.array([0x3F801000, 0x3F803000, 0x3F800FFF, 0x7F800000, 0x00001234], np.uint32)
    rounded = moved(LOAD, "tf32", bits.view(np.uint8).reshape(1, -1)).view(np.uint32).ravel().tolist()
    assert rounded == [0x3F800000, 0x3F804000, 0x3F800000, 0x7F800000, 0x00002000]
    same = bits.view(np.uint8).reshape(1, -1)
    assert moved(LOAD, "u32", same) is same
    assert moved(LOAD, "f32.ftz", same) is same


@pytest.mark.parametrize("operation", ["add", "and", "or", "xor", "min", "max", "inc", "dec"])
def test_each_of_several_at_one_place_is_combined(operation):
    """As PTX 9.7.13.7 has each `red.async` as an operation of its own; .inc and .dec turn at a limit (9.7.13.6)."""
    apply = {
        "add": operator.add, "and": operator.and_, "or": operator.or_, "xor": operator.xor, "min": min, "max": max,
        "inc": lambda old, b: 0 if old >= b else old + 1, "dec": lambda old, b: old - 1 if 0 < old <= b else b,
    }  # fmt: skip
    memory = np.array([7, 2, 0], np.uint32)
    to, rows = np.array([0, 2, 0, 0, 2]), np.array([[6], [3], [9], [6], [3]], np.uint32)
    want = memory.tolist()
    for place, value in zip(to.tolist(), rows.ravel().tolist(), strict=True):
        want[place] = apply[operation](want[place], value)
    combine_each(operation, "u32", memory.view("V4"), to, rows)
    assert memory.tolist() == want
