"""Watched launches: checkers follow a grid, in several schedules, unless a prefilter has cleared it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Protocol

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Function
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Fault
from ptxvm.engine import time_box
from ptxvm.engine.limits import Limits
from ptxvm.engine.protocol import Counters, Engine
from ptxvm.engine.time_box import GivenUp, TimeBox
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.device_array import DeviceArray
from ptxvm.machine.events import Scene, Watcher
from ptxvm.machine.handles import HANDLES
from ptxvm.machine.image import Image
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
    None where the host waits for the end.
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

    def patient(self, limits: Limits | None, act: Callable[[], None] | None = None) -> Limits | None:
        """The limits of a run after a while of which the host goes on, or something else is done."""
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


def watched(
    engine: WatchedEngine, kernel: Function, shape: LaunchShape, parameters: int, options: LaunchOptions,
    limits: Limits | None, watch: Watch, new: list[Allocation],
) -> Counters:  # fmt: skip
    """Run a grid for a watcher, unless the prefilter clears it: before the run, or where that takes long.

    A kernel that waits for the host runs for the watcher: nothing may put memory back that the host has written.
    """
    # Opened ranges have memory that is not the kernel's alone: nothing puts it back before a second run.
    opened = any(each.yields for each in engine.image.memory.table.items)
    alone = not opened and (watch.host is None or watch.host.waits)
    prefilter = watch.prefilter if alone else None
    small, code = shape.ctas * shape.threads * watch.schedules < watch.least, (kernel, shape.block)
    if prefilter is not None and small and (left := time_box.SECONDS - prefilter.spent.get(code, 0.0)) > 0:
        began = time.monotonic()
        try:
            return tried(engine, kernel, shape, parameters, options, limits, watch, new, prefilter, left)
        except GivenUp:
            log.info("compiled code looks at '%s', whose runs take more than %g s", kernel.name, time_box.SECONDS)
        finally:
            prefilter.spent[code] = prefilter.spent.get(code, 0.0) + time.monotonic() - began
    if prefilter is not None:
        cleared = clear(prefilter, kernel, shape, parameters, options, limits, watch, new)
        if cleared is not None:
            counters, printed = cleared
            if printed:
                engine.library.print(printed)
            return counters
    watch.watcher.launched(new)
    return rehearse(engine, kernel, shape, parameters, options, watch.patient(limits), watch)


def clear(
    prefilter: Prefilter, kernel: Function, shape: LaunchShape, parameters: int, options: LaunchOptions,
    limits: Limits | None, watch: Watch, new: list[Allocation],
) -> tuple[Counters, str] | None:  # fmt: skip
    """Ask the prefilter; where its run takes long beside a host that waits, the host goes on, and the watcher must look."""
    try:
        patient = watch.patient(limits, give_up)
        return prefilter.clears(watch, kernel, shape, parameters, options, limits=patient, new=new)
    except GivenUp:
        if watch.host is not None:
            watch.host.go_on()
        log.info("'%s' may wait for the host, which goes on", kernel.name)
        return None


def give_up() -> None:
    """Raise GivenUp."""
    raise GivenUp


def tried(
    engine: WatchedEngine, kernel: Function, shape: LaunchShape, parameters: int, options: LaunchOptions,
    limits: Limits | None, watch: Watch, new: list[Allocation], prefilter: Prefilter, seconds: float,
) -> Counters:  # fmt: skip
    """Run the grid for the watcher; GivenUp, with memory restored, where it takes long and compiled code can judge it.

    `seconds` are how long it may take.
    """
    memory, printed, another = engine.image.memory, engine.library.output, watch.another
    watch.watcher.launched(new)
    if another is None or sum(len(each.bytes) for each in outliving(memory.table.items)) > MOST_COPIED:
        return rehearse(engine, kernel, shape, parameters, options, watch.patient(limits), watch)
    before, output = Snapshot(memory.table.items), len(printed)

    def give_up_if_judged() -> None:
        if watch.host is not None and not watch.host.waits:
            return  # it may have written memory since
        if not watch.watcher.findings and prefilter.judges(watch, kernel, shape, options, limits):
            raise GivenUp

    try:
        box = TimeBox(watch.patient(limits), seconds, give_up_if_judged)
        return rehearse(engine, kernel, shape, parameters, options, box, watch)
    except GivenUp:
        before.restore()
        del printed[output:]
        watch.watcher = another()
        if limits is not None:
            limits.renew()
        raise


def fresh(allocations: Sequence[Allocation], args: Sequence[object]) -> list[Allocation]:
    """The memory that neither host nor kernel has given a value: of device arrays, arguments or of images, and of the driver.

    All of the driver's counts as written from now on.
    """
    arrays = [*args, *(image.source for image in list(HANDLES.values()))]
    addresses = {each.address for each in arrays if isinstance(each, DeviceArray) and not each.is_written}
    return [*launched(allocations), *(each for each in allocations if each.start in addresses)]


def rehearse(
    engine: WatchedEngine, kernel: Function, shape: LaunchShape, parameters: int, options: LaunchOptions,
    limits: Limits | None, watch: Watch,
) -> Counters:  # fmt: skip
    """Run the grid again and again from the same memory; leave what the first run did."""
    memory, printed = engine.image.memory, engine.library.output
    counted, output = Counters(), 0
    before = Snapshot(memory.table.items) if watch.schedules > 1 else None
    after: Snapshot | None = None
    for number, seed in enumerate(watch.seeds):
        if number and before is not None:
            before.restore()
        if limits is not None:
            limits.renew()
        watch.watcher.begin(Scene(kernel.name, shape, shared_variables(engine.image, kernel)), number, seed)
        try:
            with nullcontext() if not number else engine.library.silent():
                counters = engine.watched(kernel, shape, parameters, options, limits=limits, watcher=watch.watcher, seed=seed)
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


def shared_variables(image: Image, kernel: Function) -> tuple[tuple[int, int, str], ...]:
    """The variables of shared memory that a kernel may use: offset, size and name."""
    entries = {each.name for program in image.programs for each in program.kernels} - {kernel.name}
    return tuple(
        (offset, variable.size, variable.name)
        for variable, offset in image.shared.offsets.items()
        if variable.size and variable.function not in entries
    )


class Snapshot:
    """A copy of the contents of memory."""

    def __init__(self, allocations: Sequence[Allocation]) -> None:
        self._held = [(each, each.bytes.copy()) for each in outliving(allocations)]

    def restore(self) -> None:
        """Write the copy back."""
        for allocation, values in self._held:
            if allocation.live:
                allocation.bytes[:] = values


def outliving(allocations: Sequence[Allocation]) -> list[Allocation]:
    """The memory that a grid may change and that outlives it."""
    return [each for each in allocations if each.writable and each.space is Space.GLOBAL and not each.yields]
