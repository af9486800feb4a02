"""Logic and shifts (PTX 9.7.8), and the permutation of bytes (PTX 9.7.9.7)."""

from __future__ import annotations

from ptxvm.algebra.derived.integers import look_up, shift_amount
from ptxvm.algebra.value import select
from ptxvm.isa.model import Problem, alu
from ptxvm.isa.operand_types import SINK

# ── bit by bit ──────────────────────────────────────────────────────────────────────────


@alu(
    """
    and.pred  d, {!}a, {!}b;
    and.type  d, a, b;
    .type = { .b16, .b32, .b64 };
    """,
    section="9.7.8.1",
    needs={"": "PTX 1.0"},
)
def and_(i, a, b):
    """Bitwise AND."""
    return a & b


@alu(
    """
    or.pred  d, {!}a, {!}b;
    or.type  d, a, b;
    .type = { .b16, .b32, .b64 };
    """,
    section="9.7.8.2",
    needs={"": "PTX 1.0"},
)
def or_(i, a, b):
    """Bitwise OR."""
    return a | b


@alu(
    """
    xor.pred  d, {!}a, {!}b;
    xor.type  d, a, b;
    .type = { .b16, .b32, .b64 };
    """,
    section="9.7.8.3",
    needs={"": "PTX 1.0"},
)
def xor(i, a, b):
    """Bitwise exclusive OR; of predicates, inequality."""
    return a ^ b


@alu(
    """
    not.pred  d, {!}a;
    not.type  d, a;
    .type = { .b16, .b32, .b64 };
    """,
    section="9.7.8.4",
    needs={"": "PTX 1.0"},
)
def not_(i, a):
    """Invert every bit."""
    return ~a


@alu(
    """
    cnot.type  d, a;
    .type = { .b16, .b32, .b64 };
    """,
    section="9.7.8.5",
    needs={"": "PTX 1.0"},
)
def cnot(i, a):
    """Logical negation as in C: 1 for zero, otherwise 0."""
    return a.eq(0).to(i.type)


@alu(
    """
    lop3.b32         d{|p}, a, b, c, immLut;
    lop3.BoolOp.b32  d|p, a, b, c, immLut, {!}q;
    .BoolOp = { .or, .and };
    """,
    section="9.7.8.6",
    types="*: b32, d: b32 sink, p: pred sink, immLut: u32 imm, q: pred",
    needs={"": "PTX 4.3, sm_50", ".BoolOp": "PTX 8.2, sm_70"},
    rearranges=True,
)
def lop3(i, a, b, c, immLut, q):  # noqa: N803 - PTX's name
    """Any logical function of three bits, given as a truth table: bit `4a + 2b + c` of it is the result.

    With .BoolOp, tell too whether the result is nonzero, combined with a predicate.
    """
    d = look_up(a, b, c, immLut)
    p = d.ne(0)
    if i.BoolOp == "or":
        p = p | q
    elif i.BoolOp == "and":
        p = p & q
    return d, p


@lop3.rule("P1501")
def predicate_result(i):
    """The predicate result of lop3 comes with .and or .or, and only then."""
    p = i.shape("p")
    if p is None:
        return None
    if i.BoolOp and p is SINK:
        return Problem("P1501", "Predicate output expected", operand="p")
    if not i.BoolOp and p is not SINK:
        return Problem("P1501", "Predicate output not allowed", operand="p", help="add .and or .or and a source predicate")
    return None


# ── shifts ──────────────────────────────────────────────────────────────────────────────


@alu(
    """
    shf.dir.mode.b32  d, a, b, c;
    .dir = { .l, .r };
    .mode = { .clamp, .wrap };
    """,
    section="9.7.8.7",
    types="*: b32, c: u32",
    needs={"": "PTX 3.1, sm_32"},
    fixed=1,
)
def shf(i, a, b, c):
    """Shift the 64 bits of `b` above `a`: keep the upper word of a left shift, the lower one of a right shift.

    .clamp shifts by at most 32, .wrap by the amount mod 32.
    """
    n = c.min(32) if i.mode == "clamp" else c & 31
    rest = n.lift(32) - n
    return b << n | a >> rest if i.dir == "l" else b << rest | a >> n


@alu(
    """
    shl.type  d, a, b;
    .type = { .b16, .b32, .b64 };
    """,
    section="9.7.8.8",
    types="*: type, b: u32",
    needs={"": "PTX 1.0"},
)
def shl(i, a, b):
    """Shift left; by the width or more, everything is shifted out."""
    return a << shift_amount(b, i.type)


@alu(
    """
    shr.type  d, a, b;
    .type = { .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64 };
    """,
    section="9.7.8.9",
    types="*: type, b: u32",
    needs={"": "PTX 1.0"},
)
def shr(i, a, b):
    """Shift right, filling with the sign where the type has one; by the width or more, only that is left."""
    return a >> shift_amount(b, i.type)


# ── bytes ───────────────────────────────────────────────────────────────────────────────

# For each mode and value of c[1:0] the bytes to pick, as the control word of the generic form (PTX 9.7.9.7).
PERMUTATIONS = {
    #            0       1       2       3
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}


@alu(
    """
    prmt.b32{.mode}  d, a, b, c;
    .mode = { .f4e, .b4e, .rc8, .ecl, .ecr, .rc16 };
    """,
    section="9.7.9.7",
    types="*: b32",
    needs={"": "PTX 2.0, sm_20"},
    rearranges=True,
)
def prmt(i, a, b, c):
    """Build a word from any four of the eight bytes of two words.

    Each four bits of `c` choose a byte, or with the fourth bit set its sign eight times; a mode takes
    two bits of `c` and chooses as its table says.
    """
    if i.mode:
        zero, one, two, three = (c.lift(word) for word in PERMUTATIONS[i.mode])
        odd, high = (c & 1).ne(0), (c & 2).ne(0)
        c = select(high, select(odd, three, two), select(odd, one, zero))
    d = a.lift(0)
    for n in range(4):
        control = c >> 4 * n
        byte = select((control & 4).ne(0), b, a) >> (control & 3) * 8 & 0xFF
        if not i.mode:
            byte = select((control & 8).ne(0), -(byte >> 7) & 0xFF, byte)
        d |= byte << 8 * n
    return d
