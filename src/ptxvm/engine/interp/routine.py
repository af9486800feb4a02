"""The traced code of a function: each segment is traced when it is first entered."""

from __future__ import annotations

from ptxvm.analysis.flow import Segment, segments
from ptxvm.analysis.program import Function
from ptxvm.analysis.provenance import NUMBER, Provenance
from ptxvm.analysis.unset import may_be_unset
from ptxvm.engine.interp.origins import Origins
from ptxvm.engine.interp.planes import Planes, TrackedValues
from ptxvm.engine.interp.segment import Slots, TracedSegment, Tracer, trace
from ptxvm.engine.interp.tracked import TrackedTracer
from ptxvm.machine.image import Image
from ptxvm.machine.per_lane import PerLane


class Routine:
    """The traced code of a function; `number` orders the routines of a program.

    The code of a `clustered` one is for launches in clusters of several CTAs.  It follows
    registers that may be unset where `registers` says so, and addresses where `provenance` is given; a `tracer` of
    its own adds instrumentation.  Of a `single` one each segment is one instruction.
    """

    def __init__(
        self, function: Function, number: int, image: Image, module: Slots, origins: Origins, *, registers: bool = False,
        provenance: Provenance | None = None, clustered: bool = False, tracer: type[Tracer] = Tracer,
        single: bool = False,
    ) -> None:  # fmt: skip
        self.clustered, self.tracer = clustered, tracer
        self.function, self.number, self.image = function, number, image
        self.slots = Slots(function.registers, module)
        self.segments: list[Segment] = segments(function, single=single)
        self.at = {segment.start: n for n, segment in enumerate(self.segments)}
        self.end = len(self.segments)
        self.lengths = [segment.end - segment.start for segment in self.segments]
        following = TrackedValues(
            may_be_unset(function, self.segments, memory=True) if registers else frozenset(),
            frozenset(provenance.followed) if provenance is not None else frozenset(),
            frozenset(provenance.several) if provenance is not None else frozenset(),
            provenance is not None and provenance.escaped.memory != NUMBER,
            provenance is not None and (provenance.escaped.parameters, provenance.escaped.results) != (NUMBER, NUMBER),
            registers,
        )
        self.planes = None if following.nothing else Planes(function, self.slots, following, origins)
        self.unset: list[tuple[int, PerLane]] = list(self.planes.unset()) if self.planes is not None else []
        if single:  # what looks between two instructions sees all registers, also those that nothing will read
            for segment in self.segments:
                segment.live_out = -1
        self._whole: list[TracedSegment | None] = [None] * self.end
        self._some: list[TracedSegment | None] = [None] * self.end

    def segment_at(self, index: int) -> int:
        """The segment that begins at an instruction, or at the end of the code."""
        return self.at.get(index, self.end)

    def fresh_file(self) -> list[PerLane]:
        """A register file of zeros, with the shadows of the registers."""
        return self.slots.fresh_file() + (self.planes.zeros() if self.planes is not None else [])

    def compiled(self, n: int, *, whole: bool) -> TracedSegment:
        """The code of a segment, for all lanes or for some."""
        traced = self._whole if whole else self._some
        found = traced[n]
        if found is None:
            found = traced[n] = trace(self.function, self.segments[n], lambda: self._tracer(whole=whole))
        return found

    def _tracer(self, *, whole: bool) -> Tracer:
        if self.planes is None:
            return self.tracer(self.function, self.slots, self.image, whole, self.clustered)
        return TrackedTracer(self.function, self.slots, self.image, whole, self.clustered, planes=self.planes)
