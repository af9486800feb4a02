"""Uses of cells of tensor memory that have no value: those of an allocation begin without one (PTX 9.7.16.1).

Work counts when it is started, as it follows what was written before in the order that the check `race` asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.asynchronous import AsyncKind
from ptxvm.analysis.program import Bound
from ptxvm.isa.tensor_memory import COLUMNS, LANES
from ptxvm.machine.events import Threads
from ptxvm.machine.tensor_blocks import CellBlock

Cells = npt.NDArray[np.bool_]
Report = Callable[[Bound, int, list[int]], None]
"""Called with an instruction, its thread, and the columns that it reads and that have no value."""


class InitialisedCells:
    """Tracks which cells of each CTA's tensor memory have a value; its first thread names a CTA."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self._written: dict[int, Cells] = {}

    def started(self, bound: Bound, kind: AsyncKind | None, cta: int, threads: Threads, blocks: Sequence[CellBlock]) -> None:
        """Threads start work on blocks; without a kind it gives them back."""
        written = self._written.setdefault(cta, np.zeros((LANES, COLUMNS), np.bool_))
        for block in blocks:
            if block.reads and (columns := missing(written, block)):
                self.report(bound, int(threads[0]), columns)
        for block in blocks:
            if block.writes:
                written[lanes_in(block.lanes), block.first : block.end] = kind is not None
        if kind is None and not written.any():
            del self._written[cta]


def missing(written: Cells, block: CellBlock) -> list[int]:
    """The columns of a block whose cells have no value: one of them, or all where the work may leave some unread."""
    held = written[lanes_in(block.lanes), block.first : block.end]
    known = held.any(0) if block.partly else held.all(0)
    return (np.flatnonzero(~known) + block.first).tolist()


@cache
def lanes_in(mask: int) -> npt.NDArray[np.int64]:
    """The lanes of a mask."""
    return np.array([lane for lane in range(LANES) if mask >> lane & 1], np.int64)


__all__ = ["InitialisedCells"]
