"""What a call passes is no access of the program: PTX leaves open where `.param` variables lie (7.1)."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

MODULE = """.version 7.8
.target sm_80
.address_size 64
.func (.param .b32 result) sum(.param .align 8 .b8 given[8])
{
    .reg .b32 %a, %b;
    ld.param.v2.b32 {%a, %b}, [given];
    add.u32 %a, %a, %b;
    st.param.b32 [result], %a;
    ret;
}
.visible .entry k(.param .u64 out)
{
    .reg .b32 %t; .reg .b64 %out;
    .param .align 8 .b8 passed[8];
    .param .b32 back;
    mov.u32 %t, %tid.x;
    st.param.v2.b32 [passed], {%t, %t};
    call (back), sum, (passed);
    ld.param.b32 %t, [back];
    ld.param.u64 %out, [out];
    st.global.u32 [%out], %t;
    ret;
}
"""


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_a_call_accesses_no_memory(engine: str) -> None:
    done = ptxvm.load(MODULE).kernel().launch(1, 32, [np.zeros(1, np.uint32)], engine=engine, profile=True)
    assert done.profile is not None
    (call,) = (n for n, line in enumerate(MODULE.splitlines(), 1) if "call (" in line)
    (counts,) = (line.counts for line in done.profile.lines if line.number == call)
    assert {name: count for name, count in counts.items() if count} == {
        "inst_executed": 1, "thread_inst_executed": 32, "thread_inst_executed_true": 32,
    }  # fmt: skip
