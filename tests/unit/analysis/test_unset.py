"""Undefined values: which state spaces hand them on in a program."""

from __future__ import annotations

import pytest

import ptxvm
from ptxvm.algebra.state_space import Space
from ptxvm.analysis.flow import segments
from ptxvm.analysis.unset import handing_on

KERNEL = """
.version 8.3
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data)
{
    .shared .align 4 .b8 s[64]; .local .align 4 .b8 x[16];
    .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %d;
    ld.param.u64 %d, [data];
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p, %r1, 5;
    @%p mov.u32 %r2, 1;
    BODY
    ret;
}
"""


@pytest.mark.parametrize(
    ("body", "shared"),
    [
        ("st.shared.u32 [s], %r1;", False),
        ("st.shared.u32 [s], %r2;", True),
        ("add.u32 %r3, %r2, 1; st.shared.u32 [s], %r3;", True),
        ("mov.u32 %r2, 3; st.shared.u32 [s], %r2;", False),
        ("ld.local.u32 %r3, [x]; st.shared.u32 [s], %r3;", True),
        ("st.u32 [%d], %r2;", True),  # a generic address may be one of shared memory
        ("st.global.u32 [%d], %r2;", False),
        ("st.local.u32 [x], %r2;", False),
    ],
)
def test_shared_memory_hands_on_what_may_be_undefined_there(body, shared):
    function = ptxvm.load(KERNEL.replace("BODY", body)).kernel().function
    found = handing_on([(function, segments(function))])
    assert (Space.SHARED in found) is shared
    assert {Space.LOCAL, Space.PARAM, Space.GENERIC} <= found
