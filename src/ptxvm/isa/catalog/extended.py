"""Extended-precision integer arithmetic, chains that carry through CC.CF (PTX 9.7.2).

CC.CF is one flag for carry and borrow, and a subtraction is the addition of ~b and 1: it leaves 0 where it borrows, and
`subc` takes one more away where the flag is 0.  The manual does not say so, but a chain that mixes both tells: ptxas
hands the carry of `sub.cc` to `addc` as it is, and the 128-bit division that nvcc emits relies on that.
"""

from __future__ import annotations

from ptxvm.algebra.derived.integers import add_carrying, saturate, sub_borrowing, widened
from ptxvm.algebra.types import s32
from ptxvm.isa.model import Problem, alu


@alu(
    """
    add.cc.type  d, a, b;
    .type = { .u32, .s32, .u64, .s64 };
    """,
    section="9.7.2.1",
    needs={"": "PTX 1.2", ".u64 .s64": "PTX 4.3, sm_20"},
)
def add_cc(i, a, b, cc):
    """Add two values; the carry out goes to CC.CF."""
    d, cc.carry = add_carrying(a, b)
    return d


@alu(
    """
    addc{.cc}{.sat}.type  d, a, b;
    .type = { .u16, .s16, .u32, .s32, .u64, .s64 };
    """,
    section="9.7.2.2",
    needs={"": "PTX 1.2"},
)
def addc(i, a, b, cc):
    """Add two values and the carry of CC.CF; with .cc, the carry out goes there."""
    if i.sat:
        return saturate(widened(a) + widened(b) + cc.carry.to(widened(a).type), a.type)
    d, carry = add_carrying(a, b, cc.carry)
    if i.cc:
        cc.carry = carry
    return d


@alu(
    """
    sub.cc.type  d, a, b;
    .type = { .u32, .s32, .u64, .s64 };
    """,
    section="9.7.2.3",
    needs={"": "PTX 1.3", ".u64 .s64": "PTX 4.3, sm_20"},
)
def sub_cc(i, a, b, cc):
    """Subtract one value from another; CC.CF becomes 0 where that borrows, else 1."""
    d, borrow = sub_borrowing(a, b)
    cc.carry = ~borrow
    return d


@alu(
    """
    subc{.cc}{.sat}.type  d, a, b;
    .type = { .u16, .s16, .u32, .s32, .u64, .s64 };
    """,
    section="9.7.2.4",
    needs={"": "PTX 1.3"},
)
def subc(i, a, b, cc):
    """Subtract one value, and 1 where CC.CF is 0, from another; with .cc, the new borrow goes there like that."""
    borrow = ~cc.carry
    if i.sat:
        return saturate(widened(a) - widened(b) - borrow.to(widened(a).type), a.type)
    d, borrow = sub_borrowing(a, b, borrow)
    if i.cc:
        cc.carry = ~borrow
    return d


@alu(
    """
    mad.mode.cc.type  d, a, b, c;
    .mode = { .hi, .lo };
    .type = { .u32, .s32, .u64, .s64 };
    """,
    section="9.7.2.5",
    needs={"": "PTX 3.0, sm_20", ".u64 .s64": "PTX 4.3, sm_20"},
    fixed=1,
)
def mad_cc(i, a, b, c, cc):
    """Multiply two values and add a third to half of the product; the carry of that addition goes to CC.CF."""
    d, cc.carry = add_carrying(_half(i, a, b), c)
    return d


@alu(
    """
    madc.mode{.cc}{.sat}.type  d, a, b, c;
    .mode = { .hi, .lo };
    .type = { .u16, .s16, .u32, .s32, .u64, .s64 };
    """,
    section="9.7.2.6",
    needs={"": "PTX 3.0, sm_20"},
    fixed=1,
)
def madc(i, a, b, c, cc):
    """Multiply two values, and add a third and the carry of CC.CF to half of the product; with .cc, carry out."""
    half = _half(i, a, b)
    if i.sat:
        return saturate(widened(half) + widened(c) + cc.carry.to(widened(c).type), c.type)
    d, carry = add_carrying(half, c, cc.carry)
    if i.cc:
        cc.carry = carry
    return d


def _half(i, a, b):
    """The lower or the upper half of the product."""
    return a.mul_hi(b) if i.mode == "hi" else a * b


@addc.needs_when("PTX 4.3, sm_20")
@subc.needs_when("PTX 4.3, sm_20")
@madc.needs_when("PTX 4.3, sm_20")
def carry_out_of_64_bits(i):
    return i.cc and i.type.bits == 64


@addc.rule("P1101")
@subc.rule("P1101")
@madc.rule("P1101")
def carry_out_of_16_bits(i):
    """.cc is for 32 and 64 bits: 16 bits take a carry in, but give none out."""
    if i.cc and i.type.bits == 16:
        return Problem("P1101", f"'.cc' needs a type of 32 or 64 bits, not '{i.type}'", word="cc",
                       ptxas=f"Modifier '.cc' applies only to {i.form.opcode} integer types")  # fmt: skip
    return None


@addc.rule("P1102")
@subc.rule("P1102")
@madc.rule("P1102")
def saturation_of_a_chain(i):
    """.sat is for .s32 (and .hi), and not together with .cc."""
    if not i.sat:
        return None
    if i.form.opcode == "madc" and i.mode != "hi":
        return Problem("P1102", "Illegal modifier '.sat' for instruction 'madc.lo'", word="sat")
    if i.type is not s32:
        return Problem("P1102", f"Modifier '.sat' does not apply to '{i.type}' type", word="sat")
    if i.cc:
        return Problem("P1102", "Modifier '.cc' cannot be combined with modifier '.sat'", word="sat")
    return None
