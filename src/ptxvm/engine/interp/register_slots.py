"""Registers that asynchronous work writes when it ends: slots of a register file, or of the module's own registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ptxvm.dataclass import dataclass
from ptxvm.machine.per_lane import LaneNumbers, PerLane, RegisterFile


class Cohort(Protocol):
    """The part of a cohort that its registers are in."""

    size: int
    own: RegisterFile


@dataclass(frozen=True, slots=True)
class RegisterSlots:
    """Registers of 32 bits: slots of a file; a slot below 0 is one of the registers of the module."""

    file: RegisterFile
    slots: Sequence[int]

    def read(self, cohort: Cohort, lanes: LaneNumbers) -> list[PerLane]:
        """The values of some lanes, as the registers hold them."""
        return [np.broadcast_to(self._held(cohort, slot), cohort.size)[lanes] for slot in self.slots]

    def write(self, cohort: Cohort, lanes: LaneNumbers, words: Sequence[PerLane]) -> None:
        """Write words at some lanes; the registers are rebound, since their old arrays may be those of others."""
        for slot, word in zip(self.slots, words, strict=True):
            whole = np.array(np.broadcast_to(self._held(cohort, slot), cohort.size))
            whole[lanes] = word.view(whole.dtype)
            if slot >= 0:
                self.file[slot] = whole
            else:
                cohort.own[~slot] = whole

    def _held(self, cohort: Cohort, slot: int) -> PerLane:
        return self.file[slot] if slot >= 0 else cohort.own[~slot]
