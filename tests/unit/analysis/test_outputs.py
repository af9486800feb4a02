"""Through which parameters kernels only write; the expectations are read off the PTX."""

from __future__ import annotations

import pytest

import ptxvm
from ptxvm.analysis.outputs import outputs, read_parameters, written_parameters

HEAD = ".version 8.3\n.target sm_90\n.address_size 64\n.func take(.reg .b64 %at) { ret; }\n"
BODY = """
.visible .entry kernel(.param .u64 a, .param .u64 b, .param .u32 n)
{{
    .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<3>;
    ld.param.u64 %d0, [a];
    ld.param.u64 %d1, [b];
    ld.param.u32 %r0, [n];
    mul.wide.u32 %d2, %r0, 4;
    {}
    ret;
}}
"""
ADD = "add.u64 %d3, %d0, %d2; add.u64 %d4, %d1, %d2;"
CASES = {
    "a copy": (f"{ADD} ld.global.u32 %r1, [%d3]; st.global.u32 [%d4], %r1;", ["b"]),
    "two outputs": ("st.global.u32 [%d0], %r0; st.global.v2.u32 [%d1+8], {%r0, %r0};", ["a", "b"]),
    "in place": (f"{ADD} ld.global.u32 %r1, [%d4]; st.global.u32 [%d4], %r1;", []),
    "read elsewhere": (f"{ADD} st.global.u32 [%d4], %r0; ld.global.u32 %r1, [%d1+64];", []),
    "an atomic": ("st.global.u32 [%d1], %r0; red.global.add.u32 [%d1+4], 1;", []),
    "through cvta": ("cvta.to.global.u64 %d3, %d1; st.global.u32 [%d3], %r0;", ["b"]),
    "a distance": ("sub.u64 %d5, %d1, %d0; add.u64 %d6, %d0, %d5; st.global.u32 [%d6], %r0;", []),
    "a pointer from memory": ("ld.global.u64 %d3, [%d0]; st.global.u32 [%d3], %r0; st.global.u32 [%d1], %r0;", ["b"]),
    "a pointer that walks": (
        "L: st.global.u32 [%d1], %r0; add.u64 %d1, %d1, 4; sub.u32 %r0, %r0, 1; setp.ne.u32 %p0, %r0, 0; @%p0 bra L;",
        ["b"],
    ),
    "one of two": ("setp.eq.u32 %p0, %r0, 0; selp.b64 %d3, %d0, %d1, %p0; st.global.u32 [%d3], %r0;", []),
    "under a guard": ("setp.eq.u32 %p0, %r0, 0; mov.u64 %d3, %d1; @%p0 mov.u64 %d3, %d0; st.global.u32 [%d3], %r0;", []),
    "later than the use": (
        "mov.u64 %d3, %d1; L: st.global.u32 [%d3], %r0; mov.u64 %d3, %d0; setp.ne.u32 %p0, %r0, 0; @%p0 bra L;",
        [],
    ),
    "given away": ("st.global.u32 [%d1], %r0; call take, (%d1);", []),
}


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_only_writes_through_a_parameter(name: str) -> None:
    code, wanted = CASES[name]
    function = ptxvm.load(HEAD + BODY.format(code)).kernel().function
    found = outputs(function)
    assert [parameter.name for parameter in found.values()] == wanted
    assert all(bound.node.opcode == "st" for bound in found)


WRITTEN = {
    "a copy": "b", "in place": "b", "an atomic": "b", "a distance": "ab", "one of two": "ab", "given away": "b",
    "a pointer from memory": "b",
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_a_kernel_may_write_through_a_parameter(name: str) -> None:
    function = ptxvm.load(HEAD + BODY.format(CASES[name][0])).kernel().function
    assert sorted(parameter.name for parameter in written_parameters(function)) == list(WRITTEN[name])


READ = {
    "a copy": "a", "two outputs": "", "in place": "b", "an atomic": "b", "through cvta": "", "one of two": "",
    "a pointer that walks": "", "given away": "b",
    "a pointer from memory that is read": ("ld.global.u64 %d3, [%d0]; ld.global.u32 %r1, [%d3];", None),
    "a distance from memory": ("ld.global.u64 %d3, [%d0]; add.u64 %d3, %d1, %d3; ld.global.u32 %r1, [%d3];", None),
    "an index from memory": (
        "ld.global.u32 %r1, [%d0]; mul.wide.u32 %d3, %r1, 4; add.u64 %d3, %d0, %d3; ld.global.u32 %r1, [%d3];", "a",
    ),
    "a variable of the module": ("mov.u64 %d3, word; ld.global.u32 %r1, [%d3]; st.global.u32 [%d1], %r0;", None),
    "shared memory": ("ld.shared.u32 %r1, [%r0]; st.global.u32 [%d1], %r1;", ""),
    "an asynchronous copy": ("cp.async.ca.shared.global [%r0], [%d0], 4; st.global.u32 [%d1], %r1;", "a"),
    "a bulk copy": ("cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r0], 16; ld.global.u32 %r1, [%d0];", "a"),
    "a texture": ("tex.1d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [%d0, {%r0}]; st.global.u32 [%d1], %r1;", None),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_a_kernel_reads_through_no_other_parameters(name: str) -> None:
    case = READ[name]
    code, wanted = (CASES[name][0], case) if name in CASES else case
    function = ptxvm.load(HEAD + ".global .u32 word;\n" + BODY.format(code)).kernel().function
    found = read_parameters(function)
    assert (None if found is None else "".join(sorted(each.name for each in found))) == wanted
