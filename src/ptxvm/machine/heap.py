"""The heap of the device, which `malloc` and `free` of a kernel use.

CUDA C++ Programming Guide, Dynamic Global Memory Allocation and Operations.
"""

from __future__ import annotations

from collections import deque
from weakref import ref

from ptxvm.algebra.state_space import Space
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.faults import AccessFault, plural
from ptxvm.machine.layout import align
from ptxvm.machine.memory import Memory
from ptxvm.named_tuple import NamedTuple

DEFAULT_SIZE = 8 << 20
ALIGNMENT = 16
HEADER = 16  # between two blocks, so that an access just past the end of one is not in the next


class HeapState(NamedTuple):
    """The free ranges of a heap, the blocks that rest, those that are in use, and those that were freed."""

    free: list[tuple[int, int]]
    resting: deque[Allocation]
    blocks: dict[int, Allocation]
    gone: dict[int, Allocation]


class Heap:
    """Blocks of a fixed range of device memory; they live across launches, until they are freed.

    A freed block is reused as late as possible, so that a use after free is found.
    """

    def __init__(self, memory: Memory, size: int = DEFAULT_SIZE) -> None:
        self.memory, self.size = memory, size
        self._arena = memory.allocate(size, 256, name="the device heap")
        memory.table.remove(self._arena, remember=False)  # its blocks are in the table instead
        self._free, self._resting, self._blocks, self._gone = self.empty  # the free ranges are sorted by address

    @property
    def empty(self) -> HeapState:
        """The state without any blocks."""
        return HeapState([(self._arena.start, self.size)], deque(), {}, {})

    @property
    def state(self) -> HeapState:
        """The blocks, to be put back."""
        return HeapState(list(self._free), self._resting.copy(), dict(self._blocks), dict(self._gone))

    @state.setter
    def state(self, state: HeapState) -> None:
        self._free, self._resting, self._blocks, self._gone = state

    def malloc(self, size: int) -> int:
        """The address of a new block, 16-byte aligned; 0 where no block fits, or for a size of 0."""
        if not 0 < size <= self.size:
            return 0
        wanted = align(size, ALIGNMENT) + HEADER
        start = self._take(wanted)
        while start is None and self._resting:
            self._recycle()
            start = self._take(wanted)
        if start is None:
            return 0
        # A block outlives the heap, whose module may be dropped while others still see the memory: it owns the range too.
        block = Allocation(start, size, Space.GLOBAL, "a block of malloc", owners=list(self._arena.owners), guard=HEADER)
        block.heap = ref(self)
        self.memory.table.insert(block)
        self._blocks[start] = block
        self._gone.pop(start, None)
        return start

    def free(self, address: int, lane_index: int = 0) -> None:
        """Free a block; a null pointer has no effect."""
        if not address:
            return
        block = self._blocks.pop(address, None)
        if block is None:
            gone = self._gone.get(address)
            if gone is not None:
                message = f"free({address:#x}): that block of {plural(gone.size)} has been freed before"
                raise AccessFault("double-free", message, address, 0, lane_index)
            raise AccessFault("invalid-free", f"free({address:#x}): malloc gave no such address", address, 0, lane_index)
        self.memory.release(block)
        self._gone[address] = block
        self._resting.append(block)

    def _take(self, wanted: int) -> int | None:
        """The first free range that is large enough, shortened."""
        for index, (start, size) in enumerate(self._free):
            if size >= wanted:
                self._free[index : index + 1] = [(start + wanted, size - wanted)] if size > wanted else []
                return start
        return None

    def _recycle(self) -> None:
        """Return half of the freed blocks, the oldest, to the free ranges, and join adjacent ranges."""
        ranges = self._free
        for _ in range(-(-len(self._resting) // 2)):
            block = self._resting.popleft()
            ranges.append((block.start, align(block.size, ALIGNMENT) + HEADER))
        ranges.sort()
        joined = ranges[:1]
        for start, size in ranges[1:]:
            before, length = joined[-1]
            if before + length == start:
                joined[-1] = before, length + size
            else:
                joined.append((start, size))
        self._free = joined
