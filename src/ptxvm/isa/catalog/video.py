"""Video instructions, scalar ones on bytes, halves and words, and SIMD ones on pairs and quads (PTX 9.7.18).

Inputs are picked by selectors and extended, so that an operation sees numbers of which nothing is lost (in s64, in
SIMD in s32); its result is clamped if asked, and then merged into a third operand or combined with it.
"""

from __future__ import annotations

import re

from ptxvm.algebra.derived.integers import absolute, field, mux, saturate
from ptxvm.algebra.derived.packed import elements, pack
from ptxvm.algebra.types import named_type, s32, s64, u32, u64
from ptxvm.algebra.value import select
from ptxvm.isa.model import Problem, alu

# ── what all have in common ─────────────────────────────────────────────────────────────

SIMD_SELECTORS = {2: re.compile("h[0-3]{2}"), 4: re.compile("b[0-7]{4}")}


def with_selectors(declared, count=1):
    """The instruction, with the rule about its selectors; `count` elements where it is a SIMD one."""

    @declared.rule("P2401")
    def selector(i):
        """A selector names parts of the operand: b0 to b3, h0, h1; in SIMD two of h0 to h3, or four of b0 to b7."""
        for n, operand in enumerate(i.form.operands):
            word = i.bound.get(operand.selector)
            if word and not _names_parts(i, operand.selector, word, count):
                return Problem("P2401", f"'.{word}' is no selector for operand {n}", operand=operand.name,
                               ptxas=f"Incorrect video selector for operand {n}")  # fmt: skip
        return None

    return declared


def _names_parts(i, name, word, count):
    slot = next((s for s in i.form.marks if s.name == name), None)
    if slot is None:  # of an operand that has no parts
        return False
    return word in slot.choices if slot.choices else SIMD_SELECTORS[count].fullmatch(word)


def declare(operation, meaning, syntax, section, needs, types, count=1):
    """Declare an instruction that has the name and the words of an operation."""
    meaning.__name__, meaning.__doc__ = operation.__name__, operation.__doc__
    syntax = syntax.replace("vop", operation.__name__)
    return with_selectors(alu(syntax, section=section, types=types, needs={"": needs})(meaning), count)


def clamped(i, t, type):
    """The number `t`, limited to the range of a type where .sat is given."""
    return saturate(t, type).to(t.type) if i.sat else t


# ── scalar instructions (PTX 9.7.18.1) ──────────────────────────────────────────────────

SCALAR = """
    vop.dtype.atype.btype{.sat}      d, a{.asel}, b{.bsel};
    vop.dtype.atype.btype{.sat}.op2  d, a{.asel}, b{.bsel}, c;
    vop.dtype.atype.btype{.sat}      d{.dsel}, a{.asel}, b{.bsel}, c;
    .dtype = .atype = .btype = { .u32, .s32 };
    .dsel = .asel = .bsel = { .b0, .b1, .b2, .b3, .h0, .h1 };
    .op2 = { .add, .min, .max };
    """
SHIFT = """
    vop.dtype.atype.u32{.sat}.mode      d, a{.asel}, b{.bsel};
    vop.dtype.atype.u32{.sat}.mode.op2  d, a{.asel}, b{.bsel}, c;
    vop.dtype.atype.u32{.sat}.mode      d{.dsel}, a{.asel}, b{.bsel}, c;
    .dtype = .atype = { .u32, .s32 };
    .mode = { .clamp, .wrap };
    .dsel = .asel = .bsel = { .b0, .b1, .b2, .b3, .h0, .h1 };
    .op2 = { .add, .min, .max };
    """


def position(selector):
    """Where the part lies that a selector names, and its size: `b2` is at bit 16 and has 8 bits."""
    size = {"b": 8, "h": 16}[selector[0]] if selector else 32
    return (int(selector[1]) * size if selector else 0), size


def part(a, selector):
    """What the selector picks from a word, as a number; the word itself without a selector."""
    return field(a, *position(selector)).to(s64)


def part_type(word, selector):
    """The type of what a selector picks from a word of that type: `b2` gives `.s8` of `.s32`."""
    return named_type(f"{word.kind}{position(selector)[1]}")


def finished(i, t, c, dtype):
    """The last stage of a scalar instruction: `t` combined with `c`, or merged into it."""
    if i.op2:
        third = c.view(dtype).to(s64)
        return {"add": t + third, "min": t.min(third), "max": t.max(third)}[i.op2].to(dtype)
    word = t.to(dtype)
    if not i.dsel:
        return word
    at, size = position(i.dsel)
    return mux(word << at, c.view(dtype), word.lift((1 << size) - 1 << at))


def scalar(operation):
    """Declare a scalar instruction by what it does with two numbers."""

    def meaning(i, a, b, c):
        t = operation(part(a, i.asel), part(b, i.bsel))
        return finished(i, clamped(i, t, part_type(i.dtype, i.dsel)), c, i.dtype)

    types = "d: dtype, a: atype numeric, b: btype numeric, c: dtype"
    return declare(operation, meaning, SCALAR, "9.7.18.1.1", "PTX 2.0, sm_20", types)


def scalar_shift(operation):
    """Declare a scalar shift by what it does with a number and an amount of at most 32."""

    def meaning(i, a, b, c):
        n = part(b, i.bsel)
        n = n & 31 if i.mode == "wrap" else n.min(32)
        t = operation(part(a, i.asel), n, i.sat)
        return finished(i, clamped(i, t, part_type(i.dtype, i.dsel)), c, i.dtype)

    types = "d: dtype, a: atype numeric, b: type numeric, c: dtype"
    return declare(operation, meaning, SHIFT, "9.7.18.1.2", "PTX 2.0, sm_20", types)


@scalar
def vadd(a, b):
    """Add two parts of words."""
    return a + b


@scalar
def vsub(a, b):
    """Subtract one part of a word from another."""
    return a - b


@scalar
def vabsdiff(a, b):
    """Find the absolute difference of two parts of words."""
    return absolute(a - b)


@scalar
def vmin(a, b):
    """Take the lesser of two parts of words."""
    return a.min(b)


@scalar
def vmax(a, b):
    """Take the greater of two parts of words."""
    return a.max(b)


@scalar_shift
def vshl(a, n, sat):
    """Shift a part of a word left, by at most 32 or by an amount mod 32."""
    if sat:  # a word by 32 bits would lose its sign: 31 bits, of a number that is too large, are still too large
        return select(n > 31, (a << 31).max(-1 << 61).min(1 << 61) << 1, a << n)
    return a << n


@scalar_shift
def vshr(a, n, sat):
    """Shift a part of a word right, by at most 32 or by an amount mod 32."""
    return a >> n


@with_selectors
@alu(
    """
    vmad.dtype.atype.btype{.po}{.sat}{.scale}  d, {-}a{.asel}, {-}b{.bsel}, {-}c;
    .dtype = .atype = .btype = { .u32, .s32 };
    .asel = .bsel = { .b0, .b1, .b2, .b3, .h0, .h1 };
    .scale = { .shr7, .shr15 };
    """,
    section="9.7.18.1.3",
    types="d: dtype, a: atype numeric, b: btype numeric, c: dtype",
    needs={"": "PTX 2.0, sm_20"},
)
def vmad(i, a, b, c):
    """Multiply two parts of words and add a third word (and with .po one more), then scale the sum down.

    The sum is unsigned where neither factor has a sign and nothing is negated; .sat limits it accordingly.
    """
    minus = i.minus_a != i.minus_b
    unsigned = not (i.atype.is_signed or i.btype.is_signed)
    signed_sum = not unsigned or minus or i.minus_c
    wide, final = (s64, s32) if signed_sum else (u64, u32)
    product = part(a, i.asel).view(wide) * part(b, i.bsel).view(wide)
    if i.sat and signed_sum and unsigned:  # up to 2**64: keep what tells on which side of 32 bits the sum lies
        product = product.view(u64).min(1 << 62).view(s64)
    third = c.view(final).to(wide)
    total = (-product if minus else product) + (-third if i.minus_c else third) + int(i.po)
    total = total >> {None: 0, "shr7": 7, "shr15": 15}[i.scale]
    return saturate(total, final).view(i.dtype) if i.sat else total.to(i.dtype)


@vmad.rule("P2402")
def product_and_third_negated(i):
    """A vmad negates the product, by one of its factors, or the third operand: not both, and neither with .po."""
    minus = i.minus_a != i.minus_b
    if minus and i.minus_c:
        return "Operand negation limited to either (source A xor source B) or source C"
    if i.po and (minus or i.minus_c):
        return Problem("P2402", "Conflicting use of '.po' modifier with operand negation", word="po")
    return None


@with_selectors
@alu(
    """
    vset.atype.btype.cmp      d, a{.asel}, b{.bsel};
    vset.atype.btype.cmp.op2  d, a{.asel}, b{.bsel}, c;
    vset.atype.btype.cmp      d{.dsel}, a{.asel}, b{.bsel}, c;
    .atype = .btype = { .u32, .s32 };
    .cmp = { .eq, .ne, .lt, .le, .gt, .ge };
    .dsel = .asel = .bsel = { .b0, .b1, .b2, .b3, .h0, .h1 };
    .op2 = { .add, .min, .max };
    """,
    section="9.7.18.1.4",
    types="d: u32, a: atype numeric, b: btype numeric, c: u32",
    needs={"": "PTX 2.0, sm_20"},
)
def vset(i, a, b, c):
    """Compare two parts of words: 1 or 0, merged into a third word or combined with it."""
    return finished(i, part(a, i.asel).compare(i.cmp, part(b, i.bsel)).to(s64), c, u32)


# ── SIMD instructions (PTX 9.7.18.2) ────────────────────────────────────────────────────

# A mask says which elements of the result are written; a selector says by its digits, from the right, which elements
# of {b, a} the elements of an input are.
MASKS = {
    2: ".mask = { .h0, .h1, .h10 };",
    4: """.mask = { .b0, .b1, .b10, .b2, .b20, .b21, .b210,
              .b3, .b30, .b31, .b310, .b32, .b320, .b321, .b3210 };""",
}
USUAL = {2: ("h10", "h32"), 4: ("b3210", "b7654")}
SIMD = """
    vop.dtype.atype.btype{.sat}  d{.mask}, a{.asel}, b{.bsel}, c;
    vop.dtype.atype.btype.add    d{.mask}, a{.asel}, b{.bsel}, c;
    .dtype = .atype = .btype = { .u32, .s32 };
    """
SIMD_SET = """
    vop.atype.btype.cmp      d{.mask}, a{.asel}, b{.bsel}, c;
    vop.atype.btype.cmp.add  d{.mask}, a{.asel}, b{.bsel}, c;
    .atype = .btype = { .u32, .s32 };
    .cmp = { .eq, .ne, .lt, .le, .gt, .ge };
    """


def digits(selector):
    """The elements that a selector or a mask names, the lowest first."""
    return [int(digit) for digit in reversed(selector[1:])]


def vectors(i, a, b, count):
    """The pairs of numbers that a SIMD instruction works on."""
    size = 32 // count
    inputs = []
    for selector, usual, type in zip((i.asel, i.bsel), USUAL[count], (i.atype, i.btype), strict=True):
        words = a.view(type), b.view(type)
        at = [divmod(n, count) for n in digits(selector or usual)]
        inputs.append([field(words[word], n * size, size).view(s32) for word, n in at])
    return zip(*inputs, strict=True)


def merged(i, t, c, dtype):
    """The last stage of a SIMD instruction: the masked elements added to `c`, or put into it."""
    count = len(t)
    chosen = digits(i.mask) if i.mask else range(count)
    if i.add:
        total = c.view(dtype)
        for n in chosen:
            total += t[n]
        return total
    type = named_type(f"u{32 // count}")
    kept = elements(c, type)
    return pack([t[n].to(type) if n in chosen else kept[n] for n in range(count)], dtype)


def simd(operation):
    """Declare the SIMD instruction of two or four elements by what it does with two numbers."""
    count = int(operation.__name__[-1])

    def meaning(i, a, b, c):
        element = named_type(f"{i.dtype.kind}{32 // count}")
        return merged(i, [clamped(i, operation(x, y), element) for x, y in vectors(i, a, b, count)], c, i.dtype)

    section, types = {2: "9.7.18.2.1", 4: "9.7.18.2.3"}[count], "d: dtype reg, a: atype reg, b: btype reg, c: dtype reg"
    return declare(operation, meaning, SIMD + MASKS[count], section, "PTX 3.0, sm_30", types, count)


def simd_set(operation):
    """Declare the SIMD comparison of two or four elements."""
    count = int(operation.__name__[-1])

    def meaning(i, a, b, c):
        return merged(i, [x.compare(i.cmp, y).to(s32) for x, y in vectors(i, a, b, count)], c, u32)

    section, types = {2: "9.7.18.2.2", 4: "9.7.18.2.4"}[count], "d: u32 reg, a: atype reg, b: btype reg, c: u32 reg"
    return declare(operation, meaning, SIMD_SET + MASKS[count], section, "PTX 3.0, sm_30", types, count)


def average(a, b):
    """Half the sum, rounded to the nearest integer, and a half away from zero."""
    total = a + b
    return select(total >= 0, total + 1, total) >> 1


@simd
def vadd2(a, b):
    """Add two pairs of halves."""
    return a + b


@simd
def vadd4(a, b):
    """Add four pairs of bytes."""
    return a + b


@simd
def vsub2(a, b):
    """Subtract two pairs of halves."""
    return a - b


@simd
def vsub4(a, b):
    """Subtract four pairs of bytes."""
    return a - b


@simd
def vavrg2(a, b):
    """Average two pairs of halves; a half is rounded away from zero."""
    return average(a, b)


@simd
def vavrg4(a, b):
    """Average four pairs of bytes; a half is rounded away from zero."""
    return average(a, b)


@simd
def vabsdiff2(a, b):
    """Find the absolute differences of two pairs of halves."""
    return absolute(a - b)


@simd
def vabsdiff4(a, b):
    """Find the absolute differences of four pairs of bytes."""
    return absolute(a - b)


@simd
def vmin2(a, b):
    """Take the lesser of two pairs of halves."""
    return a.min(b)


@simd
def vmin4(a, b):
    """Take the lesser of four pairs of bytes."""
    return a.min(b)


@simd
def vmax2(a, b):
    """Take the greater of two pairs of halves."""
    return a.max(b)


@simd
def vmax4(a, b):
    """Take the greater of four pairs of bytes."""
    return a.max(b)


@simd_set
def vset2():
    """Compare two pairs of halves: 1 where the comparison holds, otherwise 0."""


@simd_set
def vset4():
    """Compare four pairs of bytes: 1 where the comparison holds, otherwise 0."""
