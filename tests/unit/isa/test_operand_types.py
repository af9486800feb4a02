"""What may stand where an operand is expected (PTX 6.2 to 6.4, 9.2), by shapes that a kernel rarely has."""

from __future__ import annotations

import pytest

import ptxvm
from ptxvm.algebra.types import Type, b16, b32, b64, f16, f32, f64, s32, u16, u32, u64
from ptxvm.isa.operand_types import OperandType, Shape, holds, problem


def spec(type: str, *marks: str) -> OperandType:
    return OperandType(type, frozenset([type, *marks]))


def register(type: Type) -> Shape:
    return Shape("register", type)


TYPE = spec("type")
BF16 = Type.named["bf16"]
F16X2, U16X2 = Type.named["f16x2"], Type.named["u16x2"]


@pytest.mark.parametrize(
    ("held", "type", "wide", "fits"),
    [  # PTX 9.2, tables 24 and 25
        (s32, u32, False, True), (u64, u32, True, True), (u64, u32, False, False), (b64, f32, True, True),
        (f64, u32, True, False), (u64, f32, True, False), (f64, f32, True, False), (f32, u32, False, False),
        (f16, BF16, False, False), (U16X2, u32, False, True), (U16X2, f32, False, False), (u32, U16X2, False, False),
    ],
)  # fmt: skip
def test_a_register_holds_values(held: Type, type: Type, wide: bool, fits: bool) -> None:
    assert holds(held, type, wide=wide) == fits


VECTOR = (register(u16), register(u16))


@pytest.mark.parametrize(
    ("shape", "type", "operand", "destination", "fine"),
    [
        (Shape("integer"), u32, TYPE, True, False),
        (Shape("float", detail=32), f32, TYPE, True, False),
        (Shape("float", detail=32), f32, TYPE, False, True),
        (Shape("float", detail=32), f32, spec("type", "reg"), False, False),
        (Shape("float", detail=32), b32, TYPE, False, True),
        (Shape("float", detail=64), b32, TYPE, False, False),
        (Shape("variable", u32), u64, TYPE, False, True),
        (Shape("variable", u32), u64, TYPE, True, False),
        (Shape("variable", u32), f32, TYPE, False, False),
        (Shape("special", u32, detail="laneid"), u32, TYPE, False, True),
        (Shape("special", u32, detail="laneid"), u32, TYPE, True, False),
        (Shape("special", u32, detail="laneid"), u32, spec("u32", "imm"), False, False),
        (register(u32), u32, spec("u32", "imm"), False, False),
        (register(U16X2), u32, spec("u32"), False, False),  # not of the instruction's type
        (Shape("vector", items=VECTOR), None, TYPE, False, False),
        (Shape("vector", items=VECTOR), b32, spec("type", "split"), False, True),
        (Shape("vector", items=(*VECTOR, register(u16))), b32, spec("type", "split"), False, False),
        (Shape("vector", items=(Shape("register", u32, detail=2), register(u32))), u32, TYPE, False, False),
        (Shape("address", items=(Shape("register", u64), Shape("register", u64))), u64, spec("u64"), False, False),
        (Shape("vector", items=(Shape("variable", u32), register(s32))), s32, spec("s32", "coordinates"), False, True),
        (Shape("vector", items=(Shape("integer"), register(b32))), s32, spec("s32", "coordinates"), False, True),
    ],
)  # fmt: skip
def test_shapes(shape: Shape, type: Type | None, operand: OperandType, destination: bool, fine: bool) -> None:
    said = problem(shape, type, operand, destination=destination)
    assert (said == "") == fine, said


def test_bits_of_a_half_are_no_float_of_another_format() -> None:
    assert problem(register(b16), f16, TYPE, destination=False) == ""
    assert problem(register(f16), BF16, TYPE, destination=False)
    assert problem(register(F16X2), f32, TYPE, destination=False)


@pytest.mark.parametrize(
    ("types", "type", "fine"),
    [  # as ptxas 13.0 judges `st`
        ((b32, f32), u32, True), ((f32, b32), u32, True), ((u32, b32, f32, b32), f32, True), ((b32, u32, f32, b32), u32, False),
        ((f32, b32, u32, s32), b32, True), ((f32, u32, b32, u32), b32, False), ((b32, F16X2), f32, True),
        ((F16X2, b32, f32, f32), u32, True), ((b32, F16X2, f32, f32), b32, False), ((F16X2, f32), b32, False),
        ((u32, s32), f32, True), ((f32, f32), u32, False), ((b16, f16), u16, True), ((u16, f16), b16, False),
    ],
)  # fmt: skip
def test_beside_bits_all_elements_of_a_vector_are_bits(types: tuple[Type, ...], type: Type, fine: bool) -> None:
    """Neighbours are of one kind, unless one of them is bits."""
    assert (problem(Shape("vector", items=tuple(map(register, types))), type, TYPE, destination=False) == "") == fine


def test_a_vector_of_special_registers_is_no_address() -> None:
    """An address is one register, variable or constant (PTX 6.4.1); %tid has four elements."""
    text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {{ .reg .b32 %r; st.global.u32 [{}], %r; }}\n"
    for address in ("%tid", "%ctaid+4"):
        (found,) = [each for each in ptxvm.check(text.format(address)) if each.severity == "error"]
        assert (found.code, found.message) == ("P0304", f"'{address.partition('+')[0]}' is a vector, and no address")
    assert not [each for each in ptxvm.check(text.format("%clock64")) if each.severity == "error"]


@pytest.mark.parametrize(
    ("line", "passed"),
    [
        ("mov.b64 %d, {%r, %r};", "a"), ("shfl.sync.idx.b32 %r|%p, %r, 0, 31, -1;", "a"), ("selp.b32 %r, %r, 1, %p;", "ab"),
        ("slct.u32.s32 %r, %r, 1, %r;", "ab"), ("redux.sync.add.u32 %r, %r, -1;", ""), ("cvt.u32.u8 %r, %r;", ""),
    ],
)  # fmt: skip
def test_an_operand_that_is_passed_reaches_a_result_as_it_is(line: str, passed: str) -> None:
    """PTX 9.7.6.3, 9.7.6.4, 9.7.9.3 and 9.7.9.6: nothing is computed with it, nor decided by it."""
    text = f".version 8.0 .target sm_80 .address_size 64 .entry k {{ .reg .b32 %r; .reg .b64 %d; .reg .pred %p; {line} ret; }}"
    assert ptxvm.load(text).kernel().function.instructions[0].i.of.passed == {*passed}
