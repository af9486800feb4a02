"""Division of all lanes by one divisor, which is known at run time: against Python's integers.

The expectations are PTX 9.7.1.9 (div) and 9.7.1.10 (rem): quotients towards 0.  By 0 all bits are set,
as the hardware that was recorded has it.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

COUNT = 1 << 12
TEXT = """.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 given, .param .u64 out, .param .u32 d) {{
    .reg .b32 %i, %x, %d, %q, %r; .reg .b16 %hx, %hd, %hq, %hr; .reg .b64 %g, %o, %w;
    ld.param.u64 %g, [given]; ld.param.u64 %o, [out]; ld.param.u32 %d, [d];
    mov.u32 %i, %tid.x; mov.u32 %x, %ctaid.x; mad.lo.u32 %i, %x, 256, %i;
    mul.wide.u32 %w, %i, 4; add.u64 %g, %g, %w; mul.wide.u32 %w, %i, 8; add.u64 %o, %o, %w;
    ld.global.u32 %x, [%g];
    {divide}
    st.global.v2.u32 [%o], {{%q, %r}};
    ret;
}}"""
WORDS = "div.{type} %q, %x, %d; rem.{type} %r, %x, %d;"
HALVES = (
    "cvt.u16.u32 %hx, %x; cvt.u16.u32 %hd, %d; div.{type} %hq, %hx, %hd; rem.{type} %hr, %hx, %hd;"
    "cvt.u32.u16 %q, %hq; cvt.u32.u16 %r, %hr;"
)


@pytest.mark.parametrize("type", ["u32", "s32", "u16", "s16"])
def test_by_one_divisor(type: str, rng: np.random.Generator) -> None:
    bits, signed = int(type[1:]), type[0] == "s"
    kernel = ptxvm.load(TEXT.format(divide=(WORDS if bits == 32 else HALVES).format(type=type))).kernel()
    full = (1 << bits) - 1
    own = [0, 1, 2, 3, 7, 10, 255, 641, full, full >> 1, (full >> 1) + 1, full - 1, 1 << (bits - 2)]
    divisors = (
        own + [int(each) for each in rng.integers(0, full, 12, endpoint=True)] + [int(n) for n in rng.integers(2, 200, 12)]
    )
    for divisor in divisors:
        given = rng.integers(0, full, COUNT, np.uint32, endpoint=True)
        given[: len(own)] = own
        if divisor:  # multiples, and what is beside them
            near = rng.integers(0, full // divisor, 3 * 600, np.uint64, endpoint=True) * divisor
            given[600 : 600 + len(near)] = (near + np.tile([0, 1, -1], 600).astype(np.uint64)) & np.uint64(full)
        out = np.zeros((COUNT, 2), np.uint32)
        kernel.launch(COUNT // 256, 256, [given, out, np.uint32(divisor)], engine="jit")
        wanted = np.array([divided(int(x), divisor, bits, signed=signed) for x in given], np.uint32)
        assert np.array_equal(out, wanted), divisor


WIDE = """.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 out, .param .u64 d) {{
    .reg .b32 %i; .reg .b64 %a, %b, %o, %w, %x, %y, %d, %q, %r, %h, %c, %v, %u;
    ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; ld.param.u64 %o, [out]; ld.param.u64 %d, [d];
    mov.u32 %i, %tid.x; mul.wide.u32 %w, %i, 8; add.u64 %a, %a, %w; add.u64 %b, %b, %w;
    mul.wide.u32 %w, %i, 48; add.u64 %o, %o, %w;
    ld.global.u64 %x, [%a]; ld.global.u64 %y, [%b];
    div.{type} %q, %x, %d; rem.{type} %r, %x, %d; mul.hi.{type} %h, %x, %y; div.{type} %c, %x, {constant};
    div.{type} %v, %x, %y; rem.{type} %u, %x, %y; st.global.v2.u64 [%o+32], {{%v, %u}};
    st.global.v2.u64 [%o], {{%q, %r}}; st.global.v2.u64 [%o+16], {{%h, %c}};
    ret;
}}"""


@pytest.mark.parametrize("constant", [10, 7, 1000003, 1 << 40, (1 << 62) + 1])
@pytest.mark.parametrize("type", ["u64", "s64"])
def test_of_64_bits(type: str, constant: int, rng: np.random.Generator) -> None:
    """Also the upper halves of products, and quotients by constants and by divisors that differ."""
    signed, full, count = type[0] == "s", (1 << 64) - 1, 256
    kernel = ptxvm.load(WIDE.format(type=type, constant=constant)).kernel()
    edges = "0 1 2 3 a ffffffff 100000000 ffffffffffffffff 7fffffffffffffff 8000000000000000 fffffffffffffffe 5555555555555555"
    own = [*(int(n, 16) for n in edges.split()), full // 3 * 2, 1 << 62]
    others = rng.integers(0, full, 6, np.uint64, endpoint=True) >> rng.integers(0, 60, 6, np.uint64)
    for divisor in own + others.tolist():
        a, b = rng.integers(0, full, (2, count), np.uint64, endpoint=True) >> rng.integers(0, 60, (2, count), np.uint64)
        a[: len(own)], b[: len(own)] = own, own[::-1]
        near = rng.integers(0, 1 << 12, 50, np.uint64)  # what is beside a multiple of another number, and large numbers
        b[200:250] = b[200:250] >> near % np.uint64(64) | np.uint64(1)
        beside = [full // n * n - m * (n < 1 << 50) for n, m in zip(b[200:250].tolist(), near.tolist(), strict=True)]
        a[200:250] = np.array([n & full for n in beside], np.uint64)
        large = np.array([(1 << 63) + n for n in (-20000, -16384, -1, 0, 1, 99)], np.uint64)
        b[250:256], a[250:256] = large, np.uint64(full) - near[:6]
        if divisor:
            a[100:200] = [
                (int(n) % (full // divisor + 1) * divisor + more) & full for n, more in zip(b, [0, 1, -1, 0] * 25, strict=False)
            ]
        out = np.zeros((count, 6), np.uint64)
        kernel.launch(1, count, [a, b, out, np.uint64(divisor)], engine="jit")
        wanted = []
        for x, y in zip(a.tolist(), b.tolist(), strict=True):
            product = number(x, signed=signed) * number(y, signed=signed) >> 64
            by_constant = divided(x, constant, 64, signed=signed)[0]
            by_another = divided(x, y, 64, signed=signed)
            wanted.append((*divided(x, divisor, 64, signed=signed), product & full, by_constant, *by_another))
        assert out.tolist() == [list(each) for each in wanted], divisor


def number(n: int, *, signed: bool, bits: int = 64) -> int:
    """The number that some bits are."""
    return n - (1 << bits) if signed and n >> (bits - 1) else n


def divided(x: int, d: int, bits: int, *, signed: bool) -> tuple[int, int]:
    """The quotient and the rest as bits."""
    full = (1 << bits) - 1
    x, d = (number(n, signed=signed, bits=bits) for n in (x, d))
    if not d:
        return full, full
    quotient = abs(x) // abs(d) * (1 if (x < 0) == (d < 0) else -1)
    return quotient & full, (x - quotient * d) & full
