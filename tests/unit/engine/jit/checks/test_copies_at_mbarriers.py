"""Checks on the JIT of asynchronous copies of which an mbarrier tells (PTX 9.7.9.25.4.3, `cp.async.mbarrier.arrive`).

What is copied is there for whoever has found the phase over: for no thread before that, also not for the one that copies.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

HEAD = """
.version 8.7
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data)
{
    .shared .align 16 .b8 s[2048];
    .shared .align 8 .b64 bar[2];
    .reg .pred %p, %q, %o; .reg .b32 %t, %own, %other, %n, %a, %i; .reg .b64 %g, %from, %to, %x;
    ld.param.u64 %g, [data];
    mov.u32 %t, %tid.x; mov.u32 %a, s; shl.b32 %n, %t, 2; add.u32 %own, %a, %n; xor.b32 %other, %own, 4;
    mul.wide.u32 %from, %t, 4; add.u64 %from, %g, %from; add.u64 %to, %from, 4096; mov.u32 %i, 0;
    setp.eq.u32 %o, %t, 0; setp.lt.u32 %p, %t, 32;
    @%o mbarrier.init.shared.b64 [bar], 64;
    @%o mbarrier.init.shared.b64 [bar+8], 64;
    bar.sync 0;
"""
GET = "cp.async.ca.shared.global [%own], [%from], 4;"
TELL = "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];"  # one of the 64 arrivals of a phase
USE, NEAR = "ld.shared.u32 %a, [%own]; st.global.u32 [%to], %a;", "ld.shared.u32 %a, [%other]; st.global.u32 [%to], %a;"


def wait(name, parity="0", where="bar"):
    return f"{name}: mbarrier.test_wait.parity.shared.b64 %q, [{where}], {parity}; @!%q bra {name};"


FINE = {
    "the neighbour's": GET + TELL + wait("W") + NEAR,
    "its own": GET + TELL + wait("W") + USE,
    "with an arrival of the thread": f"{GET} cp.async.mbarrier.arrive.shared.b64 [bar]; mbarrier.arrive.shared.b64 %x, [bar];"
    "W: mbarrier.test_wait.shared.b64 %q, [bar], %x; @!%q bra W;" + NEAR,
    "again and again": f"L: {GET} {TELL} and.b32 %n, %i, 1; {wait('W', '%n')} {NEAR} bar.sync 0;"
    "add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 5; @%q bra L;",
    "by one warp, for another": f"@!%p bra T; {GET} {TELL} cp.async.ca.shared.global [%own+128], [%from], 4; {TELL} bra W;"
    f"T: sub.u32 %other, %other, 128; {wait('W')} {NEAR}",
    "waited for twice": GET + TELL + "cp.async.wait_all;" + wait("W") + NEAR,
    "after a barrier as well": GET + TELL + wait("W") + "bar.sync 0;" + NEAR,
    "two mbarriers": f"{GET} {TELL} cp.async.ca.shared.global [%own+512], [%from], 4;"
    f"cp.async.mbarrier.arrive.noinc.shared.b64 [bar+8]; {wait('W')} {NEAR} {wait('V', where='bar+8')}"
    "ld.shared.u32 %a, [%other+512];",
}  # fmt: skip
WRONG = {
    "its own, without a wait": GET + TELL + USE + wait("W"),
    "the neighbour's, without a wait": GET + TELL + NEAR + wait("W"),
    "a barrier in place of the wait": GET + TELL + "bar.sync 0;" + NEAR + wait("W"),
    "a copy behind the arrival": f"{TELL} {GET} {wait('W')} {NEAR}",
    "the other mbarrier": f"{GET} {TELL} cp.async.ca.shared.global [%own+512], [%from], 4;"
    f"cp.async.mbarrier.arrive.noinc.shared.b64 [bar+8]; {wait('W')} ld.shared.u32 %a, [%other+512];"
    + wait("V", where="bar+8"),
    "overwritten without a wait": GET + TELL + "st.shared.u32 [%own], 1;" + wait("W"),
    "copied over what others still read": f"L: {GET} {TELL} and.b32 %n, %i, 1; {wait('W', '%n')} {NEAR}"
    "add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 3; @%q bra L;",
}  # fmt: skip


def launched(body, engine="jit", check=("race",), *, grid=2):
    data = np.arange(4096, dtype=np.uint32)
    kernel = ptxvm.load(f"{HEAD} {body} ret; }}").kernel()
    return [str(each) for each in kernel.launch(grid, 64, [data], engine=engine, check=check).findings], data


@pytest.mark.parametrize("check", [("race",), ("init",), ("sync",), ("memory",), ("race", "init", "memory")])
@pytest.mark.parametrize("name", FINE)
def test_copies_that_are_waited_for_are_cleared(name, check, quick):
    found, data = launched(FINE[name], check=check, grid=1)
    assert found == []
    assert quick()
    assert np.array_equal(data, launched(FINE[name], "interp", check, grid=1)[1])


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_waited_for_is_found_as_by_the_interpreter(name, quick):
    found = launched(WRONG[name], grid=1)[0]
    assert not quick()
    assert found == launched(WRONG[name], "interp", grid=1)[0] != []
