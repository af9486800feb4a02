"""A launch in the order of warps that a debugger has saved."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ptxvm.analysis.program import Function
from ptxvm.engine.interp.stepping import ReplayingInterpreter
from ptxvm.engine.launch import launch
from ptxvm.machine import options
from ptxvm.machine.image import Image
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.result import LaunchResult
from ptxvm.machine.warp_schedule import WarpSchedule


def replay(
    image: Image, kernel: Function, schedule: str | os.PathLike[str] | WarpSchedule, args: Sequence[object]
) -> LaunchResult:
    """Run a kernel by a schedule, or a file with one.

    ValueError where the schedule is that of another kernel, or does not fit the run: the kernel or its data have changed.
    """
    options.instance("schedule", schedule, (str, os.PathLike, WarpSchedule), "a file that `save schedule` wrote")
    found = schedule if isinstance(schedule, WarpSchedule) else WarpSchedule.of_text(Path(schedule).read_text("utf-8"))
    if found.kernel != kernel.name:
        raise ValueError(f"the schedule is one of the kernel '{found.kernel}', not of '{kernel.name}'")
    asking = LaunchOptions(
        found.grid, found.block, found.shared, cluster=found.cluster, asynchronous=found.asynchronous, seed=found.seed
    )
    return launch(ReplayingInterpreter(image, found.choices), kernel, asking, args)


__all__ = ["replay"]
