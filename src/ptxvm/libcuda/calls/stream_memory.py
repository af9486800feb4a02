"""Tasks of streams that write a word of memory, or wait for its value (CUDA driver API, "Stream Memory Operations")."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from functools import partial

from ptxvm.driver.context import Context
from ptxvm.driver.graph import Empty, Task
from ptxvm.driver.launch import Call
from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.c_values import put_i32, put_u64, u32, u64
from ptxvm.libcuda.session import function, session
from ptxvm.libcuda.structures import MemoryOperation

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
    session().driver.blocks.check(address, bits // 8)
    return Call(partial(put_i32 if bits == 32 else put_u64, address, value))


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

    return Call(work, is_short=False)


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
    size = ctypes.sizeof(MemoryOperation)
    described = [MemoryOperation.from_address(operations + n * size) for n in range(count)]
    for task in [task_of(found.context, each) for each in described]:
        found.put(task, MEMORY_NODE)


def task_of(context: Context, d: MemoryOperation) -> Task:
    """The task that a structure describes."""
    if d.operation in (FLUSH, BARRIER):
        return Empty()  # the work of a stream is in order, and visible to all
    if d.operation in (WRITE_32, WRITE_64):
        return write(d.address, d.value, 32 if d.operation == WRITE_32 else 64)
    if d.operation in (WAIT_32, WAIT_64):
        return wait(context, d.address, d.value, d.flags, 32 if d.operation == WAIT_32 else 64)
    raise DriverError(Result.INVALID_VALUE, f"there is no operation {d.operation} on memory")
