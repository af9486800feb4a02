"""The table of the windows that generic addresses reach, for compiled code that asks where one lies (`isspacep`)."""

from __future__ import annotations

import numpy as np

from ptxvm.engine.jit.abi.launch_record import REACHED
from ptxvm.machine.memory import WINDOWS, Memory
from ptxvm.machine.per_lane import Array


def table(memory: Memory) -> Array:
    """How many windows there are, then the start, the size and the space of each (`runtime/in_windows.ll`)."""
    found = [each for each in memory.table.items if each.space in WINDOWS]
    return np.array([len(found), *(word for each in found for word in (each.start, each.size, REACHED[each.space]))], np.uint64)
