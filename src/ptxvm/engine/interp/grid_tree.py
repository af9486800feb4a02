"""The tree of grids of a watched launch: the order between a grid and the grids that it launches.

A grid comes after all that its thread did before the launch; it has ended when its child grids have.  Grids of one stream
follow each other, and those before an event that the stream waits for.  The stream 0 is one for each CTA.  Grids of
`cudaStreamFireAndForget` are unordered; those of `cudaStreamTailLaunch` follow the grid that launched them and all of its
other children (CUDA C++ programming guide, "CUDA Dynamic Parallelism").
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from ptxvm.analysis.program import Bound, Function
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Place
from ptxvm.engine.child_grids import ChildGrid, RuntimeCall
from ptxvm.engine.dynamic_parallelism import FIRE_AND_FORGET, OF_THE_CTA, TAIL_LAUNCH
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.builtins import Extent
from ptxvm.machine.events import Scene, Watcher

Variables = Callable[[Function], tuple[tuple[int, int, str], ...]]
"""The shared variables of a kernel."""


@dataclass(eq=False, slots=True)
class LaunchedGrid:
    """A launched grid: its number, the place of its launch, its parent, and the grids before it in its stream."""

    grid: int
    launched: Place
    parent: int
    predecessors: tuple[int, ...]
    tail: bool


class GridTree:
    """The grids of a launch; `scene` is the grid that runs."""

    def __init__(self, watcher: Watcher, scene: Scene, variables: Variables) -> None:
        self.watcher, self.variables = watcher, variables
        self._running = [scene]
        self._threads = scene.shape.ctas * scene.shape.threads
        self._known: dict[ChildGrid, LaunchedGrid] = {}
        self._last: dict[Hashable, tuple[int, ...]] = {}  # the grids that the next one follows, by stream
        self._events: dict[int, tuple[int, ...]] = {}  # the grids that an event stands for
        self._ended: set[int] = set()
        self._launched: dict[tuple[int, Extent], list[int]] = {}  # by CTA
        self._waited: dict[int, int] = {}  # by thread: how many of its CTA's grids it has waited for
        self._asked: dict[Allocation, tuple[Bound, int]] = {}

    @property
    def scene(self) -> Scene:
        """The grid that runs."""
        return self._running[-1]

    def asked(self, buffer: Allocation, call: RuntimeCall) -> None:
        """A thread has allocated a buffer for the parameters of a launch."""
        self._asked[buffer] = call.cohort.calling, int(call.cohort.threads[call.lane])

    def stored(self, allocation: Allocation, offset: int, size: int) -> None:
        """A function has stored a result for its thread: its bytes have a value."""
        self.watcher.lost(allocation, np.array([offset]), np.zeros((size, 1), np.bool_))

    def unlaunched(self, buffers: Sequence[Allocation]) -> None:
        """All grids have ended, and these buffers were never launched with."""
        by_call: dict[Bound, list[Allocation]] = {}
        for buffer in buffers:
            by_call.setdefault(self._asked[buffer][0], []).append(buffer)
        for bound, mine in by_call.items():
            self.watcher.unlaunched(bound, np.array([self._asked[buffer][1] for buffer in mine]), mine)

    def launched(self, child: ChildGrid, call: RuntimeCall, stream: int) -> None:
        """A thread has launched a grid into a stream."""
        cohort, grid = call.cohort, len(self._known) + 1
        thread, bound = int(cohort.threads[call.lane]), cohort.calling
        key = self._stream(call, stream)
        known = LaunchedGrid(
            grid, cohort.scene.place(bound, thread), cohort.scene.grid, self._last.get(key, ()), stream == TAIL_LAUNCH
        )
        self._known[child] = known
        if stream != FIRE_AND_FORGET:
            self._last[key] = (grid,)
        if not known.tail:
            self._launched.setdefault(call.cta, []).append(grid)
        self.watcher.launches(grid, thread)

    def recorded(self, event: int, call: RuntimeCall, stream: int) -> None:
        """A thread has recorded an event on a stream."""
        self._events[event] = self._last.get(self._stream(call, stream), ())

    def awaits(self, event: int, call: RuntimeCall, stream: int) -> None:
        """A thread has let a stream wait for an event."""
        key = self._stream(call, stream)
        self._last[key] = self._last.get(key, ()) + self._events.get(event, ())

    def _stream(self, call: RuntimeCall, stream: int) -> Hashable:
        if stream in OF_THE_CTA:
            return call.cta
        return call.cohort.scene.grid, stream  # a grid has its streams for itself

    def begins(self, child: ChildGrid, parameters: Allocation) -> None:
        """A child grid begins, with its parameters."""
        self.watcher.parameters_passed(child.buffer, parameters)
        known = self._known[child]
        after = [each for each in known.predecessors if each in self._ended]
        after += [known.parent] if known.tail else []
        scene = Scene(child.kernel.name, child.shape, self.variables(child.kernel), known.grid, self._threads, known.launched)
        self._threads += child.shape.ctas * child.shape.threads
        self._running.append(scene)
        self.watcher.child_begins(scene, after)

    def ended(self, child: ChildGrid) -> None:
        """A child grid has ended, and all that it launched."""
        grid = self._known[child].grid
        self._running = [scene for scene in self._running if scene.grid != grid]
        self._ended.add(grid)
        self.watcher.child_ends(grid)

    def waited(self, call: RuntimeCall) -> None:
        """A thread has waited for the grids of its CTA."""
        thread, grids = int(call.cohort.threads[call.lane]), self._launched.get(call.cta, [])
        fresh = grids[self._waited.get(thread, 0) :]
        self._waited[thread] = len(grids)
        self.watcher.waited(np.array([thread], np.int64), fresh)


__all__ = ["GridTree"]
