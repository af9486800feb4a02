"""Integer, logic, comparison and video instructions against their definitions, worked out in Python's integers.

Nothing here comes from the catalog: each reference is the manual's own definition (the section stands beside it), on
unbounded integers; what the destination cannot hold is cut off, as the manual says.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest

import ptxvm

LANES = 256
HEADER = ".version 9.4\n.target sm_107a\n.address_size 64\n"


@dataclass
class Case:
    """One instruction: its text with places for the operands, their types, and what it computes.

    A text without `;` is a mnemonic.  Results and operands have names d, e and a, b, c, f.
    """

    text: str
    results: str
    operands: str
    reference: Callable[..., object]

    @property
    def body(self) -> str:
        """The instructions."""
        if ";" in self.text:
            return self.text
        names = [f"{{{n}}}" for n in "de"[: len(self.results.split())] + "abcf"[: len(self.operands.split())]]
        return f"{self.text} {', '.join(names)};"


def bits(type: str) -> int:
    """The size of a type; a predicate travels as a byte."""
    return 8 if type == "pred" else int(type[1:])


def read(pattern: int, type: str) -> int:
    """What the bits mean as a number of the type."""
    n = bits(type)
    if type[0] == "s" and pattern >> n - 1 & 1:
        return pattern - (1 << n)
    return pattern


def kernel(case: Case) -> str:
    """One thread for each element: load the operands, run the instruction, store the results."""
    kinds = dict(zip("abcf", case.operands.split(), strict=False)) | dict(zip("de", case.results.split(), strict=False))
    loads, stores, where = [], [], {}
    registers = [".reg .b64 %p<8>, %t<8>;", ".reg .b32 %i;", ".reg .b16 %h<8>;", ".reg .pred %q<8>;"]
    for n, (name, type) in enumerate(kinds.items()):
        size = bits(type) // 8
        where[name] = f"%q{n}" if type == "pred" else f"%{name}"
        if type != "pred":
            registers.append(f".reg .b{8 * size} %{name};")
        loads.append(f"ld.param.u64 %p{n}, [{name}]; mad.wide.u32 %p{n}, %i, {size}, %p{n};")
        if name in "abcf":
            if type == "pred":
                loads.append(f"ld.global.u8 %h{n}, [%p{n}]; setp.ne.u16 %q{n}, %h{n}, 0;")
            else:
                loads.append(f"ld.global.b{8 * size} %{name}, [%p{n}];")
        elif type == "pred":
            stores.append(f"selp.u16 %h{n}, 1, 0, %q{n}; st.global.u8 [%p{n}], %h{n};")
        else:
            stores.append(f"st.global.b{8 * size} [%p{n}], %{name};")
    lines = [*registers, "mov.u32 %i, %tid.x;", *loads, case.body.format(**where), *stores, "ret;"]
    parameters = ", ".join(f".param .u64 {name}" for name in kinds)
    return f"{HEADER}.visible .entry k({parameters})\n{{\n" + "\n".join(lines) + "\n}\n"


def inputs(type: str, rng: np.random.Generator) -> list[int]:
    """Patterns that break things, small numbers (they are amounts and counts too), and random bits."""
    if type == "pred":
        return [int(x) for x in rng.integers(0, 2, LANES)]
    n = bits(type)
    top = (1 << n) - 1
    awkward = [0, 1, 2, 31, 32, 33, 63, 64, 255, 256, top, top - 1, top >> 1, (top >> 1) + 1, 0x80, 0x7F, 0x8000, 0x7FFF]
    kinds = rng.integers(0, 4, LANES)
    words = rng.integers(0, 1 << 63, LANES, dtype=np.uint64) * 2 + rng.integers(0, 2, LANES, dtype=np.uint64)
    made = []
    for kind, word in zip(kinds, words, strict=True):
        x = int(word)
        choices = (x, x, x % 70, awkward[x % len(awkward)])
        made.append(choices[kind] & top)
    return made


def run(case: Case, columns: list[list[int]]) -> list[np.ndarray]:
    """What the machine makes of the inputs."""
    held = [np.array(column, f"u{bits(type) // 8}") for type, column in zip(case.operands.split(), columns, strict=True)]
    outs = [np.zeros(LANES, f"u{bits(type) // 8}") for type in case.results.split()]
    module = ptxvm.load(kernel(case))
    module.kernel().launch(grid=1, block=LANES, args=[*held, *outs])
    return outs


# ── the definitions ─────────────────────────────────────────────────────────────────────

U, S = ("u16", "u32", "u64"), ("s16", "s32", "s64")
Int = int
DOUBLE = {"u16": "u32", "u32": "u64", "s16": "s32", "s32": "s64"}


def clamp(x: Int, type: str) -> Int:
    """Limited to the range of the type."""
    n = bits(type)
    return max(-(1 << n - 1), min(x, (1 << n - 1) - 1)) if type[0] == "s" else max(0, min(x, (1 << n) - 1))


def truncated(a: Int, b: Int) -> tuple[Int, Int]:
    """Quotient toward zero and remainder (PTX 9.7.1.8, 9.7.1.9)."""
    q = abs(a) // abs(b)
    q = q if (a < 0) == (b < 0) else -q
    return q, a - q * b


def div(a: Int, b: Int) -> Int:
    """Division by zero is up to the machine (PTX 9.7.1.8): all ones here."""
    return truncated(a, b)[0] if b else -1


def rem(a: Int, b: Int) -> Int:
    """Modulo zero: the dividend here."""
    return truncated(a, b)[1] if b else a


def low24(x: Int, type: str) -> Int:
    """The lowest 24 bits, as a number (PTX 9.7.1.5)."""
    x &= 0xFFFFFF
    return x - (1 << 24) if type == "s32" and x >> 23 else x


def bfind(a: Int, type: str, shiftamt: bool) -> Int:  # noqa: FBT001 - as the manual has it
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


def fns(mask: Int, base: Int, offset: Int) -> Int:
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


def bfe(a: Int, b: Int, c: Int, type: str) -> Int:
    """PTX 9.7.1.19."""
    msb = bits(type) - 1
    pos, length = b & 0xFF, c & 0xFF
    sbit = 0 if type[0] == "u" or length == 0 else a >> min(pos + length - 1, msb) & 1
    d = 0
    for i in range(msb + 1):
        d |= (a >> pos + i & 1 if i < length and pos + i <= msb else sbit) << i
    return d


def bfi(a: Int, b: Int, c: Int, d: Int, type: str) -> Int:
    """PTX 9.7.1.20."""
    msb = bits(type) - 1
    pos, length = c & 0xFF, d & 0xFF
    f = b
    for i in range(length):
        if pos + i > msb:
            break
        f = f & ~(1 << pos + i) | (a >> i & 1) << pos + i
    return f


def szext(a: Int, b: Int, mode: str, type: str) -> Int:
    """PTX 9.7.1.21."""
    b1 = b & 0x1F
    too_large = b >= 32 and mode == "clamp"
    mask = 0 if too_large else -1 << b1
    sign_pos = b1 - 1 & 0x1F
    sign_bit = not (b1 == 0 or too_large or type != "s32") and a >> sign_pos & 1
    return a & ~mask | (mask if sign_bit else 0)


def bmsk(a: Int, b: Int, mode: str) -> Int:
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


def part(word: Int, size: Int, at: Int, type: str) -> Int:
    """An element of a word, sign- or zero-extended as the type of the word says."""
    return read(word >> size * at & (1 << size) - 1, f"{type[0]}{size}")


def dp(a: Int, b: Int, c: Int, atype: str, btype: str, sizes: tuple[Int, Int], first: Int, count: Int) -> Int:
    """PTX 9.7.1.23 and 9.7.1.24."""
    return c + sum(part(a, sizes[0], n, atype) * part(b, sizes[1], first + n, btype) for n in range(count))


def packed(function: Callable[[Int, Int], Int], size: Int, sign: str) -> Callable[[Int, Int], Int]:
    """The function of each element of two words."""

    def apply(a: Int, b: Int) -> Int:
        word = 0
        for n in range(32 // size):
            word |= (function(part(a, size, n, sign), part(b, size, n, sign)) & (1 << size) - 1) << size * n
        return word

    return apply


def carryless(a: Int, b: Int) -> Int:
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
    yield Case("mad24.hi.sat.s32", "s32", "s32 s32 s32",
               lambda a, b, c: clamp(read((low24(a, "s32") * low24(b, "s32") >> 16) & 0xFFFFFFFF, "s32") + c, "s32"))  # fmt: skip
    for half, at in (("lo", 0), ("hi", 64)):
        yield Case(f"clmad.{half}.u64", "u64", "u64 u64 u64", lambda a, b, c, at=at: carryless(a, b) >> at ^ c)


def packed_cases() -> Iterator[Case]:
    """PTX 9.7.1: elements of 16 and 8 bits."""
    words = {"u16x2": ("u", 16), "s16x2": ("s", 16), "u8x4": ("u", 8), "s8x4": ("s", 8)}
    for t, (sign, size) in words.items():
        one = f"{sign}{size}"
        functions: dict[str, Callable[[Int, Int], Int]] = {
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
        yield Case(f"bfind.{t}", "u32", t, lambda a, t=t: bfind(a, t, False))  # noqa: FBT003
        yield Case(f"bfind.shiftamt.{t}", "u32", t, lambda a, t=t: bfind(a, t, True))  # noqa: FBT003
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


def extended_cases() -> Iterator[Case]:
    """PTX 9.7.2: chains over two words, with the carry that comes out."""
    for n in (32, 64):
        for sign in "us":
            t, w = f"{sign}{n}", 1 << n
            add = f"add.cc.{t} {{d}}, {{a}}, {{b}}; addc.u32 {{e}}, 0, 0;"
            yield Case(add, f"u{n} u32", f"u{n} u{n}", lambda a, b, n=n: (a + b, a + b >> n))
            sub = f"sub.cc.{t} {{d}}, {{a}}, {{b}}; subc.u32 {{e}}, 0, 0;"
            yield Case(sub, f"u{n} u32", f"u{n} u{n}", lambda a, b: (a - b, -(a < b)))
            add = f"add.cc.u{n} {{d}}, {{a}}, {{b}}; addc.cc.{t} {{d}}, {{c}}, {{f}}; addc.u32 {{e}}, 0, 0;"
            yield Case(add, f"u{n} u32", f"u{n} u{n} u{n} u{n}",
                       lambda a, b, c, f, n=n: (c + f + (a + b >> n), c + f + (a + b >> n) >> n))  # fmt: skip
            sub = f"sub.cc.u{n} {{d}}, {{a}}, {{b}}; subc.cc.{t} {{d}}, {{c}}, {{f}}; subc.u32 {{e}}, 0, 0;"
            yield Case(sub, f"u{n} u32", f"u{n} u{n} u{n} u{n}",
                       lambda a, b, c, f: (c - f - (a < b), -(c - f - (a < b) < 0)))  # fmt: skip
            for half in ("lo", "hi"):
                def product(a: Int, b: Int, n: Int = n, sign: str = sign, half: str = half) -> Int:
                    p = read(a, f"{sign}{n}") * read(b, f"{sign}{n}")
                    return (p >> n if half == "hi" else p) & (1 << n) - 1

                mad = f"mad.{half}.cc.{t} {{d}}, {{a}}, {{b}}, {{c}}; addc.u32 {{e}}, 0, 0;"
                yield Case(mad, f"u{n} u32", f"u{n} u{n} u{n}",
                           lambda a, b, c, p=product, n=n: (p(a, b) + c, p(a, b) + c >> n))  # fmt: skip
                mad = f"add.cc.u{n} {{d}}, {{c}}, {{f}}; madc.{half}.cc.{t} {{d}}, {{a}}, {{b}}, {{c}}; addc.u32 {{e}}, 0, 0;"
                yield Case(mad, f"u{n} u32", f"u{n} u{n} u{n} u{n}",
                           lambda a, b, c, f, p=product, n=n: (
                               p(a, b) + c + (c + f >> n), p(a, b) + c + (c + f >> n) >> n))  # fmt: skip
            assert w
    yield Case("add.cc.u32 {d}, {a}, {b}; addc.u16 {e}, {c}, {f};", "u32 u16", "u32 u32 u16 u16",
               lambda a, b, c, f: (a + b, c + f + (a + b >> 32)))  # fmt: skip
    yield Case("add.cc.u32 {d}, {a}, {b}; addc.sat.s32 {e}, {c}, {f};", "u32 s32", "u32 u32 s32 s32",
               lambda a, b, c, f: (a + b, clamp(c + f + (a + b >> 32), "s32")))  # fmt: skip
    yield Case("sub.cc.u32 {d}, {a}, {b}; subc.sat.s32 {e}, {c}, {f};", "u32 s32", "u32 u32 s32 s32",
               lambda a, b, c, f: (a - b, clamp(c - f - (a < b), "s32")))  # fmt: skip


def logic_cases() -> Iterator[Case]:
    """PTX 9.7.8 and 9.7.9.7."""
    for t in ("pred", "b16", "b32", "b64"):
        yield Case(f"and.{t}", t, f"{t} {t}", lambda a, b: a & b)
        yield Case(f"or.{t}", t, f"{t} {t}", lambda a, b: a | b)
        yield Case(f"xor.{t}", t, f"{t} {t}", lambda a, b: a ^ b)
        yield Case(f"not.{t}", t, t, (lambda a: 1 - a) if t == "pred" else (lambda a: ~a))
        if t != "pred":
            n = bits(t)
            yield Case(f"cnot.{t}", t, t, lambda a: int(a == 0))
            yield Case(f"shl.{t}", t, f"{t} u32", lambda a, b, n=n: a << min(b, n))
    yield Case("and.pred {d}, !{a}, {b};", "pred", "pred pred", lambda a, b: (1 - a) & b)
    yield Case("xor.pred {d}, {a}, !{b};", "pred", "pred pred", lambda a, b: a ^ (1 - b))
    for t in ("b16", "b32", "b64", *U, *S):
        yield Case(f"shr.{t}", t, f"{t} u32", lambda a, b, n=bits(t): a >> min(b, n))
    for table in (0x00, 0x01, 0x80, 0xFE, 0x1A, 0x96, 0xE8, 0xCA, 0x3F, 0xFF):
        yield Case(f"lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {table};", "b32", "b32 b32 b32",
                   lambda a, b, c, table=table: lop3(a, b, c, table))  # fmt: skip
        for op, join in (("or", lambda x, y: x | y), ("and", lambda x, y: x & y)):
            yield Case(f"lop3.{op}.b32 {{d}}|{{e}}, {{a}}, {{b}}, {{c}}, {table}, {{f}};", "b32 pred", "b32 b32 b32 pred",
                       lambda a, b, c, f, table=table, join=join: (
                           lop3(a, b, c, table), join(int(lop3(a, b, c, table) != 0), f)))  # fmt: skip
    for mode in ("clamp", "wrap"):
        def amount(c: Int, mode: str = mode) -> Int:
            return min(c, 32) if mode == "clamp" else c & 0x1F

        yield Case(f"shf.l.{mode}.b32", "b32", "b32 b32 u32", lambda a, b, c, n=amount: b << n(c) | a >> 32 - n(c))
        yield Case(f"shf.r.{mode}.b32", "b32", "b32 b32 u32", lambda a, b, c, n=amount: b << 32 - n(c) | a >> n(c))
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        yield Case(f"prmt.b32{mode}", "b32", "b32 b32 b32", lambda a, b, c, mode=mode: prmt(a, b, c, mode))


def lop3(a: Int, b: Int, c: Int, table: Int) -> Int:
    """PTX 9.7.8.6: bit n of the result is the entry that the bits n of the operands number."""
    return sum((table >> (4 * (a >> n & 1) + 2 * (b >> n & 1) + (c >> n & 1)) & 1) << n for n in range(32))


# The manual's tables of prmt: for c[1:0] = 0..3 the sources of d.b3 d.b2 d.b1 d.b0 (PTX 9.7.9.7).
PRMT = {
    ".f4e": ("3210", "4321", "5432", "6543"), ".b4e": ("5670", "6701", "7012", "0123"),
    ".rc8": ("0000", "1111", "2222", "3333"), ".ecl": ("3210", "3211", "3222", "3333"),
    ".ecr": ("0000", "1110", "2210", "3210"), ".rc16": ("1010", "3232", "1010", "3232"),
}  # fmt: skip


def prmt(a: Int, b: Int, c: Int, mode: str) -> Int:
    """PTX 9.7.9.7."""
    pool = (b << 32 | a).to_bytes(8, "little")
    if mode:
        return int.from_bytes(bytes(pool[int(n)] for n in reversed(PRMT[mode][c & 3])), "little")
    picked = []
    for n in range(4):
        control = c >> 4 * n & 0xF
        byte = pool[control & 7]
        picked.append((0xFF if byte & 0x80 else 0) if control & 8 else byte)
    return int.from_bytes(bytes(picked), "little")


COMPARE: dict[str, Callable[[Int, Int], bool]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
JOIN: dict[str, Callable[[Int, Int], Int]] = {
    "and": lambda t, c: t & c, "or": lambda t, c: t | c, "xor": lambda t, c: t ^ c,
}  # fmt: skip


def compare_cases() -> Iterator[Case]:
    """PTX 9.7.6, for integers."""
    for t in ("b16", "b32", "b64", *U, *S):
        for op in (*COMPARE, *UNSIGNED):
            if (t[0] == "b" and op not in ("eq", "ne")) or (t[0] != "u" and op in UNSIGNED):
                continue
            compare = COMPARE[UNSIGNED.get(op, op)]
            yield Case(f"set.{op}.u32.{t}", "u32", f"{t} {t}", lambda a, b, f=compare: -f(a, b))
            yield Case(f"setp.{op}.{t} {{d}}|{{e}}, {{a}}, {{b}};", "pred pred", f"{t} {t}",
                       lambda a, b, f=compare: (int(f(a, b)), int(not f(a, b))))  # fmt: skip
        for name, join in JOIN.items():
            yield Case(f"set.eq.{name}.f32.{t} {{d}}, {{a}}, {{b}}, !{{c}};", "b32", f"{t} {t} pred",
                       lambda a, b, c, join=join: 0x3F800000 * join(int(a == b), 1 - c))  # fmt: skip
            yield Case(f"setp.ne.{name}.{t} {{d}}|{{e}}, {{a}}, {{b}}, {{c}};", "pred pred", f"{t} {t} pred",
                       lambda a, b, c, join=join: (join(int(a != b), c), join(int(a == b), c)))  # fmt: skip
        yield Case(f"selp.{t}", t, f"{t} {t} pred", lambda a, b, c: a if c else b)
        yield Case(f"slct.{t}.s32", t, f"{t} {t} s32", lambda a, b, c: a if c >= 0 else b)


# ── video (PTX 9.7.18) ──────────────────────────────────────────────────────────────────

WORDS = ("u32", "s32")
PARTS = ("", "b0", "b1", "b2", "b3", "h0", "h1")
OPERATIONS: dict[str, Callable[[Int, Int], Int]] = {
    "vadd": lambda a, b: a + b, "vsub": lambda a, b: a - b, "vabsdiff": lambda a, b: abs(a - b), "vmin": min, "vmax": max,
}  # fmt: skip
SECOND: dict[str, Callable[[Int, Int], Int]] = {"add": lambda t, c: t + c, "min": min, "max": max}
SIZE = {"b": 8, "h": 16}


def dotted(selector: str) -> str:
    """`.b0`, or nothing."""
    return selector and f".{selector}"


def selected(word: Int, type: str, selector: str) -> Int:
    """partSelectSignExtend."""
    return part(word, SIZE[selector[0]], int(selector[1]), type) if selector else part(word, 32, 0, type)


def merge(t: Int, c: Int, selector: str) -> Int:
    """optMerge."""
    if not selector:
        return t
    size, at = SIZE[selector[0]], int(selector[1])
    mask = (1 << size) - 1
    return (t & mask) << size * at | c & ~(mask << size * at)


def video_cases(rng: np.random.Generator) -> Iterator[Case]:
    """PTX 9.7.18.1: a sample of the types, selectors, second operations and merges."""
    for name, operation in OPERATIONS.items():
        for dt, at, bt in itertools.product(WORDS, repeat=3):
            yield from scalar_video(name, operation, f"{dt}.{at}.{bt}", dt, at, bt, rng)
    for name, mode, dt, at in itertools.product(("vshl", "vshr"), ("clamp", "wrap"), WORDS, WORDS):
        def shift(a: Int, b: Int, name: str = name, mode: str = mode) -> Int:
            n = min(b, 32) if mode == "clamp" else b & 0x1F
            return a << n if name == "vshl" else a >> n

        yield from scalar_video(name, shift, f"{dt}.{at}.u32", dt, at, "u32", rng, f".{mode}")
    for at, bt, (op, compare) in itertools.product(WORDS, WORDS, COMPARE.items()):
        yield from scalar_video("vset", lambda a, b, f=compare: int(f(a, b)), f"{at}.{bt}.{op}", "u32", at, bt, rng, sats=("",))


def scalar_video(
    name: str, operation: Callable[[Int, Int], Int], types: str, dt: str, at: str, bt: str, rng: np.random.Generator,
    mode: str = "", sats: tuple[str, ...] = ("", ".sat"),
) -> Iterator[Case]:  # fmt: skip
    """One scalar instruction, plain, with a second operation, and merging."""
    for sat in sats:
        p, q, d = (PARTS[n] for n in (*rng.integers(0, 7, 2), rng.integers(1, 7)))

        def first(a: Int, b: Int, into: str, p: str = p, q: str = q, sat: str = sat) -> Int:
            t = operation(selected(a, at, p), selected(b, bt, q))
            return clamp(t, f"{dt[0]}{SIZE[into[0]] if into else 32}") if sat else t

        head, sources = f"{name}.{types}{sat}{mode}", f"{{a}}{dotted(p)}, {{b}}{dotted(q)}"
        yield Case(f"{head} {{d}}, {sources};", "b32", "b32 b32", lambda a, b, f=first: f(a, b, ""))
        yield Case(f"{head} {{d}}{dotted(d)}, {sources}, {{c}};", "b32", "b32 b32 b32",
                   lambda a, b, c, f=first, d=d: merge(f(a, b, d), c, d))  # fmt: skip
        for op, second in SECOND.items():
            if op != "add" and not sat and name in ("vadd", "vsub", "vabsdiff", "vshl"):
                continue  # the manual leaves open how an overflow compares
            yield Case(f"{head}.{op} {{d}}, {sources}, {{c}};", "b32", "b32 b32 b32",
                       lambda a, b, c, f=first, second=second: second(f(a, b, ""), part(c, 32, 0, dt)))  # fmt: skip


def vmad_cases(rng: np.random.Generator) -> Iterator[Case]:
    """PTX 9.7.18.1.3."""
    signs = [("", "", ""), ("-", "", ""), ("", "-", ""), ("-", "-", ""), ("", "", "-"), ("-", "-", "-")]
    for dt, at, bt in itertools.product(WORDS, repeat=3):
        for (na, nb, nc), sat, scale in itertools.product(signs, ("", ".sat"), ("", ".shr7", ".shr15")):
            p, q = (PARTS[n] for n in rng.integers(0, 7, 2))
            yield Case(
                f"vmad.{dt}.{at}.{bt}{sat}{scale} {{d}}, {na}{{a}}{dotted(p)}, {nb}{{b}}{dotted(q)}, {nc}{{c}};",
                "b32", "b32 b32 b32",
                lambda a, b, c, at=at, bt=bt, p=p, q=q, na=na, nb=nb, nc=nc, sat=sat, scale=scale: vmad(
                    selected(a, at, p), selected(b, bt, q), c, at, bt, na != nb, nc, False, sat, scale),
            )  # fmt: skip
        yield Case(f"vmad.{dt}.{at}.{bt}.po.sat.shr7 {{d}}, {{a}}, {{b}}.h1, {{c}};", "b32", "b32 b32 b32",
                   lambda a, b, c, at=at, bt=bt: vmad(
                       selected(a, at, ""), selected(b, bt, "h1"), c, at, bt, False, "", True, ".sat", ".shr7"))  # fmt: skip


def vmad(ta: Int, tb: Int, c: Int, at: str, bt: str, minus: bool, nc: str, po: bool, sat: str, scale: str) -> Int:  # noqa: FBT001
    """The manual's semantics: negation is inversion and one more."""
    signed = at[0] == "s" or bt[0] == "s" or minus or bool(nc)
    tmp, lsb = ta * tb, 0
    if po:
        lsb = 1
    elif minus:
        tmp, lsb = ~tmp, 1
    elif nc:
        c, lsb = ~c & 0xFFFFFFFF, 1
    result = tmp + part(c, 32, 0, "s32" if signed else "u32") + lsb >> int(scale[4:] or 0)
    return clamp(result, "s32" if signed else "u32") if sat else result


def average(a: Int, b: Int) -> Int:
    """vavrg2 and vavrg4."""
    return a + b + 1 >> 1 if a + b >= 0 else a + b >> 1


MASKS = {2: ("", "h0", "h1", "h10"), 4: ("", "b0", "b1", "b10", "b2", "b20", "b21", "b310", "b32", "b3210")}


def simd_cases(rng: np.random.Generator) -> Iterator[Case]:
    """PTX 9.7.18.2."""
    for count in (2, 4):
        for name, operation in {**OPERATIONS, "vavrg": average}.items():
            for dt, at, bt in itertools.product(WORDS, repeat=3):
                for tail in ("", ".sat", ".add"):
                    yield simd(f"{name}{count}.{dt}.{at}.{bt}{tail}", operation, count, dt, at, bt, tail, rng)
        for at, bt, (op, compare) in itertools.product(WORDS, WORDS, COMPARE.items()):
            for tail in ("", ".add"):
                head = f"vset{count}.{at}.{bt}.{op}{tail}"
                yield simd(head, lambda a, b, f=compare: int(f(a, b)), count, "u32", at, bt, tail, rng)


def simd(
    head: str, operation: Callable[[Int, Int], Int], count: Int, dt: str, at: str, bt: str, tail: str, rng: np.random.Generator
) -> Case:
    """One SIMD instruction with selectors and a mask drawn by chance."""
    size, letter = 32 // count, "h" if count == 2 else "b"
    picks = [letter + "".join(str(n) for n in rng.integers(0, 2 * count, count)) if rng.random() < 0.7 else "" for _ in "ab"]
    mask = MASKS[count][rng.integers(0, len(MASKS[count]))]
    usual = ("h10", "h32") if count == 2 else ("b3210", "b7654")

    def reference(a: Int, b: Int, c: Int) -> Int:
        pool = b << 32 | a
        va, vb = (
            [part(pool, size, int(n), type) for n in reversed((pick or default)[1:])]
            for pick, default, type in zip(picks, usual, (at, bt), strict=True)
        )
        t = [operation(x, y) for x, y in zip(va, vb, strict=True)]
        if tail == ".sat":
            t = [clamp(x, f"{dt[0]}{size}") for x in t]
        chosen = {int(n) for n in (mask[1:] or "3210"[-count:])}
        if tail == ".add":
            return c + sum(t[n] for n in chosen)
        low = (1 << size) - 1
        return sum((t[n] & low if n in chosen else c >> size * n & low) << size * n for n in range(count))

    text = f"{head} {{d}}{dotted(mask)}, {{a}}{dotted(picks[0])}, {{b}}{dotted(picks[1])}, {{c}};"
    return Case(text, "b32", "b32 b32 b32", reference)


# ── the comparison ──────────────────────────────────────────────────────────────────────

FIXED = [*integer_cases(), *packed_cases(), *bit_cases(), *extended_cases(), *logic_cases(), *compare_cases()]
DRAWN = {"video": video_cases, "vmad": vmad_cases, "simd": simd_cases}


def differences(case: Case, rng: np.random.Generator) -> str:
    """The first lane where the machine and the definition differ, or nothing."""
    columns = [inputs(type, rng) for type in case.operands.split()]
    if len(columns) > 1 and case.operands.split()[0] == case.operands.split()[1]:
        columns[1][: LANES // 16] = columns[0][: LANES // 16]  # equal operands happen, and matter
    got = run(case, columns)
    types = case.operands.split()
    for lane in range(LANES):
        operands = [read(column[lane], type) for column, type in zip(columns, types, strict=True)]
        wanted = case.reference(*operands)
        for value, want, type in zip(got, wanted if isinstance(wanted, tuple) else (wanted,), case.results.split(), strict=True):
            want &= (1 << bits(type)) - 1
            if int(value[lane]) != want:
                return f"{case.body} {[hex(c[lane]) for c in columns]}: {int(value[lane]):#x}, but by definition {want:#x}"
    return ""


@pytest.mark.parametrize("case", FIXED, ids=lambda case: case.text)
def test_definition(case: Case, rng: np.random.Generator) -> None:
    """Every lane has the bits that the manual's definition gives."""
    assert not differences(case, rng)


@pytest.mark.parametrize("family", DRAWN)
def test_video_definition(family: str, rng: np.random.Generator) -> None:
    """The same for video instructions, with selectors drawn by chance."""
    wrong = [said for case in DRAWN[family](rng) if (said := differences(case, rng))]
    assert not wrong, "\n".join(wrong[:10])
