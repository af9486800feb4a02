"""Generic accesses that are surely of local memory: which become `.local` ones, and that both engines do the same."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm
from ptxvm.algebra.state_space import Space
from ptxvm.engine.jit.cfg.local_pointers import in_local_space

# Each thread has sixteen words of its own, of which it writes the one at `%at` and reads it back.
KERNEL = """
.version 8.0
.target sm_80
.address_size 64
.visible .global .u64 kept;
.func (.param .b32 result) twice(.param .b32 x)
{{
    .reg .b32 %r<3>;
    ld.param.u32 %r1, [x]; add.u32 %r2, %r1, %r1; st.param.b32 [result], %r2; ret;
}}
.visible .entry k(.param .u64 in, .param .u64 out)
{{
    .local .align 16 .b8 depot[64];
    .reg .b64 %sp, %spl, %a, %b, %c, %d<6>; .reg .b32 %r<9>, %at; .reg .pred %p, %q;
    mov.u64 %spl, depot; cvta.local.u64 %sp, %spl;
    ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out];
    mov.u32 %r1, %tid.x; mul.wide.u32 %d3, %r1, 4; add.u64 %d4, %d1, %d3; add.u64 %d5, %d2, %d3;
    ld.global.u32 %at, [%d4]; mul.wide.u32 %a, %at, 4; add.u64 %b, %sp, %a;
    mov.u32 %r2, 0; mov.u32 %r3, 0; setp.lt.u32 %p, %r1, 20;
    {body}
    st.global.u32 [%d5], %r2;
    ret;
}}
"""
AT = np.random.default_rng(20261130).integers(0, 15, 64, dtype=np.uint32)
TID = np.arange(64, dtype=np.uint32)


def module(body: str) -> ptxvm.Module:
    return ptxvm.load(KERNEL.format(body=body))


def generic_accesses(body: str) -> int:
    """How many remain."""
    function = in_local_space(module(body).kernel("k").function)
    return sum(access.space is Space.GENERIC for bound in function.instructions for access in bound.summary.accesses)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("st.u32 [%b], %r1; ld.u32 %r2, [%b];", TID, id="places that differ"),
        pytest.param("st.u32 [%sp+8], %r1; ld.u32 %r2, [%sp+8];", TID, id="one place"),
        pytest.param("mov.u64 %c, %sp; st.u32 [%c], %r1; ld.u32 %r2, [%sp];", TID, id="a copy"),
        pytest.param("or.b64 %c, %sp, 4; st.u32 [%c], %r1; ld.u32 %r2, [%sp+4];", TID, id="or of a low bit"),
        pytest.param("sub.u64 %c, %b, %a; st.u32 [%c], %r1; ld.u32 %r2, [%sp];", TID, id="a difference"),
        pytest.param("mad.wide.u32 %c, %at, 4, %sp; st.u32 [%c], %r1; ld.u32 %r2, [%b];", TID, id="a product and a sum"),
        pytest.param("st.v2.u32 [%sp+8], {%r1, %at}; ld.u32 %r2, [%sp+12];", AT, id="a vector"),
        pytest.param("st.u64 [%sp+8], %a; ld.u32 %r2, [%sp+8];", 4 * AT, id="a wide element"),
        pytest.param("st.u32 [%b], %r1; @%p st.u32 [%b], %at; ld.u32 %r2, [%b];", np.where(TID < 20, AT, TID), id="a guard"),
        pytest.param("add.u64 %c, %sp, 4; selp.b64 %c, %c, %b, %p; st.u32 [%c], %r1; ld.u32 %r2, [%c];", TID,
                     id="one of two places"),
        pytest.param("mov.u64 %c, %sp; F: st.u32 [%c], %r3; add.u64 %c, %c, 4; add.u32 %r3, %r3, 3; "
                     "setp.lt.u32 %q, %r3, 48; @%q bra F; ld.u32 %r2, [%b];", 3 * AT, id="a loop"),
        pytest.param("st.u32 [%b], %r1; ld.u32 %r3, [%b]; { .param .b32 x; .param .b32 y; st.param.b32 [x], %r3; "
                     "call (y), twice, (x); ld.param.b32 %r2, [y]; }", 2 * TID, id="a call beside"),
    ],
)  # fmt: skip
def test_accesses_become_local(body: str, expected: np.ndarray) -> None:
    assert generic_accesses(body) == 0
    for engine in ("jit", "interp"):
        out = np.zeros(64, np.uint32)
        module(body).kernel("k").launch(grid=1, block=64, args=[AT, out], engine=engine)
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("st.u32 [%b], %r1; ld.u32 %r2, [%b]; setp.eq.u64 %q, %b, 0; @%q mov.u32 %r2, 99;", TID, id="compared"),
        pytest.param("st.u64 [%sp+8], %b; ld.u64 %c, [%sp+8]; st.u32 [%c], %r1; ld.u32 %r2, [%b];", TID, id="stored"),
        pytest.param("st.u32 [%b], %r1; mov.u64 %c, %d4; @!%p mov.u64 %c, %b; ld.u32 %r2, [%c];",
                     np.where(TID < 20, AT, TID), id="joined with another"),
        pytest.param("st.u32 [%b], %r1; selp.b64 %c, %d4, %b, %p; ld.u32 %r2, [%c];",
                     np.where(TID < 20, AT, TID), id="chosen with another"),
        pytest.param("st.volatile.u32 [%b], %r1; ld.u32 %r2, [%b];", TID, id="a volatile access"),
        pytest.param("st.u32 [%b], %r1; isspacep.local %q, %b; selp.u32 %r2, %r1, 99, %q;", TID, id="asked for its space"),
        pytest.param("st.u32 [%b], 7; atom.add.u32 %r2, [%b], %r1; ld.u32 %r2, [%b];", TID + 7, id="an atomic"),
        pytest.param("st.u32 [%b], %r1; sub.u64 %c, %b, %sp; cvt.u32.u64 %r2, %c;", 4 * AT, id="a difference of two"),
        pytest.param("st.u32 [%b], %r1; mov.b64 {%r3, %r4}, %b; mov.b64 %c, {%r3, %r4}; ld.u32 %r2, [%c];", TID,
                     id="in halves"),
        pytest.param("st.u32 [%b], %r1; cvta.to.local.u64 %c, %b; ld.local.u32 %r2, [%c];", TID, id="converted back"),
    ],
)  # fmt: skip
def test_addresses_that_go_elsewhere(body: str, expected: np.ndarray) -> None:
    assert generic_accesses(body) > 0
    for engine in ("jit", "interp"):
        out = np.zeros(64, np.uint32)
        module(body).kernel("k").launch(grid=1, block=64, args=[AT, out], engine=engine)
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("check", [None, ["memory"], ["init"]])
@pytest.mark.parametrize("place", [-1, 15, 16, (1 << 30) - 1, 1 << 30, 1 << 44])
def test_places_outside_are_found_alike(place: int, check: list[str] | None) -> None:
    """Messages are the same but for the address, which differs from run to run."""
    body = f"add.s64 %b, %sp, {4 * place}; st.u32 [%b], %r1; ld.u32 %r2, [%b];"
    said = []
    for engine in ("jit", "interp"):
        out = np.zeros(64, np.uint32)
        try:
            result = module(body).kernel("k").launch(grid=1, block=64, args=[AT, out], engine=engine, check=check)
            said.append([each.kind for each in result.findings])
        except ptxvm.Fault as fault:
            said.append([fault.kind])
    assert said[0] == said[1]
    assert said[0] or 0 <= place < 16 or check != ["memory"]


def test_an_unwritten_word_is_found() -> None:
    out = np.zeros(64, np.uint32)
    body = "st.u32 [%sp], %r1; ld.u32 %r2, [%sp+4];"
    for engine in ("jit", "interp"):
        result = module(body).kernel("k").launch(grid=1, block=64, args=[AT, out], engine=engine, check=["init"])
        assert [each.kind for each in result.findings][:1] == ["uninitialised-read"], result.findings
