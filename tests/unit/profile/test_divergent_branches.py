"""Branches after which the lanes of a warp are at several places, as both engines count them."""

from __future__ import annotations

import pytest

import ptxvm
from ptxvm.machine.options import EngineName

KERNEL = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k()
{
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    mov.u32 %r0, %tid.x;
    setp.lt.u32 %p0, %r0, 5;
    setp.lt.u32 %p1, %r0, 9;
    @%p0 bra END;
    @%p1 bra END;
END:
    mov.u32 %r1, %r0;
    ret;
}
"""


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_a_branch_to_the_next_instruction_divides_no_lanes(engine: EngineName) -> None:
    """Also where some of a warp are there, behind a branch that does."""
    found = ptxvm.load(KERNEL).kernel().launch(1, 32, [], engine=engine, profile=True).profile
    assert found is not None
    assert (found["branches"], found["divergent_branches"]) == (2, 1)
