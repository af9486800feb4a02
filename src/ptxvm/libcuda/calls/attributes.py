"""Attributes of streams and of kernel nodes, by number (CUlaunchAttributeID): 64 bytes each.

All are kept and told; three change what happens here: the priority of a stream, the cluster of a kernel, and that kernels
change a node.  The others are hints to hardware: windows of the cache, domains of memory, carveouts.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from enum import IntEnum

from ptxvm.driver.graph import Node
from ptxvm.driver.graph_executables import is_updatable
from ptxvm.driver.launch import Launch
from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.c_values import bytes_from, put_bytes
from ptxvm.libcuda.calls.stream import clamped
from ptxvm.libcuda.calls.updatable_nodes import set_updatable
from ptxvm.libcuda.session import function, session

SIZE = 64  # bytes of a value


class LaunchAttributeId(IntEnum):
    """What can be set of a stream, a node or a launch."""

    IGNORE = 0
    ACCESS_POLICY_WINDOW = 1
    COOPERATIVE = 2
    SYNCHRONIZATION_POLICY = 3
    CLUSTER_DIMENSION = 4
    CLUSTER_SCHEDULING_POLICY_PREFERENCE = 5
    PROGRAMMATIC_STREAM_SERIALIZATION = 6
    PROGRAMMATIC_EVENT = 7
    PRIORITY = 8
    MEM_SYNC_DOMAIN_MAP = 9
    MEM_SYNC_DOMAIN = 10
    PREFERRED_CLUSTER_DIMENSION = 11
    LAUNCH_COMPLETION_EVENT = 12
    DEVICE_UPDATABLE_KERNEL_NODE = 13
    PREFERRED_SHARED_MEMORY_CARVEOUT = 14
    NVLINK_UTIL_CENTRIC_SCHEDULING = 16
    PORTABLE_CLUSTER_SIZE_MODE = 17
    SHARED_MEMORY_MODE = 18


A = LaunchAttributeId
OF_BOTH = frozenset({
    A.ACCESS_POLICY_WINDOW, A.PRIORITY, A.MEM_SYNC_DOMAIN_MAP, A.MEM_SYNC_DOMAIN, A.NVLINK_UTIL_CENTRIC_SCHEDULING,
})  # fmt: skip
OF_STREAMS = OF_BOTH | {A.SYNCHRONIZATION_POLICY}
OF_NODES = OF_BOTH | {
    A.COOPERATIVE, A.CLUSTER_DIMENSION, A.CLUSTER_SCHEDULING_POLICY_PREFERENCE, A.PREFERRED_CLUSTER_DIMENSION,
    A.PREFERRED_SHARED_MEMORY_CARVEOUT, A.DEVICE_UPDATABLE_KERNEL_NODE,
}  # fmt: skip
OF_LAUNCHES = frozenset(A) - {A.SYNCHRONIZATION_POLICY}
WINDOW = struct.Struct("<QQfii")  # CUaccessPolicyWindow: an address, a size, a ratio of hits, properties of hits and misses
PROPERTIES, PERSISTING = range(3), 2  # CUaccessProperty
UPDATABLE = struct.Struct("<i4xQ")  # is a node one that kernels change, and its handle for them?
DEFAULTS: Mapping[int, bytes] = {
    A.SYNCHRONIZATION_POLICY: struct.pack("<i", 1),  # CU_SYNC_POLICY_AUTO
    A.MEM_SYNC_DOMAIN_MAP: bytes((0, 1)),  # the default domain, and the remote one
    A.PREFERRED_SHARED_MEMORY_CARVEOUT: struct.pack("<i", -1),
}


def known(number: int, allowed: frozenset[LaunchAttributeId], owner: str) -> LaunchAttributeId:
    """An attribute by its number; DriverError for what cannot be set of such a thing."""
    if number not in allowed:
        raise DriverError(Result.INVALID_VALUE, f"{owner} has no attribute {number}")
    return LaunchAttributeId(number)


def check_value(which: LaunchAttributeId, value: bytes) -> None:
    """DriverError for a value that an attribute of no owner has."""
    if which is A.ACCESS_POLICY_WINDOW:
        _, _, ratio, hit, miss = WINDOW.unpack_from(value)
        if not 0 <= ratio <= 1 or hit not in PROPERTIES or miss not in PROPERTIES or miss == PERSISTING:
            raise DriverError(Result.INVALID_VALUE, f"no window has the ratio {ratio} and the properties {hit} and {miss}")


def told(out: int, value: bytes) -> None:
    """Give a client a value."""
    put_bytes(out, value.ljust(SIZE, b"\0"))


# ── streams ─────────────────────────────────────────────────────────────────────────────


@function("cuStreamGetAttribute")
def of_stream(handle: int, number: int, out: int) -> None:
    """An attribute of a stream."""
    stream, which = session().stream(handle), known(number, OF_STREAMS, "a stream")
    value = struct.pack("<i", stream.priority) if which is A.PRIORITY else stream.attributes.get(which)
    told(out, value or DEFAULTS.get(which, b""))


@function("cuStreamSetAttribute")
def set_of_stream(handle: int, number: int, value: int) -> None:
    """Set an attribute of a stream."""
    stream, which = session().stream(handle), known(number, OF_STREAMS, "a stream")
    bits = bytes_from(value, SIZE)
    check_value(which, bits)
    stream.attributes[which] = bits
    if which is A.PRIORITY:
        stream.priority = clamped(*struct.unpack_from("<i", bits))


@function("cuStreamCopyAttributes")
def copy_of_stream(target: int, source: int) -> None:
    """Let a stream have the attributes of another, but for its priority."""
    to, of = session().stream(target), session().stream(source)
    to.attributes = of.attributes.copy()


# ── kernel nodes ────────────────────────────────────────────────────────────────────────


def kernel_node(handle: int) -> Node:
    """A node that is a launch; DriverError for another."""
    node = session().handles.object(handle, Node)
    if not isinstance(node.task, Launch):
        raise DriverError(Result.INVALID_VALUE, "the node is no launch")
    return node


@function("cuGraphKernelNodeGetAttribute")
def of_node(handle: int, number: int, out: int) -> None:
    """An attribute of a kernel node."""
    node, which = kernel_node(handle), known(number, OF_NODES, "a kernel node")
    value = node.attributes.get(which)
    if which is A.CLUSTER_DIMENSION and isinstance(node.task, Launch):
        value = struct.pack("<3I", *node.task.configuration.cluster) if node.task.configuration.cluster is not None else None
    if which is A.COOPERATIVE and isinstance(node.task, Launch):
        value = struct.pack("<i", node.task.configuration.options.cooperative)
    if which is A.DEVICE_UPDATABLE_KERNEL_NODE and isinstance(node.task, Launch) and node.task.record is not None:
        value = UPDATABLE.pack(1, node.task.record.address)
    told(out, value or DEFAULTS.get(which, b""))


@function("cuGraphKernelNodeSetAttribute")
def set_of_node(handle: int, number: int, value: int) -> None:
    """Set an attribute of a kernel node."""
    put_on_node(kernel_node(handle), known(number, OF_NODES, "a kernel node"), bytes_from(value, SIZE))


def put_on_node(node: Node, which: LaunchAttributeId, value: bytes) -> None:
    """Set an attribute; DriverError for a value that there is not, or a cluster that the launch cannot have."""
    check_value(which, value)
    if which is A.CLUSTER_DIMENSION and isinstance(node.task, Launch):
        x, y, z = (max(size, 1) for size in struct.unpack_from("<3I", value))
        try:
            node.task = node.task.in_clusters((x, y, z))
        except DriverError as wrong:  # a launch has a code of its own for it, and attributes do not
            raise DriverError(Result.INVALID_VALUE, str(wrong)) from wrong
    if which is A.COOPERATIVE and isinstance(node.task, Launch):
        node.task = node.task.as_cooperative(bool(value[0]))
    if which is A.DEVICE_UPDATABLE_KERNEL_NODE:
        set_updatable(node, UPDATABLE.unpack_from(value)[0])
    else:
        node.attributes[which] = value


@function("cuGraphKernelNodeCopyAttributes")
def copy_of_node(target: int, source: int) -> None:
    """Let a kernel node have the attributes of another."""
    to, of = kernel_node(target), kernel_node(source)
    if is_updatable(to) or is_updatable(of):
        raise DriverError(Result.INVALID_VALUE, "the attributes of a node that kernels change are its own")
    for which, value in of.attributes.items():
        put_on_node(to, LaunchAttributeId(which), value)
