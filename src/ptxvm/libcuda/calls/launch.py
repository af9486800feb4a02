"""Launches of kernels, and occupancy."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from math import prod

from ptxvm.driver.configuration import Configuration
from ptxvm.driver.context import Context
from ptxvm.driver.environment import environment
from ptxvm.driver.event import Event
from ptxvm.driver.graph import Node
from ptxvm.driver.graph_edges import Edge, EdgeType, Port
from ptxvm.driver.launch import Launch
from ptxvm.driver.module import Kernel
from ptxvm.driver.occupancy import largest_block, largest_cluster, resident_blocks, resident_clusters
from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.c_values import bytes_from, function_at, put_i32, put_u64, structure_at, u64, u64s
from ptxvm.libcuda.calls.attributes import OF_LAUNCHES, LaunchAttributeId as A, check_value, known
from ptxvm.libcuda.calls.updatable_nodes import set_updatable
from ptxvm.libcuda.session import function, session
from ptxvm.libcuda.structures import LaunchAttribute
from ptxvm.machine.launch_options import LaunchOptions

KERNEL_NODE = 0  # CUgraphNodeType
MOST_CONFIGURATIONS = 64  # that a kernel remembers
END, BUFFER, SIZE = 0, 1, 2  # CU_LAUNCH_PARAM_*
CONFIG = struct.Struct("<7I4xQQI4x")
"""CUlaunchConfig: grid, block, dynamic shared memory, stream, attributes and their number."""
SHARED_OF_THREADS = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int)


def arguments(kernel: Kernel, parameters: int, extra: int) -> tuple[bytes, ...]:
    """The bytes of each argument: from an array of pointers, or from one buffer; DriverError where the client gives both."""
    if parameters and extra:
        raise DriverError(Result.INVALID_VALUE, "the arguments come by pointers or in one buffer, not in both ways")
    count = len(kernel.bank.slots)
    if not count:
        return ()
    if not parameters:
        data = buffer(extra)
        if kernel.layout.size > len(data):
            raise DriverError(Result.INVALID_VALUE, f"the kernel takes {kernel.bank.size} bytes of parameters, not {len(data)}")
        return kernel.layout.unpack_from(data)
    block, gather = session().thread.arguments, session().gather
    if gather is not None and gather(parameters, ctypes.addressof(kernel.places), count, ctypes.addressof(block)):
        return kernel.layout.unpack_from(block)
    return tuple(map(bytes_from, u64s(parameters, count), kernel.sizes))


def buffer(extra: int) -> bytes:
    """The buffer in a list of pairs that ends with 0."""
    found = {END: 0, BUFFER: 0, SIZE: 0}
    at = extra
    while at and (name := u64(at)) != END:
        if name not in found:
            raise DriverError(Result.INVALID_VALUE, f"there is no kind {name} of parameters")
        found[name] = u64(at + 8)
        at += 16
    if not (found[BUFFER] and found[SIZE]):
        raise DriverError(Result.INVALID_VALUE, "the arguments of the kernel are missing")
    return bytes_from(found[BUFFER], u64(found[SIZE]))


def launch(
    handle: int, grid: tuple[int, ...], block: tuple[int, ...], shared: int, parameters: int, extra: int,
    cluster: tuple[int, int, int] | None = None, context: Context | None = None, *, cooperative: bool = False,
) -> Launch:  # fmt: skip
    """A launch with the arguments of a client, in the current context unless another is named; DriverError if it is invalid."""
    kernel = session().handles.object(handle, Kernel)
    context = context or session().context
    clustered = cluster is not None or kernel.clusters.decides  # which depends on more than the launch
    key = context, context.life, grid, block, shared, cooperative
    found = None if clustered or shared > kernel.most_dynamic_shared else kernel.configurations.get(key)
    if isinstance(found, Configuration):
        return Launch(found, arguments(kernel, parameters, extra))
    check_context(kernel, context)
    check_extents(kernel, grid, block, shared)
    values = arguments(kernel, parameters, extra)
    asynchronous, seed = environment().completion
    options = LaunchOptions(
        grid, block, shared, threads=context.threads, cluster=kernel.clusters.chosen(cluster), asynchronous=asynchronous,
        seed=seed, cooperative=cooperative,
    )  # fmt: skip
    found = Configuration(context, kernel.on(context.device), options)
    if not clustered:
        if len(kernel.configurations) >= MOST_CONFIGURATIONS:
            kernel.configurations.clear()
        kernel.configurations[key] = found
    return Launch(found, values)


def check_context(kernel: Kernel, context: Context) -> None:
    """DriverError for a kernel of a module that another context has loaded, or this one before a reset."""
    if kernel.module.life not in (None, context.life):
        raise DriverError(Result.INVALID_HANDLE, "the kernel is of a module that was loaded in another context")


def check_extents(kernel: Kernel, grid: tuple[int, ...], block: tuple[int, ...], shared: int) -> None:
    """DriverError for extents of a grid and its blocks, or bytes of dynamic shared memory, that no launch has."""
    if not all((*grid, *block)):
        raise DriverError(Result.INVALID_VALUE, "a grid and its blocks are not empty")
    if prod(block) > kernel.most_threads:
        raise DriverError(Result.INVALID_VALUE, f"the kernel takes {kernel.most_threads} threads a block")
    if shared > kernel.most_dynamic_shared:
        said = f"the kernel takes {kernel.most_dynamic_shared} bytes of dynamic shared memory; an attribute of it says so"
        raise DriverError(Result.INVALID_VALUE, said)


@function("cuLaunchKernel")
def launch_kernel(
    handle: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int, shared: int, stream: int, parameters: int, extra: int
) -> None:
    """Put a launch on a stream, in whose context it is."""
    found = session().stream(stream)
    task = launch(handle, (gx, gy, gz), (bx, by, bz), shared, parameters, extra, context=found.context)
    found.put(task, KERNEL_NODE)


@function("cuLaunchCooperativeKernel")
def launch_cooperative(
    handle: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int, shared: int, stream: int, parameters: int
) -> None:
    """Put a launch on a stream whose blocks wait for each other."""
    found = session().stream(stream)
    check_cooperative(found.context, handle, gx * gy * gz, bx * by * bz, shared)
    grid, block = (gx, gy, gz), (bx, by, bz)
    found.put(launch(handle, grid, block, shared, parameters, 0, context=found.context, cooperative=True), KERNEL_NODE)


def check_cooperative(context: Context, handle: int, blocks: int, threads: int, shared: int) -> None:
    """DriverError for more blocks than a context holds at once (driver API, `cuLaunchCooperativeKernel`)."""
    kernel = session().handles.object(handle, Kernel)
    held = resident_blocks(context.device.attribute, kernel, threads, shared) * context.multiprocessors
    if blocks > held:
        raise DriverError(Result.COOPERATIVE_LAUNCH_TOO_LARGE, f"{blocks} blocks wait for each other, and {held} fit at once")


@function("cuLaunchKernelEx")
def launch_kernel_ex(config: int, handle: int, parameters: int, extra: int) -> None:
    """Put a launch with attributes on a stream."""
    gx, gy, gz, bx, by, bz, shared, stream, listed, count = CONFIG.unpack(bytes_from(config, CONFIG.size))
    found = session().stream(stream)
    if not count:
        found.put(launch(handle, (gx, gy, gz), (bx, by, bz), shared, parameters, extra, context=found.context), KERNEL_NODE)
        return
    attributes = attributes_at(listed, count)
    cooperative = has(A.COOPERATIVE, attributes)
    if cooperative:
        check_cooperative(found.context, handle, gx * gy * gz, bx * by * bz, shared)
    cluster, programmatic = cluster_of(attributes), has(A.PROGRAMMATIC_STREAM_SERIALIZATION, attributes)
    grid, block = (gx, gy, gz), (bx, by, bz)
    task = launch(handle, grid, block, shared, parameters, extra, cluster, found.context, cooperative=cooperative)
    updatable = [each for each in attributes if each.id == A.DEVICE_UPDATABLE_KERNEL_NODE and each.value[0]]
    if updatable and found.capture is None:
        raise DriverError(Result.INVALID_VALUE, "kernels change the launches of nodes alone, and the stream is not captured")
    if found.capture is not None and programmatic:
        found.capture.let_overlap(found)  # in a graph, edges say it
    found.put(task._replace(programmatic=programmatic and found.capture is None), KERNEL_NODE)
    if found.capture is not None:
        for each in updatable:
            tell_node(each, *found.capture.last[found])
    for event, edge in events_of(attributes):
        found.record(event, edge)


def tell_node(attribute: LaunchAttribute, node: Node) -> None:
    """Let kernels change the node of a launch, and put its handle for them into an attribute."""
    set_updatable(node, attribute.value[0])
    if isinstance(node.task, Launch) and node.task.record is not None:
        attribute.value[2], attribute.value[3] = (node.task.record.address >> shift & 0xFFFF_FFFF for shift in (0, 32))


def attributes_at(address: int, count: int) -> list[LaunchAttribute]:
    """The attributes of a launch; DriverError for one that launches do not have."""
    found = [structure_at(LaunchAttribute, address + n * ctypes.sizeof(LaunchAttribute)) for n in range(count)]
    for each in found:
        check_value(known(each.id, OF_LAUNCHES, "a launch"), bytes(each.value))
    return found


def events_of(attributes: Sequence[LaunchAttribute]) -> list[tuple[Event, Edge]]:
    """The events that attributes name, and their edges in a capture.

    They happen when blocks trigger or begin, and here when the launch has ended.
    """
    found = [each for each in attributes if each.id in (A.PROGRAMMATIC_EVENT, A.LAUNCH_COMPLETION_EVENT)]
    return [(session().handles.object(each.value[0] | each.value[1] << 32, Event), edge_of(each)) for each in found]


def edge_of(attribute: LaunchAttribute) -> Edge:
    """The edge from a launch to what waits for an event that an attribute names."""
    if attribute.id == A.LAUNCH_COMPLETION_EVENT:
        return Edge(Port.BEGUN)
    at_block_start = attribute.value[3]
    return Edge(Port.BEGUN if at_block_start else Port.TRIGGERED, type=EdgeType.PROGRAMMATIC)


def has(attribute: int, attributes: Sequence[LaunchAttribute]) -> bool:
    """Has a launch an attribute with a value other than 0?"""
    return any(each.id == attribute and each.value[0] for each in attributes)


def cluster_of(attributes: Sequence[LaunchAttribute]) -> tuple[int, int, int] | None:
    """The extents of a cluster, if an attribute of a launch has them."""
    for each in attributes:
        if each.id == A.CLUSTER_DIMENSION:
            x, y, z = (max(size, 1) for size in each.value[:3])
            return x, y, z
    return None


# ── occupancy ───────────────────────────────────────────────────────────────────────────


@function("cuOccupancyMaxActiveBlocksPerMultiprocessor")
def resident(out: int, handle: int, threads: int, shared: int) -> None:
    """Blocks that a multiprocessor holds."""
    kernel = session().handles.object(handle, Kernel)
    if threads <= 0:
        raise DriverError(Result.INVALID_VALUE, f"a block has one thread and more, not {threads}")
    put_i32(out, resident_blocks(session().context.device.attribute, kernel, threads, shared))


@function("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags")
def resident_with_flags(out: int, handle: int, threads: int, shared: int, flags: int) -> None:
    """Blocks that a multiprocessor holds."""
    resident(out, handle, threads, shared)


@function("cuOccupancyMaxPotentialBlockSize")
def best_block(blocks: int, threads: int, handle: int, shared_of: int, shared: int, limit: int) -> None:
    """The block size with the most resident threads, and the number of such blocks that fill the device.

    `shared_of` is a function of the client: bytes of dynamic shared memory for a number of threads.
    """
    kernel = session().handles.object(handle, Kernel)
    dynamic = function_at(SHARED_OF_THREADS, shared_of) if shared_of else lambda size: shared  # noqa: ARG005
    size, count = largest_block(session().context, kernel, dynamic, limit)
    put_i32(threads, size)
    put_i32(blocks, count)


@function("cuOccupancyMaxPotentialBlockSizeWithFlags")
def best_block_with_flags(blocks: int, threads: int, handle: int, shared_of: int, shared: int, limit: int, flags: int) -> None:
    """The block size with the most resident threads, and the number of such blocks that fill the device."""
    best_block(blocks, threads, handle, shared_of, shared, limit)


@function("cuOccupancyMaxActiveClusters")
def clusters(out: int, handle: int, config: int) -> None:
    """The clusters of a launch that the device holds at once."""
    threads, shared, asked = cluster_at(config)
    kernel = session().handles.object(handle, Kernel)
    cluster = kernel.clusters.chosen(asked) or kernel.clusters.required or (1,)
    put_i32(out, resident_clusters(session().context, kernel, threads, shared, prod(cluster)))


@function("cuOccupancyMaxPotentialClusterSize")
def best_cluster(out: int, handle: int, config: int) -> None:
    """The most blocks of a cluster for a launch."""
    threads, shared, _ = cluster_at(config)
    kernel = session().handles.object(handle, Kernel)
    put_i32(out, largest_cluster(session().context, kernel, threads, shared))


def cluster_at(config: int) -> tuple[int, int, tuple[int, int, int] | None]:
    """Threads of a block, bytes of dynamic shared memory and the extents of a cluster, as a structure describes a launch."""
    _, _, _, x, y, z, shared, _, attributes, count = CONFIG.unpack(bytes_from(config, CONFIG.size))
    return x * y * z, shared, cluster_of(attributes_at(attributes, count))


@function("cuOccupancyAvailableDynamicSMemPerBlock")
def available_shared(out: int, handle: int, blocks: int, threads: int) -> None:
    """The bytes of dynamic shared memory with which so many blocks still fit."""
    kernel, context = session().handles.object(handle, Kernel), session().context
    sizes = [size for size in range(0, kernel.most_dynamic_shared + 1, 128)
             if resident_blocks(context.device.attribute, kernel, threads, size) >= blocks]  # fmt: skip
    if not sizes:
        raise DriverError(Result.INVALID_VALUE, f"{blocks} blocks do not fit")
    put_u64(out, max(sizes))
