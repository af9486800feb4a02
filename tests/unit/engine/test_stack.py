"""The stack of recursion: 64 KiB for each thread, 16 bytes at least for each call, the same on both engines.

What is expected is the sum of the frames: a call takes its frame, rounded up to 16 bytes, however many registers it keeps.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

STACK = 1 << 16
HEADER = ".version 7.3\n.target sm_75\n.address_size 64\n"
KERNEL = """
.visible .entry k(.param .u64 out, .param .u32 n)
{
    .reg .u64 %o, %t; .reg .u32 %n, %d, %i;
    ld.param.u64 %o, [out]; ld.param.u32 %n, [n]; mov.u32 %i, %tid.x; mad.wide.u32 %o, %i, 4, %o;
    call (%d), f, (%n);
    st.global.u32 [%o], %d;
    ret;
}
"""


def function(before: str = "", after: str = "", name: str = "f", callee: str = "f") -> str:
    """A function that calls another one, n times one in the other, and gives n."""
    return f"""
.func (.reg .u32 r) {name} (.reg .u32 n)
{{
    .reg .pred p; .reg .u32 m, q; .reg .u64 w<24>; .reg .u64 at;
    mov.u32 r, 0; setp.eq.u32 p, n, 0; @p bra done;
    {before}
    sub.u32 m, n, 1; call (q), {callee}, (m); add.u32 r, q, 1;
    {after}
done:
    ret;
}}
"""


MANY = (
    "cvt.u64.u32 w0, n; " + " ".join(f"mad.lo.u64 w{n}, w{n - 1}, {n}, w0;" for n in range(1, 24)),
    " ".join(f"xor.b64 w0, w0, w{n};" for n in range(1, 24)) + " and.b64 w0, w0, 0; cvt.u32.u64 m, w0; add.u32 r, r, m;",
)
DECLARED = ".func (.reg .u32 r) g (.reg .u32 n);"
LEAF = ".func (.reg .u32 r) leaf (.reg .u32 n) { add.u32 r, n, 0; ret; }"
SOURCES = {
    "registers": (function(), 16),
    "many registers": (function(*MANY), 16),
    "a frame of 40 bytes": (function(".local .align 8 .b8 x[40]; st.local.u32 [x], n;"), 48),
    "two functions": (DECLARED + function(callee="g") + function(name="g"), 16),
    "another call besides": (LEAF + function("call (q), leaf, (n);"), 16),
    "a pointer": (function().replace("call (q), f, (m);", "mov.u64 at, f; call (q), at, (m), t;").replace(
        "    sub.u32", "    t: .callprototype (.reg .u32 _) _ (.reg .u32 _);\n    sub.u32"), 16),
}  # fmt: skip


def depth(source: str, n: int, engine: str, threads: int = 1) -> list[int]:
    """What the threads count."""
    out = np.zeros(threads, np.uint32)
    ptxvm.load(HEADER + source + KERNEL).kernel().launch(1, threads, [out, np.uint32(n)], engine=engine)
    return [int(x) for x in out]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(("source", "frame"), SOURCES.values(), ids=SOURCES)
def test_the_depth_of_calls_is_that_of_the_frames(source: str, frame: int, engine: str) -> None:
    most = STACK // frame - 1  # the first call is the kernel's
    assert depth(source, most, engine) == [most]
    with pytest.raises(
        ptxvm.Fault, match=rf"stack-overflow: the call of '\w+' needs {(most + 2) * frame} bytes of a stack of 65536"
    ):
        depth(source, most + 1, engine)


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_many_threads_have_a_stack_each(engine: str) -> None:
    assert depth(SOURCES["many registers"][0], 100, engine, threads=1024) == [100] * 1024


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_every_cta_finds_its_stacks_cleared(engine: str) -> None:
    """However deep the calls of earlier CTAs and launches went (PTX leaves it open; a run is to be repeatable)."""
    counts = function(
        ".local .align 8 .b8 x[40]; .reg .u32 old; ld.local.u32 old, [x]; min.u32 old, old, 1; st.local.u32 [x], 7;",
        "sub.u32 r, r, 1; add.u32 r, r, old;",
    )
    kernel = ptxvm.load(HEADER + counts + KERNEL.replace("st.global.u32", "red.global.max.u32")).kernel()
    found = np.zeros(40, np.uint32)
    for calls in (3, 30, 300):
        kernel.launch(40, 40, [found, np.uint32(calls)], engine=engine, threads=1)
    assert not found.any()
