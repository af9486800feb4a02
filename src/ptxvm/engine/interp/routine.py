"""A function ready to run: its segments, traced when they are first entered."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ptxvm.analysis.flow import Segment, segments
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.provenance import origins
from ptxvm.analysis.symbols import Variable
from ptxvm.analysis.unset import may_be_unset
from ptxvm.engine.interp.segment import Compiled, Slots, trace


class Routine:
    """The traced code of a function; `number` orders the routines of a program.

    Where it is `following`, the code tells which registers that may be unset it reads.
    """

    def __init__(self, function: Function, number: int, image: Any, module: Slots, *, following: bool = False) -> None:
        self.function, self.number, self.image = function, number, image
        self.slots = Slots(function.registers, module)
        self.segments: list[Segment] = segments(function)
        self.at = {segment.start: n for n, segment in enumerate(self.segments)}
        self.end = len(self.segments)
        self.lengths = [segment.end - segment.start for segment in self.segments]
        self.followed = may_be_unset(function, self.segments) if following else frozenset()
        self._whole: list[Compiled | None] = [None] * self.end
        self._some: list[Compiled | None] = [None] * self.end

    @cached_property
    def variables(self) -> dict[Bound, Variable]:
        """The variable of shared or local memory to which each access is held, where that is known."""
        return origins(self.function, self.segments)

    def segment_at(self, index: int) -> int:
        """The segment that begins at an instruction; the end of the code is one too."""
        return self.at.get(index, self.end)

    def compiled(self, n: int, *, whole: bool) -> Compiled:
        """The code of a segment for all lanes, or for some."""
        kept = self._whole if whole else self._some
        found = kept[n]
        if found is None:
            found = kept[n] = trace(
                self.function, self.segments[n], self.slots, self.image, whole=whole, followed=self.followed
            )
        return found
