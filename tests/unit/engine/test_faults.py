"""Faults that read the same on both engines: of calls to nowhere, and of accesses far from everything."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import ptxvm
from ptxvm.machine.image import FUNCTION_SIZE

HEADER = ".version 6.5\n.target sm_75\n.address_size 64\n"
BOTH = pytest.mark.parametrize("engine", ["interp", "jit"])


def fault(source: str, engine: str, out: np.ndarray | None = None) -> ptxvm.Fault:
    """What a launch raises."""
    out = np.zeros(4, np.uint32) if out is None else out
    with pytest.raises(ptxvm.Fault) as raised:
        ptxvm.load(HEADER + source).kernel("k").launch(1, 32, [out], engine=engine)
    return raised.value


UNRESOLVED = {
    "a register": """.extern .func (.reg .u32 r) f (.reg .u32 n);
.visible .entry k(.param .u64 o) { .reg .u32 q;
call (q), f, (q); ret; }""",
    "a parameter": """.extern .func (.param .b32 r) f (.param .b32 n);
.visible .entry k(.param .u64 o) { .reg .u32 q; .param .b32 x; .param .b32 y; mov.u32 q, 1; st.param.b32 [x], q;
call (y), f, (x); ld.param.b32 q, [y]; ret; }""",
    "a structure": """.extern .func f (.param .align 8 .b8 n[24]);
.visible .entry k(.param .u64 o) { .reg .u64 q; .param .align 8 .b8 x[24]; mov.u64 q, 1; st.param.b64 [x+8], q;
call f, (x); ret; }""",
    "a function that is called": """.extern .func f (.param .b32 n);
.func g (.reg .u32 n) { .param .b32 x; st.param.b32 [x], n;
call f, (x); ret; }
.visible .entry k(.param .u64 o) { .reg .u32 q; mov.u32 q, 3; call g, (q); ret; }""",
}


@BOTH
@pytest.mark.parametrize("source", UNRESOLVED.values(), ids=UNRESOLVED)
def test_a_call_of_what_no_module_defines(source: str, engine: str) -> None:
    found = fault(source, engine)
    assert found.kind == "invalid-call"
    assert "the function 'f' has no body" in str(found)
    line = next(n for n, text in enumerate((HEADER + source).splitlines(), 1) if text.startswith("call") and " f," in text)
    assert found.place is not None
    assert found.place.line == line


@BOTH
@pytest.mark.parametrize("offset", [1 << 24, 1 << 30, -(1 << 24), 1 << 44])
@pytest.mark.parametrize("access", ["st.global.u32 [a], 1", "ld.u32 q, [a]"])
def test_far_from_everything_no_allocation_is_named(
    offset: int, access: str, engine: str, alone: Callable[..., np.ndarray]
) -> None:
    body = f"ld.param.u64 a, [o]; add.s64 a, a, {offset}; {access}; ret;"
    source = f".visible .entry k(.param .u64 o) {{ .reg .u64 a; .reg .u32 q; {body} }}"
    # No process has memory 1 << 44 past where arrays of this size are.
    found = fault(source, engine, alone(4, np.uint32, room=2 * min(abs(offset), 1 << 30)))
    assert found.kind == "out-of-bounds"
    assert "nothing is allocated there" in str(found)


@BOTH
def test_near_an_allocation_it_is_named(engine: str) -> None:
    source = ".visible .entry k(.param .u64 o) { .reg .u64 a; ld.param.u64 a, [o]; st.global.u32 [a+16], 1; ret; }"
    assert "just past the end of `o` (16 bytes, argument 0)" in str(fault(source, engine))


@BOTH
@pytest.mark.parametrize(("offset", "said"), [
    (FUNCTION_SIZE, "the call goes to 'g', whose address is never taken"),
    (2 * FUNCTION_SIZE, "the call goes to the kernel 'k', which is launched and not called"),
    (FUNCTION_SIZE // 2, "where no function is"),
])  # fmt: skip
def test_a_call_of_an_address_that_is_computed(offset: int, said: str, engine: str) -> None:
    """A call by address enters a function whose address was taken (PTX 9.7.12.5); of others PTX says nothing."""
    found = fault(
        f""".func (.reg .u32 y) f (.reg .u32 x) {{ mov.u32 y, x; ret; }}
        .func (.reg .u32 y) g (.reg .u32 x) {{ mov.u32 y, x; ret; }}
        .visible .entry k(.param .u64 o) {{ .reg .u32 q; .reg .u64 a;
        P: .callprototype (.reg .u32 _) _ (.reg .u32 _);
        mov.u32 q, %tid.x; mov.u64 a, f; add.u64 a, a, {offset}; call (q), g, (q); call (q), a, (q), P; ret; }}""",
        engine,
    )
    assert (found.kind, said in str(found)) == ("invalid-call", True)
