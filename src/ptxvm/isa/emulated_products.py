"""Products that ptxas turns into calls of its own functions, on targets whose tensor cores lack them.

The elements of their matrices become arguments of a call, which special registers cannot be.  Products of small floats it
makes of products of halves and of sums (`add`), whose operands C and D become.
"""

from __future__ import annotations

from ptxvm.algebra.types import b1, f16, s4, u4
from ptxvm.isa.model import Decoded, Problem

QUARTERS = "m8n8k4"  # the shape of which a warp computes four products


def is_emulated(i: Decoded) -> bool:
    """Does ptxas make a call of it?"""
    if i.atype is f16:
        return i.mnk == QUARTERS and i.target.number >= 80
    if i.atype is b1:
        return i.target.number >= (90 if "xor" in i.bound.values() else 100)
    return i.atype in (s4, u4) and i.target.number >= 90


def special_in_a_call(i: Decoded, operands: str) -> Problem | None:
    """No element of the operands is a special register, where ptxas makes a call of the instruction."""
    special = next((item for name in operands for item in i.shape(name).items if item.kind == "special"), None)
    if special is None:
        return None
    said = "a special register stands where one of the program is needed"
    return Problem("P2712", said, ptxas=f"Call argument '%{special.detail}' has illegal state space")


def special_in_an_emulated_product(i: Decoded) -> Problem | None:
    """No element of A, B or C is a special register, on targets for which ptxas makes a call of the product."""
    return special_in_a_call(i, "abc") if is_emulated(i) else None


def added_elsewhere(i: Decoded) -> Problem | None:
    """No element of C or D is a special register, and none of D thrown away, where ptxas adds in instructions of their own."""
    if not 90 <= i.target.number < 120:  # the others multiply small floats
        return None
    kinds = {item.kind for name in "cd" for item in i.shape(name).items}
    if "special" in kinds:
        said = "a special register stands where one of the program is needed"
        return Problem("P2712", said, ptxas="Special register argument not allowed for instruction 'add'")
    if "sink" in kinds:
        return Problem(
            "P2712", "'_' stands where a register is needed", ptxas="Result discard mode is not allowed for instruction 'add'"
        )
    return None
