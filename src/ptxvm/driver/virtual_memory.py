"""Virtual memory: ranges of addresses, and memory that is mapped there (CUDA driver API, "Virtual Memory Management").

Kernels cannot access a range until memory is mapped and `set_access` allows it.  Adjacent mapped pieces are one allocation
to kernels, as on hardware.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from dataclasses import dataclass, field

from ptxvm.driver.memory import AllocationKind, MemoryBlock, MemoryBlocks
from ptxvm.driver.results import DriverError, Result
from ptxvm.driver.shared_memory import NO_ACCESS, RESERVING, File, ReservedAddresses, map_fixed
from ptxvm.machine.backing import bytes_at

GRANULARITY = 2 << 20  # of memory and addresses
NONE, READ, READ_WRITE = 0, 1, 3  # CUmemAccess_flags
PROTECTION = {NONE: NO_ACCESS, READ: mmap.PROT_READ, READ_WRITE: mmap.PROT_READ | mmap.PROT_WRITE}


@dataclass(eq=False)
class Physical:
    """Memory without an address, with the properties that a client asked for (CUmemAllocationProp)."""

    file: File
    properties: bytes
    users: int = 1
    device: int = 0

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self.file.size


@dataclass
class MappedPiece:
    """A mapped piece of memory."""

    start: int
    memory: Physical
    access: dict[int, int] = field(default_factory=dict)  # of devices, by number

    @property
    def end(self) -> int:
        """The address behind the last byte."""
        return self.start + self.memory.size

    @property
    def most(self) -> int:
        """The access of the device that may do most."""
        return max(self.access.values(), default=NONE)


@dataclass(eq=False)
class AddressRange:
    """Reserved addresses, the pieces that are mapped there, and the blocks of adjacent pieces."""

    start: int
    size: int
    owner: ReservedAddresses
    pieces: dict[int, MappedPiece] = field(default_factory=dict)
    blocks: list[MemoryBlock] = field(default_factory=list)


class VirtualMemory:
    """The ranges of a process; `blocks` is its memory."""

    def __init__(self, blocks: MemoryBlocks) -> None:
        self.blocks = blocks
        self.ranges: dict[int, AddressRange] = {}

    def reserve(self, size: int, alignment: int, preferred: int = 0) -> int:
        """Reserve addresses, the preferred ones if they are free; DriverError for a size that is no multiple of 2 MiB."""
        if not size or size % GRANULARITY or alignment & (alignment - 1):
            raise DriverError(Result.INVALID_VALUE, f"{size} bytes at a multiple of {alignment} cannot be reserved")
        owner = ReservedAddresses(size, max(alignment, GRANULARITY), preferred)
        self.ranges[owner.start] = AddressRange(owner.start, size, owner)
        return owner.start

    def give_back(self, start: int, size: int) -> None:
        """Release a range; DriverError where memory is mapped there."""
        found = self.ranges.get(start)
        if found is None or found.size != size or found.pieces:
            raise DriverError(Result.INVALID_VALUE, f"{start:#x} is no range of {size} bytes without memory")
        del self.ranges[start]

    def range_of(self, start: int, size: int) -> AddressRange:
        """The range around some addresses; DriverError where there is none."""
        for each in self.ranges.values():
            if each.start <= start and start + size <= each.start + each.size:
                return each
        raise DriverError(Result.INVALID_VALUE, f"{size} bytes from {start:#x} are not reserved")

    def map(self, start: int, size: int, memory: Physical) -> None:
        """Map all of some memory, without access; DriverError where the addresses are in use."""
        found = self.range_of(start, size)
        if size != memory.size or start % GRANULARITY:
            raise DriverError(Result.INVALID_VALUE, f"memory of {memory.size} bytes is mapped as a whole")
        if any(each.start < start + size and start < each.end for each in found.pieces.values()):
            raise DriverError(Result.INVALID_VALUE, "there is memory already")
        found.pieces[start] = MappedPiece(start, memory)

    def pieces_of(self, start: int, size: int) -> tuple[AddressRange, list[MappedPiece]]:
        """The pieces at some addresses; DriverError where they are not whole pieces."""
        found = self.range_of(start, size)
        pieces = sorted((each for each in found.pieces.values() if start <= each.start < start + size), key=lambda p: p.start)
        if sum(each.memory.size for each in pieces) != size:
            raise DriverError(Result.INVALID_VALUE, f"{size} bytes from {start:#x} are not what was mapped")
        return found, pieces

    def set_access(self, start: int, size: int, accesses: Mapping[int, int]) -> None:
        """Set the access of some devices to mapped memory, by number; that of others stays.

        Where one may write, all may that have access.
        """
        if wrong := [each for each in accesses.values() if each not in PROTECTION]:
            raise DriverError(Result.INVALID_VALUE, f"there is no access {wrong[0]}")
        found, pieces = self.pieces_of(start, size)
        for each in pieces:
            each.access = {device: access for device, access in {**each.access, **accesses}.items() if access != NONE}
            each.memory.file.map_at(each.start, each.memory.size, 0, PROTECTION[each.most])
        self.enter(found)

    def piece_at(self, address: int) -> MappedPiece:
        """The piece around an address; DriverError where there is none."""
        for each in self.range_of(address, 1).pieces.values():
            if each.start <= address < each.end:
                return each
        raise DriverError(Result.INVALID_VALUE, f"no memory is mapped at {address:#x}")

    def unmap(self, start: int, size: int) -> None:
        """Unmap memory; its addresses stay reserved."""
        found, pieces = self.pieces_of(start, size)
        for each in pieces:
            del found.pieces[each.start]
        self.enter(found)
        map_fixed(start, size, NO_ACCESS, RESERVING, -1, 0)

    def enter(self, range: AddressRange) -> None:
        """Update the blocks: adjacent pieces with the same access are one block."""
        for block in range.blocks:
            self.blocks.free(block.address)
        range.blocks.clear()
        runs: list[list[MappedPiece]] = []
        for piece in sorted(range.pieces.values(), key=lambda piece: piece.start):
            if not piece.access:
                continue
            if runs and runs[-1][-1].end == piece.start and runs[-1][-1].access == piece.access:
                runs[-1].append(piece)
            else:
                runs.append([piece])
        for run in runs:
            size = run[-1].end - run[0].start
            data = bytes_at(run[0].start, size, run[0].most == READ_WRITE)
            first, *others = run[0].access
            allocation = self.blocks.memory(first).adopt(data, f"mapped memory of {size} bytes").allocation
            for device in others:
                self.blocks.memory(device).table.grant(allocation)
            made = MemoryBlock(allocation, AllocationKind.DEVICE, self.blocks.number(), size, device=run[0].memory.device)
            range.blocks.append(self.blocks.enter(made))


__all__ = ["GRANULARITY", "NONE", "Physical", "VirtualMemory"]
