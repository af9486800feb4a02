"""Uninitialised registers: which registers of a kernel instrumented code must follow, and where it cannot."""

from __future__ import annotations

from collections.abc import Iterable

from ptxvm.analysis.flow import segments
from ptxvm.analysis.program import Function
from ptxvm.analysis.unset import may_be_unset, unset_by_instruction


class UnsetRegisters:
    """The registers of a kernel that may be undefined where they are read, and those reads; none if none is observed."""

    def __init__(self, kernel: Function) -> None:
        self.uses = unset_by_instruction(kernel, segments(kernel))
        every = {register for unset in self.uses.values() for register in unset}
        self.number = {register: n for n, register in enumerate(sorted(every, key=lambda each: each.index))}

    def size(self, warps: int) -> int:
        """Bytes of the masks."""
        return 4 * warps * len(self.number)


def doubt(kernel: Function, functions: Iterable[Function]) -> str | None:
    """Why masks do not tell whether a register is unset; None if they do."""
    if any(may_be_unset(each, segments(each)) for each in functions if each is not kernel):
        return "a register of a function may be read before it is written"
    return None
