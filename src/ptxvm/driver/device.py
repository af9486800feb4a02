"""The devices of a process: cards by name and limits, with the memory of the host."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType

from ptxvm.dataclass import dataclass
from ptxvm.driver.attributes import Attribute
from ptxvm.driver.models import Model
from ptxvm.driver.results import DriverError, Result
from ptxvm.driver.work_queues import WorkQueues, work_queues_of_a_device
from ptxvm.machine import device as machine

NUMBERS = frozenset(Attribute)
MIB = 1 << 20
LIMITS: Mapping[int, int] = MappingProxyType({0: 1024, 1: MIB, 2: 8 * MIB, 3: 2, 4: 2048, 5: 64, 6: 0})
"""The limits of a context by CUlimit: stack, printf buffer, heap, device runtime's depth and launches, L2 granularity."""


@dataclass(eq=False)
class Device:
    """One device of the process."""

    ordinal: int
    model: Model

    @cached_property
    def attributes(self) -> Mapping[int, int]:
        """The attributes that are not 0, by their numbers."""
        return {int(n): value for n, value in self.model.attributes().items()} | {Attribute.PCI_BUS_ID: self.ordinal + 1}

    @cached_property
    def work_queues(self) -> WorkQueues:
        """The work queues of its contexts that have none of their own."""
        return work_queues_of_a_device()

    @property
    def machine(self) -> machine.Device:
        """The device of the machine, with its memory."""
        return machine.device(self.ordinal)

    @property
    def name(self) -> str:
        """The name of the device: ptxvm, and the card whose limits it has."""
        return f"ptxvm ({self.model.name})"

    @property
    def uuid(self) -> bytes:
        """The UUID, 16 bytes, equal in every process."""
        return uuid.uuid5(uuid.NAMESPACE_DNS, f"{self.ordinal}.{self.model.name}.ptxvm").bytes

    @property
    def bus(self) -> str:
        """The PCI bus id."""
        return f"0000:{self.ordinal + 1:02x}:00.0"

    @property
    def memory(self) -> int:
        """The bytes of memory: the host's."""
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    @cached_property
    def room(self) -> int:
        """The bytes that clients may allocate: the free memory of the host when this was asked for first."""
        return min(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES"), self.memory)

    def attribute(self, number: int) -> int:
        """The value of an attribute; DriverError for an unknown number."""
        value = self.attributes.get(number)
        if value is None and number not in NUMBERS:
            raise DriverError(Result.INVALID_VALUE, f"there is no attribute {number}")
        return value or 0


__all__ = ["LIMITS", "Device"]
