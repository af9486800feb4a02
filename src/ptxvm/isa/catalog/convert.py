"""Conversions (PTX 9.7.9.21)."""

from __future__ import annotations

from ptxvm.algebra.derived.floats import canonical_nan, clamp01, flush_subnormal, is_nan, relu
from ptxvm.algebra.derived.formats import (
    FORMATS,
    decode,
    decode_fixed,
    decode_scale,
    encode,
    encode_fixed,
    encode_scale,
    to_tf32,
)
from ptxvm.algebra.derived.integers import saturate
from ptxvm.algebra.derived.packed import elements, pack
from ptxvm.algebra.types import b8, b16, b32, bf16, bf16x2, e4m3x2, e5m2x2, f16, f32, f64, s2f6x2, ue8m0x2
from ptxvm.algebra.value import select
from ptxvm.isa.model import Problem, instruction
from ptxvm.isa.operand_types import UNKNOWN

# ── 9.7.9.21: from one number to another ────────────────────────────────────────────────


@instruction(
    """
    cvt{.irnd}{.ftz}{.sat}.dtype.atype  d, a;  // rounds to an integral value
    cvt.frnd{.ftz}{.sat}.dtype.atype    d, a;  // rounds to a float
    .irnd = { .rni, .rzi, .rmi, .rpi };
    .frnd = { .rn, .rz, .rm, .rp };
    .dtype = .atype = { .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .bf16, .f16, .f32, .f64 };
    """,
    section="9.7.9.21",
    types="d: dtype wide plain, a: atype wide plain special",
    needs={"": "PTX 1.0", ".ftz": "PTX 1.4"},
)
def cvt(i, a):
    """Convert a number from one type to another; what is out of an integer's range becomes the nearest end of it.

    sm_1x has no subnormal f32; up to PTX 1.4 a conversion from or to f64 keeps them all the same.
    """
    source, target = i.atype, i.dtype
    flushes = i.ftz or (i.flushes and not (i.version <= (1, 4) and f64 in (source, target)))
    if flushes and source is f32:
        a = canonical_nan(flush_subnormal(a))
    if source.is_int and target.is_int:
        return saturate(a, target) if i.sat else a.to(target)
    if target.is_int:
        return to_integer(a, target, i.irnd)
    d = a.round(i.irnd) if i.irnd else a.to(target, i.frnd or "rn")
    if flushes and target is f32:
        d = flush_subnormal(d)
    if i.sat:
        return clamp01(d)
    if target is f32 and source in (f32, bf16) and not flushes and not i.irnd:
        return a if source is f32 else (a.view(b16).to(b32) << 16).view(f32)  # bits are moved
    return canonical_nan(d)


def to_integer(a, target, mode):
    """A float as an integer; NaN is 0, or the sign bit alone where one of the two has 64 bits."""
    nan = 1 << target.bits - 1 if a.type is f64 or target.bits == 64 else 0
    d = a.round(mode).to(target)
    return d if nan == 0 else select(is_nan(a), nan, d)


def widths_are_half(i):
    """Are both of 16 bits, but of different formats?"""
    return {i.dtype, i.atype} == {f16, bf16}


def loses_precision(i):
    """Is the target a float that cannot hold every source?"""
    return i.dtype.is_float and (i.atype.is_int or i.dtype.bits < i.atype.bits)


def covers(target, source):
    """Does the range of one integer type include that of another?"""
    return target.range[0] <= source.range[0] and target.range[1] >= source.range[1]


@cvt.rule("P1701")
def ftz_is_for_f32(i):
    """.ftz needs .f32 as the source or the target; up to PTX 1.4 a target of 64 bits excludes it."""
    if i.ftz and (f32 not in (i.dtype, i.atype) or (i.version <= (1, 4) and i.dtype.bits == 64)):
        said = "Modifier '.ftz' does not apply to this type of convert operation"
        if i.dtype.is_float or i.atype.is_float:
            return Problem("P1701", said, word="ftz")
        return Problem("P1701", said, word="ftz", ptxas="Illegal modifier '.ftz' for instruction 'cvt'", consequence=said)
    return None


@cvt.rule("P1702")
def sat_that_cannot_matter(i):
    """.sat needs a target that cannot hold every value of the source, and is not for bf16."""
    integers = i.dtype.is_int and i.atype.is_int
    if i.sat and (bf16 in (i.dtype, i.atype) or (integers and covers(i.dtype, i.atype))):
        return Problem("P1702", "Illegal modifier '.sat' for instruction 'cvt'", word="sat")
    return None


@cvt.rule("P1703")
def rounding_that_cannot_matter(i):
    """Integer rounding is for results that are integral, float rounding for those that lose precision."""
    integral = i.atype.is_float and (i.dtype.is_int or i.dtype is i.atype)
    may_round = loses_precision(i) or widths_are_half(i) or (i.dtype in (f32, f64) and i.atype is bf16)
    if (i.irnd and not integral) or (i.frnd and not may_round):
        return Problem("P1703", "Illegal rounding modifier for instruction 'cvt'", word=i.bound.get("irnd") or i.bound["frnd"])
    return None


@cvt.rule("P1704")
def rounding_that_is_missing(i):
    """A conversion that can lose precision says how it rounds."""
    rounds = loses_precision(i) or (i.atype.is_float and i.dtype.is_int)
    if rounds and not i.irnd and not i.frnd:
        choices = ".rni, .rzi, .rmi or .rpi" if i.dtype.is_int else ".rn, .rz, .rm or .rp"
        return Problem("P1704", "Rounding modifier required for instruction 'cvt'", help=f"say how to round: {choices}")
    return None


@cvt.rule("P1705")
def bf16_registers_are_not_wider(i):
    """No register of a conversion from or to .bf16 is wider than its type."""
    if bf16 not in (i.dtype, i.atype):
        return None
    for operand, type in (("d", i.dtype), ("a", i.atype)):
        shape = i.shape(operand) or UNKNOWN
        if shape.kind == "register" and shape.type is not None and shape.type.bits > type.bits:
            said = f"a conversion from or to .bf16 takes no register wider than {type}"
            return Problem("P1705", said, operand=operand, ptxas="Arguments mismatch for instruction 'cvt'")
    return None


@cvt.rule("P1706")
def special_register_to_a_float(i):
    """A special register is an integer, and is converted to an integer."""
    if not (i.dtype.is_int and i.atype.is_int) and (i.shape("a") or UNKNOWN).kind == "special":
        said = "a special register is converted from an integer to an integer"
        return Problem("P1706", said, operand="a", help="move it to a register first",
                       ptxas="Special register argument not allowed for instruction 'cvt'")  # fmt: skip
    return None


@cvt.needs_when("PTX 7.0, sm_80")
def bf16_from_f32(i):
    """The first conversion to bf16."""
    return i.dtype is bf16 and i.atype is f32


@cvt.needs_when("PTX 7.1, sm_80")
def f32_from_bf16(i):
    """The first conversion from bf16."""
    return i.dtype is f32 and i.atype is bf16


@cvt.needs_when("PTX 7.8, sm_90")
def cvt_of_bf16(i):
    """Conversions between bf16 and what is not f32; .ftz of them."""
    return bf16 in (i.dtype, i.atype) and (f32 not in (i.dtype, i.atype) or (i.ftz and i.dtype is f32))


# ── 9.7.9.21: from f32 to halves, and pairs of them ─────────────────────────────────────


def halved(i, a, target):
    """An f32 as f16 or bf16, with .satfinite and .relu."""
    d = a.to(target, i.frnd)
    if i.satfinite:
        bits, greatest = d.view(b16), FORMATS[target.name].greatest
        d = select((bits & 0x7FFF) > greatest, bits & 0x8000 | greatest, bits).view(target)
        d = select(is_nan(a), 0x7FFF, d.view(b16)).view(target)
    return canonical_nan(relu(d) if i.relu else d)


@instruction(
    """
    cvt.frnd.relu{.satfinite}.dtype.f32  d, a;
    cvt.frnd.satfinite.dtype.f32         d, a;
    .frnd = { .rn, .rz };
    .dtype = { .f16, .bf16 };
    """,
    section="9.7.9.21",
    types="d: dtype wide plain, a: f32 wide plain",
    needs={".bf16": "PTX 7.0, sm_80", ".relu": "PTX 7.0, sm_80", ".satfinite": "PTX 8.1, sm_70"},
)
def cvt_limited(i, a):
    """Convert an f32 to f16 or bf16, limited: .relu from below by 0, .satfinite by the greatest number."""
    return halved(i, a, i.dtype)


@instruction(
    """
    cvt.frnd{.relu}{.satfinite}.dtype.f32  d, a, b;
    .frnd = { .rn, .rz };
    .dtype = { .f16x2, .bf16x2 };
    """,
    section="9.7.9.21",
    types="d: dtype plain, *: f32 plain",
    needs={"": "PTX 7.0, sm_80", ".satfinite": "PTX 8.1"},
)
def cvt_pair(i, a, b):
    """Convert two f32 to a pair of halves; the first becomes the upper one."""
    return pack([halved(i, x, i.dtype.element) for x in (b, a)], i.dtype)


@instruction(
    """
    cvt.rs{.relu}{.satfinite}.dtype.f32  d, a, b, rbits;
    .dtype = { .f16x2, .bf16x2 };
    """,
    section="9.7.9.21",
    types="d: dtype plain, rbits: b32 plain untyped, *: f32 plain",
    needs={"": "PTX 8.7, sm_100a sm_103a"},
)
def cvt_pair_rs(i, a, b, rbits):
    """Convert two f32 to a pair of halves, rounding at random: 13 bits decide for f16, 16 for bf16."""
    format = FORMATS[i.dtype.element.name]
    unused = 3 if i.dtype.element is f16 else 0
    halves = (b, rbits << unused & 0xFFFF), (a, rbits >> 16 << unused & 0xFFFF)
    codes = [encode(x, format, random, finite=i.satfinite, relu=i.relu) for x, random in halves]
    return pack(codes, i.dtype)


@instruction(
    """
    cvt.rna{.satfinite}.tf32.f32           d, a;
    cvt.frnd{.satfinite}{.relu}.tf32.f32   d, a;
    .frnd = { .rn, .rz };
    """,
    section="9.7.9.21",
    types="d: u32 plain untyped, a: f32 plain",
    needs={
        "": "PTX 7.0, sm_80",
        ".rn .rz": "PTX 7.8, sm_90",
        ".satfinite": "PTX 8.1",
    },
)
def cvt_tf32(i, a):
    """Round an f32 to tf32, which keeps ten bits of the fraction."""
    return to_tf32(a, i.frnd or "rna", finite=i.satfinite, relu=i.relu).view(b32)


@cvt_tf32.needs_when("PTX 8.6, sm_100")
def tf32_rounded_and_limited(i):
    """.rn and .rz with .satfinite."""
    return i.satfinite and bool(i.frnd)


# ── 9.7.9.21: from and to the formats of eight bits and fewer ───────────────────────────

FAMILY = "sm_100f sm_110f sm_120f"
CHIPS = "sm_100a sm_103a sm_110a sm_120a sm_121a"
FP8 = (e4m3x2, e5m2x2)


def format_of(type):
    """The format of each element, by the name before the `x`."""
    return FORMATS[type.name.partition("x")[0]]


def join(codes, format, target):
    """The codes in one value, the first lowest; codes of six bits have a byte each."""
    size = 4 if format.bits == 4 else 8
    bits = codes[0].to(b32)
    for n, code in enumerate(codes[1:], 1):
        bits = bits | code.to(b32) << n * size
    return bits.to(target.as_bits).view(target)


def bytes_of(a):
    """The two bytes of a value, the lower first."""
    bits = a.view(b16)
    return (bits & 0xFF).to(b8), (bits >> 8).to(b8)


def pair_of_bytes(low, high, target):
    """Two bytes as one value."""
    return (low.to(b16) | high.to(b16) << 8).view(target)


@instruction(
    """
    cvt.rn.satfinite{.relu}.dtype.f32  d, a, b;
    .dtype = { .e4m3x2, .e5m2x2, .e2m1x2, .e2m3x2, .e3m2x2 };
    """,
    section="9.7.9.21",
    types="d: dtype plain, *: f32 plain",
    needs={".e4m3x2 .e5m2x2": "PTX 7.8, sm_89", ".e2m1x2 .e2m3x2 .e3m2x2": f"PTX 8.6, {FAMILY}"},
)
def cvt_small(i, a, b):
    """Convert two f32 to a pair of small floats; the first becomes the upper one."""
    format = format_of(i.dtype)
    return join([encode(x, format, relu=i.relu) for x in (b, a)], format, i.dtype)


@instruction(
    """
    cvt.rn.satfinite{.relu}.dtype.atype  d, a;
    .dtype = { .e4m3x2, .e5m2x2, .e2m1x2, .e2m3x2, .e3m2x2 };
    .atype = { .f16x2, .bf16x2 };
    """,
    section="9.7.9.21",
    types="d: dtype plain, a: atype plain",
    needs={".e4m3x2 .e5m2x2": "PTX 7.8, sm_89", ".e2m1x2 .e2m3x2 .e3m2x2 .bf16x2": f"PTX 9.1, {FAMILY}"},
)
def cvt_small_pair(i, a):
    """Convert a pair of halves to a pair of small floats."""
    format = format_of(i.dtype)
    return join([encode(x.to(f32), format, relu=i.relu) for x in elements(a)], format, i.dtype)


@instruction(
    """
    cvt.rn{.relu}.f16x2.atype               d, a;
    cvt.rn{.relu}{.satfinite}.bf16x2.atype  d, a;
    .atype = { .e4m3x2, .e5m2x2, .e2m1x2, .e2m3x2, .e3m2x2 };
    """,
    section="9.7.9.21",
    types="d: type plain, a: atype plain",
    needs={
        ".e4m3x2 .e5m2x2": "PTX 7.8, sm_89",
        ".e2m1x2 .e2m3x2 .e3m2x2": f"PTX 8.6, {FAMILY}",
        ".bf16x2": f"PTX 9.2, {FAMILY}",
    },
)
def cvt_from_small(i, a):
    """Convert a pair of small floats to a pair of halves, which hold them exactly."""
    format, bits = format_of(i.atype), a.view(a.type.as_bits).to(b32)
    codes = (bits & 0xF, bits >> 4) if format.bits == 4 else (bits & 0xFF, bits >> 8)
    values = [decode(code, format).to(i.type.element) for code in codes]
    return pack([canonical_nan(relu(x) if i.relu else x) for x in values], i.type)


@cvt_small.needs_when("PTX 8.1")
@cvt_small_pair.needs_when("PTX 8.1")
@cvt_from_small.needs_when("PTX 8.1")
def fp8_on_sm_89(i):
    """sm_89 came to fp8 later than sm_90."""
    return i.target.number == 89


@instruction(
    """
    cvt.rs{.relu}.satfinite.dtype.f32  d, {a, b, e, f}, rbits;
    .dtype = { .e4m3x4, .e5m2x4, .e2m1x4, .e2m3x4, .e3m2x4 };
    """,
    section="9.7.9.21",
    types="d: dtype plain, rbits: b32 plain untyped, *: f32 plain",
    needs={"": "PTX 8.7, sm_100a sm_103a"},
)
def cvt_small_rs(i, a, b, e, f, rbits):
    """Convert four f32 to small floats, rounding at random; the first becomes the uppermost one.

    The upper half of the random bits is for `a` and `b`, the lower for `e` and `f`; for e2m1, of each half the upper
    byte is for the first.
    """
    format = format_of(i.dtype)
    low, high = rbits & 0xFFFF, rbits >> 16
    halves = [(low & 0xFF) << 8, (high & 0xFF) << 8, low & 0xFF00, high & 0xFF00]
    randoms = halves if format.bits == 4 else [low, low, high, high]
    codes = [encode(x, format, r, relu=i.relu) for x, r in zip((f, e, b, a), randoms, strict=True)]
    return join(codes, format, i.dtype)


@instruction(
    """
    cvt.frnd{.satfinite}.ue8m0x2.f32  d, a, b;
    .frnd = { .rz, .rp };
    """,
    section="9.7.9.21",
    types="d: ue8m0x2 plain, *: f32 plain",
    needs={"": f"PTX 8.6, {FAMILY}"},
)
def cvt_scale(i, a, b):
    """Convert two f32 to a pair of scale factors, powers of two; the first becomes the upper one."""
    low, high = (encode_scale(x, i.frnd, finite=i.satfinite) for x in (b, a))
    return pair_of_bytes(low, high, ue8m0x2)


@instruction(
    """
    cvt.frnd{.satfinite}.ue8m0x2.bf16x2  d, a;
    .frnd = { .rz, .rp };
    """,
    section="9.7.9.21",
    types="d: ue8m0x2 plain, a: bf16x2 plain bf16x2=b32",
    needs={"": f"PTX 8.6, {FAMILY}"},
)
def cvt_scale_pair(i, a):
    """Convert a pair of bf16 to a pair of scale factors, powers of two."""
    low, high = (encode_scale(x.to(f32), i.frnd, finite=i.satfinite) for x in elements(a))
    return pair_of_bytes(low, high, ue8m0x2)


@instruction(
    "cvt.rn.bf16x2.ue8m0x2  d, a;",
    section="9.7.9.21",
    types="d: bf16x2 plain bf16x2=b32, a: ue8m0x2 plain",
    needs={"": f"PTX 8.6, {FAMILY}"},
)
def cvt_from_scale(i, a):
    """Convert a pair of scale factors to a pair of bf16."""
    return pack([canonical_nan(decode_scale(x).to(bf16)) for x in bytes_of(a)], bf16x2)


def scaled(x, factor, sign):
    """A number multiplied (sign 1) or divided (sign -1) by a scale factor; as it is where there is none."""
    if factor is None:
        return x
    scale = decode_scale(factor)
    return x * scale if sign > 0 else x.floating("div", scale)


def factors(operand):
    """The two scale factors of an operand, the lower first; none where it was left out."""
    return (None, None) if operand is None else bytes_of(operand)


@instruction(
    """
    cvt.rn.satfinite{.relu}.s2f6x2.f32                    d, a, b;
    cvt.rn.satfinite{.relu}.scaled::n2::ue8m0.s2f6x2.f32  d, a, b, scale;
    """,
    section="9.7.9.21",
    types="d: s2f6x2 plain, scale: b16 plain, *: f32 plain",
    needs={"": f"PTX 9.1, {CHIPS}"},
)
def cvt_fixed(i, a, b, scale=None):
    """Convert two f32, divided by scale factors, to a pair of fixed-point numbers; the first becomes the upper one."""
    low, high = (encode_fixed(scaled(x, s, -1), relu=i.relu) for x, s in zip((b, a), factors(scale), strict=True))
    return pair_of_bytes(low, high, s2f6x2)


@instruction(
    """
    cvt.rn.satfinite{.relu}.s2f6x2.bf16x2                    d, a;
    cvt.rn.satfinite{.relu}.scaled::n2::ue8m0.s2f6x2.bf16x2  d, a, scale;
    """,
    section="9.7.9.21",
    types="d: s2f6x2 plain, scale: b16 plain, a: bf16x2 plain",
    needs={"": f"PTX 9.1, {CHIPS}"},
)
def cvt_fixed_pair(i, a, scale=None):
    """Convert a pair of bf16, divided by scale factors, to a pair of fixed-point numbers."""
    pairs = zip(elements(a), factors(scale), strict=True)
    low, high = (encode_fixed(scaled(x.to(f32), s, -1), relu=i.relu) for x, s in pairs)
    return pair_of_bytes(low, high, s2f6x2)


@instruction(
    """
    cvt.rn{.satfinite}{.relu}.bf16x2.s2f6x2                    d, a;
    cvt.rn{.satfinite}{.relu}.scaled::n2::ue8m0.bf16x2.s2f6x2  d, a, scale;
    """,
    section="9.7.9.21",
    types="d: bf16x2 plain, scale: b16 plain, a: s2f6x2 plain",
    needs={"": f"PTX 9.1, {CHIPS}"},
)
def cvt_from_fixed(i, a, scale=None):
    """Convert a pair of fixed-point numbers to a pair of bf16, multiplied by scale factors."""
    values = [scaled(decode_fixed(x), s, 1).to(bf16) for x, s in zip(bytes_of(a), factors(scale), strict=True)]
    return pack([canonical_nan(relu(x) if i.relu else x) for x in values], bf16x2)
