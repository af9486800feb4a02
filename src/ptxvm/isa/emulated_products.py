"""Products that ptxas turns into calls of its own functions, on targets whose tensor cores lack them.

The elements of their matrices become arguments of a call, which special registers cannot be.  Products of small floats it
makes of products of halves and of sums (`add`), whose operands C and D become.
"""

from __future__ import annotations

from ptxvm.algebra.types import b1, f16, f32, s4, u4
from ptxvm.isa.matrix import double_moved
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


def multiplies_halves(i: Decoded) -> bool:
    """Does ptxas convert the small floats of a product to halves?"""
    return 90 <= i.target.number < 120


def adds_numbers(i: Decoded, operand: str) -> bool:
    """Are the floating-point constants of the operand numbers of f32, as `add` has them?  Elsewhere they are bits."""
    return "numbers" in i.operand_type(operand).marks and i.ctype is f32 and multiplies_halves(i)


def converted_elsewhere(i: Decoded) -> Problem | None:
    """No element of A or B is a constant of 64 bits, where ptxas moves each for its conversion."""
    return (double_moved(i, "a", "mov") or double_moved(i, "b", "mov")) if multiplies_halves(i) else None


def added_elsewhere(i: Decoded) -> Problem | None:
    """C and D are operands of `add` where ptxas multiplies in halves: of registers, and in f32 of floating-point constants.

    No special register may stand there, and no element of D is thrown away.
    """
    if not multiplies_halves(i):
        return None
    kinds = {item.kind for name in "cd" for item in i.shape(name).items}
    if "integer" in kinds or (i.ctype is f16 and "float" in kinds):
        said = "a constant stands where a register is needed"
        return Problem("P2712", said, operand="c", ptxas="Arguments mismatch for instruction 'add'")
    if "special" in kinds:
        said = "a special register stands where one of the program is needed"
        return Problem("P2712", said, ptxas="Special register argument not allowed for instruction 'add'")
    if "sink" in kinds:
        return Problem(
            "P2712", "'_' stands where a register is needed", ptxas="Result discard mode is not allowed for instruction 'add'"
        )
    return None
