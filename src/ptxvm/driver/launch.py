"""The tasks of streams: launches of kernels, and calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import cast

from ptxvm.dataclass import dataclass
from ptxvm.driver.configuration import Configuration
from ptxvm.driver.context import Context
from ptxvm.driver.graph import KernelError, Task
from ptxvm.driver.host_memory import host_memory
from ptxvm.driver.launch_checks import FINDINGS, Checked
from ptxvm.driver.module import Kernel
from ptxvm.driver.profile import profile
from ptxvm.driver.updatable_nodes import NodeRecord
from ptxvm.machine.events import Finding
from ptxvm.machine.options import Completion
from ptxvm.machine.streams import DEVICE
from ptxvm.named_tuple import NamedTuple


class Launch(NamedTuple):
    """A launch of a kernel; each argument is given by its bytes."""

    configuration: Configuration
    arguments: tuple[bytes, ...]
    programmatic: bool = False  # may it begin before the launch before it on the stream has ended?
    record: NodeRecord | None = None  # of a node that kernels change

    @property
    def context(self) -> Context:
        """The context that it runs in."""
        return self.configuration.context

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return self.configuration.kernel

    @property
    def is_short(self) -> bool:
        """Was a launch of this configuration short before, and can the kernel not wait for the host?"""
        found = self.configuration.relaunch
        return found is not None and not found.waits

    @property
    def may_wait(self) -> bool:
        """Has the kernel a loop that polls memory?  The host may be what it waits for."""
        return self.kernel.kernel.may_wait()

    @property
    def may_overlap(self) -> bool:
        """May it run beside other launches of its stream: may it begin early, or let those that depend on it begin?"""
        return self.programmatic or self.kernel.kernel.lets_dependents_begin

    def as_cooperative(self, cooperative: bool) -> Launch:  # noqa: FBT001 - the value of an attribute
        """The same launch with CTAs that may wait for each other by `grid.sync()`, or without."""
        return self._replace(configuration=self.configuration.as_cooperative(cooperative))

    def in_clusters(self, cluster: tuple[int, int, int] | None) -> Launch:
        """The same launch in clusters; DriverError where the kernel does not allow them."""
        return self._replace(configuration=self.configuration.in_clusters(cluster))

    @property
    def parameters(self) -> bytes:
        """The bytes of all parameters, in their places."""
        data = bytearray(self.kernel.bank.size)
        for slot, value in zip(self.kernel.bank.slots, self.arguments, strict=True):
            data[slot.offset : slot.offset + slot.size] = value
        return bytes(data)

    def of_node(self, record: NodeRecord) -> Launch:
        """The same launch, as one of a node that kernels change."""
        record.write(self.configuration.grid, self.parameters)
        return self._replace(record=record)

    def present(self) -> Launch | None:
        """The launch as kernels have left it, None where they have disabled it; DriverError for a grid that cannot be."""
        if self.record is None:
            return self
        if not self.record.head.enabled:
            return None
        grid, data = self.record.grid, self.record.parameters
        arguments = tuple(data[slot.offset : slot.offset + slot.size] for slot in self.kernel.bank.slots)
        return self._replace(configuration=self.configuration.with_grid(grid), arguments=arguments)

    def run(self, checked: Checked | None) -> None:
        """Run the kernel.  Whatever it raises becomes the error of the context, and a KernelError."""
        if (launch := self if self.record is None else self.present()) is None:
            return
        context, profiled = self.configuration.context, profile()
        fault: Exception | None = None
        begun = time.perf_counter() if profiled is not None else 0.0
        try:
            with host_memory(context.device.ordinal).accessible(launch.arguments):
                found = launch.run_unchecked() if checked is None else launch.run_checked(checked)
        except Exception as wrong:  # noqa: BLE001 - whatever a launch raises is the result of this launch
            context.fail(wrong)
            fault = wrong
        else:
            for finding in found:
                FINDINGS.add(finding)
            if (fault := FINDINGS.fault(found)) is not None:
                context.fail(fault, told=True)
        if profiled is not None:
            profiled.add(self.kernel.function.name, time.perf_counter() - begun)
        if fault is not None:
            raise KernelError from fault

    def cancel(self) -> None:
        """Nothing waits for a kernel alone."""

    def run_unchecked(self) -> Sequence[Finding]:
        """Run it without checks, which find nothing: as an earlier launch of this configuration, if there was one."""
        configuration = self.configuration
        if (found := configuration.relaunch) is not None and found.repeat(self.arguments):
            DEVICE.waited()
            return ()
        asked = configuration.options
        configuration.kernel.kernel.launch(
            asked.grid, asked.block, self.arguments, shared=asked.shared, cluster=asked.cluster, threads=asked.threads,
            asynchronous=cast("Completion | None", asked.asynchronous or None), seed=asked.seed, cooperative=asked.cooperative,
        )  # fmt: skip
        return ()

    def run_checked(self, checked: Checked) -> Sequence[Finding]:
        """Run it under checks; returns what they find.

        If the host goes on during a launch, the kernel is taken to wait for it: later launches let the host go on first.
        """
        host = checked.host
        if host is not None and self.kernel.waits_for_host:
            host.go_on()
        waited = host is not None and host.waits
        done = self.kernel.kernel.launch_beside(
            self.configuration.options, self.arguments, checked.checks, checked.order, host, programmatic=self.programmatic
        )
        if host is not None and waited and not host.waits:
            self.kernel.waits_for_host = True
        return done.findings


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
