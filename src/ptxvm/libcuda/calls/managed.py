"""Advice on where managed memory should be, which is kept and told (driver API, "Unified Addressing").

It has no effect on the memory: the host and all devices share it.
"""

from __future__ import annotations

import ctypes
import struct
from collections import Counter
from dataclasses import field
from enum import IntEnum

from ptxvm.dataclass import dataclass
from ptxvm.driver.memory import AllocationKind
from ptxvm.driver.results import DriverError, Result, member
from ptxvm.libcuda.c_values import i32, put_bytes, put_i32, u64, u64s
from ptxvm.libcuda.calls.locations import HOST, LocationType, MemoryLocation, device_location, location_in
from ptxvm.libcuda.session import function, session
from ptxvm.libcuda.structures import Location

HOST_DEVICE, NO_DEVICE = -1, -2  # CU_DEVICE_CPU, CU_DEVICE_INVALID


class Advice(IntEnum):
    """What a client says of a range (CUmem_advise)."""

    SET_READ_MOSTLY = 1
    UNSET_READ_MOSTLY = 2
    SET_PREFERRED_LOCATION = 3
    UNSET_PREFERRED_LOCATION = 4
    SET_ACCESSED_BY = 5
    UNSET_ACCESSED_BY = 6


class RangeAttribute(IntEnum):
    """What can be asked of a range (CUmem_range_attribute)."""

    READ_MOSTLY = 1
    PREFERRED_LOCATION = 2
    ACCESSED_BY = 3
    LAST_PREFETCH_LOCATION = 4
    PREFERRED_LOCATION_TYPE = 5
    PREFERRED_LOCATION_ID = 6
    LAST_PREFETCH_LOCATION_TYPE = 7
    LAST_PREFETCH_LOCATION_ID = 8


A = RangeAttribute
PREFERRED = frozenset({A.PREFERRED_LOCATION, A.PREFERRED_LOCATION_TYPE, A.PREFERRED_LOCATION_ID})


@dataclass
class RangeValues:
    """Values of ranges of addresses, which do not overlap."""

    values: list[tuple[int, int, MemoryLocation]] = field(default_factory=list)

    def set(self, start: int, end: int, value: MemoryLocation | None) -> None:
        """Give a range a value, or none any more."""
        kept = []
        for first, last, held in self.values:
            kept += [(a, b, held) for a, b in ((first, min(last, start)), (max(first, end), last)) if a < b]
        self.values = kept if value is None else [*kept, (start, end, value)]

    def get(self, start: int, end: int) -> MemoryLocation | None:
        """The value that all of a range has, None where there is none."""
        inside = [(max(a, start), min(b, end), held) for a, b, held in self.values if a < end and start < b]
        values = {held for _, _, held in inside}
        return values.pop() if len(values) == 1 and sum(b - a for a, b, _ in inside) == end - start else None


ADVICE: dict[tuple[int, str | int], RangeValues] = {}
"""What was advised, by the number of an allocation, and `read`, `preferred`, `prefetched` or the device that accesses it."""


def ranges(address: int, size: int, kind: str | int) -> RangeValues:
    """The advice of a kind on an allocation; DriverError for bytes that leave it, or are neither managed nor pageable."""
    blocks = session().driver.blocks
    blocks.check(address, size)
    found = blocks.find(address)
    if found is not None and found[1].kind is not AllocationKind.MANAGED:
        raise DriverError(Result.INVALID_VALUE, f"{address:#x} is neither managed nor pageable memory")
    return ADVICE.setdefault((found[1].number if found is not None else 0, kind), RangeValues())


def refuse_flags(flags: int) -> None:
    """DriverError for flags, of which there are none yet."""
    if flags:
        raise DriverError(Result.INVALID_VALUE, "the flags are 0")


def host_or_device(number: int) -> MemoryLocation:
    """A location by the number of a device, which is -1 for the host."""
    return HOST if number == HOST_DEVICE else device_location(number)


def advise_at(address: int, size: int, advice: int, location: MemoryLocation) -> None:
    """Keep advice."""
    advised = member(Advice, advice, "advice on managed memory")
    kind: str | int = location.number
    if advised in (Advice.SET_READ_MOSTLY, Advice.UNSET_READ_MOSTLY):
        kind = "read"
    elif advised in (Advice.SET_PREFERRED_LOCATION, Advice.UNSET_PREFERRED_LOCATION):
        kind = "preferred"
    elif location.type is not LocationType.DEVICE:
        kind = HOST_DEVICE
    ranges(address, size, kind).set(address, address + size, location if advised % 2 else None)


@function("cuMemAdvise")
def advise(address: int, size: int, advice: int, device: int) -> None:
    """Advice on a range of managed memory."""
    takes_device = advice not in (Advice.SET_READ_MOSTLY, Advice.UNSET_READ_MOSTLY, Advice.UNSET_PREFERRED_LOCATION)
    advise_at(address, size, advice, host_or_device(device) if takes_device else MemoryLocation(LocationType.NONE))


@function("cuMemAdvise_v2")
def advise_v2(address: int, size: int, advice: int, location: int) -> None:
    """Advice on a range of managed memory."""
    advise_at(address, size, advice, location_in(location))


@function("cuMemPrefetchAsync")
def prefetch(address: int, size: int, device: int, stream: int) -> None:
    """Prefetch a range of managed memory to a location, which an attribute of the range then names."""
    session().stream(stream)
    ranges(address, size, "prefetched").set(address, address + size, host_or_device(device))


@function("cuMemPrefetchAsync_v2")
def prefetch_v2(address: int, size: int, location: int, flags: int, stream: int) -> None:
    """Prefetch a range of managed memory to a location, which an attribute of the range then names."""
    session().stream(stream)
    refuse_flags(flags)
    ranges(address, size, "prefetched").set(address, address + size, location_in(location))


@function("cuMemPrefetchBatchAsync")
def prefetch_batch(
    addresses: int, sizes: int, count: int, locations: int, first: int, numbers: int, flags: int, stream: int
) -> None:
    """Move several ranges; each location is that of the ranges from its number on."""
    refuse_flags(flags)
    starts = [u64(first + 8 * n) for n in range(numbers)]
    if not starts or starts[0]:
        raise DriverError(Result.INVALID_VALUE, "the first location is that of the first range")
    for n in range(count):
        location = max(k for k, start in enumerate(starts) if start <= n)
        prefetch_v2(u64(addresses + 8 * n), u64(sizes + 8 * n), u64(locations + 8 * location), 0, stream)


@function("cuMemDiscardBatchAsync")
def discard_batch(addresses: int, sizes: int, count: int, flags: int, stream: int) -> None:
    """Declare that ranges of managed memory need not keep their values; they keep them."""
    session().stream(stream)
    refuse_flags(flags)
    for address, size in zip(u64s(addresses, count), u64s(sizes, count), strict=True):
        found = session().driver.blocks.find(address)
        if found is None or found[1].kind is not AllocationKind.MANAGED or address + size > found[0] + found[1].size:
            raise DriverError(Result.INVALID_VALUE, f"{size} bytes from {address:#x} are not managed memory")


@function("cuMemDiscardAndPrefetchBatchAsync")
def discard_and_prefetch_batch(
    addresses: int, sizes: int, count: int, locations: int, first: int, numbers: int, flags: int, stream: int
) -> None:
    """Declare that ranges need not keep their values, and move them."""
    discard_batch(addresses, sizes, count, flags, stream)
    prefetch_batch(addresses, sizes, count, locations, first, numbers, flags, stream)


@function("cuMemRangeGetAttribute")
def range_attribute(out: int, room: int, number: int, address: int, size: int) -> None:
    """An attribute of a range of managed memory."""
    found = session().driver.blocks.find(address)
    if (
        found is None
        or found[1].kind is not AllocationKind.MANAGED
        or number not in frozenset(RangeAttribute)
        or room % 4
        or not room
    ):
        raise DriverError(Result.INVALID_VALUE, f"{address:#x} is no managed memory, or there is no attribute {number}")
    if number == A.ACCESSED_BY:
        numbers = (*range(len(session().driver.devices)), HOST_DEVICE)
        devices = [n for n in numbers if ranges(address, size, n).get(address, address + size)]
        words = [*devices, *[NO_DEVICE] * (room // 4)][: room // 4]
        put_bytes(out, struct.pack(f"<{len(words)}i", *words))
        return
    kind = "read" if number == A.READ_MOSTLY else "preferred" if number in PREFERRED else "prefetched"
    location = ranges(address, size, kind).get(address, address + size)
    if number == A.READ_MOSTLY:
        put_i32(out, int(location is not None))
    elif number in (A.PREFERRED_LOCATION_TYPE, A.LAST_PREFETCH_LOCATION_TYPE):
        put_i32(out, LocationType.NONE if location is None else location.type)
    else:
        put_i32(out, NO_DEVICE if location is None else number_of(location, RangeAttribute(number)))


def number_of(location: MemoryLocation, attribute: RangeAttribute) -> int:
    """The number of a location, which is that of a node only for attributes that have a type beside them."""
    if location.type is LocationType.DEVICE:
        return location.number
    is_node = location.type is LocationType.HOST_NODE
    return location.number if is_node and attribute in (A.PREFERRED_LOCATION_ID, A.LAST_PREFETCH_LOCATION_ID) else HOST_DEVICE


@function("cuMemRangeGetAttributes")
def range_attributes(outs: int, rooms: int, numbers: int, count: int, address: int, size: int) -> None:
    """Several attributes of a range."""
    for n in range(count):
        range_attribute(u64(outs + 8 * n), u64(rooms + 8 * n), i32(numbers + 4 * n), address, size)


@function("cuMemGetLocationInfo")
def residency(address: int, size: int, region: int, step: int, out: int) -> None:
    """The location that is most common in each region of a range: where its samples were prefetched last, or else the host."""
    if not 0 < region <= size or step > region:
        raise DriverError(Result.INVALID_VALUE, f"{size} bytes have no regions of {region} with samples each {step}")
    found = session().driver.blocks.find(address)
    if found is not None and (found[1].kind is not AllocationKind.MANAGED or address + size > found[0] + found[1].size):
        raise DriverError(Result.INVALID_VALUE, f"{size} bytes from {address:#x} are not managed or pageable memory")
    for number, start in enumerate(range(address, address + size, region)):
        samples = range(start, min(start + region, address + size), step or region)
        last = RangeValues() if found is None else ranges(address, size, "prefetched")
        ((location, _),) = Counter(last.get(each, each + 1) or HOST for each in samples).most_common(1)
        put_bytes(out + ctypes.sizeof(Location) * number, bytes(Location(*location)))
