"""Edges of graphs: what a node waits for of one before it (driver API, `CUgraphEdgeData`).

Work runs here as if every node waited for the end of those before it, which every edge allows.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from ptxvm.driver.results import DriverError, Result
from ptxvm.named_tuple import NamedTuple

KERNEL = 0  # CUgraphNodeType
SIZE = 8  # bytes of the structure


class Port(IntEnum):
    """When the dependency of a node on a kernel is met (CU_GRAPH_KERNEL_NODE_PORT_*)."""

    ENDED = 0
    TRIGGERED = 1  # all blocks have triggered dependent launches
    BEGUN = 2  # all blocks have begun


class EdgeType(IntEnum):
    """How two nodes depend on each other (CUgraphDependencyType)."""

    ORDINARY = 0
    PROGRAMMATIC = 1  # the second kernel waits by itself, with griddepcontrol.wait


class Edge(NamedTuple):
    """The data of an edge; by default the second node follows the end of the first."""

    from_port: int = Port.ENDED
    to_port: int = 0
    type: int = EdgeType.ORDINARY

    @classmethod
    def unpacked(cls, data: bytes) -> Edge:
        """An edge by its structure; DriverError where a reserved byte is not 0."""
        if any(data[3:SIZE]):
            raise DriverError(Result.INVALID_VALUE, "the reserved bytes of the data of an edge are 0")
        return cls(*data[:3])

    def packed(self) -> bytes:
        """The structure of the edge."""
        return bytes(self).ljust(SIZE, b"\0")

    def check(self, before: int, after: int) -> None:
        """DriverError where nodes of these types have no such edge between them."""
        if self == COMPLETE:
            return
        if self.from_port not in list(Port) or self.type not in list(EdgeType) or self.to_port:
            raise DriverError(Result.INVALID_VALUE, f"{tuple(self)} are no ports and type of an edge")
        if before != KERNEL:
            raise DriverError(Result.INVALID_VALUE, "only nodes of kernels have ports")
        if self.type == EdgeType.PROGRAMMATIC and (after != KERNEL or self.from_port == Port.ENDED):
            raise DriverError(Result.INVALID_VALUE, "a programmatic edge leads from a port of a kernel to a kernel")
        if self.type == EdgeType.ORDINARY and self.from_port == Port.TRIGGERED:
            raise DriverError(Result.INVALID_VALUE, "an edge from the programmatic port of a kernel is programmatic")

    def to(self, after: int) -> Edge:
        """The edge that a capture makes to a node of a type: only kernels wait by themselves."""
        return self if after == KERNEL or self.type == EdgeType.ORDINARY else COMPLETE

    def joined(self, other: Edge | None) -> Edge:
        """One edge for two between the same nodes: the stricter one."""
        return self if other in (None, self) else COMPLETE


COMPLETE = Edge()
PROGRAMMATIC = Edge(Port.TRIGGERED, type=EdgeType.PROGRAMMATIC)
"""From a kernel to one that is launched with programmatic serialization."""


def refuse_loss(edges: Iterable[Edge]) -> None:
    """DriverError where edges have data, for a client that asks for nodes alone."""
    if any(each != COMPLETE for each in edges):
        raise DriverError(Result.LOSSY_QUERY, "an edge has data, which the call does not ask for")


__all__ = ["COMPLETE", "PROGRAMMATIC", "Edge", "EdgeType", "Port", "refuse_loss"]
