"""Cases of conversions between integers and floats (PTX 9.7.9.21)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial

import exact
from exact import F16, F32, F64, NAN, Format
from one_instruction import Case, read

from conformance_files.floats import flush, modified

INTEGERS = [f"{kind}{size}" for kind in "us" for size in (8, 16, 32, 64)]


def register(type: str) -> str:
    """The register that a type sits in: bytes are held in 16 bits."""
    return f"{type[0]}16" if type in ("u8", "s8") else type


def range_of(type: str) -> tuple[int, int]:
    """The least and the greatest integer of the type."""
    n = int(type[1:])
    return (-(1 << n - 1), (1 << n - 1) - 1) if type[0] == "s" else (0, (1 << n) - 1)


def taken(x: int, type: str) -> int:
    """The integer that the low bits stand for."""
    return read(x & (1 << int(type[1:])) - 1, type)


def integer_conversions() -> Iterator[Case]:
    """Cut off or extended as the source is signed, limited with .sat."""
    for target, source in itertools.product(INTEGERS, repeat=2):
        (least, most), (low, high) = range_of(target), range_of(source)
        yield Case(f"cvt.{target}.{source}", register(target), register(source),
                   lambda a, s=source, t=target: taken(taken(a, s), t))  # fmt: skip
        if low < least or high > most:
            yield Case(f"cvt.sat.{target}.{source}", register(target), register(source),
                       lambda a, s=source, least=least, most=most: min(max(taken(a, s), least), most))  # fmt: skip


def float_conversions() -> Iterator[Case]:
    """Between floats, from integers, to integers, and to integral floats."""
    floats = {"f16": F16, "f32": F32, "f64": F64}
    for (t, target), (s, source) in itertools.product(floats.items(), repeat=2):
        for mode, ftz, sat in itertools.product(exact.MODES, ("", ".ftz"), ("", ".sat")):
            if target.bits < source.bits and not (ftz and "f32" not in (t, s)):
                one = converted(source, target, mode, ftz=bool(ftz), sat=bool(sat))
                yield Case(f"cvt.{mode}{ftz}{sat}.{t}.{s}", t, s, one)
        for ftz, sat in itertools.product(("", ".ftz"), ("", ".sat")):
            if target.bits > source.bits and not (ftz and "f32" not in (t, s)):
                yield Case(f"cvt{ftz}{sat}.{t}.{s}", t, s, converted(source, target, "rn", ftz=bool(ftz), sat=bool(sat)))
    for (t, target), s, mode in itertools.product(floats.items(), INTEGERS, exact.MODES):
        yield Case(f"cvt.{mode}.{t}.{s}", t, register(s),
                   lambda a, s=s, f=target, mode=mode: exact.round_fraction(Fraction(taken(a, s)), f, mode))  # fmt: skip
    yield from roundings(floats)


def roundings(floats: dict[str, Format]) -> Iterator[Case]:
    """To integers, and to integral values."""
    for (s, source), mode in itertools.product(floats.items(), exact.INTEGRAL):
        for ftz in ("", ".ftz") if s == "f32" else ("",):
            for t in INTEGERS:
                yield Case(f"cvt.{mode}{ftz}.{t}.{s}", register(t), s, to_integer(source, s, t, mode, ftz=bool(ftz)))
            for sat in ("", ".sat"):
                yield Case(f"cvt.{mode}{ftz}{sat}.{s}.{s}", s, s,
                           modified(partial(integral, format=source, mode=mode), source, ftz=bool(ftz), sat=bool(sat))
                           )  # fmt: skip


def converted(source: Format, target: Format, mode: str, *, ftz: bool, sat: bool) -> Callable[[int], int]:
    """One float to another; `.ftz` is for the side that is f32."""

    def apply(a: int) -> int:
        r = exact.convert(flush(a, F32) if ftz and source is F32 else a, source, target, mode)
        return modified(lambda: r, target, ftz=ftz and target is F32, sat=sat)()

    return apply


def to_integer(source: Format, s: str, t: str, mode: str, *, ftz: bool) -> Callable[[int], int]:
    """A float to an integer; NaN is 0, or the sign bit where one of the two has 64 bits (PTX 9.7.9.21)."""
    least, most = range_of(t)
    nan = taken(1 << int(t[1:]) - 1, t) if s == "f64" or t.endswith("64") else 0

    def apply(a: int) -> int:
        r = exact.to_integer(flush(a, source) if ftz else a, source, mode, least, most)
        return nan if r == NAN else int(r)

    return apply


def integral(a: int, format: Format, mode: str) -> int | str:
    """Rounded to an integral value."""
    if exact.is_nan(a, format) or exact.is_infinite(a, format):
        return NAN if exact.is_nan(a, format) else a
    whole = Fraction(exact.round_integral(exact.value(a, format), mode))
    return exact.round_fraction(whole, format, "rn", minus=exact.negative(a, format))
