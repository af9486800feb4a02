"""Packing conversions, of integers to narrow ones (PTX 9.7.9.22)."""

from __future__ import annotations

from ptxvm.algebra.types import b32, u32
from ptxvm.isa.model import instruction


def packed(i, a, b):
    """The two, limited, side by side in the lowest bits."""
    bits, (least, greatest) = i.type.bits, i.type.range
    low, high = ((x.max(least).min(greatest).view(b32)) & (1 << bits) - 1 for x in (b, a))
    return low | high << bits


@instruction(
    """
    cvt.pack.sat.type.s32  d, a, b;
    .type = { .u16, .s16 };
    """,
    section="9.7.9.22",
    types="d: u32 wide plain, *: s32 wide plain",
    needs={"": "PTX 6.5, sm_72"},
    fixed=1,
)
def cvt_pack(i, a, b):
    """Limit two integers to 16 bits each and pack them; the first becomes the upper one."""
    return packed(i, a, b).view(u32)


@instruction(
    """
    cvt.pack.sat.type.s32.b32  d, a, b, c;
    .type = { .u2, .s2, .u4, .s4, .u8, .s8 };
    """,
    section="9.7.9.22",
    types="d: u32 wide plain, c: b32 wide plain, *: s32 wide plain",
    needs={"": "PTX 6.5, sm_72", ".u2 .s2 .u4 .s4": "sm_75"},
    fixed=1,
)
def cvt_pack_onto(i, a, b, c):
    """Limit two integers to few bits each and put them below the low bits of a third."""
    return (packed(i, a, b) | c << 2 * i.type.bits).view(u32)
