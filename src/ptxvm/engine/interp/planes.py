"""Shadow planes of a register file: the tag of each register, its undefined bits and their origin.

They lie behind the values: of `n` slots, slot `s` has its tag in `s + n`, its undefined bits in `s + 2 * n` and their origin in
`s + 3 * n`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, pred
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Register
from ptxvm.dataclass import dataclass
from ptxvm.engine.interp import arrays
from ptxvm.engine.interp.origins import Origins
from ptxvm.engine.interp.segment import CARRY_SLOT, Slots
from ptxvm.engine.interp.shadow_algebra import NO_ORIGIN
from ptxvm.machine.per_lane import PerLane

TAGS, UNSET, ORIGIN = 1, 2, 3  # planes


@dataclass(frozen=True, slots=True)
class TrackedValues:
    """The values that are followed in a function: registers that may be unset, and registers that may hold addresses.

    Accesses in `several` are checked against the object that their address comes from.  `memory` and `parameters` say that
    addresses may be stored there; `locals` says that bytes of the stack may be read before they are written.
    """

    unset: frozenset[Register] = frozenset()
    tagged: frozenset[Register] = frozenset()
    several: frozenset[Bound] = frozenset()
    memory: bool = False
    parameters: bool = False
    locals: bool = False

    @property
    def nothing(self) -> bool:
        """Is nothing followed?"""
        return not (self.unset or self.tagged or self.several or self.memory or self.parameters or self.locals)

    def tags_in(self, space: Space) -> bool:
        """May an address lie in a state space?"""
        return self.parameters if space is Space.PARAM else self.memory


class Planes:
    """The planes of a register file: the slots of the shadows."""

    def __init__(self, function: Function, slots: Slots, following: TrackedValues, origins: Origins) -> None:
        self.following, self.size, self.types = following, len(slots.types), slots.types
        self.function, self.origins = function, origins
        self.register = dict(slots.slots(following.unset | following.tagged))

    def of(self, slot: int) -> Iterator[int]:
        """The planes of the register in a slot, but for that of its origins."""
        register = self.register.get(slot)
        if register in self.following.tagged:
            yield TAGS
        if self.may_be_undefined(slot):
            yield UNSET

    def may_be_undefined(self, slot: int) -> bool:
        """Are the undefined bits of a register, or of the carry flag, followed?"""
        return self.register.get(slot) in self.following.unset or (slot == CARRY_SLOT and bool(self.following.unset))

    def shadow_slot(self, slot: int, plane: int) -> int:
        """The slot of a register's shadow in a plane."""
        return slot + plane * self.size

    def unset(self) -> Iterator[tuple[int, PerLane]]:
        """The slots of the shadows of registers that may be unset, with those of a register that nothing has written."""
        for slot, register in self.register.items():
            if register in self.following.unset:
                yield self.shadow_slot(slot, UNSET), every_bit(register.type)
                yield self.shadow_slot(slot, ORIGIN), self.origins.unwritten(register, self.function)

    def zeros(self) -> list[PerLane]:
        """The planes of a fresh file."""
        masks = [arrays.const(type.as_bits, 0) for type in self.types]
        return [np.int64(0)] * self.size + masks + [NO_ORIGIN] * self.size


def every_bit(type: Type) -> PerLane:
    """The mask of a value of which all bits are undefined."""
    return arrays.const(type.as_bits, 1 if type is pred else -1)
