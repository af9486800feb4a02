"""The origins of undefined values, by the numbers that stand for them beside the values."""

from __future__ import annotations

import numpy as np

from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Register
from ptxvm.machine.events import Origin


class Origins:
    """Numbers origins, from 1 on; 0 is an unknown one."""

    def __init__(self) -> None:
        self._known: list[Origin | None] = [None]
        self._numbers: dict[tuple[object, ...], np.int32] = {}

    def unwritten(self, register: Register, function: Function) -> np.int32:
        """A register of a function that the thread has not written."""
        return self._number((register,), Origin(register.name, function=function))

    def skipped(self, register: Register, bound: Bound | None) -> np.int32:
        """A register that the thread has not written, as the guard of an instruction was false."""
        return self._number((register, bound), Origin(register.name, bound))

    def loaded(self, bound: Bound) -> np.int32:
        """An instruction that loads bytes without a value."""
        return self._number((bound,), Origin("", bound))

    def __getitem__(self, number: int) -> Origin | None:
        return self._known[number]

    def _number(self, key: tuple[object, ...], origin: Origin) -> np.int32:
        if key not in self._numbers:
            self._numbers[key] = np.int32(len(self._known))
            self._known.append(origin)
        return self._numbers[key]
