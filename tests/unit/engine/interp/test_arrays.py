"""The primitives of the interpreter against Python's integers and rationals: for arrays, scalars, and mixtures."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from ptxvm.algebra.types import b128, bf16, f16, f16x2, f32, f64, pred, s8, s32, u4, u32
from ptxvm.engine import fenv, fused
from ptxvm.engine.interp import arrays

MODES = ("rn", "rz", "rm", "rp", "odd")
INTS = [np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)]
FORMATS = {
    # dtype: precision, exponent of the least number, greatest number
    arrays.F16: (11, -24, 65504.0),
    arrays.BF16: (8, -133, float(ml_dtypes.finfo("bfloat16").max)),
    arrays.F32: (24, -149, float(np.finfo("f4").max)),
    arrays.F64: (53, -1074, float(np.finfo("f8").max)),
}


@pytest.fixture(autouse=True)
def quiet():
    """The functions are quiet only where the caller is."""
    with np.errstate(all="ignore"):
        yield


@pytest.fixture(params=["modes of the host", "rounding in software"])
def both_roundings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Directed rounding as this host has it, and as a host without modes has it."""
    if request.param == "rounding in software":
        monkeypatch.setattr(fenv, "HAS_MODES", False)


def nearest(x: Fraction, format: tuple[int, int, float], mode: str) -> float:
    """The number of a format that `x`, not zero, rounds to."""
    precision, least, greatest = format
    size, below = abs(x), x < 0
    exponent = max(size.numerator.bit_length() - size.denominator.bit_length() - precision, least)
    exponent += size >= Fraction(2) ** (exponent + precision)
    whole, rest = divmod(size / Fraction(2) ** exponent, 1)
    up = {
        "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1),
        "rz": False,
        "rm": below and rest > 0,
        "rp": not below and rest > 0,
        "odd": rest > 0 and whole % 2 == 0,
    }[mode]
    value = (whole + up) * Fraction(2) ** exponent
    if value > Fraction(greatest):
        value = math.inf if mode in ("rn", "rm" if below else "rp") else greatest
    return -float(value) if below else float(value)


def same(x: object, y: object) -> bool:
    """The same bits."""
    return x.tobytes() == y.tobytes()


# ── integers ────────────────────────────────────────────────────────────────────────────


def quotient(x: int, y: int) -> int:
    """C's quotient; all ones for a divisor of zero."""
    return -1 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


BINARY: dict[str, tuple[Callable, Callable[[int, int, int], int]]] = {
    "div": (arrays.div, lambda x, y, bits: quotient(x, y)),
    "rem": (arrays.rem, lambda x, y, bits: x - quotient(x, y) * y if y else x),
    "mul_hi": (arrays.mul_hi, lambda x, y, bits: x * y >> bits),
    "shl": (arrays.shl, lambda x, y, bits: x << min(y % (1 << bits), bits)),
    "shr": (arrays.shr, lambda x, y, bits: x >> min(y % (1 << bits), bits)),
}
UNARY: dict[str, tuple[Callable, Callable[[int, int], int]]] = {
    "popc": (arrays.popc, lambda x, bits: x.bit_count()),
    "clz": (arrays.clz, lambda x, bits: bits - x.bit_length()),
    "reverse": (arrays.reverse, lambda x, bits: int(f"{x:0{bits}b}"[::-1], 2)),
}


def integers(rng: np.random.Generator, dtype: np.dtype, count: int) -> np.ndarray:
    """Random integers of every size, the least, the greatest, and those about zero."""
    random = (
        rng.integers(0, 1 << 63, count, dtype=np.uint64) * np.uint64(2) >> rng.integers(0, 64, count).astype(np.uint64)
    ).astype(dtype)
    limits = np.iinfo(dtype)
    edges = np.array([limits.min, limits.max, 0, 1, 2, 3, dtype.itemsize * 8 - 1, dtype.itemsize * 8], dtype)
    return np.where(rng.random(count) < 0.5, random, rng.choice(np.append(edges, ~edges), count))


@pytest.mark.parametrize("dtype", INTS, ids=str)
@pytest.mark.parametrize("op", BINARY)
def test_binary_integers(op: str, dtype: np.dtype, rng: np.random.Generator) -> None:
    function, reference = BINARY[op]
    bits, mask = 8 * dtype.itemsize, (1 << 8 * dtype.itemsize) - 1
    a, b = integers(rng, dtype, 500), integers(rng, dtype, 500)
    got = function(a, b)
    assert got.dtype == dtype
    for x, y, g in zip(a, b, got, strict=True):
        alone = function(x, y)
        assert isinstance(alone, np.generic)
        assert alone.dtype == dtype
        assert int(g) & mask == int(alone) & mask == reference(int(x), int(y), bits) & mask, (x, y)
    for mixed in (function(a, b[3]), function(a[3], b)):
        assert mixed.dtype == dtype
        assert mixed[3] == got[3]


@pytest.mark.parametrize("dtype", INTS, ids=str)
@pytest.mark.parametrize("op", UNARY)
def test_unary_integers(op: str, dtype: np.dtype, rng: np.random.Generator) -> None:
    function, reference = UNARY[op]
    bits, mask = 8 * dtype.itemsize, (1 << 8 * dtype.itemsize) - 1
    every = np.arange(1 << bits).astype(dtype) if bits <= 16 else integers(rng, dtype, 1000)
    got = function(every)
    assert got.dtype == dtype
    for x, g in zip(every, got, strict=True):
        assert int(g) & mask == reference(int(x) & mask, bits) & mask
    assert isinstance(function(every[5]), np.generic)


# ── floats ──────────────────────────────────────────────────────────────────────────────


def floats(rng: np.random.Generator, dtype: np.dtype, count: int) -> np.ndarray:
    """Random bits, small integers, and numbers of like size."""
    random = rng.integers(0, 1 << 63, count, dtype=np.uint64).astype(f"u{dtype.itemsize}").view(dtype)
    small = rng.integers(-(2**12), 2**12, count).astype(dtype)
    near = (rng.standard_normal(count) * 2.0 ** rng.integers(-9, 9, count)).astype(dtype)
    least = (rng.standard_normal(count) * 2.0 ** (FORMATS[dtype][1] / 2 + rng.integers(-8, 8, count))).astype(dtype)
    kind = rng.integers(0, 4, count)
    return np.select([kind == 0, kind == 1, kind == 2], [random, small, near], least)


EXACT: dict[str, tuple[int, Callable[..., Fraction | None]]] = {
    "add": (2, lambda a, b: a + b),
    "sub": (2, lambda a, b: a - b),
    "mul": (2, lambda a, b: a * b),
    "div": (2, lambda a, b: a / b if b else None),
    "fma": (3, lambda a, b, c: a * b + c),
}


@pytest.mark.sampled(4)
@pytest.mark.usefixtures("both_roundings")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [arrays.F32, arrays.F64], ids=str)
@pytest.mark.parametrize("op", EXACT)
def test_arithmetic_is_rounded_once(op: str, dtype: np.dtype, mode: str, rng: np.random.Generator) -> None:
    arity, reference = EXACT[op]
    columns = [floats(rng, dtype, 500) for _ in range(arity)]
    cancel = rng.random(500) < 0.2
    columns[-1] = np.where(cancel, -columns[0] * (columns[1] if arity == 3 else 1), columns[-1]).astype(dtype)
    got = arrays.floating(op, mode, dtype, *columns)
    assert got.dtype == dtype
    for n, row in enumerate(zip(*columns, strict=True)):
        alone = arrays.floating(op, mode, dtype, *row)
        assert isinstance(alone, dtype.type)
        assert same(alone, got[n]) or np.isnan([alone, got[n]]).all()
        if not all(map(np.isfinite, row)):
            continue
        exact = reference(*(Fraction(float(x)) for x in row))
        if exact:
            assert nearest(exact, FORMATS[dtype], mode) == got[n], row
        elif exact is not None:
            assert got[n] == 0
            if op in ("add", "sub", "fma") and not all(x == 0 for x in row):
                assert np.signbit(got[n]) == (mode == "rm"), row


@pytest.mark.usefixtures("both_roundings")
@pytest.mark.parametrize("mode", MODES)
def test_sqrt_brackets_the_root(mode: str, rng: np.random.Generator) -> None:
    for dtype in (arrays.F32, arrays.F64):
        a = np.abs(floats(rng, dtype, 1000))
        got = arrays.floating("sqrt", mode, dtype, a)
        for x, r in zip(a, got, strict=True):
            if not np.isfinite(x):
                continue
            below = Fraction(float(r)) ** 2 <= Fraction(float(x))
            exact = Fraction(float(r)) ** 2 == Fraction(float(x))
            assert exact or {"rz": below, "rm": below, "rp": not below}.get(mode, True)
            neighbour = np.nextafter(r, dtype.type(np.inf if below else 0))
            assert exact or (Fraction(float(neighbour)) ** 2 > Fraction(float(x))) == below


@pytest.mark.usefixtures("both_roundings")
def test_fma_of_special_numbers() -> None:
    inf, nan, big = np.inf, np.nan, np.finfo("f8").max
    table = [
        (inf, 0.0, 1.0, nan), (inf, 1.0, -inf, nan), (inf, 2.0, 1.0, inf), (1.0, 2.0, -inf, -inf),
        (big, 2.0, -inf, -inf), (nan, 1.0, 1.0, nan), (0.0, 1.0, -0.0, 0.0), (-0.0, 1.0, -0.0, -0.0),
        (big, 2.0, -big, big), (big, big, -big, inf),
    ]  # fmt: skip
    for a, b, c, want in table:
        got = fused.fma_f64(*(np.array([x]) for x in (a, b, c)))[0]
        assert same(got, np.float64(want)) or np.isnan([got, want]).all(), (a, b, c)


def test_the_mode_is_put_back_and_belongs_to_the_thread() -> None:
    with pytest.raises(ZeroDivisionError):
        fenv.rounded("rp", lambda: 1 // 0)
    one, tiny = np.float64(1), np.float64(2.0**-60)
    assert one + tiny == 1
    with ThreadPoolExecutor(1) as others:
        assert others.submit(lambda: one + tiny).result() == 1
        here, there = fenv.rounded("rp", lambda: (one + tiny, others.submit(lambda: one + tiny).result()))
    assert here > there == 1


@pytest.mark.sampled(4)
@pytest.mark.usefixtures("both_roundings")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", FORMATS, ids=str)
@pytest.mark.parametrize("source", FORMATS, ids=str)
def test_ftof_rounds_once(source: np.dtype, target: np.dtype, mode: str, rng: np.random.Generator) -> None:
    if source.itemsize == 2:  # every one
        a = np.arange(1 << 16, dtype=np.uint16).view(source)
    else:
        a = floats(rng, source, 500)
        ties = (rng.integers(1, 1 << 11, 500) * 2 + 1) * 2.0 ** rng.integers(-40, 6, 500)  # halfway, or nearly, in f16
        a = np.where(rng.random(500) < 0.4, (ties * (1 + rng.integers(-1, 2, 500) * 2.0**-40)).astype(source), a)
    got = arrays.ftof(a, target, mode)
    assert got.dtype == target
    for n in range(0, len(a), 1 + 36 * (len(a) > 2000)):
        x, g, alone = float(a[n]), got[n], arrays.ftof(a[n], target, mode)
        assert isinstance(alone, np.generic)
        if math.isnan(x):
            assert np.isnan(float(g))
            continue
        assert same(alone, g)
        want = x if x == 0 or math.isinf(x) else nearest(Fraction(x), FORMATS[target], mode)
        assert want == float(g), x
        assert math.copysign(1, want) == math.copysign(1, float(g))


@pytest.mark.sampled(4)
@pytest.mark.usefixtures("both_roundings")
@pytest.mark.parametrize("mode", MODES[:4])
@pytest.mark.parametrize("target", FORMATS, ids=str)
@pytest.mark.parametrize("source", INTS, ids=str)
def test_itof_rounds_once(source: np.dtype, target: np.dtype, mode: str, rng: np.random.Generator) -> None:
    a = integers(rng, source, 400)
    got = arrays.itof(a, target, mode)
    assert got.dtype == target
    for x, g in zip(a, got, strict=True):
        assert float(g) == (nearest(Fraction(int(x)), FORMATS[target], mode) if x else 0.0), x
        assert same(arrays.itof(x, target, mode), g)


@pytest.mark.parametrize("source", FORMATS, ids=str)
@pytest.mark.parametrize("target", INTS, ids=str)
def test_ftoi_truncates_and_saturates(target: np.dtype, source: np.dtype, rng: np.random.Generator) -> None:
    ends = [s * 2.0**n + d for s in (1, -1) for n in (7, 8, 15, 16, 31, 32, 63, 64) for d in (-1, -0.5, 0, 0.5, 1)]
    special = [math.nan, math.inf, -math.inf, 0.0, -0.0, 0.99, -0.99, *ends]
    a = np.concatenate([np.array(special).astype(source), floats(rng, source, 600)])
    limits, got = np.iinfo(target), arrays.ftoi(a, target)
    assert got.dtype == target
    for x, g in zip(a, got, strict=True):
        v = float(x)
        want = 0 if math.isnan(v) else int(limits.max if v > limits.max else limits.min if v < limits.min else int(v))
        assert int(g) == want == int(arrays.ftoi(x, target)), v


def test_round_integral() -> None:
    a = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.4999])
    table = {
        "rni": [-2, -2, 0, 0, 2, 2, 0],
        "rzi": [-2, -1, 0, 0, 1, 2, 0],
        "rmi": [-3, -2, -1, 0, 1, 2, 0],
        "rpi": [-2, -1, 0, 1, 2, 3, 1],
    }
    for mode, want in table.items():
        for dtype in FORMATS:
            assert arrays.round_integral(mode, a.astype(dtype)).astype(float).tolist() == want
    assert np.signbit(arrays.round_integral("rni", np.float32(-0.25)))


# ── how values are held ─────────────────────────────────────────────────────────────────


def test_constants_have_the_type() -> None:
    assert same(arrays.const(u32, -1), np.uint32(0xFFFF_FFFF))
    assert same(arrays.const(s32, 0xFFFF_FFFF), np.int32(-1))
    assert same(arrays.const(s8, 0x180), np.int8(-128))
    assert same(arrays.const(u4, 0x1F), np.uint8(15))
    assert same(arrays.const(pred, 2), np.bool_(True))
    assert same(arrays.const(f16, 1.0), np.float16(1))
    assert same(arrays.const(bf16, 1.0), ml_dtypes.bfloat16(1))
    assert same(arrays.const(f32, 0.1), np.float32(0.1))
    assert same(arrays.const(f64, -0.0), np.float64(-0.0))
    assert same(arrays.const(f16x2, 0x3C003C00), np.uint32(0x3C003C00))
    assert arrays.const(b128, 3 << 64 | 5).item() == (5, 3)


def test_b128_is_two_words() -> None:
    a = np.array([(0x0123_4567_89AB_CDEF, 0x8000_0000_0000_0001), (5, 0)], arrays.B128)
    whole = [int(x["lo"]) | int(x["hi"]) << 64 for x in a]

    def joined(x: np.ndarray) -> list[int]:
        return [int(e["lo"]) | int(e["hi"]) << 64 for e in x]

    for n in (0, 1, 63, 64, 65, 127, 128, 300):
        by = arrays.const(b128, n)
        assert joined(arrays.b128_shl(a, by)) == [x << n & (1 << 128) - 1 for x in whole]
        assert joined(arrays.b128_shr(a, by)) == [x >> n for x in whole]
    assert joined(arrays.b128_logic("or", a, arrays.const(b128, 7))) == [x | 7 for x in whole]
    assert arrays.resize(a, np.dtype("u4")).tolist() == [0x89AB_CDEF, 5]
    assert joined(arrays.resize(np.array([-1, 2], np.int32), arrays.B128)) == [(1 << 128) - 1, 2]
    assert arrays.resize(np.uint64(9), arrays.B128).item() == (9, 0)


# ── the quicker derived operations ──────────────────────────────────────────────────────


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
def test_derived_operations_are_those_of_the_algebra(dtype: np.dtype, rng: np.random.Generator) -> None:
    from ptxvm.algebra.derived import floats as derived
    from ptxvm.algebra.types import Type
    from ptxvm.algebra.value import Value
    from ptxvm.engine.interp.eager import EAGER, ArrayAlgebra

    class Plain(ArrayAlgebra):
        """Without the replacements."""

        def __getattribute__(self, name: str) -> object:
            if name.startswith("derived_"):
                raise AttributeError(name)
            return super().__getattribute__(name)

    type = Type.named[{arrays.F16: "f16", arrays.BF16: "bf16", arrays.F32: "f32", arrays.F64: "f64"}[dtype]]
    bits = np.arange(1 << 16, dtype=np.uint16).view(dtype) if dtype.itemsize == 2 else floats(rng, dtype, 5000)
    for name in ("is_nan", "magnitude", "negate", "flush_subnormal", "canonical_nan", "clamp01", "relu"):
        function = getattr(derived, name)
        for a in (bits, bits[7], bits[:1]):
            assert same(function(Value(EAGER, type, a)).raw, function(Value(Plain(), type, a)).raw), name
    shuffled = rng.permutation(bits)
    for name in ("minimum", "maximum"):
        function = getattr(derived, name)
        quick, plain = (function(Value(g, type, bits), Value(g, type, shuffled)).raw for g in (EAGER, Plain()))
        assert same(quick, plain), name
