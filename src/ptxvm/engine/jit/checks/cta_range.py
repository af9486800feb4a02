"""A range of the CTAs of a grid, run by code that records the bytes which it writes and reads (`run.recording`)."""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Function
from ptxvm.engine.jit.engine import Jit
from ptxvm.engine.jit.run.recording import Recording
from ptxvm.engine.limits import Limits
from ptxvm.engine.protocol import Counters
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.builtins import Library
from ptxvm.machine.image import Image
from ptxvm.machine.launch import LaunchShape
from ptxvm.machine.launch_options import LaunchOptions


class CtaRange:
    """An engine that runs the CTAs of a range only, on arrays of a recording and on others that are read-only.

    `changed` are the variables of the module with other contents after a launch than before.
    """

    def __init__(self, jit: Jit, ctas: range, recording: Recording) -> None:
        self.jit, self.ctas, self.recording = jit, ctas, recording
        self.changed: list[Allocation] = []

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
        """Run the range."""
        variables = [each for each in self.image.memory.table.items if each not in allocations and is_variable(each)]
        before = [each.bytes.tobytes() for each in variables]
        counters = self.jit.record(kernel, shape, parameters, options, self.recording, self.ctas, allocations, limits)
        self.changed = [each for each, old in zip(variables, before, strict=True) if each.bytes.tobytes() != old]
        return counters


def is_variable(allocation: Allocation) -> bool:
    """May a kernel write to an allocation that is no argument?"""
    return allocation.writable and allocation.home is None and allocation.space is Space.GLOBAL


__all__ = ["CtaRange"]
