"""Watched launches: checkers follow a grid, in several schedules, unless a prefilter has cleared it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Protocol

from ptxvm.analysis.program import Function
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Fault
from ptxvm.engine import time_box
from ptxvm.engine.limits import Limits
from ptxvm.engine.protocol import Counters, Engine
from ptxvm.engine.snapshot import Snapshot, outliving
from ptxvm.engine.time_box import GivenUp, TimeBox
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.device_array import DeviceArray
from ptxvm.machine.events import Scene, Watcher
from ptxvm.machine.handles import HANDLES
from ptxvm.machine.launch import Extent, LaunchShape
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.options import Check
from ptxvm.machine.unwritten import launched

log = logging.getLogger("ptxvm.checks")

MOST_COPIED = 64 << 20
"""Bytes of memory that is copied before a run that may be given up."""


class WatchedEngine(Engine, Protocol):
    """An engine that can be watched."""

    def watched(
        self, kernel: Function, shape: LaunchShape, parameters: int, options: LaunchOptions, *, limits: Limits | None,
        watcher: Watcher, seed: int | None,
    ) -> Counters:  # fmt: skip
        """Run a grid to its end, and report to a watcher; `seed` shuffles the schedule."""
        ...


class Host(Protocol):
    """The host beside a launch for which it may wait, and that may wait for it."""

    @property
    def waits(self) -> bool:
        """Does it wait, so that all memory is the kernel's alone?"""
        ...

    def go_on(self) -> None:
        """Let it wait no longer."""
        ...


class Counting(Protocol):
    """What counts a run of the grid that nothing watches."""

    def run(
        self, kernel: Function, shape: LaunchShape, parameters: int, options: LaunchOptions, limits: Limits | None,
        allocations: Sequence[Allocation],
    ) -> None:  # fmt: skip
        """Run a grid, and count what it does; a fault leaves no counts."""
        ...


class Prefilter(Protocol):
    """A quick test whether a watcher would find anything."""

    spent: dict[tuple[Function, Extent], float]
    """The seconds that launches of a kernel, with CTAs of a shape, have taken for watchers in all."""

    def clears(
        self, watch: Watch, kernel: Function, shape: LaunchShape, parameters: int, options: LaunchOptions, *,
        limits: Limits | None, new: Sequence[Allocation],
    ) -> tuple[Counters, str] | None:  # fmt: skip
        """Run the grid; returns its counters and output, or None, with memory restored, where the watcher must look.

        `new` is the memory that has no value yet.
        """
        ...

    def judges(self, watch: Watch, kernel: Function, shape: LaunchShape, options: LaunchOptions, limits: Limits | None) -> bool:
        """Could it clear the kernel?"""
        ...


@dataclass(slots=True)
class Watch:
    """A watcher of a launch, the engine that reports to it, and the number of runs of the grid.

    The first run has the usual schedule; the others have random ones, from a seed on.

    `checks` names what the watcher looks for; `prefilter` may clear a kernel unwatched: at once from `least` threads on, else
    when the run takes long, with those before.  `another` makes a watcher like this one, which has seen nothing.  `host` is
    None where the host waits for the end.  `counting` runs the grid once more, from the same memory, for a profile.
    """

    watcher: Watcher
    engine: WatchedEngine
    schedules: int = 1
    seed: int | None = None
    checks: frozenset[Check] = frozenset()
    prefilter: Prefilter | None = None
    least: int = 0
    another: Callable[[], Watcher] | None = None
    host: Host | None = None
    counting: Counting | None = None

    def patient(self, limits: Limits | None, act: Callable[[], None] | None = None) -> Limits | None:
        """The limits of a run: when it takes long, `act` is called; by default a host that waits goes on."""
        if self.host is None:
            return limits
        return TimeBox(limits, time_box.HOST_WAITS, act or self.host.go_on)

    @property
    def seeds(self) -> Iterator[int | None]:
        """The seeds of the runs; a single run takes the seed itself."""
        if self.schedules == 1:
            yield self.seed
            return
        yield None
        yield from range(self.seed or 0, (self.seed or 0) + self.schedules - 1)


@dataclass(slots=True)
class WatchedLaunch:
    """A launch that a watcher follows; `new` is the memory that has no value yet, `allocations` that of its arguments."""

    kernel: Function
    shape: LaunchShape
    parameters: int
    options: LaunchOptions
    limits: Limits | None
    watch: Watch
    new: list[Allocation]
    allocations: Sequence[Allocation] = ()

    @property
    def engine(self) -> WatchedEngine:
        """The engine that reports to the watcher."""
        return self.watch.engine

    def run(self) -> Counters:
        """Run the grid for the watcher, and if it is to be counted, too, once more from the same memory.

        What the first run did is left.
        """
        if self.watch.counting is None:
            return self._watched()
        memory = self.engine.image.memory
        before = Snapshot(memory.table.items)
        counters = self._watched()
        after, printed = Snapshot(memory.table.items), len(self.engine.library.output)
        before.restore()
        if self.limits is not None:
            self.limits.renew()
        options = self.options._replace(trusted=False)
        try:
            self.watch.counting.run(self.kernel, self.shape, self.parameters, options, self.limits, self.allocations)
        finally:
            del self.engine.library.output[printed:]
            after.restore()
        return counters

    def _watched(self) -> Counters:
        """Run the grid for the watcher, unless the prefilter clears it: before the run, or where that takes long.

        A kernel that waits for the host runs for the watcher: nothing may put memory back that the host has written.
        """
        watch, kernel, shape = self.watch, self.kernel, self.shape
        # Opened ranges have memory that is not the kernel's alone: nothing puts it back before a second run.
        opened = any(each.yields for each in self.engine.image.memory.table.items)
        alone = not opened and (watch.host is None or watch.host.waits)
        prefilter = watch.prefilter if alone else None
        small, code = shape.ctas * shape.threads * watch.schedules < watch.least, (kernel, shape.block)
        if prefilter is not None and small and (left := time_box.SECONDS - prefilter.spent.get(code, 0.0)) > 0:
            began = time.monotonic()
            try:
                return self._tried(prefilter, left)
            except GivenUp:
                log.info("compiled code looks at '%s', whose runs take more than %g s", kernel.name, time_box.SECONDS)
            finally:
                prefilter.spent[code] = prefilter.spent.get(code, 0.0) + time.monotonic() - began
        if prefilter is not None:
            cleared = self._cleared(prefilter)
            if cleared is not None:
                counters, printed = cleared
                if printed:
                    self.engine.library.print(printed)
                return counters
        watch.watcher.launched(self.new)
        return self._rehearsed(watch.patient(self.limits))

    def _cleared(self, prefilter: Prefilter) -> tuple[Counters, str] | None:
        """Ask the prefilter; where its run takes long beside a host that waits, the host goes on, and the watcher must look."""
        watch = self.watch
        try:
            patient = watch.patient(self.limits, give_up)
            return prefilter.clears(watch, self.kernel, self.shape, self.parameters, self.options, limits=patient, new=self.new)
        except GivenUp:
            if watch.host is not None:
                watch.host.go_on()
            log.info("'%s' may wait for the host, which goes on", self.kernel.name)
            return None

    def _tried(self, prefilter: Prefilter, seconds: float) -> Counters:
        """Run the grid for the watcher; GivenUp, with memory restored, where it takes long and compiled code can judge it.

        `seconds` are how long it may take.
        """
        watch, limits = self.watch, self.limits
        memory, printed, another = self.engine.image.memory, self.engine.library.output, watch.another
        watch.watcher.launched(self.new)
        if another is None or sum(len(each.bytes) for each in outliving(memory.table.items)) > MOST_COPIED:
            return self._rehearsed(watch.patient(limits))
        before, output = Snapshot(memory.table.items), len(printed)

        def give_up_if_judged() -> None:
            if watch.host is not None and not watch.host.waits:
                return  # it may have written memory since
            if not watch.watcher.findings and prefilter.judges(watch, self.kernel, self.shape, self.options, limits):
                raise GivenUp

        try:
            return self._rehearsed(TimeBox(watch.patient(limits), seconds, give_up_if_judged))
        except GivenUp:
            before.restore()
            del printed[output:]
            watch.watcher = another()
            if limits is not None:
                limits.renew()
            raise

    def _rehearsed(self, limits: Limits | None) -> Counters:
        """Run the grid again and again from the same memory; leave what the first run did."""
        engine, kernel, shape, watch = self.engine, self.kernel, self.shape, self.watch
        memory, printed = engine.image.memory, engine.library.output
        counted, output = Counters(), 0
        before = Snapshot(memory.table.items) if watch.schedules > 1 else None
        after: Snapshot | None = None
        for number, seed in enumerate(watch.seeds):
            if number and before is not None:
                before.restore()
            if limits is not None:
                limits.renew()
            watch.watcher.begin(Scene(kernel.name, shape, engine.image.shared_variables(kernel)), number, seed)
            try:
                with nullcontext() if not number else engine.library.silent():
                    counters = engine.watched(
                        kernel, shape, self.parameters, self.options, limits=limits, watcher=watch.watcher, seed=seed
                    )
            except Fault as fault:  # the grid cannot go on after it
                if not watch.watcher.refused(fault, None, 0):
                    raise
                counters = Counters()
            else:
                watch.watcher.finished(memory.table.items)
            if not number:
                counted, output = counters, len(printed)
                after = Snapshot(memory.table.items) if before is not None else None
        del printed[output:]
        if after is not None:
            after.restore()
        return counted


def give_up() -> None:
    """Raise GivenUp."""
    raise GivenUp


def fresh(allocations: Sequence[Allocation], args: Sequence[object]) -> list[Allocation]:
    """The memory that neither host nor kernel has given a value: of device arrays, arguments or of images, and of the driver.

    All of the driver's counts as written from now on.
    """
    arrays = [*args, *(image.source for image in list(HANDLES.values()))]
    addresses = {each.address for each in arrays if isinstance(each, DeviceArray) and not each.is_written}
    return [*launched(allocations), *(each for each in allocations if each.start in addresses)]
