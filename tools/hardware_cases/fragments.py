"""`wmma` through memory: fragments have no layout that is told, so they are loaded and stored."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from . import Case, Words, numbers, random

KINDS = [
    ("f16", "f16"), ("f16", "f32"), ("bf16", "f32"), ("tf32", "f32"), ("s8", "s32"), ("u8", "s32"), ("s4", "s32"),
    ("u4", "s32"), ("b1", "s32"), ("f64", "f64"),
]  # fmt: skip
SHAPES = {"tf32": [(16, 16, 8)], "s4": [(8, 8, 32)], "u4": [(8, 8, 32)], "b1": [(8, 8, 128)], "f64": [(8, 8, 4)]}
WHOLE = [(16, 16, 16), (8, 32, 16), (32, 8, 16)]
REGISTERS = {"f16": "b32", "bf16": "b32", "tf32": "b32", "f32": "f32", "f64": "f64"}


def through_memory() -> Iterator[Case]:
    """Every shape, type and layout, on numbers of the three modes."""
    for multiplied, added in KINDS:
        for shape in SHAPES.get(multiplied, WHOLE):
            for layouts in (("row", "row"), ("row", "col"), ("col", "row"), ("col", "col")):
                if multiplied in ("s4", "u4", "b1") and layouts != ("row", "col"):
                    continue
                for mode in numbers.MODES:
                    yield one(multiplied, added, shape, layouts, mode)


def counts(multiplied: str, added: str, m: int, n: int) -> tuple[int, int, int]:
    """The registers of the fragments of A and B, and of C and D."""
    wide = {"bf16": {16: (4, 4), 8: (2, 8), 32: (8, 2)}, "f16": {m: (8, 8)}, "tf32": {m: (4, 4)}}
    small = {m: (1, 1)} if multiplied in ("f64", "s4", "u4", "b1") else {16: (2, 2), 8: (1, 4), 32: (4, 1)}
    sums = 2 if (m, n) == (8, 8) else {"f16": 4, "f32": 8, "s32": 8}[added]
    return (*wide.get(multiplied, small)[m], sums)


def stored(values: Words, bits: int) -> Words:
    """Elements one after the other in memory."""
    return np.ascontiguousarray(numbers.packed(values, bits)).astype("u8" if bits == 64 else "u4").view(np.uint8)


def one(multiplied: str, added: str, shape: tuple[int, int, int], layouts: tuple[str, str], mode: str) -> Case:
    """Load A, B and C, multiply, store D."""
    (m, n, k), (left, right) = shape, layouts
    name = f"wmma m{m}n{n}k{k} {multiplied} {added} {left} {right} {mode}"
    rng = random(name)
    bits, sum_bits = numbers.BITS[multiplied], numbers.BITS[added]
    a, b = (stored(numbers.elements(rng, multiplied, mode, count), bits) for count in (m * k, k * n))
    c = stored(numbers.elements(rng, added, mode, m * n), sum_bits)
    of_a, of_b, of_c = counts(multiplied, added, m, n)
    va, vb, vc, vd = (
        "{" + ", ".join(f"%{letter}{i}" for i in range(count)) + "}"
        for letter, count in zip("abcd", (of_a, of_b, of_c, of_c), strict=True)
    )
    types = f"{added}.{added}" if multiplied == "f16" else f"{added}.{multiplied}.{multiplied}.{added}"
    operation, rounding = ".xor.popc" if multiplied == "b1" else "", ".rn" if multiplied == "f64" else ""
    sums = REGISTERS.get(added, "b32") if added != "f16" else "b32"
    text = f"""
.version 8.4
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 d, .param .u64 a, .param .u64 b, .param .u64 c)
{{
.reg .b64 %pd, %pa, %pb, %pc; .reg .{REGISTERS.get(multiplied, "b32")} %a<16>, %b<16>; .reg .{sums} %c<16>, %d<16>;
ld.param.u64 %pd, [d]; ld.param.u64 %pa, [a]; ld.param.u64 %pb, [b]; ld.param.u64 %pc, [c];
wmma.load.a.sync.aligned.{left}.m{m}n{n}k{k}.global.{multiplied} {va}, [%pa], {k if left == "row" else m};
wmma.load.b.sync.aligned.{right}.m{m}n{n}k{k}.global.{multiplied} {vb}, [%pb], {n if right == "row" else k};
wmma.load.c.sync.aligned.row.m{m}n{n}k{k}.global.{added} {vc}, [%pc], {n};
wmma.mma{operation}.sync.aligned.{left}.{right}.m{m}n{n}k{k}{rounding}.{types} {vd}, {va}, {vb}, {vc};
wmma.store.d.sync.aligned.row.m{m}n{n}k{k}.global.{added} [%pd], {vd}, {n};
ret;
}}
"""
    return Case(name, text, "k", (32,), (c, a, b, c))
