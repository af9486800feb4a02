"""Launches that the interpreter runs for a profile: it counts each instruction as it executes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ptxvm.analysis.program import Bound, Function
from ptxvm.engine import spin_loops
from ptxvm.engine.interp.instrumented import Counting, InstrumentedInterpreter
from ptxvm.engine.launch import launch
from ptxvm.machine.image import Image
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.result import LaunchResult
from ptxvm.profile.counter import Counter, Counts
from ptxvm.profile.profile import Profile, profile


def profiled(image: Image, kernel: Function, options: LaunchOptions, args: Sequence[object], why: str = "") -> LaunchResult:
    """Run a kernel for a profile; `why` says what compiled code does not count of it."""
    counter = Counter()
    done = launch(InstrumentedInterpreter(image, Counting(counter)), kernel, options, args)
    done.profile = replace(profile_of(image, kernel, options, done, counter.counts()), engine="interp", uncounted=why)
    return done


def profile_of(
    image: Image, kernel: Function, options: LaunchOptions, done: LaunchResult, counts: Mapping[Bound, Counts]
) -> Profile:
    """The profile of a launch, of the counts of its instructions."""
    shared, spinning = image.shared_size(kernel, options.shared), spin_loops.innermost(image, image.resolve(kernel))
    return profile(kernel.name, done.grid, done.block, shared, counts, spinning)


__all__ = ["profile_of", "profiled"]
