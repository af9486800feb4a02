"""A sample of a launch: the trace of some warps of one CTA, and the timeline of all CTAs; the launch leaves no mark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field

import numpy as np

from ptxvm.analysis.program import Bound
from ptxvm.api import Kernel
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Fault
from ptxvm.engine.interp.instrumented import InstrumentedInterpreter, Recording
from ptxvm.engine.jit.engine import Jit
from ptxvm.engine.launch import launch
from ptxvm.engine.protocol import Engine
from ptxvm.engine.snapshot import Snapshot
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.profile.timeline import Piece, Timeline
from ptxvm.profile.trace import Extent, Step, Trace, WarpName

WARPS = 8  # of the CTA
FIRST = 500  # instructions of a warp that are all recorded
LATER = 2  # times that an instruction is recorded after those
PATIENCE = 10_000  # instructions of the warps without a new one, after which the sample ends
LANES = 256  # that run together: few, as the sample ends when all of the first ones have ended
SECONDS = 10.0  # after which it ends, whatever it has


class Enough(Exception):  # noqa: N818 - it is no error
    """The warps of the sample have ended, or do nothing new: the rest of the launch is not needed."""


class WarpSample(Trace):
    """Some warps of a CTA: their first instructions, and later ones until each has come up some times."""

    def __init__(self, cta: int = 0) -> None:
        super().__init__(cta, limit=None)

    def clear(self) -> None:
        """Forget what was recorded."""
        super().clear()
        self.recorded = Counter[tuple[WarpName, Bound]]()
        self.idle = 0  # instructions since the last one that was recorded

    def follows(self, cta: Extent) -> range:
        """The threads of a CTA that are recorded, by number."""
        return super().follows(cta)[: WARP * WARPS]

    def issued(self, warp: WarpName, bound: Bound, lanes: tuple[int, ...]) -> Step | None:
        """Lanes of a warp begin an instruction; None where it is not recorded."""
        if self.executed.get(warp, 0) >= FIRST and self.recorded[warp, bound] >= LATER:
            self.executed[warp] += 1
            self.idle += 1
            if self.idle > PATIENCE:
                raise Enough
            return None
        self.recorded[warp, bound] += 1
        self.idle = 0
        return super().issued(warp, bound, lanes)

    def ended(self) -> None:
        """The recorded warps have ended; raises Enough."""
        raise Enough


@dataclass(frozen=True)
class Sample:
    """What was recorded: the first instructions of each warp, all recorded ones, and the pieces of the grid.

    `executed` counts the instructions of each warp, recorded or not.
    """

    warps: dict[WarpName, list[Step]] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    executed: dict[WarpName, int] = field(default_factory=dict)
    pieces: list[Piece] = field(default_factory=list)


def sample(kernel: Kernel, asking: LaunchOptions, args: Sequence[object]) -> Sample:
    """Run the kernel twice: by the interpreter for the trace, by the JIT for the timeline.

    Memory is as before afterwards, and nothing is printed.  A fault ends the sample: the launch itself will raise it.
    """
    traced, timeline = WarpSample(), Timeline()
    interpreter = InstrumentedInterpreter(kernel.module.image, Recording(traced), LANES)
    rehearse(kernel, interpreter, asking._replace(timeout=min(SECONDS, asking.timeout or SECONDS)), args)
    if kernel.module.jit.compilation_pays(kernel.function) and asking.asynchronous in ("", "early"):
        rehearse(kernel, Jit(kernel.module.image, timeline), asking, args)
    warps: dict[WarpName, list[Step]] = {}
    for step in traced.steps:
        found = warps.setdefault(step.warp, [])
        if len(found) < FIRST:
            found.append(step)
    return Sample(dict(sorted(warps.items())), traced.steps, traced.executed, timeline.pieces)


def rehearse(kernel: Kernel, engine: Engine, asking: LaunchOptions, args: Sequence[object]) -> None:
    """Run a kernel as far as it comes."""
    with unchanged(kernel, args), engine.library.silent():
        try:
            launch(engine, kernel.function, asking, args)
        except (Enough, Fault):
            return


@contextmanager
def unchanged(kernel: Kernel, args: Sequence[object]) -> Iterator[None]:
    """Around a launch: host arrays and the memory of the module and of device arrays are as before afterwards."""
    memory = Snapshot(kernel.module.image.memory.table.items)
    arrays = [(each, each.copy()) for each in args if isinstance(each, np.ndarray) and each.flags.writeable]
    try:
        yield
    finally:
        memory.restore()
        for array, values in arrays:
            array[...] = values


__all__ = ["FIRST", "LATER", "WARPS", "Sample", "sample"]
