"""Addresses that are narrower than those of the host: ptxas warns of them, and makes no code for addresses of 32 bits.

A module without `.address_size` has the addresses of the host, unless it uses narrower ones, which are then its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Bound, Program
from ptxvm.isa.access import base_of, space_of
from ptxvm.isa.operand_types import Shape
from ptxvm.isa.targets import Target
from ptxvm.named_tuple import NamedTuple
from ptxvm.syntax import tree

WIDE = (Space.GENERIC, Space.GLOBAL)
"""The spaces whose addresses have the size of the module's; windows in other spaces are smaller than 4 GiB."""
CHECKED = frozenset({"memory", "atomic", "misc", "mbarrier"})
"""The families of whose addresses ptxas says it: asynchronous copies, matrices and tensor maps take narrow ones."""
HOST = 64
WORD = 32
NO_ABI = 90  # the first target of which it names the ABI


class NarrowAddress(NamedTuple):
    """An address in a register: its line and its bits, and whether its module says how many it has."""

    line: int
    bits: int
    is_conflict: bool

    @property
    def warning(self) -> str:
        """What ptxas says of it."""
        return self._conflict if self.is_conflict else other_host(self.bits)

    @property
    def _conflict(self) -> str:
        return f"Program uses {self.bits}-bit address on line '{self.line}' which is conflicting with .address_size 64"


def other_host(bits: int) -> str:
    """What ptxas says of a module with addresses of another size than the host's."""
    return f" {HOST} Bit host architecture (--machine) being used mismatches with .address_size of {bits} bits"


def narrow_addresses(program: Program) -> Iterator[NarrowAddress]:
    """The addresses of generic and global memory in registers of fewer bits than an address has, in their order.

    Where the module does not say how many that are, the first one does.
    """
    declares = declares_size(program)
    for function in program.functions.values():
        for bound in function.instructions:
            for bits in _bits(bound):
                if bits < HOST:
                    yield NarrowAddress(program.source.location(bound.node.start)[0], bits, is_conflict=declares)
                    if not declares:
                        return


def declares_size(program: Program) -> bool:
    """Has the module an `.address_size` directive?"""
    return any(isinstance(each, tree.Directive) and each.name == "address_size" for each in program.tree.statements)


def no_narrow_code(target: Target) -> str:
    """How ptxas refuses a program with addresses of 32 bits."""
    if target.number >= NO_ABI:
        return " 32-Bit ABI (--machine 32 or 32-Bit addressing) is not supported on sm_90 or higher architectures."
    return " 32-Bit compilation is no longer supported"


def is_global(shape: Shape) -> bool:
    """Is the operand a variable in global memory, without an offset?"""
    return shape.kind == "variable" and shape.space == Space.GLOBAL and shape.detail != "offset"


def _bits(bound: Bound) -> Iterator[int]:
    i = bound.decoded
    if i is not None and "type" in i.of.modifiers and i.type is not None:
        if bound.summary.converts_address:
            yield i.type.bits  # of the generic address, whatever the space
        elif not i.of.effects and "a" in bound.operands and is_global(i.shape("a")):  # it takes the address of a variable
            yield i.type.bits
    if i is None or i.of.family not in CHECKED or i.of.effects != {"mem"} or "tensormap" in i.of.flags:
        return
    if "ss" in i.of.modifiers and space_of(i) not in WIDE:
        return
    for operand in i.form.operands:
        shape = i.shape(operand.name) if operand.address and operand.name in bound.operands else None
        base = base_of(shape) if shape is not None and shape.kind == "address" else None
        if base is not None and base.kind == "register" and base.type is not None:
            yield base.type.bits
