"""The driver of the backend: Triton's own, without torch's idea of a GPU."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

from triton.backends.nvidia import driver as nvidia

from ptxvm.driver import host_memory

LIBCUDA = ctypes.CDLL("libcuda.so.1")
STREAM = 3  # the number of the stream among the arguments of a launch, behind the extents of the grid


class Event:
    """A point of time: when all work before it was done."""

    def __init__(self, *, enable_timing: bool = False) -> None:
        del enable_timing  # all have a time
        self.reached = 0.0

    def record(self, stream: object = None) -> None:
        """Let the event happen now."""
        del stream
        DeviceInterface.synchronize()
        self.reached = time.perf_counter()

    def synchronize(self) -> None:
        """Wait for the event, which has happened."""

    def elapsed_time(self, end: Event) -> float:
        """The milliseconds from this event to another."""
        return (end.reached - self.reached) * 1000


class DeviceInterface:
    """What Triton's benchmarks ask of a device, as `torch.cuda` has it."""

    Event = Event

    @staticmethod
    def synchronize(device: object = None) -> None:
        """Wait for all work of the current context; RuntimeError where a kernel has failed."""
        del device
        if result := LIBCUDA.cuCtxSynchronize():
            raise RuntimeError(f"cuCtxSynchronize returned {result}: a kernel has failed")

    @staticmethod
    def current_device() -> int:
        """The number of the current device."""
        number = ctypes.c_int()
        return 0 if LIBCUDA.cuCtxGetDevice(ctypes.byref(number)) else number.value


class Launcher(nvidia.CudaLauncher):
    """Launches a kernel, after it has told the driver how many bytes the tensors of the host have.

    A program reads tensors of the host with no call of the driver, so the launch has ended when this returns.  It has ended
    even when Triton's own launcher returns, which then frees the kernel's scratch memory: an allocator of the host would
    give it to others at once.
    """

    launch: Callable[..., None]

    def __init__(self, src: Any, metadata: Any) -> None:  # noqa: ANN401 - as Triton's
        super().__init__(src, metadata)
        self.launch = waiting(self.launch)


def waiting(launch: Callable[..., None]) -> Callable[..., None]:
    """A launch that describes its tensors, scratch memory too, and waits for the end; the stream is its fourth argument."""

    def launch_and_wait(*arguments: Any) -> None:  # noqa: ANN401 - as Triton's
        describe(arguments)
        launch(*arguments)
        LIBCUDA.cuStreamSynchronize(ctypes.c_void_p(arguments[STREAM]))  # its error is that of the next call too

    return launch_and_wait


def describe(argument: Any) -> None:  # noqa: ANN401 - a tensor has no type here: torch is not one of our dependencies
    """Tell the driver of the storage of a tensor, or of the tensors of a tuple."""
    left = [argument]
    while left:
        each = left.pop()
        if isinstance(each, tuple):
            left.extend(each)
        elif (storage_of := getattr(each, "untyped_storage", None)) is not None:
            storage = storage_of()
            host_memory.describe(each.data_ptr(), storage.data_ptr(), storage.nbytes())


class Driver(nvidia.CudaDriver):
    """The driver that Triton makes."""

    def __init__(self) -> None:
        # As Triton's does where torch is not imported.
        self.utils = nvidia.CudaUtils()
        self.launcher_cls = Launcher
        self.get_device_capability = self._get_device_capability
        self.get_current_stream = self._get_current_stream
        self.get_current_device = self._get_current_device
        self.set_current_device = self._set_current_device

    @staticmethod
    def is_active() -> bool:
        """Is there a device?  Makes the driver of this process ready."""
        return bool(LIBCUDA.cuInit(0) == 0)

    def get_active_torch_device(self) -> Any:  # noqa: ANN401 - torch is not one of our dependencies
        """The device for tensors: the host."""
        import torch  # noqa: PLC0415 - it may be missing

        return torch.device("cpu")

    def get_device_interface(self) -> type[DeviceInterface]:
        """Events, and waiting for the device."""
        return DeviceInterface

    def get_empty_cache_for_benchmark(self) -> None:
        """Nothing: the caches of the host are left as they are."""

    def clear_cache(self, cache: None) -> None:
        """Leave the caches of the host as they are."""


__all__ = ["Driver"]
