"""Graphs that kernels launch (`cudaGraphLaunch` of the device runtime): graphs instantiated for it, and how they run.

A kernel of a graph enters launches in the record of its graph, which is memory of the device: the function in
`cudadevrt.ptx` reads and writes it.  The address of the record is the handle of a graph for launches from the device.  Launches
that a kernel forgets run when the node of the kernel has ended, and nothing orders them with later nodes; tail launches run
in their order when the graph has ended with all that it launched, each before the tail launches that were there already.
(CUDA C++ Programming Guide, "Device Graph Launch")
"""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import IntEnum
from weakref import finalize

from ptxvm.driver.context import Context
from ptxvm.driver.graph import Failing, Graph, Node, Task
from ptxvm.driver.graph_executables import Executable
from ptxvm.driver.launch import Launch
from ptxvm.driver.launch_checks import Checked
from ptxvm.driver.memory import MemoryBlock, MemoryBlocks
from ptxvm.driver.results import DriverError, Result
from ptxvm.machine.running_graph import RUNNING, RunningGraph
from ptxvm.machine.streams import Stream
from ptxvm.machine.unwritten import written

MOST_FORGOTTEN, MOST_TAILS = 120, 255  # launches of a graph by its kernels: those they forget, and tail launches
WORKING, CHILD = (0, 1, 2), 4  # CUgraphNodeType: kernels, copies and fills; child graphs


class State(IntEnum):
    """Whether kernels may launch a graph: it was made for that, it is on the device, it runs."""

    NEVER = 0
    NOT_UPLOADED = 1
    READY = 2
    RUNNING = 3


class Record(ctypes.Structure):
    """The record of a graph; `cudaGraphLaunch` of `cudadevrt.ptx` has the same offsets."""

    _fields_ = (
        ("state", ctypes.c_uint32),
        ("launches_itself", ctypes.c_uint32),
        ("forgotten_count", ctypes.c_uint32),
        ("tail_count", ctypes.c_uint32),
        ("forgotten", ctypes.c_uint64 * MOST_FORGOTTEN),
        ("tails", ctypes.c_uint64 * MOST_TAILS),
    )


class UnsupportedNodeError(DriverError):
    """A graph cannot be launched from the device, because of a node."""

    def __init__(self, message: str, node: Node, *, several: bool = False) -> None:
        super().__init__(Result.NOT_SUPPORTED, message)
        self.node, self.of_several_contexts = node, several


class DeviceGraph:
    """An executable graph with a record; `uploaded` is what it does when kernels launch it."""

    def __init__(self, executable: Executable, block: MemoryBlock, context: Failing) -> None:
        self.executable, self.block, self.context = executable, block, context
        self.uploaded: tuple[Task, ...] = ()
        ctypes.memset(block.address, 0, ctypes.sizeof(Record))
        written(block.address)
        self.record = Record.from_address(block.address)
        self.record.state = State.NOT_UPLOADED if executable.is_for_device else State.NEVER

    def upload(self) -> None:
        """Let later launches by kernels do what the graph does now."""
        self.uploaded = self.executable.tasks()
        if self.record.state == State.NOT_UPLOADED:
            self.record.state = State.READY

    def begin(self) -> RunningGraph:
        """It begins, and has launched nothing; returns how its kernels see it."""
        record = self.record
        record.launches_itself = record.forgotten_count = record.tail_count = 0
        if record.state != State.NEVER:
            record.state = State.RUNNING
        return RunningGraph(self.block.address if self.executable.is_for_device else 0, self.block.address)

    def end(self) -> list[int]:
        """It has ended; returns the handles of its tail launches."""
        if self.record.state == State.RUNNING:
            self.record.state = State.READY
        return list(self.record.tails[: min(self.record.tail_count, MOST_TAILS)])

    def forgotten(self, since: int) -> list[int]:
        """The handles of the graphs that its kernels have launched and forgotten, but for the first ones."""
        return list(self.record.forgotten[since : min(self.record.forgotten_count, MOST_FORGOTTEN)])


class DeviceGraphs:
    """The graphs of a process that kernels launch, or whose kernels launch graphs."""

    def __init__(self, blocks: MemoryBlocks) -> None:
        self.blocks = blocks
        self.graphs: dict[Executable, DeviceGraph] = {}
        self.by_handle: dict[int, DeviceGraph] = {}

    def enter(self, executable: Executable, context: Context) -> int | None:
        """Make the record of a graph for launches from the device, whose address is its handle; None for another graph."""
        if not executable.is_for_device:
            return None
        must_be_for_device(executable.copies, context_of(executable.graph, context))
        return self._entered(executable, context).block.address

    def upload(self, executable: Executable) -> None:
        """cuGraphUpload; of graphs for launches from the host alone it has no effect."""
        if executable in self.graphs:
            self.graphs[executable].upload()

    def launch(self, executable: Executable, context: Context) -> Task | None:
        """The task of a launch by the host, which is an upload too; None where kernels launch nothing."""
        if not executable.is_for_device and not any(each.kernel.module.launches_graphs for each in launches(executable.graph)):
            return None
        found = self._entered(executable, context)
        found.upload()
        return GraphLaunch(self, found, executable.tasks())

    def forget(self, executable: Executable) -> None:
        """The client has destroyed a graph; launches of it that are under way keep its record."""
        if (found := self.graphs.pop(executable, None)) is not None:
            del self.by_handle[found.block.address]

    def _entered(self, executable: Executable, context: Context) -> DeviceGraph:
        if executable not in self.graphs:
            context = context_of(executable.graph, context)
            block = self.blocks.allocate(ctypes.sizeof(Record), device=context.device.ordinal)
            self.graphs[executable] = self.by_handle[block.address] = made = DeviceGraph(executable, block, context)
            finalize(made, self.blocks.free, block.address).atexit = False
        return self.graphs[executable]


Launched = tuple[DeviceGraph, Sequence[Task], "Checked | None"]
"""A graph that is to run, what it does, and how under checks."""


class GraphLaunch(Task):
    """A launch of a graph by the host, and all launches by kernels that follow from it."""

    is_short = False

    def __init__(self, graphs: DeviceGraphs, graph: DeviceGraph, tasks: Sequence[Task]) -> None:
        self.graphs, self.graph, self.tasks = graphs, graph, tasks

    @property
    def may_wait(self) -> bool:
        """May one of its tasks wait for the host?"""
        return any(task.may_wait for task in self.tasks)

    def run(self, checked: Checked | None) -> None:
        """Run the graph.  Under checks it needs a stream, beside which launches run that its kernels forget."""
        own = checked is not None and checked.order is None
        if checked is not None and own:
            checked = checked._replace(order=Stream())
        under_way = [self._launches(self.graph, self.tasks, checked)]
        while under_way:
            launched = next(under_way[-1], None)
            if launched is None:
                under_way.pop()
            else:
                under_way.append(self._launches(*launched))
        if checked is not None and checked.order is not None and own:
            checked.order.sync()

    def cancel(self) -> None:
        """Cancel its tasks."""
        for task in self.tasks:
            task.cancel()

    def _launches(self, graph: DeviceGraph, tasks: Sequence[Task], checked: Checked | None) -> Iterator[Launched]:
        """Run a graph, and its tail launches with theirs; the launches that kernels forget are to be run when they come."""
        pending = [(graph, tasks)]
        while pending and not graph.context.failure:
            graph, tasks = pending.pop()
            seen, sides, since = graph.begin(), list[Stream](), 0
            left = iter(tasks)
            try:
                for task in left:
                    run_in(seen, task, checked)
                    fresh = graph.forgotten(since)
                    since += len(fresh)
                    for each in self._found(fresh):
                        beside = in_stream_beside(checked)
                        yield each, each.uploaded, beside
                        sides += [beside.order] if beside is not None and beside.order is not None else []
            finally:
                tails = graph.end()
                for task in left:
                    task.cancel()
            for side in sides:
                if checked is not None and checked.order is not None:
                    checked.order.wait(side)
            pending += [(each, each.uploaded) for each in reversed(self._found(tails))]

    def _found(self, handles: Iterable[int]) -> list[DeviceGraph]:
        """The graphs of handles; the client may have destroyed one meanwhile."""
        return [self.graphs.by_handle[each] for each in handles if each in self.graphs.by_handle]


def run_in(graph: RunningGraph, task: Task, checked: Checked | None) -> None:
    """Run a task as one of a graph."""
    token = RUNNING.set(graph)
    try:
        task.run(checked)
    finally:
        RUNNING.reset(token)


def in_stream_beside(checked: Checked | None) -> Checked | None:
    """How work runs in a new stream that follows what there is, and that later work does not follow."""
    if checked is None or checked.order is None:
        return checked
    made = Stream()
    made.wait(checked.order)
    made.submission = checked.order.submission
    return checked._replace(order=made)


def launches(graph: Graph) -> Iterator[Launch]:
    """The launches of kernels by the nodes of a graph and of its nested graphs."""
    return (node.task for node in graph.all_nodes() if isinstance(node.task, Launch))


def context_of(graph: Graph, current: Context) -> Context:
    """The context of a graph: that of its kernels, the current one if it has none."""
    return next((each.context for each in launches(graph)), current)


def must_be_for_device(nodes: Collection[Node], context: Context) -> None:
    """DriverError for nodes of a graph that cannot be launched from the device (driver API, `cuGraphInstantiateWithParams`)."""
    if all(node.type not in WORKING for node in nodes):
        raise DriverError(Result.INVALID_VALUE, "a graph for launches from the device has a kernel, a copy or a fill")
    for node in nodes:
        if node.type not in (*WORKING, CHILD):
            raise UnsupportedNodeError(f"a graph for launches from the device has no nodes of type {node.type}", node)
        if isinstance(node.task, Launch) and node.task.context is not context:
            raise UnsupportedNodeError(
                "the kernels of a graph for launches from the device have one context", node, several=True
            )


__all__ = ["DeviceGraphs", "UnsupportedNodeError"]
