"""Tasks of streams that write a word of memory, or wait for its value (CUDA driver API, "Stream Memory Operations")."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from functools import partial

from ptxvm.driver.context import Context
from ptxvm.driver.graph import Empty, InOrder, Node, Task
from ptxvm.driver.launch import FunctionTask
from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.c_values import bytes_from, put_i32, put_u64, structure_at, u32, u64
from ptxvm.libcuda.calls.context import of
from ptxvm.libcuda.calls.graph import add
from ptxvm.libcuda.calls.graph_changes import executable_node
from ptxvm.libcuda.session import function, session
from ptxvm.libcuda.structures import BatchNode, MemoryOperation
from ptxvm.machine.unwritten import written

MEMORY_NODE = 12  # CU_GRAPH_NODE_TYPE_BATCH_MEM_OP
WAIT_32, WRITE_32, FLUSH, WAIT_64, WRITE_64, BARRIER = range(1, 7)  # CUstreamBatchMemOpType
CONDITIONS: tuple[Callable[[int, int, int], bool], ...] = (
    lambda word, value, mask: (word - value & mask) <= mask >> 1,  # at least: the distance has a sign, so a counter may wrap
    lambda word, value, mask: word == value,  # noqa: ARG005 - as the others
    lambda word, value, mask: bool(word & value),  # noqa: ARG005
    lambda word, value, mask: bool(~(word | value) & mask),
)
"""The conditions of waits, by CUstreamWaitValue_flags: of a word, a value, and a word of ones."""
POLL = 20e-6  # seconds between two reads of a word


def write(address: int, value: int, bits: int) -> Task:
    """The task that writes a word; DriverError where it is out of bounds."""
    session().driver.blocks.check(address, bits // 8, writing=True)
    return FunctionTask(partial(put, address, value, bits))


def put(address: int, value: int, bits: int) -> None:
    """Write a word to memory of a device."""
    written(address)
    (put_i32 if bits == 32 else put_u64)(address, value)


def wait(context: Context, address: int, value: int, flags: int, bits: int) -> Task:
    """The task that waits until a word has a value."""
    session().driver.blocks.check(address, bits // 8)
    mask, read = (1 << bits) - 1, u32 if bits == 32 else u64

    def holds() -> bool:
        word = read(address)
        return CONDITIONS[flags & 3](word, value & mask, mask)

    def work() -> None:
        while not holds() and context.failure is Result.SUCCESS:
            time.sleep(POLL)

    return FunctionTask(work, is_short=False)


def enter(bits: int) -> None:
    """Enter the functions for words of 32 or 64 bits."""

    def write_value(stream: int, address: int, value: int, flags: int) -> None:
        session().stream(stream).put(write(address, value, bits), MEMORY_NODE)

    def wait_value(stream: int, address: int, value: int, flags: int) -> None:
        found = session().stream(stream)
        found.put(wait(found.context, address, value, flags, bits), MEMORY_NODE)

    function(f"cuStreamWriteValue{bits}", f"cuStreamWriteValue{bits}_v2")(write_value)
    function(f"cuStreamWaitValue{bits}", f"cuStreamWaitValue{bits}_v2")(wait_value)


for each in (32, 64):
    enter(each)


@function("cuStreamBatchMemOp", "cuStreamBatchMemOp_v2")
def batch(stream: int, count: int, operations: int, flags: int) -> None:
    """Several operations, in order."""
    found = session().stream(stream)
    found.put(Batch(found.context, operations_at(operations, count)), MEMORY_NODE)


class Batch(InOrder):
    """Several operations as one task; DriverError for an operation that does not exist."""

    def __init__(self, context: Context, operations: Sequence[MemoryOperation]) -> None:
        super().__init__([task_of(context, each) for each in operations])
        self.context, self.operations = context, operations


def operations_at(address: int, count: int) -> list[MemoryOperation]:
    """Copies of the structures that a client lists."""
    size = ctypes.sizeof(MemoryOperation)
    return [MemoryOperation.from_buffer_copy(bytes_from(address + n * size, size)) for n in range(count)]


# ── as nodes of graphs ──────────────────────────────────────────────────────────────────


def batch_task(description: int) -> Batch:
    """The operations that a structure describes."""
    d = structure_at(BatchNode, description)
    return Batch(of(d.context), operations_at(d.operations, d.count))


def describe(task: Batch, out: int) -> None:
    """Fill the structure of some operations."""
    size, count = ctypes.sizeof(MemoryOperation), len(task.operations)
    kept = session().keep(task, ctypes.create_string_buffer(b"".join(map(bytes, task.operations)), max(size * count, 1)))
    d = structure_at(BatchNode, out, writing=True)
    d.context, d.count, d.operations, d.flags = session().handles.handle(task.context), count, ctypes.addressof(kept), 0


@function("cuGraphAddBatchMemOpNode")
def add_batch(out: int, handle: int, after: int, count: int, description: int) -> None:
    """Operations as a node."""
    add(out, handle, after, count, batch_task(description), MEMORY_NODE)


def batch_of(task: Task) -> Batch:
    """What a node of operations does; DriverError for another node."""
    if not isinstance(task, Batch):
        raise DriverError(Result.INVALID_VALUE, "the node is not one of operations on memory")
    return task


@function("cuGraphBatchMemOpNodeGetParams")
def node_operations(handle: int, out: int) -> None:
    """The operations of a node."""
    describe(batch_of(session().handles.object(handle, Node).task), out)


@function("cuGraphBatchMemOpNodeSetParams")
def set_node_operations(handle: int, description: int) -> None:
    """Change the operations of a node."""
    node = session().handles.object(handle, Node)
    batch_of(node.task)
    node.task = batch_task(description)


@function("cuGraphExecBatchMemOpNodeSetParams")
def set_executable_operations(handle: int, which: int, description: int) -> None:
    """Change the operations of a node of an executable graph."""
    node = executable_node(handle, which)
    batch_of(node.task)
    node.task = batch_task(description)


def task_of(context: Context, d: MemoryOperation) -> Task:
    """The task that a structure describes."""
    if d.operation in (FLUSH, BARRIER):
        return Empty()  # the work of a stream is in order, and visible to all
    if d.operation in (WRITE_32, WRITE_64):
        return write(d.address, d.value, 32 if d.operation == WRITE_32 else 64)
    if d.operation in (WAIT_32, WAIT_64):
        return wait(context, d.address, d.value, d.flags, 32 if d.operation == WAIT_32 else 64)
    raise DriverError(Result.INVALID_VALUE, f"there is no operation {d.operation} on memory")
