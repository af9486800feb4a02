"""Every operation with every rounding, `.ftz` and `.sat` against exact rationals; what has 16 bits, with every input."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import exact
import numpy as np
import pytest
from exact import BF16, F16, F32, F64, INTEGRAL, MODES, NAN, Format
from machine import run

FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
HELD = {"f16": "b16", "bf16": "b16"}
EVERY = np.arange(1 << 16, dtype=np.uint16)


def one(format: Format) -> int:
    """The bits of 1.0."""
    return format.bias << format.fraction


def flush(x: int | str, format: Format) -> int | str:
    """A subnormal number becomes zero of its sign."""
    return x & format.sign if not isinstance(x, str) and x & format.infinity == 0 else x


def limited(x: int | str, format: Format) -> int | str:
    """Within [+0, 1]; NaN is +0 (PTX 9.7.3.3)."""
    return 0 if isinstance(x, str) or exact.negative(x, format) else min(x, one(format))


def canonical(format: Format) -> int | str:
    """The NaN that results have: all ones but the sign, of f64 any (PTX 9.7.3)."""
    return NAN if format is F64 else format.sign - 1


def modified(function: Callable[..., int | str], format: Format, *, ftz: bool, sat: bool) -> Callable[..., int | str]:
    """The function as its modifiers have it."""

    def apply(*row: int) -> int | str:
        result = function(*((flush(x, format) if ftz else x) for x in row))
        result = flush(result, format) if ftz else result
        result = limited(result, format) if sat else result
        return canonical(format) if result == NAN else result

    return apply


def check(got: np.ndarray, want: list[int | str], format: Format, columns: list[np.ndarray]) -> None:
    """Bit for bit, and any NaN for one that the manual leaves open."""
    for g, w, *row in zip(got.tolist(), want, *(c.tolist() for c in columns), strict=True):
        assert exact.is_nan(g, format) if w == NAN else g == w, f"{[hex(x) for x in row]} give {g:#x}, not {w}"


def inputs(rng: np.random.Generator, format: Format, count: int, arity: int) -> list[np.ndarray]:
    """Awkward numbers, random bits, and numbers about 1, about the least normal one, or in [0, 2]."""
    word = f"u{format.bits // 8}"
    columns = []
    for _ in range(arity):
        random = rng.integers(0, 1 << 62, count, dtype=np.uint64) << np.uint64(2) | rng.integers(0, 4, count, dtype=np.uint64)
        random = (random & np.uint64((1 << format.bits) - 1)).astype(word)
        awkward = rng.choice(np.array(exact.interesting(format), word), count)
        near = rng.integers(-4, 5, count) + rng.choice([1 << format.fraction, one(format), one(format) // 2], count)
        columns.append(np.select([rng.random(count) < 0.4, rng.random(count) < 0.5], [awkward, near.astype(word)], random))
    return columns


def reciprocal(a: int, format: Format, mode: str) -> int | str:
    """1/a."""
    return exact.div(one(format), a, format, mode)


OPERATIONS: dict[str, tuple[int, Callable[..., int | str]]] = {
    "add": (2, exact.add), "sub": (2, exact.sub), "mul": (2, exact.mul), "fma": (3, exact.fma), "mad": (3, exact.fma),
    "div": (2, exact.div), "rcp": (1, reciprocal), "sqrt": (1, exact.sqrt),
}  # fmt: skip
SATURATED = ("add", "sub", "mul", "fma", "mad")
HALVES = ("add", "sub", "mul", "fma")


def forms() -> list[tuple[str, str, str, str, str]]:
    """The operation, rounding, `.ftz`, `.sat` and type of every form with a modifier; `test_float_exact` has the others."""
    modifiers = (("", ".sat"), (".ftz", ""), (".ftz", ".sat"))
    of_f32 = [
        (op, f".{mode}", ftz, sat, "f32")
        for op, mode, (ftz, sat) in itertools.product(OPERATIONS, MODES, modifiers)
        if not sat or op in SATURATED
    ]
    return of_f32 + [(op, ".rn", ftz, sat, "f16") for op, (ftz, sat) in itertools.product(HALVES, modifiers)]


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("op", "mode", "ftz", "sat", "type"), forms(), ids="".join)
def test_every_form(op: str, mode: str, ftz: str, sat: str, type: str, rng: np.random.Generator) -> None:
    """PTX 9.7.3.3 to 9.7.3.15, 9.7.4.1 to 9.7.4.4: rounded once, then `.ftz`, then `.sat`."""
    (arity, function), format, held = OPERATIONS[op], FORMATS[type], HELD.get(type, type)
    columns = inputs(rng, format, 300, arity)
    names = ", ".join(f"{{{n}}}" for n in range(arity))
    got = run(f"{op}{mode}{ftz}{sat}.{type} {{d}}, {names};", held, *[(held, c) for c in columns])
    reference = modified(partial(function, format=format, mode=mode[1:]), format, ftz=bool(ftz), sat=bool(sat))
    check(got, [reference(*map(int, row)) for row in zip(*columns, strict=True)], format, columns)


# ── signs and order ─────────────────────────────────────────────────────────────────────


def extreme(a: int, b: int, format: Format, choose: Callable[..., int]) -> int | str:
    """PTX 9.7.3.11: a number beats NaN, and +0 is greater than -0."""
    numbers = [x for x in (a, b) if not exact.is_nan(x, format)]
    return choose(numbers, key=lambda x: -x if x & format.sign else x + 2 * format.sign) if numbers else NAN


@pytest.mark.parametrize("op", ["min", "max"])
@pytest.mark.parametrize(("type", "ftz"), [("f32", ""), ("f32", ".ftz"), ("f64", ""), ("f16", ""), ("f16", ".ftz")])
def test_order_of_every_pair_of_awkward_numbers(op: str, type: str, ftz: str) -> None:
    """Zeros, subnormals, infinities and NaN of both signs against each other."""
    format, held = FORMATS[type], HELD.get(type, type)
    word = f"u{format.bits // 8}"
    columns = [np.array(x, word) for x in zip(*itertools.product(exact.interesting(format), repeat=2), strict=True)]
    got = run(f"{op}{ftz}.{type} {{d}}, {{0}}, {{1}};", held, *[(held, c) for c in columns])
    choose = {"min": min, "max": max}[op]
    reference = modified(partial(extreme, format=format, choose=choose), format, ftz=bool(ftz), sat=False)
    check(got, [reference(*map(int, row)) for row in zip(*columns, strict=True)], format, columns)


@pytest.mark.parametrize("ftz", ["", ".ftz"])
@pytest.mark.parametrize("op", ["abs", "neg"])
def test_sign_of_every_half(op: str, ftz: str) -> None:
    """PTX 9.7.4.5, 9.7.4.6: only the sign changes; the NaN of a NaN is left open by the manual, and is the one NaN here."""
    got = run(f"{op}{ftz}.f16 {{d}}, {{0}};", "b16", ("b16", EVERY))
    for x, g in zip(EVERY.tolist(), got.tolist(), strict=True):
        a = int(flush(x, F16)) if ftz else x
        want = a ^ 0x8000 if op == "neg" else a & 0x7FFF
        assert exact.is_nan(g, F16) if exact.is_nan(x, F16) else g == want, hex(x)


# ── every half ──────────────────────────────────────────────────────────────────────────

AGAINST = [0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x3C00, 0xBC01, 0x3555, 0x4248, 0xC900, 0x7BFF, 0xFC00, 0x7E00]


@pytest.mark.parametrize(("op", "function"), [("add", np.add), ("sub", np.subtract), ("mul", np.multiply)])
def test_every_half_with_some(op: str, function: np.ufunc) -> None:
    """Sums and products of two f16 are exact in f64, which is rounded once."""
    a, b = (x.ravel() for x in np.meshgrid(EVERY, np.array(AGAINST, np.uint16)))
    got = run(f"{op}.rn.f16 {{d}}, {{0}}, {{1}};", "b16", ("b16", a), ("b16", b))
    with np.errstate(all="ignore"):
        want = function(a.view(np.float16).astype(float), b.view(np.float16).astype(float)).astype(np.float16)
    bits = np.where(np.isnan(want), np.uint16(0x7FFF), want.view(np.uint16))
    assert np.array_equal(got, bits), hex(a[got != bits][0])


SOME = np.union1d(EVERY[::9], np.array([*AGAINST, 0x7C00, 0x7C01, 0xFFFF, 0x7F80, 0xFF80, 0x7FC0], np.uint16))
HALVES = pytest.mark.parametrize(
    "halves", [pytest.param(SOME, id="some"), pytest.param(EVERY, id="every", marks=pytest.mark.long)]
)


def integers_of(halves: np.ndarray, type: str, mode: str) -> list[int | str]:
    """Each f16 or bf16 as an integer of any size."""
    huge = 1 << 200
    return [exact.to_integer(int(x), FORMATS[type], mode, -huge, huge) for x in halves]


@pytest.mark.sampled(2)
@HALVES
@pytest.mark.parametrize("mode", INTEGRAL)
@pytest.mark.parametrize("source", ["f16", "bf16"])
def test_every_half_to_integers(source: str, mode: str, halves: np.ndarray) -> None:
    """PTX 9.7.9.21: out of range to the nearest end; NaN to 0, and in 64 bits to the sign bit alone."""
    integers = integers_of(halves, source, mode)
    for target in (f"{kind}{size}" for kind in "us" for size in (8, 16, 32, 64)):
        size = int(target[1:])
        least, most = (-(1 << size - 1), (1 << size - 1) - 1) if target[0] == "s" else (0, (1 << size) - 1)
        held = max(size, 8 if source == "bf16" else 16)
        got = run(f"cvt.{mode}.{target}.{source} {{d}}, {{0}};", f"{target[0]}{held}", ("b16", halves))
        nan = 1 << 63 if size == 64 else 0
        want = {x: (nan if x == NAN else min(max(int(x), least), most)) & (1 << held) - 1 for x in {*integers}}
        assert got.tolist() == [want[x] for x in integers], target


def integral(format: Format, mode: str, x: int) -> int | str:
    """The integral value next to a number, with its sign."""
    if exact.is_nan(x, format) or exact.is_infinite(x, format):
        return NAN if exact.is_nan(x, format) else x
    whole = Fraction(exact.round_integral(exact.value(x, format), mode))
    return exact.round_fraction(whole, format, "rn", minus=exact.negative(x, format))


@HALVES
@pytest.mark.parametrize("sat", ["", ".sat"])
@pytest.mark.parametrize("mode", INTEGRAL)
def test_every_half_to_an_integral_one(mode: str, sat: str, halves: np.ndarray) -> None:
    """Zero keeps its sign, and .sat limits."""
    got = run(f"cvt.{mode}{sat}.f16.f16 {{d}}, {{0}};", "b16", ("b16", halves))

    reference = modified(partial(integral, F16, mode), F16, ftz=False, sat=bool(sat))
    check(got, [reference(int(x)) for x in halves], F16, [halves])


@pytest.mark.sampled(2)
@HALVES
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", ["u16", "s16"])
@pytest.mark.parametrize("target", ["f16", "bf16", "f32"])
def test_every_short_integer_to_floats(target: str, source: str, mode: str, halves: np.ndarray) -> None:
    format = FORMATS[target]
    got = run(f"cvt.{mode}.{target}.{source} {{d}}, {{0}};", HELD.get(target, target), (source, halves))
    numbers = halves.astype(int) if source == "u16" else halves.view(np.int16).astype(int)
    check(got, [exact.round_fraction(Fraction(int(n)), format, mode) for n in numbers], format, [halves])


# ── cvt with modifiers ──────────────────────────────────────────────────────────────────

NARROWING = [("f16", "f32"), ("f16", "f64"), ("f32", "f64")]
WIDENING = [("f32", "f16"), ("f64", "f16"), ("f64", "f32")]


def conversions() -> list[tuple[str, str, str, str, str]]:
    """Rounding, `.ftz`, `.sat`, target and source; `.ftz` is for f32."""
    modifiers = list(itertools.product(("", ".ftz"), ("", ".sat")))
    down = [(f".{m}", ftz, sat, *pair) for m, (ftz, sat), pair in itertools.product(MODES, modifiers, NARROWING)]
    up = [("", ftz, sat, *pair) for (ftz, sat), pair in itertools.product(modifiers, WIDENING)]
    return [form for form in down + up if not form[1] or "f32" in form[3:]]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("mode", "ftz", "sat", "target", "source"), conversions(), ids=".".join)
def test_conversion_of_floats(mode: str, ftz: str, sat: str, target: str, source: str, rng: np.random.Generator) -> None:
    """PTX 9.7.9.21: .ftz flushes the f32 of the two."""
    wide, narrow = FORMATS[source], FORMATS[target]
    (a,) = [EVERY] if source == "f16" else inputs(rng, wide, 1000, 1)
    got = run(f"cvt{mode}{ftz}{sat}.{target}.{source} {{d}}, {{0}};", HELD.get(target, target), (HELD.get(source, source), a))

    def reference(x: int) -> int | str:
        taken = int(flush(x, F32)) if ftz and wide is F32 else x
        result = exact.convert(taken, wide, narrow, mode[1:] or "rn")
        return modified(lambda: result, narrow, ftz=bool(ftz) and narrow is F32, sat=bool(sat))()

    check(got, [reference(int(x)) for x in a], narrow, [a])


@pytest.mark.parametrize("mode", INTEGRAL)
@pytest.mark.parametrize("sat", ["", ".sat"])
def test_flushed_f32_to_integral_ones(mode: str, sat: str, rng: np.random.Generator) -> None:
    """With .ftz a subnormal number is zero before it is rounded up."""
    (a,) = inputs(rng, F32, 1000, 1)
    got = run(f"cvt.{mode}.ftz{sat}.f32.f32 {{d}}, {{0}};", "f32", ("f32", a))

    reference = modified(partial(integral, F32, mode), F32, ftz=True, sat=bool(sat))
    check(got, [reference(int(x)) for x in a], F32, [a])


@pytest.mark.parametrize("mode", INTEGRAL)
@pytest.mark.parametrize("target", [f"{kind}{size}" for kind in "us" for size in (8, 16, 32, 64)])
def test_flushed_f32_to_integers(target: str, mode: str, rng: np.random.Generator) -> None:
    """With .ftz nothing subnormal rounds up to one."""
    (a,) = inputs(rng, F32, 500, 1)
    size = int(target[1:])
    least, most = (-(1 << size - 1), (1 << size - 1) - 1) if target[0] == "s" else (0, (1 << size) - 1)
    held = max(size, 16)
    got = run(f"cvt.{mode}.ftz.{target}.f32 {{d}}, {{0}};", f"{target[0]}{held}", ("f32", a))
    results = [exact.to_integer(int(flush(int(x), F32)), F32, mode, least, most) for x in a]
    nan = 1 << 63 if size == 64 else 0
    assert got.tolist() == [(nan if r == NAN else int(r)) & (1 << held) - 1 for r in results]
