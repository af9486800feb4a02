"""Multicast objects: memory of a team of devices under one address (driver API, "Multicast Object Management").

What is bound to the object is mapped wherever the object is, as the same pages: that of the first device at the address
itself, and that of the others at addresses which multimem instructions find (`machine.teams`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import cached_property

from ptxvm.dataclass import dataclass
from ptxvm.driver.results import DriverError, Result
from ptxvm.driver.virtual_memory import GRANULARITY, Extent, Mappable, Physical


@dataclass(frozen=True)
class Binding:
    """Memory, from an offset on, that is bound to an object at another."""

    offset: int
    size: int
    memory: Physical
    start: int

    @property
    def end(self) -> int:
        """The offset behind the last byte."""
        return self.offset + self.size


@dataclass(eq=False, kw_only=True)
class Multicast(Mappable):
    """A multicast object for some number of devices, in the order in which they were added."""

    bytes: int
    team: int = 1
    devices: list[int] = field(default_factory=list)
    bindings: dict[tuple[int, int], Binding] = field(default_factory=dict)  # by device and offset

    def __post_init__(self) -> None:
        must_be_granular(self.bytes)

    @property
    def size(self) -> int:
        """The most bytes that can be bound."""
        return self.bytes

    def add(self, device: int) -> None:
        """Add a device; DriverError for one that was added, and for one more than the team has."""
        if device in self.devices or len(self.devices) == self.team:
            raise DriverError(Result.INVALID_VALUE, f"the team has device {device}, or all its devices")
        self.devices.append(device)

    def must_be_complete(self) -> None:
        """DriverError before all devices were added: hardware waits for them, and this thread would wait forever."""
        if len(self.devices) < self.team:
            raise DriverError(Result.NOT_PERMITTED, f"{len(self.devices)} of {self.team} devices were added")

    def must_have(self, device: int) -> None:
        """DriverError for a device that the team does not have."""
        if device not in self.devices:
            raise DriverError(Result.INVALID_DEVICE, f"device {device} was not added to the multicast object")

    def bind(self, offset: int, memory: Physical, start: int, size: int) -> None:
        """Bind memory; DriverError where it does not fit, is of another device, or where some is bound already."""
        self.must_be_complete()
        must_be_granular(size)
        if offset % GRANULARITY or start % GRANULARITY:
            raise DriverError(Result.INVALID_VALUE, f"the offsets {offset} and {start} are no multiples of {GRANULARITY}")
        if offset + size > self.size or start + size > memory.size:
            raise DriverError(Result.INVALID_VALUE, f"{size} bytes are more than the object or the memory has")
        self.must_have(memory.device)
        own = [each for (device, _), each in self.bindings.items() if device == memory.device]
        if any(each.offset < offset + size and offset < each.end for each in own):
            raise DriverError(Result.INVALID_VALUE, "there is memory bound already")
        self.bindings[memory.device, offset] = Binding(offset, size, memory, start)

    def unbind(self, device: int, offset: int, size: int) -> None:
        """Unbind memory; DriverError where no call has bound just that."""
        self.must_have(device)
        found = self.bindings.get((device, offset))
        if found is None or found.size != size:
            raise DriverError(Result.INVALID_VALUE, f"{size} bytes at {offset} are not what was bound")
        del self.bindings[device, offset]

    def extents(self) -> list[Extent]:
        """The memory of the first device."""
        return self.extents_of(0)

    @cached_property
    def replicas(self) -> Sequence[Mappable]:
        """The memories of the other devices."""
        return [Replica(of=self, number=number) for number in range(1, self.team)]

    def extents_of(self, number: int) -> list[Extent]:
        """The memory of a device, where all devices have some."""
        found: list[Extent] = []
        for at in range(0, self.size, GRANULARITY):
            bound = [self._bound(device, at) for device in self.devices]
            mine = bound[number]
            if mine is None or None in bound:
                continue
            start, before = mine.start + at - mine.offset, found[-1] if found else None
            if before is not None and before.follows(at, mine.memory, start):
                found[-1] = before._replace(size=before.size + GRANULARITY)
            else:
                found.append(Extent(at, GRANULARITY, mine.memory, start))
        return found

    def _bound(self, device: int, at: int) -> Binding | None:
        """What is bound for a device at an offset."""
        own = (each for (owner, _), each in self.bindings.items() if owner == device)
        return next((each for each in own if each.offset <= at < each.end), None)


@dataclass(eq=False, kw_only=True)
class Replica(Mappable):
    """The memory of a further device of a multicast object; clients have no handle of it."""

    of: Multicast
    number: int

    @property
    def size(self) -> int:
        """That of the object."""
        return self.of.size

    def extents(self) -> list[Extent]:
        """The memory of the device."""
        return self.of.extents_of(self.number)


def must_be_granular(size: int) -> None:
    """DriverError for no bytes, or no multiple of the granularity."""
    if not size or size % GRANULARITY:
        raise DriverError(Result.INVALID_VALUE, f"{size} bytes are no multiple of {GRANULARITY}")


__all__ = ["Multicast"]
