"""Half-precision floating-point instructions, f16, bf16 and pairs of them (PTX 9.7.4)."""

from __future__ import annotations

from ptxvm.algebra.derived import approximations, elementary
from ptxvm.algebra.derived.floats import (
    absolute_value,
    canonical_nan,
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
from ptxvm.algebra.types import b16, f16, f32
from ptxvm.algebra.value import select
from ptxvm.isa.exactness import BOUNDED, SHORTENED
from ptxvm.isa.model import Problem, alu
from ptxvm.isa.tensor_map import OUTSIDE_NAN


def flushed(i, *operands):
    """The operands as `.ftz` has them."""
    return [flush_subnormal(x) for x in operands] if i.ftz else operands


def computed(i, op, *operands):
    """One correctly rounded operation on each element, with `.ftz`, `.sat` and `.relu`."""
    return each(lambda *x: finish(i, arithmetic(op, i.rnd or "rn", *flushed(i, *x))), *operands)


# ── 9.7.4.1 to 9.7.4.4: arithmetic ──────────────────────────────────────────────────────

SUM = """
    OP{.rnd}{.ftz}{.sat}.f16    d, a, b;
    OP{.rnd}{.ftz}{.sat}.f16x2  d, a, b;
    OP{.rnd}.bf16               d, a, b;
    OP{.rnd}.bf16x2             d, a, b;
    .rnd = { .rn };
    """
SUM_NEEDS = {".f16 .f16x2": "PTX 4.2, sm_53", ".bf16 .bf16x2": "PTX 7.8, sm_90"}


@alu(SUM.replace("OP", "add"), section="9.7.4.1", needs=SUM_NEEDS)
def add(i, a, b):
    """Add two numbers."""
    return computed(i, "add", a, b)


@alu(SUM.replace("OP", "sub"), section="9.7.4.2", needs=SUM_NEEDS)
def sub(i, a, b):
    """Subtract one number from another."""
    return computed(i, "sub", a, b)


@alu(SUM.replace("OP", "mul"), section="9.7.4.3", needs=SUM_NEEDS)
def mul(i, a, b):
    """Multiply two numbers."""
    return computed(i, "mul", a, b)


@alu(
    """
    fma.rn{.ftz}{.sat}.f16         d, a, b, c;
    fma.rn{.ftz}{.sat}.f16x2       d, a, b, c;
    fma.rn{.ftz}.relu.f16          d, a, b, c;
    fma.rn{.ftz}.relu.f16x2        d, a, b, c;
    fma.rn.oob{.relu}.f16          d, a, b, c;
    fma.rn.oob{.relu}.f16x2        d, a, b, c;
    fma.rnd{.oob}{.relu}.bf16      d, a, b, c;
    fma.rnd{.oob}{.relu}.bf16x2    d, a, b, c;
    .rnd = { .rn, .rz, .rm, .rp };
    """,
    section="9.7.4.4",
    needs={
        ".f16 .f16x2": "PTX 4.2, sm_53",
        ".bf16 .bf16x2": "PTX 7.0, sm_80",
        ".relu": "PTX 7.0, sm_80",
        ".oob": "PTX 8.1, sm_90",
    },
)
def fma(i, a, b, c):
    """Multiply two numbers and add a third, rounded once; with .oob, +0 where a factor is the out-of-bounds NaN.

    (The manual has .rn only; ptxas takes every mode for bf16.)
    """
    d = computed(i, "fma", a, b, c)
    return each(without_oob, d, a, b) if i.oob else d


def without_oob(d, a, b):
    """+0 where one of the operands is the out-of-bounds NaN."""
    out = magnitude(a).eq(OUTSIDE_NAN) | magnitude(b).eq(OUTSIDE_NAN)
    return select(out, 0.0, d)


# ── 9.7.4.5 to 9.7.4.8: signs and order ─────────────────────────────────────────────────

SIGN = """
    OP{.ftz}.f16    d, a;
    OP{.ftz}.f16x2  d, a;
    OP.bf16         d, a;
    OP.bf16x2       d, a;
    """


@alu(
    SIGN.replace("OP", "neg"),
    section="9.7.4.5",
    needs={".f16 .f16x2": "PTX 6.0, sm_53", ".bf16 .bf16x2": "PTX 7.0, sm_80"},
)
def neg(i, a):
    """Flip the sign."""
    return each(lambda x: finish(i, negate(x)), a)


@alu(
    SIGN.replace("OP", "abs"),
    section="9.7.4.6",
    needs={".f16 .f16x2": "PTX 6.5, sm_53", ".bf16 .bf16x2": "PTX 7.0, sm_80"},
)
def abs_(i, a):
    """Clear the sign."""
    return each(lambda x: finish(i, absolute_value(x)), a)


EXTREME = """
    OP{.ftz}{.NaN}{.xorsign}{.abs}.f16    d, a, b;
    OP{.ftz}{.NaN}{.xorsign}{.abs}.f16x2  d, a, b;
    OP{.NaN}{.xorsign}{.abs}.bf16         d, a, b;
    OP{.NaN}{.xorsign}{.abs}.bf16x2       d, a, b;
    """
EXTREME_NEEDS = {"": "PTX 7.0, sm_80", ".xorsign .abs": "PTX 7.2, sm_86"}


def extreme(i, function, a, b):
    """The least or the greatest of two."""
    signs = is_negative(a) ^ is_negative(b)
    a, b = flushed(i, a, b)
    if i.abs:
        a, b = absolute_value(a), absolute_value(b)
    d = function(a, b)
    if i.NaN:
        d = with_nan(is_nan(a) | is_nan(b), d)
    if i.xorsign:
        d = select(signs, negate(d), d)
    return canonical_nan(d)


@alu(EXTREME.replace("OP", "min"), section="9.7.4.7", needs=EXTREME_NEEDS)
def min_(i, a, b):
    """The lesser of two numbers; -0 is less than +0, and a number less than NaN unless .NaN is given."""
    return each(lambda x, y: extreme(i, minimum, x, y), a, b)


@alu(EXTREME.replace("OP", "max"), section="9.7.4.8", needs=EXTREME_NEEDS)
def max_(i, a, b):
    """The greater of two numbers; +0 is greater than -0, and a number than NaN unless .NaN is given."""
    return each(lambda x, y: extreme(i, maximum, x, y), a, b)


@min_.rule("P1301")
@max_.rule("P1301")
def xorsign_goes_with_abs(i):
    """.xorsign and .abs are given together."""
    if bool(i.xorsign) == bool(i.abs):
        return None
    has, lacks = ("xorsign", "abs") if i.xorsign else ("abs", "xorsign")
    return Problem("P1301", f"Modifier '.{has}' requires modifier '.{lacks}'", word=has)


# ── 9.7.4.9 to 9.7.4.10: functions ──────────────────────────────────────────────────────


@alu(
    """
    tanh.approx.type  d, a;
    .type = { .f16, .f16x2, .bf16, .bf16x2 };
    """,
    section="9.7.4.9",
    needs={"": "PTX 7.0, sm_75", ".bf16 .bf16x2": "PTX 7.8, sm_90"},
    exact=BOUNDED,
)
def tanh(i, a):
    """The hyperbolic tangent."""
    return each(lambda x: canonical_nan(elementary.tanh(x.to(f32)).to(x.type)), a)


@alu(
    """
    ex2.approx.f16         d, a;
    ex2.approx.f16x2       d, a;
    ex2.approx.ftz.bf16    d, a;
    ex2.approx.ftz.bf16x2  d, a;
    """,
    section="9.7.4.10",
    needs={"": "PTX 7.0, sm_75", ".bf16 .bf16x2": "PTX 7.8, sm_90"},
    exact=SHORTENED,
)
def ex2(i, a):
    """Two to the power `a`: that of f32, cut off."""
    return each(lambda x: power_of_two(i, x), a)


def power_of_two(i, a):
    """One element: 2**16 and more, which f16 has not, is infinity."""
    ftz = flush_subnormal if i.ftz else lambda x: x
    wide = approximations.ex2(ftz(a).to(f32))
    found = wide.to(a.type, "rz")
    if a.type is f16:
        found = select(wide >= 2.0**16, infinity_bits(f16), found.view(b16)).view(f16)
    return canonical_nan(ftz(found))
