"""Accesses that are compared together: the same faults at the same places as by themselves, and the same memory before."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm
from ptxvm.engine.jit.abi.specialisation import Specialisation

HEAD = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data, .param .u32 start)
{
    .shared .align 16 .b8 s[1024];
    .reg .b32 %r<16>; .reg .b64 %rd<4>; .reg .pred %p<2>;
    ld.param.u64 %rd1, [data];
    ld.param.u32 %r2, [start];
    mov.u32 %r1, %tid.x;
    mov.u32 %r3, s;
    add.u32 %r4, %r3, %r2;          // the same for all
    shl.b32 %r5, %r1, 2;
    add.u32 %r5, %r4, %r5;          // a word for each lane
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd2, %rd1, %rd2;
"""
BODIES = {
    "reads": "ld.shared.u32 %r6, [%r4+8]; ld.shared.u32 %r7, [%r4]; ld.shared.u32 %r8, [%r4+64]; add.u32 %r6, %r6, %r8;"
    "st.global.u32 [%rd2], %r6;",
    "a word for each lane": "ld.shared.u32 %r6, [%r5+256]; ld.shared.u32 %r7, [%r5+-4]; ld.shared.u32 %r8, [%r5+128];"
    "add.u32 %r6, %r7, 1; st.global.u32 [%rd2], %r6;",
    "writes before": "st.global.u32 [%rd2], 7; ld.shared.u32 %r6, [%r4]; ld.shared.u32 %r7, [%r4+512];",
    "writes between": "ld.shared.u32 %r6, [%r4]; st.global.u32 [%rd2], 7; st.shared.u32 [%r5+4], 1;"
    "ld.shared.u32 %r7, [%r4+512];",
    "two sizes": "ld.shared.u8 %r6, [%r4+1]; ld.shared.v2.u32 {%r7, %r8}, [%r4+16]; ld.shared.u8 %r9, [%r4+900];",
    "some under a condition": "setp.lt.u32 %p1, %r2, 700; ld.shared.u32 %r6, [%r4+4]; @%p1 ld.shared.u32 %r7, [%r4+320];",
    "a loop": "mov.u32 %r6, 0; L: ld.shared.u32 %r7, [%r4]; ld.shared.u32 %r8, [%r4+12]; add.u32 %r4, %r4, 16;"
    "add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 20; @%p1 bra L;",
}
STARTS = (0, 4, 8, 2, 500, 640, 700, 704, 960, 1012, 1016, 1020, 1024, 4096, 0xFFFF_FFFC, 0xFFFF_FFF0, 0x8000_0000)


def outcome(kernel, start, engine):
    data = np.zeros(64, np.uint32)
    try:
        kernel.launch(1, 64, [data, np.uint32(start)], engine=engine, threads=1)
    except ptxvm.Fault as fault:
        return str(fault), data.tolist()
    return "", data.tolist()


@pytest.mark.parametrize("name", BODIES)
def test_faults_are_those_of_the_interpreter(name):
    kernel = ptxvm.load(HEAD + BODIES[name] + "\n    ret;\n}\n").kernel()
    outcomes = [outcome(kernel, start, "jit") for start in STARTS]
    assert [said for said, _ in outcomes] == [outcome(kernel, start, "interp")[0] for start in STARTS]
    assert "" in [said for said, _ in outcomes]
    for start, (said, data) in zip(STARTS, outcomes, strict=True):
        if not said:
            assert data == outcome(kernel, start, "interp")[1]


def test_one_comparison_does_for_many_accesses():
    loads = "".join(f"ld.shared.u32 %r6, [%r4+{4 * n}];" for n in range(100))
    kernel = ptxvm.load(HEAD + loads + "\n    ret;\n}\n").kernel()
    jit = kernel.module.jit
    wanted = Specialisation(jit.image.resolve(kernel.function), (64, 1, 1))
    assert jit.code_cache.translation(wanted).versions.text.count("@llvm.fshr.i32(i32 %") == 1
