"""Profiled launches: compiled code counts what a kernel does, and the interpreter where compiled code cannot."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ptxvm.analysis.program import Bound, Function
from ptxvm.engine.interp.instrumented import Counting, InstrumentedInterpreter
from ptxvm.engine.jit.cfg.uncounted import Uncounted
from ptxvm.engine.jit.engine import Jit
from ptxvm.engine.jit.run.event_counts import EventCounts
from ptxvm.engine.launch import launch
from ptxvm.engine.limits import Limits
from ptxvm.engine.protocol import Counters
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.builtins import Library
from ptxvm.machine.image import Image
from ptxvm.machine.launch import LaunchShape
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.result import LaunchResult
from ptxvm.profile.counter import Counter, Counts
from ptxvm.profile.profile import Profile, profile

log = logging.getLogger("ptxvm.profile")


@dataclass
class ProfilingJit:
    """The JIT for a launch whose code counts."""

    jit: Jit
    events: EventCounts

    @property
    def image(self) -> Image:
        """The program in memory."""
        return self.jit.image

    @property
    def library(self) -> Library:
        """The functions of the device, and what they printed."""
        return self.jit.library

    def launch(
        self, kernel: Function, shape: LaunchShape, parameters: int, options: LaunchOptions, *, limits: Limits | None = None,
        allocations: Sequence[Allocation] = (),
    ) -> Counters:  # fmt: skip
        """Run a grid; raises Uncounted, before it has run, where its code cannot count."""
        if said := self.jit.uncounted(kernel):
            raise Uncounted(said)
        return self.jit.launch(kernel, shape, parameters, options, limits=limits, allocations=allocations, events=self.events)


def profiled(jit: Jit, engine: str, kernel: Function, options: LaunchOptions, args: Sequence[object]) -> LaunchResult:
    """Run a kernel for a profile: on the engine that is asked for, or "auto"; raises Unsupported where the JIT cannot count."""
    why = ""
    if engine != "interp":
        counting = ProfilingJit(jit, EventCounts(jit.meanings))
        try:
            done = launch(counting, kernel, options, args)
        except Uncounted as reason:
            if engine == "jit":
                raise
            why = reason.what
            log.info("the interpreter counts '%s': compiled code does not count %s", kernel.name, why)
        else:
            done.profile = _profile(jit.image, kernel, options, done, counting.events.counts)
            return done
    counter = Counter()
    done = launch(InstrumentedInterpreter(jit.image, Counting(counter)), kernel, options, args)
    done.profile = replace(_profile(jit.image, kernel, options, done, counter.counts()), engine="interp", uncounted=why)
    return done


def _profile(
    image: Image, kernel: Function, options: LaunchOptions, done: LaunchResult, counts: Mapping[Bound, Counts]
) -> Profile:
    """The profile of a launch, of the counts of its instructions."""
    return profile(kernel.name, done.grid, done.block, image.shared_size(kernel, options.shared), counts)
