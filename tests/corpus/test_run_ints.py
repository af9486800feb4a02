"""The integer kernels of the corpus: arithmetic, dot products, SIMD in a word, 128 bits, bit fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from modules import any_size, cases, run, signed, unsigned

M32 = 0xFFFF_FFFF


def words(values: Sequence[int], dtype: type[np.generic]) -> np.ndarray:
    bits = np.dtype(dtype).itemsize * 8
    return np.array([unsigned(v, bits) for v in values], f"u{bits // 8}").view(dtype)


def compare(array: np.ndarray, expected: Sequence[int]) -> None:
    bits = array.dtype.itemsize * 8
    raw = array.view(f"u{bits // 8}")
    assert [hex(value) for value in raw.tolist()] == [hex(unsigned(value, bits)) for value in expected]


def truncated(a: int, b: int) -> tuple[int, int]:
    """C's quotient and remainder."""
    quotient = abs(a) // abs(b)
    quotient = -quotient if (a < 0) != (b < 0) else quotient
    return quotient, a - quotient * b


def reverse(value: int, bits: int) -> int:
    return int(f"{value:0{bits}b}"[::-1], 2)


def find_first_set(value: int) -> int:
    return (value & -value).bit_length()


def leading_zeros(value: int, bits: int) -> int:
    return bits - unsigned(value, bits).bit_length()


def funnel(low: int, high: int) -> int:
    return unsigned(high) << 32 | unsigned(low)


def byte_permute(a: int, b: int, selector: int) -> int:
    whole = funnel(a, b).to_bytes(8, "little")
    return int.from_bytes(bytes(whole[selector >> 4 * n & 7] for n in range(4)), "little")


# ── intops ──────────────────────────────────────────────────────────────────────────────


def intops(kernel, rng):
    """Every 32-bit and 64-bit integer intrinsic, one after the other, by one thread."""
    for _ in range(12):
        a, b = ([signed(v) for v in any_size(rng, 16, 32)], any_size(rng, 16, 32))
        c, d = ([signed(v, 64) for v in any_size(rng, 16, 64)], any_size(rng, 16, 64))
        a, c = ([v * int(rng.choice([-1, 1])) for v in values] for values in (a, c))
        a, b, c, d = ([v or 1 for v in values] for values in (a, b, c, d))  # they divide each other
        arrays = [words(a, np.int32), words(b, np.uint32), words(c, np.int64), words(d, np.uint64)]
        kernel.launch(1, 1, arrays)
        x, y = a[0], a[1]
        a[0] = signed(signed(x << 8) >> 8) * (signed(y << 8) >> 8)
        b[0] = (x & 0xFF_FFFF) * (y & 0xFF_FFFF) & M32
        a[1] = x * y >> 32
        c[0] = c[1] * c[2] >> 64
        d[0] = d[1] * d[2] >> 64
        a[2] = unsigned(x).bit_count() + d[0].bit_count()
        a[3] = leading_zeros(x, 32) + leading_zeros(c[0], 64)
        a[4] = find_first_set(unsigned(x)) + find_first_set(unsigned(c[0], 64))
        b[1] = reverse(b[0], 32)
        d[3] = reverse(d[0], 64)
        a[5] = byte_permute(x, y, 0x6543)
        low, high, by = b[3:6]
        both = funnel(low, high)
        left, right, clamped = both << (by & 31) >> 32, both >> (by & 31), both << min(by, 32) >> 32
        b[2] = unsigned(unsigned(left) + unsigned(right) + unsigned(clamped) + unsigned(both >> 7))
        a[6] = abs(x - y) + 3 + abs(unsigned(x) - unsigned(y)) + 4
        a[7] = x + y + (b[0] + b[1] >> 1)
        a[8] = sum(truncated(x, y))
        c[3] = truncated(c[4], c[5])[0] + truncated(c[6], c[7])[1]
        d[4] = d[5] // d[6] + d[7] % d[8]
        a[9] = abs(x) + min(x, y) + max(x, y)
        b[9] = b[8] // 7 + b[7] % 10
        c[9] = abs(signed(c[3], 64))
        a[10] = x >> min(unsigned(y), 31)
        b[10] = b[3] >> min(b[4], 32)
        c[11] = c[4] << min(a[3], 64)
        d[11] = d[3] * unsigned(d[4], 64) + d[5]
        c[12] = x * y + signed(c[3], 64)
        for array, expected in zip(arrays, (a, b, c, d), strict=True):
            compare(array, expected)


# ── dp ──────────────────────────────────────────────────────────────────────────────────


def parts(value: int, bits: int, sign: bool) -> list[int]:
    found = [value >> n & (1 << bits) - 1 for n in range(0, 32, bits)]
    return [signed(v, bits) for v in found] if sign else found


def dp4a(a: int, b: int, c: int, sign: bool) -> int:
    return c + sum(x * y for x, y in zip(parts(a, 8, sign), parts(b, 8, sign), strict=True))


def dp2a(a: int, b: int, c: int, sign: bool, half: int) -> int:
    """Two 16-bit numbers times the low or the high two bytes."""
    chosen = parts(b, 8, sign)[2 * half : 2 * half + 2]
    return c + sum(x * y for x, y in zip(parts(a, 16, sign), chosen, strict=True))


def dp(kernel, rng):
    """`__dp4a` and `__dp2a_lo/_hi`, signed and unsigned."""
    for _ in range(20):
        a, b = any_size(rng, 8, 32), any_size(rng, 8, 32)
        arrays = [words(a, np.int32), words(b, np.uint32)]
        kernel.launch(1, 1, arrays)
        a[0] = unsigned(dp4a(a[0], a[1], a[2], sign=True))
        b[0] = unsigned(dp4a(b[0], b[1], b[2], sign=False))
        a[3] = unsigned(dp2a(a[0], a[4], a[5], sign=True, half=0))
        a[4] = unsigned(dp2a(a[0], a[4], a[5], sign=True, half=1))
        b[5] = unsigned(dp2a(b[1], b[2], b[3], sign=False, half=0))
        compare(arrays[0], a)
        compare(arrays[1], b)


# ── simdv ───────────────────────────────────────────────────────────────────────────────


def each(bits: int, sign: bool, what: Callable[..., int], *values: int) -> int:
    """A function of every part of some words."""
    columns = zip(*(parts(v, bits, sign) for v in values), strict=True)
    return sum(unsigned(what(*column), bits) << n * bits for n, column in enumerate(columns))


def clamp(value: int, low: int, high: int) -> int:
    return max(low, min(high, value))


SIMD = (
    lambda x, y, _: each(8, False, lambda p, q: p + q, x, y),  # __vadd4
    lambda x, y, _: each(8, False, lambda p, q: abs(p - q), x, y),  # __vabsdiffu4
    lambda x, y, _: each(16, False, lambda p: -p, x),  # __vneg2
    lambda x, y, _: each(8, False, lambda p, q: -(p == q), x, y),  # __vcmpeq4
    lambda x, y, _: each(16, False, lambda p, q: p - q, x, y),  # __vsub2
    lambda x, y, _: each(8, False, min, x, y),  # __vminu4
    lambda x, y, _: each(8, False, lambda p, q: p + q + 1 >> 1, x, y),  # __vavgu4
    lambda x, y, _: each(8, False, lambda p, q: p + q >> 1, x, y),  # __vhaddu4
    lambda x, y, _: max(min(signed(x), signed(y)), 0),  # __vimin_s32_relu
    lambda x, y, _: each(16, True, max, x, y),  # __vmaxs2
    lambda x, y, _: each(16, True, lambda p, q: -(p > q), x, y),  # __vcmpgts2
    lambda x, y, _: sum(abs(p - q) for p, q in zip(parts(x, 8, False), parts(y, 8, False), strict=True)),  # __vsadu4
    lambda x, y, _: each(8, True, abs, x),  # __vabs4
    lambda x, y, _: each(8, True, lambda p, q: clamp(p + q, -128, 127), x, y),  # __vaddss4
    lambda x, y, _: each(8, False, lambda p, q: int(p < q), x, y),  # __vsetltu4
    lambda x, y, a: max(signed(x), signed(y), signed(a[3])),  # __vimax3_s32
    lambda x, y, _: each(16, False, lambda p, q: min(p + q, 65535), x, y),  # __vaddus2
    # __viaddmax_s16x2_relu
    lambda x, y, a: each(16, True, lambda p, q, r: max(signed(p + q, 16), r, 0), x, y, a[4]),
)
DPX = {8, 15, 17}
"""Those that CUDA 11.8 does not have, or that its source leaves out."""


def simdv(kernel, rng):
    """The exclusive or of the SIMD intrinsics of two words."""
    has_dpx = "max.s32" in kernel.module.programs[0].source.text.split("simdv(")[1]
    for _ in range(40):
        a = any_size(rng, 5, 32)
        array = words(a, np.uint32)
        kernel.launch(1, 1, [array])
        expected = 0
        for n, what in enumerate(SIMD):
            if has_dpx or n not in DPX:
                expected ^= unsigned(what(a[0], a[1], a))
        compare(array, [expected, *a[1:]])


# ── i128, bitf ──────────────────────────────────────────────────────────────────────────


def i128(kernel, rng):
    """Multiply, add, divide and shift 128-bit integers; a thread's number is the count of the shift, here 0."""

    def of(value: int) -> list[int]:
        return [value & (1 << 64) - 1, value >> 64 & (1 << 64) - 1]

    for _ in range(8):
        a, b = (
            [x << 64 >> int(rng.integers(0, 65)) | y for x, y in zip(*(any_size(rng, 8, 64) for _ in "xy"), strict=True)]
            for _ in "ab"
        )
        arrays = [np.array([of(v) for v in values], np.uint64) for values in (a, b)]
        kernel.launch(1, 1, arrays)
        a[0] = a[0] * a[1] + a[2]
        b[0] = b[0] // b[1]
        b[3] = b[0]
        a[5] = signed(a[1], 128) >> 3
        for array, expected in zip(arrays, (a, b), strict=True):
            assert array.tolist() == [of(v) for v in expected]


def bit_field(value: int, position: int, length: int, bits: int, sign: bool) -> int:
    """`bfe` (PTX 9.7.1.19): what is past the top is the sign."""
    position, length = position & 255, length & 255
    value = signed(value, bits) if sign else unsigned(value, bits)
    if not length:
        return 0
    found = value >> min(position, bits)
    return signed(found, length) if sign and position + length <= bits else found if sign else unsigned(found, length)


def insert(field: int, into: int, position: int, length: int) -> int:
    """`bfi` (PTX 9.7.1.20)."""
    position, length = position & 255, length & 255
    mask = unsigned((1 << length) - 1 << position)
    return unsigned(field << position) & mask | into & ~mask & M32


def nth_set(mask: int, base: int, offset: int) -> int:
    """`fns` (PTX 9.7.1.18)."""
    if not offset:
        return base if mask >> base & 1 else M32
    places = [n for n in range(32) if mask >> n & 1 and (n >= base if offset > 0 else n <= base)]
    ordered = places if offset > 0 else places[::-1]
    return ordered[abs(offset) - 1] if abs(offset) <= len(ordered) else M32


def leading_bit(value: int, bits: int) -> int:
    """`bfind` of a signed number: the highest bit that is not the sign."""
    value = signed(value, bits)
    found = (value if value >= 0 else ~value).bit_length()
    return found - 1 if found else M32


def bitf(kernel, rng):
    """The instructions that CUDA reaches by inline PTX only."""
    for _ in range(20):
        a, b, c = any_size(rng, 20, 32), any_size(rng, 4, 32), any_size(rng, 2, 64)
        # base of fns; its offset, and the lengths and positions of the fields, are of every kind
        a[2], b[3] = int(rng.integers(0, 32)), unsigned(int(rng.integers(-5, 6)))
        c = [v * int(rng.choice([-1, 1])) & (1 << 64) - 1 for v in c]
        arrays = [words(a, np.uint32), words(c, np.uint64), words(b, np.uint32)]
        kernel.launch(1, 1, arrays)
        field, two, three = a[1], a[2], a[3]
        a[0] = bit_field(field, two, three, 32, sign=False)
        a[1] = one = insert(field, two, three, a[4])
        c[0] = bit_field(c[1], two, three, 64, sign=True)
        a[5] = one ^ two ^ three
        a[6] = 32 - one.bit_length() if one else M32
        a[7] = leading_bit(c[1], 64)
        a[8] = nth_set(one, two, signed(b[3]))
        a[9] = ((1 << min(two, 32)) - 1) << min(one, 32)
        b[0] = signed(b[1], two & 31) if two & 31 else 0
        a[10] = unsigned(funnel(one, two) >> 8 * (three & 3))
        a[11] = (one >> 16 * (three & 1) & 0xFFFF) * 0x10001
        twice = unsigned(one + two) + three + (one + two >> 32)  # add.cc, addc.cc
        a[12] = unsigned(twice) + (twice >> 32)  # addc t, 0
        a[13] = (one * two + 0 >> 32) + three + (unsigned(one * two) + three >> 32)
        a[14] = unsigned(one - two) - three - (one < two)
        b[3] = clamp(signed(b[1], 8) + signed(b[2] >> 16, 16), -(1 << 31), (1 << 31) - 1)
        a[15] = three + sum(p >= q for p, q in zip(parts(one, 8, False), parts(two, 8, False), strict=True))
        a[16] = one if np.array(three, np.uint32).view(np.float32) >= 0 else two
        a[17] = int(not one)
        a[18] = 1
        for array, expected in zip(arrays, (a, c, b), strict=True):
            compare(array, expected)


REFERENCES = {f.__name__: f for f in (intops, dp, simdv, i128, bitf)}
# their source calls a __dp4a that their headers do not define, so the text has a declaration without a body
LACKING = frozenset(f"nvrtc/ints_nvrtc11.8_sm{sm}.ptx dp" for sm in (70, 86))


@pytest.mark.parametrize(("name", "kernel", "engines"), cases(r"(nvcc|nvrtc)/ints_.*", REFERENCES, LACKING))
def test_ints(name, kernel, engines, rng):
    run(name, kernel, engines, REFERENCES, rng)
