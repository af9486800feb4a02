"""An observed launch: the shadow memory and the callbacks of an instrumented kernel."""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.outputs import only_writes
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.engine.jit.abi.launch_record import AT, Record
from ptxvm.engine.jit.abi.metadata import Site
from ptxvm.engine.jit.memory.cta_clocks import words
from ptxvm.engine.jit.memory.pending_copies import log_size
from ptxvm.engine.jit.memory.tags import BEFORE, EPOCH, EVER, FIRST, MANY, NEVER, PENDING, UNTAGGED
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.engine.jit.node.instrumentation import GRAIN, Shadow
from ptxvm.engine.jit.run.callbacks import Callbacks
from ptxvm.engine.jit.run.runner import address, aligned
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.backing import Bytes
from ptxvm.machine.builtins import Library
from ptxvm.machine.events import Flags
from ptxvm.machine.memory import Memory
from ptxvm.machine.per_lane import Array
from ptxvm.machine.texture_surface import AccessedBytes
from ptxvm.machine.texture_unit import LookUp, Operands, Work

if TYPE_CHECKING:
    from _ctypes import CFuncPtr

    import numpy.typing as npt

RENUMBER = ctypes.CFUNCTYPE(None)
LINE = 64  # bytes that the processor caches together
WIDEST = 32  # bytes of the masks of several warps, which are loaded together
HEAP_BLOCK = "a block of malloc"  # as `machine.heap` names them


class Suspicious(Exception):  # noqa: N818 - it says what happened
    """A suspicion, which the exact checker decides."""


class Overwritten(Unsupported):
    """A launch must begin again, but memory that it reads is not as it was."""


class WrittenLater(Exception):  # noqa: N818 - it says what happened
    """Memory is written that has been read without tags: the launch must begin again, with tags for all memory."""


@dataclass
class ObservedLaunch:
    """An instrumented launch of a kernel.

    `new` is the memory that is uninitialised, `written` that which is expected to be written; None if all may be.  Memory
    that is `unread` is not saved before it is written, since its contents have no part in what the kernel does.
    """

    memory: Memory
    kernel: KernelContext
    new: frozenset[Allocation] = frozenset()
    written: frozenset[Allocation] | None = None
    unread: frozenset[Allocation] = frozenset()
    overwritten: set[Allocation] = field(default_factory=set)  # what was not saved
    reread: Allocation | None = None  # of that, what was read all the same
    before: dict[Allocation, Bytes] = field(default_factory=dict)  # written memory, and its contents before the launch
    spare: dict[int, Bytes] = field(
        default_factory=dict
    )  # buffers for such copies, by size: fresh memory costs more than the copy

    def save(self, allocation: Allocation) -> None:
        """Save the contents of an allocation before the kernel first writes to it."""
        if allocation in self.unread:
            self.overwritten.add(allocation)
        elif allocation.space is Space.GLOBAL and allocation not in self.before:
            room = self.spare.pop(allocation.size, None)
            room = np.empty(allocation.size, np.uint8) if room is None else room
            room[:] = allocation.bytes
            self.before[allocation] = room

    def read(self, allocation: Allocation) -> None:
        """The kernel reads an allocation, expected or not."""
        if allocation not in self.unread:
            return
        if allocation in self.overwritten:
            self.reread = allocation
        else:
            self.unread -= {allocation}

    def undo(self) -> None:
        """Restore memory to its contents before the launch, but for what the kernel does not read.

        Raises Overwritten if it has read what is not restored.
        """
        for allocation, values in self.before.items():
            allocation.bytes[:] = values
        if self.reread is not None:
            raise Overwritten(
                f"a check of '{self.kernel.function.name}' must begin again, and the old contents of {self.reread} are lost: "
                "the kernel has read and written it by an address that is in memory; fill it again, and launch again"
            )

    @cached_property
    def library(self) -> Library:
        """The functions of the device; their output is held back until the kernel is cleared."""
        return Library(self.memory, sink=lambda text: None)  # noqa: ARG005

    @property
    def calls(self) -> type[ObservedCallbacks]:
        """The class of the callbacks."""
        return ObservedCallbacks

    def begin(self, calls: Callbacks, record: Record) -> None:
        """Fill in the fields that instrumented code reads."""
        if not isinstance(calls, ObservedCallbacks):
            raise TypeError(f"{calls} are not the callbacks of an observed launch")
        calls.observed = self
        shadow, unset = self.kernel.shadow, self.kernel.unset_registers
        if self.kernel.clocked:
            room = np.zeros(words(self.kernel) + 2 * LINE, np.uint32)
            calls.clocks = room[-room.ctypes.data % (2 * LINE) // room.itemsize :]
            record[AT["clocks"]] = calls.clocks.ctypes.data
        if self.kernel.logs_copies:
            calls.copies = np.zeros(log_size(self.kernel) + LINE, np.uint8)
            record[AT["copies"]] = aligned(calls.copies)
        if unset is not None:
            calls.masks = np.zeros(unset.size(self.kernel.warps) + WIDEST, np.uint8)
            record[AT["register_masks"]] = calls.masks.ctypes.data
        if shadow is not None and shadow.init and (local := calls.windows.get(Space.LOCAL)) is not None:
            calls.marks = np.zeros_like(local.allocation.bytes)
            record[AT["local_marks"]] = (calls.marks.ctypes.data - local.allocation.origin) % (1 << 64)
        if shadow is None or not (shadow.race or shadow.init):
            return
        shared = calls.windows[Space.SHARED].allocation
        tags = calls.tags = Tags(calls.memory, shadow, shared, self.new, self.written, record)
        calls.renumber = RENUMBER(tags.renumber)
        fields = {
            "epoch": FIRST - EPOCH,
            "renumber": address(calls.renumber),
            "shadow": tags.displacement(shared),
            "reads": tags.distance,
        }
        for name, value in fields.items():
            record[AT[name]] = value % (1 << 64)

    def end(self, calls: Callbacks, record: Record) -> None:
        """Raise Suspicious if the code has found something."""
        found = int(record[AT["suspicion"]])
        if found == 1:
            raise Suspicious("lanes or warps are missing at a barrier, or one access reaches several allocations")
        if found:
            place = calls.place(calls.facts.sites[found - 2].instruction, 0)
            raise Suspicious(f"'{place.text}' at line {place.line} may race, or read uninitialised bytes")


class ObservedCallbacks(Callbacks):
    """The callbacks of an instrumented kernel."""

    renumber: CFuncPtr
    observed: ObservedLaunch
    tags: Tags | None = None
    clocks: npt.NDArray[np.uint32] | None = None
    copies: Bytes | None = None  # the logs of asynchronous copies
    masks: Bytes | None = None  # of registers: the lanes that have written them
    marks: Bytes | None = None  # of local memory: the bytes that a thread has written

    def _check_access(self, number: int, addresses: npt.NDArray[np.uint64], mask: int, warp: int) -> None:
        super()._check_access(number, addresses, mask, warp)
        site = self.facts.sites[number]
        lanes = np.flatnonzero(mask >> np.arange(WARP) & 1)
        if site.space in self.windows or not len(lanes):
            return
        table = self.memory.table
        if site.writing or self.observed.unread:
            self._note(site, [table.items[owner] for owner in np.unique(table.columns.owners(addresses[lanes])).tolist()])
        found = table.find(int(addresses[lanes[0]]))
        if found is not None:
            self._remember(number, site, found)

    def _note(self, site: Site, reached: Sequence[Allocation]) -> None:
        """Note what an access reads, and save what it writes."""
        for allocation in reached:
            if not (site.writing and only_writes(self.facts.bound(self.image, site.instruction))):
                self.observed.read(allocation)
            if site.writing:
                self.observed.save(allocation)

    def learn(self, allocation: Allocation) -> None:
        """Enter an allocation in the table that compiled code searches, unless reading it is to be noted."""
        if allocation not in self.observed.unread:
            super().learn(allocation)

    def look_up(self, work: Work, operands: Operands) -> None:
        """Check the tags of the bytes that a texture look-up reads."""
        if self.tags is not None and isinstance(work, LookUp):
            for touched in work.touched(self.memory, operands):
                self.tags.read(touched)

    def _remember(self, number: int, site: Site, found: Allocation) -> None:
        """Remember the allocation of an access site, where its next access probably is.

        The code checks that all lanes are in it before it reads tags.
        """
        start, end = found.start, found.end
        if found.home is not None:
            if found.space is not Space.SHARED:
                return
            end = start + found.window
        low = -(-start // min(site.size, 16)) * min(site.size, 16)
        room = end - low
        if room < site.size or (site.size > 16 and low != start):
            return
        if self.tags is not None:
            self.sites[number, 3] = self.tags.of_site(found, writing=site.writing) % (1 << 64)
        log = site.size.bit_length() - 1
        whole = ((room - site.size - site.span) >> log) + 1 if room >= site.size + site.span else 0
        self.sites[number, :3] = low, whole, ((room - site.size) >> log) + 1


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
        self._unwritten = set(self._fresh)
        self._written = set(memory.table.items if written is None else written)
        self._read_untagged: set[Allocation] = set()
        self._begins: dict[Allocation, int] = {}
        end = 0
        for allocation in memory.table.items:
            self._begins[allocation] = end
            end += -(-GRAIN * self._cells(allocation) // LINE) * LINE
        self.distance = end
        tags = np.zeros((2 * end + LINE) // GRAIN, np.uint32)
        self._tags = tags[-tags.ctypes.data % LINE // GRAIN :]
        self._start = self._tags.ctypes.data

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

    @property
    def read_untagged(self) -> frozenset[Allocation]:
        """The memory whose reads have left no tags."""
        return frozenset(self._read_untagged)

    def cells(self, allocation: Allocation) -> tuple[int, Flags, Flags]:
        """Of an allocation the bytes of a cell, and for each cell whether it was written and read."""
        first = self._begins[allocation] // GRAIN
        wrote = self._tags[first : first + self._cells(allocation)]
        read = self._tags[first + self.distance // GRAIN :][: self._cells(allocation)]
        return self._grain(allocation), wrote > NEVER, read > 0

    def read(self, touched: AccessedBytes) -> None:
        """Tag texture reads; reading bytes that the grid has written, or uninitialised ones, is suspicious (PTX 2.3)."""
        table = self._memory.table
        every = (touched.addresses[:, None] + np.arange(touched.element * touched.count)).ravel().astype(np.uint64)
        owners = table.columns.owners(every)
        for owner in np.unique(owners).tolist():
            allocation, addresses = table.items[owner], every[owners == owner]
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
        if self.shadow.race and (wrote > NEVER).any():
            raise Suspicious("a texture read reaches bytes that the grid has written")
        if self.shadow.init and (wrote == NEVER).any():
            raise Suspicious("a texture read reaches uninitialised bytes")
        begin = np.uint32(self.record[AT["cta_epoch"]])
        kept = (self._tags[reads] > 0) & (self._tags[reads] < begin)  # the first CTA stays
        now = np.uint32(self.record[AT["epoch"]]) | MANY
        self._tags[reads[~kept]] = EVER if self.record[AT["clocks"]] else now  # what warps do later knows no such read

    def _grain(self, allocation: Allocation) -> int:
        return self.shadow.grain[allocation is self.shared]

    def _shift(self, allocation: Allocation) -> int:
        return (GRAIN // self._grain(allocation)).bit_length() - 1

    def _cells(self, allocation: Allocation) -> int:
        return -(-(allocation.end - allocation.origin) // self._grain(allocation))

    def _fill(self, allocation: Allocation) -> None:
        """Tag memory that has no value, once; that of the CTA is tagged where a CTA begins."""
        if self.shadow.init and allocation in self._unwritten:
            self._unwritten.remove(allocation)
            first = self._begins[allocation] // GRAIN
            self._tags[first : first + self._cells(allocation)] = NEVER

    def renumber(self) -> None:
        """Renumber the epochs when numbers run out: all before this CTA become one, and all of this CTA another."""
        begin, low = int(self.record[AT["cta_epoch"]]), np.uint32(EPOCH - 1)
        tags = self._tags
        own = (tags >= begin) & (tags < PENDING)
        tags[own] = tags[own] & low | np.uint32(FIRST)
        before = (tags < begin) & (tags > NEVER)
        tags[before] = tags[before] & low | np.uint32(BEFORE)
        self.record[AT["cta_epoch"]] = FIRST
        self.record[AT["epoch"]] = FIRST + EPOCH
