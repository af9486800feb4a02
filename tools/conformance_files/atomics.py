"""Cases of atomic operations (PTX 9.7.13.5, 9.7.13.7)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial

import exact
from exact import F16, F32, F64, NAN, Format
from one_instruction import Case, bits

from conformance_files.floats import flush, paired
from conformance_files.operands import ADDEND, PAIR, Unsaid


def atomic_cases() -> Iterator[Case]:
    """Orders, scopes and types: what was there, and what is there then."""
    operations: dict[str, Callable[[int, int], int]] = {
        "add.u32": lambda a, b: a + b, "add.s32": lambda a, b: a + b, "add.u64": lambda a, b: a + b,
        "and.b64": lambda a, b: a & b,
        "or.b64": lambda a, b: a | b, "xor.b64": lambda a, b: a ^ b, "exch.b64": lambda _, b: b, "min.s64": min, "max.s64": max,
        "min.u64": min, "max.u64": max, "min.s32": min, "max.u32": max, "inc.u32": lambda a, b: 0 if a >= b else a + 1,
        "dec.u32": lambda a, b: b if a == 0 or a > b else a - 1, "exch.b32": lambda _, b: b,
        "add.noftz.f16": partial(sum_of_numbers, format=F16), "add.noftz.f16x2": paired(partial(sum_of_numbers, format=F16)),
        "add.f64": partial(sum_of_numbers, format=F64),
    }  # fmt: skip
    orders = itertools.cycle(("", ".acq_rel", ".acquire", ".release", ".relaxed"))
    scopes = itertools.cycle((".cta", ".gpu", ".sys"))
    for (name, function), (space, where) in itertools.product(operations.items(), (("global", "cell"), ("shared", "scratch"))):
        type = PAIR if name.endswith("x2") else name.split(".")[-1]
        held, order, scope = f"b{bits(type)}", next(orders), next(scopes)
        put, get = f"st.{space}.{held} [{where}], {{a}};", f"ld.{space}.{held} {{e}}, [{where}];"
        yield Case(f"{put} atom{order}{scope}.{space}.{name} {{d}}, [{where}], {{b}}; {get}", f"{held} {held}",
                   f"{type} {type}",
                   lambda a, b, f=function: (a, f(a, b)))  # fmt: skip
        if "exch" not in name:
            order = ".relaxed" if order else ""
            yield Case(f"{put} red{order}{scope}.{space}.{name} [{where}], {{b}}; {get.replace('{e}', '{d}')}", held,
                       f"{type} {type}", function)  # fmt: skip
    for space, where in (("global", "cell"), ("shared", "scratch")):  # f32 is flushed, but not in shared memory
        yield Case(f"st.{space}.b32 [{where}], {{a}}; atom.{space}.add.f32 {{d}}, [{where}], {{b}}; "
                   f"ld.{space}.b32 {{e}}, [{where}];",
                   "b32 b32", f"{ADDEND} {ADDEND}",
                   lambda a, b, ftz=space == "global": (a, sum_of_f32(a, b, ftz=ftz)))  # fmt: skip
    for type, order, scope in (("b32", ".acq_rel", ".cta"), ("b64", ".acquire", ".gpu"), ("b32", ".relaxed", ".sys"),
                               ("b64", ".release", ".sys")):  # fmt: skip
        for space, where in (("global", "cell"), ("shared", "scratch")):
            text = (f"st.{space}.{type} [{where}], {{a}}; "
                    f"atom{order}{scope}.{space}.cas.{type} {{d}}, [{where}], {{b}}, {{c}}; "
                    f"ld.{space}.{type} {{e}}, [{where}];")  # fmt: skip
            yield Case(text, f"{type} {type}", f"{type} {type} {type}", lambda a, b, c: (a, c if a == b else a))


def sum_of_numbers(a: int, b: int, format: Format) -> int:
    """The sum in memory; which NaN it is the manual leaves open."""
    r = exact.add(a, b, format, "rn")
    if r == NAN:
        raise Unsaid
    return int(r)


def sum_of_f32(a: int, b: int, *, ftz: bool) -> int:
    """The sum, with subnormal operands and results as zeros or as they are."""
    a, b = a & 0xFFFF_FFFF, b & 0xFFFF_FFFF
    if ftz:
        a, b = flush(a, F32), flush(b, F32)
    r = sum_of_numbers(a, b, F32)
    return flush(r, F32) if ftz else r
