"""Mixed-precision floating-point instructions, f16 or bf16 factors, f32 sums (PTX 9.7.5)."""

from __future__ import annotations

from ptxvm.algebra.derived.rounding import arithmetic, finish
from ptxvm.algebra.types import f32
from ptxvm.isa.model import alu

SUM = """
    OP{.rnd}{.sat}.f32.atype  d, a, c;
    .atype = { .f16, .bf16 };
    .rnd = { .rn, .rz, .rm, .rp };
    """
NEEDS = {"": "PTX 8.6, sm_100"}


@alu(SUM.replace("OP", "add"), section="9.7.5.1", types="a: atype bf16=u16, *: f32 function", needs=NEEDS)
def add(i, a, c):
    """Add an f32 to a narrower number."""
    return finish(i, arithmetic("add", i.rnd or "rn", a.to(f32), c))


@alu(SUM.replace("OP", "sub"), section="9.7.5.2", types="a: atype bf16=u16, *: f32 function", needs=NEEDS)
def sub(i, a, c):
    """Subtract an f32 from a narrower number."""
    return finish(i, arithmetic("sub", i.rnd or "rn", a.to(f32), c))


@alu(
    """
    fma.rnd{.sat}.f32.abtype  d, a, b, c;
    .abtype = { .f16, .bf16 };
    .rnd = { .rn, .rz, .rm, .rp };
    """,
    section="9.7.5.3",
    types="a b: abtype bf16=u16, *: f32 function",
    needs=NEEDS,
)
def fma(i, a, b, c):
    """Multiply two narrow numbers and add an f32, rounded once."""
    return finish(i, arithmetic("fma", i.rnd, a.to(f32), b.to(f32), c))
