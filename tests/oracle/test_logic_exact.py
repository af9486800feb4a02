"""Logic, shifts, permutations and integer comparisons against their definitions (PTX 9.7.6, 9.7.8, 9.7.9.7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from one_instruction import COMPARE, Case, batched, bits, differences_of

U, S = ("u16", "u32", "u64"), ("s16", "s32", "s64")


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
        yield Case(f"shr.{t}", t, f"{t} u32", lambda a, b: a >> min(b, 64))
    for table in (0x00, 0x01, 0x80, 0xFE, 0x1A, 0x96, 0xE8, 0xCA, 0x3F, 0xFF):
        yield from lop3_cases(table)
    for mode in ("clamp", "wrap"):

        def amount(c: int, mode: str = mode) -> int:
            return min(c, 32) if mode == "clamp" else c & 0x1F

        yield Case(f"shf.l.{mode}.b32", "b32", "b32 b32 u32", lambda a, b, c, n=amount: b << n(c) | a >> 32 - n(c))
        yield Case(f"shf.r.{mode}.b32", "b32", "b32 b32 u32", lambda a, b, c, n=amount: b << 32 - n(c) | a >> n(c))
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        yield Case(f"prmt.b32{mode}", "b32", "b32 b32 b32", lambda a, b, c, mode=mode: prmt(a, b, c, mode))


def lop3_cases(table: int) -> Iterator[Case]:
    """One truth table, alone and with a predicate."""
    words, sources = "b32 b32 b32", f"{{a}}, {{b}}, {{c}}, {table}"
    yield Case(f"lop3.b32 {{d}}, {sources};", "b32", words, lambda a, b, c: lop3(a, b, c, table))
    for op in ("or", "and"):

        def both(a: int, b: int, c: int, f: int, op: str = op) -> tuple[int, int]:
            d = lop3(a, b, c, table)
            return d, JOIN[op](int(d != 0), f)

        yield Case(f"lop3.{op}.b32 {{d}}|{{e}}, {sources}, {{f}};", "b32 pred", f"{words} pred", both)


def lop3(a: int, b: int, c: int, table: int) -> int:
    """PTX 9.7.8.6: bit n of the result is the entry that the bits n of the operands number."""
    return sum((table >> (4 * (a >> n & 1) + 2 * (b >> n & 1) + (c >> n & 1)) & 1) << n for n in range(32))


# The manual's tables of prmt: for c[1:0] = 0..3 the sources of d.b3 d.b2 d.b1 d.b0 (PTX 9.7.9.7).
PRMT = {
    ".f4e": ("3210", "4321", "5432", "6543"), ".b4e": ("5670", "6701", "7012", "0123"),
    ".rc8": ("0000", "1111", "2222", "3333"), ".ecl": ("3210", "3211", "3222", "3333"),
    ".ecr": ("0000", "1110", "2210", "3210"), ".rc16": ("1010", "3232", "1010", "3232"),
}  # fmt: skip


def prmt(a: int, b: int, c: int, mode: str) -> int:
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


UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
JOIN: dict[str, Callable[[int, int], int]] = {
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


CASES = [*logic_cases(), *compare_cases()]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("some", batched(CASES), ids=lambda some: f"{some[0].text} ...")
def test_definition(some: Sequence[Case], rng: np.random.Generator) -> None:
    """Every lane has the bits that the manual's definition gives."""
    assert not differences_of(some, rng)
