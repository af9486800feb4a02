"""Calls that cannot stand where they are: of a function by itself, and through pointers; and stacks that grow."""

from __future__ import annotations

import numpy as np
from engines import same, same_fault

import ptxvm

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
KERNEL = """
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<20>, %t; .reg .b64 %d<10>, %out; .reg .pred %p<4>;
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %d0, %t, 4;
    add.u64 %out, %out, %d0;
BODY
    st.global.u32 [%out], %r1;
    ret;
}
"""


def both(functions: str, body: str, block: int = 64) -> np.ndarray:
    """What every engine leaves, which must be the same."""
    kernel = ptxvm.load(HEAD + functions + KERNEL.replace("BODY", body)).kernel()
    return same(kernel, [np.zeros(block, np.uint32)], block=block)[0]


FIBONACCI = """
.func (.reg .b32 result) fibonacci(.reg .b32 n)
{
    .reg .b32 %a<5>; .reg .pred %q;
    setp.lt.u32 %q, n, 2;
    mov.u32 result, n;
    @%q ret;
    sub.u32 %a0, n, 1;
    call (%a1), fibonacci, (%a0);
    sub.u32 %a2, n, 2;
    call (%a3), fibonacci, (%a2);
    add.u32 result, %a1, %a3;
    ret;
}
"""


def test_a_function_that_calls_itself_twice() -> None:
    out = both(FIBONACCI, "and.b32 %r2, %t, 15; call (%r1), fibonacci, (%r2);")
    numbers = [0, 1]
    while len(numbers) < 16:
        numbers.append(numbers[-1] + numbers[-2])
    assert out.tolist() == [numbers[n % 16] for n in range(64)]


def test_functions_that_call_each_other_under_a_guard() -> None:
    functions = """
.func (.reg .b32 result) odd(.reg .b32 n);
.func (.reg .b32 result) even(.reg .b32 n)
{
    .reg .b32 %a; .reg .pred %q;
    mov.u32 result, 1;
    setp.ne.u32 %q, n, 0;
    sub.u32 %a, n, 1;
    @%q call (result), odd, (%a);
    ret;
}
.func (.reg .b32 result) odd(.reg .b32 n)
{
    .reg .b32 %a; .reg .pred %q;
    mov.u32 result, 0;
    setp.ne.u32 %q, n, 0;
    sub.u32 %a, n, 1;
    @%q call (result), even, (%a);
    ret;
}
"""
    out = both(functions, "call (%r1), even, (%t);")
    assert (out == 1 - np.arange(64) % 2).all()


def test_arguments_change_places_in_a_call_of_the_function_itself() -> None:
    functions = """
.func (.reg .b32 result) gcd(.reg .b32 a, .reg .b32 b)
{
    .reg .b32 %r; .reg .pred %q;
    setp.eq.u32 %q, b, 0;
    mov.u32 result, a;
    @%q ret;
    rem.u32 %r, a, b;
    call (result), gcd, (b, %r);
    ret;
}
"""
    out = both(functions, "add.u32 %r2, %t, 30; call (%r1), gcd, (%r2, 360);")
    assert (out == np.gcd(np.arange(64) + 30, 360)).all()


def test_each_lane_calls_the_function_that_its_pointer_names() -> None:
    functions = """
.func (.param .b32 r) one(.param .b32 x) { .reg .b32 %a; ld.param.u32 %a, [x]; add.u32 %a, %a, 1; st.param.b32 [r], %a; ret; }
.func (.param .b32 r) two(.param .b32 x) { .reg .b32 %a; ld.param.u32 %a, [x]; add.u32 %a, %a, %a; st.param.b32 [r], %a; ret; }
.func (.param .b32 r) sum(.param .b32 x)
{
    .reg .b32 %a<3>; .reg .pred %q;
    ld.param.u32 %a0, [x];
    bar.warp.sync 0xffffffff;
    shfl.sync.bfly.b32 %a1, %a0, 1, 31, 0xffffffff;
    st.param.b32 [r], %a1;
    ret;
}
.global .u64 table[2] = { one, two };
"""
    body = """
    mov.u64 %d1, table;
    and.b32 %r2, %t, 1;
    mul.wide.u32 %d2, %r2, 8;
    add.u64 %d1, %d1, %d2;
    ld.global.u64 %d3, [%d1];
    mov.u64 %d5, sum;
    { .param .b32 x; .param .b32 y;
      st.param.b32 [x], %t;
      shape: .callprototype (.param .b32 _) _ (.param .b32 _);
      call (y), %d3, (x), shape;
      ld.param.b32 %r1, [y];
      st.param.b32 [x], %r1;
      call (y), %d5, (x), shape;
      ld.param.b32 %r1, [y];
    }
"""
    threads = np.arange(64)
    called = np.where(threads % 2, threads * 2, threads + 1)
    assert (both(functions, body) == called[threads ^ 1]).all()


def test_a_pointer_to_no_function() -> None:
    functions = ".func (.reg .b32 r) one(.reg .b32 x) { add.u32 r, x, 1; ret; }\n"
    body = """
    mov.u64 %d3, one;
    setp.eq.u32 %p0, %t, 9;
    @%p0 add.u64 %d3, %d3, 4;
    shape: .callprototype (.reg .b32 _) _ (.reg .b32 _);
    call (%r1), %d3, (%t), shape;
"""
    kernel = ptxvm.load(HEAD + functions + KERNEL.replace("BODY", body)).kernel()
    assert same_fault(kernel, [np.zeros(64, np.uint32)], block=64).place.thread == (9, 0, 0)


def test_a_stack_ends_somewhere() -> None:
    functions = """
.func (.reg .b32 r) deep(.reg .b32 n)
{
    .local .b8 room[100];
    .reg .b32 %a; .reg .b64 %p;
    mov.u64 %p, room;
    st.local.u32 [%p], n;
    add.u32 %a, n, 1;
    call (r), deep, (%a);
    ld.local.u32 %a, [%p];
    add.u32 r, r, %a;
    ret;
}
"""
    kernel = ptxvm.load(HEAD + functions + KERNEL.replace("BODY", "call (%r1), deep, (%t);")).kernel()
    assert same_fault(kernel, [np.zeros(64, np.uint32)], block=32).kind == "stack-overflow"


def test_memory_that_a_function_takes_is_its_own_in_every_call() -> None:
    functions = """
.func (.reg .b32 r) walk(.reg .b32 n)
{
    .reg .b32 %a<3>; .reg .b64 %p<3>; .reg .pred %q;
    setp.eq.u32 %q, n, 0;
    mov.u32 r, 0;
    @%q ret;
    mul.wide.u32 %p0, n, 8;
    alloca.u64 %p1, %p0;
    st.local.u32 [%p1], n;
    sub.u32 %a0, n, 1;
    call (%a1), walk, (%a0);
    ld.local.u32 %a2, [%p1];
    add.u32 r, %a1, %a2;
    ret;
}
"""
    out = both(functions, "and.b32 %r2, %t, 7; call (%r1), walk, (%r2);")
    assert out.tolist() == [n % 8 * (n % 8 + 1) // 2 for n in range(64)]


def test_each_lane_jumps_to_the_label_that_its_index_names() -> None:
    body = """
    list: .branchtargets A, B, C, B;
    and.b32 %r2, %t, 3;
    brx.idx %r2, list;
A:
    mov.u32 %r1, 10;
    bra END;
B:
    mov.u32 %r1, 20;
C:
    add.u32 %r1, %r1, 30;
END:
"""
    out = both("", "mov.u32 %r1, 0;" + body)
    assert out.tolist() == [[10, 50, 30, 50][n % 4] for n in range(64)]


def test_a_function_returns_where_its_code_ends() -> None:
    functions = """
.func (.reg .b32 r) inner(.reg .b32 n) { add.u32 r, n, 1; }
.func (.reg .b32 r) outer(.reg .b32 n) { call (r), inner, (n); }
"""
    assert (both(functions, "call (%r1), outer, (%t);") == np.arange(64) + 1).all()


def test_a_loop_notices_that_a_block_is_freed() -> None:
    """The access has met the block in the turns before; it is freed in the fourth."""
    functions = """
        .extern .func (.param .b64 block) malloc(.param .b64 size);
        .extern .func free(.param .b64 block);"""
    body = """
        call (%d1), malloc, (64);
        mov.u32 %r1, 0;
    LOOP:
        st.global.u32 [%d1], %r1;
        setp.eq.u32 %p0, %r1, 3;
        @!%p0 bra NEXT;
        call free, (%d1);
    NEXT:
        add.u32 %r1, %r1, 1;
        setp.lt.u32 %p1, %r1, 10;
        @%p1 bra LOOP;"""
    kernel = ptxvm.load(HEAD + functions + KERNEL.replace("BODY", body)).kernel()
    assert same_fault(kernel, [np.zeros(1, np.uint32)]).kind == "use-after-free"
