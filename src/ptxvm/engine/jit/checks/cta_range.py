"""A range of the CTAs of a grid, and the bytes that it reads and writes.

Instrumented code leaves tags of what each CTA accesses (`memory.shadow_tags`): after the range they tell which cells it has
written, and of the memory that it writes which it has read.  Memory that the grid is not expected to write has no tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ptxvm.analysis.outputs import written_parameters
from ptxvm.analysis.program import Function
from ptxvm.engine.jit.abi.launch_record import Record
from ptxvm.engine.jit.abi.specialisation import Specialisation
from ptxvm.engine.jit.checks.cell_tags import WrittenLater
from ptxvm.engine.jit.checks.observed_launch import ObservedCallbacks, ObservedLaunch
from ptxvm.engine.jit.engine import Jit
from ptxvm.engine.jit.run.callbacks import Callbacks
from ptxvm.engine.jit.run.runner import pointers_at
from ptxvm.engine.limits import Limits
from ptxvm.engine.protocol import Counters
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.builtins import Library
from ptxvm.machine.events import Flags
from ptxvm.machine.image import Image
from ptxvm.machine.launch import LaunchShape
from ptxvm.machine.launch_options import LaunchOptions


@dataclass(frozen=True, slots=True)
class TouchedCells:
    """The cells of an allocation that a range has written and read, of `grain` bytes each, from `Allocation.origin` on."""

    grain: int
    written: Flags
    read: Flags


@dataclass
class RecordingLaunch(ObservedLaunch):
    """An observed launch that tells afterwards what it touched; what it changes is not restored."""

    touched: dict[Allocation, TouchedCells] = field(default_factory=dict)
    read_untagged: frozenset[Allocation] = frozenset()

    def save(self, allocation: Allocation) -> None:
        """Nothing is saved: the memory is a copy."""

    def end(self, calls: Callbacks, record: Record) -> None:
        """Read the tags; raises Suspicious if CTAs of the range exchange values."""
        super().end(calls, record)
        if isinstance(calls, ObservedCallbacks) and calls.tags is not None:
            self.touched = {each: TouchedCells(*calls.tags.cells(each)) for each in calls.tags.written}
            self.read_untagged = calls.tags.read_untagged


class CtaRange:
    """An engine that runs the CTAs of a range only."""

    def __init__(self, jit: Jit, ctas: range, *, tags_all: bool = False) -> None:
        self.jit, self.ctas, self.tags_all = jit, ctas, tags_all
        self.observed: RecordingLaunch | None = None

    @property
    def image(self) -> Image:
        """The program in memory."""
        return self.jit.image

    @property
    def library(self) -> Library:
        """The functions of the device, and what they printed."""
        return self.observed.library if self.observed is not None else self.jit.library

    def launch(
        self, kernel: Function, shape: LaunchShape, parameters: int, options: LaunchOptions, *, limits: Limits | None = None,
        allocations: Sequence[Allocation] = (),
    ) -> Counters:  # fmt: skip
        """Run the range; `observed` then has what it touched.  Raises Suspicious where its CTAs exchange values."""
        del allocations
        function = self.image.resolve(kernel)
        wanted = Specialisation(function, shape.block, options.shared, checks=frozenset({"race"}))
        translated = self.jit.code_cache.translation(wanted).versions.kernel
        expected = None if self.tags_all else self._expected(function, parameters)
        try:
            return self._run(
                wanted, shape, parameters, limits, RecordingLaunch(self.image.memory, translated, written=expected)
            )
        except WrittenLater:
            return self._run(wanted, shape, parameters, limits, RecordingLaunch(self.image.memory, translated))

    def _run(
        self, wanted: Specialisation, shape: LaunchShape, parameters: int, limits: Limits | None, observed: RecordingLaunch
    ) -> Counters:
        self.observed = observed
        return self.jit.examine(wanted, shape, parameters, observed, limits, self.ctas)

    def _expected(self, function: Function, parameters: int) -> frozenset[Allocation]:
        """The memory that the kernel is expected to write, by its parameters."""
        offsets, table = self.image.parameters(function).offsets, self.image.memory.table
        written = [offsets[each] for each in written_parameters(function)]
        found = (table.find(each) for each in pointers_at(parameters, written).values())
        return frozenset(each for each in found if each is not None)


def runs(flags: Flags) -> list[tuple[int, int]]:
    """The runs of cells that are set, as half-open ranges."""
    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0))
    return [(int(start), int(stop)) for start, stop in edges.reshape(-1, 2)]


__all__ = ["CtaRange", "RecordingLaunch", "TouchedCells", "runs"]
