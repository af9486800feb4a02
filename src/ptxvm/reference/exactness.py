"""How far the results of an instruction are the bits that hardware gives: what is exact, and what is bounded.

The ISA defines most results.  Where it gives a bound only, or leaves an order open, this says what ptxvm computes and
what that was held against.
"""

from __future__ import annotations

from ptxvm.isa.model import Instruction

DEFINED = "**Exact.** The ISA defines every bit of the result, and ptxvm computes it."
MOVED = "**Exact.** Bits are moved, never changed."

SILICON = (
    "**As silicon.** The ISA bounds the error of `.approx` only; ptxvm computes the bits that sm_50 to sm_75 give, from "
    "coefficients that an exhaustive sweep of recorded results determines and that random inputs confirm."
)
DIVISION = (
    "**Bounded.** `.approx` is a product with `rcp.approx`, which is as silicon has it, and `.full` the quotient rounded to "
    "nearest: both within the bound of the ISA; the bits that GPUs give are not recorded."
)
TRUNCATED = (
    "**Exact.** The ISA defines the bits: the lower half of the operand is ignored, that of the result is zero, and "
    "subnormals are flushed."
)
BOUNDED = (
    "**Bounded.** No recording of hardware is at hand: ptxvm rounds the true value, which is within the error that the "
    "ISA allows. A GPU may differ in the last bits."
)
REST_DEFINED = "With a rounding modifier, and for the other types, the ISA defines every bit, and ptxvm computes it."
SUMS = (
    "**As silicon.** The ISA leaves open how the products are added up; ptxvm does it as the tensor cores of the target "
    "do, Volta to Blackwell, and is held to recorded results. Integers and bits are exact, and f64 is a chain of fused "
    "multiply-adds."
)
ATOMIC = "**Exact**, one operation at a time. In which order threads come is open: floating-point sums depend on it."
FILTERED = (
    "**Exact** without a filter. A linear filter has weights of 9 bits (1.8), as hardware has; the order in which the "
    "weighted texels are added up is not documented."
)

BY_DECLARATION = {
    **dict.fromkeys(("float.rcp", "float.sqrt"), (SILICON, REST_DEFINED)),
    **dict.fromkeys(("float.rsqrt", "float.sin", "float.cos", "float.lg2", "float.ex2"), (SILICON,)),
    **dict.fromkeys(("float.rcp_approx_ftz_f64", "float.rsqrt_approx_ftz_f64"), (TRUNCATED,)),
    **dict.fromkeys(("float.tanh", "half.tanh", "half.ex2"), (BOUNDED,)),
    "float.div": (DIVISION, REST_DEFINED),
    "texture.tex": (FILTERED,),
    "texture.tld4": (MOVED,),
}
BY_FAMILY = {"atomic": (ATOMIC,), "memory": (MOVED,), "matrix": (MOVED,)}
SOME_F64 = "As `.f64` it is bounded: the ISA gives an error only, and nothing is recorded."


def exactness(instruction: Instruction) -> tuple[str, ...]:
    """Sentences (Markdown), the first about what is bounded if anything is; none where it computes nothing."""
    name = f"{instruction.family}.{instruction.meaning.__name__}"
    if name in BY_DECLARATION:
        return (*BY_DECLARATION[name], *((SOME_F64,) if name == "float.rsqrt" else ()))
    if instruction.family in ("mma", "wmma") and "mem" not in instruction.effects:
        return (SUMS,)
    if instruction.family in BY_FAMILY and instruction.sources:
        return BY_FAMILY[instruction.family]
    if {"approx", "full"} & instruction.modifiers:
        return (BOUNDED,)
    if instruction.effects - {"cc"} or not instruction.sources:
        return ()
    return (DEFINED,)
