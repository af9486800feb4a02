"""Traits of texture and surface instructions: opaque variables and vectors of coordinates (PTX 5.3).

Rule codes: P2820 the handle.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxvm.algebra.state_space import Space
from ptxvm.isa.access import Trait, elements
from ptxvm.isa.model import Check, Decoded, Problem
from ptxvm.isa.operand_types import Shape

VECTOR_SIZES = (1, 2, 4)


def is_independent(i: Decoded) -> bool:
    """Has the module samplers apart from its textures (PTX 9.7.10.1)?"""
    return "texmode_independent" in i.options


def is_handle(shape: Shape, opaque: str) -> bool:
    """Is it a variable of an opaque type (or of the old `.tex`), or a register that may hold the handle of one?"""
    if shape.kind == "register":
        return shape.type is not None and not shape.detail and shape.type.kind in "bsu" and shape.type.bits == 64
    return bool(shape.kind == "variable" and (shape.detail == opaque or (opaque, shape.space) == ("texref", Space.TEX)))


def handle(opaque: Callable[[Decoded], str]) -> Check:
    """The rule on the handle `a`; `opaque` tells the type that it has to be."""

    def wrong_handle(i: Decoded) -> Problem | None:
        """A texture, sampler or surface is named by its variable, or by a 64-bit register with its address."""
        shape, wanted = i.shape("a"), opaque(i)
        if is_handle(shape.items[0] if shape.kind == "address" and len(shape.items) == 1 else shape, wanted):
            return None
        return Problem("P2820", f"a .{wanted} variable or a 64-bit register with the handle of one is needed", operand="a",
                       ptxas=f"Argument 1 of instruction '{i.form.opcode}': .{wanted} or .u64 register expected")  # fmt: skip

    return wrong_handle


def indirect_access(i: Decoded) -> bool:
    """Is the texture or surface named by a register?"""
    shape = i.shape("a")
    if shape is None:
        return False
    return bool((shape.items[0] if shape.kind == "address" else shape).kind == "register")


def HANDLE(opaque: str, of: Callable[[Decoded], str] | None = None) -> Trait:  # noqa: N802 - a trait, with a parameter
    """An operand `a` that is an opaque variable, or holds the handle of one."""
    return Trait(rules=[("P2820", handle(of or (lambda _: opaque)))], needs=[("PTX 3.1, sm_20", indirect_access)])


def size_problem(i: Decoded, code: str, operand: str, least: int, opcode: str, shape: Shape | None = None) -> Problem | None:
    """What is wrong with the size of a vector of coordinates or offsets, which may have more elements than are used.

    A register that is no vector passes, whatever the geometry: ptxas does not look at those.
    """
    shape = shape or i.shape(operand)
    if shape.kind != "vector" and not isinstance(shape.detail, int):
        return None
    found = elements(shape)
    if found not in VECTOR_SIZES:
        return Problem(code, f"a vector has 1, 2 or 4 elements, not {found}", operand=operand,
                       ptxas=f"Illegal vector size: {found}")  # fmt: skip
    if found >= least:
        return None
    return Problem(code, f"'.{i.geom}' takes {least} elements here, not {found}", operand=operand,
                   help="what is not used may be anything: {x, y, z, z}" if least == VECTOR_SIZES[-1] else "",
                   ptxas=f"Operand vector size doesn't match geometry for instruction '{opcode}'")  # fmt: skip
