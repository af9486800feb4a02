"""Floating-point operations, as the manual defines the instructions (PTX 9.7.3, 9.7.4)."""

from __future__ import annotations

import pytest

import ptxvm
from ptxvm.isa.arithmetic import float_operations

HEAD = """.version 8.6
.target sm_100a
.visible .entry k(.param .u64 p)
{
    .reg .b16 %h<4>; .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .f64 %d<4>; .reg .b64 %x<4>;
"""


def operations(text):
    """The operations and their width."""
    (bound,) = ptxvm.load(f"{HEAD}{text}\n}}").kernel().function.instructions
    return float_operations(bound.i)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("add.f32 %f1, %f2, 0f3F800000;", (1, 32)), ("sub.f64 %d1, %d2, %d3;", (1, 64)),
        ("mul.rn.f16x2 %r1, %r2, %r3;", (2, 16)), ("fma.rn.f32 %f1, %f2, %f3, %f1;", (2, 32)),
        ("fma.rn.bf16x2 %r1, %r2, %r3, %r1;", (4, 16)), ("add.f32.f16 %f1, %h1, %f2;", (1, 32)),
        ("add.f32x2 %x1, %x2, %x3;", (2, 32)),
        # Not sums or products of the width of the result, or in steps of the hardware's own.
        ("div.rn.f32 %f1, %f2, %f3;", (0, 0)), ("ex2.approx.f32 %f1, %f2;", (0, 0)), ("max.f32 %f1, %f2, %f3;", (0, 0)),
        ("cvt.f64.f32 %d1, %f1;", (0, 0)), ("cvt.rn.f16x2.e4m3x2 %r1, %h1;", (0, 0)), ("add.s32 %r1, %r2, %r3;", (0, 0)),
        ("neg.f32 %f1, %f2;", (0, 0)),
        # No results, or effects.
        ("setmaxnreg.inc.sync.aligned.u32 24;", (0, 0)), ("ld.param.f32 %f1, [p];", (0, 0)),
    ],
)  # fmt: skip
def test_operations(text, expected):
    assert operations(text) == expected


def test_operations_are_counted_once():
    (bound,) = ptxvm.load(f"{HEAD}add.f32 %f1, %f2, %f3;\n}}").kernel().function.instructions
    assert float_operations(bound.i) is float_operations(bound.i)
