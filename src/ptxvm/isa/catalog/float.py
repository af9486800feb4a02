"""Floating-point instructions (PTX 9.7.3)."""

from __future__ import annotations

from ptxvm.algebra.derived import approximations, elementary
from ptxvm.algebra.derived.floats import (
    absolute_value,
    canonical_nan,
    copy_sign,
    flush_subnormal,
    infinity_bits,
    is_nan,
    is_negative,
    magnitude,
    maximum,
    minimum,
    negate,
    with_nan,
)
from ptxvm.algebra.derived.packed import each
from ptxvm.algebra.derived.rounding import arithmetic, finish
from ptxvm.algebra.types import f32, f64
from ptxvm.algebra.value import select
from ptxvm.isa.access import has, no_address
from ptxvm.isa.exactness import ANGLES, BOUNDED, DIVISION, REFINED, REST, SHORTENED, SILICON
from ptxvm.isa.model import Problem, alu


def flushed(i, *operands):
    """The operands as `.ftz` has them, and sm_1x."""
    return [flush_subnormal(x) if i.flushes and x.type is f32 else x for x in operands]


def flusher(i):
    """What `.ftz` does to one f32; it is the default of a form that does not say how exact it is (before PTX 1.4)."""
    legacy = not {"approx", "full", "rnd"} & set(i.bound)
    return flush_subnormal if i.type is f32 and (i.flushes or legacy) else lambda x: x


def computed(i, op, *operands):
    """One correctly rounded operation on each element, with `.ftz` and `.sat` (nearest even is the default)."""
    return each(lambda *x: finish(i, arithmetic(op, i.rnd or "rn", *flushed(i, *x))), *operands)


# ── 9.7.3.1 to 9.7.3.2: properties and signs ────────────────────────────────────────────


@alu(
    """
    testp{.op}.type  p, a;
    .op = { .finite, .infinite, .number, .notanumber, .normal, .subnormal };
    .type = { .f32, .f64 };
    """,
    section="9.7.3.1",
    types="p: pred, a: type",
    needs={"": "PTX 2.0, sm_20"},
)
def testp(i, a):
    """Test a property of a number; zero counts as normal.  (ptxas takes it without a property: finite, here.)"""
    size, infinity, least_normal = magnitude(a), infinity_bits(a.type), 1 << (23 if a.type is f32 else 52)
    if i.op in ("number", "notanumber"):
        return a.eq(a) if i.op == "number" else is_nan(a)
    if i.op == "infinite":
        return size.eq(infinity)
    if i.op == "subnormal":
        return size.ne(0) & (size < least_normal)
    finite = size < infinity
    return finite & (size.eq(0) | (size >= least_normal)) if i.op == "normal" else finite


@alu(
    """
    copysign.type  d, a, b;
    .type = { .f32, .f64 };
    """,
    section="9.7.3.2",
    needs={"": "PTX 2.0, sm_20"},
)
def copysign(i, a, b):
    """Put the sign of `a` on the value of `b`."""
    return copy_sign(a, b)


# ── 9.7.3.3 to 9.7.3.8: arithmetic ──────────────────────────────────────────────────────

SUM = """
    OP{.rnd}{.ftz}{.sat}.f32  d, a, b;
    OP{.rnd}{.ftz}.f32x2      d, a, b;
    OP{.rnd}.f64              d, a, b;
    .rnd = { .rn, .rz, .rm, .rp };
    """
SUM_NEEDS = {"": "PTX 1.0", ".ftz": "PTX 1.4", ".f32x2": "PTX 8.6, sm_100", ".rm .rp": "sm_13"}


def single_sum_rounded_up_or_down(i):
    """Is it an f32 that is rounded to an infinity?"""
    return i.type is f32 and i.rnd in ("rm", "rp")


@alu(SUM.replace("OP", "add"), section="9.7.3.3", needs=SUM_NEEDS)
def add(i, a, b):
    """Add two numbers."""
    return computed(i, "add", a, b)


@alu(SUM.replace("OP", "sub"), section="9.7.3.4", needs=SUM_NEEDS)
def sub(i, a, b):
    """Subtract one number from another."""
    return computed(i, "sub", a, b)


@alu(SUM.replace("OP", "mul"), section="9.7.3.5", needs=SUM_NEEDS)
def mul(i, a, b):
    """Multiply two numbers."""
    return computed(i, "mul", a, b)


for _sum in (add, sub, mul):
    _sum.needs_when("sm_20")(single_sum_rounded_up_or_down)


@alu(
    """
    fma.rnd{.ftz}{.sat}.f32  d, a, b, c;
    fma.rnd{.ftz}.f32x2      d, a, b, c;
    fma.rnd.f64              d, a, b, c;
    .rnd = { .rn, .rz, .rm, .rp };
    """,
    section="9.7.3.6",
    needs={"": "PTX 1.4", ".f32": "PTX 2.0, sm_20", ".f32x2": "PTX 8.6, sm_100"},
)
def fma(i, a, b, c):
    """Multiply two numbers and add a third, rounded once."""
    return computed(i, "fma", a, b, c)


@alu(
    """
    mad{.rnd}{.ftz}{.sat}.f32  d, a, b, c;
    mad{.rnd}.f64              d, a, b, c;
    .rnd = { .rn, .rz, .rm, .rp };
    """,
    section="9.7.3.7",
    needs={"": "PTX 1.0", ".ftz": "PTX 1.4", ".rm .rp": "sm_13"},
)
def mad(i, a, b, c):
    """Multiply two numbers and add a third; the same as fma, for sm_1x too (as its code runs on all later devices)."""
    return computed(i, "fma", a, b, c)


@mad.rule("P1201")
def mad_says_how_it_rounds(i):
    """Mad has a rounding modifier: .f64 from PTX 1.4 on, .f32 for sm_20 and higher from PTX 3.2 on."""
    since, least = ((1, 4), 0) if i.type is f64 else ((3, 2), 20)
    if not i.rnd and i.version >= since and i.target.number >= least:
        return "Rounding modifier required for instruction 'mad'"
    return None


@mad.needs_when("PTX 2.0, sm_20")
def mad_rnd_f32(i):
    """A mad.f32 that rounds is fused."""
    return bool(i.rnd) and i.type is f32


def is_called(i):
    """Does ptxas make a call of it: of a quotient, or of a root in f64, that is not rounded to nearest?"""
    return i.rnd in ("rz", "rm", "rp") and (i.type is f64 or i.opcode == "div")


@has(no_address("a", "b", when=is_called))
@alu(
    """
    div{.approx}{.ftz}.f32  d, a, b;
    div.full{.ftz}.f32      d, a, b;
    div.rnd{.ftz}.f32       d, a, b;
    div{.rnd}.f64           d, a, b;
    .rnd = { .rn, .rz, .rm, .rp };
    """,
    section="9.7.3.8",
    needs={"": "PTX 1.0", ".approx .full .ftz": "PTX 1.4"},
    fixed="full",
    exact=(DIVISION, REST),
)
def div(i, a, b):
    """Divide one number by another; .approx and .full multiply by the reciprocal, as ptxas has it.

    Without .ftz a subnormal divisor is scaled first; with .full one of 2**126 and more, too, so that its reciprocal, whose
    subnormal results are zero, is none (ptxas 13.0, an H200).
    """
    if i.rnd or i.type is f64:
        return computed(i, "div", a, b)
    ftz = flusher(i)
    a, b = ftz(a), ftz(b)
    size = absolute_value(b)
    scale = a.lift(1.0)
    if i.full:
        scale = select(size > 2.0**126, 0.25, scale)
    if not i.ftz:
        scale = select(size < 2.0**-126, 2.0**24, scale)
    reciprocal = flush_subnormal(approximations.rcp(b * scale))
    return canonical_nan(ftz(ftz(a * scale) * reciprocal))


@div.needs_when("PTX 2.0, sm_20")
def div_rnd(i):
    """Exact f32 quotients, and f64 quotients that are not rounded to nearest."""
    return bool(i.rnd) and (i.type is f32 or i.rnd != "rn")


# ── 9.7.3.9 to 9.7.3.12: signs and order ────────────────────────────────────────────────


@alu(
    """
    abs{.ftz}.f32  d, a;
    abs.f64        d, a;
    """,
    section="9.7.3.9",
    needs={"": "PTX 1.0", ".ftz": "PTX 1.4"},
)
def abs_(i, a):
    """Clear the sign."""
    return finish(i, absolute_value(a))


@alu(
    """
    neg{.ftz}.f32  d, a;
    neg.f64        d, a;
    """,
    section="9.7.3.10",
    needs={"": "PTX 1.0", ".ftz": "PTX 1.4"},
)
def neg(i, a):
    """Flip the sign."""
    return finish(i, negate(a))


EXTREME = """
    OP{.ftz}{.NaN}{.xorsign}{.abs}.f32  d, a, b;
    OP{.ftz}{.NaN}{.abs}.f32            d, a, b, c;
    OP.f64                              d, a, b;
    """
EXTREME_NEEDS = {"": "PTX 1.0", ".ftz": "PTX 1.4", ".NaN": "PTX 7.0, sm_80", ".xorsign .abs": "PTX 7.2, sm_86"}


def extreme(i, function, a, b, c):
    """The least or the greatest of two or three."""
    signs = is_negative(a) ^ is_negative(b)
    operands = flushed(i, a, b) + (flushed(i, c) if c is not None else [])
    if i.abs:
        operands = [absolute_value(x) for x in operands]
    d, *others = operands
    for x in others:
        nan = is_nan(d) | is_nan(x)
        d = with_nan(nan, function(d, x)) if i.NaN else function(d, x)
    if i.xorsign:
        d = select(signs, negate(d), d)
    return canonical_nan(d)


@alu(EXTREME.replace("OP", "min"), section="9.7.3.11", needs=EXTREME_NEEDS)
def min_(i, a, b, c=None):
    """The least of two or three numbers; -0 is less than +0, and a number less than NaN unless .NaN is given."""
    return extreme(i, minimum, a, b, c)


@alu(EXTREME.replace("OP", "max"), section="9.7.3.12", needs=EXTREME_NEEDS)
def max_(i, a, b, c=None):
    """The greatest of two or three numbers; +0 is greater than -0, and a number than NaN unless .NaN is given."""
    return extreme(i, maximum, a, b, c)


def three_operands(i):
    """A third number."""
    return len(i.form.operands) == 4


def xorsign_goes_with_abs(i):
    """Of two operands, .xorsign and .abs are given together."""
    if i.xorsign and not i.abs:
        return Problem("P1202", "Modifier '.xorsign' requires modifier '.abs'", word="xorsign")
    if i.abs and not i.xorsign and len(i.form.operands) == 3:
        return Problem("P1202", "Modifier '.abs' requires modifier '.xorsign'", word="abs")
    return None


for _extreme in (min_, max_):
    _extreme.rule("P1202")(xorsign_goes_with_abs)
    _extreme.needs_when("PTX 8.8, sm_100")(three_operands)


# ── 9.7.3.13 to 9.7.3.17: reciprocal and root ───────────────────────────────────────────

ROOT_NEEDS = {"": "PTX 1.0", ".approx .ftz": "PTX 1.4"}


@has(no_address("a", when=is_called))
@alu(
    """
    rcp{.approx}{.ftz}.f32  d, a;
    rcp.rnd{.ftz}.f32       d, a;
    rcp{.rnd}.f64           d, a;
    rcp.rnd.ftz.f64         d, a;  // ptxas takes .ftz here, where it means nothing
    .rnd = { .rn, .rz, .rm, .rp };
    """,
    section="9.7.3.13",
    needs={**ROOT_NEEDS, ".rnd": "PTX 1.4"},
    exact=(SILICON, REST),
)
def rcp(i, a):
    """The reciprocal."""
    if i.type is f32 and not i.rnd:
        return approximated(i, approximations.rcp, a)
    ftz = flusher(i)
    a = ftz(a)
    return canonical_nan(ftz(a.lift(1.0).floating("div", a, rounding=i.rnd or "rn")))


@has(no_address("a", when=is_called))
@alu(
    """
    sqrt{.approx}{.ftz}.f32  d, a;
    sqrt.rnd{.ftz}.f32       d, a;
    sqrt{.rnd}.f64           d, a;
    .rnd = { .rn, .rz, .rm, .rp };
    """,
    section="9.7.3.15",
    needs=ROOT_NEEDS,
    exact=(SILICON, REST),
)
def sqrt(i, a):
    """The square root."""
    if i.type is f32 and not i.rnd:
        return approximated(i, approximations.sqrt, a)
    return canonical_nan(flusher(i)(a).floating("sqrt", rounding=i.rnd or "rn"))


def exact_root(i):
    """Exact f32 results, and f64 results that are not rounded to nearest."""
    return bool(i.rnd) and (i.type is f32 or i.rnd != "rn")


for _root in (rcp, sqrt):
    _root.needs_when("PTX 2.0, sm_20")(exact_root)


@alu(
    "rcp.approx.ftz.f64  d, a;", section="9.7.3.14", needs={"": "PTX 2.1, sm_20"},
    exact=SHORTENED,
)  # fmt: skip
def rcp_approx_ftz_f64(i, a):
    """A gross reciprocal: of the upper word, to the upper word."""
    return approximations.rcp_upper(a)


@alu(
    """
    rsqrt{.approx}{.ftz}.f32  d, a;
    rsqrt{.approx}.f64        d, a;
    """,
    section="9.7.3.16",
    needs={"": "PTX 1.0", ".approx .ftz": "PTX 1.4"},
    exact=(SILICON, REFINED),
)
def rsqrt(i, a):
    """The reciprocal of the square root."""
    if i.type is f32:
        return approximated(i, approximations.rsqrt, a)
    return approximations.rsqrt_refined(a)


@alu(
    "rsqrt.approx.ftz.f64  d, a;", section="9.7.3.17", needs={"": "PTX 4.0, sm_20"},
    exact=SHORTENED,
)  # fmt: skip
def rsqrt_approx_ftz_f64(i, a):
    """A gross reciprocal square root: of the upper word, to the upper word."""
    return approximations.rsqrt_upper(a)


# ── 9.7.3.18 to 9.7.3.22: functions ─────────────────────────────────────────────────────


def approximated(i, function, a):
    """A function of f32 as silicon computes it (`algebra.derived.approximations`)."""
    ftz = flusher(i)
    return ftz(function(ftz(a)))


def rounds_angles(i):
    """Does the target round the reduced angle, where those before it cut it?"""
    return i.target.number >= RTX_BLACKWELL


RTX_BLACKWELL = 120
FUNCTION = "OP{.approx}{.ftz}.f32  d, a;"
FUNCTION_NEEDS = {"": "PTX 1.0", ".approx .ftz": "PTX 1.4"}


@alu(FUNCTION.replace("OP", "sin"), section="9.7.3.18", needs=FUNCTION_NEEDS, exact=ANGLES)
def sin(i, a):
    """The sine of an angle in radians."""
    return approximated(i, approximations.sin_nearest if rounds_angles(i) else approximations.sin, a)


@alu(FUNCTION.replace("OP", "cos"), section="9.7.3.19", needs=FUNCTION_NEEDS, exact=ANGLES)
def cos(i, a):
    """The cosine of an angle in radians."""
    return approximated(i, approximations.cos_nearest if rounds_angles(i) else approximations.cos, a)


@alu(FUNCTION.replace("OP", "lg2"), section="9.7.3.20", needs=FUNCTION_NEEDS, exact=SILICON)
def lg2(i, a):
    """The logarithm to base 2."""
    return approximated(i, approximations.lg2, a)


@alu(FUNCTION.replace("OP", "ex2"), section="9.7.3.21", needs=FUNCTION_NEEDS, exact=SILICON)
def ex2(i, a):
    """Two to the power `a`."""
    return approximated(i, approximations.ex2, a)


@alu("tanh.approx.f32  d, a;", section="9.7.3.22", needs={"": "PTX 7.0, sm_75"}, exact=BOUNDED)
def tanh(i, a):
    """The hyperbolic tangent; subnormal numbers pass through."""
    return elementary.tanh(a)


def says_how_it_rounds(i):
    """From PTX 1.4 on, .approx, .full or a rounding modifier says how exact the result is."""
    if i.version < (1, 4) or {"approx", "full", "rnd"} & set(i.bound):
        return None
    of = f"required for instruction '{i.form.opcode}'"
    if "rnd" not in i.of.modifiers:
        return Problem("P1203", f".approx modifier {of}", consequence=f".approx modifier {of}" * (i.form.opcode == "ex2"))
    ptxas = f"Rounding modifier or '.approx' modifier {of}"
    if i.type is not f64:
        return ptxas
    said = f"Rounding modifier {of}"
    return Problem("P1203", said, ptxas=ptxas, consequence=said) if i.form.opcode == "rcp" else said


for _function in (div, rcp, sqrt, rsqrt, sin, cos, lg2, ex2):
    _function.rule("P1203")(says_how_it_rounds)
