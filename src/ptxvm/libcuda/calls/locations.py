"""Locations of memory: a device, the host, or one of its NUMA nodes (CUmemLocation)."""

from __future__ import annotations

import ctypes
import os
from enum import IntEnum
from pathlib import Path

from ptxvm.driver.results import DriverError, Result, member
from ptxvm.libcuda.session import session
from ptxvm.libcuda.structures import Location
from ptxvm.named_tuple import NamedTuple

NODES, PROCESSORS = Path("/sys/devices/system/node"), Path("/sys/devices/system/cpu")


class LocationType(IntEnum):
    """The kinds of locations (CUmemLocationType) that there are here."""

    NONE = 0
    DEVICE = 1
    HOST = 2
    HOST_NODE = 3
    CURRENT_HOST_NODE = 4


class MemoryLocation(NamedTuple):
    """A kind of locations, and the number of the device or of the node; it is 0 for others."""

    type: LocationType
    number: int = 0


HOST = MemoryLocation(LocationType.HOST)


def location_of(type: int, number: int) -> MemoryLocation:
    """A location; DriverError for an unknown type, and for a device or a node that there is not."""
    match found := member(LocationType, type, "location of memory"):
        case LocationType.DEVICE:
            return device_location(number)
        case LocationType.HOST_NODE:
            if not has_node(number):
                raise DriverError(Result.INVALID_VALUE, f"the host has no NUMA node {number}")
            return MemoryLocation(found, number)
        case LocationType.CURRENT_HOST_NODE:
            return MemoryLocation(LocationType.HOST_NODE, current_node())
    return MemoryLocation(found)


def device_location(number: int) -> MemoryLocation:
    """The location of a device; DriverError where there is none with that number."""
    return MemoryLocation(LocationType.DEVICE, session().driver.device(number).ordinal)


def location_in(packed: int) -> MemoryLocation:
    """A location by the bytes of its structure, which is passed by value."""
    found = Location.from_buffer_copy(packed.to_bytes(ctypes.sizeof(Location), "little"))
    return location_of(found.type, found.number)


def has_node(number: int) -> bool:
    """Has the host a NUMA node with a number?  Node 0 is there on every machine."""
    return number == 0 or (number > 0 and (NODES / f"node{number}").is_dir())


def current_node() -> int:
    """The NUMA node of a processor that the thread may run on; 0 where the system does not say."""
    processor = min(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    names = sorted(each.name for each in (PROCESSORS / f"cpu{processor}").glob("node[0-9]*"))
    return int(names[0].removeprefix("node")) if names else 0


__all__ = ["HOST", "LocationType", "MemoryLocation", "device_location", "location_in", "location_of"]
