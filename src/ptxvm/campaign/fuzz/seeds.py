"""The first texts of a corpus: one with every kind of statement, and kernels of declared instructions."""

from __future__ import annotations

import re
from random import Random

from ptxvm.campaign.random_kernels.variants import HELD, Variant, instructions, variants_of

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
LETTERS = frozenset(HELD)
OF_FRAME = "r"  # the letter of registers that every kernel uses
REGISTERS = 4  # of each letter
MOST = 12  # instructions of a kernel: what is short is read fast, and shows what long texts show
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
    return [WHOLE, *(declared_kernel(random, short=short) for _ in range(count - 1))]


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
