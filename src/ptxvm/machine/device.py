"""Devices: each has memory of its own, and access to that of others where it was enabled.

CUDA C++ Programming Guide, "Peer Device Memory Access".

The library's devices and those of the driver are the same: `device(n)` is the nth of the process, and the first has the memory
of everything that names no device.  An address is the same on all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from ptxvm.diagnostics.errors import Unsupported
from ptxvm.machine import options
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.device_array import DeviceArray
from ptxvm.machine.memory import Memory, default_memory
from ptxvm.machine.result import LaunchResult
from ptxvm.machine.streams import DEVICE, Event, Stream

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    import numpy.typing as npt

Found = TypeVar("Found")


class Launchable(Protocol):
    """A kernel of a module that lives on a device."""

    @property
    def device(self) -> int:
        """The number of the device."""

    def launch(
        self, grid: options.Extent, block: options.Extent, args: object, *, stream: Stream | None, **asked: object
    ) -> LaunchResult:
        """Run it."""


class StartedLaunch(Generic[Found]):
    """A launch that runs beside the host, and beside launches on other devices."""

    def __init__(self, future: Future[tuple[Found, Event]]) -> None:
        self._future = future

    @property
    def done(self) -> bool:
        """Has it ended?"""
        return self._future.done()

    def result(self, timeout: float | None = None) -> Found:
        """Wait for its end, and return its result; raises what it raised, and TimeoutError after so many seconds."""
        found, event = self._future.result(timeout)
        event.sync()
        return found


class Device:
    """A device: its number, and its memory.  `ptxvm.devices(n)` gives the first n of this process."""

    def __init__(self, number: int, memory: Memory) -> None:
        self.number, self.memory = number, memory
        self.stream = Stream()
        self.stream.name = f"device {number}"
        memory.table.device = number

    def __repr__(self) -> str:
        return f"<Device {self.number}>"

    # ── memory ──────────────────────────────────────────────────────────────────────────

    def array(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike = "float32") -> DeviceArray:
        """A new array in the memory of the device, of zeros."""
        return DeviceArray(shape, dtype, memory=self.memory)

    def from_host(self, array: npt.ArrayLike) -> DeviceArray:
        """A copy of a host array, or of an array of another device, in the memory of this one.

        Copies between devices need no peer access.
        """
        return DeviceArray.from_host(array, memory=self.memory)

    def memory_of(self, bits: int) -> Memory:
        """The memory for modules with addresses of so many bits."""
        if bits == 64:
            return self.memory
        if self.number:
            raise Unsupported(f".address_size {bits} on device {self.number}", "the first device has it")
        return default_memory(bits)

    # ── peers ───────────────────────────────────────────────────────────────────────────

    @property
    def peers(self) -> list[Device]:
        """The devices whose memory kernels of this one may access."""
        return [each for each in DEVICES if self.memory.table in each.memory.table.peers]

    def enable_peer_access(self, peer: Device) -> None:
        """Let kernels of this device access the memory of another; without it an access is a Fault, `peer-access`.

        ValueError where they may already, or for the device itself.
        """
        options.instance("a peer", peer, Device, "one of ptxvm.devices(n)")
        if peer is self:
            raise ValueError(f"{self} is no peer of itself")
        if peer in self.peers:
            raise ValueError(f"{self} has access to the memory of {peer} already")
        self.memory.table.see(peer.memory.table)

    def disable_peer_access(self, peer: Device) -> None:
        """End that access; ValueError where there is none."""
        if peer not in self.peers:
            raise ValueError(f"{self} has no access to the memory of {peer!r}")
        self.memory.table.lose(peer.memory.table)

    # ── launches ────────────────────────────────────────────────────────────────────────

    def start(
        self, kernel: Launchable, grid: options.Extent = 1, block: options.Extent = 1, args: object = (), **asked: object
    ) -> StartedLaunch[LaunchResult]:
        """Start to run a kernel of a module on this device, after what was started here before, and return at once.

        The arguments are those of `Kernel.launch` but `stream`.  Launches on several devices run side by side: nothing orders
        them until the host waits for one.  The check `race` finds accesses of one that race with those of another.
        """
        if kernel.device != self.number:
            raise ValueError(f"{kernel!r} is of device {kernel.device}; module.on({self}) has the same kernels here")

        def run() -> LaunchResult:
            if submission is None:
                return kernel.launch(grid, block, args, stream=None, **asked)
            with DEVICE.begun(submission, self.stream):
                return kernel.launch(grid, block, args, stream=self.stream, **asked)

        submission = DEVICE.submit() if asked.get("check") else None
        return self.put(run)

    def put(self, work: Callable[[], Found]) -> StartedLaunch[Found]:
        """Call a function on the thread of the device, after what was put there before."""

        def call() -> tuple[Found, Event]:
            found = work()
            return found, self.stream.record()

        return StartedLaunch(self._thread.submit(call))

    @cached_property
    def _thread(self) -> ThreadPoolExecutor:
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - most programs wait for each launch

        return ThreadPoolExecutor(1, f"ptxvm device {self.number}")


DEVICES: list[Device] = []
"""The devices of this process that were asked for, by number."""


def device(number: int) -> Device:
    """The device of a number."""
    first = default_memory()
    with first.lock:
        while len(DEVICES) <= number:
            memory = first if not DEVICES else Memory(lock=first.lock)
            if DEVICES:
                for each in first.table.items:
                    if each.everywhere:
                        memory.table.insert(each)
            DEVICES.append(Device(len(DEVICES), memory))
            tables = tuple(each.memory.table for each in DEVICES)
            for table in tables:
                table.devices = tables if len(tables) > 1 else ()
    return DEVICES[number]


def allocation_at(address: int) -> Allocation | None:
    """The memory at an address, on whatever device."""
    if len(DEVICES) == 1:
        return DEVICES[0].memory.table.find(address)
    found = (each.memory.table.find(address) for each in (DEVICES or [device(0)]))
    return next((each for each in found if each is not None), None)


def allocations() -> list[Allocation]:
    """The memory of all devices of this process."""
    return [allocation for each in (DEVICES or [device(0)]) for allocation in each.memory.table.items]


def was_freed(address: int) -> bool:
    """Was memory at an address freed, on whatever device, and does the address belong to nothing else yet?"""
    found = (each.memory.table.freed(address, 1) for each in (DEVICES or [device(0)]))
    return any(gone is not None and gone.rests for gone in found)


def devices(count: int = 1) -> list[Device]:
    """The first devices of this process, each with memory of its own; the first is that of all which names none.

    They are those of the driver, too, where it has as many (`PTXVM_DEVICES`).  ValueError for none.
    """
    return [device(number) for number in range(options.count("devices", count))]
