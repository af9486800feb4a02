"""The JIT engine: compiles a kernel at its first launch with a shape of CTA, or loads it from the cache."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from ptxvm.analysis.program import Function
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.engine.jit.abi.launch_record import Record
from ptxvm.engine.jit.abi.specialisation import Specialisation, Tier, VersionKind
from ptxvm.engine.jit.objects import log
from ptxvm.engine.jit.objects.code_cache import CodeCache
from ptxvm.engine.jit.objects.version import Version
from ptxvm.engine.jit.run import cta_distribution, tiering
from ptxvm.engine.jit.run.callbacks import Callbacks
from ptxvm.engine.jit.run.compiled import Compiled
from ptxvm.engine.jit.run.launch_state import Launch
from ptxvm.engine.jit.run.runner import Runner, pointers_at
from ptxvm.engine.jit.run.signals import Signals
from ptxvm.engine.limits import Limits
from ptxvm.engine.protocol import Counters
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.builtins import Library
from ptxvm.machine.image import Image
from ptxvm.machine.launch import LaunchShape
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.memory import Memory
from ptxvm.machine.per_lane import Addresses, Array
from ptxvm.machine.result import LaunchResult

if TYPE_CHECKING:
    from ptxvm.engine.dynamic_parallelism import Children
    from ptxvm.engine.jit.abi.metadata import Facts
    from ptxvm.engine.jit.run.event_counts import EventCounts, Meaning
    from ptxvm.engine.jit.run.recording import Recording
    from ptxvm.engine.jit.run.relaunch import Relaunch
    from ptxvm.machine.events import Flags
    from ptxvm.profile.timeline import Timeline


OFTEN = 2  # launches after which a relaunch is prepared
MANY = 64  # functions of a module; in larger modules `compilation_pays` reads the functions that a kernel calls
LARGE = 3000  # instructions, of functions any of which a call through a pointer may enter: code of 5,300 took minutes
REPEATS = 64  # relaunches that are kept ready


class Observer(Protocol):
    """An observer of an instrumented launch, which is called before and after it runs (`checks.observed_launch`)."""

    @property
    def calls(self) -> type[Callbacks]:
        """The class of the callbacks."""

    @property
    def library(self) -> Library:
        """The functions of the device."""

    @property
    def unread(self) -> frozenset[Allocation]:
        """The memory of which the code does not know from the start: the host is asked before it is read."""

    def begin(self, calls: Callbacks, record: Record) -> None:
        """Prepare the launch record; called before the first CTA runs."""

    def end(self, calls: Callbacks, record: Record) -> None:
        """Read the launch record after the last CTA; raises if something was suspicious."""


class CompareExchange:
    """Compare-and-exchange for the interpreter, beside compiled code that another host thread runs."""

    def __call__(self, addresses: Addresses, expected: Array, desired: Array) -> Flags:
        """Compare and exchange words."""
        from ptxvm.engine.jit.run.compare_exchange import compare_exchange  # noqa: PLC0415 - few processes run both at once

        return compare_exchange(addresses, expected, desired)


class Jit:
    """Runs the kernels of an image; a timeline records when it ran which CTAs."""

    def __init__(self, image: Image, timeline: Timeline | None = None) -> None:
        self.image, self.timeline = image, timeline
        self.code_cache = CodeCache(image)
        self.progress: cta_distribution.Progress | None = None  # of the grid that runs now
        self._compiled: dict[Specialisation, Compiled] = {}
        self._relaunches: dict[tuple[Function, LaunchOptions, bool], Relaunch] = {}  # the last: of profiled code?
        self._compilation_pays: dict[Function, bool] = {}
        self._uncounted: dict[Function, str] = {}
        self.meanings: dict[Function, tuple[Facts, Meaning]] = {}  # of what profiled code counts
        self.seconds = 0.0  # that launches have waited for compilation
        Memory.exchange = CompareExchange()

    @property
    def library(self) -> Library:
        """The functions of the device, and what they printed."""
        return self.image.library

    def compiled(self, wanted: Specialisation, shape: LaunchShape | None = None) -> Compiled:
        """The code of a kernel, compiled at least at the tier that pays for a launch of this shape."""
        found, tier = self._found(wanted), tiering.first(shape)
        if found is None:
            narrow = tiering.may_be_narrow(wanted) and not self.code_cache.holds(wanted)
            made = self._made(wanted._replace(narrow=narrow), tier, self._get, partial(self._better, wanted))
            found = self._compiled.setdefault(wanted, made)
            if tier is Tier.BEST:
                found.face_rival(background=False)
        if found.tier < tier:
            found.improve(tier)
        return found

    def _found(self, wanted: Specialisation) -> Compiled | None:
        """The code that a kernel has by now."""
        found = self._compiled.get(wanted)
        if found is not None and found.better is not None:
            found = self._compiled[wanted] = found.better
        return found

    def _made(
        self, form: Specialisation, tier: Tier, get: Callable[[Specialisation, VersionKind, Tier], Version],
        better: Callable[[Compiled], Compiled] | None = None,
    ) -> Compiled:  # fmt: skip
        """The code of a kernel, compiled at least at a tier; `get` finds or compiles each version, `better` what follows."""
        make, translated = partial(get, form), partial(self.code_cache.host_calls, form)
        rival = partial(self._rival, form._replace(narrow=False))
        return Compiled(self.image, self.library, make, translated, tier, rival, better)

    def _better(self, wanted: Specialisation, before: Compiled) -> Compiled:
        """The best code of a kernel, while launches go on."""
        better = self._made(wanted, Tier.BEST, partial(self.code_cache.get, background=True))
        better.take_over(before)
        better.make = partial(self._get, wanted)  # for which launches wait
        return better

    def _rival(self, wanted: Specialisation, *, background: bool) -> Compiled | None:
        """The code of a kernel for one thread at a time; None where there is none."""
        alone = wanted._replace(scalar=True)
        make = partial(self.code_cache.get, alone, background=background)
        translated = partial(self.code_cache.host_calls, alone)
        try:
            return Compiled(self.image, self.library, make, translated, Tier.BEST)
        except Unsupported as missing:
            log.debug("%s", missing)
            return None

    def _get(self, wanted: Specialisation, kind: VersionKind, tier: Tier) -> Version:
        began = time.perf_counter()
        version = self.code_cache.get(wanted, kind, tier)
        self.seconds += time.perf_counter() - began
        return version

    def compilation_pays(self, kernel: Function) -> bool:
        """Does it pay to compile the kernel?

        The interpreter is faster for one that calls thousands of functions, or functions with thousands of instructions
        through pointers: any lane may be in any of them, so compile time grows with the square of their number.
        """
        if sum(len(program.functions) for program in self.image.programs) < MANY:
            return True
        if kernel not in self._compilation_pays:
            from ptxvm.engine.call_targets import called  # noqa: PLC0415 - code that is ready needs no graph of its kernel
            from ptxvm.engine.jit.cfg.control_flow_graph import MOST_FRAMES, OWN_REGISTERS  # noqa: PLC0415

            functions = list(called(self.image, kernel))
            large = sum(len(each.instructions) for each in functions) > LARGE
            through_pointers = large and any(bound.summary.indirect for each in functions for bound in each.instructions)
            self._compilation_pays[kernel] = not through_pointers and len(functions) + OWN_REGISTERS < MOST_FRAMES
        return self._compilation_pays[kernel]

    def uncounted(self, kernel: Function) -> str:
        """Names what profiled code does not count of a kernel; empty if it counts everything."""
        from ptxvm.engine.jit.cfg.uncounted import uncounted  # noqa: PLC0415 - few launches are profiled

        if kernel not in self._uncounted:
            said = (
                uncounted(self.image, self.image.resolve(kernel))
                if self.compilation_pays(kernel)
                else "calls of so many functions"
            )
            self._uncounted[kernel] = said
        return self._uncounted[kernel]

    def clustered(self, kernel: Function, shape: LaunchShape) -> LaunchShape:
        """The shape in which to run a kernel: without clusters, unless the kernel depends on them."""
        if shape.cluster is None:
            return shape
        from ptxvm.engine.jit.cfg import requirements  # noqa: PLC0415 - few launches have clusters

        return shape if requirements.clusters(self.image, kernel) else shape._replace(cluster=None)

    def repeat(
        self, kernel: Function, options: LaunchOptions, args: Sequence[object], events: EventCounts | None = None
    ) -> LaunchResult | None:
        """Relaunch a kernel as `prepare` made it ready; None where nothing is ready and `launch` must run it."""
        found = self.ready(kernel, options, profiled=events is not None)
        return found.run(args, events) if found is not None else None

    def ready(self, kernel: Function, options: LaunchOptions, *, profiled: bool = False) -> Relaunch | None:
        """The relaunch that is ready, None where there is none."""
        key = kernel, options, profiled
        found = self._relaunches.get(key)
        if found is not None and not found.valid:
            del self._relaunches[key]
            return None
        return found

    def prepare(self, kernel: Function, options: LaunchOptions, shape: LaunchShape, *, profiled: bool = False) -> None:
        """After a short launch, make relaunches with the same options ready for `repeat`."""
        if shape.cluster is not None or self.defers(self.image.resolve(kernel), options):
            return
        wanted = Specialisation(
            self.image.resolve(kernel), shape.block, options.shared, options.fast, trusted=options.trusted, profiled=profiled
        )
        compiled = self._found(wanted)
        if compiled is None or compiled.launches < OFTEN:
            return
        from ptxvm.engine.jit.run.relaunch import Relaunch, limit, may_repeat  # noqa: PLC0415 - a single launch does not need it

        short = limit(options.threads or cta_distribution.usual_threads())
        if may_repeat(compiled, shape, short):
            if len(self._relaunches) >= REPEATS:
                for each in self._relaunches.values():
                    each.is_retired = True
                self._relaunches.clear()
            waits, bank = self.spins(kernel), self.image.bank(kernel)
            self._relaunches[kernel, options, profiled] = Relaunch(compiled, shape, bank, short, waits=waits)

    def defers(self, kernel: Function, options: LaunchOptions) -> bool:
        """Does a launch need code that defers asynchronous work?"""
        if options.asynchronous in ("", "early"):
            return False
        from ptxvm.engine.jit.cfg import requirements  # noqa: PLC0415 - few launches defer work

        return requirements.works_asynchronously(self.image, kernel)

    def can_defer(self, kernel: Function) -> bool:
        """Can compiled code defer its asynchronous work?"""
        from ptxvm.engine.jit.cfg import requirements  # noqa: PLC0415 - few launches defer work

        return requirements.defers_products(self.image, kernel)

    def spins(self, kernel: Function) -> bool:
        """Has the kernel a loop that waits for what another thread writes?"""
        from ptxvm.engine import spin_loops  # noqa: PLC0415 - a single launch does not need it

        return bool(spin_loops.spins(self.image, kernel))

    def launch(
        self,
        kernel: Function,
        shape: LaunchShape,
        parameters: int,
        options: LaunchOptions,
        *,
        limits: Limits | None = None,
        allocations: Sequence[Allocation] = (),
        events: EventCounts | None = None,
    ) -> Counters:
        """Run a grid, and those that it launches, to their end.

        `parameters` is the address of the parameter bank, `allocations` are those that the grid will probably use.  The number
        of host threads is by default `PTXVM_THREADS`, or one for each processor.  Profiled code counts `events`.
        """
        metered = limits is not None and limits.counts
        function, shape = self.image.resolve(kernel), self.clustered(kernel, shape)
        wanted = Specialisation(
            function, shape.block, options.shared, options.fast, trusted=options.trusted, metered=metered,
            cluster=shape.cluster, profiled=events is not None, deferred=self.defers(function, options),
        )  # fmt: skip
        ends = options.asynchronous, options.seed
        usual = 1 if metered else options.threads or cta_distribution.usual_threads()
        if not self.compiled(wanted, shape).facts.launches:
            return self._grid(wanted, shape, parameters, allocations, usual, limits, events=events, ends=ends)
        from ptxvm.engine.dynamic_parallelism import Children  # noqa: PLC0415 - few kernels launch others

        children = Children(self.image)

        def run(kernel: Function, shape: LaunchShape, parameters: int, shared: int) -> Counters:
            shape = self.clustered(kernel, shape)
            each = wanted._replace(function=self.image.resolve(kernel), block=shape.block, shared=shared, cluster=shape.cluster)
            each = each._replace(deferred=self.defers(each.function, options))
            return self._grid(each, shape, parameters, allocations, usual, limits, children, ends=ends)

        return children.grid(run, kernel, shape, parameters, options.shared)

    def _grid(  # noqa: PLR0913, PLR0917 - all that a grid runs with
        self, wanted: Specialisation, shape: LaunchShape, parameters: int, allocations: Sequence[Allocation], threads: int,
        limits: Limits | None, children: Children | None = None, events: EventCounts | None = None,
        recording: Recording | None = None, ctas: range | None = None, ends: tuple[str, int] = ("", 0),
    ) -> Counters:  # fmt: skip
        """Run one grid, or a range of its CTAs; `ends` says when deferred work ends."""
        compiled = self.compiled(wanted, shape)
        launch = Launch(self.image, compiled.facts, shape, limits, children, self.timeline, recording, ends)
        progress, runners = cta_distribution.Progress(ctas or range(shape.ctas), compiled.rate), []
        before, self.progress = self.progress, progress
        paging = recording.paging if recording is not None else None
        kind = deferring_callbacks() if wanted.deferred else paged_callbacks() if paging is not None else Callbacks
        paged = [each for each in allocations if paging is not None and paging.at(each.start) is not None]

        def another() -> Runner:
            runner = compiled.runner(shape, kind)
            runners.append(runner)
            runner.enter(launch, parameters, allocations, paged)
            return runner

        try:
            with Signals(launch):
                cta_distribution.run(another, progress, 1 if compiled.facts.in_order else threads)
        finally:
            for runner in runners:
                runner.leave()
                if events is not None:
                    runner.tell(events)
                compiled.runners.append(runner)
            launch.release()
            self.progress = before
        self._ran(compiled, progress)
        return launch.counters()

    def record(
        self, kernel: Function, shape: LaunchShape, parameters: int, options: LaunchOptions, recording: Recording, ctas: range,
        allocations: Sequence[Allocation] = (), limits: Limits | None = None,
    ) -> Counters:  # fmt: skip
        """Run a range of the CTAs of a grid, whose kernel launches no others, and record which bytes it writes and reads."""
        wanted = Specialisation(self.image.resolve(kernel), shape.block, options.shared, options.fast, recorded=True)
        threads = options.threads or cta_distribution.usual_threads()
        return self._grid(wanted, shape, parameters, allocations, threads, limits, recording=recording, ctas=ctas)

    @staticmethod
    def _ran(compiled: Compiled, progress: cta_distribution.Progress) -> None:
        """Account for a launch; a kernel that has run for long is compiled again at the best tier."""
        compiled.record_time(progress.mean, progress.count)
        if tiering.pays(compiled):
            tiering.improve(compiled)

    def examine(
        self, wanted: Specialisation, shape: LaunchShape, parameters: int, observer: Observer, limits: Limits | None
    ) -> Counters:
        """Run a grid of instrumented code, its CTAs in order."""
        compiled, table = self.compiled(wanted), self.image.memory.table
        launch = Launch(self.image, compiled.facts, shape, limits)
        if shape.cooperative:
            _ = launch.environment.workspace  # from the beginning on, so that checks know it
        found = (table.find(each) for each in pointers_at(parameters, compiled.facts.pointers).values())
        runner = compiled.runner(shape, observer.calls)
        runner.calls.library = observer.library
        progress = cta_distribution.Progress(range(shape.ctas), compiled.rate)
        allocations = tuple(dict.fromkeys(each for each in found if each is not None))
        runner.enter(launch, parameters, allocations, observer.unread)
        try:
            observer.begin(runner.calls, runner.record)
            with Signals(launch):
                cta_distribution.run(lambda: runner, progress, 1)
        finally:
            runner.leave()
            launch.release()
        observer.end(runner.calls, runner.record)
        compiled.runners.append(runner)
        self._ran(compiled, progress)
        return launch.counters()


def paged_callbacks() -> type[Callbacks]:
    """The callbacks of launches that work on pages of arrays."""
    from ptxvm.engine.jit.run.paged_callbacks import PagedCallbacks  # noqa: PLC0415 - few launches do

    return PagedCallbacks


def deferring_callbacks() -> type[Callbacks]:
    """The callbacks of launches that defer asynchronous work."""
    from ptxvm.engine.jit.run.deferring_callbacks import DeferringCallbacks  # noqa: PLC0415 - few launches do

    return DeferringCallbacks
