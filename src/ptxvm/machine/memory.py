"""The address space: what is allocated, and the loads, stores and atomics of many lanes at once.

A generic address is a host address, so a host array is device memory as it is.  Every access is checked: the bytes must
lie in one live allocation that the state space of the instruction reaches, at a multiple of the access size (PTX
6.4.1).  The fast case, all lanes in one allocation, costs two passes over the addresses beside the gather itself.
"""

from __future__ import annotations

import functools
from _thread import RLock  # the import of `threading` takes longer than the start of a cached kernel
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.diagnostics.errors import Fault
from ptxvm.machine import backing
from ptxvm.machine.allocation import FREED, NOWHERE, NULL_LIMIT, REACHES, Allocation, AllocationTable, in_pieces
from ptxvm.machine.backing import address_of, bytes_at, world
from ptxvm.machine.per_lane import Addresses, Array, LaneNumbers, Lanes, PerLane
from ptxvm.named_tuple import NamedTuple

if TYPE_CHECKING:
    from ptxvm.machine import atomics

Address: TypeAlias = "Addresses | np.uint64"

SHIFTS = {1 << n: np.uint64(n) for n in range(8)}  # from the size of an access to that of an index
WINDOWS = frozenset({Space.CONST, Space.SHARED, Space.LOCAL})  # all other memory is .global (PTX 6.4.1.1)
ADOPTED = "was an argument of a launch that has ended"
GUARD = 256  # unused bytes on both sides of our own allocations


class Adopted(NamedTuple):
    """A host array for a kernel: the address of its first element, and the allocation that contains it."""

    address: int
    allocation: Allocation


def room_for(size: int, alignment: int) -> int:
    """The bytes that an allocation takes, with its guards."""
    return size + alignment + 2 * GUARD


class Memory:
    """The memory of one device.

    Addresses are `np.uint64` arrays, one for each lane that takes part, or one `np.uint64` for all of them; what is
    loaded has the same shape.  `lanes` are the numbers of those lanes in their cohort (None: all of them, in order);
    only memory that is cut in windows asks for it.

    `exchange` is None before there is compiled code in this process, which may update words beside the interpreter.
    """

    exchange: ClassVar[atomics.Exchange | None] = None

    def __init__(self, address_bits: int = 64, lock: RLock | None = None) -> None:
        self.address_bits = address_bits
        self.lock = RLock() if lock is None else lock
        """Held while allocations change, or are looked up beside other threads, and while the interpreter writes."""
        self.table = AllocationTable(self.lock)
        self._lent: dict[tuple[int, str, str], list[Allocation]] = {}
        self._backing = backing.anywhere if address_bits == 64 else backing.below_4_gib

    # ── allocations ─────────────────────────────────────────────────────────────────────

    def allocate(
        self,
        size: int,
        alignment: int = 256,
        space: Space = Space.GLOBAL,
        name: str = "",
        *,
        writable: bool = True,
        zero: bool = True,
        detail: str = "",
        owner: Array | None = None,
    ) -> Allocation:
        """New memory, with guards around it, of an `owner` that has `room_for` it; a Fault where the host has no more."""
        try:
            owner = self._backing(room_for(size, alignment), zero=zero) if owner is None else owner
        except (MemoryError, OverflowError, ValueError) as wrong:  # NumPy's words for more than there can be
            raise Fault("out-of-memory", f"{name or 'an allocation'} needs {size} bytes: {wrong}") from None
        start = -(-(address_of(owner) + GUARD) // alignment) * alignment
        allocation = Allocation(start, size, space, name, writable, detail, [owner], guard=GUARD)
        allocation.of_device = space is Space.GLOBAL
        self.table.insert(allocation)
        return allocation

    def adopt(
        self, array: Array, name: str = "", *, space: Space = Space.GLOBAL, detail: str = "", fate: str = ADOPTED
    ) -> Adopted:
        """Let kernels use a host array in place, until it is released; a read-only array stays read-only.

        A 32-bit module works on a copy below 4 GiB, which goes back when the array is released.  Arrays that overlap
        share one allocation.  The array must be contiguous.
        """
        start, writable = address_of(array), bool(array.flags.writeable)
        if not array.size:
            return Adopted(start, Allocation(start, 0, space, name, writable, detail, live=False))
        if self.address_bits < 64:
            return self._adopt_copy(bytes_at(start, array.nbytes, writable), name, space, detail)
        allocation = Allocation(start, array.nbytes, space, name, writable, detail, [array], fate=fate)
        with self.lock:
            for other in self.table.overlapping(start, allocation.end):
                if other.yields:
                    continue
                if other.start <= start and allocation.end <= other.end and (other.writable or not writable):
                    other.uses += 1  # its owners keep these bytes too
                    return Adopted(start, other)
                allocation = self._join(allocation, other)
            if self.table.elsewhere(start) is not None:  # another device's: a view of its memory is no memory of the host
                return Adopted(start, Allocation(start, 0, space, name, writable, detail, live=False))
            self.table.insert(allocation)
        return Adopted(start, allocation)

    def share(self, allocation: Allocation) -> Allocation:
        """Let all devices access memory of the host."""
        with self.lock:
            self.table.remove(allocation, remember=False)
            allocation.of_device, allocation.everywhere = False, True
            for table in self.table.devices or (self.table,):
                table.insert(allocation)
        return allocation

    def release(self, allocation: Allocation) -> None:
        """Give up an allocation or an adopted array; an access there is a use after free from now on."""
        with self.lock:
            while allocation.successor is not None:
                allocation = allocation.successor
            allocation.uses -= 1
            if allocation.uses or not allocation.live:
                return
            if allocation.host is not None and allocation.writable:
                allocation.host[:] = allocation.bytes
            owners, table = tuple(allocation.owners), allocation.table or self.table
            allocation.retire()
            table.remove(allocation)
            if allocation.space is Space.GLOBAL and allocation.fate == FREED:
                table.rest(allocation, owners)

    def open(self, start: int, end: int, name: str, *, writable: bool) -> None:
        """Let kernels use what is in no allocation of a range of the host's memory, until `close`."""
        self.table.open(start, end, name, writable=writable)

    def close(self) -> None:
        """Close all ranges that were opened."""
        with self.lock:
            self.table.close()

    def lend(self, size: int, space: Space, name: str) -> Allocation:
        """Read-only memory for a short time: memory that was taken back, or new memory."""
        try:
            allocation = self._lent[size, space, name].pop()
        except (KeyError, IndexError):
            return self.allocate(size, 256, space, name, writable=False)
        self.show(allocation)
        return allocation

    def take_back(self, allocation: Allocation) -> None:
        """Take lent memory back, for `lend` to reuse."""
        self.hide(allocation)
        self._lent.setdefault((allocation.size, allocation.space, allocation.name), []).append(allocation)

    def hide(self, allocation: Allocation) -> None:
        """Take an allocation out of the table for some time; its memory stays."""
        with self.lock:
            self.table.remove(allocation, remember=not allocation.hidden)
            allocation.hidden = True

    def show(self, allocation: Allocation) -> None:
        """Put a hidden allocation back into the table."""
        with self.lock:
            self.table.insert(allocation)

    def _adopt_copy(self, host: Array, name: str, space: Space, detail: str) -> Adopted:
        first = address_of(host)
        for other in self.table.items:
            offset = first - address_of(other.host) if other.host is not None else other.size
            if not -host.size < offset < other.size:
                continue
            if offset < 0 or offset + host.size > other.size or host.flags.writeable > other.writable:
                raise ValueError(f"{name} overlaps {other}, and a module of .address_size 32 works on copies: pass one array")
            other.uses += 1
            return Adopted(other.start + offset, other)
        copy = self.allocate(host.size, 256, space, name, writable=bool(host.flags.writeable), detail=detail)
        copy.bytes[:] = host
        copy.host, copy.fate = host, ADOPTED
        copy.owners.append(host)
        return Adopted(copy.start, copy)

    def _join(self, allocation: Allocation, other: Allocation) -> Allocation:
        """A new allocation, grown by one that it overlaps, which leaves the table."""
        self.table.remove(other, remember=False)
        start = min(allocation.start, other.start)
        allocation.successor = other.successor = joined = Allocation(
            start,
            max(allocation.end, other.end) - start,
            allocation.space,
            f"{other.name} and {allocation.name}",
            allocation.writable or other.writable,
            allocation.detail,
            allocation.owners + other.owners,
            fate=allocation.fate,
        )
        joined.uses = allocation.uses + other.uses
        return joined

    # ── accesses ────────────────────────────────────────────────────────────────────────

    def load(
        self,
        dtype: np.dtype[np.generic],
        address: Address,
        count: int = 1,
        *,
        space: Space = Space.GENERIC,
        lanes: Lanes = None,
    ) -> PerLane:
        """The values at the addresses; for `count` > 1 an array of `count` such results, the elements of the vectors."""
        view, index = self.resolve(dtype, address, count, space, lanes, writing=False)
        return fetch(view, index, count)

    def store(
        self,
        dtype: np.dtype[np.generic],
        address: Address,
        values: PerLane,
        count: int = 1,
        *,
        space: Space = Space.GENERIC,
        lanes: Lanes = None,
    ) -> None:
        """Write `values`, of `dtype`; where several lanes write to one address, the last value stays."""
        view, index = self.resolve(dtype, address, count, space, lanes, writing=True)
        with self.lock:  # so that no update of another device lies around it, which would undo it
            put(view, index, values, count)

    def atomic(
        self,
        dtype: np.dtype[np.generic],
        address: Address,
        operation: str,
        operands: Sequence[PerLane],
        update: atomics.Update | None = None,
        *,
        space: Space = Space.GENERIC,
        lanes: Lanes = None,
        old: bool = True,
    ) -> PerLane:
        """Update one address after the other, in the order of the lanes; returns the old values if `old`."""
        from ptxvm.machine import atomics  # noqa: PLC0415 - compiled code does its own
        from ptxvm.machine.sole_thread import RUNNING  # noqa: PLC0415 - as above

        view, index = self.resolve(dtype, address, 1, space, lanes, writing=True)
        with self.lock:  # for other launches this is one step (PTX 8.10.3)
            with RUNNING.lock:
                if self.exchange is None or not RUNNING.compiled:
                    return atomics.apply(view, index, operation, operands, update, old=old)
            return atomics.apply_beside(self.exchange, view, index, operation, operands, update)

    def read(self, address: int, size: int, lane: int | None = None) -> bytes:
        """Some bytes, at any alignment, as one lane would read them."""
        whole = self._bytes_from(address, size, lane)
        return whole[:size].tobytes()

    def read_string(self, address: int, lane: int | None = None) -> str:
        """The string at an address, up to its 0; every byte is a character."""
        rest = self._bytes_from(address, 1, lane)
        length = int(np.argmax(rest == 0))
        if rest[length]:
            raise self.table.explain(address + len(rest), 1, Space.GENERIC)
        return rest[:length].tobytes().decode("latin-1")

    def _bytes_from(self, address: int, size: int, lane: int | None) -> Array:
        """The bytes from an address to the end of its allocation or window; at least `size`."""
        allocation = self.table.find(address)
        if allocation is None or allocation.space not in REACHES[Space.GENERIC]:
            raise self.table.explain(address, size, Space.GENERIC)
        end = allocation.end
        if allocation.foreign:
            raise self.table.explain(address, size, Space.GENERIC)
        if allocation.home is not None and lane is not None:
            start = allocation.start + int(allocation.home[lane])
            end = start + allocation.window if address >= start else address
        if address + size > end:
            raise self.table.explain(max(address, end - 1) if address < end else address, 1, Space.GENERIC)
        return bytes_at(address, end - address)

    def resolve(
        self, dtype: np.dtype[np.generic], address: Address, count: int, space: Space, lanes: Lanes, *, writing: bool
    ) -> tuple[Array, PerLane]:
        """Check an access; a view of memory, and the index in it for each address, which has `count` elements of `dtype`."""
        size = dtype.itemsize * count
        if not isinstance(address, np.ndarray) or not address.ndim:
            return self._resolve_one(dtype, int(address), count, space, lanes, writing=writing)
        if not len(address):
            return world(dtype), np.empty((0, count) if count > 1 else 0, INDEX)
        first = address.item(0)
        allocation = self.table.last
        if not allocation.start <= first < allocation.end:
            self.table.last = allocation = self.table.find(first) or NOWHERE
        if allocation.space in REACHES[space] and (allocation.writable or not writing):
            offset = address - allocation.base
            if _fits(offset, allocation, size) and _at_home(offset, allocation, size, lanes):
                return allocation.view(dtype, count), as_index(np.right_shift(offset, SHIFTS[size], offset))
        self.table.check(address, size, space, lanes, writing=writing)
        index = as_index((address - np.uint64(backing.WORLD_START)) // np.uint64(dtype.itemsize))
        return world(dtype), index if count == 1 else index[:, None] + np.arange(count)

    def _resolve_one(
        self, dtype: np.dtype[np.generic], address: int, count: int, space: Space, lanes: Lanes, *, writing: bool
    ) -> tuple[Array, int]:
        size = dtype.itemsize * count
        allocation = self.table.last
        if not allocation.start <= address < allocation.end:
            self.table.last = allocation = self.table.find(address) or NOWHERE
        offset = address - allocation.origin
        if (
            address + size <= allocation.end
            and not offset % size
            and allocation.space in REACHES[space]
            and (allocation.writable or not writing)
            and _at_home(np.uint64(offset), allocation, size, lanes)
        ):
            return allocation.view(dtype, count), offset // size
        raise self.table.explain(address, size, space, writing=writing)

    # ── spaces ──────────────────────────────────────────────────────────────────────────

    def within(self, space: Space, address: Address) -> PerLane:
        """Does the generic address lie in the space (`isspacep`)?  What is in no window is `.global`."""
        addresses = np.atleast_1d(np.asarray(address, np.uint64))
        found = np.zeros(len(addresses), np.bool_)
        if self.table.items:
            found = self.table.columns.inside(WINDOWS if space is Space.GLOBAL else frozenset((space,)), addresses)
        if space is Space.GLOBAL:
            found = ~found & (addresses >= NULL_LIMIT)
        return found if np.ndim(address) else found[0]


INDEX = np.dtype(np.intp)


def as_index(offsets: Array) -> LaneNumbers:
    """Offsets within memory as indices of NumPy, which have the size of the host's addresses: 32 bits in WebAssembly."""
    return offsets.view(INDEX) if offsets.itemsize == INDEX.itemsize else offsets.astype(INDEX)


def fetch(view: Array, index: PerLane, count: int) -> PerLane:
    """Gather from a view: elements, or rows turned into columns."""
    if isinstance(index, int):
        return view[index]
    if count == 1:
        return view.take(index, mode="wrap")  # every index is in bounds, and "wrap" is the quickest mode
    rows = view.take(index, 0 if view.ndim > 1 else None, mode="wrap")
    return np.ascontiguousarray(rows.T)


def put(view: Array, index: PerLane, values: PerLane, count: int) -> None:
    """Scatter to a view: elements, or columns turned into rows."""
    if isinstance(index, int):
        # one address for all lanes: the last one stays
        view[index] = np.stack([np.ravel(each)[-1] for each in values]) if count > 1 else np.ravel(values)[-1]
        return
    if count > 1:
        rows = np.empty((len(index), count), view.dtype)
        for column, each in enumerate(values):
            rows[:, column] = each
        values = rows
    view[index] = values


def _fits(offset: Addresses, allocation: Allocation, size: int) -> bool:
    """Are all lanes aligned and in bounds?  Offsets count from the origin and wrap far out of bounds before it.

    The bits of all offsets together tell both at once, where they do not reach the limit.
    """
    last = allocation.end - allocation.origin - size
    bits = int(np.bitwise_or.reduce(offset))
    if bits & (size - 1) or (bits > last and int(offset.max()) > last):
        return False
    skipped = allocation.start - allocation.origin
    return not skipped or int(offset.min()) >= skipped


def _at_home(offset: Address, allocation: Allocation, size: int, lanes: Lanes) -> bool:
    """Does every lane stay in its own window?"""
    home = allocation.home
    if home is None:
        return True
    if allocation.foreign:
        return False
    mine = (home if lanes is None else home[lanes]).view(np.uint64)
    if allocation.pieces > 1:
        return allocation.window >= size and bool(in_pieces(offset - mine, allocation, size).all())
    return int((offset - mine).max()) <= allocation.window - size


@functools.cache
def default_memory(address_bits: int = 64) -> Memory:
    """The memory of the device that a process uses by default."""
    return Memory(address_bits)
