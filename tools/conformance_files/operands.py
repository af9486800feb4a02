"""The types of operands, and the values that runs give them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from fractions import Fraction
from random import Random

import exact
from exact import BF16, F16, F32, F64, Format
from one_instruction import EXPONENT, bits

from conformance_files.silicon import recorded_inputs

FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
ONE = {name: f.bias << f.fraction for name, f in FORMATS.items()}
PAIR = "ff32"  # two f16 in 32 bits, as a type of operands
ADDEND = "sf32"  # an f32, often subnormal or near that
SMALL = "us32"  # an f32 in and about the ranges of the small formats
RECORDED = "sfu32"  # an f32 of which silicon's results are recorded


class Unsaid(Exception):  # noqa: N818 - no error: the manual leaves the result open
    """A definition has nothing to say about these operands."""


def draw(type: str, random: Random) -> int:
    """A pattern that breaks things, a small number (they are amounts and counts too), or random bits."""
    if type == "pred":
        return random.randrange(2)
    if type == PAIR:
        return draw("f16", random) << 16 | draw("f16", random)
    if type == ADDEND:
        size = random.choice((0x80_0000 + random.getrandbits(22), random.getrandbits(23), 0x80_0000))
        return random.getrandbits(1) << 31 | size
    if type == SMALL:
        near = random.randint(100, 140) << 23 | random.getrandbits(2) << 30 & 1 << 31 | random.getrandbits(5) << 18
        return random.choice(
            (near, near | random.getrandbits(32) & 1 << 31, near ^ 1, draw("f32", random), 0x7FC0_0001, random.getrandbits(23))
        )
    if type == RECORDED:
        return random.choice(recorded_inputs()[random.choice((0, 0, 1, 2))])
    n, kind = bits(type), random.randrange(4)
    top = (1 << n) - 1
    if type in EXPONENT:
        return draw_float(FORMATS[type], kind, random)
    if kind == 0:
        return random.choice([0, 1, 2, 31, 32, 33, 63, 64, 255, 256, top, top - 1, top >> 1, (top >> 1) + 1]) & top
    if kind == 1:
        return random.randrange(70)
    return random.getrandbits(n)


def draw_float(format: Format, kind: int, random: Random) -> int:
    """An awkward number, one near 1 or near a power of two, or random bits."""
    if kind == 0:
        return random.choice(exact.interesting(format))
    if kind == 1:
        return random.getrandbits(format.bits)
    near = (format.bias << format.fraction) + random.randint(-64, 64) + (random.choice((0, 1, -1, 3, 10)) << format.fraction)
    if kind == 2:
        return near | random.choice((0, format.sign))
    whole = exact.round_fraction(Fraction(random.randint(-2000, 2000), 8), format, "rn")
    return whole ^ random.choice((0, 0, format.sign))


# f32 that small formats, tf32 and scale factors must tell apart: ties and their neighbours, the ends, what has no number.
TIES = [0x3F88_0000, 0x3F98_0000, 0x3F90_0000, 0x3FA0_0000, 0x3FB0_0000, 0x3F80_1000, 0x3F80_3000]
NEIGHBOURS = [x + n for x in TIES for n in (-1, 0, 1)]
ENDS = [
    0, 1, 0x3F_FFFF, 0x40_0000, 0x40_0001, 0x7F_FFFF, 0x80_0000, 0x80_0001, 0x7F00_0000, 0x7F00_0001, 0x7F7F_FFFF,
    0x7F80_0000, 0x7F80_0001, 0x7FFF_FFFF,
]  # fmt: skip
DELICATE = [*ENDS, *NEIGHBOURS]
# Operands that random ones would hardly hit, by the types of a case.
HARD: dict[str, Iterable[tuple[int, ...]]] = {
    # what a second rounding would betray: a product halfway between two f16, and a summand far below it
    "f16 f16 f16": [(0x3C01, 0x3E00, 0x8001), (0x3C01, 0x3E00, 0x0001), (0xBC01, 0x3E00, 0x0001)],
    f"{PAIR} {PAIR} {PAIR}": [(0x3C01_BC01, 0x3E00_3E00, 0x8001_0001)],
    SMALL: [(x,) for x in (*DELICATE, 0xFF80_0000, 0xBF80_1000)],
    f"{SMALL} {SMALL}": [(x | 1 << 31, y) for x, y in itertools.pairwise(DELICATE)],
    f"{SMALL} {SMALL} u32": [
        (0x3F8F_FFF0, 0x3F8F_FFF0, 0x0001_0001),
        (0xFFFE, 0x80_0000, 0x0001_0000), (0x7F_FFFF, 0x7F7F_FFFF, 0x0000_FFFF), (0x7FC0_0000, 0xFF80_0000, 0),
        (0x8000_0001, 0x3F_FFFF, 0xFFFF_FFFF), (0x3F80_0001, 0xBF87_FFFF, 0xFFFF_FFFF), (0x3380_0000, 0x3300_0000, 0xFFFF_8000),
        (0x3F88_0000, 0xBFA0_0000, 0x7FFF_8000), (0x43E0_0000, 0xC3F0_0000, 0x7FFF_8000),
    ],
    "u32 u32 s32 s32": [(0, 0, 0x7FFF_FFFF, 0x7FFF_FFFF), (0, 0, 0x8000_0000, 0x7FFF_FFFF)],  # sums out of range
    "b32 u32 s32": [  # of fns: the only bit upward and downward, too few, and the bit at the base
        *((1 << n, 0, 1) for n in (0, 1, 2, 4, 8, 16, 31)), (1, 32, 1), (0xF0, 5, 0), (0xF0, 3, 0),
        *((mask, base, (1 << 32) - n) for mask, base, n in ((1 << 31, 3, 1), (1 << 31, 31, 1), (1, 0, 1), (3, 1, 2), (3, 1, 3)))
    ],
}  # fmt: skip
