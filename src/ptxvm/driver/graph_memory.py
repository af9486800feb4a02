"""Memory of graphs: what their nodes allocate and free when a graph is launched (driver API, "Graph Management").

An allocation has its address from when its node is made.  It is the client's from a launch of its graph until a node or the
client frees it, which may be after the graph is gone; work that uses it before or after that fails.  Memory that no graph has,
and that is free, stays on the device until it is trimmed, or the next node allocates.
"""

from __future__ import annotations

from dataclasses import field

from ptxvm.dataclass import dataclass
from ptxvm.driver.context import STREAMS
from ptxvm.driver.graph import Child, Described, Graph, Task, UserObject
from ptxvm.driver.graph_executables import Executable
from ptxvm.driver.launch_checks import Checked
from ptxvm.driver.memory import AllocationKind, MemoryBlock, MemoryBlocks
from ptxvm.driver.results import DriverError, Result
from ptxvm.machine.allocation import FREED

NOT_YET = "no launch of its graph has allocated yet"


@dataclass(eq=False)
class GraphAllocation:
    """The memory of an allocation node; `is_live` from a launch until it is freed, in the order of the client's calls.

    Work on streams may use it from when a stream runs the allocation until it runs what frees it.
    """

    blocks: MemoryBlocks
    device: int
    block: MemoryBlock
    is_live: bool = False
    is_of_graph: bool = True

    @property
    def address(self) -> int:
        """The first address."""
        return self.block.address

    def join(self, graph: Graph) -> None:
        """Stay as long as the graph, its copies and what is instantiated of it."""
        graph.retain(UserObject(self.leave), 1)

    def leave(self) -> None:
        """No graph has it any more."""
        self.is_of_graph = False

    def free(self) -> None:
        """Free it; DriverError where no launch has allocated it, or it is free already."""
        if not self.is_live:
            raise DriverError(Result.INVALID_VALUE, f"the memory of a graph at {self.address:#x} is not allocated")
        self.is_live = False

    def begin(self) -> None:
        """Let work use it."""
        self.block.allocation.fate = FREED
        self.blocks.bring_back(self.block)

    def end(self, fate: str = FREED) -> None:
        """Let no work use it; messages say why."""
        self.block.allocation.fate = fate
        self.blocks.set_aside(self.block)


@dataclass(frozen=True)
class AllocationTask(Described):
    """The task of an allocation node: work that follows may use the memory."""

    allocation: GraphAllocation

    def run(self, checked: Checked | None) -> None:  # noqa: ARG002 - all tasks have it
        """Allocate it."""
        self.allocation.begin()


@dataclass(frozen=True)
class FreeTask(Described):
    """The task of a free node, or of the client's call: work that follows must not use the memory."""

    allocation: GraphAllocation

    def run(self, checked: Checked | None) -> None:  # noqa: ARG002 - all tasks have it
        """Free it."""
        self.allocation.end()


@dataclass
class Usage:
    """The bytes that graphs of a device have, and the most since the mark was set anew."""

    used: int = 0
    high: int = 0

    def grow(self, size: int) -> None:
        """So many bytes more, or fewer."""
        self.used += size
        self.high = max(self.high, self.used)


@dataclass
class GraphMemory:
    """The memory of the graphs of a process, by device."""

    blocks: MemoryBlocks
    usage: dict[int, Usage] = field(default_factory=dict)
    allocations: dict[int, GraphAllocation] = field(default_factory=dict)  # by address

    def of_device(self, device: int) -> Usage:
        """What the graphs of a device use."""
        return self.usage.setdefault(device, Usage())

    def allocate(self, device: int, size: int, kind: AllocationKind = AllocationKind.DEVICE) -> GraphAllocation:
        """The memory of a new node, which is at least one byte; DriverError where there is not so much."""
        self.trim(device)
        made = GraphAllocation(self.blocks, device, self.blocks.allocate(max(size, 1), kind, device=device))
        made.end(NOT_YET)
        self.of_device(device).grow(made.block.size)
        self.allocations[made.address] = made
        return made

    def at(self, address: int) -> GraphAllocation:
        """The allocation of an address; DriverError where no node has it."""
        if (found := self.allocations.get(address)) is None:
            raise DriverError(Result.INVALID_VALUE, f"{address:#x} is no memory that a node of a graph allocates")
        return found

    def trim(self, device: int) -> None:
        """Give memory back that is free and of no graph, unless work is pending, which may use it."""
        if any(not each.queue.is_idle for each in list(STREAMS)):
            return
        for each in list(self.allocations.values()):
            if each.device == device and not each.is_live and not each.is_of_graph:
                del self.allocations[each.address]
                each.begin()
                self.blocks.free(each.address)
                self.of_device(device).grow(-each.block.size)


def begin_launch(executable: Executable) -> None:
    """Allocate and free the memory of a launch.

    DriverError where memory of an earlier launch was not freed, unless launches free it.  This happens in the order of the
    client's calls: streams run the work on the memory in that order too.
    """
    tasks = list(tasks_of(executable.graph))
    allocated = [each.allocation for each in tasks if isinstance(each, AllocationTask)]
    if not executable.frees_on_launch and any(each.is_live for each in allocated):
        raise DriverError(Result.INVALID_VALUE, "memory that the last launch of the graph has allocated was not freed")
    for each in allocated:
        each.is_live = True
    for task in tasks:
        if isinstance(task, FreeTask):
            task.allocation.is_live = False


def tasks_of(graph: Graph) -> list[Task]:
    """The tasks of a graph and of the graphs that are nodes of it."""
    own = [node.task for node in graph.nodes]
    return own + [task for each in own if isinstance(each, Child) for task in tasks_of(each.graph)]


__all__ = ["AllocationTask", "FreeTask", "GraphAllocation", "GraphMemory", "begin_launch"]
