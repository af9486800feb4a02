"""Stored addresses: values made of addresses that a kernel writes to memory beyond its threads and CTAs (escape analysis).

Such a value is right in one address space only: a process that runs a part of a grid on copies of the arrays would leave
addresses of its copies.  The analysis is flow-insensitive.  A register is tainted where its value may be made of the address of
an array, or of a variable or function of the module, by any operations but comparisons and loads.  The memory of a thread, a
CTA and a call counts as one cell, which is tainted by what is stored there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.flow import address_registers, value_registers
from ptxvm.analysis.outputs import WORD, loaded, reaches_memory, written
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.shapes import names_in
from ptxvm.analysis.symbols import Register, Variable

OWN = frozenset({Space.SHARED, Space.LOCAL, Space.PARAM})  # memory of a CTA, a thread or a call
OF_MODULE = frozenset({Space.GLOBAL, Space.CONST})


def stores_address(functions: Iterable[Function], arrays: Collection[Variable]) -> Bound | None:
    """An instruction that may write an address to memory that outlives its CTA; None if there is none.

    `functions` are a kernel and those that it calls, and `arrays` the parameters of the kernel that are addresses.
    """
    taint, every, before = Taint(frozenset(arrays)), list(functions), None
    while before != (before := taint.size):
        for function in every:
            taint.spread(function)
    return next((bound for function in every for bound in function.instructions if taint.leaks(bound)), None)


class Taint:
    """What may be made of an address: registers, and the memory of a thread, a CTA or a call.

    `own` are the registers with a generic address of such memory.
    """

    def __init__(self, arrays: frozenset[Variable]) -> None:
        self.arrays = arrays
        self.registers, self.own = set[Register](), set[Register]()
        self.memory = False

    @property
    def size(self) -> tuple[int, int, bool]:
        """It grows as long as something new is found."""
        return len(self.registers), len(self.own), self.memory

    def spread(self, function: Function) -> None:
        """Follow each instruction of a function once."""
        signature = function.signature
        if self.memory:
            self._add(each for each in (*signature.parameters, *signature.results) if isinstance(each, Register))
        for bound in function.instructions:
            tainted = self._uses_address(bound)
            self.memory |= tainted and (bound.calls or self._stays(bound))
            if self.memory if bound.calls else self._makes_address(bound, tainted=tainted):
                self._add(results(bound))
            if bound.summary.generic_of in OWN or (
                not reaches_memory(bound) and not self.own.isdisjoint(value_registers(bound))
            ):
                self.own.update(written(bound))
        self.memory |= not self.registers.isdisjoint(each for each in signature.results if isinstance(each, Register))

    def leaks(self, bound: Bound) -> bool:
        """Does an instruction write something that is made of an address to memory that outlives its CTA?"""
        return bound.summary.writes and self._uses_address(bound) and not self._stays(bound)

    def _stays(self, bound: Bound) -> bool:
        """Does an instruction write to memory of a thread, a CTA or a call?"""
        if not bound.summary.writes:
            return False
        through = set(address_registers(bound))
        return bound.summary.spaces <= OWN or (not through.isdisjoint(self.own) and through.isdisjoint(self.registers))

    def _uses_address(self, bound: Bound) -> bool:
        """Is an operand, other than the address that it accesses, made of an address?"""
        return not self.registers.isdisjoint(value_registers(bound))

    def _makes_address(self, bound: Bound, *, tainted: bool) -> bool:
        """Are the results of an instruction made of an address?"""
        if bound.summary.reads:
            of_array = not self.arrays.isdisjoint(loaded(bound))
            in_own = self.memory and bound.summary.spaces.isdisjoint(OF_MODULE) and not takes_parameter(bound)
            return of_array or (in_own and any(each.type.bits >= 8 * WORD for each in written(bound)))
        return not reaches_memory(bound) and (tainted or names_address(bound))

    def _add(self, registers: Iterable[Register]) -> None:
        """Take registers in, but for predicates, which hold no address."""
        self.registers.update(each for each in registers if each.type.bits > 1)


def results(bound: Bound) -> list[Register]:
    """The registers that an instruction or a call writes."""
    return [each for each in bound.results() if isinstance(each, Register)] if bound.calls else written(bound)


def takes_parameter(bound: Bound) -> bool:
    """Does an instruction load a parameter of the kernel that it stands in?"""
    function = bound.function
    return function is not None and function.entry and not loaded(bound).isdisjoint(function.signature.parameters)


def names_address(bound: Bound) -> bool:
    """Is the address of a variable or function of the module an operand?"""
    symbols = (bound.scope.find(name.text) for node in bound.operands.values() for name in names_in(node))
    return any(isinstance(each, Function) or (isinstance(each, Variable) and each.space in OF_MODULE) for each in symbols)


__all__ = ["stores_address"]
