"""Every layout is a bijection, and reckons with lanes as numbers and as values."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from ptxvm.algebra.types import named_type, u32
from ptxvm.algebra.value import Value
from ptxvm.engine.interp.eager import EAGER
from ptxvm.isa.catalog import mma, wmma
from ptxvm.isa.fragments import mma_fragment, quarter_fragment, wmma_fragment
from ptxvm.isa.matrix import shapes_of
from ptxvm.isa.special_registers import WARP


def kinds(table):
    """Each type of a table with each of its shapes."""
    names = [name for types in table for name in types.split()]
    return [(name, shape) for name in names for shape in shapes_of(table, named_type(name))]


FRAGMENTS = {
    f"{instruction}.{matrix}.{shape}.{name}": make(matrix, named_type(name), shape)
    for instruction, make, table, matrices in (
        ("mma", mma_fragment, mma.SHAPES, "ab"),
        ("wmma", wmma_fragment, wmma.MULTIPLICANDS, "ab"),
        ("wmma", wmma_fragment, wmma.ACCUMULATORS, "cd"),
    )
    for name, shape in kinds(table)
    for matrix in matrices
    if (instruction, name, shape) != ("mma", "f16", "m8n8k4")
}
FRAGMENTS |= {
    f"mma.{matrix}.{shape}.{name}": mma_fragment(matrix, named_type(name), shape)
    for name, shape in (
        ("f32", "m16n8k8"),
        ("f16", "m16n8k8"),
        ("s32", "m8n8k16"),
        ("s32", "m16n8k16"),
        ("f64", "m8n8k4"),
    )
    for matrix in "cd"
}
FRAGMENTS |= {f"quarter.{m}.{o}": quarter_fragment(m, named_type("f16"), o) for m in "ab" for o in ("row", "col")}
FRAGMENTS |= {f"quarter.c.{t}": quarter_fragment("c", named_type(t)) for t in ("f16", "f32")}


@pytest.mark.parametrize("fragment", FRAGMENTS.values(), ids=FRAGMENTS)
def test_each_element_has_one_place(fragment):
    rows, columns = fragment.shape
    places = Counter(
        (lane // 4 % fragment.matrices, *fragment.layout(lane, element))
        for lane in range(WARP)
        for element in range(fragment.elements)
    )
    assert set(places.values()) == {1}
    assert set(places) == {(m, r, c) for m in range(fragment.matrices) for r in range(rows) for c in range(columns)}


@pytest.mark.parametrize("fragment", FRAGMENTS.values(), ids=FRAGMENTS)
def test_the_registers_hold_the_elements(fragment):
    assert fragment.registers * fragment.packed % fragment.elements == 0
    assert fragment.registers * fragment.packed >= fragment.elements


@pytest.mark.parametrize("fragment", FRAGMENTS.values(), ids=FRAGMENTS)
def test_a_layout_reckons_with_values_too(fragment):
    lanes = Value(EAGER, u32, np.arange(WARP, dtype=np.uint32))
    for element in (0, fragment.elements - 1):
        row, column = (part.raw if isinstance(part, Value) else np.full(WARP, part) for part in fragment.layout(lanes, element))
        places = [fragment.layout(lane, element) for lane in range(WARP)]
        assert list(zip(row.tolist(), column.tolist(), strict=True)) == places


@pytest.mark.parametrize(
    ("fragment", "registers"),
    [
        # The tables of PTX 9.7.14.4.1.
        (wmma_fragment("a", named_type("f16"), "m16n16k16"), 8),
        (wmma_fragment("b", named_type("f16"), "m32n8k16"), 8),
        (wmma_fragment("c", named_type("f16"), "m8n32k16"), 4),
        (wmma_fragment("d", named_type("f32"), "m8n32k16"), 8),
        (wmma_fragment("a", named_type("u8"), "m16n16k16"), 2),
        (wmma_fragment("a", named_type("u8"), "m8n32k16"), 1),
        (wmma_fragment("b", named_type("s8"), "m8n32k16"), 4),
        (wmma_fragment("b", named_type("s8"), "m32n8k16"), 1),
        (wmma_fragment("a", named_type("bf16"), "m16n16k16"), 4),
        (wmma_fragment("a", named_type("bf16"), "m8n32k16"), 2),
        (wmma_fragment("b", named_type("bf16"), "m8n32k16"), 8),
        (wmma_fragment("a", named_type("tf32"), "m16n16k8"), 4),
        (wmma_fragment("a", named_type("f64"), "m8n8k4"), 1),
        (wmma_fragment("c", named_type("f64"), "m8n8k4"), 2),
        (wmma_fragment("a", named_type("s4"), "m8n8k32"), 1),
        (wmma_fragment("a", named_type("b1"), "m8n8k128"), 1),
        (wmma_fragment("c", named_type("s32"), "m8n8k128"), 2),
    ],
)
def test_a_fragment_has_as_many_registers_as_the_manual_says(fragment, registers):
    assert fragment.registers == registers


def test_the_fragments_of_sm_75():
    """What the machine code of ptxas 13.5 loads for lane 5 (group 1, the second of it)."""
    a = wmma_fragment("a", named_type("f16"), "m16n16k16")
    assert [a.layout(5, e) for e in range(0, 8, 2)] == [(1, 2), (9, 2), (1, 10), (9, 10)]
    b = wmma_fragment("b", named_type("f16"), "m16n16k16")
    assert [b.layout(5, e) for e in range(0, 8, 2)] == [(2, 1), (10, 1), (2, 9), (10, 9)]
    c = wmma_fragment("c", named_type("f32"), "m16n16k16")
    assert [c.layout(5, e) for e in range(0, 8, 2)] == [(1, 2), (9, 2), (1, 10), (9, 10)]
    wide = wmma_fragment("c", named_type("f32"), "m8n32k16")
    assert [wide.layout(5, e) for e in range(4)] == [(2, 1), (3, 1), (2, 9), (3, 9)]
    bytes_ = wmma_fragment("c", named_type("s32"), "m8n32k16")
    assert [bytes_.layout(5, e) for e in range(0, 8, 2)] == [(1, 2), (1, 10), (1, 18), (1, 26)]
