"""Integer instructions and extended precision against their definitions (PTX 9.7.1, 9.7.2)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from one_instruction import Case, batched, bits, clamp, differences_of, part, read

U, S = ("u16", "u32", "u64"), ("s16", "s32", "s64")
DOUBLE = {"u16": "u32", "u32": "u64", "s16": "s32", "s32": "s64"}


def truncated(a: int, b: int) -> tuple[int, int]:
    """Quotient toward zero and remainder (PTX 9.7.1.8, 9.7.1.9)."""
    q = abs(a) // abs(b)
    q = q if (a < 0) == (b < 0) else -q
    return q, a - q * b


def div(a: int, b: int) -> int:
    """Division by zero is up to the machine (PTX 9.7.1.8): all ones here."""
    return truncated(a, b)[0] if b else -1


def rem(a: int, b: int) -> int:
    """Modulo zero it is up to the machine (PTX 9.7.1.9): all ones on an H200."""
    return truncated(a, b)[1] if b else -1


def low24(x: int, type: str) -> int:
    """The lowest 24 bits, as a number (PTX 9.7.1.5)."""
    x &= 0xFFFFFF
    return x - (1 << 24) if type == "s32" and x >> 23 else x


def mad24_hi_sat(a: int, b: int, c: int) -> int:
    """PTX 9.7.1.6: the upper half is a signed word before the addition."""
    return clamp(read(low24(a, "s32") * low24(b, "s32") >> 16 & 0xFFFFFFFF, "s32") + c, "s32")


def bfind(a: int, type: str, shiftamt: bool) -> int:
    """PTX 9.7.1.16."""
    msb = bits(type) - 1
    if type[0] == "s" and a < 0:
        a = ~a
    d = -1
    for i in range(msb, -1, -1):
        if a >> i & 1:
            d = i
            break
    return msb - d if shiftamt and d != -1 else d


def fns(mask: int, base: int, offset: int) -> int:
    """PTX 9.7.1.17; a base beyond 31 is left open there, and finds nothing here."""
    d = -1
    if offset == 0:
        return base if base < 32 and mask >> base & 1 else d
    position, count, step = base, abs(offset) - 1, 1 if offset > 0 else -1
    while 0 <= position < 32:
        if mask >> position & 1:
            if count == 0:
                return position
            count -= 1
        position += step
    return d


def bfe(a: int, b: int, c: int, type: str) -> int:
    """PTX 9.7.1.19."""
    msb = bits(type) - 1
    pos, length = b & 0xFF, c & 0xFF
    sbit = 0 if type[0] == "u" or length == 0 else a >> min(pos + length - 1, msb) & 1
    d = 0
    for i in range(msb + 1):
        d |= (a >> pos + i & 1 if i < length and pos + i <= msb else sbit) << i
    return d


def bfi(a: int, b: int, c: int, d: int, type: str) -> int:
    """PTX 9.7.1.20."""
    msb = bits(type) - 1
    pos, length = c & 0xFF, d & 0xFF
    f = b
    for i in range(length):
        if pos + i > msb:
            break
        f = f & ~(1 << pos + i) | (a >> i & 1) << pos + i
    return f


def szext(a: int, b: int, mode: str, type: str) -> int:
    """PTX 9.7.1.21."""
    b1 = b & 0x1F
    too_large = b >= 32 and mode == "clamp"
    mask = 0 if too_large else -1 << b1
    sign_pos = b1 - 1 & 0x1F
    sign_bit = not (b1 == 0 or too_large or type != "s32") and a >> sign_pos & 1
    return a & ~mask | (mask if sign_bit else 0)


def bmsk(a: int, b: int, mode: str) -> int:
    """PTX 9.7.1.22."""
    a1, b1 = a & 0x1F, b & 0x1F
    mask0, total = -1 << a1, a1 + b1
    mask1 = -1 << total
    position_overflow = width_overflow = False
    if mode == "clamp":
        if a >= 32:
            position_overflow, mask0 = True, 0
        if b >= 32:
            width_overflow = True
    if total >= 32 or position_overflow or width_overflow:
        mask1 = 0
    elif b1 == 0:
        mask1 = -1
    return mask0 & ~mask1


def dp(a: int, b: int, c: int, atype: str, btype: str, sizes: tuple[int, int], first: int, count: int) -> int:
    """PTX 9.7.1.23 and 9.7.1.24."""
    return c + sum(part(a, sizes[0], n, atype) * part(b, sizes[1], first + n, btype) for n in range(count))


def packed(function: Callable[[int, int], int], size: int, sign: str) -> Callable[[int, int], int]:
    """The function of each element of two words."""

    def apply(a: int, b: int) -> int:
        word = 0
        for n in range(32 // size):
            word |= (function(part(a, size, n, sign), part(b, size, n, sign)) & (1 << size) - 1) << size * n
        return word

    return apply


def carryless(a: int, b: int) -> int:
    """The product without carries."""
    product = 0
    for n in range(64):
        product ^= (a << n) * (b >> n & 1)
    return product


def integer_cases() -> Iterator[Case]:
    """PTX 9.7.1."""
    for t in U + S:
        n = bits(t)
        yield Case(f"add.{t}", t, f"{t} {t}", lambda a, b: a + b)
        yield Case(f"sub.{t}", t, f"{t} {t}", lambda a, b: a - b)
        yield Case(f"mul.lo.{t}", t, f"{t} {t}", lambda a, b: a * b)
        yield Case(f"mul.hi.{t}", t, f"{t} {t}", lambda a, b, n=n: a * b >> n)
        yield Case(f"mad.lo.{t}", t, f"{t} {t} {t}", lambda a, b, c: a * b + c)
        yield Case(f"mad.hi.{t}", t, f"{t} {t} {t}", lambda a, b, c, n=n: (a * b >> n) + c)
        yield Case(f"sad.{t}", t, f"{t} {t} {t}", lambda a, b, c: c + abs(a - b))
        yield Case(f"div.{t}", t, f"{t} {t}", div)
        yield Case(f"rem.{t}", t, f"{t} {t}", rem)
        yield Case(f"min.{t}", t, f"{t} {t}", min)
        yield Case(f"max.{t}", t, f"{t} {t}", max)
    for t, w in DOUBLE.items():
        yield Case(f"mul.wide.{t}", w, f"{t} {t}", lambda a, b: a * b)
        yield Case(f"mad.wide.{t}", w, f"{t} {t} {w}", lambda a, b, c: a * b + c)
    for t in S:
        yield Case(f"abs.{t}", t, t, abs)
        yield Case(f"neg.{t}", t, t, lambda a: -a)
    yield Case("add.sat.s32", "s32", "s32 s32", lambda a, b: clamp(a + b, "s32"))
    yield Case("sub.sat.s32", "s32", "s32 s32", lambda a, b: clamp(a - b, "s32"))
    yield Case("mad.hi.sat.s32", "s32", "s32 s32 s32", lambda a, b, c: clamp((a * b >> 32) + c, "s32"))
    yield Case("min.relu.s32", "s32", "s32 s32", lambda a, b: max(min(a, b), 0))
    yield Case("max.relu.s32", "s32", "s32 s32", lambda a, b: max(a, b, 0))
    for t in ("u32", "s32"):
        yield Case(f"mul24.lo.{t}", t, f"{t} {t}", lambda a, b, t=t: low24(a, t) * low24(b, t))
        yield Case(f"mul24.hi.{t}", t, f"{t} {t}", lambda a, b, t=t: low24(a, t) * low24(b, t) >> 16)
        yield Case(f"mad24.lo.{t}", t, f"{t} {t} {t}", lambda a, b, c, t=t: low24(a, t) * low24(b, t) + c)
        yield Case(f"mad24.hi.{t}", t, f"{t} {t} {t}", lambda a, b, c, t=t: (low24(a, t) * low24(b, t) >> 16) + c)
    yield Case("mad24.hi.sat.s32", "s32", "s32 s32 s32", mad24_hi_sat)
    for half, at in (("lo", 0), ("hi", 64)):
        yield Case(f"clmad.{half}.u64", "u64", "u64 u64 u64", lambda a, b, c, at=at: carryless(a, b) >> at ^ c)


def packed_cases() -> Iterator[Case]:
    """PTX 9.7.1: elements of 16 and 8 bits."""
    words = {"u16x2": ("u", 16), "s16x2": ("s", 16), "u8x4": ("u", 8), "s8x4": ("s", 8)}
    for t, (sign, size) in words.items():
        one = f"{sign}{size}"
        functions: dict[str, Callable[[int, int], int]] = {
            "add": lambda x, y: x + y, "add.sat": lambda x, y, one=one: clamp(x + y, one), "min": min, "max": max,
        }  # fmt: skip
        if size == 8:
            functions |= {"sub": lambda x, y: x - y, "sub.sat": lambda x, y, one=one: clamp(x - y, one)}
        if sign == "s":
            functions |= {"min.relu": lambda x, y: max(min(x, y), 0), "max.relu": lambda x, y: max(x, y, 0)}
        for name, function in functions.items():
            yield Case(f"{name}.{t}", "b32", "b32 b32", packed(function, size, sign))
    yield Case("neg.s8x4", "b32", "b32", lambda a: packed(lambda x, _: -x, 8, "s")(a, 0))


def bit_cases() -> Iterator[Case]:
    """PTX 9.7.1.14 to 9.7.1.24."""
    for t in ("b32", "b64"):
        n = bits(t)
        yield Case(f"popc.{t}", "u32", t, lambda a: a.bit_count())
        yield Case(f"clz.{t}", "u32", t, lambda a, n=n: n - a.bit_length())
        yield Case(f"brev.{t}", t, t, lambda a, n=n: int(f"{a:0{n}b}"[::-1], 2))
        yield Case(f"bfi.{t}", t, f"{t} {t} u32 u32", lambda a, b, c, d, t=t: bfi(a, b, c, d, t))
    for t in ("u32", "u64", "s32", "s64"):
        yield Case(f"bfind.{t}", "u32", t, lambda a, t=t: bfind(a, t, False))
        yield Case(f"bfind.shiftamt.{t}", "u32", t, lambda a, t=t: bfind(a, t, True))
        yield Case(f"bfe.{t}", t, f"{t} u32 u32", lambda a, b, c, t=t: bfe(a, b, c, t))
    yield Case("fns.b32", "b32", "b32 u32 s32", fns)
    for mode in ("clamp", "wrap"):
        for t in ("u32", "s32"):
            yield Case(f"szext.{mode}.{t}", t, f"{t} u32", lambda a, b, m=mode, t=t: szext(a, b, m, t))
        yield Case(f"bmsk.{mode}.b32", "b32", "u32 u32", lambda a, b, m=mode: bmsk(a, b, m))
    for p, q in itertools.product(("u32", "s32"), repeat=2):
        yield Case(f"dp4a.{p}.{q}", "b32", "b32 b32 b32", lambda a, b, c, p=p, q=q: dp(a, b, c, p, q, (8, 8), 0, 4))
        for mode, first in (("lo", 0), ("hi", 2)):
            yield Case(f"dp2a.{mode}.{p}.{q}", "b32", "b32 b32 b32",
                       lambda a, b, c, p=p, q=q, first=first: dp(a, b, c, p, q, (16, 8), first, 2))  # fmt: skip


OUT = "addc.u32 {e}, 0, 0;"  # the carry of CC.CF, as a number
BORROW = "subc.u32 {e}, 0, 0;"


def extended_cases() -> Iterator[Case]:
    """PTX 9.7.2: a carry that goes out, and one that goes through."""
    for n, sign in itertools.product((32, 64), "us"):
        yield from sums(n, f"{sign}{n}")
        for half in ("lo", "hi"):
            yield from products(n, f"{sign}{n}", half)
    yield Case("add.cc.u32 {d}, {a}, {b}; addc.u16 {e}, {c}, {f};", "u32 u16", "u32 u32 u16 u16",
               lambda a, b, c, f: (a + b, c + f + (a + b >> 32)))  # fmt: skip
    yield Case("add.cc.u32 {d}, {a}, {b}; addc.sat.s32 {e}, {c}, {f};", "u32 s32", "u32 u32 s32 s32",
               lambda a, b, c, f: (a + b, clamp(c + f + (a + b >> 32), "s32")))  # fmt: skip
    yield Case("sub.cc.u32 {d}, {a}, {b}; subc.sat.s32 {e}, {c}, {f};", "u32 s32", "u32 u32 s32 s32",
               lambda a, b, c, f: (a - b, clamp(c - f - (a < b), "s32")))  # fmt: skip


def sums(n: int, type: str) -> Iterator[Case]:
    """Chains of additions and subtractions; the words are unsigned whatever the type says."""
    out, two, four = f"u{n} u32", f"u{n} u{n}", f"u{n} u{n} u{n} u{n}"
    yield Case(f"add.cc.{type} {{d}}, {{a}}, {{b}}; {OUT}", out, two, lambda a, b: (a + b, a + b >> n))
    yield Case(f"sub.cc.{type} {{d}}, {{a}}, {{b}}; {BORROW}", out, two, lambda a, b: (a - b, -(a < b)))

    def through(a: int, b: int, c: int, f: int) -> tuple[int, int]:
        total = c + f + (a + b >> n)
        return total, total >> n

    def borrowed(a: int, b: int, c: int, f: int) -> tuple[int, int]:
        total = c - f - (a < b)
        return total, -(total < 0)

    yield Case(f"add.cc.u{n} {{d}}, {{a}}, {{b}}; addc.cc.{type} {{d}}, {{c}}, {{f}}; {OUT}", out, four, through)
    yield Case(f"sub.cc.u{n} {{d}}, {{a}}, {{b}}; subc.cc.{type} {{d}}, {{c}}, {{f}}; {BORROW}", out, four, borrowed)


def products(n: int, type: str, half: str) -> Iterator[Case]:
    """Chains of multiplications and additions."""

    def total(a: int, b: int, c: int, carry: int = 0) -> tuple[int, int]:
        product = read(a, type) * read(b, type) >> (n if half == "hi" else 0)
        t = (product & (1 << n) - 1) + c + carry
        return t, t >> n

    mad = f"mad.{half}.cc.{type} {{d}}, {{a}}, {{b}}, {{c}}; {OUT}"
    yield Case(mad, f"u{n} u32", f"u{n} u{n} u{n}", total)
    madc = f"add.cc.u{n} {{d}}, {{c}}, {{f}}; madc.{half}.cc.{type} {{d}}, {{a}}, {{b}}, {{c}}; {OUT}"
    yield Case(madc, f"u{n} u32", f"u{n} u{n} u{n} u{n}", lambda a, b, c, f: total(a, b, c, c + f >> n))


CASES = [*integer_cases(), *packed_cases(), *bit_cases(), *extended_cases()]


@pytest.mark.parametrize("some", batched(CASES), ids=lambda some: f"{some[0].text} ...")
def test_definition(some: Sequence[Case], rng: np.random.Generator) -> None:
    """Every lane has the bits that the manual's definition gives."""
    assert not differences_of(some, rng)
