"""Cases of conversions of bf16, tf32 and the formats of eight bits and fewer (PTX 9.7.9.21)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import exact
import numpy as np
import test_convert_exact as small
from exact import BF16, F32
from one_instruction import Case, read

from conformance_files.operands import FORMATS, SMALL


def small_conversions() -> Iterator[Case]:
    """bf16, tf32 and the formats of eight bits and fewer; f32 drawn in and about their ranges."""
    yield from pairs_of_halves()
    yield from random_conversions()
    yield from tf32_conversions()
    yield from byte_conversions()
    yield from scale_conversions()
    yield from fixed_conversions()


def random_conversions() -> Iterator[Case]:
    """To pairs of halves and to four small numbers, rounded by random bits; the definition is `test_convert_exact`'s."""
    three = f"{SMALL} {SMALL} u32"
    for half, relu, finite in itertools.product(("f16", "bf16"), ("", ".relu"), ("", ".satfinite")):

        def one(x: int, r: int, half: str = half, relu: str = relu, finite: str = finite) -> int:
            bits = r << {"f16": 3, "bf16": 0}[half] & 0xFFFF
            return small.at_random(x, half, bits, relu=bool(relu), finite=bool(finite))

        yield Case(f"cvt.rs{relu}{finite}.{half}x2.f32", "b32", three,
                   lambda a, b, r, f=one: f(a, r >> 16) << 16 | f(b, r & 0xFFFF))  # fmt: skip
    for name, relu in itertools.product(small.SMALL, ("", ".relu")):

        def four(a: int, b: int, r: int, name: str = name, relu: str = relu) -> int:
            high, low = r >> 16, r & 0xFFFF
            bits = (high, high, low, low)
            if name == "e2m1":
                bits = (high & 0xFF00, low & 0xFF00, high << 8 & 0xFF00, low << 8 & 0xFF00)
            size = 4 if name == "e2m1" else 8
            codes = [small.at_random(x, name, n, relu=bool(relu)) for x, n in zip((a, b, b, a), bits, strict=True)]
            return sum(code << size * n for n, code in enumerate(reversed(codes)))

        yield Case(f"cvt.rs{relu}.satfinite.{name}x4.f32 {{d}}, {{{{{{a}}, {{b}}, {{b}}, {{a}}}}}}, {{c}};",
                   "b16" if name == "e2m1" else "b32", three, four)  # fmt: skip


def pairs_of_halves() -> Iterator[Case]:
    """Two f32 to f16x2 and bf16x2."""
    for half, mode, relu, finite in itertools.product(("f16", "bf16"), ("rn", "rz"), ("", ".relu"), ("", ".satfinite")):

        def one(x: int, half: str = half, mode: str = mode, relu: str = relu, finite: str = finite) -> int:
            return small.limited(x, FORMATS[half], mode, relu=bool(relu), finite=bool(finite))

        yield Case(f"cvt.{mode}{relu}{finite}.{half}x2.f32", "b32", f"{SMALL} {SMALL}", lambda a, b, f=one: f(a) << 16 | f(b))


def tf32_conversions() -> Iterator[Case]:
    """An f32 with ten bits of fraction."""
    for mode, relu in itertools.product(("rn", "rz", "rna"), ("", ".relu")):
        if not (relu and mode == "rna"):

            def tf32(x: int, mode: str = mode, relu: str = relu) -> int:
                if exact.is_nan(x, F32):
                    return 0x7FFF_FFFF
                return 0 if relu and x >> 31 else small.tf32(x, mode)

            yield Case(f"cvt.{mode}{relu}.tf32.f32", "b32", SMALL, tf32)
            if not relu:
                yield Case(f"cvt.{mode}.satfinite.tf32.f32", "b32", SMALL,
                           lambda x, f=tf32: f(x) - 0x2000 if f(x) & 0x7FFF_FFFF == F32.infinity else f(x))  # fmt: skip


def byte_conversions() -> Iterator[Case]:
    """Pairs of eight, six and four bits."""
    for name, relu in itertools.product(small.SMALL, ("", ".relu")):
        size, held = (4, "b8") if name == "e2m1" else (8, "b16")

        def code(x: int, name: str = name, relu: str = relu) -> int:
            x = 0 if relu and x >> 31 and not exact.is_nan(x, F32) else x
            return int(small.codes(np.array([x], np.uint32), name)[0])

        yield Case(f"cvt.rn.satfinite{relu}.{name}x2.f32", held, f"{SMALL} {SMALL}",
                   lambda a, b, f=code, size=size: f(a) << size | f(b))  # fmt: skip

        def wide(c: int, name: str = name, relu: str = relu) -> int:
            number = np.array([c & (1 << small.WIDTH[name]) - 1], np.uint8).view(small.SMALL[name][0]).astype(np.float16)[0]
            if np.isnan(number):
                return 0x7FFF
            return 0 if relu and np.signbit(number) else int(number.view(np.uint16))

        yield Case(f"cvt.rn{relu}.f16x2.{name}x2", "b32", held,
                   lambda a, f=wide, size=size: f(a >> size) << 16 | f(a & (1 << size) - 1))  # fmt: skip


def scale_conversions() -> Iterator[Case]:
    """Powers of two."""
    for mode, finite in itertools.product(("rz", "rp"), ("", ".satfinite")):

        def scale(x: int, mode: str = mode, finite: str = finite) -> int:
            if exact.is_nan(x, F32):
                return 0xFF
            size = x & 0x7FFF_FFFF
            if size == F32.infinity:
                return 0xFE if finite else 0xFF
            if not size:
                return 0
            number = exact.value(size, F32)
            power = exact.floor_log2(number)
            power += mode == "rp" and number != Fraction(2) ** power
            return min(max(power + 127, 0), 0xFE if finite else 0xFF)

        yield Case(f"cvt.{mode}{finite}.ue8m0x2.f32", "b16", f"{SMALL} {SMALL}", lambda a, b, f=scale: f(a) << 8 | f(b))

    def factor(c: int) -> int:
        return 0x7FFF if c == 0xFF else 0x40 if c == 0 else c << 7  # a bf16

    yield Case("cvt.rn.bf16x2.ue8m0x2", "b32", "b16", lambda a: factor(a >> 8) << 16 | factor(a & 0xFF))


def fixed_conversions() -> Iterator[Case]:
    """Two bits before the point and six after it."""
    for relu in ("", ".relu"):

        def fixed(x: int, relu: str = relu) -> int:
            if exact.is_nan(x, F32):
                return 0x7F
            y = int(exact.to_integer(small_times_64(x), F32, "rni", -128, 127))
            return (max(y, 0) if relu else y) & 0xFF

        yield Case(f"cvt.rn.satfinite{relu}.s2f6x2.f32", "b16", f"{SMALL} {SMALL}", lambda a, b, f=fixed: f(a) << 8 | f(b))

        def unfixed(c: int, relu: str = relu) -> int:
            number = Fraction(read(c, "s8"), 64)
            return exact.round_fraction(max(number, Fraction(0)) if relu else number, BF16, "rn")

        yield Case(f"cvt.rn{relu}.bf16x2.s2f6x2", "b32", "b16", lambda a, f=unfixed: f(a >> 8) << 16 | f(a & 0xFF))


def small_times_64(x: int) -> int:
    """64 times an f32."""
    return int(exact.mul(x, 0x4280_0000, F32, "rn"))
