"""The floating-point kernels of the corpus: halves, fp8 and smaller, conversions, rounding, libdevice, complex numbers.

What the ISA or CUDA defines exactly is compared exactly; of libdevice the CUDA C++ Programming Guide gives errors in
ulp (Mathematical Functions Appendix), which are the bounds here.
"""

from __future__ import annotations

import cmath
import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from modules import cases, run, signed

F16, F32, F64 = np.float16, np.float32, np.float64


def fast(kernel) -> bool:
    """Was it compiled with -use_fast_math?"""
    return "sin.approx.ftz.f32" in kernel.module.programs[0].source.text


def ulps(got: float, expected: float, digits: int) -> float:
    """How far a result is from the true one, in units of the last place of that."""
    if math.isnan(expected) or math.isinf(expected):
        return 0.0 if math.isnan(got) == math.isnan(expected) and (math.isnan(got) or got == expected) else math.inf
    unit = math.ldexp(1, max(math.frexp(expected)[1] - digits, {8: -133, 11: -24, 24: -149, 53: -1074}[digits]))
    return abs(got - expected) / unit


def nan_where_undefined(function, *x: float) -> float:
    """A function of `math` as IEEE 754 wants it."""
    try:
        return function(*x)
    except ValueError:
        return math.nan


# ── rounding, exactly ───────────────────────────────────────────────────────────────────


def rounded(value: Fraction, digits: int, mode: str = "rn") -> Fraction:
    """A number to so many binary digits, its exponent unbounded."""
    if not value:
        return value
    exponent = abs(value.numerator).bit_length() - value.denominator.bit_length()
    if abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** (exponent - digits + 1)
    whole, rest = divmod(value / unit, 1)
    if mode == "rn":
        up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2)
    else:
        up = bool(rest) and (mode == "rp" or (mode == "rz" and value < 0))
    return (whole + up) * unit


def root(value: Fraction, digits: int, mode: str = "rn") -> Fraction:
    """The square root to so many binary digits."""
    shift = 2 * digits + 16 - (value.numerator.bit_length() - value.denominator.bit_length()) // 2
    scaled = value * Fraction(4) ** shift
    whole = math.isqrt(math.floor(scaled))
    sticky = whole * whole != scaled  # it lies above; half a unit says so
    return rounded(Fraction(2 * whole + sticky) / Fraction(2) ** (shift + 1), digits, mode)


def rounding(kernel, rng):
    """`__fadd_rn/rz/ru/rd`, `__fmul_`, `__fmaf_`, `__fdiv_`, `__frcp_`, `__fsqrt_`, `__frsqrt_rn` and those of f64.

    Then the fast intrinsics, division, square roots, fmod and remainder, within their bounds.
    """
    for _ in range(4):
        f, d = (rng.random(16) + 0.5).astype(F32), rng.random(8) + 0.5
        f[:2] /= 12  # the next numbers grow from these
        f[7] = -1.5
        got_f, got_d = f.copy(), d.copy()
        kernel.launch(1, 1, [got_f, got_d])

        def r(value, mode="rn"):
            return rounded(value, 24, mode)

        x = [Fraction(float(v)) for v in f]
        total = Fraction(0)
        for n, mode in enumerate(("rn", "rz", "rp", "rm")):
            total = r(x[0] + x[1], mode) if not n else r(total + r(x[0] + x[1], mode))
        x[0] = total
        x[1] = r(r(x[0] * x[2], "rz") * r(x[0] * x[2], "rp"))
        x[2], old = r(r(x[0] * x[3] + x[4], "rm") + r(x[1] * x[2] + x[3], "rp")), x[3]
        assert old == Fraction(float(f[3]))
        x[3] = r(r(r(x[1] / x[2]) + r(x[1] / x[2], "rz")) + r(1 / x[4], "rp"))
        x[4] = r(r(root(x[0], 24) + root(x[0], 24, "rm")) + root(1 / x[3], 24))
        assert [Fraction(float(v)) for v in got_f[:5]] == x[:5]

        def q(value, mode="rn"):
            return rounded(value, 53, mode)

        y = [Fraction(float(v)) for v in d]
        total = q(q(y[0] + y[1], "rp") + q(y[0] * y[1], "rm"))
        total = q(total + q(y[1] * y[2] + y[3], "rz"))
        total = q(total + q(y[1] / y[2]))
        total = q(total + root(y[3], 53, "rp"))
        total = q(total + q(1 / y[2], "rm"))
        assert Fraction(float(got_d[0])) == total

        _, f1, f2, f3, f4, f5, f6 = (float(v) for v in got_f[:7])
        terms = [f1 / f2, math.sin(f1), math.cos(f1), math.exp(f2), math.log(f3), f1**f2, math.tan(f4), 10**f5, math.log2(f6)]
        slope = 1 + math.tan(f4) ** 2  # of the tangent, whose sine and cosine are off by 2^-20.9
        error = abs(float(got_f[9]) - sum(terms))
        assert error < 2e-5 * sum(map(abs, terms)) + 2e-6 * slope
        np.testing.assert_allclose(got_f[10], f3 / f4 + math.sqrt(f5) + 1 / math.sqrt(f6), rtol=1e-6)
        exact = math.fmod(f1, f2) + math.copysign(f1, f2) + math.remainder(f3, f4) + 1  # signbit(f[7])
        np.testing.assert_allclose(got_f[12], exact, rtol=1e-6, atol=1e-6)


# ── half and bfloat16 ───────────────────────────────────────────────────────────────────


def half_fma(a, b, c) -> np.ndarray:
    """Exact in f64 before it is rounded once, for these operands."""
    return (np.asarray(a, F64) * np.asarray(b, F64) + np.asarray(c, F64)).astype(F16)


def half_ops(kernel, rng):
    """The operators and functions of `cuda_fp16.h`."""
    for _ in range(5):
        h, h2 = (rng.random(16) * 2 + 0.25).astype(F16), (rng.random(48) * 2 + 0.25).astype(F16)
        h2[2], h2[4] = h2[4], h2[2]
        h2[5] = h2[3]  # equal elements for the comparison
        f = np.zeros(4, F32)
        got, got2, got_f = h.copy(), h2.copy(), f.copy()
        kernel.launch(1, 1, [got, got2, got_f])
        a, b = h[0], h[1]
        assert got[0] == half_fma(a, b, a + b * (a - b))
        product = half_fma(h2[:2], h2[2:4], np.maximum(h2[:2], h2[4:6]))
        np.testing.assert_array_equal(got2[:2], product)
        x, y = float(a), float(b)
        functions = math.exp(x) + math.sqrt(y) + math.sin(x) + math.tanh(x) + 1 / x
        assert ulps(float(got_f[0]), functions, 11) < 4  # five halves, each to an ulp
        for result, argument in zip(got2[6:8], product, strict=True):
            assert ulps(float(result), math.log2(float(argument)), 11) <= 1.5
        truncated = rounded(Fraction(float(got_f[0])), 11, "rz")
        assert Fraction(float(got[5])) == truncated
        assert got_f[2] == np.rint(x) + (a < b) + math.floor(y)
        assert got[9] == a
        assert ulps(float(got[10]), x / y, 11) <= 1
        assert got[11] == half_fma(a, b, a)
        assert got[12] == 0  # the thread
        assert got[13] == F16(got_f[0])
        assert got[14] == np.rint(a)
        np.testing.assert_array_equal(got2[40:42], np.clip(h2[2:4] + h2[4:6], 0, 1))
        np.testing.assert_array_equal(got2[42:44], (h2[2:4] == h2[4:6]).astype(F16))


def brain(values) -> np.ndarray:
    return np.asarray(values).astype(ml_dtypes.bfloat16)


def brain_fma(a, b, c) -> np.ndarray:
    """Exact, then rounded once."""
    exact = [Fraction(x) * Fraction(y) + Fraction(z) for x, y, z in zip(a, b, c, strict=True)]
    return brain([float(rounded(value, 8)) for value in exact])


def bf16_ops(kernel, rng):
    """The operators and functions of `cuda_bf16.h`."""
    for _ in range(5):
        h, h2 = brain(rng.random(16) + 0.25), brain(rng.random(16) + 0.25)
        h[3] = brain(rng.integers(2, 9) + 0.75)
        f = (rng.random(8) + 0.5).astype(F32)
        got, got2, got_f = h.copy(), h2.copy(), f.copy()
        kernel.launch(1, 1, [got.view(np.uint16), got2.view(np.uint16), got_f])
        wide, wide2 = h.astype(F64), h2.astype(F64)
        h[0] = brain_fma(wide[:1], wide[1:2], wide[2:3])[0]
        h2[:2] = brain_fma(wide2[:2], wide2[2:4], wide2[4:6])
        power = float(got_f[0]) - float(h[0])  # bf16(2^x) after ex2.approx
        assert abs(power / 2.0 ** float(h[0]) - 1) < 2.0**-8
        f[0] = got_f[0]
        h[4] = brain(f[0])
        h2[8:10] = brain(f[:2])
        h[7], h[8] = min(h[3], h[4]), max(h[3], h[4])
        h[9] = 0  # the thread
        assert ulps(float(got[10]), 1 / math.sqrt(float(h[2])), 8) < 0.51  # rsqrt.approx, and a rounding
        h[10] = got[10]
        f[5] = math.trunc(float(h[3]))
        np.testing.assert_array_equal(got.view(np.uint16), h.view(np.uint16))
        np.testing.assert_array_equal(got2.view(np.uint16), h2.view(np.uint16))
        np.testing.assert_array_equal(got_f, f)


# ── conversions ─────────────────────────────────────────────────────────────────────────

E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
E3M2, E2M1 = ml_dtypes.float6_e3m2fn, ml_dtypes.float4_e2m1fn


def encode(values, dtype) -> np.ndarray:
    """Numbers in a small format, as bits: to nearest even, what is too large to the largest."""
    limit = float(ml_dtypes.finfo(dtype).max)
    return np.clip(np.asarray(values, F32), -limit, limit).astype(dtype).view(np.uint8)


def decode(bits, dtype) -> np.ndarray:
    return np.asarray(bits, np.uint8).view(dtype).astype(F32)


def fp8_cvt(kernel, rng):
    """`__nv_fp8_e4m3`, `__nv_fp8_e5m2`, `__nv_fp8x4_e4m3`, `__nv_fp4x2_e2m1`, `__nv_fp6_e3m2`, `__nv_fp8_e8m0`."""
    for scale in (1e-9, 0.01, 0.3, 1, 5, 40, 600, 1e6):
        f = (rng.standard_normal(12) * scale).astype(F32)
        narrow = [rng.integers(0, 120, 8).astype(np.uint8) for _ in range(2)]
        half, four = np.zeros(4, F16), (rng.standard_normal(8) * scale).astype(F32)
        words = rng.integers(0, 120, 8).astype(np.uint8)
        fp4, fp6 = rng.integers(0, 256, 4).astype(np.uint8), rng.integers(0, 64, 4).astype(np.uint8)
        power = np.zeros(4, np.uint8)
        got = f.copy(), *(n.copy() for n in narrow), half, words.copy(), four.copy(), fp4.copy(), fp6.copy(), power
        got_f, e4, e5, _, got_words, got_four, got_fp4, got_fp6, _ = got
        kernel.launch(1, 1, list(got))
        assert e4[0] == encode(f[:1], E4M3)[0]
        assert e5[0] == encode(f[:1], E5M2)[0]
        f[1] = decode(e4[2:3], E4M3)[0] + decode(e5[3:4], E5M2)[0]
        assert got_f[1] == f[1]
        assert half[0] == decode(e4[:1], E4M3)[0]
        assert got_words[:4].tolist() == encode(four[:4], E4M3).tolist()
        assert got_four[4:].tolist() == decode(words[4:], E4M3).tolist()
        low, high = encode(f[:2], E2M1) & 15
        assert got_fp4[0] == low | high << 4
        assert got_fp6[0] & 63 == encode(f[:1], E3M2)[0] & 63
        assert got_f[7] == decode(fp6[3:4], E3M2)[0]
        assert got_f[8] == decode([fp4[3] & 15], E2M1)[0] + decode([fp4[3] >> 4], E2M1)[0]
        # e8m0: 2^(bits - 127), the next power of two that is not less
        assert power[0] == math.ceil(math.log2(abs(float(f[0])))) + 127


def cvts(kernel, rng):
    """Conversions between integers and floats, with every rounding."""
    for x, y in ((3.5, -2.5), (-7.25, 1e9 + 0.5), (2.5, 12345.678), (0.75, -32769.5), (200.125, 0.0), (-0.5, 4e4)):
        d, f = np.array([y, 0, 0, 0]), np.array([x, *[0] * 7], F32)
        i, s64 = np.zeros(10, np.int32), np.zeros(1, np.int64)
        c, s, u64 = np.array([1, 2, 3, 4, 200], np.uint8), np.zeros(1, np.int16), np.zeros(4, np.uint64)
        u64[0] = (1 << 63) + 12345
        i[9] = 77
        kernel.launch(1, 1, [d, f, i, s64, c, s, u64])
        near, cut, up, down = round(x), math.trunc(x), math.ceil(x), math.floor(x)
        assert i[:4].tolist() == [near, cut, up, down]
        assert s64[0] == round(y)
        assert u64[1] == max(up, 0)
        assert f[1] == near
        assert f[2] == float(rounded(Fraction((1 << 63) + 12345), 24, "rz"))
        assert d[1] == round(y)
        assert Fraction(float(f[3])) == rounded(Fraction(y), 24, "rz")
        assert c[0] == max(cut, 0) & 255
        assert s[0] == signed(math.trunc(y), 16)
        assert f[4] == c[0]
        assert d[2] == s[0]
        assert f.view(np.int32)[5] == i[0]
        assert d.view(np.int32)[[6, 7]].tolist() == [i[1], i[0]]
        assert i[5] == d.view(np.int32)[1]
        assert f[6] == near + cut + up + down + math.trunc(x + math.copysign(0.5, x))
        assert f[7] == min(max(x, 0), 1)
        assert u64[3] == max(math.trunc(y), 0)
        assert i[9] == -56


# ── libdevice ───────────────────────────────────────────────────────────────────────────


def integral(function, low: float, high: float, nodes: int = 100) -> float:
    """That of a smooth function, by Gauss and Legendre."""
    x, weight = np.polynomial.legendre.leggauss(nodes)
    return math.fsum(weight * function((x + 1) / 2 * (high - low) + low)) * (high - low) / 2


def mean(function) -> float:
    """That of a function with period 2 pi."""
    return math.fsum(function(np.arange(128) * (math.pi / 64))) / 128


def bessel_j(n: int, x: float) -> float:
    """DLMF 10.9.2."""
    return mean(lambda t: np.cos(x * np.sin(t) - n * t))


def bessel_y(n: int, x: float) -> float:
    """DLMF 10.9.7."""
    end = math.asinh(800 / x)
    oscillating = integral(lambda t: np.sin(x * np.sin(t) - n * t), 0, math.pi)
    decaying = integral(lambda t: (np.exp(n * t) + (-1) ** n * np.exp(-n * t)) * np.exp(-x * np.sinh(t)), 0, end)
    return (oscillating - decaying) / math.pi


def bessel_i0(x: float) -> float:
    """DLMF 10.32.1."""
    return mean(lambda t: np.exp(x * np.cos(t)))


def normal(x: float) -> float:
    """The distribution function of the normal distribution."""
    return math.erfc(-x / math.sqrt(2)) / 2


def inverse(function, low: float, high: float):
    """The inverse of a monotonous function, by bisection; NaN where there is none."""

    def find(y: float) -> float:
        a, b = low, high
        rising = function(b) > function(a)
        if not min(function(a), function(b)) < y < max(function(a), function(b)):
            return math.nan
        for _ in range(200):
            middle = (a + b) / 2
            a, b = (middle, b) if (function(middle) < y) == rising else (a, middle)
        return (a + b) / 2

    return find


def half_away(x: float) -> float:
    return math.copysign(math.floor(abs(x) + 0.5), x)


ONE = {  # one argument, with the errors in ulp of f64 and of f32
    "sin": (math.sin, 2, 2),
    "cos": (math.cos, 2, 2),
    "tan": (math.tan, 2, 4),
    "asin": (math.asin, 2, 4),
    "acos": (math.acos, 2, 3),
    "atan": (math.atan, 2, 2),
    "sinh": (math.sinh, 2, 3),
    "cosh": (math.cosh, 1, 2),
    "tanh": (math.tanh, 1, 2),
    "asinh": (math.asinh, 3, 3),
    "acosh": (math.acosh, 3, 4),
    "atanh": (math.atanh, 2, 3),
    "exp": (math.exp, 1, 2),
    "exp2": (lambda x: 2.0**x, 1, 2),
    "exp10": (lambda x: 10.0**x, 1, 2),
    "expm1": (math.expm1, 1, 1),
    "log": (math.log, 1, 1),
    "log2": (math.log2, 1, 1),
    "log10": (math.log10, 1, 2),
    "log1p": (math.log1p, 1, 1),
    "sqrt": (math.sqrt, 0, 0),
    "cbrt": (lambda x: math.copysign(abs(x) ** (1 / 3), x), 1, 1),
    "rsqrt": (lambda x: 1 / math.sqrt(x), 1, 2),
    "rcbrt": (lambda x: math.copysign(abs(x) ** (-1 / 3), x), 1, 1),
    "erf": (math.erf, 2, 2),
    "erfc": (math.erfc, 5, 4),
    "erfinv": (inverse(math.erf, -6, 6), 8, 3),
    "erfcinv": (inverse(math.erfc, -6, 28), 10, 4),
    "erfcx": (lambda x: math.exp(x * x) * math.erfc(x), 4, 4),
    "tgamma": (math.gamma, 10, 5),
    "lgamma": (math.lgamma, 8, 8),
    "j0": (lambda x: bessel_j(0, x), 16, 9),
    "j1": (lambda x: bessel_j(1, x), 16, 9),
    "y0": (lambda x: bessel_y(0, x), 16, 9),
    "y1": (lambda x: bessel_y(1, x), 16, 9),
    "normcdf": (normal, 5, 5),
    "normcdfinv": (inverse(normal, -38, 8), 8, 5),
    "sinpi": (lambda x: math.sin(math.pi * math.fmod(x, 2)), 2, 1),
    "cospi": (lambda x: math.cos(math.pi * math.fmod(x, 2)), 2, 1),
    "logb": (lambda x: float(math.frexp(x)[1] - 1), 0, 0),
    "nearbyint": (lambda x: float(round(x)), 0, 0),
    "round": (half_away, 0, 0),
    "cyl_bessel_i0": (bessel_i0, 6, 6),
}
DMATH = """sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp exp2 exp10 expm1 log log2 log10 log1p
sqrt cbrt rsqrt rcbrt""".split()
DMATH2 = """erf erfc erfinv erfcinv erfcx tgamma lgamma j0 j1 y0 y1 normcdf normcdfinv sinpi cospi logb nearbyint
round cyl_bessel_i0""".split()
FMATH = """sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp exp2 exp10 expm1 log log2 log10 log1p cbrt
erf erfc erfinv tgamma lgamma j0 y1 normcdf sinpi""".split()

RESULTS = 100  # where the results begin
ARGUMENT = 20


def functions(kernel, names, x: float, dtype, *more, slack: float) -> None:
    """Each of the functions of x, within its ulps and what the reference itself may be off."""
    values = np.full(160, 1.5, dtype)
    values[ARGUMENT] = x
    kernel.launch(1, 1, [values, ARGUMENT, *more])
    digits = 53 if dtype is F64 else 24
    for n, name in enumerate(names):
        function, *bounds = ONE[name]
        expected = nan_where_undefined(function, float(values[ARGUMENT]))
        error = ulps(float(values[RESULTS + n]), expected, digits)
        assert error <= bounds[digits == 24] + slack, f"{name}({x}) is {values[RESULTS + n]!r}, not {expected!r}"


def dmath(kernel, rng):
    """Of f64; large arguments need Payne and Hanek's reduction."""
    for x in (0.3, 0.72, -0.5, 1.01, 4.25, 1e-3):
        functions(kernel, DMATH, x, F64, slack=2)
    for x in (1e5, 1e9 + 0.25, 1e22):
        functions(kernel, DMATH[:3], x, F64, slack=1)


def fmath(kernel, rng):
    """Of f32."""
    if fast(kernel):
        values = np.full(160, 1.5, F32)
        values[ARGUMENT] = 0.7
        kernel.launch(1, 1, [values, ARGUMENT, np.zeros(1, np.int32)])
        expected = [nan_where_undefined(ONE[name][0], float(F32(0.7))) for name in FMATH]
        np.testing.assert_allclose(values[RESULTS : RESULTS + len(FMATH)], expected, rtol=5e-6, atol=1e-6)
        return
    for x in (0.3, 0.72, 1.01, 4.25, 1e-3):
        functions(kernel, FMATH, x, F32, np.zeros(1, np.int32), slack=0.55)
    for x in (2e5, 1e10, 1e22):
        functions(kernel, FMATH[:3], x, F32, np.zeros(1, np.int32), slack=0.55)
    f, i = (rng.random(160) + 0.5).astype(F32), np.array([3], np.int32)
    got = f.copy()
    kernel.launch(1, 1, [got, ARGUMENT, i])
    f1, f2, f3, f4, f5 = (float(v) for v in f[1:6])
    expected = f2**f3 + math.atan2(f4, f5) + math.hypot(f3, f4) + math.ldexp(f1, 3) + math.frexp(f2)[0]
    np.testing.assert_allclose(got[1], expected + 1 / math.hypot(f1, f2), rtol=1e-6)
    assert i[0] == math.frexp(f2)[1]


def dmath2(kernel, rng):
    """The special functions, and those of several arguments or results."""
    for x in (0.3, 0.72, 1.6, 2.9):
        functions(kernel, DMATH2, x, F64, np.zeros(1, np.int32), slack=24)
    d, i = rng.random(160) + 0.5, np.array([-2], np.int32)
    d[9] = 6.75
    got = d.copy()
    kernel.launch(1, 1, [got, ARGUMENT, i])
    x, y, z, v, w = d[1:6].tolist()
    expected = y**z + math.atan2(v, w) + math.fmod(x, y) + math.hypot(z, v) + math.ldexp(x, -2) + math.frexp(y)[0]
    expected += bessel_j(3, x) + math.remainder(x, y) + max(x - y, 0) + math.hypot(x, y, z)
    expected += math.frexp(z)[1] - 1 + math.ldexp(x, 4) + math.nextafter(x, y)
    np.testing.assert_allclose(got[1], expected, rtol=1e-14)
    assert i[0] % 8 == round(Fraction(x) / Fraction(y)) % 8
    np.testing.assert_allclose(got[8], math.sin(d[7]) * math.cos(d[7]) + 0.75, rtol=1e-15)
    assert got[0] == 6


def cplx(kernel, rng):
    """`cuComplex.h` and `cuda::std::complex`."""
    for _ in range(3):
        d, z = (rng.standard_normal(8) + 1j * rng.standard_normal(8) for _ in "dz")
        f = rng.standard_normal(8).astype(F32)
        got_d, got_f, got_z = d.copy(), f.copy(), z.copy()
        kernel.launch(1, 1, [got_d.view(F64), got_f, got_z.view(F64)])
        np.testing.assert_allclose(got_d[0], d[0] * d[1] / (d[0] + d[2].conjugate()), rtol=1e-13)
        np.testing.assert_array_equal(got_d[1:], d[1:])
        np.testing.assert_allclose(got_f[0], math.hypot(f[0], f[1]), rtol=1e-6)
        expected = cmath.exp(z[0]) * cmath.sqrt(z[1]) + complex(z[0]) ** complex(z[2])
        np.testing.assert_allclose(got_z[0], expected, rtol=1e-13)


REFERENCES = {
    f.__name__: f for f in (half_ops, bf16_ops, fp8_cvt, cvts, rounding, dmath, dmath2, fmath, cplx)
}  # fmt: skip


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("name", "kernel", "engines"), cases(r"nvcc/fp_.*", REFERENCES))
def test_fp(name, kernel, engines, rng):
    run(name, kernel, engines, REFERENCES, rng, bits=True)
