"""The first texts of a corpus: one with every kind of statement, one with the directives, and kernels of declared instructions.

Texts that are only read have instructions of all kinds, with modifiers that need not go together and operands of any type.
"""

from __future__ import annotations

import re
from random import Random

from ptxvm.algebra.types import Type
from ptxvm.campaign.random_kernels.variants import HELD, Variant, instructions, variants_of
from ptxvm.isa.model import ISA
from ptxvm.isa.notation import Form, Operand

WHOLE = """\
.version 9.5
.target sm_90a, debug
.address_size 64
.file 1 "a.cu"
.visible .global .align 8 .v2 .f32 a[2] = {{1.0, -1.0}, {0f00000000, 1e3}};
.global .b8 bytes[] = {0xFF(a), 0xFF00(a+4), 0xFF(generic(a)+4)};
.extern .func (.param .b32 r) f(.param .u64 p, .reg .f32 q) .noreturn;
.visible .entry k(.param .u64 .ptr .global .align 16 p, .param .align 8 .b8 s[16]) .maxntid 32, 2 .language 7, 8
{
    .reg .pred %p<4>;  // a comment
    .loc 1 2 3, function_name $L+4, inlined_at 1 30 2
    .loc_intermediate 1 4 5
    $L: @!%p1 ld.global.v2.u32 {%r1, _}, [p+-4];
    { setp.eq.and.s32 %p1|%p2, -%r1, %tid.x, !%p3; /* another */ }
    call (%r1), f, (%r2, 5), proto;
    tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f5}];
    mov.b32 %r1, a[%r2+4];
    mov.b32 %r1, (.u64) 1 + 2 * (3 ? 4 : 5);
    b: .branchtargets L, M<2>;
    proto: .callprototype (.param .b32 _) _ (.reg .f32 x);
    ret;
}
.section .debug_x { L: .b32 L-M .b8 1, -2 }
.nv_intermediate_source_section {
.code_block { .ir_name: "tile" .sourceFileName: 1
.source_begin
entry @k { /* ; } "
.source_end
} }
"""
DIRECTIVES = """\
.version 9.2
.target sm_100a, texmode_independent
.address_size 64
.file 1 "dir/a.cu", 1700000000, 4096
.file 2 "b.cu"
.weak .global .align 16 .b8 w[4];
.common .global .u32 c;
.extern .shared .align 16 .b8 dynamic[];
.global .attribute(.managed) .s64 m = -9223372036854775808;
.global .attribute(.unified(19, 95)) .f64 u = 0d7FF0000000000001;
.global .texref t;
.global .samplerref s = { addr_mode_0 = clamp_to_edge, filter_mode = linear, force_unnormalized_coords = 1 };
.global .surfref z;
.const .align 8 .u64 table[2][3] = { { w, generic(c) }, { 1, f } };
.const .f16x2 h[2] = { 1.5, -0.5 };
.tex .u32 old;
.visible .func (.reg .u32 r) f(.reg .u32 a) .abi_preserve 4 .abi_preserve_control 1;
.func never() .noreturn { trap; }
.func g(.param .align 16 .b8 p[32], .reg .pred q) { ret; }
.alias h, g;
.weak .entry k(.param .texref x, .param .align 64 .b8 map[128], .param .u64 .ptr .shared .align 4 s)
    .maxnreg 32 .maxntid 8, 8, 4 .minnctapersm 2
    .pragma "nounroll", "used_bytes_mask 255" { ret; }
.entry k2() .reqntid 32, 2, 1 .reqnctapercluster 2, 1, 1 .explicitcluster .blocksareclusters
{
    .reg .b128 %q<2>;
    .reg .f16x2 %h;
    .local .align 8 .b8 l[16];
    .shared .b32 a[2][2];
    .pragma "frequency 5";
    .loc 2 1 1
    l1: .calltargets f, g;
    ret;
}
.entry k3() .maxnctapersm 4 .maxclusterrank 8 { ret; }
.section .debug_abbrev
{
    .b8 1, 17, 1, 37, 8
    .b8 0
}
.section .debug_info
{
    .b32 123
    .b8 2 .b8 0
    .b32 .debug_abbrev
    .b64 .debug_line+4
    .b64 $begin
    .b32 $end - $begin
    $begin: .b16 65535, -1
    $end:
}
@@DWARF .section .debug_pubnames, "", @progbits
@@DWARF .byte 0x2b
@@DWARF .4byte .debug_info
"""
"""Directives of all versions, some of which exclude each other."""
LETTERS = frozenset(HELD)
OF_FRAME = "r"  # the letter of registers that every kernel uses
REGISTERS = 4  # of each letter
MOST = 12  # instructions of a kernel: what is short is read fast, and shows what long texts show
LIKELY, SELDOM = 0.4, 0.15  # that something optional is there, and that a vector stands for one register
ADDRESSES = ["[%d0]", "[%d1+16]", "[%r0]", "[%d0, {%r0, %r1}]", "[%d0, {%r0, %r1, %r2}, {%h0}]", "[%r1+-4]", "[a]", "%d2"]
MOST_READ = 4  # of one that is only read
READ = """\
.version 9.0
.target sm_100a
.entry k()
{{
{registers}
{lines}
}}
"""
KERNEL = """\
.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 n)
{{
{registers}
    .reg .u64 %out, %at;
    .reg .u32 %t;
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    mad.wide.u32 %at, %t, 4, %out;
    ld.param.u32 %r0, [n];
    ld.global.u32 %r1, [%out];
{lines}
    st.global.u32 [%at], %r0;
    ret;
}}
"""


def seeds(count: int, number: int = 0, *, short: bool = False) -> list[str]:
    """So many texts, of a number: kernels that are launched, or `short` ones that are only read."""
    random = Random(f"seeds {number}")  # noqa: S311 - no secret
    if not short:
        return [WHOLE, *(declared_kernel(random) for _ in range(count - 1))]
    kinds = (declared_text, lambda each: declared_kernel(each, short=True))
    return [WHOLE, DIRECTIVES, *(kinds[n % len(kinds)](random) for n in range(count - 2))]


def declared_text(random: Random) -> str:
    """A kernel of some instructions of the declarations, valid or not."""
    lines = [any_statement(random) for _ in range(random.randint(1, MOST_READ))]
    used = [letter for letter in HELD if re.search(rf"%{letter}\d", "".join(lines))]
    registers = "\n".join(f"    .reg .{HELD[letter]} %{letter}<{REGISTERS}>;" for letter in used)
    return READ.format(registers=registers, lines="\n".join(lines))


def any_statement(random: Random) -> str:
    """An instruction of a form, with any of its modifiers and operands."""
    form = random.choice(random.choice(ISA.instructions).forms)
    words = [random.choice(each.order or (each.name,)) for each in form.slots if not each.optional or random.random() < LIKELY]
    types = [each for each in words if each in Type.named]
    operands = [spelled(each, form, types, random) for each in form.operands if not each.optional or random.random() < LIKELY]
    guard = random.choice(["", "", "", "@%p1 ", "@!%p0 "])
    return f"    {guard}{'.'.join([form.opcode, *words])} {', '.join(operands)};"


def spelled(operand: Operand, form: Form, types: list[str], random: Random) -> str:
    """What may stand for an operand: a register of one of the types, a constant, an address, or several of these."""
    if operand.items:
        return f"{{{', '.join(spelled(each, form, types, random) for each in operand.items)}}}"
    bits = Type.named[random.choice(types)].bits if types else 32
    letter = {1: "p", 16: "h", 32: random.choice("rf"), 64: random.choice("dg")}.get(bits, "r")
    one = random.choice([f"%{letter}{random.randrange(REGISTERS)}"] * 5 + ["7", "0f3F800000", "_"])
    if operand.address:
        one = random.choice(ADDRESSES)
    elif random.random() < SELDOM:
        one = f"{{{', '.join([one] * random.choice([1, 2, 4, 8]))}}}"
    if operand.second and (not operand.second_optional or random.random() < LIKELY):
        one = f"{one}|%p{random.randrange(REGISTERS)}"
    one = random.choice(["", operand.negatable]) + one
    return f"({one})" if operand.group else one


def declared_kernel(random: Random, *, short: bool = False) -> str:
    """A valid kernel of some instructions that are functions of registers."""
    known = instructions(LETTERS, carry=True)
    count = random.randint(1, MOST_READ) if short else random.randint(2, MOST)
    lines = [statement(random.choice(variants_of(random.choice(known), LETTERS)), random) for _ in range(count)]
    text = "\n".join(lines)
    # Declarations that nothing uses would only take mutations from what says more.
    used = [letter for letter in HELD if (letter == OF_FRAME and not short) or re.search(rf"%{letter}\d", text)]
    registers = "\n".join(f"    .reg .{HELD[letter]} %{letter}<{REGISTERS}>;" for letter in used)
    return (READ if short else KERNEL).format(registers=registers, lines=text)


def statement(variant: Variant, random: Random) -> str:
    """An instruction on registers."""
    texts = []
    for each in variant.form.operands:
        if each.optional:
            break
        text = register(variant, each.name, random)
        if each.second and not each.second_optional:
            text = f"{text}|{register(variant, each.second, random, but=text)}"
        texts.append(text)
    return f"    {variant.mnemonic} {', '.join(texts)};"


def register(variant: Variant, name: str, random: Random, but: str = "") -> str:
    """A register for an operand, or a constant where there must be one."""
    if variant.constant(name):
        return "0"
    letter = variant.letters(name)[0]
    return random.choice([each for n in range(REGISTERS) if (each := f"%{letter}{n}") != but])


__all__ = ["WHOLE", "declared_kernel", "seeds"]
