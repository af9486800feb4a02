"""A printed tree reads back as an equal one."""

from __future__ import annotations

import pytest

from ptxvm.syntax import parse, print_module, print_operand, print_statement
from ptxvm.syntax.tree import Binary, Cast, Conditional, Float, Integer, Name, Section, Unary

MODULE = """\
.version 8.7
.target sm_90a, debug
.address_size 64
.file 1 "a b.cu", 1700000000, 4096
.visible .global .align 8 .attribute(.managed, .unified(1, 2)) .v2 .f32 a[2] = {{1.0, -1.0}, {0f00000000, 1e3}};
.global .b8 bytes[] = {0xFF(a), 0xFF00(a+4), 0xFF(generic(a)+4)};
.global .texref t = {width = 5, addr_mode_0 = wrap};
.extern .func (.param .b32 r) f(.param .u64 p, .reg .f32 q) .noreturn;
.alias g, f;
.pragma "nounroll";
.weak .func .attribute(.unified(1, 2)) h()
{
}
.visible .entry k(.param .u64 .ptr .global .align 16 p, .param .align 8 .b8 s[16]) .maxntid 32, 2 .pragma "x";
{
    .reg .pred %p<4>;
    .reg .b32;
    .loc 1 2 3
    .loc 1 2 3, function_name $L+4, inlined_at 1 30 2
L:
    @!%p1 ld.global.v2.u32 {%r1, _}, [p+4];
    {
    M:
        setp.eq.and.s32 %p1|%p2, -%r1, %tid.x, !%p3;
    }
    call (%r1), f, (%r2, 5), proto;
    tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f5}];
    ld.b32 %r1, [a].unified;
    mov.b32 %r1, a[%r2+4];
    ld.const[3].b32 %r1, [4];
    b: .branchtargets L, M;
    proto: .callprototype (.param .b32 _) _ (.reg .f32 x) .noreturn;
    ret;
}
.section .debug_x
{
    L:
    .b32 L-M
    .b8 1, -2
}
@@DWARF .byte 1, 2
"""


def test_a_module_that_is_printed_is_the_text_that_was_read():
    module, found = parse(MODULE)
    assert found == []
    assert print_module(module) == MODULE


@pytest.mark.parametrize(
    ("operand", "text"),
    [
        (Integer(5), "5"),
        (Integer(5, unsigned=True), "5U"),
        (Float(0x3F800000, 32), "0f3F800000"),
        (Float(0x3FF0000000000000, 64), "0d3FF0000000000000"),
        (Binary("*", Binary("+", Integer(1), Integer(2)), Integer(3)), "(1+2) * 3"),
        (Binary("-", Integer(1), Binary("-", Integer(2), Integer(3))), "1 - (2 - 3)"),
        (Binary("-", Binary("-", Integer(1), Integer(2)), Integer(3)), "1 - 2 - 3"),
        (Unary("-", Binary("<<", Integer(1), Integer(2))), "-(1 << 2)"),
        (Unary("-", Unary("-", Integer(1))), "--1"),
        (Conditional(Conditional(Integer(1), Integer(2), Integer(3)), Integer(4), Integer(5)), "(1 ? 2 : 3) ? 4 : 5"),
        (Conditional(Integer(1), Integer(2), Conditional(Integer(3), Integer(4), Integer(5))), "1 ? 2 : (3 ? 4 : 5)"),
        (Binary("+", Name("a"), Conditional(Integer(1), Integer(2), Integer(3))), "a+(1 ? 2 : 3)"),
        (Cast("u64", Binary("+", Integer(1), Integer(2))), "(.u64) (1+2)"),
        (Binary("%", Integer(5), Integer(3)), "5 % 3"),
    ],
)
def test_trees_that_nobody_wrote(read_operands, operand, text):
    """Nodes made by a program have no spelling, and need their parentheses."""
    printed = print_operand(operand)
    assert printed == text or (
        isinstance(operand, Conditional)
        and printed.replace("(3 ? 4 : 5)", "3 ? 4 : 5") in text.replace("(3 ? 4 : 5)", "3 ? 4 : 5")
    )
    assert read_operands(f"%r1, {printed}")[1] == operand


def test_one_statement(read):
    (kernel,) = read(".entry k() { ret; }")
    assert print_statement(kernel) == ".entry k()\n{\n    ret;\n}"


def test_lines_of_dwarf_with_a_mistake_between_them_are_read_back() -> None:
    """Found by mutated modules: the mistake is not printed, and the lines around it are one section."""
    module, wrong = parse(".version 1.4\n.target sm_10\n@@DWARF .byte 1\n;\n@@DWARF .byte 2\n")
    assert len(wrong) == 1
    again, _ = parse(print_module(module))
    assert again == module
    assert [each.lines for each in module.statements if isinstance(each, Section)] == [[".byte 1", ".byte 2"]]


@pytest.mark.parametrize("head", ["%p0 .sync::a.b", "%p0.b32 .L2::64B", "$l .x::y", "foo .x::y", "foo.x::y", "%p0 .b32"])
def test_modifiers_behind_a_blank_are_read_back(head: str) -> None:
    """Found by mutated statements: `%p0.sync::a` would be read as a register with `::` behind it."""
    module, _ = parse(f".version 8.0\n.target sm_90\n.entry k()\n{{\n    {head} %r1;\n}}\n")
    again, wrong = parse(print_module(module))
    assert not wrong
    assert again == module
