"""Multicast objects: memory of a team of devices under one address (driver API, "Multicast Object Management").

A team has one device here: the machine's multimem instructions reach one memory.  What is bound to the object is mapped
wherever the object is, as the same pages.
"""

from __future__ import annotations

from dataclasses import field

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
    """A multicast object of one device, which is None until it is added."""

    bytes: int
    device: int | None = None
    bindings: dict[int, Binding] = field(default_factory=dict)  # by offset

    def __post_init__(self) -> None:
        must_be_granular(self.bytes)

    @property
    def size(self) -> int:
        """The most bytes that can be bound."""
        return self.bytes

    def add(self, device: int) -> None:
        """Add the device; DriverError for one more than the team has."""
        if self.device is not None:
            raise DriverError(Result.INVALID_VALUE, "the team of the multicast object has all its devices")
        self.device = device

    def must_be_complete(self) -> None:
        """DriverError before the device was added: hardware waits for it, and this thread would wait forever."""
        if self.device is None:
            raise DriverError(Result.NOT_PERMITTED, "the device of the multicast object was not added yet")

    def must_have(self, device: int) -> None:
        """DriverError for a device of which the team has none."""
        if device != self.device:
            raise DriverError(Result.INVALID_DEVICE, f"device {device} was not added to the multicast object")

    def bind(self, offset: int, memory: Physical, start: int, size: int) -> None:
        """Bind memory; DriverError where it does not fit, is another device's, or where some is bound already."""
        self.must_be_complete()
        must_be_granular(size)
        if offset % GRANULARITY or start % GRANULARITY:
            raise DriverError(Result.INVALID_VALUE, f"the offsets {offset} and {start} are no multiples of {GRANULARITY}")
        if offset + size > self.size or start + size > memory.size:
            raise DriverError(Result.INVALID_VALUE, f"{size} bytes are more than the object or the memory has")
        self.must_have(memory.device)
        if any(each.offset < offset + size and offset < each.end for each in self.bindings.values()):
            raise DriverError(Result.INVALID_VALUE, "there is memory bound already")
        self.bindings[offset] = Binding(offset, size, memory, start)

    def unbind(self, device: int, offset: int, size: int) -> None:
        """Unbind memory; DriverError where no call has bound just that."""
        self.must_have(device)
        found = self.bindings.get(offset)
        if found is None or found.size != size:
            raise DriverError(Result.INVALID_VALUE, f"{size} bytes at {offset} are not what was bound")
        del self.bindings[offset]

    def extents(self) -> list[Extent]:
        """What is bound."""
        return [Extent(each.offset, each.size, each.memory, each.start) for each in self.bindings.values()]


def must_be_granular(size: int) -> None:
    """DriverError for no bytes, or no multiple of the granularity."""
    if not size or size % GRANULARITY:
        raise DriverError(Result.INVALID_VALUE, f"{size} bytes are no multiple of {GRANULARITY}")


__all__ = ["Multicast"]
