"""The scalar and packed types of PTX (PTX 5.2), as the algebra and the ISA know them."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar


class Type:
    """One fundamental, alternate or packed type; there is a single object for each name.

    `kind` is `u`, `s`, `b`, `f` (IEEE and alternate floats alike) or `p` (pred);
    `bits` the size of a value; `lanes` how many elements it packs.
    """

    named: ClassVar[dict[str, Type]] = {}

    def __init__(self, name: str, kind: str, bits: int, element: Type | None = None) -> None:
        self.name, self.kind, self.bits = name, kind, bits
        self.element = element or self
        self.lanes = bits // self.element.bits
        Type.named[name] = self

    @property
    def is_float(self) -> bool:
        """Is the value, or each packed element, a floating-point number?"""
        return self.kind == "f"

    @property
    def is_signed(self) -> bool:
        """Is it a signed integer (`.s8` to `.s64`)?"""
        return self.kind == "s"

    @property
    def is_int(self) -> bool:
        """Is it an integer or untyped bits?"""
        return self.kind in "usb"

    @property
    def is_packed(self) -> bool:
        """Does one value hold several elements (`.f16x2`)?"""
        return self.lanes > 1

    @cached_property
    def bytes(self) -> int:
        """Size in memory."""
        return max(1, self.bits // 8)

    @cached_property
    def range(self) -> tuple[int, int]:
        """Least and greatest value of an integer type; `.b` counts as unsigned."""
        if self.is_signed:
            return -(1 << self.bits - 1), (1 << self.bits - 1) - 1
        return 0, (1 << self.bits) - 1

    @cached_property
    def as_bits(self) -> Type:
        """The untyped type of the same size."""
        return self if self.kind == "p" else Type.named[f"b{self.bits}"]

    @cached_property
    def as_unsigned(self) -> Type:
        """The unsigned integer type of the same size."""
        return Type.named[f"u{self.bits}"]

    @cached_property
    def as_signed(self) -> Type:
        """The signed integer type of the same size."""
        return Type.named[f"s{self.bits}"]

    def __str__(self) -> str:
        return f".{self.name}"

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return named_type, (self.name,)


def named_type(name: str) -> Type:
    """The type called `name`, without its dot; KeyError where PTX has none of that name."""
    return Type.named[name]


pred = Type("pred", "p", 1)
b1 = Type("b1", "b", 1)
u4, s4, b4 = Type("u4", "u", 4), Type("s4", "s", 4), Type("b4", "b", 4)
u2, s2 = Type("u2", "u", 2), Type("s2", "s", 2)
u8, s8, b8 = Type("u8", "u", 8), Type("s8", "s", 8), Type("b8", "b", 8)
u16, s16, b16 = Type("u16", "u", 16), Type("s16", "s", 16), Type("b16", "b", 16)
u32, s32, b32 = Type("u32", "u", 32), Type("s32", "s", 32), Type("b32", "b", 32)
u64, s64, b64 = Type("u64", "u", 64), Type("s64", "s", 64), Type("b64", "b", 64)
u128, s128, b128 = Type("u128", "u", 128), Type("s128", "s", 128), Type("b128", "b", 128)
f16, f32, f64 = Type("f16", "f", 16), Type("f32", "f", 32), Type("f64", "f", 64)
bf16, tf32 = Type("bf16", "f", 16), Type("tf32", "f", 32)
f16x2, bf16x2 = Type("f16x2", "f", 32, f16), Type("bf16x2", "f", 32, bf16)
f32x2 = Type("f32x2", "f", 64, f32)
u16x2, s16x2 = Type("u16x2", "u", 32, u16), Type("s16x2", "s", 32, s16)
u8x4, s8x4 = Type("u8x4", "u", 32, u8), Type("s8x4", "s", 32, s8)
e4m3, e5m2, ue8m0 = Type("e4m3", "f", 8), Type("e5m2", "f", 8), Type("ue8m0", "f", 8)
ue4m3 = Type("ue4m3", "f", 8)
e4m3x2, e5m2x2 = Type("e4m3x2", "f", 16, e4m3), Type("e5m2x2", "f", 16, e5m2)
e4m3x4, e5m2x4 = Type("e4m3x4", "f", 32, e4m3), Type("e5m2x4", "f", 32, e5m2)
ue8m0x2 = Type("ue8m0x2", "f", 16, ue8m0)
b8x16, b6x16_p32, b4x16_p64 = Type("b8x16", "b", 128, b8), Type("b6x16_p32", "b", 128), Type("b4x16_p64", "b", 128)
e2m1, e2m3, e3m2 = Type("e2m1", "f", 4), Type("e2m3", "f", 6), Type("e3m2", "f", 6)
e2m1x2, e2m1x4 = Type("e2m1x2", "f", 8, e2m1), Type("e2m1x4", "f", 16, e2m1)
e2m3x2, e3m2x2 = Type("e2m3x2", "f", 16, b8), Type("e3m2x2", "f", 16, b8)  # six bits in a byte each
e2m3x4, e3m2x4 = Type("e2m3x4", "f", 32, b8), Type("e3m2x4", "f", 32, b8)
s2f6x2 = Type("s2f6x2", "b", 16, s8)  # fixed point: two bits and six after the point
