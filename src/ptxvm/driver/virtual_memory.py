"""Virtual memory: ranges of addresses, and memory that is mapped there (CUDA driver API, "Virtual Memory Management").

Kernels cannot access a range until memory is mapped and `set_access` allows it.  Adjacent mapped pieces are one allocation
to kernels, as on hardware.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from ptxvm.dataclass import dataclass
from ptxvm.driver.memory import NUMBERS, AllocationKind, MemoryBlock, MemoryBlocks
from ptxvm.driver.results import DriverError, Result
from ptxvm.driver.shared_memory import NO_ACCESS, RESERVING, File, ReservedAddresses, map_fixed
from ptxvm.machine.aliases import MAPPED, MappedPart
from ptxvm.machine.backing import bytes_at
from ptxvm.machine.teams import TEAMS, Team
from ptxvm.named_tuple import NamedTuple

GRANULARITY = 2 << 20  # of memory and addresses
ADDRESSES = 1 << 64
NONE, READ, READ_WRITE = 0, 1, 3  # CUmemAccess_flags
PROTECTION = {NONE: NO_ACCESS, READ: mmap.PROT_READ, READ_WRITE: mmap.PROT_READ | mmap.PROT_WRITE}


class Extent(NamedTuple):
    """A part of what is mapped: so many bytes at an offset are those of some memory, from a start on."""

    offset: int
    size: int
    memory: Physical
    start: int = 0

    def follows(self, offset: int, memory: Physical, start: int) -> bool:
        """Does it end where a part at an offset begins, and so does its memory?"""
        return (self.offset + self.size, self.memory, self.start + self.size) == (offset, memory, start)


@dataclass(eq=False, kw_only=True)
class Mappable:
    """What can be mapped at addresses, and how many users have its handle."""

    users: int = 1

    @property
    def size(self) -> int:
        """The number of bytes."""
        raise NotImplementedError

    def extents(self) -> list[Extent]:
        """The parts that have memory."""
        raise NotImplementedError

    @property
    def replicas(self) -> Sequence[Mappable]:
        """What multimem instructions reach, too, by the addresses at which it is mapped."""
        return ()


@dataclass(eq=False, kw_only=True)
class Physical(Mappable):
    """Memory without an address, with the properties that a client asked for (CUmemAllocationProp)."""

    file: File
    properties: bytes
    device: int = 0

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self.file.size

    def extents(self) -> list[Extent]:
        """All of it."""
        return [Extent(0, self.size, self)]


@dataclass
class MappedPiece:
    """Memory, or an object that memory is bound to, mapped at an address."""

    start: int
    memory: Mappable
    access: dict[int, int] = field(default_factory=dict)  # of devices, by number
    replicas: list[int] = field(default_factory=list)  # where those of the memory are mapped

    @property
    def end(self) -> int:
        """The address behind the last byte."""
        return self.start + self.memory.size

    @property
    def most(self) -> int:
        """The access of the device that may do most."""
        return max(self.access.values(), default=NONE)

    def map(self) -> None:
        """Map what has memory, with the access that there is."""
        for each in self.memory.extents():
            each.memory.file.map_at(self.start + each.offset, each.size, each.start, PROTECTION[self.most])


class Segment(NamedTuple):
    """A part of a mapped piece that has memory of a device, from one address to another."""

    start: int
    end: int
    access: Mapping[int, int]
    most: int
    device: int


@dataclass(eq=False)
class AddressRange:
    """Reserved addresses, the pieces that are mapped there, and the blocks of adjacent pieces that begin here."""

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
        MAPPED.follow(self.mapped_parts)

    def mapped_parts(self) -> Iterator[MappedPart]:
        """What is mapped, where some device may access it."""
        for piece in (each for range in self.ranges.values() for each in range.pieces.values() if each.access):
            for each in piece.memory.extents():
                yield MappedPart(piece.start + each.offset, each.size, each.memory.file.identity, each.start)

    def reserve(self, size: int, alignment: int, preferred: int = 0) -> int:
        """Reserve addresses, the preferred ones if they are free; DriverError for a size that is no multiple of 2 MiB."""
        if not size or size % GRANULARITY or alignment & (alignment - 1):
            raise DriverError(Result.INVALID_VALUE, f"{size} bytes at a multiple of {alignment} cannot be reserved")
        owner = ReservedAddresses(size, max(alignment, GRANULARITY), preferred)
        self.ranges[owner.start] = AddressRange(owner.start, size, owner)
        self.blocks.reserved[owner.start] = owner.start + size
        return owner.start

    def give_back(self, start: int, size: int) -> None:
        """Release a range; DriverError where memory is mapped there."""
        found = self.ranges.get(start)
        if found is None or found.size != size or found.pieces:
            raise DriverError(Result.INVALID_VALUE, f"{start:#x} is no range of {size} bytes without memory")
        del self.ranges[start], self.blocks.reserved[start]

    def is_reserved(self, address: int) -> bool:
        """Is an address in a range?"""
        return self._range(address, 1) is not None

    def _range(self, start: int, size: int) -> AddressRange | None:
        for each in self.ranges.values():
            if each.start <= start and start + size <= each.start + each.size:
                return each
        return None

    def range_of(self, start: int, size: int) -> AddressRange:
        """The range around some addresses; DriverError where there is none."""
        if (found := self._range(start, size)) is not None:
            return found
        raise DriverError(Result.INVALID_VALUE, f"{size} bytes from {start:#x} are not reserved")

    def map(self, start: int, size: int, memory: Mappable) -> None:
        """Map all of some memory, without access; DriverError where the addresses are in use."""
        found = self.range_of(start, size)
        if size != memory.size or start % GRANULARITY:
            raise DriverError(Result.INVALID_VALUE, f"memory of {memory.size} bytes is mapped as a whole")
        if any(each.start < start + size and start < each.end for each in found.pieces.values()):
            raise DriverError(Result.INVALID_VALUE, "there is memory already")
        found.pieces[start] = made = MappedPiece(start, memory)
        for each in memory.replicas:
            apart = self.reserve(size + 2 * GRANULARITY, GRANULARITY) + GRANULARITY  # it adjoins no other memory
            self.map(apart, size, each)
            made.replicas.append(apart)
        if made.replicas:
            TEAMS.enter(Team(start, made.end, tuple((each - start) % ADDRESSES for each in made.replicas)))

    def pieces_of(self, start: int, size: int) -> list[tuple[AddressRange, MappedPiece]]:
        """The pieces at some addresses, in ranges that may be adjacent; DriverError where they are not whole pieces."""
        found = [
            (range, each)
            for range in self.ranges.values()
            for each in range.pieces.values() if start <= each.start and each.end <= start + size
        ]  # fmt: skip
        if not size or sum(each.memory.size for _, each in found) != size:
            raise DriverError(Result.INVALID_VALUE, f"{size} bytes from {start:#x} are not what was mapped")
        return found

    def set_access(self, start: int, size: int, accesses: Mapping[int, int]) -> None:
        """Set the access of some devices to mapped memory, by number; that of others stays.

        Where one may write, all may that have access.
        """
        if wrong := [each for each in accesses.values() if each not in PROTECTION]:
            raise DriverError(Result.INVALID_VALUE, f"there is no access {wrong[0]}")
        found = self.pieces_of(start, size)
        for _, each in found:
            each.access = {device: access for device, access in {**each.access, **accesses}.items() if access != NONE}
            each.map()
            for replica in each.replicas:
                self.set_access(replica, each.memory.size, accesses)
        self.enter(found[0][0])

    def changed(self, memory: Mappable) -> None:
        """Map an object anew, wherever it is mapped: other memory is bound to it now."""
        for range in self.ranges.values():
            pieces = [each for each in range.pieces.values() if each.memory is memory]
            for each in pieces:
                map_fixed(each.start, each.memory.size, NO_ACCESS, RESERVING, -1, 0)
                each.map()
            if pieces:
                self.enter(range)
        for replica in memory.replicas:
            self.changed(replica)

    def piece_at(self, address: int) -> MappedPiece:
        """The piece around an address; DriverError where there is none."""
        for each in self.range_of(address, 1).pieces.values():
            if each.start <= address < each.end:
                return each
        raise DriverError(Result.INVALID_VALUE, f"no memory is mapped at {address:#x}")

    def unmap(self, start: int, size: int) -> None:
        """Unmap memory; its addresses stay reserved."""
        found = self.pieces_of(start, size)
        TEAMS.remove(start, start + size)
        for range, each in found:
            del range.pieces[each.start]
            for replica in each.replicas:
                self.unmap(replica, each.memory.size)
                self.give_back(replica - GRANULARITY, each.memory.size + 2 * GRANULARITY)
        self.enter(found[0][0])
        map_fixed(start, size, NO_ACCESS, RESERVING, -1, 0)

    def enter(self, range: AddressRange) -> None:
        """Update the blocks of a range and of those that adjoin it: adjacent memory with the same access is one block."""
        MAPPED.changed()
        ranges = self._adjoining(range)
        for each in ranges:
            for block in each.blocks:
                self.blocks.free(block.address)
            each.blocks.clear()
        runs: list[list[Segment]] = []
        for segment in sorted(segment for each in ranges for segment in segments(each)):
            if runs and runs[-1][-1].end == segment.start and runs[-1][-1].access == segment.access:
                runs[-1].append(segment)
            else:
                runs.append([segment])
        for run in runs:
            size = run[-1].end - run[0].start
            data = bytes_at(run[0].start, size, run[0].most == READ_WRITE)
            first, *others = run[0].access
            allocation = self.blocks.memory(first).adopt(data, "mapped memory", fate="is no longer mapped").allocation
            for device in others:
                self.blocks.memory(device).table.grant(allocation)
            made = MemoryBlock(allocation, AllocationKind.DEVICE, next(NUMBERS), size, device=run[0].device)
            self.range_of(run[0].start, 1).blocks.append(self.blocks.enter(made))

    def _adjoining(self, range: AddressRange) -> list[AddressRange]:
        """A range and those before and behind it without a gap, in order."""
        found: list[AddressRange] = []
        for each in sorted(self.ranges.values(), key=lambda each: each.start):
            if found and found[-1].start + found[-1].size != each.start:
                if range in found:
                    break
                found.clear()
            found.append(each)
        return found


def segments(range: AddressRange) -> list[Segment]:
    """The parts of a range that have memory, and that a device may access."""
    return [
        Segment(piece.start + each.offset, piece.start + each.offset + each.size, piece.access, piece.most, each.memory.device)
        for piece in range.pieces.values() if piece.access
        for each in piece.memory.extents()
    ]  # fmt: skip


__all__ = ["GRANULARITY", "NONE", "Extent", "Mappable", "Physical", "VirtualMemory"]
