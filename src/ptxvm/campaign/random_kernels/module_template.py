"""The module around the body of a random kernel: parameters, the place of a thread and its memory, and functions."""

from __future__ import annotations

from ptxvm.campaign.random_kernels.parts import Statement

EARLY = Statement("mov.u32 %result, %r2;\nsetp.lt.u32 %q, %r0, %r1;\n@%q ret;")
"""Some lanes return before others call."""
RECURSION = """
    and.b32 %n, %x, 7;
    setp.gt.u32 %q, %n, 1;
    shr.u32 %n, %n, 1;
    mov.u32 %result, %r1;
    st.local.b32 [kept+4], %r3;
    @%q call (%result), f{}, (%n, %r0);
    ld.local.b32 %r2, [kept+4];
    xor.b32 %result, %result, %r2;"""
FUNCTION = """
.func (.reg .b32 %result) f{number}(.reg .b32 %x, .reg .b32 %y)
{{
    .reg .b32 %r<8>, %n;
    .reg .pred %q;
    .local .align 4 .b8 kept[8];
    mov.u32 %r0, %x; mov.u32 %r1, %y; mov.u32 %r2, 3; mov.u32 %r3, %x;
    mov.u32 %r4, 77; mov.u32 %r5, %y; mov.u32 %r6, 0; mov.u32 %r7, 9;
{body}
    ret;
}}
"""
OTHERS = """
.func (.param .b32 result) f2(.param .align 8 .b8 given[16])
{
    .reg .b32 %r<3>;
    .reg .b64 %d;
    ld.param.v2.b32 {%r0, %r1}, [given];
    ld.param.b64 %d, [given+8];
    cvt.u32.u64 %r2, %d;
    mad.lo.u32 %r0, %r0, %r1, %r2;
    st.param.b32 [result], %r0;
    ret;
}
.func (.reg .b32 %result) f3(.reg .b32 %x, .reg .b32 %mask)
{
    .reg .b32 %r<2>;
    .reg .pred %p;
    shfl.sync.bfly.b32 %r0, %x, 3, 0x1f, %mask;
    setp.lt.u32 %p, %r0, %x;
    @%p bra LESS;
    vote.sync.ballot.b32 %r1, 0, %mask;
    bra MET;
LESS:
    vote.sync.ballot.b32 %r1, 1, %mask;
MET:
    add.u32 %result, %r0, %r1;
    ret;
}
.func (.param .align 4 .b8 result[8]) f4(.param .b32 x, .param .align 4 .b8 pair[8], .param .b64 wide)
{
    .reg .b32 %r<4>;
    .reg .b64 %d;
    .reg .pred %p;
    ld.param.b32 %r0, [x];
    ld.param.b32 %r1, [pair];
    ld.param.b64 %d, [wide];
    cvt.u32.u64 %r2, %d;
    setp.lt.u32 %p, %r0, %r1;
    @%p bra LESS;
    ld.param.b32 %r3, [pair+4];
    add.u32 %r2, %r2, %r3;
    st.param.b32 [result], %r2;
    st.param.b32 [result+4], %r0;
    ret;
LESS:
    st.param.b32 [result+4], %r1;
    st.param.b32 [result], %r2;
    ret;
}
"""
FUNCTIONS = """
.func (.reg .b32 %result) f0(.reg .b32 %x, .reg .b32 %y);
.func (.reg .b32 %result) f1(.reg .b32 %x, .reg .b32 %y);
.global .align 8 .u64 pointers[2] = {{ f0, f1 }};
{}"""
TEMPLATE = """.version 9.0
.target sm_100a
.address_size 64
.const .align 16 .b32 table[32] = {{ 1, 2, 3, 4, 5, 0x80000000, 0x7f800000, 0xffffffff, 0x3f800000, 9, 10, 11, 12, 13, 14 }};
.extern .shared .align 16 .b8 buffer[];
{functions}
.visible .entry random(.param .u64 in, .param .u64 work, .param .u64 words, .param .u64 out, .param .u64 rows,
    .param .u64 columns, .param .u32 n, .param .u32 m)
{{
{registers}
{own}
    .reg .b32 %c<4>, %b<4>, %m<3>;
    .reg .pred %q<2>;
    .reg .b32 %t0, %t2, %own, %buffer, %counts, %thread, %whole, %few, %many, %total, %column, %n<6>;
    .reg .b64 %t1, %t3, %in, %rows, %columns, %words, %anywords, %any, %anystack, %either, %mine, %result, %stack;
    .shared .align 16 .b8 counts[144];
    .shared .align 16 .b8 tile[{tile}];
    .local .align 16 .b8 stack[64];
    ld.param.u64 %in, [in];
    ld.param.u64 %mine, [work];
    ld.param.u64 %words, [words];
    ld.param.u64 %result, [out];
    ld.param.u64 %rows, [rows];
    ld.param.u64 %columns, [columns];
    ld.param.u32 %few, [n];
    ld.param.u32 %many, [m];
    mov.u32 %n0, %tid.x;
    mov.u32 %n1, %tid.y;
    mov.u32 %n2, %tid.z;
    mov.u32 %n3, %ntid.x;
    mov.u32 %n4, %ntid.y;
    mad.lo.u32 %thread, %n2, %n4, %n1;
    mad.lo.u32 %thread, %thread, %n3, %n0;
    mov.u32 %whole, {whole};
    mov.u32 %buffer, buffer;
    mov.u32 %counts, counts;
    mov.u64 %stack, stack;
    mad.lo.u32 %own, %thread, 64, %buffer;
    cvt.u64.u32 %any, %own;
    cvta.shared.u64 %any, %any;
    cvt.u64.u32 %anywords, %counts;
    cvta.shared.u64 %anywords, %anywords;
    cvta.local.u64 %anystack, %stack;
    mul.lo.u32 %n4, %n4, %n3;
    mov.u32 %t0, %ntid.z;
    mul.lo.u32 %n4, %n4, %t0;
    mov.u32 %n5, %ctaid.z;
    mov.u32 %t0, %nctaid.y;
    mov.u32 %t2, %ctaid.y;
    mul.lo.u32 %total, %n4, %t0;
    mad.lo.u32 %n5, %n5, %t0, %t2;
    mov.u32 %t0, %nctaid.x;
    mov.u32 %t2, %ctaid.x;
    mul.lo.u32 %total, %total, %t0;
    mov.u32 %t0, %nctaid.z;
    mul.lo.u32 %total, %total, %t0;
    mov.u32 %t0, %nctaid.x;
    mad.lo.u32 %n5, %n5, %t0, %t2;
    mad.lo.u32 %n5, %n5, %n4, %thread;
    mad.wide.u32 %mine, %n5, 80, %mine;
    mad.wide.u32 %result, %n5, 256, %result;
    and.b32 %t0, %thread, 5;
    setp.eq.u32 %q0, %t0, 4;
    selp.b64 %either, %any, %mine, %q0;
{column}
{fill}
{body}
{save}
    ret;
}}
"""

__all__ = ["EARLY", "FUNCTION", "FUNCTIONS", "OTHERS", "RECURSION", "TEMPLATE"]
