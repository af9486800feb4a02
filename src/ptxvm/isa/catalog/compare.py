"""Comparison and selection (PTX 9.7.6), and the comparison of half precision (PTX 9.7.7)."""

from __future__ import annotations

from ptxvm.algebra.derived.floats import flush_subnormal, is_nan
from ptxvm.algebra.derived.packed import each, elements, pack
from ptxvm.algebra.types import bf16, bf16x2, f16, f16x2, f32, f64, u16
from ptxvm.algebra.value import select
from ptxvm.isa.model import Problem, alu
from ptxvm.isa.operand_types import SINK

# ── what the comparisons mean ───────────────────────────────────────────────────────────

UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
UNORDERED = {"equ": "eq", "neu": "ne", "ltu": "lt", "leu": "le", "gtu": "gt", "geu": "ge"}


def holds(op, a, b, *, ftz=False):
    """The predicate `a op b` (PTX 9.3.1); with `ftz`, subnormal operands count as zeros, but for f64."""
    if not a.type.is_float:
        return a.compare(UNSIGNED.get(op, op), b)
    if ftz and a.type is not f64:
        a, b = flush_subnormal(a), flush_subnormal(b)
    if a.type.bits == 16:
        a, b = a.to(f32), b.to(f32)
    unordered = is_nan(a) | is_nan(b)
    if op == "nan":
        return unordered
    if op == "num":
        return ~unordered
    if op in UNORDERED:
        return a.compare(UNORDERED[op], b) | unordered
    return a.compare(op, b) & ~unordered


def combined(i, truth, c):
    """The outcome of a comparison, joined with a predicate as .BoolOp says."""
    return {None: lambda: truth, "and": lambda: truth & c, "or": lambda: truth | c, "xor": lambda: truth ^ c}[i.BoolOp]()


# 1.0, where a comparison writes that; integers get all ones.
ONE = {"f16": 0x3C00, "bf16": 0x3F80, "f32": 0x3F80_0000}


def written(truth, type):
    """A predicate as `set` writes it in a destination of that type."""
    ones = -truth.to(type.as_unsigned)
    return (ones & ONE[type.name] if type.is_float else ones).view(type)


def mismatch(i, type):
    """The problem of an operator that the type does not have, or None."""
    if type.kind == "b":
        wrong = i.CmpOp not in ("eq", "ne")
    elif type.is_float:
        wrong = i.CmpOp in UNSIGNED
    else:
        wrong = i.CmpOp in UNORDERED or i.CmpOp in ("num", "nan") or (i.CmpOp in UNSIGNED and type.is_signed)
    if not wrong:
        return None
    return Problem("P1401", f"'.{i.CmpOp}' does not compare '{type}'", word=i.CmpOp,
                   ptxas="Mismatch between instruction type and comparison qualifier")  # fmt: skip


# ── set ─────────────────────────────────────────────────────────────────────────────────


@alu(
    """
    set.CmpOp{.ftz}.dtype.stype         d, a, b;
    set.CmpOp.BoolOp{.ftz}.dtype.stype  d, a, b, {!}c;
    .CmpOp  = { .eq, .ne, .lt, .le, .gt, .ge, .lo, .ls, .hi, .hs,
                .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan };
    .BoolOp = { .and, .or, .xor };
    .dtype  = { .u32, .s32, .f32 };
    .stype  = { .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64 };
    """,
    section="9.7.6.1",
    types="d: dtype, a: stype, b: stype, c: pred",
    needs={"": "PTX 1.0", ".ftz": "PTX 1.4"},
)
def set_(i, a, b, c):
    """Compare two values; write all ones, or 1.0, where the comparison (joined with a predicate) holds, otherwise 0."""
    return written(combined(i, holds(i.CmpOp, a, b, ftz=i.flushes), c), i.dtype)


@alu(
    """
    set.CmpOp{.ftz}.dtype.stype         d, a, b;
    set.CmpOp.BoolOp{.ftz}.dtype.stype  d, a, b, {!}c;
    .CmpOp  = { .eq, .ne, .lt, .le, .gt, .ge, .lo, .ls, .hi, .hs,
                .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan };
    .BoolOp = { .and, .or, .xor };
    .dtype  = { .f16, .bf16, .f16x2, .bf16x2, .u16, .s16, .u32, .s32 };
    .stype  = { .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64, .f16, .bf16, .f16x2, .bf16x2, .f32, .f64 };
    """,
    section="9.7.7.1",
    types="d: dtype bf16=u16 bf16x2=b32, a: stype, b: stype, c: pred",
    needs={"": "PTX 4.2, sm_53", ".bf16 .bf16x2": "PTX 7.8, sm_90"},
)
def set_half(i, a, b, c):
    """Compare in half precision, or write the outcome in it; each half of packed values is compared alone."""
    if not i.stype.is_packed:
        return written(combined(i, holds(i.CmpOp, a, b, ftz=i.flushes), c), i.dtype)
    part = i.dtype.element if i.dtype.is_packed else u16
    pairs = zip(elements(a), elements(b), strict=True)
    return pack([written(combined(i, holds(i.CmpOp, x, y, ftz=i.flushes), c), part) for x, y in pairs], i.dtype)


@set_half.needs_when("PTX 6.5, sm_53")
def an_integer_outcome_of_half_precision(i):
    return not i.dtype.is_float


# Past the text of PTX 9.1; ptxas 13.5 names it and its types.
@alu(
    """
    set.CmpOp.type  d, a, b;
    .CmpOp  = { .eq, .ne, .lt, .le, .gt, .ge, .lo, .ls, .hi, .hs };
    .type = { .u16x2, .s16x2, .u8x4, .s8x4 };
    """,
    section="9.7.6.1",
    needs={"": "PTX 9.4, sm_107f"},
)
def set_packed(i, a, b):
    """Compare packed integers, and write all ones in the elements where the comparison holds, otherwise 0."""
    return each(lambda x, y: written(holds(i.CmpOp, x, y), x.type), a, b)


# What a half-precision comparison may write, and what it may compare for that (PTX 9.7.7.1).
WHOLE = "b16 b32 b64 u16 u32 u64 s16 s32 s64 f16 f32 f64"
COMPARED = {
    "f16": WHOLE,
    "bf16": f"{WHOLE} bf16",
    "u16": "f16 bf16",
    "s16": "f16 bf16",
    "u32": "f16 bf16 f16x2 bf16x2",
    "s32": "f16 bf16 f16x2 bf16x2",
    "f16x2": "f16x2",
    "bf16x2": "bf16x2",
}


@set_half.rule("P1402")
def half_precision_on_neither_side(i):
    """A half-precision result comes from any type but packed ones; packed halves give packed halves or 32 bits."""
    if i.stype.name not in COMPARED[i.dtype.name].split():
        return Problem("P1402", f"a comparison of '{i.stype}' cannot be written as '{i.dtype}'", word=i.stype.name,
                       ptxas="Unexpected instruction types specified for 'set'")  # fmt: skip
    return None


@set_.rule("P1401")
@set_half.rule("P1401")
def comparison_of_another_type(i):
    """Bits are equal or not; lo, ls, hi and hs compare unsigned integers; equ to geu, num and nan compare floats."""
    return mismatch(i, i.stype)


@set_.rule("P1403")
@set_half.rule("P1403")
def flushing_of_another_type(i):
    """.ftz is for comparisons of .f32, .f16 and .f16x2."""
    return unflushable(i, i.stype) or (unflushable(i, i.dtype) if i.dtype in (bf16, bf16x2) else None)


def unflushable(i, type):
    """The problem of .ftz with a type that it does not apply to, or None."""
    if i.ftz and type not in (f32, f16, f16x2):
        return Problem("P1403", f"Illegal modifier '.ftz' for instruction '{i.form.opcode}'", word="ftz")
    return None


# ── setp ────────────────────────────────────────────────────────────────────────────────


@alu(
    """
    setp.CmpOp{.ftz}.type         p{|q}, a, b;
    setp.CmpOp.BoolOp{.ftz}.type  p{|q}, a, b, {!}c;
    .CmpOp  = { .eq, .ne, .lt, .le, .gt, .ge, .lo, .ls, .hi, .hs,
                .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan };
    .BoolOp = { .and, .or, .xor };
    .type   = { .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64 };
    """,
    section="9.7.6.2",
    types="*: type, p: pred sink, q: pred sink, c: pred",
    needs={"": "PTX 1.0", ".ftz": "PTX 1.4"},
)
def setp(i, a, b, c):
    """Compare two values: `p` tells whether that (joined with a predicate) holds, `q` the same of the opposite."""
    truth = holds(i.CmpOp, a, b, ftz=i.flushes)
    return combined(i, truth, c), combined(i, ~truth, c)


@alu(
    """
    setp.CmpOp{.ftz}.f16           p{|q}, a, b;
    setp.CmpOp.BoolOp{.ftz}.f16    p{|q}, a, b, {!}c;
    setp.CmpOp{.ftz}.f16x2         p{|q}, a, b;
    setp.CmpOp.BoolOp{.ftz}.f16x2  p{|q}, a, b, {!}c;
    setp.CmpOp.bf16                p{|q}, a, b;
    setp.CmpOp.BoolOp.bf16         p{|q}, a, b, {!}c;
    setp.CmpOp.bf16x2              p{|q}, a, b;
    setp.CmpOp.BoolOp.bf16x2       p{|q}, a, b, {!}c;
    .CmpOp  = { .eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan };
    .BoolOp = { .and, .or, .xor };
    """,
    section="9.7.7.2",
    types="*: type, p: pred sink, q: pred sink, c: pred",
    needs={"": "PTX 4.2, sm_53", ".bf16 .bf16x2": "PTX 7.8, sm_90"},
)
def setp_half(i, a, b, c):
    """Compare in half precision; of packed values, `p` tells of the lower halves and `q` of the upper ones."""
    pairs = zip(elements(a), elements(b), strict=True)
    return tuple(combined(i, holds(i.CmpOp, x, y, ftz=i.flushes), c) for x, y in pairs)


@set_half.rule("P1407")
@setp_half.rule("P1407")
def constant_with_bfloats(i):
    """What a comparison of or to .bf16 is combined with is a predicate register."""
    c = i.shape("c")
    if c is None or c.kind != "integer" or not {"bf16", "bf16x2"} & set(i.bound.values()):
        return None
    return Problem("P1407", "a predicate register is needed", operand="c",
                   ptxas=f"Arguments mismatch for instruction '{i.form.opcode}'")  # fmt: skip


@setp_half.rule("P1404")
def second_result_of_one_half(i):
    """A comparison of .f16 or .bf16 has one result; the place of a second may hold `_` only."""
    if not i.type.is_packed and i.shape("q") not in (None, SINK):
        return Problem("P1404", "Predicate output not allowed", operand="q")
    return None


@setp.rule("P1401")
def comparison_of_another_type_in_setp(i):
    """Bits are equal or not; lo, ls, hi and hs compare unsigned integers; equ to geu, num and nan compare floats."""
    return mismatch(i, i.type)


@setp.rule("P1403")
def flushing_of_another_type_in_setp(i):
    """.ftz is for comparisons of .f32, .f16 and .f16x2."""
    return unflushable(i, i.type)


# ── selection ───────────────────────────────────────────────────────────────────────────


@alu(
    """
    selp.type  d, a, b, {!}c;
    .type = { .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64 };
    """,
    section="9.7.6.3",
    types="d: type, a b: type passed, c: pred",
    needs={"": "PTX 1.0"},
)
def selp(i, a, b, c):
    """Take one value where a predicate is true, and another where it is false."""
    return select(c, a, b)


@alu(
    """
    slct.dtype.s32        d, a, b, c;
    slct{.ftz}.dtype.f32  d, a, b, c;
    .dtype = { .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64 };
    """,
    section="9.7.6.4",
    types="d: dtype, a b: dtype passed, c: type",
    needs={"": "PTX 1.0", ".ftz": "PTX 1.4"},
)
def slct(i, a, b, c):
    """Take one value where a third is zero or more, another where it is less or NaN; with .ftz, subnormals are zero."""
    if i.flushes and c.type is f32:
        c = flush_subnormal(c)
    return select(c >= 0, a, b)
