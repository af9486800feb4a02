"""Addresses that are narrower than those of their module: ptxas warns of them, and makes no code for addresses of 32 bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Bound, Program
from ptxvm.isa.access import base_of, space_of
from ptxvm.isa.targets import Target

WIDE = (Space.GENERIC, Space.GLOBAL)
"""The spaces whose addresses have the size of the module's; windows in other spaces are smaller than 4 GiB."""
CHECKED = frozenset({"memory", "atomic", "misc", "mbarrier"})
"""The families of whose addresses ptxas says it: asynchronous copies, matrices and tensor maps take narrow ones."""
WORD = 32
NO_ABI = 90  # the first target of which it names the ABI


class NarrowAddress(NamedTuple):
    """An address in a register: its line and its bits."""

    line: int
    bits: int

    @property
    def warning(self) -> str:
        """What ptxas says of it."""
        return f"Program uses {self.bits}-bit address on line '{self.line}' which is conflicting with .address_size 64"


def narrow_addresses(program: Program) -> Iterator[NarrowAddress]:
    """The addresses of generic and global memory in registers of fewer bits than an address has, in their order."""
    for function in program.functions.values():
        for bound in function.instructions:
            for bits in _bits(bound):
                if bits < program.address_size:
                    yield NarrowAddress(program.source.location(bound.node.start)[0], bits)


def no_narrow_code(target: Target) -> str:
    """How ptxas refuses a program with addresses of 32 bits."""
    if target.number >= NO_ABI:
        return " 32-Bit ABI (--machine 32 or 32-Bit addressing) is not supported on sm_90 or higher architectures."
    return " 32-Bit compilation is no longer supported"


def _bits(bound: Bound) -> Iterator[int]:
    i = bound.decoded
    if i is None or i.of.family not in CHECKED or i.of.effects != {"mem"} or "tensormap" in i.of.flags:
        return
    if "ss" in i.of.modifiers and space_of(i) not in WIDE:
        return
    for operand in i.form.operands:
        shape = i.shape(operand.name) if operand.address and operand.name in bound.operands else None
        base = base_of(shape) if shape is not None and shape.kind == "address" else None
        if base is not None and base.kind == "register" and base.type is not None:
            yield base.type.bits
