"""Comparisons and selections of floating-point numbers against their definitions (PTX 9.3.1.2, 9.7.6, 9.7.7)."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from one_instruction import COMPARE, EXPONENT, Case, batched, bits, differences_of

OPERATORS = (*COMPARE, *(f"{op}u" for op in COMPARE), "num", "nan")
ONE = {"f16": 0x3C00, "bf16": 0x3F80, "f32": 0x3F800000}


def number(pattern: int, type: str, ftz: str = "") -> float:
    """What the bits stand for; `.ftz` takes subnormals for zeros."""
    fraction = bits(type) - 1 - EXPONENT[type]
    if ftz and not pattern >> fraction & (1 << EXPONENT[type]) - 1:
        return 0.0
    if type == "bf16":
        return float(struct.unpack("<f", struct.pack("<I", pattern << 16))[0])
    word, float_ = {"f16": "He", "f32": "If", "f64": "Qd"}[type]
    return float(struct.unpack(f"<{float_}", struct.pack(f"<{word}", pattern))[0])


def truth(op: str, type: str, ftz: str = "") -> Callable[[int, int], bool]:
    """The comparison by the manual's tables 23 to 25."""

    def compare(a: int, b: int) -> bool:
        x, y = number(a, type, ftz), number(b, type, ftz)
        unordered = math.isnan(x) or math.isnan(y)
        if op in ("num", "nan"):
            return unordered == (op == "nan")
        return op.endswith("u") if unordered else COMPARE[op.removesuffix("u")](x, y)

    return compare


def low(word: int) -> int:
    """The lower half."""
    return word & 0xFFFF


def cases() -> Iterator[Case]:
    """Every operator; where there is a choice of results, each once."""
    for op in OPERATORS:
        for type in EXPONENT:
            for ftz in ("", ".ftz") if type in ("f16", "f32") else ("",):
                yield from one_number(op, type, ftz)
        for type, half in (("f16x2", "f16"), ("bf16x2", "bf16")):
            yield from pairs(op, type, half)
    for ftz in ("", ".ftz"):
        yield Case(f"slct{ftz}.b32.f32", "b32", "b32 b32 f32", lambda a, b, c, ftz=ftz: a if number(c, "f32", ftz) >= 0 else b)
    yield Case("slct.f64.f32", "f64", "f64 f64 f32", lambda a, b, c: a if number(c, "f32") >= 0 else b)
    yield Case("selp.f32", "f32", "f32 f32 pred", lambda a, b, c: a if c else b)
    yield Case("selp.f64", "f64", "f64 f64 pred", lambda a, b, c: a if c else b)


def one_number(op: str, type: str, ftz: str) -> Iterator[Case]:
    """`setp` and `set` of one format."""
    f, two = truth(op, type, ftz), f"{type} {type}"
    if type in ("f32", "f64"):
        yield Case(f"setp.{op}{ftz}.{type} {{d}}|{{e}}, {{a}}, {{b}};", "pred pred", two,
                   lambda a, b: (int(f(a, b)), int(not f(a, b))))  # fmt: skip
        yield Case(f"set.{op}.xor{ftz}.f32.{type} {{d}}, {{a}}, {{b}}, {{c}};", "f32", f"{two} pred",
                   lambda a, b, c: ONE["f32"] * (f(a, b) ^ c))  # fmt: skip
        yield Case(f"set.{op}{ftz}.s32.{type}", "s32", two, lambda a, b: -f(a, b))
    else:
        yield Case(f"setp.{op}.or{ftz}.{type} {{d}}, {{a}}, {{b}}, !{{c}};", "pred", f"{two} pred",
                   lambda a, b, c: int(f(a, b)) | 1 - c)  # fmt: skip
        yield Case(f"set.{op}{ftz}.u16.{type}", "u16", two, lambda a, b: -f(a, b))
        yield Case(f"set.{op}{ftz}.u32.{type}", "u32", two, lambda a, b: -f(a, b))
        yield Case(f"set.{op}{ftz}.{type}.{type}", type, two, lambda a, b: ONE[type] * f(a, b))
        if not ftz:
            yield Case(f"set.{op}.{type}.f64", type, "f64 f64", lambda a, b, f=truth(op, "f64"): ONE[type] * f(a, b))  # noqa: B008


def pairs(op: str, type: str, half: str) -> Iterator[Case]:
    """Packed halves: each alone."""
    f = truth(op, half)

    def both(a: int, b: int) -> tuple[bool, bool]:
        return f(low(a), low(b)), f(a >> 16, b >> 16)

    yield Case(f"setp.{op}.{type} {{d}}|{{e}}, {{a}}, {{b}};", "pred pred", "b32 b32", lambda a, b: tuple(map(int, both(a, b))))
    yield Case(
        f"set.{op}.u32.{type}",
        "u32",
        "b32 b32",
        lambda a, b: sum(0xFFFF * t << 16 * n for n, t in enumerate(both(a, b))),
    )
    yield Case(f"set.{op}.{type}.{type}", "b32", "b32 b32",
               lambda a, b: sum(ONE[half] * t << 16 * n for n, t in enumerate(both(a, b))))  # fmt: skip


CASES = list(cases())


@pytest.mark.sampled(4)
@pytest.mark.parametrize("some", batched(CASES), ids=lambda some: f"{some[0].text} ...")
def test_definition(some: Sequence[Case], rng: np.random.Generator) -> None:
    """Every lane has the bits that the manual's definition gives."""
    assert not differences_of(some, rng)
