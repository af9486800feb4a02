"""Integer arithmetic (PTX 9.7.1)."""

from __future__ import annotations

import operator

from ptxvm.algebra.derived.integers import (
    absolute,
    add_saturating,
    carryless_product,
    distance,
    extend,
    low_mask,
    mux,
    nth_one,
    shift_amount,
    sub_saturating,
    widened,
)
from ptxvm.algebra.derived.packed import each
from ptxvm.algebra.types import s32, u32
from ptxvm.algebra.value import select
from ptxvm.isa.access import has, no_address
from ptxvm.isa.model import Problem, alu

# ── addition and multiplication ─────────────────────────────────────────────────────────


@alu(
    """
    add{.sat}.type  d, a, b;
    .type = { .u16, .u32, .u64, .s16, .s32, .s64, .u16x2, .s16x2, .u8x4, .s8x4 };
    """,
    section="9.7.1.1",
    needs={"": "PTX 1.0", ".u16x2 .s16x2": "PTX 8.0, sm_90", ".u8x4 .s8x4": "PTX 9.2, sm_107f sm_120f"},
)
def add(i, a, b):
    """Add two values, element by element where they are packed; with .sat, stay within the range of the type."""
    return each(add_saturating if i.sat else operator.add, a, b)


@alu(
    """
    sub{.sat}.type  d, a, b;
    .type = { .u16, .u32, .u64, .s16, .s32, .s64, .u8x4, .s8x4 };
    """,
    section="9.7.1.2",
    needs={"": "PTX 1.0", ".u8x4 .s8x4": "PTX 9.2, sm_107f sm_120f"},
)
def sub(i, a, b):
    """Subtract one value from another; with .sat, stay within the range of the type."""
    return each(sub_saturating if i.sat else operator.sub, a, b)


@add.rule("P1001")
@sub.rule("P1001")
def saturates_an_unsaturable_type(i):
    """.sat is for sums and differences of .s32, and of packed types."""
    # ptxas takes add.sat.u32 too, from PTX 9.2 on.
    if i.sat and i.type is not s32 and not i.type.is_packed and (i.form.opcode != "add" or i.type is not u32):
        return Problem("P1001", f"Modifier '.sat' does not apply to '{i.type}' type", word="sat")
    return None


@add.needs_when("PTX 9.2, sm_107f sm_120f")
@sub.needs_when("PTX 9.2, sm_107f sm_120f")
def saturation_of_other_types_than_s32(i):
    return i.sat and (i.type.is_packed or i.type is u32)


@alu(
    """
    mul.mode.type  d, a, b;
    .mode = { .hi, .lo };
    .type = { .u16, .u32, .u64, .s16, .s32, .s64 };
    """,
    section="9.7.1.3",
    needs={"": "PTX 1.0"},
    fixed=1,
)
def mul(i, a, b):
    """Multiply two values and keep the lower or the upper half of the product."""
    return a.mul_hi(b) if i.mode == "hi" else a * b


@alu(
    """
    mul.wide.type  d, a, b;
    .type = { .u16, .u32, .s16, .s32 };
    """,
    section="9.7.1.3",
    types="d: 2*type, *: type",
    needs={"": "PTX 1.0"},
    fixed=1,
)
def mul_wide(i, a, b):
    """Multiply two values and keep the whole product, which is twice as wide."""
    wide = i.type_of("d")
    return a.to(wide) * b.to(wide)


@alu(
    """
    mad.mode{.sat}.type  d, a, b, c;
    .mode = { .hi, .lo };
    .type = { .u16, .u32, .u64, .s16, .s32, .s64 };
    """,
    section="9.7.1.4",
    needs={"": "PTX 1.0"},
    fixed=1,
)
def mad(i, a, b, c):
    """Multiply two values, and add a third to the lower or the upper half of the product."""
    half = a.mul_hi(b) if i.mode == "hi" else a * b
    return add_saturating(half, c) if i.sat else half + c


@alu(
    """
    mad.wide.type  d, a, b, c;
    .type = { .u16, .u32, .s16, .s32 };
    """,
    section="9.7.1.4",
    types="d c: 2*type, *: type",
    needs={"": "PTX 1.0"},
    fixed=1,
)
def mad_wide(i, a, b, c):
    """Multiply two values, and add a third, twice as wide, to the whole product."""
    wide = i.type_of("d")
    return a.to(wide) * b.to(wide) + c


@alu(
    """
    mul24.mode.type  d, a, b;
    .mode = { .hi, .lo };
    .type = { .u32, .s32 };
    """,
    section="9.7.1.5",
    needs={"": "PTX 1.0"},
    fixed=1,
)
def mul24(i, a, b):
    """Multiply the lower 24 bits of two values, and keep the lower or the upper 32 of the 48 bits."""
    return _product24(i, a, b)


@alu(
    """
    mad24.mode{.sat}.type  d, a, b, c;
    .mode = { .hi, .lo };
    .type = { .u32, .s32 };
    """,
    section="9.7.1.6",
    needs={"": "PTX 1.0"},
    fixed=1,
)
def mad24(i, a, b, c):
    """Multiply the lower 24 bits of two values, and add a third to the lower or the upper 32 of the 48 bits."""
    half = _product24(i, a, b)
    return add_saturating(half, c) if i.sat else half + c


def _product24(i, a, b):
    """The lower or upper 32 bits of the 48-bit product of two 24-bit values."""
    product = widened(a << 8 >> 8) * widened(b << 8 >> 8)
    return (product >> 16 if i.mode == "hi" else product).to(i.type)


@mad.rule("P1002")
@mad24.rule("P1002")
def saturates_other_than_hi_s32(i):
    """.sat is for .hi.s32."""
    if i.sat and i.mode != "hi":
        return Problem("P1002", f"Illegal modifier '.sat' for instruction '{i.form.opcode}.{i.mode}'", word="sat")
    if i.sat and i.type is not s32:
        return Problem("P1002", f"Modifier '.sat' does not apply to '{i.type}' type", word="sat")
    return None


@alu(
    """
    sad.type  d, a, b, c;
    .type = { .u16, .u32, .u64, .s16, .s32, .s64 };
    """,
    section="9.7.1.7",
    needs={"": "PTX 1.0"},
)
def sad(i, a, b, c):
    """Add the absolute difference of two values to a third."""
    return c + distance(a, b)


def of_64_bits(i):
    """Is it of 64 bits?"""
    return i.type.bits == 64


@has(no_address("a", "b", when=of_64_bits))
@alu(
    """
    div.type  d, a, b;
    .type = { .u16, .u32, .u64, .s16, .s32, .s64 };
    """,
    section="9.7.1.8",
    needs={"": "PTX 1.0"},
)
def div(i, a, b):
    """Divide, rounding toward zero; a division by zero gives all ones."""
    return a // b


@has(no_address("a", "b", when=of_64_bits))
@alu(
    """
    rem.type  d, a, b;
    .type = { .u16, .u32, .u64, .s16, .s32, .s64 };
    """,
    section="9.7.1.9",
    needs={"": "PTX 1.0"},
)
def rem(i, a, b):
    """Find the remainder of a division, which has the sign of the dividend; modulo zero it is all ones (an H200)."""
    return select(b.eq(0), -1, a % b)


# Past the text of PTX 9.1; ptxas 13.5 names it and its types.
@alu(
    """
    clmad.mode.type  d, a, b, c;
    .mode = { .hi, .lo };
    .type = { .u64, .s64 };
    """,
    section="9.7.1",
    needs={"": "PTX 9.3, sm_80"},
    fixed=1,
)
def clmad(i, a, b, c):
    """Multiply two polynomials over GF(2), and add a third to the lower or the upper half of the product."""
    low, high = carryless_product(a.view(i.type.as_unsigned), b.view(i.type.as_unsigned))
    return (high if i.mode == "hi" else low) ^ c


# ── sign and order ──────────────────────────────────────────────────────────────────────


@alu(
    """
    abs.type  d, a;
    .type = { .s16, .s32, .s64 };
    """,
    section="9.7.1.10",
    needs={"": "PTX 1.0"},
)
def abs_(i, a):
    """Find the magnitude of a signed value; that of the least one does not fit, and is itself."""
    return absolute(a)


@alu(
    """
    neg.type  d, a;
    .type = { .s16, .s32, .s64, .s8x4 };
    """,
    section="9.7.1.11",
    needs={"": "PTX 1.0", ".s8x4": "PTX 9.2, sm_107f sm_120f"},
)
def neg(i, a):
    """Negate a signed value."""
    return each(operator.neg, a)


@alu(
    """
    min{.relu}.type  d, a, b;
    .type = { .u16, .u32, .u64, .s16, .s32, .s64, .u16x2, .s16x2, .u8x4, .s8x4 };
    """,
    section="9.7.1.12",
    needs={"": "PTX 1.0", ".u16x2 .s16x2 .relu": "PTX 8.0, sm_90", ".u8x4 .s8x4": "PTX 9.2, sm_107f sm_120f"},
)
def min_(i, a, b):
    """Take the lesser of two values, element by element where they are packed; with .relu, zero if it is negative."""
    return each(lambda x, y: x.min(y).max(0) if i.relu else x.min(y), a, b)


@alu(
    """
    max{.relu}.type  d, a, b;
    .type = { .u16, .u32, .u64, .s16, .s32, .s64, .u16x2, .s16x2, .u8x4, .s8x4 };
    """,
    section="9.7.1.13",
    needs={"": "PTX 1.0", ".u16x2 .s16x2 .relu": "PTX 8.0, sm_90", ".u8x4 .s8x4": "PTX 9.2, sm_107f sm_120f"},
)
def max_(i, a, b):
    """Take the greater of two values, element by element where they are packed; with .relu, zero if it is negative."""
    return each(lambda x, y: x.max(y).max(0) if i.relu else x.max(y), a, b)


@min_.rule("P1004")
@max_.rule("P1004")
def relu_of_unsigned_or_single_16_or_64_bits(i):
    """.relu is for .s32 and for packed signed types."""
    if i.relu and not (i.type is s32 or (i.type.is_signed and i.type.is_packed)):
        said = f"Illegal modifier '.relu' for instruction '{i.form.opcode}' with type '{i.type}'"
        return Problem("P1004", said, word="relu")
    return None


# ── bits ────────────────────────────────────────────────────────────────────────────────


@alu(
    """
    popc.type  d, a;
    .type = { .b32, .b64 };
    """,
    section="9.7.1.14",
    types="d: u32, a: type",
    needs={"": "PTX 2.0, sm_20"},
)
def popc(i, a):
    """Count the ones."""
    return a.popc().to(u32)


@alu(
    """
    clz.type  d, a;
    .type = { .b32, .b64 };
    """,
    section="9.7.1.15",
    types="d: u32, a: type",
    needs={"": "PTX 2.0, sm_20"},
)
def clz(i, a):
    """Count the zeros above the highest one; all bits are zeros of zero."""
    return a.clz().to(u32)


@alu(
    """
    bfind.type           d, a;
    bfind.shiftamt.type  d, a;
    .type = { .u32, .u64, .s32, .s64 };
    """,
    section="9.7.1.16",
    types="d: u32, a: type",
    needs={"": "PTX 2.0, sm_20"},
)
def bfind(i, a):
    """Find the highest bit that differs from the sign: its position, or how far it is from the top.

    Where there is none, the result is 0xffffffff.
    """
    if i.type.is_signed:
        a = select(a < 0, ~a, a)
    above = a.clz().to(u32)
    return select(a.eq(0), -1, above) if i.shiftamt else above.lift(i.type.bits - 1) - above


@alu(
    """
    fns.b32  d, mask, base, offset;
    """,
    section="9.7.1.17",
    types="*: b32",
    needs={"": "PTX 6.0, sm_30"},
)
def fns(i, mask, base, offset):
    """Find the nth one of a mask from a bit on: upward or, where n is negative, downward; 0xffffffff if there is none.

    With n = 0 it is that bit or none.  A base beyond 31 finds nothing.
    """
    base, n = base.view(u32), absolute(offset := offset.view(s32)).view(u32) - 1
    ones = mask.lift(-1)
    here = select((mask >> base & 1).ne(0), base, -1)
    up = nth_one(mask & ones << base, n)
    passed = nth_one(mask.reverse() & ones << base.lift(31) - base, n)
    down = select(passed.eq(-1), -1, passed.lift(31) - passed)
    return select(offset > 0, up, select(offset < 0, down, here))


@alu(
    """
    brev.type  d, a;
    .type = { .b32, .b64 };
    """,
    section="9.7.1.18",
    needs={"": "PTX 2.0, sm_20"},
)
def brev(i, a):
    """Reverse the order of the bits."""
    return a.reverse()


@alu(
    """
    bfe.type  d, a, b, c;
    .type = { .u32, .u64, .s32, .s64 };
    """,
    section="9.7.1.19",
    types="*: type, b: u32, c: u32",
    needs={"": "PTX 2.0, sm_20"},
)
def bfe(i, a, b, c):
    """Extract the field of `c` bits that starts at bit `b`, sign- or zero-extended.

    Beyond the value are copies of its sign; an empty field is 0.
    """
    start, length = (shift_amount(x & 0xFF, i.type) for x in (b, c))
    return extend(a >> start, length)


@alu(
    """
    bfi.type  f, a, b, c, d;
    .type = { .b32, .b64 };
    """,
    section="9.7.1.20",
    types="*: type, c: u32, d: u32",
    needs={"": "PTX 2.0, sm_20"},
    rearranges=True,
)
def bfi(i, a, b, c, d):
    """Insert the lowest `d` bits of `a` into `b`, from bit `c` on; what does not fit is left out."""
    start, length = (shift_amount(x & 0xFF, i.type) for x in (c, d))
    return mux(a << start, b, low_mask(length) << start)


@bfe.rule("P1003")
@bfi.rule("P1003")
def field_beyond_a_byte(i):
    """The start and the length of a bit field, where they are constants, lie in 0..255."""
    names = [o.name for o in i.form.operands]
    for operand in names[-2:]:
        value = i.value(operand)
        if value is not None and not 0 <= value <= 255:
            place = f"Argument {names.index(operand)} of instruction '{i.form.opcode}'"
            said = f"value '{value}' out of range, expected to be in range [0..255]"
            return Problem("P1003", f"{place}: {said}", operand=operand)
    return None


@alu(
    """
    szext.mode.type  d, a, b;
    .mode = { .clamp, .wrap };
    .type = { .u32, .s32 };
    """,
    section="9.7.1.21",
    types="*: type, b: u32",
    needs={"": "PTX 7.6, sm_70"},
)
def szext(i, a, b):
    """Sign- or zero-extend the lowest `b` bits of `a`; beyond 31, .clamp keeps all of them, .wrap takes `b` mod 32."""
    return extend(a, b & 31 if i.mode == "wrap" else b)


@alu(
    """
    bmsk.mode.b32  d, a, b;
    .mode = { .clamp, .wrap };
    """,
    section="9.7.1.22",
    types="*: u32",
    needs={"": "PTX 7.6, sm_70"},
)
def bmsk(i, a, b):
    """Make a mask of `b` ones from bit `a` on; .wrap takes both mod 32."""
    if i.mode == "wrap":
        a, b = a & 31, b & 31
    return low_mask(b) << a
