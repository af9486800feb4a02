"""cvt against exact rational arithmetic, ml_dtypes for the small formats, and the manual's tables."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import exact
import ml_dtypes
import numpy as np
import pytest
from exact import BF16, F16, F32, F64, MODES, NAN, Format
from machine import run

FLOATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
HELD = {"f16": "b16", "bf16": "b16"}
INTEGERS = [f"{kind}{bits}" for kind in "us" for bits in (8, 16, 32, 64)]
CANONICAL = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFF_FFFF}


def held(type: str, other: str = "") -> str:
    """The register that a type sits in: bytes are held in 16 bits, but where bf16 forbids wider registers."""
    return HELD.get(type) or (f"{type[0]}16" if type in ("u8", "s8") and other != "bf16" else type)


def floats(rng: np.random.Generator, format: Format, count: int) -> np.ndarray:
    """Awkward numbers, random bits, and numbers near the ends of the integer types and halfway between integers."""
    word = f"u{format.bits // 8}"
    ends = [
        s * (Fraction(2) ** n + d)
        for s in (1, -1)
        for n in (0, 7, 8, 15, 16, 31, 32, 63, 64)
        for d in (-1, 0, Fraction(1, 2), 1)
    ]
    near = [exact.round_fraction(x, format, "rz") for x in ends]
    chosen = rng.choice(np.array(exact.interesting(format) + near, dtype=word), count)
    random = rng.integers(0, 1 << format.bits, count, dtype=np.uint64).astype(word)
    halves = [exact.round_fraction(Fraction(int(n), 4), format, "rn") for n in rng.integers(-4000, 4000, count)]
    kind = rng.integers(0, 3, count)
    return np.select([kind == 0, kind == 1], [random, np.array(halves, dtype=word)], chosen)


def integers(rng: np.random.Generator, type: str, count: int) -> np.ndarray:
    """Integers of every size, as unsigned bits of the register."""
    bits = int(type[1:])
    random = (
        rng.integers(0, 1 << bits, count, dtype=np.uint64, endpoint=False)
        if bits < 64
        else rng.integers(0, 1 << 63, count, dtype=np.uint64) * np.uint64(2) + rng.integers(0, 2, count).astype(np.uint64)
    )
    small = random >> rng.integers(0, bits, count).astype(np.uint64)
    edges = rng.choice(np.array([0, 1, (1 << bits - 1) - 1, 1 << bits - 1, (1 << bits) - 1], dtype=np.uint64), count)
    kind = rng.integers(0, 3, count)
    return np.select([kind == 0, kind == 1], [edges, small], random)


def limits(type: str) -> tuple[int, int]:
    """The range of an integer type."""
    bits = int(type[1:])
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if type[0] == "s" else (0, (1 << bits) - 1)


def number(bits: int, type: str) -> int:
    """The integer that bits stand for."""
    size = int(type[1:])
    bits &= (1 << size) - 1
    return bits - (1 << size) if type[0] == "s" and bits >> size - 1 else bits


def check(got: np.ndarray, want: list[int | str], type: str, a: np.ndarray) -> None:
    """Bit for bit; NaN is the canonical one, and any of f64."""
    for x, g, w in zip(a.tolist(), got.tolist(), want, strict=True):
        ok = exact.is_nan(g, FLOATS[type]) and g == CANONICAL.get(type, g) if w == NAN else g == w
        assert ok, f"{x:#x} gives {g:#x}, not {w if w == NAN else hex(w)}"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("target", "source"),
    [(narrow, wide) for wide in ("f64", "f32") for narrow in ("f32", "f16", "bf16") if narrow != wide]
    + [("bf16", "f16"), ("f16", "bf16")],
)  # fmt: skip
def test_narrowing_rounds_once(target: str, source: str, mode: str, rng: np.random.Generator) -> None:
    a = floats(rng, FLOATS[source], 1000)
    got = run(f"cvt.{mode}.{target}.{source} {{d}}, {{0}};", held(target), (held(source), a))
    check(got, [exact.convert(int(x), FLOATS[source], FLOATS[target], mode) for x in a], target, a)


@pytest.mark.parametrize("source", ["f16", "bf16"])
def test_widening_is_exact_for_every_half(source: str) -> None:
    """The manual leaves open which NaN an f32 is that was a bf16 (9.7.9.21): on an H200 the bits are moved."""
    a = np.arange(1 << 16, dtype=np.uint16)
    for target in ("f32", "f64"):
        got = run(f"cvt.{target}.{source} {{d}}, {{0}};", target, ("b16", a))
        if (target, source) == ("f32", "bf16"):
            assert (got == a.astype(np.uint32) << 16).all()
            continue
        check(got, [exact.convert(int(x), FLOATS[source], FLOATS[target], "rn") for x in a], target, a)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", FLOATS)
@pytest.mark.parametrize("source", INTEGERS)
def test_integers_to_floats_round_once(source: str, target: str, mode: str, rng: np.random.Generator) -> None:
    a = integers(rng, source, 400)
    got = run(f"cvt.{mode}.{target}.{source} {{d}}, {{0}};", held(target), (held(source, target), a))
    want = [exact.round_fraction(Fraction(number(int(x), source)), FLOATS[target], mode) for x in a]
    check(got, want, target, a)


def not_a_number(target: str, source: str) -> int:
    """PTX 9.7.9.21: 0, or the sign bit alone where the source is .f64 or the target has 64 bits."""
    bits = int(target[1:])
    return 1 << bits - 1 if source == "f64" or bits == 64 else 0


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mode", exact.INTEGRAL)
@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", INTEGERS)
def test_floats_to_integers_saturate(target: str, source: str, mode: str, rng: np.random.Generator) -> None:
    a = floats(rng, FLOATS[source], 500)
    register = held(target, source)
    got = run(f"cvt.{mode}.{target}.{source} {{d}}, {{0}};", register, (held(source), a))
    mask = (1 << int(register[1:])) - 1
    for x, g in zip(a.tolist(), got.tolist(), strict=True):
        w = exact.to_integer(x, FLOATS[source], mode, *limits(target))
        w = number(not_a_number(target, source), target) if w == NAN else int(w)
        assert g == w & mask, f"{x:#x} gives {g:#x}, not {w}"


@pytest.mark.parametrize("mode", exact.INTEGRAL)
@pytest.mark.parametrize("type", FLOATS)
def test_rounding_to_integral_values(type: str, mode: str, rng: np.random.Generator) -> None:
    format = FLOATS[type]
    a = floats(rng, format, 1000)
    got = run(f"cvt.{mode}.{type}.{type} {{d}}, {{0}};", held(type), (held(type), a))
    want: list[int | str] = []
    for x in a.tolist():
        if exact.is_nan(x, format) or exact.is_infinite(x, format):
            want.append(NAN if exact.is_nan(x, format) else x)
        else:
            whole = Fraction(exact.round_integral(exact.value(x, format), mode))
            want.append(exact.round_fraction(whole, format, "rn", minus=exact.negative(x, format)))
    check(got, want, type, a)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("target", "source"), list(itertools.product(INTEGERS, INTEGERS)))
def test_integers_to_integers(target: str, source: str, rng: np.random.Generator) -> None:
    """Cut off or extended as the source is signed, limited with .sat; the target says how the register is filled."""
    a = integers(rng, source, 200)
    least, greatest = limits(target)
    mask = (1 << int(held(target)[1:])) - 1
    values = [number(int(x), source) for x in a]
    got = run(f"cvt.{target}.{source} {{d}}, {{0}};", held(target), (held(source), a))
    assert got.tolist() == [number(v, target) & mask for v in values]
    if least > limits(source)[0] or greatest < limits(source)[1]:
        got = run(f"cvt.sat.{target}.{source} {{d}}, {{0}};", held(target), (held(source), a))
        assert got.tolist() == [min(max(v, least), greatest) & mask for v in values]


@pytest.mark.parametrize("register", ["s32", "b32", "b64"])
def test_a_wide_destination_is_filled_up(register: str) -> None:
    """PTX 9.7.9.21: sign-extended for signed integers, zero-extended for the others."""
    a = np.array([0xFF80, 0x7F], np.uint16)
    mask = (1 << int(register[1:])) - 1
    assert run("cvt.s8.s16 {d}, {0};", register, ("s16", a)).tolist() == [-128 & mask, 127]
    assert run("cvt.u8.u16 {d}, {0};", register, ("u16", a)).tolist() == [0x80, 0x7F]


def test_ftz_flushes_f32(rng: np.random.Generator) -> None:
    a = np.array([0x0040_0000, 0x8000_0001, 0x3F80_0000], np.uint32)
    assert run("cvt.ftz.f64.f32 {d}, {0};", "f64", ("f32", a)).tolist() == [0, 1 << 63, 0x3FF0 << 48]
    assert run("cvt.rpi.ftz.s32.f32 {d}, {0};", "s32", ("f32", a)).tolist() == [0, 0, 1]
    b = np.array([0x3780_0000_0000_0000, 0xB780_0000_0000_0000], np.uint64)
    assert run("cvt.rn.ftz.f32.f64 {d}, {0};", "f32", ("f64", b)).tolist() == [0, 0x8000_0000]


def test_sat_of_floats(rng: np.random.Generator) -> None:
    a = floats(rng, F32, 1000)
    got = run("cvt.rn.sat.f16.f32 {d}, {0};", "b16", ("f32", a))
    for x, g in zip(a.tolist(), got.tolist(), strict=True):
        w = exact.convert(x, F32, F16, "rn")
        assert g == (0 if w == NAN or exact.negative(w, F16) else min(w, 0x3C00))


# ── pairs, .relu and .satfinite ─────────────────────────────────────────────────────────


def limited(x: int, format: Format, mode: str, *, relu: bool, finite: bool) -> int:
    """An f32 as a half, as `.relu` and `.satfinite` have it."""
    w = exact.convert(x, F32, format, mode)
    if w == NAN:
        return format.sign - 1
    if finite and exact.is_infinite(w, format):
        w -= 1
    return 0 if relu and exact.negative(w, format) else w


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("relu", "finite"), list(itertools.product((False, True), repeat=2)))
@pytest.mark.parametrize("mode", ["rn", "rz"])
@pytest.mark.parametrize("half", ["f16", "bf16"])
def test_pairs_of_halves(half: str, mode: str, relu: bool, finite: bool, rng: np.random.Generator) -> None:
    """PTX 9.7.9.21: `a` goes to the upper half, `b` to the lower one."""
    a, b = floats(rng, F32, 800), floats(rng, F32, 800)
    modifiers = ".relu" * relu + ".satfinite" * finite
    got = run(f"cvt.{mode}{modifiers}.{half}x2.f32 {{d}}, {{0}}, {{1}};", "b32", ("f32", a), ("f32", b))

    def half_of(x: np.uint32) -> int:
        return limited(int(x), FLOATS[half], mode, relu=relu, finite=finite)

    assert got.tolist() == [half_of(x) << 16 | half_of(y) for x, y in zip(a, b, strict=True)]
    if modifiers:
        got = run(f"cvt.{mode}{modifiers}.{half}.f32 {{d}}, {{0}};", "b16", ("f32", a))
        assert got.tolist() == [half_of(x) for x in a]


# target: bits of its fraction, its bias, its greatest number, and what is beyond that (nothing, of the small formats)
ROUNDED_AT_RANDOM = {
    "f16": (10, 15, 0x7BFF, 0x7C00), "bf16": (7, 127, 0x7F7F, 0x7F80), "e4m3": (3, 7, 0x7E, 0x7E), "e5m2": (2, 15, 0x7B, 0x7B),
    "e3m2": (2, 3, 0x1F, 0x1F), "e2m3": (3, 1, 0x1F, 0x1F), "e2m1": (1, 1, 0x07, 0x07),
}  # fmt: skip


def at_random(x: int, name: str, random: int, *, relu: bool = False, finite: bool = True) -> int:
    """An f32 whose magnitude moves up where random bits, added to the sixteen behind the last place, carry."""
    fraction, bias, greatest, beyond = ROUNDED_AT_RANDOM[name]
    bits = {"f16": 16, "bf16": 16, **WIDTH}[name]
    if exact.is_nan(x, F32):
        return {"f16": 0x7FFF, "bf16": 0x7FFF}.get(name) or SMALL[name][2]
    sign = exact.negative(x, F32) << bits - 1
    size = x & 0x7FFF_FFFF
    code = greatest + 1
    if size != F32.infinity:
        number = exact.value(size, F32)
        last = max(exact.floor_log2(number) if number else 1 - bias, 1 - bias) - fraction
        whole, rest = divmod(number / Fraction(2) ** last, 1)
        code = (last + fraction + bias - 1 << fraction) + int(whole) + (int(rest * 65536) + random >> 16)
    return 0 if relu and sign else min(code, greatest if finite else beyond) | sign


def random_halves(rng: np.random.Generator, count: int) -> np.ndarray:
    """Random bits of which halves are often all ones or nearly so."""
    whole = rng.integers(0, 1 << 32, count, dtype=np.uint32)
    return whole | rng.choice(np.array([0, 0xFFFF, 0xFFFF_0000, 0xFFF0_FFF0], np.uint32), count)


@pytest.mark.parametrize(("relu", "finite"), list(itertools.product((False, True), repeat=2)))
@pytest.mark.parametrize("half", ["f16", "bf16"])
def test_halves_rounded_at_random(half: str, relu: bool, finite: bool, rng: np.random.Generator) -> None:
    """PTX 9.7.9.21: 13 bits decide for f16, 16 for bf16; the upper ones are those of `a`."""
    unused = {"f16": 3, "bf16": 0}[half]
    a, b = (np.concatenate([sample(rng, 400), floats(rng, F32, 400)]) for _ in "ab")
    r = random_halves(rng, 800)
    text = f"cvt.rs{'.relu' * relu}{'.satfinite' * finite}.{half}x2.f32 {{d}}, {{0}}, {{1}}, {{2}};"
    got = run(text, "b32", ("f32", a), ("f32", b), ("b32", r))
    for x, y, random, g in zip(a.tolist(), b.tolist(), r.tolist(), got.tolist(), strict=True):
        high = at_random(x, half, random >> 16 << unused & 0xFFFF, relu=relu, finite=finite)
        low = at_random(y, half, random << unused & 0xFFFF, relu=relu, finite=finite)
        assert g == high << 16 | low, f"{x:#x}, {y:#x}, {random:#x}"


def tf32(bits: int, mode: str) -> int:
    """An f32 with ten bits of fraction."""
    cut = {"rz": 0, "rna": 0x1000, "rn": 0xFFF + (bits >> 13 & 1)}[mode]
    return bits + cut & 0xFFFF_E000


@pytest.mark.parametrize("mode", ["rn", "rz", "rna"])
def test_tf32(mode: str, rng: np.random.Generator) -> None:
    a = floats(rng, F32, 1000)
    got = run(f"cvt.{mode}.tf32.f32 {{d}}, {{0}};", "b32", ("f32", a))
    assert got.tolist() == [0x7FFF_FFFF if exact.is_nan(int(x), F32) else tf32(int(x), mode) for x in a]


# ── formats of eight bits and fewer ─────────────────────────────────────────────────────

SMALL = {
    # format: NumPy's type, greatest number, NaN's code
    "e4m3": (ml_dtypes.float8_e4m3fn, 0x7E, 0x7F),
    "e5m2": (ml_dtypes.float8_e5m2, 0x7B, 0x7F),
    "e2m3": (ml_dtypes.float6_e2m3fn, 0x1F, 0x1F),
    "e3m2": (ml_dtypes.float6_e3m2fn, 0x1F, 0x1F),
    "e2m1": (ml_dtypes.float4_e2m1fn, 0x07, 0x07),
}
WIDTH = {"e4m3": 8, "e5m2": 8, "e2m3": 6, "e3m2": 6, "e2m1": 4}


def codes(x: np.ndarray, name: str) -> np.ndarray:
    """f32 bits as codes, to nearest even and limited; ml_dtypes does the rounding, and the limit is ours."""
    type, greatest, nan = SMALL[name]
    values = x.view(np.float32)
    nans = np.isnan(values)
    limit = float(np.array(greatest, np.uint8).view(type))
    code = np.clip(np.where(nans, 0, values), -limit, limit).astype(type).view(np.uint8).astype(int) & (1 << WIDTH[name]) - 1
    return np.where(nans, nan, code)


def sample(rng: np.random.Generator, count: int) -> np.ndarray:
    """f32 bits in and about the ranges of the small formats, ties among them."""
    values = (rng.choice([-1, 1], count) * np.exp2(rng.uniform(-20, 20, count))).astype(np.float32).view(np.uint32)
    grid = (rng.integers(-512, 513, count) / 64.0).astype(np.float32).view(np.uint32)
    awkward = rng.choice(np.array(exact.interesting(F32), np.uint32), count)
    kind = rng.integers(0, 3, count)
    return np.select([kind == 0, kind == 1], [values, grid], awkward)


@pytest.mark.parametrize("name", SMALL)
def test_f32_to_small(name: str, rng: np.random.Generator) -> None:
    a, b = sample(rng, 1000), sample(rng, 1000)
    size, register = (4, "b8") if name == "e2m1" else (8, "b16")
    got = run(f"cvt.rn.satfinite.{name}x2.f32 {{d}}, {{0}}, {{1}};", register, ("f32", a), ("f32", b))
    assert got.tolist() == (codes(a, name) << size | codes(b, name)).tolist()


@pytest.mark.parametrize("name", SMALL)
def test_halves_to_small_and_relu(name: str, rng: np.random.Generator) -> None:
    with np.errstate(all="ignore"):
        a = sample(rng, 1000).view(np.float32).astype(np.float16)
    size, register = (4, "b8") if name == "e2m1" else (8, "b16")
    packed = a[:500].view(np.uint16).astype(np.uint32) << np.uint32(16) | a[500:].view(np.uint16)
    got = run(f"cvt.rn.satfinite.relu.{name}x2.f16x2 {{d}}, {{0}};", register, ("b32", packed))
    wide = a.astype(np.float32)
    code = codes(np.where(np.signbit(wide) & ~np.isnan(wide), np.float32(0), wide).view(np.uint32), name)
    assert got.tolist() == (code[:500] << size | code[500:]).tolist()


@pytest.mark.parametrize("half", ["f16", "bf16"])
@pytest.mark.parametrize("name", SMALL)
def test_every_small_number_widens(name: str, half: str) -> None:
    type, bits = SMALL[name][0], WIDTH[name]
    every = np.arange(1 << bits, dtype=np.uint8)
    size, register = (4, "b8") if name == "e2m1" else (8, "b16")
    packed = every.astype(np.uint16) | every[::-1].astype(np.uint16) << np.uint16(size)
    got = run(f"cvt.rn.{half}x2.{name}x2 {{d}}, {{0}};", "b32", (register, packed))
    target = np.float16 if half == "f16" else ml_dtypes.bfloat16
    want = every.view(type).astype(np.float32).astype(target)
    word = np.where(np.isnan(want.astype(np.float32)), 0x7FFF, want.view(np.uint16)).astype(np.uint32)
    assert got.tolist() == (word | word[::-1] << np.uint32(16)).tolist()


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("name", SMALL)
def test_four_small_numbers_rounded_at_random(name: str, relu: bool, rng: np.random.Generator) -> None:
    """PTX 9.7.9.21: the upper half of the random bits is for the first two; of e2m1, the upper bytes of both halves are."""
    columns = [sample(rng, 400) for _ in range(4)]
    r = random_halves(rng, 400)
    size, register = (4, "b16") if name == "e2m1" else (8, "b32")
    text = f"cvt.rs{'.relu' * relu}.satfinite.{name}x4.f32 {{d}}, {{{{{{0}}, {{1}}, {{2}}, {{3}}}}}}, {{4}};"
    text = text.replace("{{{", "{ {").replace("}}}", "} }")
    got = run(text, register, *[("f32", c) for c in columns], ("b32", r))
    for *numbers, random, g in zip(*(c.tolist() for c in columns), r.tolist(), got.tolist(), strict=True):
        low, high = random & 0xFFFF, random >> 16
        bits = [high & 0xFF00, low & 0xFF00, (high & 0xFF) << 8, (low & 0xFF) << 8] if size == 4 else [high, high, low, low]
        want = 0
        for x, n in zip(numbers, bits, strict=True):
            want = want << size | at_random(x, name, n, relu=relu)
        assert g == want, f"{[hex(x) for x in numbers]}, {random:#x}"


def test_scale_factors() -> None:
    """ue8m0: powers of two, rounded to zero or up; NaN is 0xff."""
    table = {
        # f32: rz, rp
        1.0: (127, 127), 1.5: (127, 128), 2.0**127: (254, 254), 3.0e38: (254, 254), 2.0**-126: (1, 1),
        2.0**-127: (0, 0), 1.5 * 2.0**-127: (0, 1), 0.0: (0, 0), math.inf: (254, 254), math.nan: (255, 255),
    }  # fmt: skip
    a = np.array(list(table), np.float32).view(np.uint32)
    for n, mode in enumerate(("rz", "rp")):
        got = run(f"cvt.{mode}.satfinite.ue8m0x2.f32 {{d}}, {{0}}, {{0}};", "b16", ("f32", a))
        assert got.tolist() == [w[n] << 8 | w[n] for w in table.values()]
    every = np.arange(256, dtype=np.uint16)
    got = run("cvt.rn.bf16x2.ue8m0x2 {d}, {0};", "b32", ("b16", every))
    want = every.astype(np.uint8).view(ml_dtypes.float8_e8m0fnu).astype(np.float32)
    assert (got & np.uint32(0xFFFF)).tolist()[:255] == (want[:255].view(np.uint32) >> np.uint32(16)).tolist()
    assert got[255] & 0xFFFF == 0x7FFF


def test_fixed_point() -> None:
    """s2f6: two bits before the point and six after, limited; with scale factors."""
    table = {0.0: 0, 1.0: 64, -1.0: 192, 0.0078125: 0, 0.0234375: 2, 1.99: 127, 5.0: 127, -5.0: 128, math.nan: 127}
    a = np.array(list(table), np.float32).view(np.uint32)
    got = run("cvt.rn.satfinite.s2f6x2.f32 {d}, {0}, {0};", "b16", ("f32", a))
    assert got.tolist() == [w << 8 | w for w in table.values()]
    scales = np.full(len(a), 128 << 8 | 127, np.uint16)
    got = run("cvt.rn.satfinite.scaled::n2::ue8m0.s2f6x2.f32 {d}, {0}, {0}, {1};", "b16", ("f32", a), ("b16", scales))
    assert got.tolist()[1:3] == [32 << 8 | 64, 224 << 8 | 192]
    got = run("cvt.rn.bf16x2.s2f6x2 {d}, {0};", "b32", ("b16", np.array([0xC040], np.uint16)))
    assert got.tolist() == [0xBF80_3F80]


def test_pack() -> None:
    """PTX 9.7.9.22: the first becomes the upper one; the rest comes from `c`."""
    a, b = np.array([70000, -5, 3], np.int32), np.array([-70000, 5, 300], np.int32)
    words = ("s32", a.view(np.uint32)), ("s32", b.view(np.uint32))
    got = run("cvt.pack.sat.s16.s32 {d}, {0}, {1};", "u32", *words)
    assert got.tolist() == [0x7FFF_8000, 0xFFFB_0005, 0x0003_012C]
    c = ("b32", np.full(3, 0x1234_5678, np.uint32))
    got = run("cvt.pack.sat.u8.s32.b32 {d}, {0}, {1}, {2};", "u32", *words, c)
    assert got.tolist() == [0x5678_FF00, 0x5678_0005, 0x5678_03FF]
    got = run("cvt.pack.sat.s2.s32.b32 {d}, {0}, {1}, {2};", "u32", *words, c)
    assert got.tolist() == [0x2345_6786, 0x2345_6789, 0x2345_6785]
