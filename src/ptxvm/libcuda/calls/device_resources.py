"""The resources of a device that contexts get parts of: multiprocessors and work queues (driver API, "Green Contexts").

Multiprocessors are split by the rules of the architectures.
"""

from __future__ import annotations

import ctypes

from ptxvm.dataclass import dataclass
from ptxvm.driver.device import Device
from ptxvm.driver.results import DriverError, Result
from ptxvm.driver.work_queues import Sharing, WorkQueues
from ptxvm.libcuda.c_values import put_bytes, put_i32, put_u64, structure_at, u32
from ptxvm.libcuda.session import function, session
from ptxvm.libcuda.structures import DeviceResource, GroupParameters, WorkQueueConfiguration, WorkQueueResource

INVALID, MULTIPROCESSORS, WORK_QUEUE_CONFIGURATION, WORK_QUEUES = 0, 1, 1000, 10000  # CUdevResourceType
IGNORE_COSCHEDULING = 1  # CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING
BACKFILL = 1  # CU_DEV_SM_RESOURCE_GROUP_BACKFILL
FINEST = (2, 2)  # the smallest partition and its alignment, without coscheduling


@dataclass(eq=False)
class Description:
    """Resources of a device, for a context."""

    device: Device
    count: int  # of multiprocessors
    queues: WorkQueues


def finest(device: Device) -> tuple[int, int]:
    """The multiprocessors of the smallest partition, and what partitions are multiples of (by compute capability)."""
    major, _ = device.model.capability
    return (8, 8) if major >= 9 else (4, 2) if major == 8 else (2, 2)


# ── telling them ────────────────────────────────────────────────────────────────────────


def put(out: int, device: Device, count: int, alignment: int | None = None) -> None:
    """Write a structure of multiprocessors; none at all are a resource of no type."""
    d = DeviceResource(type=MULTIPROCESSORS if count else INVALID, device=device.ordinal)
    if count:
        least, usual = finest(device)
        d.count, d.least, d.alignment = count, min(least, count), usual if alignment is None else alignment
    put_bytes(out, bytes(d))


def put_configuration(out: int, device: Device, queues: WorkQueues) -> None:
    """Write a structure of the configuration of work queues."""
    d = WorkQueueConfiguration(WORK_QUEUE_CONFIGURATION, device=device.ordinal, limit=queues.limit, scope=queues.sharing)
    put_bytes(out, bytes(d))


def put_of(out: int, kind: int, device: Device, count: int, queues: WorkQueues | None) -> None:
    """Write the resource of the type that a client asks for; DriverError for one that is not there."""
    if kind == MULTIPROCESSORS:
        put(out, device, count)
    elif kind == WORK_QUEUE_CONFIGURATION and queues is not None:
        put_configuration(out, device, queues)
    elif kind == WORK_QUEUES and queues is not None:
        put_bytes(out, bytes(WorkQueueResource(WORK_QUEUES, handle=session().handles.handle(queues))))
    else:
        raise DriverError(Result.INVALID_RESOURCE_TYPE, f"there is no resource of type {kind} here")


@function("cuDeviceGetDevResource")
def of_device(ordinal: int, out: int, kind: int) -> None:
    """A resource of a device."""
    device = session().driver.device(ordinal)
    put_of(out, kind, device, device.model.multiprocessors, device.work_queues)


# ── splitting multiprocessors ───────────────────────────────────────────────────────────


def multiprocessors_at(address: int) -> DeviceResource:
    """The multiprocessors that a client gives; DriverError for another type."""
    d = structure_at(DeviceResource, address)
    if d.type != MULTIPROCESSORS:
        raise DriverError(Result.INVALID_RESOURCE_TYPE, "the resource is not one of multiprocessors")
    return d


@function("cuDevSmResourceSplitByCount")
def split_by_count(out: int, groups: int, source: int, rest: int, flags: int, least: int) -> None:
    """Split multiprocessors into groups of one size, at least so many each; without room for groups, count them."""
    d = multiprocessors_at(source)
    device = session().driver.device(d.device)
    smallest, alignment = FINEST if flags & IGNORE_COSCHEDULING else finest(device)
    if least > d.count:
        raise DriverError(Result.INVALID_VALUE, f"there are {d.count} multiprocessors, not {least}")
    size = max(smallest, -(-least // alignment) * alignment)
    made = min(d.count // size, u32(groups)) if out else d.count // size
    for n in range(made if out else 0):
        put(out + n * ctypes.sizeof(d), device, size, alignment)
    if out and rest:
        put(rest, device, d.count - made * size, alignment)
    put_i32(groups, made)


@function("cuDevSmResourceSplit")
def split(out: int, groups: int, source: int, rest: int, flags: int, parameters: int) -> None:
    """Split multiprocessors into groups that a client describes; one of no size gets as many as there are left."""
    d, left = multiprocessors_at(source), multiprocessors_at(source).count
    device = session().driver.device(d.device)
    for n in range(groups):
        each = structure_at(GroupParameters, parameters + n * ctypes.sizeof(GroupParameters), writing=True)
        alignment = each.coscheduled or finest(device)[1]
        size = each.count or left // alignment * alignment
        if size > left or (size % alignment and not each.flags & BACKFILL):
            said = f"a group of {size} multiprocessors, in multiples of {alignment}, is not there among {left}"
            raise DriverError(Result.INVALID_RESOURCE_CONFIGURATION, said)
        left -= size
        each.count = size
        if out:
            put(out + n * ctypes.sizeof(d), device, size, alignment)
    if rest:
        put(rest, device, left)


# ── describing what a context gets ──────────────────────────────────────────────────────


def configured(address: int) -> tuple[int, WorkQueues]:
    """The device of a configuration of work queues, and new ones of it; DriverError for values that there are not."""
    d = structure_at(WorkQueueConfiguration, address)
    if not d.limit or d.scope not in set(Sharing):
        said = f"there are no work queues for {d.limit} streams that are shared by rule {d.scope}"
        raise DriverError(Result.INVALID_RESOURCE_CONFIGURATION, said)
    return d.device, WorkQueues(d.limit, Sharing(d.scope))


def queues_at(address: int) -> WorkQueues:
    """The work queues that a client was told."""
    return session().handles.object(structure_at(WorkQueueResource, address).handle, WorkQueues)


@function("cuDevResourceGenerateDesc")
def describe(out: int, resources: int, count: int) -> None:
    """Resources of one device as one description, for a context; it has all multiprocessors where none are named."""
    devices, multiprocessors, queues = set[int](), 0, list[WorkQueues]()
    for address in range(resources, resources + count * ctypes.sizeof(DeviceResource), ctypes.sizeof(DeviceResource)):
        kind = structure_at(DeviceResource, address).type
        if kind == WORK_QUEUE_CONFIGURATION:
            ordinal, made = configured(address)
            devices.add(ordinal)
            queues.append(made)
        elif kind == WORK_QUEUES:
            queues.append(queues_at(address))
        else:
            multiprocessors += multiprocessors_at(address).count
            devices.add(structure_at(DeviceResource, address).device)
    if len(devices) != 1 or len(queues) > 1:
        said = "the resources are multiprocessors, and the work queues of one sort, of one device"
        raise DriverError(Result.INVALID_RESOURCE_CONFIGURATION, said)
    device = session().driver.device(devices.pop())
    described = Description(device, multiprocessors or device.model.multiprocessors, *queues or [device.work_queues])
    put_u64(out, session().handles.handle(described))
