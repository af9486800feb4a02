"""NaNs of f64 arithmetic, which keep payload and sign (PTX 9.7.3), and of conversions to f64.

What is expected: a NaN operand comes out quiet, in whatever place it stands, also where the operation is invalid besides; a
NaN that an invalid operation makes is 0xfff8000000000000, as CUDA's own constant and emulation have it.  Of several NaN
operands any may come out.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from machine import kernel

BOTH = pytest.mark.parametrize("engine", ["interp", "jit"])
QUIET, MADE = 1 << 51, 0xFFF8 << 48
NANS = [0x7FF8_0000_0000_0001, 0xFFF8_0000_0000_0002, 0x7FF0_0000_0000_0003, 0xFFF4_0000_0000_0123]
NUMBERS = [0, 1 << 63, 0x3FF << 52, 0xBFF << 52, 0x7FF << 52, 0xFFF << 52, 1, 0x7FEF_FFFF_FFFF_FFFF]
ARITHMETIC = [
    *(f"{op}{rounding}.f64" for op in ("add", "sub", "mul", "div") for rounding in (".rn", ".rz", ".rm", ".rp")),
    *(f"fma{rounding}.f64" for rounding in (".rn", ".rz", ".rm", ".rp")),
    *(f"{op}.rn.f64" for op in ("sqrt", "rcp", "mad")),
]


def results(instruction: str, columns: list[np.ndarray], engine: str) -> np.ndarray:
    """What an instruction gives for each row of operands."""
    count = len(columns[0])
    out = np.zeros(count, np.uint64)
    made = kernel(instruction, "b64", tuple(["b64"] * len(columns)), "sm_90")
    made.launch(grid=-(-count // 64), block=64, args=[out, np.uint32(count), *columns], engine=engine)
    return out


@BOTH
@pytest.mark.parametrize("mnemonic", ARITHMETIC)
def test_a_nan_operand_comes_out_quiet(mnemonic: str, engine: str) -> None:
    count = {"fma": 3, "mad": 3, "sqrt": 1, "rcp": 1}.get(mnemonic.partition(".")[0], 2)
    rows = [
        (*others[:place], nan, *others[place:])
        for place in range(count)
        for nan in NANS
        for others in itertools.product(NUMBERS, repeat=count - 1)
    ]
    columns = [np.array(column, np.uint64) for column in zip(*rows, strict=True)]
    operands = ", ".join(f"{{{n}}}" for n in range(count))
    found = results(f"{mnemonic} {{d}}, {operands};", columns, engine)
    expected = [next(x for x in row if x in NANS) | QUIET for row in rows]
    assert [hex(x) for x in found] == [hex(x) for x in expected]


INVALID = [
    ("add.f64", 0x7FF << 52, 0xFFF << 52), ("sub.f64", 0x7FF << 52, 0x7FF << 52), ("mul.f64", 0, 0x7FF << 52),
    ("div.rn.f64", 0, 1 << 63), ("div.rn.f64", 0x7FF << 52, 0xFFF << 52), ("sqrt.rn.f64", 0xBFF << 52),
    ("fma.rn.f64", 0, 0x7FF << 52, 0x3FF << 52), ("fma.rz.f64", 0x3FF << 52, 0x7FF << 52, 0xFFF << 52),
]  # fmt: skip


@BOTH
@pytest.mark.parametrize(("mnemonic", "operands"), [(m, o) for m, *o in INVALID])
def test_an_invalid_operation_makes_one_nan(mnemonic: str, operands: list[int], engine: str) -> None:
    columns = [np.full(40, x, np.uint64) for x in operands]
    text = ", ".join(f"{{{n}}}" for n in range(len(operands)))
    assert {hex(x) for x in results(f"{mnemonic} {{d}}, {text};", columns, engine)} == {hex(MADE)}


# What LLVM makes less of where any NaN will do: (text, the sign of the NaN is flipped).
IDENTITIES = [
    ("mul.f64 {d}, {0}, 0d3FF0000000000000;", False), ("mul.f64 {d}, {0}, 0dBFF0000000000000;", False),
    ("add.f64 {d}, {0}, 0d8000000000000000;", False), ("sub.f64 {d}, {0}, 0d0000000000000000;", False),
    ("sub.f64 {d}, 0d8000000000000000, {0};", False), ("div.rn.f64 {d}, {0}, 0d3FF0000000000000;", False),
    ("neg.f64 {d}, {0}; add.f64 {d}, {1}, {d};", True), ("neg.f64 {d}, {0}; add.f64 {d}, {d}, {1};", True),
    ("neg.f64 {d}, {0}; sub.f64 {d}, {1}, {d};", True), ("neg.f64 {d}, {0}; mul.f64 {d}, {d}, {1};", True),
    ("neg.f64 {d}, {0}; fma.rn.f64 {d}, {d}, {1}, {1};", True), ("neg.f64 {d}, {0}; fma.rn.f64 {d}, {1}, {1}, {d};", True),
    ("fma.rn.f64 {d}, {0}, 0dBFF0000000000000, {1};", False), ("fma.rn.f64 {d}, {0}, 0d0000000000000000, {1};", False),
]  # fmt: skip


@BOTH
@pytest.mark.parametrize(("text", "flipped"), IDENTITIES)
def test_no_operation_is_left_out_that_a_nan_would_show(text: str, flipped: bool, engine: str) -> None:
    nans = np.array(NANS * 16, np.uint64)
    columns = [nans, np.full(len(nans), 0x4008 << 48, np.uint64)] if "{1}" in text else [nans]
    expected = [(int(x) | QUIET) ^ (flipped << 63) for x in nans]
    assert [hex(x) for x in results(text, columns, engine)] == [hex(x) for x in expected]


@BOTH
@pytest.mark.parametrize(("type", "fraction"), [("f16", 10), ("bf16", 7), ("f32", 23)])
def test_a_conversion_to_f64_quiets_a_nan_and_keeps_its_payload(type: str, fraction: int, engine: str) -> None:
    bits = 32 if type == "f32" else 16
    exponent = (1 << bits - 1) - (1 << fraction)
    payloads = [1, 2, 1 << fraction - 2, 1 << fraction - 1, (1 << fraction) - 1]
    given = np.array([sign | exponent | p for p in payloads for sign in (0, 1 << bits - 1)], f"u{bits // 8}")
    out = np.zeros(len(given), np.uint64)
    made = kernel(f"cvt.f64.{type} {{d}}, {{0}};", "b64", (f"b{bits}",), "sm_90")
    made.launch(grid=1, block=32, args=[out, np.uint32(len(given)), given], engine=engine)
    expected = [0x7FF8 << 48 | p << 52 - fraction | sign << 63 for p in payloads for sign in (0, 1)]
    assert [hex(x) for x in out] == [hex(x) for x in expected]
