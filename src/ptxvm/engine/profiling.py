"""Profiled launches: compiled code counts what a kernel does, and the interpreter where compiled code cannot."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from ptxvm.analysis.program import Bound, Function
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Fault
from ptxvm.engine.interp import profiling
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
from ptxvm.profile.profile import Profile

log = logging.getLogger("ptxvm.profile")
ENDS = {"late": "late", "random": "at random"}
"""When asynchronous work ends, in words."""


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
        if self.jit.defers(kernel, options):
            raise Uncounted(f"asynchronous work that ends {ENDS[options.asynchronous]}")
        return self.jit.launch(kernel, shape, parameters, options, limits=limits, allocations=allocations, events=self.events)


class CountedRun:
    """A run for the profile of a watched launch, by the engine asked for: "auto", "jit" or "interp"."""

    def __init__(self, jit: Jit, engine: str) -> None:
        self.jit, self.engine = jit, engine
        self.counts: Mapping[Bound, Counts] | None = None
        self.by, self.uncounted = "", ""

    def run(
        self, kernel: Function, shape: LaunchShape, parameters: int, options: LaunchOptions, limits: Limits | None,
        allocations: Sequence[Allocation],
    ) -> None:  # fmt: skip
        """Run a grid, and count what it does; a fault leaves no counts."""
        with suppress(Fault):
            if self.engine != "interp":
                counting = ProfilingJit(self.jit, EventCounts(self.jit.meanings))
                try:
                    with counting.library.silent():
                        counting.launch(kernel, shape, parameters, options, limits=limits, allocations=allocations)
                except Uncounted as reason:
                    if self.engine == "jit":
                        raise
                    self.uncounted = reason.what
                else:
                    self.counts, self.by = counting.events, "jit"
                    return
            counter = Counter()
            interpreter = InstrumentedInterpreter(self.jit.image, Counting(counter))
            with interpreter.library.silent():
                interpreter.launch(kernel, shape, parameters, options, limits=limits, allocations=allocations)
            self.counts, self.by = counter.counts(), "interp"

    def profile(self, kernel: Function, options: LaunchOptions, done: LaunchResult) -> Profile | None:
        """The profile; None where the run came to a fault, or the launch to none."""
        if self.counts is None:
            return None
        found = profiling.profile_of(self.jit.image, kernel, options, done, self.counts)
        return replace(found, engine=self.by, uncounted=self.uncounted)


def profiled(jit: Jit, engine: str, kernel: Function, options: LaunchOptions, args: Sequence[object]) -> LaunchResult:
    """Run a kernel for a profile: on the engine asked for, "auto" or "jit"; raises Unsupported where that cannot count."""
    counting = ProfilingJit(jit, EventCounts(jit.meanings))
    try:
        done = launch(counting, kernel, options, args)
    except Uncounted as reason:
        if engine == "jit":
            raise
        log.info("the interpreter counts '%s': compiled code does not count %s", kernel.name, reason.what)
        return profiling.profiled(jit.image, kernel, options, args, reason.what)
    done.profile = profiling.profile_of(jit.image, kernel, options, done, counting.events)
    return done


def repeated(jit: Jit, kernel: Function, options: LaunchOptions, args: Sequence[object]) -> LaunchResult | None:
    """Relaunch a kernel for a profile, as `Jit.repeat` does; None where `profiled` must run it."""
    events = EventCounts(jit.meanings)
    try:
        done = jit.repeat(kernel, options, args, events)
    except Uncounted:  # there is more memory than before
        return None
    if done is not None:
        done.profile = profiling.profile_of(jit.image, kernel, options, done, events)
    return done
