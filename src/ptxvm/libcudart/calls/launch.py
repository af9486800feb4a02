"""Launches of kernels, and occupancy."""

from __future__ import annotations

import ctypes

from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.c_values import put_bytes, put_u64, structure_at
from ptxvm.libcuda.calls import launch as driver
from ptxvm.libcuda.session import session
from ptxvm.libcuda.structures import LaunchConfig as DriverConfig
from ptxvm.libcudart.runtime_state import Launching, RuntimeApiError, RuntimeResult, function, runtime
from ptxvm.libcudart.structures import LaunchConfig, ThreeSizes


@function("__cudaPushCallConfiguration", stateless=True)
def push(grid: ThreeSizes, block: ThreeSizes, shared: int, stream: int) -> None:
    """Store the configuration between `<<<` and `>>>`."""
    runtime().thread.launching.append(Launching(grid.extent(), block.extent(), shared, stream))


@function("__cudaPopCallConfiguration", stateless=True)
def pop(grid: int, block: int, shared: int, stream: int) -> None:
    """Take the stored configuration."""
    waiting = runtime().thread.launching
    if not waiting:
        raise RuntimeApiError(RuntimeResult.INVALID_CONFIGURATION, "a kernel was called without <<< >>>")
    found = waiting.pop()
    for address, extent in ((grid, found.grid), (block, found.block)):
        put_bytes(address, bytes(ThreeSizes(*extent)))
    put_u64(shared, found.shared)
    put_u64(stream, found.stream)


def kernel(address: int, grid: tuple[int, ...], block: tuple[int, ...], shared: int) -> int:
    """The driver's handle of a kernel; RuntimeApiError for invalid extents."""
    found = runtime().kernel(address)
    limits = (2**31 - 1, 65535, 65535)
    threads = block[0] * block[1] * block[2]
    bad_grid = any(not 0 < size <= limit for size, limit in zip(grid, limits, strict=True))
    if bad_grid or not 0 < threads <= found.most_threads or block[2] > 64:
        raise RuntimeApiError(RuntimeResult.INVALID_CONFIGURATION, f"no launch has the extents {grid} and {block}")
    if shared > found.most_dynamic_shared:
        said = f"the kernel takes {found.most_dynamic_shared} bytes of dynamic shared memory; an attribute of it says so"
        raise DriverError(Result.INVALID_VALUE, said)
    return session().handles.handle(found)


def check_stream(stream: int) -> None:
    """DriverError for a stream of another device than the current one.

    CUDA C++ Programming Guide, "Multi-Device System", "Stream and Event Behavior".
    """
    if session().stream(stream).context.device is not session().context.device:
        raise DriverError(Result.INVALID_HANDLE, "the stream is one of another device than the current one")


@function("cudaLaunchKernel", "__cudaLaunchKernel")
def launch(address: int, grid: ThreeSizes, block: ThreeSizes, parameters: int, shared: int, stream: int) -> None:
    """Put a launch on a stream."""
    extents = (*grid.extent(), *block.extent())
    handle = kernel(address, extents[:3], extents[3:], shared)
    check_stream(stream)
    driver.launch_kernel(handle, *extents, shared, stream, parameters, 0)


@function("cudaLaunchCooperativeKernel")
def launch_cooperative(address: int, grid: ThreeSizes, block: ThreeSizes, parameters: int, shared: int, stream: int) -> None:
    """Put a launch on a stream whose blocks wait for each other."""
    extents = (*grid.extent(), *block.extent())
    handle = kernel(address, extents[:3], extents[3:], shared)
    check_stream(stream)
    driver.launch_cooperative(handle, *extents, shared, stream, parameters)


@function("cudaLaunchKernelExC")
def launch_with_attributes(config: int, address: int, parameters: int) -> None:
    """Put a launch with attributes on a stream; they are laid out as the driver's."""
    c = structure_at(LaunchConfig, config)
    handle = kernel(address, c.grid.extent(), c.block.extent(), c.shared)
    check_stream(c.stream)
    made = of_driver(c)  # which lives as long as its address is read
    driver.launch_kernel_ex(ctypes.addressof(made), handle, parameters, 0)


def of_driver(c: LaunchConfig) -> DriverConfig:
    """The description of a launch as the driver's structure."""
    return DriverConfig(
        grid=c.grid.extent(), block=c.block.extent(), shared=c.shared, stream=c.stream, attributes=c.attributes, count=c.count
    )


# ── occupancy ───────────────────────────────────────────────────────────────────────────


@function("cudaOccupancyMaxActiveBlocksPerMultiprocessor")
def resident(out: int, address: int, threads: int, shared: int) -> None:
    """Blocks that a multiprocessor holds."""
    driver.resident(out, session().handles.handle(runtime().kernel(address)), threads, shared)


@function("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags")
def resident_with_flags(out: int, address: int, threads: int, shared: int, flags: int) -> None:
    """Blocks that a multiprocessor holds."""
    resident(out, address, threads, shared)


@function("cudaOccupancyAvailableDynamicSMemPerBlock")
def available_shared(out: int, address: int, blocks: int, threads: int) -> None:
    """The bytes of dynamic shared memory with which so many blocks still fit."""
    driver.available_shared(out, session().handles.handle(runtime().kernel(address)), blocks, threads)


@function("cudaOccupancyMaxActiveClusters")
def clusters(out: int, address: int, config: int) -> None:
    """The clusters of a launch that the device holds at once."""
    made = of_driver(structure_at(LaunchConfig, config))
    driver.clusters(out, session().handles.handle(runtime().kernel(address)), ctypes.addressof(made))


@function("cudaOccupancyMaxPotentialClusterSize")
def best_cluster(out: int, address: int, config: int) -> None:
    """The most blocks of a cluster for a launch."""
    made = of_driver(structure_at(LaunchConfig, config))
    driver.best_cluster(out, session().handles.handle(runtime().kernel(address)), ctypes.addressof(made))
