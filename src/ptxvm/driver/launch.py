"""The tasks of streams: launches of kernels, and calls."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import NamedTuple, cast

from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import InvalidPTX
from ptxvm.driver.context import Context
from ptxvm.driver.graph import KernelError, Task
from ptxvm.driver.host_memory import host_memory
from ptxvm.driver.launch_checks import FINDINGS, Checked
from ptxvm.driver.module import Kernel
from ptxvm.driver.profile import profile
from ptxvm.driver.results import DriverError, Result
from ptxvm.driver.updatable_nodes import NodeRecord
from ptxvm.machine.launch import ClusterError, check_shared, launch_shape
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.result import LaunchResult

MOST_FITTING = 1024  # checked options of launches that a kernel remembers


class Launch(NamedTuple):
    """A launch of a kernel; `shared` is in bytes of dynamic shared memory, and each argument is given by its bytes."""

    context: Context
    kernel: Kernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    arguments: tuple[bytes, ...]
    options: LaunchOptions  # for the engine: the extents again, with those of a cluster
    programmatic: bool = False  # may it begin before the launch before it on the stream has ended?
    record: NodeRecord | None = None  # of a node that kernels change

    @property
    def is_short(self) -> bool:
        """Was a launch with these options short before, and can the kernel not wait for the host?"""
        return self.kernel.kernel.is_short(self.options)

    @property
    def may_wait(self) -> bool:
        """Has the kernel a loop that polls memory?  The host may be what it waits for."""
        return self.kernel.kernel.may_wait()

    @property
    def may_overlap(self) -> bool:
        """May it run beside other launches of its stream: may it begin early, or let those that depend on it begin?"""
        return self.programmatic or self.kernel.kernel.lets_dependents_begin

    @property
    def cluster(self) -> tuple[int, int, int] | None:
        """The extents of a cluster, None if the launch names none."""
        return cast("tuple[int, int, int] | None", self.options.cluster)

    def as_cooperative(self, cooperative: bool) -> Launch:  # noqa: FBT001 - the value of an attribute
        """The same launch with CTAs that may wait for each other by `grid.sync()`, or without."""
        return self._replace(options=self.options._replace(cooperative=cooperative))

    def in_clusters(self, cluster: tuple[int, int, int] | None) -> Launch:
        """The same launch in clusters; DriverError where the kernel does not allow them."""
        made = self._replace(options=self.options._replace(cluster=cluster))
        made.check()
        return made

    @property
    def parameters(self) -> bytes:
        """The bytes of all parameters, in their places."""
        data = bytearray(self.kernel.bank.size)
        for slot, value in zip(self.kernel.bank.slots, self.arguments, strict=True):
            data[slot.offset : slot.offset + slot.size] = value
        return bytes(data)

    def of_node(self, record: NodeRecord) -> Launch:
        """The same launch, as one of a node that kernels change."""
        record.write(self.grid, self.parameters)
        return self._replace(record=record)

    def present(self) -> Launch | None:
        """The launch as kernels have left it, None where they have disabled it; DriverError for a grid that cannot be."""
        if self.record is None:
            return self
        if not self.record.head.enabled:
            return None
        grid, data = self.record.grid, self.record.parameters
        arguments = tuple(data[slot.offset : slot.offset + slot.size] for slot in self.kernel.bank.slots)
        made = self._replace(grid=grid, arguments=arguments, options=self.options._replace(grid=grid))
        made.check()
        return made

    def check(self) -> None:
        """Check the options: DriverError where the kernel does not allow them."""
        asked, fitting = self.options, self.kernel.fitting
        if asked in fitting:
            return
        try:
            launch_shape(self.grid, self.block, self.options.cluster).for_kernel(self.kernel.function)
            check_shared(self.kernel.function, self.kernel.shared, self.shared)
        except InvalidPTX as wrong:
            raise DriverError(Result.INVALID_PTX, str(wrong)) from wrong
        except ClusterError as wrong:
            raise DriverError(Result.INVALID_CLUSTER_SIZE, str(wrong)) from wrong
        except ValueError as wrong:
            raise DriverError(Result.INVALID_VALUE, str(wrong)) from wrong
        if len(fitting) >= MOST_FITTING:
            fitting.clear()
        fitting.add(asked)

    def run(self, checked: Checked | None) -> None:
        """Run the kernel.  Whatever it raises becomes the error of the context, and a KernelError."""
        if (launch := self.present()) is None:
            return
        begun, fault = time.perf_counter(), None
        try:
            with host_memory(self.context.device.ordinal).accessible(launch.arguments):
                done = launch.run_unchecked() if checked is None else launch.run_checked(checked)
        except Exception as wrong:  # noqa: BLE001 - whatever a launch raises is the result of this launch
            self.context.fail(wrong)
            fault = wrong
        else:
            for finding in done.findings:
                FINDINGS.add(finding)
        if (counts := profile()) is not None:
            counts.add(self.kernel.function.name, time.perf_counter() - begun)
        if fault is not None:
            raise KernelError from fault

    def cancel(self) -> None:
        """Nothing waits for a kernel alone."""

    def run_unchecked(self) -> LaunchResult:
        """Run it without checks: as an earlier launch with these options, if there was one."""
        kernel = self.kernel.kernel
        done = kernel.relaunch(self.options, self.arguments)
        if done is None:
            extents = self.grid, self.block
            asked = self.options
            done = kernel.launch(
                *extents, self.arguments, shared=self.shared, cluster=asked.cluster, threads=asked.threads,
                cooperative=asked.cooperative,
            )  # fmt: skip
        return done

    def run_checked(self, checked: Checked) -> LaunchResult:
        """Run it under checks.

        If the host goes on during a launch, the kernel is taken to wait for it: later launches let the host go on first.
        """
        host = checked.host
        if host is not None and self.kernel.waits_for_host:
            host.go_on()
        waited = host is not None and host.waits
        done = self.kernel.kernel.launch_beside(
            self.options, self.arguments, checked.checks, checked.order, host, programmatic=self.programmatic
        )
        if host is not None and waited and not host.waits:
            self.kernel.waits_for_host = True
        return done


@dataclass(frozen=True, slots=True)
class FunctionTask(Task):
    """A call of a Python function; `description` is the structure by which a client described it as a node.

    `is_short` is False for functions of the client, which may wait.
    """

    function: Callable[[], None]
    description: bytes = b""
    is_short: bool = True

    def run(self, checked: Checked | None) -> None:
        """Call the function; a host that waits under checks goes on if a function of the client takes long."""
        if checked is not None and checked.order is not None:
            checked.order.no_launch_comes_next()
        host = checked.host if checked is not None and not self.is_short else None
        with host.patient() if host is not None else nullcontext():
            self.function()


__all__ = ["FunctionTask", "Launch"]
