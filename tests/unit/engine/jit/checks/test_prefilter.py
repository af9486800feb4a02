"""Checks on the JIT: what the quick look clears is not interpreted, and what it does not clear is found as ever."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm
from ptxvm.engine.jit.checks import cell_tags, observed_launch, spare_memory
from ptxvm.engine.jit.engine import Jit

HEAD = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data)
{
    .shared .align 16 .b8 s[8192];
    .shared .align 16 .b8 t[64];
    .local .align 4 .b8 frame[16];
    .local .align 4 .b8 more[16];
    .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r4, %r2, %r3, %r1;  // the number of the thread in the grid
    mov.u32 %r5, s;
    shl.b32 %r6, %r1, 2;
    add.u32 %r6, %r5, %r6;          // its word of shared memory
    mul.wide.u32 %rd2, %r4, 4;
    add.u64 %rd2, %rd1, %rd2;       // and of the array
    mul.wide.u32 %rd3, %r1, 4;
    add.u64 %rd3, %rd1, %rd3;       // the word that has the number of the thread in its CTA
    mov.u64 %rd5, s;
    cvta.shared.u64 %rd5, %rd5;
    add.u64 %rd4, %rd5, %rd3;
    sub.u64 %rd4, %rd4, %rd1;       // its word of shared memory, as a generic address
    xor.b32 %r7, %r1, 1;
    shl.b32 %r8, %r7, 2;
    add.u32 %r8, %r5, %r8;          // its neighbour's word
"""
CHECKS = ("race", "init", "sync", "memory")
examine = Jit.examine


def launched(body, engine="jit", check=CHECKS, *, grid=2, block=64, data=None, **how):
    data = np.arange(1024, dtype=np.uint32) if data is None else data
    result = ptxvm.load(HEAD + body + "\n    ret;\n}\n").kernel().launch(grid, block, [data], engine=engine, check=check, **how)
    return [str(each) for each in result.findings], data


FINE = {
    "own words": "st.shared.u32 [%r6], 1; ld.shared.u32 %r9, [%r6]; st.global.u32 [%rd2], %r9;",
    "the neighbour's after a barrier": "st.shared.u32 [%r6], 1; bar.sync 0; ld.shared.u32 %r9, [%r8];",
    "one word read by all": "ld.global.u32 %r9, [%rd1]; ld.global.u32 %r9, [%rd3];",
    "one thread alone": "setp.eq.u32 %p1, %r1, 5; @%p1 st.shared.u32 [s], 1; @%p1 ld.shared.u32 %r9, [s]; "
    "@%p1 st.shared.u32 [s], 2;",
    "one thread, then all": "setp.eq.u32 %p1, %r1, 5; @%p1 st.shared.u32 [s+4], 1; bar.sync 0; ld.shared.u32 %r9, [s+4];",
    "written again in the next epoch": "st.shared.u32 [%r6], 1; bar.sync 0; ld.shared.u32 %r9, [%r8]; bar.sync 0; "
    "st.shared.u32 [%r6], 2;",
    "bytes": "add.u32 %r9, %r5, %r1; st.shared.u8 [%r9], 1; ld.shared.u8 %h1, [%r9];",
    "vectors": "shl.b32 %r9, %r1, 4; add.u32 %r9, %r5, %r9; st.shared.v4.u32 [%r9], {%r1, %r1, %r1, %r1}; "
    "ld.shared.v2.u32 {%r10, %r11}, [%r9+8];",
    "strided words": "shl.b32 %r9, %r1, 3; add.u32 %r9, %r5, %r9; st.shared.u32 [%r9], 1; ld.shared.u32 %r10, [%r9];",
    "words in reverse": "shl.b32 %r9, %r1, 2; sub.u32 %r9, %r5, %r9; st.shared.u32 [%r9+252], 1; ld.shared.u32 %r9, [%r9+252];",
    "generic shared": "st.u32 [%rd4], 1; bar.sync 0; ld.u32 %r9, [%rd5+128]; ld.shared.u32 %r9, [%r8];",
    "generic words, then bytes": "st.u32 [%rd4], 1; bar.sync 0; add.u32 %r9, %r5, %r1; st.shared.u8 [%r9], 2;",
    "generic global": "st.u32 [%rd2], 1; ld.u32 %r9, [%rd2];",
    "atomics": "atom.global.add.u32 %r9, [%rd3], 1; red.global.add.u32 [%rd1], 1;",
    "atomics of the scope of a CTA, at a word of each": "mul.wide.u32 %rd6, %r2, 4; add.u64 %rd6, %rd1, %rd6; "
    "atom.cta.global.add.u32 %r9, [%rd6], 1; ld.relaxed.cta.global.u32 %r9, [%rd6]; bar.sync 0; ld.global.u32 %r9, [%rd6];",
    "atomics in shared memory": "st.shared.u32 [%r6], 0; bar.sync 0; atom.shared.add.u32 %r9, [%r8], 1; "
    "red.shared.max.u32 [s], 7; bar.sync 0; ld.shared.u32 %r9, [s];",
    "volatile": "st.shared.u32 [%r6], 0; bar.sync 0; st.volatile.shared.u32 [s], 1; ld.volatile.shared.u32 %r9, [s];",
    "volatile accesses of a word by one thread, then weak ones": "st.volatile.shared.u32 [%r6], %r1; "
    "ld.volatile.shared.u32 %r9, [%r6]; ld.shared.u32 %r10, [%r6]; add.u32 %r9, %r9, %r10; st.global.u32 [%rd2], %r9;",
    "volatile accesses of a word by one thread, then by others": "st.volatile.shared.u32 [%r6], %r1; "
    "ld.volatile.shared.u32 %r9, [%r8]; setp.eq.u32 %p1, %r1, 9; @%p1 ld.volatile.shared.u32 %r9, [s];",
    "volatile accesses of a word by one thread, at generic addresses": "st.volatile.u32 [%rd4], %r1; "
    "ld.volatile.u32 %r9, [%rd4]; ld.u32 %r10, [%rd4]; add.u32 %r9, %r9, %r10; st.global.u32 [%rd2], %r9;",
    "weak stores, a barrier, and volatile accesses at generic addresses": "st.u32 [%rd4], %r1; bar.sync 0; "
    "ld.volatile.u32 %r9, [%rd5]; bar.sync 0; st.volatile.u32 [%rd4], %r9; st.volatile.u32 [%rd2], %r9;",
    "a counter of each warp, which a weak store begins": "and.b32 %r9, %r1, 32; shl.b32 %r9, %r9, 2; add.u32 %r9, %r9, %r5; "
    "and.b32 %r10, %r1, 31; setp.eq.u32 %p1, %r10, 0; @%p1 st.shared.u32 [%r9], 0; bar.warp.sync -1; "
    "atom.shared.add.u32 %r10, [%r9], 1; red.shared.add.u32 [%r9], 1; ld.volatile.shared.u32 %r10, [%r9]; bar.warp.sync -1; "
    "ld.shared.u32 %r10, [%r9]; st.global.u32 [%rd2], %r10;",
    "a counter of all, which a weak store begins": "setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [s], 0; bar.warp.sync -1; "
    "bar.sync 0; atom.shared.add.u32 %r10, [s], 1; bar.sync 0; ld.shared.u32 %r10, [s]; st.global.u32 [%rd2], %r10;",
    "loops over an array": "mov.u32 %r9, 0; L: ld.global.u32 %r10, [%rd2]; add.u32 %r10, %r10, %r9; "
    "st.global.u32 [%rd2], %r10; add.u64 %rd2, %rd2, 512; add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 8; @%p1 bra L;",
    "loops over bytes": "mov.u32 %r9, %r4; L: cvt.s64.s32 %rd6, %r9; add.u64 %rd6, %rd1, %rd6; ld.global.u8 %h1, [%rd6]; "
    "add.u32 %r9, %r9, 128; setp.lt.s32 %p1, %r9, 4096; @%p1 bra L;",
    "variables": "and.b32 %r9, %r1, 0xf; setp.lt.u32 %p1, %r1, 16; mov.u32 %r10, t; mad.lo.u32 %r10, %r1, 4, %r10; "
    "@%p1 st.shared.u32 [%r10], 1; bar.sync 0; ld.shared.u32 %r9, [t+60];",
    "read through another cache": "ld.global.nc.u32 %r9, [%rd3]; ld.global.nc.u32 %r9, [%rd1]; st.global.u32 [%rd2+2048], %r9;",
    "written after it was read through another cache": "ld.global.nc.u32 %r9, [%rd2]; st.global.u32 [%rd2], %r9;",
    "lanes that meet": "mov.u32 %r9, %r1; shfl.sync.bfly.b32 %r10, %r1, 1, 0x1f, -1; bar.warp.sync -1; "
    "and.b32 %r9, %r1, 16; setp.eq.u32 %p1, %r9, 0; @%p1 bra L; bar.warp.sync 0xffff0000; L:",
    "parts of a warp that meet": "and.b32 %r9, %r1, 24; mov.u32 %r10, 255; shl.b32 %r10, %r10, %r9; "
    "shfl.sync.bfly.b32 %r11, %r1, 4, 0x1f, %r10; setp.lt.u32 %p1, %r9, 16; vote.sync.any.pred %p2, %p1, %r10; "
    "@%p1 bra L; bar.warp.sync %r10; shfl.sync.down.b32 %r11, %r1, 1, 0x181f, %r10; L: st.global.u32 [%rd2], %r11;",
    "a loop until a word is taken": "rem.u32 %r9, %r4, 7; L: mul.wide.u32 %rd6, %r9, 4; add.u64 %rd6, %rd1, %rd6; "
    "add.u32 %r11, %r9, 512; atom.global.cas.b32 %r10, [%rd6+2048], %r11, 7777; add.u32 %r9, %r9, 1; "
    "setp.ne.u32 %p1, %r10, %r11; @%p1 bra L;",
    "local memory, at one offset and at each lane's own": "and.b32 %r9, %r1, 3; shl.b32 %r9, %r9, 2; mov.u32 %r10, frame; "
    "add.u32 %r10, %r10, %r9; st.local.u32 [%r10], %r1; ld.local.u32 %r11, [%r10]; st.local.v2.u32 [more], {%r1, %r11}; "
    "ld.local.u16 %h1, [more+2]; ld.local.u32 %r12, [more+4]; add.u32 %r11, %r11, %r12; st.global.u32 [%rd2], %r11;",
    "local memory of some lanes": "mov.u32 %r11, 0; setp.lt.u32 %p1, %r1, 40; @!%p1 bra L; st.local.u32 [frame+8], %r1; L: "
    "@%p1 ld.local.u32 %r11, [frame+8]; @%p1 st.global.u32 [%rd2], %r11;",
    "elements that eight lanes each read": "setp.lt.u32 %p1, %r1, 4; mad.lo.u32 %r10, %r1, 264, %r5; "
    "@%p1 st.shared.b64 [%r10], %rd1; bar.sync 0; and.b32 %r9, %r1, 3; mad.lo.u32 %r9, %r9, 264, %r5; "
    "ld.shared.b64 %rd6, [%r9];",
    "barriers with several reductions": "setp.gt.u32 %p1, %r1, 40; st.shared.u32 [%r6], %r1; bar.sync 0; "
    "ld.shared.u32 %r9, [%r8]; bar.red.or.pred %p2, 0, %p1; st.shared.u32 [%r6], %r9; bar.red.and.pred %p3, 0, %p1; "
    "ld.shared.u32 %r9, [%r8]; bar.red.popc.u32 %r10, 0, %p1; @%p2 add.u32 %r9, %r9, %r10; st.global.u32 [%rd2], %r9;",
    "loops with barriers": "mov.u32 %r9, 0; L: st.shared.u32 [%r6], %r9; bar.sync 0; ld.shared.u32 %r10, [%r8]; bar.sync 0; "
    "add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 9; @%p1 bra L;",
}


@pytest.mark.parametrize("name", FINE)
def test_the_quick_look_clears_it(name, quick):
    found, data = launched(FINE[name])
    assert quick()
    assert found == []
    found, expected = launched(FINE[name], "interp")
    assert found == []
    assert data.tolist() == expected.tolist()


WRONG = {
    "through a cache that is not coherent": "st.global.u32 [%rd2], 1; bar.sync 0; ld.global.nc.u32 %r9, [%rd2];",
    "the neighbour's without a barrier": "st.shared.u32 [%r6], 1; ld.shared.u32 %r9, [%r8];",
    "read, then written by the neighbour": "ld.global.u32 %r9, [%rd2]; xor.b32 %r10, %r4, 1; mul.wide.u32 %rd6, %r10, 4; "
    "add.u64 %rd6, %rd1, %rd6; st.global.u32 [%rd6], 1;",
    "written by volatile accesses, read by weak ones of others": "st.volatile.shared.u32 [%r6], 1; ld.shared.u32 %r9, [%r8];",
    "a weak store, a volatile one, and those of another": "st.shared.u32 [%r6], 1; st.volatile.shared.u32 [%r6], 2; "
    "ld.volatile.shared.u32 %r9, [%r8];",
    "written by volatile accesses of several threads, read by one": "st.volatile.shared.u32 [s], 1; "
    "setp.eq.u32 %p1, %r1, 31; @%p1 ld.shared.u32 %r9, [s];",
    "a volatile store between weak loads, and one of another": "st.volatile.shared.u32 [%r6], 1; ld.shared.u32 %r9, [%r6]; "
    "st.volatile.shared.u32 [%r8], 1;",
    "a volatile store at a generic address, and a weak load of another": "st.volatile.u32 [%rd4], 1; ld.u32 %r9, [%rd5];",
    "a weak store, and a volatile load of another at a generic address": "st.u32 [%rd4], 1; ld.volatile.u32 %r9, [%rd5];",
    "a weak store that its warp knows, and strong loads of both": "st.shared.u32 [%r6], 1; bar.warp.sync -1; "
    "ld.volatile.shared.u32 %r9, [s];",
    "a weak store that its warp knows, and updates of both": "setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [s], 1; "
    "bar.warp.sync -1; atom.shared.add.u32 %r9, [s], 1;",
    "one word written by all": "st.global.u32 [%rd1], 1;",
    "one word written by two": "setp.lt.u32 %p1, %r1, 2; @%p1 st.shared.u32 [s], 1;",
    "another CTA's": "ld.global.u32 %r9, [%rd1]; setp.eq.u32 %p1, %r4, 100; @%p1 st.global.u32 [%rd1], 1;",
    "the same word in both CTAs": "st.global.u32 [%rd3], 1;",
    "read by many, written by one": "ld.shared.u32 %r9, [s]; setp.eq.u32 %p1, %r1, 63; @%p1 st.shared.u32 [s], 1;",
    "gathered by many, written by one": "and.b32 %r9, %r1, 0xf; mul.lo.u32 %r9, %r9, 12; add.u32 %r9, %r9, %r5; "
    "ld.shared.u32 %r10, [%r9]; setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [s], 1;",
    "scattered on one word": "and.b32 %r9, %r1, 0x1f; mul.lo.u32 %r9, %r9, %r9; and.b32 %r9, %r9, 0x1f; shl.b32 %r9, %r9, 2; "
    "add.u32 %r9, %r9, %r5; st.shared.u32 [%r9], 1;",
    "overlapping rows": "and.b32 %r9, %r1, 0xf; shr.u32 %r10, %r1, 4; shl.b32 %r10, %r10, 3; add.u32 %r9, %r9, %r10; "
    "shl.b32 %r9, %r9, 2; add.u32 %r9, %r9, %r5; st.shared.u32 [%r9], 1;",
    "a vector and a word": "shl.b32 %r9, %r1, 4; add.u32 %r9, %r5, %r9; st.shared.v4.u32 [%r9], {%r1, %r1, %r1, %r1}; "
    "setp.eq.u32 %p1, %r1, 1; @%p1 ld.shared.u32 %r10, [s+12];",
    "a byte and a word": "add.u32 %r9, %r5, %r1; st.shared.u8 [%r9], 1; ld.shared.u32 %r10, [%r6];",
    "generic and shared": "st.u32 [%rd4], 1; ld.shared.u32 %r9, [%r8];",
    "an atomic and a plain read": "atom.shared.add.u32 %r9, [s], 1; ld.shared.u32 %r10, [s];",
    "a plain write, then another's atomic": "setp.eq.u32 %p1, %r4, 0; @%p1 st.global.u32 [%rd1], 1; "
    "atom.global.add.u32 %r9, [%rd1], 1;",
    "atomics of two sizes": "atom.global.add.u32 %r9, [%rd1], 1; atom.global.add.u64 %rd6, [%rd1], 1;",
    "atomics of the scope of a CTA": "atom.cta.global.add.u32 %r9, [%rd1], 1;",
    "an atomic of the scope of a CTA, and a wider one of another CTA": "setp.eq.u32 %p1, %r2, 0; "
    "@%p1 atom.cta.global.add.u32 %r9, [%rd1], 1; @!%p1 atom.gpu.global.add.u32 %r9, [%rd1], 1;",
    "a wider atomic of another CTA, and one of the scope of a CTA": "setp.eq.u32 %p1, %r2, 0; "
    "@%p1 atom.gpu.global.add.u32 %r9, [%rd1], 1; @!%p1 atom.cta.global.add.u32 %r9, [%rd1], 1;",
    "an atomic of the scope of a CTA, and a weak read": "atom.cta.global.add.u32 %r9, [%rd3], 1; ld.global.u32 %r9, [%rd3];",
    "warps at barriers with different reductions": "setp.ge.u32 %p1, %r1, 32; @%p1 bra L; bar.red.and.pred %p2, 0, %p1; bra M; "
    "L: bar.red.or.pred %p2, 0, %p1; M:",
    "a warp at a barrier with a reduction, one at another without": "setp.ge.u32 %p1, %r1, 32; @%p1 bra L; bar.sync 0; bra M; "
    "L: bar.red.popc.u32 %r9, 0, %p1; M:",
    "a barrier that some have left": "setp.ge.u32 %p1, %r1, 32; st.shared.u32 [%r6], 1; @%p1 ret; bar.sync 0; "
    "ld.shared.u32 %r9, [%r6+128];",
    "a word that is taken and another that is not": "L: atom.global.cas.b32 %r10, [%rd2], %r4, 7777; "
    "setp.ne.u32 %p1, %r10, %r4; @%p1 bra L; st.global.u32 [%rd1+1024], %r10;",
    "local memory that another lane has written": "setp.lt.u32 %p1, %r1, 40; @%p1 st.local.u32 [frame+8], %r1; "
    "ld.local.u32 %r11, [frame+8]; st.global.u32 [%rd2], %r11;",
    "local memory, half of it written": "st.local.u16 [frame], 1; ld.local.u32 %r11, [frame]; st.global.u32 [%rd2], %r11;",
    "local memory, past what is written": "and.b32 %r9, %r1, 3; shl.b32 %r9, %r9, 2; mov.u32 %r10, frame; "
    "add.u32 %r10, %r10, %r9; st.local.u32 [%r10], %r1; ld.local.u32 %r11, [frame+4]; st.global.u32 [%rd2], %r11;",
    "elements that eight lanes each read, one written by another": "mul.lo.u32 %r10, %r1, 264; add.u32 %r10, %r10, %r5; "
    "setp.lt.u32 %p1, %r1, 4; @%p1 st.shared.b64 [%r10], %rd1; bar.sync 0; and.b32 %r9, %r1, 3; "
    "mad.lo.u32 %r9, %r9, 264, %r5; ld.shared.b64 %rd6, [%r9]; setp.eq.u32 %p1, %r1, 63; @%p1 st.shared.u32 [s+532], 1;",
    "elements that eight lanes each read, one without a value": "mad.lo.u32 %r10, %r1, 264, %r5; setp.lt.u32 %p1, %r1, 3; "
    "@%p1 st.shared.b64 [%r10], %rd1; bar.sync 0; and.b32 %r9, %r1, 3; mad.lo.u32 %r9, %r9, 264, %r5; "
    "ld.shared.b64 %rd6, [%r9]; st.global.u64 [%rd1+1024], %rd6;",
    "read before written": "ld.shared.u32 %r9, [%r6]; st.global.u32 [%rd2], %r9;",
    "half of it written": "st.shared.u16 [%r6], 1; ld.shared.u32 %r9, [%r6]; st.global.u32 [%rd2], %r9;",
    "half a warp at a barrier": "and.b32 %r9, %r1, 1; setp.eq.u32 %p1, %r9, 0; @%p1 ret; bar.sync 0;",
    "a mask without the lane": "setp.lt.u32 %p1, %r1, 16; @!%p1 bra L; shfl.sync.bfly.b32 %r10, %r1, 1, 0x1f, 0xfff0; L:",
    "a part of a warp without one of its lanes": "and.b32 %r9, %r1, 24; mov.u32 %r10, 255; shl.b32 %r10, %r10, %r9; "
    "setp.eq.u32 %p1, %r1, 13; @%p1 bra L; shfl.sync.bfly.b32 %r11, %r1, 4, 0x1f, %r10; L:",
    "a part of a warp without the lane itself": "and.b32 %r9, %r1, 24; xor.b32 %r9, %r9, 8; mov.u32 %r10, 255; "
    "shl.b32 %r10, %r10, %r9; bar.warp.sync %r10;",
    "a value of another part of the warp": "and.b32 %r9, %r1, 24; mov.u32 %r10, 255; shl.b32 %r10, %r10, %r9; "
    "shfl.sync.bfly.b32 %r11, %r1, 8, 0x1f, %r10; st.global.u32 [%rd2], %r11;",
    "masks of parts that overlap": "and.b32 %r9, %r1, 3; mov.u32 %r10, -1; shr.u32 %r10, %r10, %r9; "
    "shfl.sync.idx.b32 %r11, %r1, 9, 0x1f, %r10; st.global.u32 [%rd2], %r11;",
    "a mask with a lane that has ended": "setp.eq.u32 %p1, %r1, 3; @%p1 ret; bar.warp.sync -1;",
    "two barriers for one warp": "setp.lt.u32 %p1, %r1, 16; @%p1 bra L; bar.sync 0; bra M; L: bar.sync 0; M:",
    "a register without a value": "add.u32 %r9, %r10, 1; st.global.u32 [%rd2], %r9;",
    "past a variable of shared memory": "mov.u32 %r9, t; mad.lo.u32 %r9, %r1, 4, %r9; st.shared.u32 [%r9], 1;",
    "before a variable": "setp.eq.u32 %p1, %r1, 7; @%p1 ld.shared.u32 %r9, [t+-4];",
    "past a variable, by a generic address": "mov.u64 %rd6, t; cvta.shared.u64 %rd6, %rd6; add.u64 %rd6, %rd6, 64; "
    "ld.u32 %r9, [%rd6];",
    "past a variable of local memory": "mov.u32 %r9, frame; st.local.u32 [%r9+16], 1;",
    "through a null pointer": "mov.u64 %rd6, 64; st.global.u32 [%rd6], 1;",
    "misaligned": "ld.shared.u32 %r9, [%r6+2];",
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found_as_by_the_interpreter(name, quick):
    found, data = launched(WRONG[name])
    assert not quick()
    expected, left = launched(WRONG[name], "interp")
    assert expected
    assert found == expected
    assert data.tolist() == left.tolist()


MEETINGS = {
    "loops with barriers": FINE["loops with barriers"],
    "all lanes shuffle between barriers": "bar.sync 0; shfl.sync.bfly.b32 %r10, %r1, 1, 0x1f, -1; bar.sync 0; "
    "st.global.u32 [%rd2], %r10;",
    "half of the threads skip a barrier": "setp.lt.u32 %p1, %r1, 32; @%p1 bra L; bar.sync 0; L: st.global.u32 [%rd2], %r1;",
    "some lanes skip a barrier": "setp.lt.u32 %p1, %r1, 5; @%p1 bra L; bar.sync 0; L: st.global.u32 [%rd2], %r1;",
    "two barriers for two halves": "setp.lt.u32 %p1, %r1, 16; @%p1 bra L; bar.sync 0; bra M; L: bar.sync 0; M:",
    "some have ended before the barrier": "setp.gt.u32 %p1, %r1, 40; @%p1 ret; bar.sync 0; st.global.u32 [%rd2], %r1;",
    "as often as a lane says": "and.b32 %r9, %r1, 3; L: bar.sync 0; add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 5; @%p1 bra L;",
    "a lane that is not there": "setp.gt.u32 %p1, %r1, 30; @%p1 ret; shfl.sync.bfly.b32 %r10, %r1, 1, 0x1f, -1; "
    "st.global.u32 [%rd2], %r10;",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("block", [32, 64, 96, 128, 256])
@pytest.mark.parametrize("name", MEETINGS)
def test_threads_that_need_each_other_are_looked_at_however_wide_the_code_is(name, block):
    found, data = launched(MEETINGS[name], check=("sync",), block=block)
    expected, left = launched(MEETINGS[name], "interp", ("sync",), block=block)
    assert found == expected
    assert data.tolist() == left.tolist()


@pytest.mark.parametrize(("body", "instrumented"), [("st.global.u32 [%rd2], %r1;", "memory"), ("bar.sync 0;", "sync")])
def test_code_looks_at_barriers_where_there_are_some(body, instrumented, monkeypatch):
    wanted = []
    monkeypatch.setattr(Jit, "examine", lambda jit, how, *rest: wanted.append(how.checks) or examine(jit, how, *rest))
    assert launched(body, check=("sync",))[0] == []
    assert wanted == [frozenset({instrumented})]


TEXTURE = """
.version 7.8
.target sm_80
.address_size 64
.global .texref image;
.visible .entry k(.param .u64 data) {
    .reg .b32 %r<6>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd1, %rd1, %rd2;
    tex.1d.v4.u32.s32 {%r2, %r3, %r4, %r5}, [image, {%r1}];
    st.global.u32 [%rd1], %r2;
    ret;
}
"""


def test_textures_are_looked_at_quickly(quick):
    module, image = ptxvm.load(TEXTURE), np.arange(64, dtype=np.uint32)
    texture, data = ptxvm.Texture(image), np.zeros(64, np.uint32)
    module.bind("image", texture)
    assert module.kernel().launch(1, 64, [data], engine="jit", check=CHECKS).findings == []
    assert quick()
    assert data.tolist() == image.tolist()

    def hazards(grid):  # every thread writes the element that it has read
        result = module.kernel().launch(grid, 64, [image], engine="jit", check=CHECKS)
        return [each.hazard for each in result.findings]

    assert hazards(1) == []
    assert not quick()
    assert hazards(2) == ["WAR", "WAW"]
    assert not quick()


@pytest.mark.parametrize("waits", ["lt", "ge"])
def test_a_warp_that_waits_for_another_goes_to_the_exact_checker_if_it_came_first(waits, quick):
    body = f"""
        setp.{waits}.u32 %p1, %r1, 32;
        @%p1 bra WAIT;
        atom.global.exch.b32 %r9, [%rd1], 7; bra DONE;
        WAIT: ld.volatile.global.u32 %r9, [%rd1]; setp.ne.u32 %p2, %r9, 7; @%p2 bra WAIT;
        DONE:"""
    found, data = launched(body, grid=1)
    assert quick() == (waits == "ge")
    assert found == []
    assert data.tolist() == [7, *range(1, 1024)]


# The CTAs of a grid meet: the first thread of each counts in the last word of the array, and waits for the others.
GRID_BARRIER = """
    {before}
    setp.eq.u32 %p1, %r1, 0; bar.sync 0; @!%p1 bra MET; atom.global.add.u32 %r9, [%rd1+4092], 1;
    WAIT: ld.volatile.global.u32 %r9, [%rd1+4092]; setp.lt.u32 %p2, %r9, 1027; @%p2 bra WAIT;
    MET: bar.sync 0; ld.global.u32 %r10, [%rd2]; add.u32 %r10, %r10, 1; st.global.u32 [%rd2], %r10;
"""


@pytest.mark.parametrize("barrier", ["bar.sync 0;", "bar.sync 1, 512;"])
def test_there_may_be_more_barriers_than_numbers_of_tags(barrier, quick):
    """2,200 blocks that are wider than vectors, each at 1,000 barriers."""
    body = f"mov.u32 %r9, 0; L: {barrier} add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 1000; @%p1 bra L;"
    assert launched(body, check=("sync",), grid=2200, block=512)[0] == []
    assert quick()


@pytest.mark.parametrize("check", ["memory", "sync", "init"])
def test_ctas_may_wait_for_each_other(check, quick):
    found, data = launched(GRID_BARRIER.format(before=""), check=(check,), grid=4)
    assert quick()
    assert found == []
    assert data[:256].tolist() == list(range(1, 257))


@pytest.mark.parametrize(
    ("before", "check"),
    [
        pytest.param("mov.u64 %rd6, 64; setp.eq.u32 %p3, %r4, 200; @%p3 st.global.u32 [%rd6], 1;", "memory", id="an access"),
        pytest.param("mov.u32 %r11, t; setp.eq.u32 %p3, %r4, 200; @%p3 st.shared.u32 [%r11+-4], 1;", "memory", id="a variable"),
        pytest.param("setp.ge.u32 %p3, %r4, 240; @%p3 bra L; bar.sync 0; L:", "sync", id="a barrier"),
        pytest.param("setp.ge.u32 %p3, %r4, 224; @%p3 bra L; bar.sync 0; bra M; L: bar.red.or.pred %p2, 0, %p1; M:", "sync",
                     id="reductions"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_ctas_that_wait_for_each_other_is_found_as_by_the_interpreter(before, check, quick):
    found, data = launched(GRID_BARRIER.format(before=before), check=(check,), grid=4)
    expected, left = launched(GRID_BARRIER.format(before=before), "interp", (check,), grid=4)
    assert found == expected != []
    assert data.tolist() == left.tolist()


def test_a_false_suspicion_costs_time_only(quick):
    found, data = launched(f"{FALSE_SUSPICION} st.global.u32 [%rd2], %r10;", grid=1)
    assert not quick()
    assert found == []
    assert data[:64].tolist() == [7] * 64


def test_lanes_that_meet_are_in_order(quick):
    """PTX 9.7.13.2: `bar.warp.sync` orders the accesses of the lanes that meet."""
    body = "st.shared.u32 [%r6], %r1; bar.warp.sync -1; ld.shared.u32 %r9, [%r8]; bar.warp.sync -1; st.shared.u32 [%r6], 1; "
    found, data = launched(body + "st.global.u32 [%rd2], %r9;")
    assert quick()
    assert found == []
    assert data[:64].tolist() == [n ^ 1 for n in range(64)]
    found, _ = launched(body + "bar.warp.sync -1; st.shared.u32 [%r8], 2; ld.shared.u32 %r9, [%r6];")
    assert not quick()
    assert found == launched(body + "bar.warp.sync -1; st.shared.u32 [%r8], 2; ld.shared.u32 %r9, [%r6];", "interp")[0] != []


TWO_ARRAYS = """
    ld.param.u64 %rd6, [other];
    mul.wide.u32 %rd7, %r1, 4; add.u64 %rd6, %rd6, %rd7;
    setp.ge.u32 %p1, %r1, 32;      // the second warp
    @%p1 mov.u64 %rd3, %rd6;
    ld.global.u32 %r9, [%rd3];
    add.u32 %r9, %r9, %r1;
    st.global.u32 [%rd3], %r9;
"""


def of_two_arrays(more, check, engine="jit"):
    """Launch a kernel whose first access reaches both arrays: the findings, and the arrays."""
    text = HEAD.replace(".param .u64 data)", ".param .u64 data, .param .u64 other)")
    kernel = ptxvm.load(f"{text}{TWO_ARRAYS}{more} ret; }}").kernel()
    arrays = [np.zeros(64, np.uint32), np.zeros(1 << 20, np.uint32)]
    return kernel.launch(1, 64, arrays, engine=engine, check=(check,)).findings, arrays


@pytest.mark.parametrize("check", ["race", "memory"])
def test_lanes_of_one_access_may_be_in_two_arrays(check, quick):
    found, arrays = of_two_arrays("", check)
    assert found == []
    assert quick()
    assert arrays[0].tolist() == [*range(32), *[0] * 32]
    assert arrays[1][:64].tolist() == [*[0] * 32, *range(32, 64)]


CHOSEN = """
    ld.param.u64 %rd6, [other];
    and.b32 %r9, %r1, 5; popc.b32 %r9, %r9; and.b32 %r9, %r9, 1;
    setp.eq.u32 %p1, %r9, 1;       // some lanes of each warp
    selp.b64 %rd3, %rd6, %rd1, %p1;
    mul.wide.u32 %rd7, %r1, 4; add.u64 %rd3, %rd3, %rd7;
"""


@pytest.mark.parametrize(
    ("body", "check", "wrong"),
    [
        pytest.param(
            "ld.global.u32 %r9, [%rd3]; add.u32 %r9, %r9, 1; st.global.u32 [%rd3], %r9;", "race", False, id="own words"
        ),
        pytest.param("atom.global.add.u32 %r9, [%rd3], 3; red.global.add.u32 [%rd3], 4;", "race", False, id="atomics"),
        pytest.param("st.global.v2.u32 [%rd3], {1, 2};", "race", True, id="vectors that overlap"),
        pytest.param("xor.b64 %rd2, %rd3, 8; ld.global.u32 %r9, [%rd2]; st.global.u32 [%rd3], %r9;", "race", True, id="a race"),
        pytest.param("ld.global.u32 %r9, [%rd3]; st.global.u32 [%rd3+4096], %r9;", "init", False, id="written before"),
        pytest.param(
            "@%p1 bra L; ld.global.u32 %r9, [%rd3]; st.global.u32 [%rd3+4096], %r9; L:", "init", False, id="some lanes"
        ),
        pytest.param("xor.b64 %rd2, %rd3, 17592186044416; st.global.u32 [%rd2], %r1;", "memory", True, id="behind both"),
    ],
)
def test_lanes_in_two_arrays_are_looked_at_as_by_the_interpreter(body, check, wrong, quick):
    text = HEAD.replace(".param .u64 data)", ".param .u64 data, .param .u64 other)")
    kernel, said = ptxvm.load(f"{text}{CHOSEN}{body} ret; }}").kernel(), []
    for engine in ("jit", "interp"):
        arrays = [np.arange(2048, dtype=np.uint32), np.arange(1 << 20, dtype=np.uint32)]
        found = kernel.launch(1, 64, arrays, engine=engine, check=(check,)).findings
        said.append(([each.kind for each in found], [each.tolist() for each in arrays]))
        assert engine == "interp" or quick() == (not wrong)
    assert said[0] == said[1]
    assert bool(said[0][0]) == wrong


def test_what_lanes_of_one_access_wrote_in_two_arrays_is_restored_for_the_exact_checker(quick):
    wrong = "mov.u64 %rd6, 64; st.global.u32 [%rd6], 1;"
    found, arrays = of_two_arrays(wrong, "memory")
    assert not quick()
    expected, left = of_two_arrays(wrong, "memory", "interp")
    assert [str(each) for each in found] == [str(each) for each in expected] != []
    assert [each.tolist() for each in arrays] == [each.tolist() for each in left]


TWO_PARAMETERS = HEAD.replace(".param .u64 data)", ".param .u64 data, .param .u64 other)") + "ld.param.u64 %rd6, [other];"
OVERWRITE = "st.global.u32 [%rd6+4], 7;"
# The first array has the address of the second one in two words; the last access seems to go to the first one.
READ = (
    "ld.global.v2.u32 {%r9, %r10}, [%rd1]; mov.b64 %rd7, {%r9, %r10}; sub.u64 %rd2, %rd1, %rd1; add.u64 %rd7, %rd7, %rd2; "
    "ld.global.u32 %r9, [%rd7+4];"
)
# A thread may update what it has stored; the tag of the update does not tell of which thread it is.
FALSE_SUSPICION = "st.shared.u32 [%r6], 7; atom.shared.add.u32 %r10, [%r6], 1;"
SAVED = {
    "written": (OVERWRITE, []),
    "read, then written": ("ld.global.u32 %r9, [%rd6];" + OVERWRITE, [256]),
    "read from elsewhere, then written": (READ + OVERWRITE, [256]),
    "written, then read from elsewhere": (OVERWRITE + READ, []),
    "an atomic": ("red.global.add.u32 [%rd6+4], 1;", [256]),
}


@pytest.fixture
def saved(monkeypatch):
    """The bytes of the arrays that the last launch saved."""
    found = []
    save = observed_launch.ObservedLaunch.save

    def noted(observed, allocation):
        save(observed, allocation)
        found[:] = [each.size for each in observed.before]

    monkeypatch.setattr(observed_launch.ObservedLaunch, "save", noted)
    return found


def of_one_thread(body, after=""):
    """Launch a kernel of two arrays, in which thread 0 does something: a call that launches it again, and its second array."""
    other = np.arange(64, dtype=np.uint32)
    data = np.array([other.ctypes.data, 0], np.uint64)
    kernel = ptxvm.load(f"{TWO_PARAMETERS} setp.ne.u32 %p1, %r1, 0; @%p1 bra OUT; {body} OUT: {after} ret; }}").kernel()
    return lambda: kernel.launch(1, 32, [data, other], engine="jit", check=("race",)).findings, other


@pytest.mark.parametrize("name", SAVED)
def test_memory_is_saved_where_its_contents_matter(name, saved, quick):
    body, sizes = SAVED[name]
    launch, other = of_one_thread(body)
    assert launch() == []
    assert quick()
    assert saved == sizes
    assert other.tolist() == [0, 2 if "red" in body else 7, *range(2, 64)]


def test_memory_that_is_read_from_elsewhere_is_restored_or_said_to_be_lost(quick):
    """The first launch finds out that what it did not save is read; later ones save it."""
    copied = "st.global.u32 [%rd6+8], %r9;"
    launch, other = of_one_thread(READ + OVERWRITE + copied, FALSE_SUSPICION)
    assert launch() == []
    assert other[:3].tolist() == [0, 7, 1]
    launch, other = of_one_thread(OVERWRITE + READ + copied, FALSE_SUSPICION)
    with pytest.raises(ptxvm.Unsupported, match=r"the old contents of .*other.* are lost"):
        launch()
    assert not quick()
    other[:] = range(64)
    assert launch() == []
    assert not quick()
    assert other[:3].tolist() == [0, 7, 7]


def test_an_array_may_begin_anywhere(quick):
    data = np.arange(1025, dtype=np.uint32)[1:]
    assert launched(FINE["own words"], data=data)[0] == []
    assert quick()
    assert data[:128].tolist() == [1] * 128


TABLE = HEAD.replace(".visible .entry", ".global .u32 table[1024];\n.visible .entry")
OWN_ENTRY = """
    mov.u64 %rd6, table;
    mul.wide.u32 %rd7, %r4, 4;
    add.u64 %rd7, %rd6, %rd7;
"""


@pytest.mark.parametrize(("writes", "hazards"), [("%rd7", []), ("%rd6", ["WAW", "WAR"])])
def test_memory_that_turns_out_to_be_written_has_its_reads_looked_at_too(writes, hazards, quick):
    """No parameter points to the table.  A word that all threads write, and thread 0 has read, has both hazards."""
    kernel = ptxvm.load(f"{TABLE}{OWN_ENTRY} ld.global.u32 %r9, [%rd7]; st.global.u32 [{writes}], %r9;\n ret;\n}}").kernel()
    for _ in range(2):
        result = kernel.launch(2, 64, [np.zeros(1024, np.uint32)], engine="jit", check=("race",), steps=10**6)
        assert sorted(each.hazard for each in result.findings) == sorted(hazards)
        assert quick() == (not hazards)


def test_memory_that_is_only_read_has_no_tags(monkeypatch):
    tagged = set()
    of_site = cell_tags.Tags.of_site

    def noted(tags, allocation, **how):
        tagged.add(of_site(tags, allocation, **how))
        return of_site(tags, allocation, **how)

    monkeypatch.setattr(cell_tags.Tags, "of_site", noted)
    read = f"{TABLE}{OWN_ENTRY} ld.global.u32 %r9, [%rd7]; ld.global.u32 %r10, [%rd3]; st.shared.u32 [%r6], %r9;\n ret;\n}}"
    result = ptxvm.load(read).kernel().launch(2, 64, [np.zeros(1024, np.uint32)], engine="jit", check=CHECKS)
    assert result.findings == []
    assert tagged == {0}


def test_schedules_of_a_kernel_with_barriers_only_are_all_alike(quick):
    assert launched(FINE["loops with barriers"], schedules=50)[0] == []
    assert quick()
    assert launched(FINE["atomics"], schedules=3)[0] == []
    assert not quick()


def test_a_new_device_array_has_no_value(quick):
    def found(body, data):
        return launched(body, data=data)[0]

    read = "ld.global.u32 %r9, [%rd2];"
    write = "st.global.u32 [%rd2], 1; " + read
    assert len(found(read, ptxvm.DeviceArray(1024, np.uint32))) == 1
    assert not quick()
    assert found(write, ptxvm.DeviceArray(1024, np.uint32)) == []
    assert quick()
    assert found(read, ptxvm.DeviceArray.from_host(np.zeros(1024, np.uint32))) == []
    assert quick()


def test_epochs_are_numbered_anew_when_their_numbers_run_out(quick, monkeypatch):
    monkeypatch.setattr(spare_memory, "START", (1 << 32) - 8 * cell_tags.EPOCH)
    monkeypatch.setattr(spare_memory, "TAGS", spare_memory.SpareTags())
    assert launched(FINE["loops with barriers"], grid=5)[0] == []
    assert quick()
    assert launched(WRONG["another CTA's"], grid=9)[0] == launched(WRONG["another CTA's"], "interp", grid=9)[0]
    assert not quick()


@pytest.mark.parametrize("prints", ["", "setp.eq.u32 %p1, %r4, 77; @!%p1 bra over; call (code), vprintf, (x, y); over:"])
def test_local_memory_of_kernels_that_may_print_is_looked_at(prints, quick):
    extern = ".extern .func (.reg .b32 r) vprintf (.reg .b64 f, .reg .b64 a);\n.visible .entry"
    head = HEAD.replace(".visible .entry", extern)
    wanders = "shl.b32 %r9, %r1, 30; shr.u32 %r9, %r9, 28; mov.u32 %r10, frame; add.u32 %r10, %r10, %r9; "
    body = f".reg .b32 code; .reg .b64 x, y; mov.b64 x, 0; mov.b64 y, 0; {prints} {wanders}"

    def init(body):
        kernel = ptxvm.load(head + body + "\n    ret;\n}\n").kernel()
        return [str(each) for each in kernel.launch(1, 64, [np.zeros(1024, np.uint32)], engine="jit", check="init").findings]

    assert init(body + "st.local.u32 [%r10], 1; ld.local.u32 %r11, [%r10]; st.global.u32 [%rd2], %r11;") == []
    assert quick()
    assert init(body + "ld.local.u32 %r11, [%r10]; setp.eq.u32 %p2, %r11, 1; @%p2 st.global.u32 [%rd2], 1;")
    assert not quick()


def test_what_a_kernel_prints_is_printed_once(capsys):
    text = HEAD.replace(".visible .entry", ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
                        ".global .align 1 .b8 said[4] = {104, 105, 10, 0};\n.visible .entry")  # fmt: skip
    call = """
        setp.eq.u32 %p1, %r4, 0; @!%p1 bra over;
        mov.u64 %rd6, said; cvta.global.u64 %rd6, %rd6; mov.u64 %rd7, 0;
        { .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], %rd6; st.param.b64 [b], %rd7;
          call (c), vprintf, (a, b); }
        over: ret; }"""
    kernel = ptxvm.load(text + call).kernel()
    for _ in range(2):  # the second launch has the memory of the first one
        result = kernel.launch(2, 64, [np.zeros(1024, np.uint32)], engine="jit", check=("race",))
        assert result.output == "hi\n"
        assert capsys.readouterr().out == "hi\n"


def test_auto_looks_quickly_where_that_pays(quick):
    body = "st.shared.u32 [%r6], 1; ld.shared.u32 %r9, [%r8];"
    assert launched(body, "auto", ("race",))[0]
    assert quick()  # for nobody has asked
    assert launched(body, "auto", ("race",), grid=1024)[0]
    assert not quick()


def test_parameters_of_calls_are_not_searched_for(monkeypatch):
    """They lie at constant places in the stack of a thread."""
    asked, check = [], observed_launch.ObservedCallbacks._check_access
    monkeypatch.setattr(
        observed_launch.ObservedCallbacks, "_check_access", lambda *given: asked.append(given[1]) or check(*given)
    )
    text = HEAD.replace(".visible", ".func (.param .b32 r) f (.param .b32 a);\n.visible", 1) + """
    mov.u32 %r9, 0;
    L: { .param .b32 a; .param .b32 r; st.param.b32 [a], %r9; call (r), f, (a); ld.param.b32 %r9, [r]; }
    setp.lt.u32 %p1, %r9, 20; @%p1 bra L;
    st.global.u32 [%rd2], %r9; ret;
    }
    .func (.param .b32 r) f (.param .b32 a) {
    .reg .b32 %x; ld.param.b32 %x, [a]; add.u32 %x, %x, 1; st.param.b32 [r], %x; ret; }
    """  # fmt: skip
    data = np.zeros(128, np.uint32)
    result = ptxvm.load(text).kernel().launch(2, 64, [data], engine="jit", check="memory")
    assert not result.findings
    assert (data == 20).all()
    assert len(asked) <= 2  # of the store behind the loop


@pytest.mark.parametrize("access", ["st.u32 [%rd6+20], %r1;", "ld.u32 %r9, [%rd6+20]; st.global.u32 [%rd2], %r9;"])
def test_what_leaves_its_variable_is_found_though_it_stays_in_the_stack(access):
    """Of 16 bytes, at a generic address whose distance from the stack is constant: PTX 5.1.6 gives each variable its own."""
    body = "mov.u64 %rd6, frame; cvta.local.u64 %rd6, %rd6; mov.u64 %rd7, more; cvta.local.u64 %rd7, %rd7; st.u32 [%rd7], %r1; "
    found = [launched(body + access, engine, "memory")[0] for engine in ("jit", "interp")]
    assert found[0] == found[1]
    assert "byte 20 of 'frame', which has 16 bytes" in found[0][0]
