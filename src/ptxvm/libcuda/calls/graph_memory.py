"""What graphs of a device use of its memory."""

from __future__ import annotations

from enum import IntEnum

from ptxvm.driver.results import DriverError, Result, member
from ptxvm.libcuda.c_values import put_u64, u64
from ptxvm.libcuda.session import function, session


class GraphMemoryAttribute(IntEnum):
    """What can be asked (CUgraphMem_attribute).  Memory that graphs have is all that is reserved for them."""

    USED_MEM_CURRENT = 0
    USED_MEM_HIGH = 1
    RESERVED_MEM_CURRENT = 2
    RESERVED_MEM_HIGH = 3

    @property
    def is_high_mark(self) -> bool:
        """Is it the most that there was?"""
        return self in (GraphMemoryAttribute.USED_MEM_HIGH, GraphMemoryAttribute.RESERVED_MEM_HIGH)


def attribute_of(number: int) -> GraphMemoryAttribute:
    """An attribute by its number; DriverError where there is none."""
    return member(GraphMemoryAttribute, number, "attribute of the memory of graphs")


@function("cuDeviceGetGraphMemAttribute")
def attribute(ordinal: int, number: int, out: int) -> None:
    """The bytes that graphs of a device have, or the most that they had."""
    usage = session().driver.graph_memory.of_device(session().driver.device(ordinal).ordinal)
    put_u64(out, usage.high if attribute_of(number).is_high_mark else usage.used)


@function("cuDeviceSetGraphMemAttribute")
def set_attribute(ordinal: int, number: int, value: int) -> None:
    """Set a high mark anew, which is all that can be set."""
    usage = session().driver.graph_memory.of_device(session().driver.device(ordinal).ordinal)
    if not attribute_of(number).is_high_mark or u64(value):
        raise DriverError(Result.INVALID_VALUE, "only the high marks can be set, and to 0")
    usage.high = usage.used


@function("cuDeviceGraphMemTrim")
def trim(ordinal: int) -> None:
    """Give memory of graphs back that is free and of no graph."""
    session().driver.graph_memory.trim(session().driver.device(ordinal).ordinal)
