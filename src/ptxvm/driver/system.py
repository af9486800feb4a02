"""The driver of a process: devices, their primary contexts, and memory."""

from __future__ import annotations

import time
from collections import Counter
from weakref import finalize

from ptxvm.driver.context import STREAMS, Context
from ptxvm.driver.cuda_arrays import CudaArray, Mipmapped
from ptxvm.driver.device import Device
from ptxvm.driver.device_graphs import DeviceGraphs
from ptxvm.driver.environment import environment
from ptxvm.driver.graph_memory import GraphMemory
from ptxvm.driver.memory import MemoryBlocks
from ptxvm.driver.results import DriverError, Result
from ptxvm.driver.virtual_memory import VirtualMemory

POLL = 1e-3  # seconds between two looks at pending work
FIT = frozenset({Result.SUCCESS, Result.CONTEXT_IS_DESTROYED})
"""The results of a context that no kernel has failed in."""


class Driver:
    """The devices of a process, their primary contexts, and the memory that clients have allocated."""

    def __init__(self) -> None:
        asked = environment()
        self.devices = [Device(n, asked.model) for n in range(asked.devices)]
        for each in self.devices:
            each.room  # noqa: B018 - that of the beginning
        self.blocks = MemoryBlocks()
        self.primary = [Context(device, owners=(self.blocks,)) for device in self.devices]
        self.virtual = VirtualMemory(self.blocks)
        self.graph_memory = GraphMemory(self.blocks)
        self.device_graphs = DeviceGraphs(self.blocks)
        self.array_bytes = Counter[int]()  # by device

    def free_memory(self, device: Device) -> int:
        """The free bytes of a device: the room that it had at first, without what clients have allocated since."""
        return max(device.room - self.blocks.in_use(device.ordinal) - self.array_bytes[device.ordinal], 0)

    def count(self, array: CudaArray | Mipmapped, device: Device) -> None:
        """Count the memory of an array on a device, as long as the array lives: textures keep it."""
        here = {device.ordinal: array.size}
        self.array_bytes.update(here)
        finalize(array, self.array_bytes.subtract, here).atexit = False

    def finish(self) -> None:
        """Wait for all work, before memory is freed that it may use."""
        for stream in list(STREAMS):
            stream.queue.wait()

    def recover(self, patience: float) -> list[Exception]:
        """Let contexts work again in which a kernel has failed; returns the errors that no call has returned.

        `patience` is how many seconds it waits for pending work, which may still fail.  A context whose work has not ended then
        stays as it is.
        """
        contexts = {*self.primary, *(each.context for each in list(STREAMS))}
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and any(each.busy() for each in contexts):
            time.sleep(POLL)
        failed = [each for each in contexts if each.failure not in FIT and not each.busy()]
        return [error for each in failed if (error := each.recover()) is not None]

    def device(self, ordinal: int) -> Device:
        """A device by number; DriverError where there is none."""
        if not 0 <= ordinal < len(self.devices):
            raise DriverError(Result.INVALID_DEVICE, f"there is no device {ordinal}")
        return self.devices[ordinal]

    def primary_context(self, ordinal: int) -> Context:
        """The context of a device that clients share; DriverError where there is none."""
        return self.primary[self.device(ordinal).ordinal]


__all__ = ["FIT", "Driver"]
