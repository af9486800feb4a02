"""The protocol of an engine, and the counters of a launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ptxvm.analysis.program import Function
from ptxvm.engine.limits import Limits
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.builtins import Library
from ptxvm.machine.image import Image
from ptxvm.machine.launch import LaunchShape
from ptxvm.machine.launch_options import LaunchOptions


class Counters:
    """The counters of a launch: instructions of groups, instructions of threads, and steps of the schedule."""

    __slots__ = ("instructions", "steps", "thread_instructions")

    def __init__(self, instructions: int = 0, thread_instructions: int = 0, steps: int = 0) -> None:
        self.instructions, self.thread_instructions, self.steps = instructions, thread_instructions, steps


class Engine(Protocol):
    """An engine: it runs the kernels of an image."""

    @property
    def image(self) -> Image:
        """The program in memory."""
        ...

    @property
    def library(self) -> Library:
        """The functions of the device, and what they printed."""
        ...

    def launch(
        self, kernel: Function, shape: LaunchShape, parameters: int, options: LaunchOptions, *, limits: Limits | None = None,
        allocations: Sequence[Allocation] = (),
    ) -> Counters:  # fmt: skip
        """Run a grid and its child grids to their end, or to the limits.

        `parameters` is the address of the parameter bank, `allocations` are those that the grid will probably use.
        """
        ...
