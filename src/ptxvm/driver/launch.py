"""The work of streams: launches of kernels, and calls."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ptxvm.driver.checks import FINDINGS, wanted
from ptxvm.driver.context import Context
from ptxvm.driver.graph import Task
from ptxvm.driver.host_memory import host_memory
from ptxvm.driver.module import Kernel
from ptxvm.driver.profile import profile
from ptxvm.driver.results import DriverError, Result
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.streams import Stream


class Launch(NamedTuple):
    """A launch of a kernel: extents, bytes of dynamic shared memory, the bytes of each argument, CTAs of a cluster."""

    context: Context
    kernel: Kernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    arguments: tuple[bytes, ...]
    cluster: tuple[int, int, int] | None = None

    def run(self, order: Stream | None) -> None:
        """Run it; what goes wrong in the kernel is the context's failure; DriverError for what it asks in vain."""
        begun, kernel, checks, done = time.perf_counter(), self.kernel.kernel, wanted(), None
        try:
            with host_memory().given(self.arguments):
                if checks is None and order is None:
                    asked = LaunchOptions(self.grid, self.block, self.shared, cluster=self.cluster)
                    done = kernel.relaunch(asked, self.arguments)
                if done is None:
                    done = kernel.launch(
                        self.grid,
                        self.block,
                        self.arguments,
                        shared=self.shared,
                        cluster=self.cluster,
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

    def run(self, order: Stream | None) -> None:
        """Run every node."""
        for task in self.tasks:
            task.run(order)


@dataclass(frozen=True, slots=True)
class Call:
    """Work that is a call of a Python function; `description` is how a client described it, as a node of a graph."""

    function: Callable[[], None]
    description: bytes = b""

    def run(self, order: Stream | None) -> None:
        """Call it."""
        del order
        self.function()


__all__ = ["Call", "GraphLaunch", "Launch"]
