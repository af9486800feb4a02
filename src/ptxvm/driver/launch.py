"""The tasks of streams: launches of kernels, and calls."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import NamedTuple, cast

from ptxvm.diagnostics.errors import InvalidPTX
from ptxvm.driver.context import Context
from ptxvm.driver.graph import Task
from ptxvm.driver.host_memory import host_memory
from ptxvm.driver.launch_checks import FINDINGS, Checked
from ptxvm.driver.module import Kernel
from ptxvm.driver.profile import profile
from ptxvm.driver.results import DriverError, Result
from ptxvm.machine.launch import check_shared, launch_shape
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.result import LaunchResult

MOST_FITTING = 1024  # checked options of launches that a kernel remembers


class Launch(NamedTuple):
    """A launch of a kernel: extents, bytes of dynamic shared memory, the bytes of each argument."""

    context: Context
    kernel: Kernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    arguments: tuple[bytes, ...]
    options: LaunchOptions  # the options for the engine: the same, with the extents of a cluster

    @property
    def is_short(self) -> bool:
        """Was an equal launch short, and can the kernel not wait for the host?"""
        return self.kernel.kernel.is_short(self.options)

    @property
    def may_wait(self) -> bool:
        """Has the kernel a loop that waits for what another thread writes, which may be one of the host?"""
        return self.kernel.kernel.may_wait()

    @property
    def cluster(self) -> tuple[int, int, int] | None:
        """The extents of a cluster, None where the launch says nothing of clusters."""
        return cast("tuple[int, int, int] | None", self.options.cluster)

    def in_clusters(self, cluster: tuple[int, int, int] | None) -> Launch:
        """The same in clusters; DriverError where it cannot be."""
        made = self._replace(options=self.options._replace(cluster=cluster))
        made.check()
        return made

    def check(self) -> None:
        """DriverError for options that the kernel does not allow."""
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

    def run(self, checked: Checked | None) -> None:
        """Run the kernel; its fault becomes the failure of the context; DriverError where the launch is refused."""
        begun = time.perf_counter()
        try:
            with host_memory().given(self.arguments):
                done = self.run_unchecked() if checked is None else self.run_checked(checked)
        except (ValueError, TypeError) as wrong:
            raise DriverError(Result.INVALID_VALUE, str(wrong)) from wrong
        except Exception as wrong:  # noqa: BLE001 - whatever a launch raises is the result of this launch
            self.context.fail(wrong)
        else:
            for finding in done.findings:
                FINDINGS.add(finding)
        if (counts := profile()) is not None:
            counts.add(self.kernel.function.name, time.perf_counter() - begun)

    def run_unchecked(self) -> LaunchResult:
        """Run it as one like it has run before, if one has."""
        kernel = self.kernel.kernel
        done = kernel.relaunch(self.options, self.arguments)
        if done is None:
            extents = self.grid, self.block
            done = kernel.launch(*extents, self.arguments, shared=self.shared, cluster=self.options.cluster)
        return done

    def run_checked(self, checked: Checked) -> LaunchResult:
        """Run it for checks; the host need not wait for a kernel that was found to wait for it."""
        host = checked.host
        if host is not None and self.kernel.waits_for_host:
            host.go_on()
        waited = host is not None and host.waits
        done = self.kernel.kernel.launch_beside(self.options, self.arguments, checked.checks, checked.order, host)
        if host is not None and waited and not host.waits:
            self.kernel.waits_for_host = True
        return done


@dataclass(frozen=True, slots=True)
class Call(Task):
    """A call of a Python function; `description` is the client's, for a node of a graph.

    A call `is_short` unless it runs code of the client, which may wait.
    """

    function: Callable[[], None]
    description: bytes = b""
    is_short: bool = True

    def run(self, checked: Checked | None) -> None:
        """Call it; the host goes on where it takes long."""
        host = checked.host if checked is not None and not self.is_short else None
        with host.patient() if host is not None else nullcontext():
            self.function()


__all__ = ["Call", "Launch"]
