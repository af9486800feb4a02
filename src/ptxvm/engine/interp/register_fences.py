"""Registers of `wgmma` that threads access after their last `wgmma.fence` (PTX 9.7.15.7.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ptxvm.analysis.flow import bit_of, bits, changes, reads_and_writes, registers_in
from ptxvm.analysis.program import Bound, Function
from ptxvm.engine.interp.registers_in_use import line_of
from ptxvm.machine.per_lane import LaneNumbers, Lanes, PerLane, RegisterFile

Access = tuple[PerLane, Bound]
"""A flag for each lane that has accessed a register, and the last instruction that did it."""


def is_product(bound: Bound) -> bool:
    """Is it an asynchronous product of registers?"""
    return bool(bound.i.of.updates) and "tasks" in bound.i.of.effects


def operands_of(bound: Bound) -> dict[int, str]:
    """The registers of D, and of A, of a product: their names, by bit."""
    nodes = (node for name in ("d", "a") if (node := bound.operands.get(name)) is not None)
    return {bit_of(each): each.name for node in nodes for each in registers_in(node, bound)}


class RegisterFences:
    """What lanes have accessed since their last fence, of the registers that products use."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.fenced = np.zeros(size, np.bool_)  # has the lane executed a fence?
        self._wanted: dict[Function, int] = {}
        self._accessed: dict[tuple[int, int], Access] = {}  # by file and bit

    def stepping(self, code: Sequence[Bound], lanes: Lanes, file: RegisterFile) -> None:
        """Lanes are about to run a segment."""
        function = code[0].function
        if function is None or not (wanted := self._used(function)):
            return
        for bound in code:
            touched = 0 if is_product(bound) else (reads_and_writes(bound)[0] | changes(bound)) & wanted
            for bit in bits(touched):
                held, _ = self._accessed.get((id(file), bit), (np.zeros(self.size, np.bool_), None))
                held[slice(None) if lanes is None else lanes] = True
                self._accessed[id(file), bit] = held, bound

    def _used(self, function: Function) -> int:
        """The registers that products of a function use."""
        if function not in self._wanted:
            self._wanted[function] = sum(
                {bit for each in function.instructions if is_product(each) for bit in operands_of(each)}
            )
        return self._wanted[function]

    def fence(self, lanes: LaneNumbers) -> None:
        """Lanes have executed a fence."""
        self.fenced[lanes] = True
        for held, _ in self._accessed.values():
            held[lanes] = False

    def missing(self, product: Bound, lanes: LaneNumbers, file: RegisterFile) -> tuple[int, str, Bound | None] | None:
        """A product starts: a lane whose fence is missing, what is wrong, and the instruction before the fence.

        Later products count as fenced: each is reported once.
        """
        found = self._missing(product, lanes, file)
        if found is not None:
            self.fence(lanes)
        return found

    def _missing(self, product: Bound, lanes: LaneNumbers, file: RegisterFile) -> tuple[int, str, Bound | None] | None:
        never = lanes[~self.fenced[lanes]]
        if len(never):
            return int(never[0]), "there is no wgmma.fence before the first product of the warp", None
        for bit, name in operands_of(product).items():
            held, bound = self._accessed.get((id(file), bit), (None, None))
            if held is not None and bound is not None and held[lanes].any():
                said = f"register {name} of the product is used by the instruction{line_of(bound)}, after the last wgmma.fence"
                return int(lanes[np.argmax(held[lanes])]), said, bound
        return None
