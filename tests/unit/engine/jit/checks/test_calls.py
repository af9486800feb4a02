"""Checks of kernels that call functions, on the JIT: the variables of each call are its own, and begin without a value."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

TEXT = """
.version 7.8
.target sm_80
.address_size 64
{functions}
.visible .entry k(.param .u64 data)
{{
    .reg .pred %p; .reg .b32 %t, %x, %y, %z; .reg .b64 %d, %f;
    ld.param.u64 %d, [data];
    mov.u32 %t, %ctaid.x; mad.wide.u32 %d, %t, 1024, %d;
    mov.u32 %t, %tid.x; mad.wide.u32 %d, %t, 4, %d;
    setp.lt.u32 %p, %t, 7;
    {body}
    st.global.u32 [%d], %x;
    ret;
}}
"""
# Writes its variable if its second argument is not 0, and returns what is there.
KEEPER = """
.func (.reg .b32 %o) keep(.reg .b32 %a, .reg .b32 %w)
{
    .local .align 4 .b8 v[8]; .reg .pred %q;
    setp.ne.u32 %q, %w, 0; @%q st.local.u32 [v+PLACE], %a;
    ld.local.u32 %o, [v+4]; ret;
}
"""
# The sum of the numbers up to its argument, each of which is in the variable of a call.
SUM = """
.func (.param .b32 o) sum(.param .b32 n)
{
    .local .align 4 .b8 v[8]; .reg .pred %q; .reg .b32 %n, %m;
    ld.param.u32 %n, [n]; st.local.u32 [v+PLACE], %n; mov.u32 %m, 0;
    setp.eq.u32 %q, %n, 0; @%q bra DONE;
    sub.u32 %m, %n, 1;
    { .param .b32 a; .param .b32 r; st.param.b32 [a], %m; call (r), sum, (a); ld.param.b32 %m, [r]; }
DONE: ld.local.u32 %n, [v+4]; add.u32 %m, %m, %n; st.param.b32 [o], %m; ret;
}
"""
# Stores through a pointer, and loads, by generic addresses.
POINTER = """
.func (.param .b32 o) swap(.param .b64 to, .param .b32 n)
{
    .reg .b32 %n, %m; .reg .b64 %to;
    ld.param.u64 %to, [to]; ld.param.u32 %n, [n]; ld.u32 %m, [%to]; st.u32 [%to], %n; st.param.b32 [o], %m; ret;
}
"""
DIRECTLY = "call (%x), keep, (%t, 1); call (%y), keep, (%x, {again}); add.u32 %x, %x, %y;"
BY_POINTER = (
    "mov.u64 %f, keep; P: .callprototype (.reg .b32 _) _ (.reg .b32 _, .reg .b32 _); call (%x), %f, (%t, 1), P; "
    "call (%y), %f, (%x, {again}), P; add.u32 %x, %x, %y;"
)
OF_SOME = (
    "call (%x), keep, (%t, 1); mov.u32 %z, 1; @%p mov.u32 %z, {again}; @%p call (%y), keep, (%x, %z); @%p add.u32 %x, %x, %y;"
)
RECURSION = (
    "and.b32 %x, %t, 3; {{ .param .b32 a; .param .b32 r; st.param.b32 [a], %x; call (r), sum, (a); ld.param.b32 %x, [r]; }}"
)
LOADED = (
    "{{ .local .align 4 .b8 v[4]; .reg .b64 %v; mov.u64 %v, v; cvta.local.u64 %v, %v; {write} "
    ".param .b64 a; .param .b32 b; .param .b32 r; st.param.b64 [a], %v; st.param.b32 [b], %t; call (r), swap, (a, b); "
    "ld.param.b32 %x, [r]; ld.local.u32 %y, [v]; add.u32 %x, %x, %y; }}"
)


def launched(functions, body, engine, check, block):
    data = np.zeros(512, np.uint32)
    kernel = ptxvm.load(TEXT.format(functions=functions, body=body)).kernel()
    result = kernel.launch(2, block, [data], engine=engine, check=check)
    return [str(each) for each in result.findings], data.tolist()


CALLS = {"directly": DIRECTLY, "by a pointer": BY_POINTER, "of some lanes": OF_SOME}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("block", [32, 40, 96, 128])
@pytest.mark.parametrize("check", ["race", "init", "sync", "memory"])
@pytest.mark.parametrize("name", [*CALLS, "recursion"])
def test_compiled_code_looks_at_calls(name, check, block, quick):
    functions, body = (SUM, RECURSION.format()) if name == "recursion" else (KEEPER, CALLS[name].format(again=1))
    found, data = launched(functions.replace("PLACE", "4"), body, "jit", (check,), block)
    assert quick()
    assert found == []
    expected = {
        "recursion": [(t & 3) * ((t & 3) + 1) // 2 for t in range(block)],
        "of some lanes": [2 * t if t < 7 else t for t in range(block)],
    }.get(name, [2 * t for t in range(block)])
    assert data[:block] == data[256:][:block] == expected


@pytest.mark.parametrize("block", [32, 40, 128])
@pytest.mark.parametrize("name", CALLS)
def test_a_variable_has_no_value_in_the_next_call(name, block, quick):
    functions, body = KEEPER.replace("PLACE", "4"), CALLS[name].format(again=0)
    found, _ = launched(functions, body, "jit", ("init",), block)
    assert found
    assert found == launched(functions, body, "interp", ("init",), block)[0]
    assert not quick()


@pytest.mark.parametrize(("check", "place"), [("init", 0), ("memory", 8), ("memory", 16)])
@pytest.mark.parametrize("name", [*CALLS, "recursion"])
def test_what_is_wrong_in_a_call_is_found_as_by_the_interpreter(name, check, place):
    functions, body = (SUM, RECURSION.format()) if name == "recursion" else (KEEPER, CALLS[name].format(again=1))
    functions = functions.replace("PLACE", str(place))
    found, _ = launched(functions, body, "jit", (check,), 64)
    assert found
    assert found == launched(functions, body, "interp", (check,), 64)[0]


@pytest.mark.parametrize("write", ["", "st.local.u32 [v], 5;", "@%p st.local.u32 [v], 5;"])
def test_a_pointer_into_the_stack_is_followed(write):
    body = LOADED.format(write=write)
    found, data = launched(POINTER, body, "jit", ("init",), 64)
    assert bool(found) == (not write.startswith("st"))
    assert (found, data) == launched(POINTER, body, "interp", ("init",), 64)
