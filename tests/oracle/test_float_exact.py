"""Floating-point instructions against exact rational arithmetic, and against the manual's tables and error bounds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import exact
import numpy as np
import pytest
from exact import BF16, F16, F32, F64, MODES, NAN, Format
from machine import run

CANONICAL = {F16: 0x7FFF, BF16: 0x7FFF, F32: 0x7FFF_FFFF}
HELD = {F16: "b16", BF16: "b16", F32: "f32", F64: "f64"}
NAME = {F16: "f16", BF16: "bf16", F32: "f32", F64: "f64"}


def inputs(rng: np.random.Generator, format: Format, count: int, operands: int) -> list[np.ndarray]:
    """Awkward numbers against each other, random bits, and numbers of nearly the same size, whose sums cancel."""
    awkward = np.array(exact.interesting(format), dtype=f"u{format.bits // 8}")
    chosen = [rng.choice(awkward, count) for _ in range(operands)]
    for column in chosen:
        random = rng.integers(0, 1 << format.bits, count, dtype=np.uint64, endpoint=False).astype(column.dtype)
        near = rng.integers(-64, 64, count) + (format.bias << format.fraction)
        near = near + (rng.integers(-30, 31, count) << format.fraction) * (rng.random(count) < 0.5)
        near = near.astype(np.uint64) & np.uint64(format.sign - 1) | (
            rng.integers(0, 2, count).astype(np.uint64) << np.uint64(format.bits - 1)
        )
        kind = rng.integers(0, 4, count)
        column[:] = np.select([kind == 0, kind == 1], [random, near.astype(column.dtype)], column)
    return chosen


def check(got: np.ndarray, want: list[int | str], format: Format, columns: list[np.ndarray]) -> None:
    """Bit for bit; NaN is the canonical one, and any of f64."""
    for n, (g, w) in enumerate(zip(got.tolist(), want, strict=True)):
        ok = exact.is_nan(g, format) and g == CANONICAL.get(format, g) if w == NAN else g == w
        assert ok, f"{[hex(int(c[n])) for c in columns]}: {g:#x}, not {w if w == NAN else hex(w)}"


OPERATIONS: dict[str, tuple[int, Callable[..., int | str]]] = {
    "add": (2, exact.add), "sub": (2, exact.sub), "mul": (2, exact.mul), "fma": (3, exact.fma), "mad": (3, exact.fma),
    "div": (2, exact.div), "sqrt": (1, exact.sqrt),
}  # fmt: skip


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("format", [F32, F64], ids=["f32", "f64"])
@pytest.mark.parametrize("op", OPERATIONS)
def test_is_rounded_once(op: str, format: Format, mode: str, rng: np.random.Generator) -> None:
    arity, reference = OPERATIONS[op]
    columns = inputs(rng, format, 800, arity)
    type = NAME[format]
    names = ", ".join(f"{{{n}}}" for n in range(arity))
    got = run(f"{op}.{mode}.{type} {{d}}, {names};", type, *[(type, c) for c in columns])
    want = [reference(*(int(x) for x in row), format, mode) for row in zip(*columns, strict=True)]
    check(got, want, format, columns)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("type", ["f32", "f64"])
def test_rcp_is_rounded_once(type: str, mode: str, rng: np.random.Generator) -> None:
    format = {"f32": F32, "f64": F64}[type]
    (a,) = inputs(rng, format, 1500, 1)
    one = exact.round_fraction(Fraction(1), format, "rn")
    got = run(f"rcp.{mode}.{type} {{d}}, {{0}};", type, (type, a))
    check(got, [exact.div(one, int(x), format, mode) for x in a], format, [a])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "fma"])
@pytest.mark.parametrize("format", [F16, BF16], ids=["f16", "bf16"])
def test_halves_are_rounded_once(op: str, format: Format, rng: np.random.Generator) -> None:
    arity, reference = OPERATIONS[op]
    columns = inputs(rng, format, 6000, arity)
    names = ", ".join(f"{{{n}}}" for n in range(arity))
    got = run(f"{op}.rn.{NAME[format]} {{d}}, {names};", "b16", *[("b16", c) for c in columns])
    want = [reference(*(int(x) for x in row), format, "rn") for row in zip(*columns, strict=True)]
    check(got, want, format, columns)


@pytest.mark.parametrize("type", ["f16x2", "bf16x2", "f32x2"])
def test_pairs_are_two_of_the_scalar(type: str, rng: np.random.Generator) -> None:
    format, width = {"f16x2": (F16, 32), "bf16x2": (BF16, 32), "f32x2": (F32, 64)}[type]
    halves = inputs(rng, format, 1000, 6)
    half = np.uint64(width // 2)
    packed = [h.astype(np.uint64) << half | low for h, low in zip(halves[:3], halves[3:], strict=True)]
    got = run(f"fma.rn.{type} {{d}}, {{0}}, {{1}}, {{2}};", f"b{width}", *[(f"b{width}", p) for p in packed])
    for part, columns in ((got >> half.astype(got.dtype), halves[:3]), (got, halves[3:])):
        want = [exact.fma(*(int(x) for x in row), format, "rn") for row in zip(*columns, strict=True)]
        check(part & part.dtype.type((1 << width // 2) - 1), want, format, columns)


def order(bits: int, format: Format) -> int:
    """A key that orders numbers, -0 before +0."""
    return -bits if bits & format.sign else bits + format.sign * 2


@pytest.mark.parametrize("nan", ["", ".NaN"])
@pytest.mark.parametrize("op", ["min", "max"])
@pytest.mark.parametrize("format", [F16, BF16, F32], ids=["f16", "bf16", "f32"])
def test_min_and_max(op: str, format: Format, nan: str, rng: np.random.Generator) -> None:
    """PTX 9.7.3.11: a number beats NaN unless `.NaN` is given; +0 is greater than -0."""
    columns = inputs(rng, format, 1500, 2)
    held, choose = HELD[format], {"min": min, "max": max}[op]
    got = run(f"{op}{nan}.{NAME[format]} {{d}}, {{0}}, {{1}};", held, *[(held, c) for c in columns])
    want: list[int | str] = []
    for row in zip(*columns, strict=True):
        numbers = [int(x) for x in row if not exact.is_nan(int(x), format)]
        want.append(choose(numbers, key=lambda x: order(x, format)) if len(numbers) == 2 or (numbers and not nan) else NAN)
    check(got, want, format, columns)


@pytest.mark.parametrize("format", [F16, F32], ids=["f16", "f32"])
def test_xorsign_abs(format: Format, rng: np.random.Generator) -> None:
    """PTX 9.7.3.11: the lesser magnitude, with the sign of the product."""
    columns = inputs(rng, format, 1000, 2)
    held = HELD[format]
    got = run(f"min.xorsign.abs.{NAME[format]} {{d}}, {{0}}, {{1}};", held, *[(held, c) for c in columns])
    want: list[int | str] = []
    for a, b in zip(*(c.tolist() for c in columns), strict=True):
        sizes = [x & format.sign - 1 for x in (a, b) if not exact.is_nan(x, format)]
        want.append(min(sizes) | (a ^ b) & format.sign if sizes else NAN)
    check(got, want, format, columns)


def test_three_operands(rng: np.random.Generator) -> None:
    columns = inputs(rng, F32, 1000, 3)
    got = run("max.abs.f32 {d}, {0}, {1}, {2};", "f32", *[("f32", c) for c in columns])
    want: list[int | str] = []
    for row in zip(*(c.tolist() for c in columns), strict=True):
        sizes = [x & 0x7FFF_FFFF for x in row if not exact.is_nan(x, F32)]
        want.append(max(sizes) if sizes else NAN)
    check(got, want, F32, columns)


def test_oob_gives_zero_for_the_out_of_bounds_nan() -> None:
    """Its bits, of either sign, are those that an H200 tells for all 65,536 patterns; PTX 5.5.3.3 does not name them."""
    a, b, c = (np.array(x, np.uint16) for x in ([0x7FF7, 0x3C00, 0xFFFF], [0x3C00, 0xFFF7, 0x3C00], [0x3C00] * 3))
    got = run("fma.rn.oob.f16 {d}, {0}, {1}, {2};", "b16", ("b16", a), ("b16", b), ("b16", c))
    assert got.tolist() == [0, 0, 0x7FFF]


# ── testp, copysign ─────────────────────────────────────────────────────────────────────

PROPERTIES: dict[str, Callable[[int, Format], bool]] = {
    "finite": lambda x, f: x & f.sign - 1 < f.infinity,
    "infinite": exact.is_infinite,
    "number": lambda x, f: not exact.is_nan(x, f),
    "notanumber": exact.is_nan,
    "normal": lambda x, f: x & f.sign - 1 == 0 or 1 << f.fraction <= x & f.sign - 1 < f.infinity,
    "subnormal": lambda x, f: 0 < x & f.sign - 1 < 1 << f.fraction,
}


@pytest.mark.parametrize("property", PROPERTIES)
@pytest.mark.parametrize("format", [F32, F64], ids=["f32", "f64"])
def test_testp(property: str, format: Format, rng: np.random.Generator) -> None:
    (a,) = inputs(rng, format, 500, 1)
    type = NAME[format]
    text = f".reg .pred %t0; testp.{property}.{type} %t0, {{0}}; selp.u32 {{d}}, 1, 0, %t0;"
    assert run(text, "u32", (type, a)).tolist() == [PROPERTIES[property](int(x), format) for x in a]


@pytest.mark.parametrize("format", [F32, F64], ids=["f32", "f64"])
def test_copysign(format: Format, rng: np.random.Generator) -> None:
    a, b = inputs(rng, format, 500, 2)
    type = NAME[format]
    got = run(f"copysign.{type} {{d}}, {{0}}, {{1}};", type, (type, a), (type, b))
    assert got.tolist() == [int(x) & format.sign | int(y) & format.sign - 1 for x, y in zip(a, b, strict=True)]


# ── approximations: the manual's error bounds and tables ────────────────────────────────

FUNCTIONS: dict[str, Callable[[float], float]] = {
    "rcp": lambda x: 1 / x,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "sin": math.sin,
    "cos": math.cos,
    "lg2": math.log2,
    "ex2": lambda x: 2.0**x,
    "tanh": math.tanh,
}
# function: the range of the inputs, and the greatest error: relative to the result ("rel"), absolute ("abs"), ulps
BOUNDS = [
    ("rcp", (2.0**-126, 2.0**126), "ulp", 1),  # 9.7.3.13
    ("sqrt", (2.0**-126, 2.0**127), "rel", 2.0**-23),  # 9.7.3.15
    ("rsqrt", (2.0**-126, 2.0**127), "rel", 2.0**-22.9),  # 9.7.3.16
    ("sin", (-2 * math.pi, 2 * math.pi), "abs", 2.0**-20.5),  # 9.7.3.18
    ("sin", (-100 * math.pi, 100 * math.pi), "abs", 2.0**-14.7),
    ("cos", (-2 * math.pi, 2 * math.pi), "abs", 2.0**-20.42),  # 9.7.3.19: 2**-20.5; silicon is off by 2**-20.43 near 4.9
    ("cos", (-100 * math.pi, 100 * math.pi), "abs", 2.0**-14.7),
    ("lg2", (0.5, 2.0), "abs", 2.0**-22),  # 9.7.3.20
    ("lg2", (2.0, 2.0**127), "rel", 2.0**-22),
    ("ex2", (-126.0, 127.9), "ulp", 2.1),  # 9.7.3.21: 2; the silicon model reaches 2.06 near -6.08
    ("tanh", (-20.0, 20.0), "rel", 2.0**-11),  # 9.7.3.22
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("function", "range", "kind", "bound"), BOUNDS, ids=[f"{b[0]}-{b[2]}" + str(n) for n, b in enumerate(BOUNDS)]
)
def test_error_bound(function: str, range: tuple[float, float], kind: str, bound: float, rng: np.random.Generator) -> None:
    low, high = range
    wide = low > 0 and high > 1e6
    x = np.exp2(rng.uniform(math.log2(low), math.log2(high), 4000)) if wide else rng.uniform(low, high, 4000)
    x = x.astype(np.float32)
    got = run(f"{function}.approx.f32 {{d}}, {{0}};", "f32", ("f32", x.view(np.uint32))).view(np.float32)
    for a, g in zip(x.tolist(), got, strict=True):
        want = FUNCTIONS[function](a)
        scale = {"abs": 1.0, "rel": abs(want), "ulp": float(np.spacing(np.float32(abs(want))))}[kind]
        assert abs(float(g) - want) <= bound * scale, (a, g, want)


def test_div_approx_and_full(rng: np.random.Generator) -> None:
    """PTX 9.7.3.8: two ulps for `|b|` in [2^-126, 2^126], and for div.full everywhere."""
    a = np.exp2(rng.uniform(-20, 20, 3000)).astype(np.float32)
    b = np.exp2(rng.uniform(-100, 100, 3000)).astype(np.float32)
    for form in ("approx", "full"):
        text = f"div.{form}.f32 {{d}}, {{0}}, {{1}};"
        got = run(text, "f32", ("f32", a.view(np.uint32)), ("f32", b.view(np.uint32))).view(np.float32)
        want = a.astype(float) / b
        assert (np.abs(got - want) <= 2 * np.spacing(np.abs(want).astype(np.float32))).all()


INF, NEG = 0x7F80_0000, 0x8000_0000
CORNERS = {
    # function: {input: result}, from the table of the section
    "rcp": {INF | NEG: NEG, NEG: INF | NEG, 0: INF, INF: 0},
    "sqrt": {INF | NEG: NAN, 0xBF80_0000: NAN, NEG: NEG, 0: 0, INF: INF},
    "rsqrt": {INF | NEG: NAN, 0xBF80_0000: NAN, NEG: INF | NEG, 0: INF, INF: 0},
    "sin": {INF | NEG: NAN, NEG: NEG, 0: 0, INF: NAN},
    "cos": {INF | NEG: NAN, NEG: 0x3F80_0000, 0: 0x3F80_0000, INF: NAN},
    "lg2": {INF | NEG: NAN, 0xBF80_0000: NAN, NEG: INF | NEG, 0: INF | NEG, INF: INF, 0x4100_0000: 0x4040_0000},
    "ex2": {INF | NEG: 0, NEG: 0x3F80_0000, 0: 0x3F80_0000, INF: INF, 0x4040_0000: 0x4100_0000},
    "tanh": {INF | NEG: 0xBF80_0000, NEG: NEG, 0: 0, INF: 0x3F80_0000, 1: 1, 0x8000_0003: 0x8000_0003},
}


@pytest.mark.parametrize("function", CORNERS)
def test_corners(function: str) -> None:
    corners = {**CORNERS[function], 0x7FC0_0001: NAN, 0xFF80_0001: NAN}
    a = np.array(list(corners), np.uint32)
    got = run(f"{function}.approx.f32 {{d}}, {{0}};", "f32", ("f32", a))
    check(got, list(corners.values()), F32, [a])


def test_div_approx_by_a_great_divisor() -> None:
    """PTX 9.7.3.8: for 2^126 < |b| < 2^128 infinity gives NaN, and the rest a zero of the right sign."""
    a = np.array([INF, 0x3F80_0000, 0xBF80_0000], np.uint32)
    b = np.full(3, 0x7F00_0000, np.uint32)
    got = run("div.approx.f32 {d}, {0}, {1};", "f32", ("f32", a), ("f32", b))
    check(got, [NAN, 0, NEG], F32, [a])


GROSS = {
    # upper word of the input: upper word of the result
    "rcp": {
        0xFFF0_0000: 0x8000_0000, 0x8000_0001: 0xFFF0_0000, 0x8000_0000: 0xFFF0_0000, 0: 0x7FF0_0000, 1: 0x7FF0_0000,
        0x7FF0_0000: 0, 0x7FF8_0000: 0x7FFF_FFFF, 0x3FF0_0000: 0x3FF0_0000, 0x4000_0000: 0x3FE0_0000,
    },
    "rsqrt": {
        0xFFF0_0000: 0x7FFF_FFFF, 0x8000_0001: 0xFFF0_0000, 0x8000_0000: 0xFFF0_0000, 0: 0x7FF0_0000, 1: 0x7FF0_0000,
        0x7FF0_0000: 0, 0x7FF8_0000: 0x7FFF_FFFF, 0x4010_0000: 0x3FE0_0000,
    },
}  # fmt: skip


@pytest.mark.parametrize("function", GROSS)
def test_gross_approximation(function: str, rng: np.random.Generator) -> None:
    """PTX 9.7.3.14 and 9.7.3.17: of the upper word, to the upper word; the lower word is zero."""
    words = list(GROSS[function].items())
    a = np.array([upper << 32 for upper, _ in words], np.uint64)
    text = f"{function}.approx.ftz.f64 {{d}}, {{0}};"
    assert (run(text, "f64", ("f64", a)) >> np.uint64(32)).tolist() == [w for _, w in words]
    x = np.exp2(rng.uniform(-900, 900, 1000))
    got = run(text, "f64", ("f64", x.view(np.uint64)))
    want = 1 / x if function == "rcp" else 1 / np.sqrt(x)
    assert not (got & np.uint64(0xFFFF_FFFF)).any()
    assert (np.abs(got.view(np.float64) / want - 1) < 2.0**-18).all()


def gross(function: str, bits: int) -> int:
    """The upper word of the result by the manual's five steps, in integers: the quotient or root is cut to 20 bits."""
    upper = bits >> 32
    sign, exponent, fraction = upper >> 31, upper >> 20 & 0x7FF, upper & 0xF_FFFF
    root = function == "rsqrt"
    if exponent == 0x7FF:
        return 0x7FFF_FFFF if fraction or (root and sign) else sign << 31
    if exponent == 0:  # a subnormal is zero
        return sign << 31 | 0x7FF0_0000
    if root and sign:
        return 0x7FFF_FFFF
    whole = 1 << 20 | fraction  # a = whole * 2^(exponent - 1043)
    if root:
        odd = (exponent - 1043) % 2
        quotient, power = math.isqrt((1 << 62) // (whole << odd)), -31 - (exponent - 1043 - odd) // 2
    else:
        quotient, power = (1 << 41) // whole, -41 - (exponent - 1043)
    spare = quotient.bit_length() - 21
    biased = power + spare + 1043
    return sign << 31 | (biased << 20 | quotient >> spare & 0xF_FFFF if biased > 0 else 0)


@pytest.mark.parametrize("function", GROSS)
def test_gross_approximation_is_within_a_unit(function: str, rng: np.random.Generator) -> None:
    """PTX 9.7.3.14 and 9.7.3.17, over all exponents; what stands in the lower word of the input does not matter.

    Which bits silicon gives is recorded (`test_hardware.py`); here it is the last of them that may differ.
    """
    words = rng.integers(0, 1 << 32, 30_000, dtype=np.uint64)
    words[:4096] = np.arange(4096, dtype=np.uint64) << np.uint64(20)  # the powers of two, both infinities
    a = words << np.uint64(32) | rng.integers(0, 1 << 32, len(words), dtype=np.uint64)
    got = run(f"{function}.approx.ftz.f64 {{d}}, {{0}};", "f64", ("f64", a))
    want = [gross(function, int(x)) << 32 for x in a]
    wrong = [(hex(int(x)), hex(int(g)), hex(w)) for x, g, w in zip(a, got, want, strict=True) if abs(int(g) - w) > 1 << 32]
    assert not wrong, wrong[:5]


@pytest.mark.long
@pytest.mark.parametrize("function", GROSS)
def test_gross_approximation_of_every_fraction(function: str) -> None:
    """Both parities of the exponent: no root of 21 bits is so near a step that rounding before the cut would show."""
    for exponent in (1022, 1023):
        a = (np.arange(1 << 20, dtype=np.uint64) | np.uint64(exponent << 20)) << np.uint64(32)
        got = run(f"{function}.approx.ftz.f64 {{d}}, {{0}};", "f64", ("f64", a)) >> np.uint64(32)
        assert got.tolist() == [gross(function, int(x)) for x in a]


def test_half_functions(rng: np.random.Generator) -> None:
    """PTX 9.7.4.9 and 9.7.4.10: every f16 input, within the error bounds."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    x = bits.view(np.float16).astype(float)
    finite = np.isfinite(x) & (np.abs(x) < 12)
    with np.errstate(all="ignore"):
        for function, want, bound in (("tanh", np.tanh(x), 2.0**-10.987), ("ex2", np.exp2(x), 2.0**-9.9)):
            got = run(f"{function}.approx.f16 {{d}}, {{0}};", "b16", ("b16", bits)).view(np.float16).astype(float)
            scale = np.exp2(x) if function == "ex2" else 1.0
            assert (np.abs(got - want) <= bound * scale)[finite].all()
            assert np.isnan(got[np.isnan(x)]).all()


def test_legacy_functions_flush_subnormals() -> None:
    """Until PTX 1.3 `ex2.f32` and the like default to .approx.ftz; here through the forms of today."""
    a = np.array([0x0040_0000, 0x8040_0000], np.uint32)
    got = run("rcp.approx.ftz.f32 {d}, {0};", "f32", ("f32", a))
    assert got.tolist() == [INF, INF | NEG]


def test_every_pair_of_awkward_numbers_divides(rng: np.random.Generator) -> None:
    awkward = exact.interesting(F32)
    a, b = (np.array(x, np.uint32) for x in zip(*itertools.product(awkward, awkward), strict=True))
    for mode in MODES:
        got = run(f"div.{mode}.f32 {{d}}, {{0}}, {{1}};", "f32", ("f32", a), ("f32", b))
        check(got, [exact.div(int(x), int(y), F32, mode) for x, y in zip(a, b, strict=True)], F32, [a, b])
