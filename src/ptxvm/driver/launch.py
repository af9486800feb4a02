"""The work of streams: launches of kernels, and calls."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ptxvm.diagnostics.errors import InvalidPTX
from ptxvm.driver.checks import FINDINGS, wanted
from ptxvm.driver.context import Context
from ptxvm.driver.graph import Task
from ptxvm.driver.host_memory import host_memory
from ptxvm.driver.module import Kernel
from ptxvm.driver.profile import profile
from ptxvm.driver.results import DriverError, Result
from ptxvm.machine.launch import check_shared, launch_shape
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.streams import Stream

MOST_FITTING = 1024  # options of launches that a kernel remembers as right


class Launch(NamedTuple):
    """A launch of a kernel: extents, bytes of dynamic shared memory, the bytes of each argument."""

    context: Context
    kernel: Kernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    arguments: tuple[bytes, ...]
    options: LaunchOptions  # what the engine is asked for: the same, and the extents of a cluster

    @property
    def is_short(self) -> bool:
        """Was a launch like it short, and can the kernel not wait for what the host writes?"""
        return self.kernel.kernel.is_short(self.options)

    def check(self) -> None:
        """DriverError for what no launch of the kernel may ask for."""
        asked, fitting = self.options, self.kernel.fitting
        if asked in fitting:
            return
        try:
            launch_shape(self.grid, self.block, self.options.cluster).for_kernel(self.kernel.function)
            check_shared(self.kernel.function, self.kernel.shared, self.shared)
        except InvalidPTX as wrong:
            raise DriverError(Result.INVALID_PTX, str(wrong)) from wrong
        except ValueError as wrong:
            raise DriverError(Result.INVALID_VALUE, str(wrong)) from wrong
        if len(fitting) >= MOST_FITTING:
            fitting.clear()
        fitting.add(asked)

    def run(self, order: Stream | None) -> None:
        """Run it; what goes wrong in the kernel is the context's failure; DriverError for what it asks in vain."""
        begun, kernel, checks, done = time.perf_counter(), self.kernel.kernel, wanted(), None
        try:
            with host_memory().given(self.arguments):
                if checks is None and order is None:
                    done = kernel.relaunch(self.options, self.arguments)
                if done is None:
                    done = kernel.launch(
                        self.grid,
                        self.block,
                        self.arguments,
                        shared=self.shared,
                        cluster=self.options.cluster,
                        stream=order,
                        check=checks,
                    )
        except (ValueError, TypeError) as wrong:
            raise DriverError(Result.INVALID_VALUE, str(wrong)) from wrong
        except Exception as wrong:  # noqa: BLE001 - whatever a launch raises is the result of this launch
            self.context.fail(wrong)
        else:
            for finding in done.findings:
                FINDINGS.add(finding)
        if (counts := profile()) is not None:
            counts.add(self.kernel.function.name, time.perf_counter() - begun)


@dataclass(frozen=True, slots=True)
class GraphLaunch:
    """A launch of a graph, with the work that it has now."""

    tasks: tuple[Task, ...]

    @property
    def is_short(self) -> bool:
        """Are all its nodes?"""
        return all(task.is_short for task in self.tasks)

    def run(self, order: Stream | None) -> None:
        """Run every node."""
        for task in self.tasks:
            task.run(order)


@dataclass(frozen=True, slots=True)
class Call:
    """Work that is a call of a Python function; `description` is how a client described it, as a node of a graph.

    A call `is_short` unless it runs code of the client, which may wait.
    """

    function: Callable[[], None]
    description: bytes = b""
    is_short: bool = True

    def run(self, order: Stream | None) -> None:
        """Call it."""
        del order
        self.function()


__all__ = ["Call", "GraphLaunch", "Launch"]
