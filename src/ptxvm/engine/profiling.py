"""Profiled launches: compiled code counts what a kernel does, and the interpreter where compiled code cannot."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ptxvm.analysis.program import Function
from ptxvm.dataclass import dataclass
from ptxvm.engine.interp import profiling
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
