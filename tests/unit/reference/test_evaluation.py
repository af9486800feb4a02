"""Values as people write and read them."""

from __future__ import annotations

import pytest

from ptxvm.algebra.types import Type
from ptxvm.engine.interp.value_text import floats, signed
from ptxvm.reference.evaluation import BadValue, bits_of, compute, constants_of, is_computable, number, readings, wanted
from ptxvm.reference.reading import read


@pytest.mark.parametrize(
    ("text", "type", "bits"),
    [
        ("5", "u32", 5), ("-1", "u32", 0xFFFF_FFFF), ("-1", "s16", 0xFFFF), ("0x10", "b32", 16), ("0b101", "u8", 5),
        ("1", "f32", 0x3F80_0000), ("-2.5", "f32", 0xC020_0000), ("0x3F800000", "f32", 0x3F80_0000),
        ("0f3F800000", "f32", 0x3F80_0000), ("0d3FF0000000000000", "f64", 0x3FF0 << 48), ("inf", "f64", 0x7FF0 << 48),
        ("0.1", "f16", 0x2E66), ("1e40", "f32", 0x7F80_0000), ("1", "bf16", 0x3F80),
        ("1.00390625", "bf16", 0x3F80), ("1.0039062500000002", "bf16", 0x3F81),
        ("1.5", "b32", 0x3FC0_0000), ("1.5", "b64", 0x3FF8 << 48),
        ("1,-2", "f16x2", 0xC000_3C00), ("1,2,3,-1", "s8x4", 0xFF03_0201), ("0x12345678", "f16x2", 0x1234_5678),
        ("true", "pred", 1), ("False", "pred", 0), ("1", "pred", 1), ("0f3F800000", "b32", 0x3F80_0000),
    ],
)  # fmt: skip
def test_a_text_stands_for_bits(text, type, bits):
    assert bits_of(text, Type.named[type]) == bits


@pytest.mark.parametrize(
    ("text", "type", "message"),
    [
        ("x", "u32", "'x' is not a number"),
        ("", "u32", "'' is not a number"),
        ("1.5", "s32", "'1.5' is not an integer, and .s32 is wanted"),
        ("256", "u8", "'256' does not fit the 8 bits of .u8"),
        ("-129", "s8", "'-129' does not fit the 8 bits of .s8"),
        ("0d3FF0000000000000", "f32", "'0d3FF0000000000000' does not fit the 32 bits of .f32"),
        ("1,2", "s8x4", ".s8x4 has 4 elements, and '1,2' has 2"),
        ("1.5", "e4m3", "a .e4m3 has few numbers: give its bits, such as 0x38"),
        ("2", "pred", "'2' is no predicate: give true or false"),
    ],
)
def test_a_text_that_stands_for_none(text, type, message):
    with pytest.raises(BadValue) as wrong:
        bits_of(text, Type.named[type])
    assert str(wrong.value) == message


@pytest.mark.parametrize(
    ("bits", "type", "shown"),
    [
        (0x3F80_0000, "f32", ["1.0"]), (0x3F80_0000, "u32", []), (0xC000_3C00, "f16x2", ["1.0", "-2.0"]),
        (0x3DCD, "bf16", ["0.1"]), (0x7FC0_0000, "f32", ["nan"]), (0xFC00, "f16", ["-inf"]), (0x38, "e4m3", ["1.0"]),
        (0x647F, "f16", ["1151.0"]), (0x8000_0000, "f32", ["-0.0"]), (1, "f32", ["1e-45"]), (0x7BFF, "f16", ["65504.0"]),
        (0x4340 << 48, "f64", ["9007199254740992.0"]), (0x3FB999999999999A, "f64", ["0.1"]),
    ],
)  # fmt: skip
def test_bits_as_floats(bits, type, shown):
    assert floats(bits, Type.named[type]) == shown


@pytest.mark.parametrize(
    ("bits", "type", "shown"),
    [
        (0x3F80_0000, "b32", [("1.0", "f32"), ("0.0, 1.875", "f16x2")]),
        (0x7FC0_0000, "b32", []), (5, "b32", []), (0, "b32", []), (5, "u32", []), (0x3C00, "b16", [("1.0", "f16")]),
        (0x3FF0 << 48, "b64", [("1.0", "f64")]),
    ],
)  # fmt: skip
def test_untyped_bits_as_floats(bits, type, shown):
    assert [(said, other.name) for said, other in readings(bits, Type.named[type])] == shown


def test_bits_as_signed_numbers():
    assert signed(0xFFFF_FFFF, 32) == -1
    assert signed(0x7FFF_FFFF, 32) == 0x7FFF_FFFF


def test_what_an_instruction_reads():
    assert wanted(read("shf.l.wrap.b32 %r1, %r2, %r3, 5")) == {"%r2": Type.named["b32"], "%r3": Type.named["b32"]}
    assert wanted(read("mov.u32 %r1, %tid.x")) == {"%tid.x": Type.named["u32"]}
    assert wanted(read("vadd.s32.u32.s32 %r0, %r1.b0, %r2.h1")).keys() == {"%r1", "%r2"}
    assert wanted(read("addc.u32 %r1, %r2, 0")).keys() == {"%r2", "CC.CF"}
    assert wanted(read("add.cc.u32 %r1, %r2, WARP_SZ")).keys() == {"%r2"}


def test_a_result_in_an_integer_register_has_the_format_that_the_instruction_names():
    """PTX 9.7.9.21: the destination of `.tf32` is a register of 32 bits; 1 + 2**-11 is a tie, which .rna rounds away from 0."""
    (result,) = compute(read("cvt.rna.tf32.f32 d, a;"), {"a": 0x3F80_1000}).outputs
    assert (result.bits, number(result)) == (0x3F80_2000, "1.0009766")


def test_constants_are_known():
    assert constants_of(read("prmt.b32 %r1, %r2, 7, -1")) == {"b": 7, "c": 0xFFFF_FFFF}
    assert constants_of(read("fma.rn.f32 %f1, %f2, 1.0, 0f40000000")) == {"b": 0x3F80_0000, "c": 0x4000_0000}


def test_a_register_and_an_offset_are_added():
    """As in the code of ptxas, which wraps at the register's width."""
    result = compute(read("mov.u32 %r1, %r2+4"), {"%r2": 0xFFFF_FFFE})
    assert [q.bits for q in result.outputs] == [2]


@pytest.mark.parametrize("text", ["ld.u32 %r1, [%rd1]", "ret", "mov.u64 %rd1, buffer", "activemask.b32 %r1", "bar.sync 0"])
def test_what_needs_a_machine_is_not_computed(text):
    assert not is_computable(read(text))
