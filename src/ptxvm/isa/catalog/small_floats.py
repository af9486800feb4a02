"""Packed small floats, four of a byte or less, in ptxas since PTX 9.4 (PTX 9.7.5)."""

from __future__ import annotations

from functools import partial

from ptxvm.algebra.types import b16, b32
from ptxvm.isa.access import Trait, has
from ptxvm.isa.model import OperandType, Problem, checked
from ptxvm.isa.operand_types import problem

WIDE = ".e4m3x4, .e5m2x4"
ALL = f"{WIDE}, .e2m3x4, .e3m2x4, .e2m1x4"
SLOTS = f".type = {{ {WIDE} }}; .atype = .btype = {{ {ALL} }};"


def registers_of_four_floats(i):
    """Four floats of a byte stand in 32 bits, four of half a byte in 16 bits."""
    types = {"a": i.atype, "b": i.btype if "btype" in i.bound else i.type, "c": i.type}
    for operand in ("a", "b", "c"):
        shape = i.shape(operand)
        if shape is None:
            continue
        wanted = b16 if types[operand].bits == 16 else b32
        if said := problem(shape, wanted, OperandType(wanted.name, frozenset({"plain"})), destination=False):
            return Problem("P1410", said, operand=operand, ptxas=f"Arguments mismatch for instruction '{i.opcode}'")
    return None


FOUR = Trait(rules=[("P1410", registers_of_four_floats)])
computing = partial(checked, section="9.7.5", types="d: b32 plain, *: b32 plain any", needs={"": "PTX 9.4, sm_100a sm_103a"})


@has(FOUR)
@computing(f"add{{.rn}}{{.satfinite}}.type.atype  d, a, b; {SLOTS}")
def add(i, a, b):
    """Add two packs of four small floats, of which the second has the type of the sum."""


@has(FOUR)
@computing(f"sub{{.rn}}{{.satfinite}}.type.atype  d, a, b; {SLOTS}")
def sub(i, a, b):
    """Subtract two packs of four small floats, of which the second has the type of the difference."""


@has(FOUR)
@computing(f"mul{{.rn}}{{.satfinite}}.type.atype.btype  d, a, b; {SLOTS}")
def mul(i, a, b):
    """Multiply two packs of four small floats."""


@has(FOUR)
@computing(f"fma{{.rn}}{{.satfinite}}.type.atype.btype  d, a, b, c; {SLOTS}")
def fma(i, a, b, c):
    """Multiply two packs of four small floats and add a third, which has the type of the result."""


SCALED_NEEDS = {"": "PTX 9.2, sm_100f sm_110f sm_120f"}


@checked(
    """
    cvt.rn{.satfinite}{.relu}.scale.bf16x2.stype  d, a, b;
    .scale = { .scaled::n2::ue8m0 };
    .stype = { .e4m3x2, .e5m2x2, .e2m3x2, .e3m2x2 };
    """,
    section="9.7.9.21",
    types="d: b32 plain, a b: b16 plain",
    needs=SCALED_NEEDS,
)
def cvt_scaled(i, a, b):
    """Convert a pair of small floats, times scale factors, to a pair of bf16."""


@checked(
    """
    cvt.rn{.satfinite}{.relu}.scale.bf16x2.e2m1x2  d, a, b;
    .scale = { .scaled::n2::ue8m0 };
    """,
    section="9.7.9.21",
    types="d: b32 plain, a: b8 plain, b: b16 plain",
    needs=SCALED_NEEDS,
)
def cvt_scaled_four_bits(i, a, b):
    """Convert a pair of floats of four bits, times scale factors, to a pair of bf16."""
