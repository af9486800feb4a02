"""Cases of comparisons, and of selections by them (PTX 9.7.6)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import test_compare_exact
import test_logic_exact
from one_instruction import COMPARE, Case

from conformance_files.operands import ONE, PAIR

DTYPES = {"u32": 0xFFFF_FFFF, "s32": 0xFFFF_FFFF, "f32": ONE["f32"]}


def integer_comparisons() -> Iterator[Case]:
    """Every operator with every type and combination; `slct` and `selp` of every type."""
    joins = itertools.cycle(test_logic_exact.JOIN.items())
    dtypes = itertools.cycle(DTYPES.items())
    for t in ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64"):
        for op in (*COMPARE, *test_logic_exact.UNSIGNED):
            if (t[0] == "b" and op not in ("eq", "ne")) or (t[0] != "u" and op in test_logic_exact.UNSIGNED):
                continue
            f = COMPARE[test_logic_exact.UNSIGNED.get(op, op)]
            (name, join), (dtype, true) = next(joins), next(dtypes)
            yield Case(f"setp.{op}.{name}.{t} {{d}}|{{e}}, {{a}}, {{b}}, {{c}};", "pred pred", f"{t} {t} pred",
                       lambda a, b, c, f=f, join=join: (join(int(f(a, b)), c), join(int(not f(a, b)), c)))  # fmt: skip
            yield Case(f"set.{op}.{name}.{dtype}.{t} {{d}}, {{a}}, {{b}}, !{{c}};", "b32", f"{t} {t} pred",
                       lambda a, b, c, f=f, join=join, true=true: true * join(int(f(a, b)), 1 - c))  # fmt: skip
            yield Case(f"set.{op}.{dtype}.{t} {{d}}, {{a}}, {{b}};", "b32", f"{t} {t}",
                       lambda a, b, f=f, true=true: true * f(a, b))  # fmt: skip
            if t[1:] != "8":
                yield Case(f"set.{op}.f16.{t} {{d}}, {{a}}, {{b}};", "b16", f"{t} {t}", lambda a, b, f=f: ONE["f16"] * f(a, b))
                yield Case(f"set.{op}.{name}.f16.{t} {{d}}, {{a}}, {{b}}, {{c}};", "b16", f"{t} {t} pred",
                           lambda a, b, c, f=f, join=join: ONE["f16"] * join(int(f(a, b)), c))  # fmt: skip
    for t in ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"):
        yield Case(f"selp.{t}", f"b{t[1:]}", f"b{t[1:]} b{t[1:]} pred", lambda a, b, c: a if c else b)
        yield Case(f"slct.{t}.s32", f"b{t[1:]}", f"b{t[1:]} b{t[1:]} s32", lambda a, b, c: a if c >= 0 else b)
        for ftz in ("", ".ftz"):
            yield Case(f"slct{ftz}.{t}.f32", f"b{t[1:]}", f"b{t[1:]} b{t[1:]} f32",
                       lambda a, b, c, ftz=ftz: a if test_compare_exact.number(c, "f32", ftz) >= 0 else b)  # fmt: skip


def float_comparisons() -> Iterator[Case]:
    """Every operator with a combination, for one number and for pairs; the definitions are `test_compare_exact`'s."""
    joins = itertools.cycle(test_logic_exact.JOIN.items())
    for op, type in itertools.product(test_compare_exact.OPERATORS, ("f16", "f32", "f64")):
        for ftz in ("", ".ftz") if type != "f64" else ("",):
            (name, join), f, three = next(joins), test_compare_exact.truth(op, type, ftz), f"{type} {type} pred"
            if type == "f16":
                yield Case(f"setp.{op}.{name}{ftz}.f16 {{d}}, {{a}}, {{b}}, {{c}};", "pred", three,
                           lambda a, b, c, f=f, join=join: join(int(f(a, b)), c))  # fmt: skip
                yield Case(f"setp.{op}{ftz}.f16 {{d}}, {{a}}, {{b}};", "pred", "f16 f16", lambda a, b, f=f: int(f(a, b)))
            else:
                yield Case(f"setp.{op}.{name}{ftz}.{type} {{d}}|{{e}}, {{a}}, {{b}}, {{c}};", "pred pred", three,
                           lambda a, b, c, f=f, join=join: (join(int(f(a, b)), c), join(int(not f(a, b)), c)))  # fmt: skip
                yield Case(f"setp.{op}{ftz}.{type} {{d}}|{{e}}, {{a}}, {{b}};", "pred pred", f"{type} {type}",
                           lambda a, b, f=f: (int(f(a, b)), int(not f(a, b))))  # fmt: skip
                yield Case(f"set.{op}{ftz}.f32.{type} {{d}}, {{a}}, {{b}};", "b32", f"{type} {type}",
                           lambda a, b, f=f: ONE["f32"] * f(a, b))  # fmt: skip
            yield Case(f"set.{op}.{name}{ftz}.u32.{type} {{d}}, {{a}}, {{b}}, {{c}};", "b32", three,
                       lambda a, b, c, f=f, join=join: 0xFFFF_FFFF * join(int(f(a, b)), c))  # fmt: skip
            yield Case(f"set.{op}.{name}{ftz}.f16.{type} {{d}}, {{a}}, {{b}}, {{c}};", "b16", three,
                       lambda a, b, c, f=f, join=join: ONE["f16"] * join(int(f(a, b)), c))  # fmt: skip
    for op, ftz in itertools.product(test_compare_exact.OPERATORS, ("", ".ftz")):
        name, join = next(joins)
        yield from pair_comparisons(op, ftz, name, join)


def pair_comparisons(op: str, ftz: str, name: str, join: Callable[[int, int], int]) -> Iterator[Case]:
    """Pairs of f16, each compared alone."""
    f = test_compare_exact.truth(op, "f16", ftz)

    def both(a: int, b: int) -> tuple[int, int]:
        return int(f(a & 0xFFFF, b & 0xFFFF)), int(f(a >> 16, b >> 16))

    yield Case(f"setp.{op}{ftz}.f16x2 {{d}}|{{e}}, {{a}}, {{b}};", "pred pred", f"{PAIR} {PAIR}", both)
    yield Case(f"setp.{op}.{name}{ftz}.f16x2 {{d}}|{{e}}, {{a}}, {{b}}, {{c}};", "pred pred", f"{PAIR} {PAIR} pred",
               lambda a, b, c: tuple(join(t, c) for t in both(a, b)))  # fmt: skip
    yield Case(f"set.{op}{ftz}.f16x2.f16x2 {{d}}, {{a}}, {{b}};", "b32", f"{PAIR} {PAIR}",
               lambda a, b: sum(ONE["f16"] * t << 16 * n for n, t in enumerate(both(a, b))))  # fmt: skip
    yield Case(f"set.{op}.{name}{ftz}.f16x2.f16x2 {{d}}, {{a}}, {{b}}, {{c}};", "b32", f"{PAIR} {PAIR} pred",
               lambda a, b, c: sum(ONE["f16"] * join(t, c) << 16 * n for n, t in enumerate(both(a, b))))  # fmt: skip
