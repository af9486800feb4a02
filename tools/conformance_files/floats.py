"""Cases of f32, f64 and f16, once rounded (PTX 9.7.3, 9.7.4)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial

import exact
import test_float_exact
from exact import F16, F32, F64, NAN, Format
from one_instruction import Case

from conformance_files.operands import PAIR, RECORDED, Unsaid
from conformance_files.silicon import recorded

Reference = Callable[..., "int | str"]


def flush(x: int, format: Format) -> int:
    """A subnormal becomes zero of its sign."""
    return x & format.sign if x & format.infinity == 0 else x


def modified(function: Reference, format: Format, *, ftz: bool, sat: bool) -> Callable[..., int]:
    """The function with `.ftz` and `.sat`, and its NaN."""

    def apply(*row: int) -> int:
        r = function(*(flush(x, format) if ftz else x for x in row))
        if sat:
            return 0 if r == NAN or exact.negative(int(r), format) else min(int(r), format.bias << format.fraction)
        if r == NAN:
            if format is F64:
                raise Unsaid
            return format.sign - 1
        return flush(int(r), format) if ftz else int(r)

    def apply_ftz(*row: int) -> int:
        r = apply(*row)
        return flush(r, format) if ftz else r

    return apply_ftz


def rcp(a: int, format: Format, mode: str) -> int | str:
    """The reciprocal."""
    return exact.div(format.bias << format.fraction, a, format, mode)


ARITHMETIC: dict[str, tuple[int, Reference]] = {
    "add": (2, exact.add), "sub": (2, exact.sub), "mul": (2, exact.mul), "fma": (3, exact.fma), "mad": (3, exact.fma),
    "div": (2, exact.div), "rcp": (1, rcp), "sqrt": (1, exact.sqrt),
}  # fmt: skip


def float_cases() -> Iterator[Case]:
    """Every rounding with every modifier."""
    for (op, (arity, function)), mode in itertools.product(ARITHMETIC.items(), exact.MODES):
        for ftz, sat in itertools.product(("", ".ftz"), ("", ".sat")):
            if not sat or op in ("add", "sub", "mul", "fma", "mad"):
                one = modified(partial(function, format=F32, mode=mode), F32, ftz=bool(ftz), sat=bool(sat))
                yield Case(f"{op}.{mode}{ftz}{sat}.f32", "f32", " ".join(["f32"] * arity), one)
        one = modified(partial(function, format=F64, mode=mode), F64, ftz=False, sat=False)
        yield Case(f"{op}.{mode}.f64", "f64", " ".join(["f64"] * arity), one)
    yield Case("rcp.rn.ftz.f64", "f64", "f64", modified(partial(rcp, format=F64, mode="rn"), F64, ftz=False, sat=False))
    yield Case("rcp.rz.ftz.f64", "f64", "f64", modified(partial(rcp, format=F64, mode="rz"), F64, ftz=False, sat=False))
    yield Case("rcp.rm.ftz.f64", "f64", "f64", modified(partial(rcp, format=F64, mode="rm"), F64, ftz=False, sat=False))
    yield Case("rcp.rp.ftz.f64", "f64", "f64", modified(partial(rcp, format=F64, mode="rp"), F64, ftz=False, sat=False))


def extreme(a: int, b: int, format: Format, choose: Callable[..., int]) -> int | str:
    """PTX 9.7.3.11: a number beats NaN; +0 is greater than -0."""
    numbers = [x for x in (a, b) if not exact.is_nan(x, format)]
    return choose(numbers, key=lambda x: -x if x & format.sign else x + 2 * format.sign) if numbers else NAN


def sign(a: int, format: Format, op: str) -> int:
    """The sign changed: abs and neg; what they make of NaN the manual leaves open."""
    if exact.is_nan(a, format):
        raise Unsaid
    return a ^ format.sign if op == "neg" else a & format.sign - 1


def sign_cases() -> Iterator[Case]:
    """testp, copysign, abs, neg, min, max."""
    for type, format in (("f32", F32), ("f64", F64)):
        for property, holds in test_float_exact.PROPERTIES.items():
            yield Case(f"testp.{property}.{type}", "pred", type, lambda a, holds=holds, f=format: int(holds(a, f)))
        yield Case(f"copysign.{type}", type, f"{type} {type}", lambda a, b, f=format: a & f.sign | b & f.sign - 1)
        for ftz in ("", ".ftz") if type == "f32" else ("",):
            for op in ("abs", "neg"):
                one = modified(partial(sign, format=format, op=op), format, ftz=bool(ftz), sat=False)
                yield Case(f"{op}{ftz}.{type}", type, type, one)
            for op, choose in (("min", min), ("max", max)):
                one = modified(partial(extreme, format=format, choose=choose), format, ftz=bool(ftz), sat=False)
                yield Case(f"{op}{ftz}.{type}", type, f"{type} {type}", one)


def half_cases() -> Iterator[Case]:
    """One f16, and pairs."""
    for op, arity in (("add", 2), ("sub", 2), ("mul", 2), ("fma", 3)):
        for ftz, sat, rnd in itertools.product(("", ".ftz"), ("", ".sat"), ("", ".rn") if op != "fma" else (".rn",)):
            function = partial(ARITHMETIC[op][1], format=F16, mode="rn")
            one = modified(function, F16, ftz=bool(ftz), sat=bool(sat))
            yield Case(f"{op}{rnd}{ftz}{sat}.f16", "f16", " ".join(["f16"] * arity), one)
            yield Case(f"{op}{rnd}{ftz}{sat}.f16x2", "b32", " ".join([PAIR] * arity), paired(one))
    for op in ("abs", "neg"):
        for ftz in ("", ".ftz"):
            one = modified(partial(sign, format=F16, op=op), F16, ftz=bool(ftz), sat=False)
            yield Case(f"{op}{ftz}.f16", "f16", "f16", one)
            yield Case(f"{op}{ftz}.f16x2", "b32", PAIR, paired(one))


def paired(one: Callable[..., int]) -> Callable[..., int]:
    """The function of each half."""
    return lambda *row: one(*(x >> 16 for x in row)) << 16 | one(*(x & 0xFFFF for x in row))


FUNCTIONS = ("rcp", "sqrt", "rsqrt", "lg2", "ex2", "sin", "cos")


def approximations() -> Iterator[Case]:
    """Inputs of the recorded data; with `.ftz` both sides are flushed."""
    for function, ftz in itertools.product(FUNCTIONS, ("", ".ftz")):

        def apply(x: int, function: str = function, ftz: str = ftz) -> int:
            x &= 0xFFFF_FFFF
            r = recorded(function)[flush(x, F32) if ftz else x]
            return flush(r, F32) if ftz else r

        yield Case(f"{function}.approx{ftz}.f32", "f32", RECORDED, apply)
