"""Pageable memory: ordinary memory of the host that clients pass to kernels by its address.

No call of the driver announces such memory.  So the arguments of a launch are searched for addresses, and so is the beginning
of each piece of such memory: it may be a table of pointers.  While the launch runs, kernels may access the memory there: the
bytes that the client has described, or else the mapping of the process around the address, without other allocations.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ptxvm.machine.allocation import Allocation
from ptxvm.machine.backing import bytes_at
from ptxvm.machine.device import device
from ptxvm.machine.memory import Memory
from ptxvm.named_tuple import NamedTuple

LOWEST, HIGHEST = 1 << 16, 1 << 47  # user space; smaller words are counts and strides
MOST_DESCRIBED = 1 << 14
MOST_POINTERS = 1 << 10
"""Words that are searched at the beginning of memory."""
REGION = np.uint64(40)
"""The lower bits of addresses that differ within a region of memory."""
MAPS = Path("/proc/self/maps")


class Mapping(NamedTuple):
    """A range of addresses of this process."""

    start: int
    end: int
    writable: bool


NOTHING = nullcontext()  # to be done for a launch


class HostMemory:
    """The memory of the host as launches on a device see it."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._launches = 0  # launches launches under way with open mappings
        self._usual: tuple[object, int] = ((), -1)  # arguments without such memory, and the number of frees at that time

    def reaches(self, address: int, size: int, *, writing: bool = False) -> bool:
        """Are some bytes pageable memory, in one mapping of the process, which may be written if that is asked for?"""
        known = not self._unknown([address.to_bytes(8, "little")])
        return not known and any(
            each.start <= address and address + size <= each.end and writing <= each.writable for each in mappings()
        )

    def accessible(self, arguments: Sequence[bytes]) -> AbstractContextManager[None]:
        """Let kernels use the memory of the host that arguments point to."""
        now = (arguments, self.memory.table.removed)
        if self._usual == now:
            return NOTHING
        if unknown := self._unknown(arguments):
            return self._accessible_at(unknown)
        self._usual = now
        return NOTHING

    @contextmanager
    def _accessible_at(self, unknown: Sequence[int]) -> Iterator[None]:
        """Let kernels use the memory of the host at some addresses."""
        described = {DESCRIBED[address] for address in unknown if address in DESCRIBED}
        rest = [address for address in unknown if address not in DESCRIBED]
        known = mappings() if rest else ()
        extents = [*described, *((address, rest_of(address, known)) for address in rest)]
        rest += self._unknown(pointers_in(extents))
        adopted = [self._adopt(start, size) for start, size in described]
        mapped = self._open(rest, known)
        try:
            yield
        finally:
            for allocation in adopted:
                self.memory.release(allocation)
            if mapped:
                self._close()

    def _adopt(self, start: int, size: int) -> Allocation:
        return self.memory.adopt(bytes_at(start, size), "memory of the host").allocation

    def _unknown(self, arguments: Iterable[bytes]) -> list[int]:
        """The words of arguments that may be addresses of pageable memory: in no allocation, nor in one whose memory rests.

        Memory that another launch uses is some: it goes when the last launch that uses it has ended.
        """
        words = {word for each in arguments if len(each) >= 8 for (word,) in struct.iter_unpack("<Q", each[: len(each) & -8])}
        table = self.memory.table
        found = [word for word in words if LOWEST <= word < HIGHEST and _of_host(word, table.find(word))]
        found = [word for word in found if table.elsewhere(word) is None]
        owners = ((word, table.freed(word, 1)) for word in found)
        return [word for word, gone in owners if gone is None or not gone.rests]

    def _open(self, addresses: Sequence[int], known: Sequence[Mapping]) -> bool:
        """Open the mappings of addresses; returns whether there are any."""
        if not addresses:
            return False
        found = {each for each in known or mappings() for address in addresses if each.start <= address < each.end}
        with self.memory.lock:
            self._launches += bool(found)
            for each in found:
                self.memory.open(each.start, each.end, "memory of the host", writable=each.writable)
        return bool(found)

    def _close(self) -> None:
        """Close the mappings when the last launch that uses some has ended."""
        with self.memory.lock:
            self._launches -= 1
            if not self._launches:
                self.memory.close()


def _of_host(address: int, holder: Allocation | None) -> bool:
    """Has the host the memory at an address, if some allocation holds it: a launch's?"""
    return holder is None or holder.yields or DESCRIBED.get(address) == (holder.start, holder.size)


def rest_of(address: int, known: Sequence[Mapping]) -> int:
    """The bytes from an address to the end of its mapping, 0 where there is none."""
    return next((each.end - address for each in known if each.start <= address < each.end), 0)


def pointers_in(extents: Iterable[tuple[int, int]]) -> list[bytes]:
    """The words that may be addresses, of those with which memory begins: the first byte of each, and its bytes."""
    found = list[bytes]()
    for start, size in extents:
        words = bytes_at(start, min(size & -8, 8 * MOST_POINTERS) if start % 8 == 0 else 0).view(np.uint64)
        found += [word.tobytes() for word in words[np.isin(words >> REGION, regions_of_memory())]]
    return found


def mappings() -> Sequence[Mapping]:
    """The ranges of this process that may be read, those that may be written apart from the others.

    Linux has several mappings where memory is one to its user: a heap that grew after a fork, pages with advice.
    """
    found: list[Mapping] = []
    for line in MAPS.read_text(encoding="utf-8", errors="replace").splitlines() if MAPS.exists() else ():
        extent, permissions, *_ = line.split(maxsplit=2)
        if not permissions.startswith("r"):
            continue
        start, end = (int(each, 16) for each in extent.split("-"))
        writable = permissions[1] == "w"
        if found and found[-1].end == start and found[-1].writable == writable:
            start = found.pop().start
        found.append(Mapping(start, end, writable))
    return found


@cache
def regions_of_memory() -> npt.NDArray[np.uint64]:
    """The upper bits of addresses of this process: those of its heap, and those of its large allocations."""
    program = ctypes.CDLL(None)
    program.sbrk.restype = ctypes.c_void_p
    large = mmap.mmap(-1, mmap.PAGESIZE)
    heap = program.sbrk(0) or 0
    mapped = ctypes.addressof(ctypes.c_char.from_buffer(large))
    upper = np.array([heap, mapped], np.uint64) >> REGION
    return np.append(upper, (upper[1] - np.uint64(1), upper[1] + np.uint64(1)))  # it may span more than one


@cache
def host_memory(number: int = 0) -> HostMemory:
    """The memory of the host of this process, for launches on a device."""
    return HostMemory(device(number).memory)


DESCRIBED: dict[int, tuple[int, int]] = {}
"""The allocations that clients have described, by an address: the first byte, and how many there are."""


def describe(address: int, start: int, size: int) -> None:
    """Record an allocation of a client: `size` bytes from `start` on."""
    if len(DESCRIBED) >= MOST_DESCRIBED:
        DESCRIBED.clear()
    DESCRIBED[address] = (start, size)


__all__ = ["HostMemory", "describe", "host_memory"]
