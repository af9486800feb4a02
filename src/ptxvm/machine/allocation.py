"""The allocations of the machine, and the table against which every access is checked."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict, deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING
from weakref import ReferenceType

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.machine.backing import Bytes, bytes_at
from ptxvm.machine.faults import AccessFault, plural
from ptxvm.machine.per_lane import Addresses, Array, LaneNumbers, Lanes

if TYPE_CHECKING:
    import numpy.typing as npt

NEAR = 64  # an access within this distance of an allocation is out of its bounds, whatever host array lay there before
NULL_LIMIT = 1 << 16  # no host maps anything below
FREED_REMEMBERED = 4096
FREED = "has been freed"
RESTING = 32 << 20  # bytes of freed memory of a device that go back to the host late
FAR = 1 << 62  # no address is so far from another
CLOSE = 4096  # messages name an allocation within this distance, however small it is
GRAIN = 16
START = attrgetter("start")

# The spaces of allocations that an access reaches.  Kernel parameters are in the window of .global (PTX 6.4.1.1).
REACHES = {
    Space.GENERIC: frozenset({Space.GLOBAL, Space.CONST, Space.SHARED, Space.LOCAL, Space.PARAM}),
    Space.GLOBAL: frozenset({Space.GLOBAL, Space.PARAM}),
    Space.CONST: frozenset({Space.CONST}),
    Space.PARAM: frozenset({Space.PARAM, Space.LOCAL}),  # those of functions are on the stack
    Space.SHARED: frozenset({Space.SHARED}),
    Space.LOCAL: frozenset({Space.LOCAL}),
    Space.CODE: frozenset({Space.CODE}),
}


class Allocation:
    """A range of addresses that a kernel may use.

    `detail` says more than the name (`argument 2`).  Windows of CTAs or threads may divide it: `window` is the size of
    one, and `home` the offset of each lane's window; of a cluster it is the offset of the first of `pieces` windows, which
    are `stride` bytes apart.  `foreign` is above 0 while the owner of the
    windows waits for child grids, which run.  `host` is the array that a 32-bit module works on a copy of.  `uses` counts how
    often a host array was adopted.  `fate` says in messages how the allocation ended.  `guard` is the number of unused bytes
    on both sides.  `hidden` says that it has been out of the table once.  `heap` is the heap of a block of `malloc`: while it
    lives, only the heap reuses the addresses of the block.  One that `yields` has all bytes of a range that are in no other.
    `table` is the one of the device that it belongs to; if it is `of_device`, devices with peer access have it in theirs too,
    and memory of the host that is `everywhere` is in the tables of all.  `granted` are tables that have it for itself.
    One that `rests` has been freed, or set aside, and its addresses belong to nothing else yet.
    """

    host: Bytes | None = None
    window = stride = 0
    pieces = 1
    home: npt.NDArray[np.int64] | None = None
    foreign = 0
    uses = 1
    hidden = False
    yields = False
    heap: ReferenceType[object] | None = None
    successor: Allocation | None = None
    table: AllocationTable | None = None
    of_device = everywhere = False
    rests = False
    granted: frozenset[AllocationTable] = frozenset()

    def __init__(
        self,
        start: int,
        size: int,
        space: Space,
        name: str,
        writable: bool = True,  # noqa: FBT001, FBT002
        detail: str = "",
        owners: list[Array] | None = None,
        *,
        fate: str = FREED,
        guard: int = 0,
        live: bool = True,
    ) -> None:
        self.start, self.size, self.end = start, size, start + size
        self.space, self.name, self.writable, self.detail = space, name, writable, detail
        self.owners = owners if owners is not None else []
        self.fate, self.guard, self.live = fate, guard, live
        # Views begin here: at the start, or up to 15 bytes before it.  Alignments up to 16 hold for the address itself; larger
        # ones count from here, so that a host array is as good as device memory, which begins at a multiple of 256.
        self.origin = start & -GRAIN
        self._views: dict[tuple[np.dtype[np.generic], int], Array] = {}

    @cached_property
    def base(self) -> np.uint64:
        """The origin, to be subtracted from addresses."""
        return np.uint64(self.origin)

    @property
    def bytes(self) -> Bytes:
        """The bytes of the allocation."""
        return bytes_at(self.start, self.size)

    @property
    def lasting(self) -> Bytes:
        """The bytes of the allocation, which stay alive as long as the array, even after the allocation is released."""
        return np.asarray(ByteArray(self.start, self.size, tuple(self.owners)))

    def view(self, dtype: np.dtype[np.generic], count: int) -> Array:
        """The memory from `origin` on as elements, or as rows of `count` elements."""
        found = self._views.get((dtype, count))
        if found is None:
            row = dtype.itemsize * count
            found = bytes_at(self.origin, (self.end - self.origin) // row * row).view(dtype)
            self._views[dtype, count] = found = found.reshape(-1, count) if count > 1 else found
        return found

    @property
    def ghost(self) -> Allocation:
        """The allocation without its memory, for messages about later accesses."""
        if self.rests or not self.owners:
            return self
        return Allocation(self.start, self.size, self.space, self.name, detail=self.detail, fate=self.fate, live=False)

    def retire(self) -> None:
        """End the allocation: keep its addresses for messages, and drop its memory."""
        self.live = False
        self.owners.clear()
        self._views.clear()

    def __str__(self) -> str:
        return f"{self.name or 'an allocation'} ({', '.join(filter(None, [plural(self.size), self.detail]))})"


class ByteArray:
    """Bytes at an address, and the objects that keep them alive; NumPy makes an array of it."""

    def __init__(self, start: int, size: int, owners: tuple[object, ...]) -> None:
        self.owners = owners
        self.__array_interface__ = {"data": (start, False), "shape": (size,), "typestr": "|u1", "version": 3}


NOWHERE = Allocation(0, 0, Space.GENERIC, "", writable=False, live=False)


class Columns:
    """The allocations that a table has had at one moment as arrays, one element each."""

    def __init__(self, table: list[Allocation]) -> None:
        self.items = items = list(table)
        self.start = np.array([each.start for each in items], np.uint64)
        self.end = np.array([each.end for each in items], np.uint64)
        self.origin = np.array([each.origin for each in items], np.uint64)
        self.size = self.end - self.origin
        self.windowed = [at for at, each in enumerate(items) if each.home is not None]
        self._reached: dict[tuple[str, bool], npt.NDArray[np.bool_]] = {}

    def owners(self, address: Addresses) -> LaneNumbers:
        """The index of the last allocation that begins at or before each address; 0 where none does."""
        return np.maximum(np.searchsorted(self.start, address, "right") - 1, 0)

    def reached(self, space: Space, *, writing: bool) -> npt.NDArray[np.bool_]:
        """Which allocations an access in a space may read, or write."""
        found = self._reached.get((space, writing))
        if found is None:
            found = np.array([each.space in REACHES[space] and (each.writable or not writing) for each in self.items])
            self._reached[space, writing] = found
        return found

    def inside(self, spaces: frozenset[Space], address: Addresses) -> npt.NDArray[np.bool_]:
        """Which addresses are in an allocation of these spaces?"""
        of_them = np.array([each.space in spaces for each in self.items])
        owner = self.owners(address)
        return of_them[owner] & (address >= self.start[owner]) & (address < self.end[owner])


def _in_window(allocation: Allocation, offset: Addresses, size: int, lanes: LaneNumbers) -> npt.NDArray[np.bool_]:
    """Is each lane in its own window, or in one of its cluster?  The memory of a smaller launch has none for some lanes."""
    if allocation.home is None or allocation.window < size or allocation.foreign:
        return np.zeros(len(offset), np.bool_)
    has_one = lanes < len(allocation.home)
    home = allocation.home[np.where(has_one, lanes, 0)].view(np.uint64)
    return has_one & in_pieces(offset - home, allocation, size)


def in_pieces(distance: Addresses, allocation: Allocation, size: int) -> npt.NDArray[np.bool_]:
    """Are bytes, so far from the first window that a lane may access, in one of those windows?"""
    if allocation.pieces == 1:
        return distance <= allocation.window - size
    return (distance % allocation.stride <= allocation.window - size) & (distance < allocation.pieces * allocation.stride)


class AllocationTable:
    """The live allocations in the order of their addresses, without overlaps, and the last ones that were freed.

    The memory of most launches is never looked up, so an `expected` launch inserts its memory at the first look-up.  The
    tables of devices with peer access are `peers`: they have the memory of this device too.  `device` is the number of the
    device, and `devices` are the tables of all.
    """

    device = 0
    devices: Sequence[AllocationTable] = ()

    def __init__(self, lock: AbstractContextManager[object]) -> None:
        self._lock = lock
        self._items: list[Allocation] = []
        self.peers: list[AllocationTable] = []
        self.last = NOWHERE  # the allocation of the last access, which the next one probably means too
        self._expected: list[Callable[[], None]] = []
        self._freed: OrderedDict[tuple[int, int], Allocation] = OrderedDict()  # the last one of each extent
        self._resting: deque[tuple[Allocation, tuple[Array, ...]]] = deque()
        self._rested = 0  # bytes
        self._aside: set[Allocation] = set()
        self.removed = 0  # how many have been taken out
        self._yielding = False  # are there ranges that yield?
        self._columns: Columns | None = None

    @property
    def items(self) -> list[Allocation]:
        """All live allocations, in the order of their addresses."""
        if self._expected:
            with self._lock:
                while self._expected:
                    self._expected.pop()()
        return self._items

    def insert(self, allocation: Allocation) -> None:
        """Add an allocation, of this device if it is in no other table."""
        with self._lock:
            if allocation.table is None:
                allocation.table = self
            if self._yielding:
                self._make_room(allocation)
            if self._position(allocation) is None:
                insort(self._items, allocation, key=START)
            self._columns = None
            if allocation.of_device and allocation.table is self:
                for peer in self.peers:
                    peer.insert(allocation)

    # ── ranges that yield ───────────────────────────────────────────────────────────────

    def open(self, start: int, end: int, name: str, *, writable: bool) -> None:
        """Add what is in no allocation of a range, nor in one that rests, until `close`.

        A later allocation there takes its bytes away.
        """
        with self._lock:
            tables = (self, *self.devices)
            taken = {each for table in tables for each in table.overlapping(start, end)}
            resting = {each for table in tables for each in table.resting if each.start < end and start < each.end}
            held = sorted((each for each in taken | resting if not each.yields or each.table is self), key=START)
            for each in held:
                if start < each.start:
                    self._add_yielding(start, each.start, name, writable=writable)
                start = max(start, each.end)
            if start < end:
                self._add_yielding(start, end, name, writable=writable)

    def close(self) -> None:
        """Remove all of these."""
        with self._lock:
            self._items = [each for each in self._items if not each.yields]
            self._columns = None
            self._yielding = False
            self.removed += 1
            self.last = NOWHERE

    def _add_yielding(self, start: int, end: int, name: str, *, writable: bool) -> None:
        allocation = Allocation(start, end - start, Space.GLOBAL, name, writable)
        allocation.yields = self._yielding = True
        allocation.table = self
        insort(self._items, allocation, key=START)
        self._columns = None

    def _make_room(self, allocation: Allocation) -> None:
        """Cut the bytes of an allocation out of the ranges that yield."""
        for each in self.overlapping(allocation.start, allocation.end):
            if each.yields:
                self._items.remove(each)
                for low, high in ((each.start, allocation.start), (allocation.end, each.end)):
                    if low < high:
                        self._add_yielding(low, high, each.name, writable=each.writable)

    def remove(self, allocation: Allocation, *, remember: bool = True) -> None:
        """Remove an allocation, also from the tables of other devices; an access there is a use after free from now on.

        One that is hidden is in no table, and is remembered all the same.
        """
        with self._lock:
            for table in self.devices or (self,):
                if (table.take_out(allocation) or table is self) and remember:
                    table._remember(allocation)  # noqa: SLF001 - of this class

    def take_out(self, allocation: Allocation) -> bool:
        """Take an allocation out of this table; returns whether it was there."""
        with self._lock:
            at = self._position(allocation)
            if at is None:
                return False
            del self._items[at]
            self._columns, self.last = None, NOWHERE
            self.removed += 1
            return True

    def _position(self, allocation: Allocation) -> int | None:
        """Its position, None if it is not in the table.  Others may begin at the same address, without any bytes."""
        for at in range(bisect_left(self._items, allocation.start, key=START), len(self._items)):
            if self._items[at] is allocation:
                return at
            if self._items[at].start > allocation.start:
                break
        return None

    def grant(self, allocation: Allocation) -> None:
        """Let kernels access one allocation of another device."""
        with self._lock:
            allocation.granted |= {self}
            self.insert(allocation)

    def revoke(self, allocation: Allocation) -> None:
        """End that access, unless there is access to all memory of its device."""
        with self._lock:
            allocation.granted -= {self}
            owner = allocation.table
            if owner is not self and (owner is None or self not in owner.peers):
                self.take_out(allocation)

    def see(self, other: AllocationTable) -> None:
        """Let kernels access the memory of another device."""
        with self._lock:
            other.peers.append(self)
            for each in other.items:
                if each.of_device and each.table is other:
                    self.insert(each)

    def lose(self, other: AllocationTable) -> None:
        """End that access."""
        with self._lock:
            other.peers.remove(self)
            for each in [each for each in self._items if each.table is other and each.of_device and self not in each.granted]:
                self.take_out(each)

    def _remember(self, allocation: Allocation) -> None:
        extent = allocation.start, allocation.end
        self._freed[extent] = allocation.ghost
        self._freed.move_to_end(extent)
        if len(self._freed) > FREED_REMEMBERED:
            self._freed.popitem(last=False)

    @property
    def resting(self) -> Iterator[Allocation]:
        """The allocations whose addresses no others have, although they are in no table."""
        yield from self._aside
        for each, _ in self._resting:
            yield each

    def set_aside(self, allocation: Allocation) -> None:
        """Remove an allocation, which keeps its memory, until it is brought back."""
        with self._lock:
            allocation.rests = True
            self._aside.add(allocation)
            self.remove(allocation)

    def bring_back(self, allocation: Allocation) -> None:
        """Insert an allocation that was set aside, for all devices that had it."""
        with self._lock:
            allocation.rests = False
            self._aside.discard(allocation)
            others = (self.devices if allocation.everywhere else ()) or (self,)
            for table in (*others, *allocation.granted):
                table.insert(allocation)

    def rest(self, allocation: Allocation, owners: Sequence[Array]) -> None:
        """Keep the memory of a freed allocation for some time, so that an address there means that allocation.

        What rests longest goes back to the host first, which may use the addresses again; what is too large, at once.
        """
        size = sum(each.nbytes for each in owners)
        if size > RESTING:
            return
        with self._lock:
            self._resting.append((allocation, tuple(owners)))
            allocation.rests = True
            self._rested += size
            while self._resting and (self._rested > RESTING or len(self._resting) > FREED_REMEMBERED):
                oldest, memory = self._resting.popleft()
                oldest.rests = False
                self._rested -= sum(each.nbytes for each in memory)

    def expect(self, callback: Callable[[], None]) -> None:
        """Expect the allocations of a launch: `callback` inserts them at the first look-up."""
        with self._lock:
            self._expected.append(callback)

    def dismiss(self, callback: Callable[[], None], gone: Iterable[Allocation]) -> bool:
        """Stop expecting allocations, and remember `gone` as freed; false if they have been inserted."""
        with self._lock:
            if callback not in self._expected:
                return False
            self._expected.remove(callback)
            for allocation in gone:
                self._remember(allocation)
            return True

    def find(self, address: int) -> Allocation | None:
        """The allocation that has the byte at an address; another thread may change the table meanwhile."""
        found = self._last_from(address)
        if found is None or not found.start <= address < found.end:
            with self._lock:
                found = self._last_from(address)
        return found if found is not None and address < found.end else None

    def _last_from(self, address: int) -> Allocation | None:
        """The last allocation that begins at or before an address, unless the table changes under the search."""
        items = self.items
        at = bisect_right(items, address, key=START)
        return next(iter(items[at - 1 : at]), None) if at else None

    def elsewhere(self, address: int) -> Allocation | None:
        """The memory of another device at an address."""
        found = (table.find(address) for table in self.devices if table is not self)
        return next((each for each in found if each is not None and each.of_device), None)

    def overlapping(self, start: int, end: int) -> list[Allocation]:
        """The allocations that have a byte of the range."""
        items = self.items
        first = bisect_right(items, start, key=START) - 1
        candidates = items[max(first, 0) : bisect_left(items, end, key=START)]
        return [allocation for allocation in candidates if allocation.end > start]

    def freed(self, address: int, size: int, spaces: Container[Space] = frozenset(Space)) -> Allocation | None:
        """The allocation in some spaces that had these bytes, if it was freed recently and its heap, if any, still lives."""
        end, freed = address + size, reversed([*self._freed.values()])  # arrays may be collected meanwhile
        found = (gone for gone in freed if gone.start < end and address < gone.end and gone.space in spaces)
        return next((gone for gone in found if gone.heap is None or gone.heap() is not None), None)

    def _keeps_its_place(self, gone: Allocation, address: int) -> bool:
        """Was the byte in freed memory whose addresses are not reused yet?  Then the access means that memory."""
        held = gone.rests or (gone.heap is not None and not self.overlapping(gone.start, gone.end))
        return held and gone.start <= address < gone.end

    @property
    def columns(self) -> Columns:
        """The allocations as arrays, for look-ups of many addresses."""
        columns = self._columns if self.items else None
        if columns is None:
            with self._lock:
                removed = self.removed
                columns = Columns(self._items)
                if removed == self.removed:  # arrays that are collected meanwhile release their memory
                    self._columns = columns
        return columns

    def check(self, address: Addresses, size: int, space: Space, lanes: Lanes, *, writing: bool) -> None:
        """Refuse the first lane whose bytes are not wholly in an allocation that it may access; lanes may use several."""
        good = self.fitting(address, size, space, lanes, writing=writing)
        if not good.all():
            lane = int(np.argmin(good))
            raise self.explain(int(address[lane]), size, space, lane, writing=writing)

    def fitting(self, address: Addresses, size: int, space: Space, lanes: Lanes, *, writing: bool) -> npt.NDArray[np.bool_]:
        """Which lanes are in bounds?"""
        good = np.zeros(len(address), np.bool_)
        columns = self.columns
        if columns.items:
            owner = columns.owners(address)
            offset, room = address - columns.origin[owner], columns.size[owner]
            good = columns.reached(space, writing=writing)[owner] & (address >= columns.start[owner])
            good &= (offset & np.uint64(size - 1) == 0) & (room >= size) & (offset <= room - np.uint64(size))
            for at in columns.windowed:
                mine = np.flatnonzero(owner == at)
                if len(mine):
                    good[mine] &= _in_window(columns.items[at], offset[mine], size, mine if lanes is None else lanes[mine])
        return good

    def explain(self, address: int, size: int, space: Space, lane: int = 0, *, writing: bool = False) -> AccessFault:
        """Say why an access is refused."""
        kind, why = self._reason(address, size, space, writing=writing)
        verb = "writing " if writing else "reading "
        return AccessFault(kind, f"{verb}{plural(size)} at {address:#x}: {why}", address, size, lane)

    def _reason(self, address: int, size: int, space: Space, *, writing: bool) -> tuple[str, str]:
        inside = self.find(address)
        if inside is None:
            return self._nothing_there(address, size, space)
        if inside.space not in REACHES[space]:
            return "wrong-space", f"that is {inside}, in .{inside.space}, and the access is to .{space}"
        offset = address - inside.start
        if (address - inside.origin) % size:
            return "misaligned", f"the address must be a multiple of {size}, and this is byte {offset} of {inside}"
        if address + size > inside.end:
            return "out-of-bounds", f"the last {plural(address + size - inside.end)} are past the end of {inside}"
        if writing and not inside.writable:
            return "read-only", f"{inside} may be read only"
        if inside.foreign:
            return "out-of-bounds", f"that is {inside} of a grid that launched this one, and of no other grid"
        return "out-of-bounds", f"that is outside the part of {inside} that belongs to this thread"

    def _nothing_there(self, address: int, size: int, space: Space) -> tuple[str, str]:
        if address < NULL_LIMIT:
            return "null-pointer", "a null pointer" if not address else f"{plural(address)} from a null pointer"
        items = self.items
        at = bisect_right(items, address, key=START)
        before, after = items[at - 1] if at else NOWHERE, items[at] if at < len(items) else NOWHERE
        past = address - before.end if before is not NOWHERE else FAR
        short = after.start - address if after is not NOWHERE else FAR
        gone = self.freed(address, size, REACHES[space])
        near = 0 if gone is not None and self._keeps_its_place(gone, address) else NEAR
        far = past >= max(before.guard, near) and short > max(after.guard, near)
        if far and (another := self.elsewhere(address)) is not None and another.table is not None:
            owner = another.table.device
            return "peer-access", f"that is {another}, of device {owner}, to which device {self.device} has no peer access"
        if far and gone is not None:
            return "use-after-free", f"that was byte {address - gone.start} of {gone}, which {gone.fate}"
        if address % size:
            return "misaligned", f"the address must be a multiple of {size}, and nothing is allocated there"
        return "out-of-bounds", self._neighbour(at, address, space)

    def _neighbour(self, at: int, address: int, space: Space) -> str:
        """The distance to the nearest allocation that the access could mean, if it is near enough to explain the fault."""
        meant = REACHES[space] - (
            {Space.PARAM} if space is not Space.PARAM else set()
        )  # no address is computed from the parameter bank
        before = next((each for each in reversed(self.items[:at]) if each.space in meant), NOWHERE)
        after = next((each for each in self.items[at:] if each.space in meant), NOWHERE)
        past, short = address - before.end, after.start - address
        is_past = before is not NOWHERE and (after is NOWHERE or past <= short)
        nearest, distance = (before, past) if is_past else (after, short)
        if nearest is NOWHERE or distance > max(CLOSE, nearest.size):
            return "nothing is allocated there"
        if is_past:
            return f"that is {plural(past) if past else 'just'} past the end of {before}"
        return f"that is {plural(short)} before the start of {after}"
