"""How far loops move addresses: expectations are what their additions say."""

from __future__ import annotations

import pytest

import ptxvm
from ptxvm.engine.jit.cfg.loop_strides import Stride, loop_strides

LOOP = """.version 8.3
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u32 n)
{{
    .reg .b16 %h; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f; .reg .pred %p, %q;
    ld.param.u64 %d1, [a]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; mov.u32 %r3, 0; cvt.u64.u32 %d3, %r1;
L:  {inside}
    add.s32 %r3, %r3, 2; setp.lt.u32 %p, %r3, %r1; @%p bra L;
    ret;
}}
"""
LOAD = "ld.global.u32 %r8, [%d2];"
CASES = {
    "a constant": ("add.s64 %d1, %d1, 512; ld.global.u32 %r8, [%d1+4];", [([], 512)]),
    "two constants": ("add.s64 %d1, %d1, 512; ld.global.u32 %r8, [%d1]; add.s64 %d1, %d1, -12;", [([], 500)]),
    "the counter, times four": ("mul.wide.s32 %d2, %r3, 4; add.s64 %d2, %d2, %d1; " + LOAD, [([], 8)]),
    "the counter, times a size": ("mad.lo.s32 %r4, %r3, %r1, %r2; mad.wide.s32 %d2, %r4, 4, %d1; " + LOAD, [(["%r1"], 8)]),
    "shifted": ("shl.b32 %r4, %r3, 3; cvt.u64.u32 %d2, %r4; add.s64 %d2, %d1, %d2; " + LOAD, [([], 16)]),
    "a size": ("add.s64 %d1, %d1, %d3; ld.global.u32 %r8, [%d1];", [(["%d3"], 1)]),
    "a size and a constant": ("add.s64 %d1, %d1, %d3; add.s64 %d1, %d1, 4; ld.global.u32 %r8, [%d1];", [(["%d3"], 1), ([], 4)]),
    "what stays is no matter": ("and.b32 %r4, %r2, 31; mad.lo.s32 %r4, %r3, 4, %r4; mad.wide.s32 %d2, %r4, 1, %d1; " + LOAD,
                                [([], 8)]),
    "an address that stays": ("ld.global.u32 %r8, [%d1];", None),
    "an address that was loaded": ("ld.global.u64 %d1, [%d1];", None),
    "a remainder": ("rem.u32 %r4, %r3, %r1; mad.wide.u32 %d2, %r4, 4, %d1; " + LOAD, None),
    "a square": ("mul.lo.u32 %r4, %r3, %r3; mad.wide.u32 %d2, %r4, 4, %d1; " + LOAD, None),
    "perhaps": ("setp.eq.u32 %q, %r3, 4; @%q add.s64 %d1, %d1, 4; ld.global.u32 %r8, [%d1];", None),
    "a size that the loop computes": ("and.b32 %r4, %r2, 31; mad.lo.s32 %r5, %r3, %r4, %r2; mad.wide.s32 %d2, %r5, 4, %d1; "
                                      + LOAD, None),
    "the bits of a float": ("mov.b32 %r4, %f; mad.lo.s32 %r5, %r3, %r4, %r2; mad.wide.s32 %d2, %r5, 4, %d1; " + LOAD, None),
    "what an inner loop moves": ("M: add.s64 %d1, %d1, 4; setp.eq.u64 %q, %d1, 0; @%q bra M; ld.global.u32 %r8, [%d1];", None),
    "a barrier": ("add.s64 %d1, %d1, 512; bar.sync 0; st.global.u32 [%d1], %r3;", [([], 512)]),
}  # fmt: skip


def strides(inside: str) -> list[Stride]:
    """The strides of a loop's accesses."""
    return list(loop_strides(ptxvm.load(LOOP.format(inside=inside)).kernel().function).values())


@pytest.mark.parametrize("name", CASES)
def test_loop_strides(name: str) -> None:
    """An address moves by what the loop adds to it, times what it is multiplied by."""
    inside, expected = CASES[name]
    found = strides(inside)
    if expected is None:
        assert not found
        return
    [stride] = found
    assert sorted(([each.name for each in registers], factor) for registers, factor in stride.products) == sorted(expected)
    assert stride.waits is (name == "a barrier")


def test_each_access_has_the_stride_of_its_own_loop() -> None:
    """The outer loop moves its load by 64 bytes, the inner one its own by 4."""
    inside = """add.s64 %d1, %d1, 64; ld.global.u32 %r8, [%d1]; mov.u64 %d4, %d1;
M:  add.s64 %d4, %d4, 4; ld.global.u32 %r7, [%d4]; setp.ne.u32 %q, %r7, 0; @%q bra M;"""
    assert sorted(factor for stride in strides(inside) for _, factor in stride.products) == [4, 64]


@pytest.mark.parametrize(("products", "below"), [([([], 64)], True), ([([], -64)], True), ([([], 128)], False)])
def test_short_strides(products: list[tuple[list[str], int]], *, below: bool) -> None:
    """Of less than a length, in either direction."""
    assert Stride(tuple((tuple(registers), factor) for registers, factor in products), waits=False).is_below(100) is below  # type: ignore[arg-type]


def test_a_stride_by_a_size_is_never_short() -> None:
    """Only a launch knows it."""
    [stride] = strides("add.s64 %d1, %d1, %d3; ld.global.u32 %r8, [%d1];")
    assert not stride.is_below(1 << 40)
