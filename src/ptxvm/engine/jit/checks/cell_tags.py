"""The tags of all cells of memory that an instrumented launch can reach (`memory.shadow_tags`)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection
from functools import cached_property
from operator import itemgetter

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.engine.jit.abi.launch_record import AT, Record
from ptxvm.engine.jit.checks import spare_memory
from ptxvm.engine.jit.memory.tags import BEFORE, EPOCH, EVER, FIRST, LAST, MANY, NEVER, PENDING, UNTAGGED
from ptxvm.engine.jit.node.instrumentation import GRAIN, Shadow
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.events import Flags
from ptxvm.machine.memory import Memory
from ptxvm.machine.per_lane import Array
from ptxvm.machine.texture_surface import AccessedBytes

LINE = 64  # bytes that the processor caches together
HEAP_BLOCK = "a block of malloc"  # as `machine.heap` names them


class Suspicious(Exception):  # noqa: N818 - it says what happened
    """A suspicion, which the exact checker decides."""


class WrittenLater(Exception):  # noqa: N818 - it says what happened
    """Memory is written that has been read without tags: the launch must begin again, with tags for all memory."""


class Tags:
    """The tags of all cells of memory that a launch can reach; the host only backs those that are touched.

    Memory that the grid only reads, and that has values, has no tags: nothing races with its accesses.  What is written is
    guessed at the beginning.  A wrong guess shows at the first write of each access site, which asks here.
    """

    def __init__(
        self, memory: Memory, shadow: Shadow, shared: Allocation, fresh: Collection[Allocation],
        written: Collection[Allocation] | None, record: Record,
    ) -> None:  # fmt: skip
        self.shadow, self.shared, self.record, self._memory = shadow, shared, record, memory
        self._fresh = {*fresh, *(each for each in memory.table.items if each.name == HEAP_BLOCK)}
        self._written = set(memory.table.items if written is None else written)
        self._read_untagged: set[Allocation] = set()
        self._begins: dict[Allocation, int] = {}
        end = 0
        for allocation in memory.table.items:
            self._begins[allocation] = end
            end += -(-GRAIN * self._cells(allocation) // LINE) * LINE
        self.distance = end
        self.held = spare_memory.TAGS.take(2 * end // GRAIN)
        self.held.begin(LAST // 2 if record[AT["clocks"]] else LAST)
        self.epoch, self._tags = self.held.epoch, self.held.tags
        self._marked, self.held.marked = self.held.marked, self.held.marked or shadow.init
        self._start = self._tags.ctypes.data
        self._filled: set[Allocation] = set()
        self._lasts = False

    def leave(self, last: int) -> None:
        """The launch has ended with an epoch: leave the memory to later ones, unless tags in it are later than all epochs."""
        self.held.leave(last)
        if not self._lasts:
            spare_memory.TAGS.give(self.held)

    def displacement(self, allocation: Allocation) -> int:
        """The distance from an address, scaled to cells, to the tag of its last write."""
        if allocation not in self._begins:
            raise Suspicious(f"{allocation} was allocated after the launch began")
        self._fill(allocation)
        return self._start + self._begins[allocation] - (allocation.origin << self._shift(allocation))

    def of_site(self, allocation: Allocation, *, writing: bool) -> int:
        """The displacement for an access site, or UNTAGGED."""
        return self.displacement(allocation) if self._tagged(allocation, writing=writing) else UNTAGGED

    def _tagged(self, allocation: Allocation, *, writing: bool) -> bool:
        """Shall the cells of an allocation have tags?  Raises WrittenLater where reads of it have left none."""
        if allocation.home is not None or (self.shadow.init and allocation in self._fresh):
            return True
        if not self.shadow.race:
            return False
        if writing and allocation in self._read_untagged:
            raise WrittenLater
        if writing:
            self._written.add(allocation)
        tagged = allocation in self._written
        if not tagged:
            self._read_untagged.add(allocation)
        return tagged

    @property
    def written(self) -> list[Allocation]:
        """The memory outside of CTAs that is written, or was expected to be."""
        return [each for each in self._written if each.home is None and each.space is Space.GLOBAL]

    def of_cell(self, address: int) -> int | None:
        """The address of the memory of which a tag at an address is; None if it is of none."""
        if not self._begins or address < self._start:
            return None
        place = (address - self._start) % self.distance
        allocation, begin = self._places[bisect_right(self._places, place, key=itemgetter(1)) - 1]
        return allocation.origin + (place - begin) // GRAIN * self._grain(allocation)

    @cached_property
    def _places(self) -> list[tuple[Allocation, int]]:
        """The allocations, and where the tags of each begin."""
        return list(self._begins.items())

    def cells(self, allocation: Allocation) -> tuple[int, Flags, Flags]:
        """Of an allocation the bytes of a cell, and for each cell whether it was written and read."""
        first = self._begins[allocation] // GRAIN
        wrote = self._tags[first : first + self._cells(allocation)]
        read = self._tags[first + self.distance // GRAIN :][: self._cells(allocation)]
        least = int(self.record[AT["grid_epoch"]])
        return self._grain(allocation), wrote >= least, read >= least

    def read(self, touched: AccessedBytes) -> None:
        """Tag texture reads; reading bytes that the grid has written, or uninitialised ones, is suspicious (PTX 2.3)."""
        columns = self._memory.table.columns
        every = (touched.addresses[:, None] + np.arange(touched.element * touched.count)).ravel().astype(np.uint64)
        owners = columns.owners(every)
        for owner in np.unique(owners).tolist():
            allocation, addresses = columns.items[owner], every[owners == owner]
            inside = (addresses >= allocation.start) & (addresses < allocation.end)
            reached = inside.any() and allocation.space is Space.GLOBAL
            if reached and self._tagged(allocation, writing=False):
                self._read(allocation, (addresses[inside] - allocation.base).view(np.int64))

    def _read(self, allocation: Allocation, offsets: Array) -> None:
        if allocation not in self._begins:
            raise Suspicious(f"{allocation} was allocated after the launch began")
        self._fill(allocation)
        first = self._begins[allocation] // GRAIN
        cells = first + offsets // self._grain(allocation)
        wrote, reads = self._tags[cells], cells + self.distance // GRAIN
        least = np.uint32(self.record[AT["grid_epoch"]])
        if self.shadow.race and (wrote >= least).any():
            raise Suspicious("a texture read reaches bytes that the grid has written")
        if self.shadow.init and (wrote == NEVER).any():
            raise Suspicious("a texture read reaches uninitialised bytes")
        begin = np.uint32(self.record[AT["cta_epoch"]])
        kept = (self._tags[reads] >= least) & (self._tags[reads] < begin)  # the first CTA stays
        now = np.uint32(self.record[AT["epoch"]]) | MANY
        self._lasts |= bool(self.record[AT["clocks"]])
        self._tags[reads[~kept]] = EVER if self.record[AT["clocks"]] else now  # what warps do later knows no such read

    def _grain(self, allocation: Allocation) -> int:
        return self.shadow.grain[allocation is self.shared]

    def _shift(self, allocation: Allocation) -> int:
        return (GRAIN // self._grain(allocation)).bit_length() - 1

    def _cells(self, allocation: Allocation) -> int:
        return -(-(allocation.end - allocation.origin) // self._grain(allocation))

    def _fill(self, allocation: Allocation) -> None:
        """Tag memory that has no value, once; that of the CTA is tagged where a CTA begins."""
        if allocation in self._filled:
            return
        self._filled.add(allocation)
        count, first = self._cells(allocation), self._begins[allocation] // GRAIN
        written, _ = self.held.touch(first, count), self.held.touch(first + self.distance // GRAIN, count)
        if self.shadow.init and allocation in self._fresh:
            written[:] = NEVER
        elif self.shadow.init and self._marked:
            written[:] = 0

    def renumber(self) -> None:
        """Renumber the epochs when numbers run out: all before this CTA become one, and all of this CTA another."""
        begin, least, low = int(self.record[AT["cta_epoch"]]), int(self.record[AT["grid_epoch"]]), np.uint32(EPOCH - 1)
        for tags in self.held.pieces():
            stale, own = (tags > NEVER) & (tags < least), (tags >= begin) & (tags < PENDING)
            before = (tags >= least) & (tags < begin)
            tags[stale] = 0
            tags[own] = tags[own] & low | np.uint32(FIRST)
            tags[before] = tags[before] & low | np.uint32(BEFORE)
        self.record[AT["grid_epoch"]] = BEFORE
        self.record[AT["cta_epoch"]] = FIRST
        self.record[AT["epoch"]] = FIRST + EPOCH
