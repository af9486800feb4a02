"""The JIT engine: kernels compiled when they are first launched with a shape of CTA, or found where that was done before."""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from ptxvm.analysis.program import Function
from ptxvm.engine.jit import spreading, tiers
from ptxvm.engine.jit.compiled import Compiled, Version
from ptxvm.engine.jit.launching import Launch
from ptxvm.engine.jit.runner import Runner
from ptxvm.engine.jit.shelf import Shelf, Specialisation, Tier
from ptxvm.engine.jit.signals import Signals
from ptxvm.engine.launch import Budget, Counters
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.builtins import Library
from ptxvm.machine.image import Image
from ptxvm.machine.launch import Extent, LaunchShape
from ptxvm.machine.result import LaunchResult

if TYPE_CHECKING:
    from ptxvm.engine.children import Children
    from ptxvm.engine.jit.repeats import Repeat
    from ptxvm.engine.jit.sieve import Sieve
    from ptxvm.engine.jit.watched import Look


OFTEN = 2  # launches after which more are likely
REPEATS = 64  # kernels with shapes that are kept ready


class Jit:
    """Runs the kernels of an image."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self.shelf = Shelf(image)
        self._compiled: dict[Specialisation, Compiled] = {}
        self._repeats: dict[Hashable, Repeat] = {}
        self.seconds = 0.0  # that launches have waited for code

    @property
    def library(self) -> Library:
        """The functions of the device, and what they printed."""
        return self.image.library

    @cached_property
    def sieve(self) -> Sieve:
        """What looks quickly whether the checkers have anything to find."""
        from ptxvm.engine.jit.sieve import Sieve  # noqa: PLC0415 - only who checks needs it

        return Sieve(self)

    def compiled(self, wanted: Specialisation, shape: LaunchShape | None = None) -> Compiled:
        """The code of a kernel, as good as a launch of a shape is worth."""
        found, tier = self._compiled.get(wanted), tiers.first(shape)
        if found is None:
            make, translated = partial(self._get, wanted), partial(self.shelf.works, wanted)
            found = self._compiled.setdefault(wanted, Compiled(self.image, self.library, make, translated, tier))
        if found.tier < tier:
            found.improve(tier)
        return found

    def _get(self, wanted: Specialisation, name: str, tier: Tier) -> Version:
        began = time.perf_counter()
        version = self.shelf.get(wanted, name, tier)
        self.seconds += time.perf_counter() - began
        return version

    def repeat(self, what: Hashable, args: Sequence[Any]) -> LaunchResult | None:
        """A launch that `prepare` got ready; None where that must be done in the usual way."""
        try:
            found = self._repeats.get(what)
        except TypeError:  # extents may be lists
            return None
        if found is None:
            return None
        if not found.valid:
            del self._repeats[what]
            return None
        result = found.run(args)
        if tiers.pays(found.compiled):
            tiers.improve(found.compiled, partial(self.shelf.get, found.wanted))
        return result

    def prepare(
        self, what: Hashable, kernel: Function, extents: tuple[Extent, Extent], how: tuple[int, bool, bool, int | None]
    ) -> None:
        """Get ready for more launches like one that has ended, where they are short; `repeat` gets the same `what`.

        `extents` are of the grid and of the CTA; `how` is dynamic shared memory, whether arithmetic is fast and accesses
        are trusted, and the threads of the host.
        """
        shape, (shared, fast, trusted, threads) = LaunchShape(*extents), how
        wanted = Specialisation(self.image.resolve(kernel), shape.block, shared, fast, trusted=trusted)
        compiled = self._compiled.get(wanted)
        if compiled is None or compiled.launches < OFTEN:
            return
        from ptxvm.engine.jit.repeats import Repeat, limit, may_repeat  # noqa: PLC0415 - not of use to who launches once

        short = limit(threads or spreading.usual_threads())
        if may_repeat(compiled, shape, short):
            if len(self._repeats) >= REPEATS:
                self._repeats.clear()
            with suppress(TypeError):
                self._repeats[what] = Repeat(wanted, compiled, shape, self.image.bank(kernel), short)

    def launch(
        self,
        kernel: Function,
        shape: LaunchShape,
        parameters: int,
        *,
        shared: int = 0,
        budget: int | None = None,
        given: Sequence[Allocation] = (),
        threads: int | None = None,
        fast: bool = False,
        trusted: bool = False,
    ) -> Counters:
        """Run a grid, and those that it launches, to their end.

        `parameters` is the address of the parameter bank, `given` memory that it will use.

        `threads` is how many of the host run it: as many as there are processors, unless it or `PTXVM_THREADS` says so.
        """
        wanted = Specialisation(self.image.resolve(kernel), shape.block, shared, fast, trusted=trusted)
        usual = threads or spreading.usual_threads()
        if not self.compiled(wanted, shape).facts.launches:
            return self._grid(wanted, shape, parameters, given, usual, None if budget is None else Budget(budget))
        from ptxvm.engine.children import Children  # noqa: PLC0415 - few kernels launch others

        children = Children(self.image)

        def run(kernel: Function, shape: LaunchShape, parameters: int, shared: int) -> Counters:
            each = wanted._replace(function=self.image.resolve(kernel), block=shape.block, shared=shared)
            limit = None if budget is None else Budget(budget, children.counters.turns)
            if limit is not None and limit.left(0) <= 0:
                raise limit.overrun(kernel.name)
            done = self._grid(each, shape, parameters, given, usual, limit, children)
            done.turns += 1  # code without loops takes none, and grids may launch grids for ever
            return done

        return children.grid(run, kernel, shape, parameters, shared)

    def _grid(
        self, wanted: Specialisation, shape: LaunchShape, parameters: int, given: Sequence[Allocation], threads: int,
        budget: Budget | None, children: Children | None = None,
    ) -> Counters:  # fmt: skip
        """Run one grid."""
        compiled = self.compiled(wanted, shape)
        launch = Launch(self.image, compiled.facts, shape, budget, children)
        progress, runners = spreading.Progress(shape.ctas, compiled.rate), []

        def another() -> Runner:
            runner = compiled.runner(shape)
            runners.append(runner)
            runner.enter(launch, parameters, given)
            return runner

        try:
            with Signals(launch):
                spreading.run(another, progress, 1 if compiled.facts.in_order else threads)
        finally:
            for runner in runners:
                runner.leave()
                compiled.runners.append(runner)
            launch.release()
        self._ran(wanted, compiled, progress)
        return launch.counters()

    def _ran(self, wanted: Specialisation, compiled: Compiled, progress: spreading.Progress) -> None:
        """A kernel has run; if it often does for long, its code gets better."""
        compiled.took(progress.rate, progress.ctas)
        if tiers.pays(compiled):
            tiers.improve(compiled, partial(self.shelf.get, wanted))

    def examine(self, wanted: Specialisation, shape: LaunchShape, parameters: int, look: Look, budget: int | None) -> Counters:
        """Run a grid whose code looks for what checkers report, its CTAs in order."""
        compiled = self.compiled(wanted)
        launch = Launch(self.image, compiled.facts, shape, None if budget is None else Budget(budget))
        runner, progress = Runner(compiled, shape, look.calls, look.library), spreading.Progress(shape.ctas, None)
        runner.enter(launch, parameters, ())
        try:
            look.begin(runner.calls, runner.record)
            with Signals(launch):
                spreading.run(lambda: runner, progress, 1)
        finally:
            runner.leave()
            launch.release()
        look.end(runner.calls, runner.record)
        self._ran(wanted, compiled, progress)
        return launch.counters()
