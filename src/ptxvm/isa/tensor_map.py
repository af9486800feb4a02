"""The contents of a tensor map (PTX 5.5.8, 9.7.9.28).

The manual leaves its 128 bytes open.  Here each field has bytes of its own, so that `tensormap.replace` is one store; the
numbers of types and modes are those of `tensormap.replace` (table 33).
"""

from __future__ import annotations

from ptxvm.algebra.types import Type, b8, b16, b32, b64
from ptxvm.dataclass import dataclass

SIZE = 128
OUTSIDE_NAN = 0x7FF7
"""The out-of-bounds NaN of f16 and bf16; wider floats have it twice or four times (an H200; PTX 5.5.3.3 names no bits)."""

MARK = b"PTXVM-TM"
"""The first bytes of a tensor map; other memory is none."""


@dataclass(frozen=True, slots=True)
class Field:
    """Where a field lies: the offset of its first element, their type and how many there are."""

    offset: int
    type: Type
    count: int = 1

    def at(self, ordinal: int) -> int:
        """The offset of an element."""
        return self.offset + ordinal * self.type.bytes


FIELDS = {
    "mode": Field(8, b8),  # 0 tile, 1 im2col, 2 im2col::w, 3 im2col::w::128
    "rank": Field(9, b8),  # less one
    "elemtype": Field(10, b8),
    "interleave_layout": Field(11, b8),
    "swizzle_mode": Field(12, b8),
    "swizzle_atomicity": Field(13, b8),
    "fill_mode": Field(14, b8),
    "l2_promotion": Field(15, b8),
    "global_address": Field(16, b64),
    "global_dim": Field(24, b32, 5),  # 0 is 2 ** 32
    "channels_per_pixel": Field(44, b16),
    "pixels_per_column": Field(46, b16),
    "global_stride": Field(48, b64, 4),  # bytes, of all dimensions but the first
    "box_dim": Field(80, b16, 5),
    "element_stride": Field(90, b8, 5),
    "lower_corner": Field(96, b16, 3),  # signed; W first
    "upper_corner": Field(102, b16, 3),
}


@dataclass(frozen=True, slots=True)
class Element:
    """A type of elements: `count` of them are `packed` bytes in global memory, and `padded` ones in shared memory.

    `name` is that of their type in reductions and fills.
    """

    name: str
    packed: int
    padded: int
    count: int = 1


ELEMENTS = (
    Element("u8", 1, 1), Element("u16", 2, 2), Element("u32", 4, 4), Element("s32", 4, 4), Element("u64", 8, 8),
    Element("s64", 8, 8), Element("f16", 2, 2), Element("f32", 4, 4), Element("f32.ftz", 4, 4), Element("f64", 8, 8),
    Element("bf16", 2, 2), Element("tf32", 4, 4), Element("tf32.ftz", 4, 4), Element("b4x16", 1, 1, 2),
    Element("b4x16_p64", 8, 16, 16), Element("b6x16_p32", 12, 16, 16),
)  # fmt: skip
"""The types by their numbers (table 33)."""
