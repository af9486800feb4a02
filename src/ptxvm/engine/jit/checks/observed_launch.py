"""An observed launch: the shadow memory and the callbacks of an instrumented kernel."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.outputs import only_writes
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.engine.jit.abi.launch_record import AT, NOTED, ROWS, Record
from ptxvm.engine.jit.abi.metadata import Site
from ptxvm.engine.jit.checks import spare_memory
from ptxvm.engine.jit.checks.cell_tags import Suspicious, Tags
from ptxvm.engine.jit.checks.told_order import ToldOrder
from ptxvm.engine.jit.memory.cta_clocks import CLOCKS
from ptxvm.engine.jit.memory.tags import CROWD, EPOCH, FIRST, MANY
from ptxvm.engine.jit.memory.told_order import CHANGES, JOINS
from ptxvm.engine.jit.node.instrumentation import Shadow
from ptxvm.engine.jit.run.callbacks import Callbacks, flags
from ptxvm.engine.jit.run.runner import address, aligned
from ptxvm.engine.jit.translate.checked_kernel import CheckedKernel
from ptxvm.isa.effects import Verb
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.backing import Bytes
from ptxvm.machine.builtins import Library, nowhere
from ptxvm.machine.memory import Memory
from ptxvm.machine.per_lane import Array
from ptxvm.machine.texture_unit import LookUp, Operands, Work

if TYPE_CHECKING:
    from _ctypes import CFuncPtr

    import numpy.typing as npt

RENUMBER = ctypes.CFUNCTYPE(None)
ASK_ORDER = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, ctypes.c_uint32, ctypes.c_uint32)
LINE = 64  # bytes that the processor caches together
WIDEST = 32  # bytes of the masks of several warps, which are loaded together


class Overwritten(Unsupported):
    """A launch must begin again, but memory that it reads is not as it was."""


@dataclass
class ObservedLaunch:
    """An instrumented launch of a kernel.

    `new` is the memory that is uninitialised, `written` that which is expected to be written; None if all may be.  Memory
    that is `unread` is not saved before it is written, since its contents have no part in what the kernel does.
    """

    memory: Memory
    kernel: CheckedKernel
    new: frozenset[Allocation] = frozenset()
    written: frozenset[Allocation] | None = None
    unread: frozenset[Allocation] = frozenset()
    overwritten: set[Allocation] = field(default_factory=set)  # what was not saved
    reread: Allocation | None = None  # of that, what was read all the same
    before: dict[Allocation, Bytes] = field(default_factory=dict)  # written memory, and its contents before the launch
    tags: Tags | None = None
    told: ToldOrder | None = None  # what threads have told each other, of a kernel that is followed by its fences
    last_epoch: int = 0  # that of the last access, when the launch has ended without a suspicion

    def save(self, allocation: Allocation) -> None:
        """Save the contents of an allocation before the kernel first writes to it."""
        if allocation in self.unread:
            self.overwritten.add(allocation)
        elif allocation.space is Space.GLOBAL and allocation not in self.before:
            self.before[allocation] = copy = spare_memory.COPIES.take(allocation.size)
            copy[:] = allocation.bytes

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

    def leave(self) -> None:
        """Leave memory to later launches: nothing is to be restored."""
        for copy in self.before.values():
            spare_memory.COPIES.give(copy)
        self.before.clear()
        if self.told is not None:
            self.told.leave()
        if self.tags is not None and not self.kernel.copies_size:
            self.tags.leave(self.last_epoch)

    @cached_property
    def library(self) -> Library:
        """The functions of the device; their output is held back until the kernel is cleared."""
        return Library(self.memory, sink=nowhere, error_sink=nowhere)

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
        if self.kernel.clock_words:
            room = np.zeros(self.kernel.clock_words + 2 * LINE, np.uint32)
            calls.clocks = room[-room.ctypes.data % (2 * LINE) // room.itemsize :]
            record[AT["clocks"]] = calls.clocks.ctypes.data
        if self.kernel.copies_size:
            calls.copies = np.zeros(self.kernel.copies_size + LINE, np.uint8)
            record[AT["copies"]] = aligned(calls.copies)
        if unset is not None:
            calls.masks = np.zeros(self.kernel.masks_size * calls.resident + WIDEST, np.uint8)
            record[AT["register_masks"]] = record[AT["first_masks"]] = calls.masks.ctypes.data
        if shadow is not None and shadow.init and (local := calls.windows.get(Space.LOCAL)) is not None:
            calls.marks = np.zeros_like(local.allocation.bytes)
            record[AT["local_marks"]] = (calls.marks.ctypes.data - local.allocation.origin) % (1 << 64)
        if shadow is not None and shadow.tags:
            self._begin_tags(calls, record, shadow)
        if self.kernel.follows_fences:
            self._begin_notes(calls, record)
        calls.renumber = RENUMBER(self._renumbering(record))
        record[AT["renumber"]] = address(calls.renumber)

    def _renumbering(self, record: Record) -> Callable[[], None]:
        """What to do when the numbers of epochs run out."""
        if self.told is not None:  # the notes have the old ones
            return partial(record.__setitem__, AT["suspicion"], 1)
        if self.tags is not None:
            return self.tags.renumber
        return partial(record.__setitem__, AT["epoch"], FIRST)  # the numbers of clocks without tags

    def _begin_notes(self, calls: ObservedCallbacks, record: Record) -> None:
        self.told = ToldOrder(int(record[AT["grid_epoch"]]), calls.launch.shape.threads, beside=self.kernel.runs_beside)
        calls.ask_order = ASK_ORDER(partial(calls.unordered, self.told))
        record[AT["told"]] = self.told.address
        record[AT["ask_order"]] = address(calls.ask_order)

    def _begin_tags(self, calls: ObservedCallbacks, record: Record, shadow: Shadow) -> None:
        shared = calls.windows[Space.SHARED].allocation
        tags = self.tags = calls.tags = Tags(calls.memory, shadow, shared, self.new, self.written, record)
        calls.row_tags = np.zeros(ROWS, np.uint64)
        fields = {
            "epoch": tags.epoch,
            "grid_epoch": tags.epoch,
            "shadow": tags.displacement(shared),
            "reads": tags.distance,
            "row_tags": calls.row_tags.ctypes.data,
        }
        for name, value in fields.items():
            record[AT[name]] = value % (1 << 64)

    def end(self, calls: Callbacks, record: Record) -> None:
        """Raise Suspicious if the code has found something."""
        self.last_epoch = max(int(record[AT["epoch"]]), self.told.last_tag if self.told is not None else 0)
        if isinstance(calls, ObservedCallbacks) and calls.clocks is not None:
            self.last_epoch = max(self.last_epoch, int(calls.clocks[CLOCKS].max()))
        found = int(record[AT["suspicion"]])
        if found == 1:
            raise Suspicious(
                "lanes or warps are missing at a barrier, one access reaches several allocations, "
                "or a pointer goes where nothing follows it"
            )
        if found:
            place = calls.place(calls.facts.sites[found - 2].instruction, 0)
            raise Suspicious(f"'{place.text}' at line {place.line} may race, or read uninitialised bytes")


class ObservedCallbacks(Callbacks):
    """The callbacks of an instrumented kernel."""

    renumber: CFuncPtr
    ask_order: CFuncPtr
    observed: ObservedLaunch
    tags: Tags | None = None
    row_tags: npt.NDArray[np.uint64]  # of the rows of the table that compiled code searches: displacements, as sites have
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
            columns = table.columns  # arrays that are collected meanwhile leave the table
            self._note(site, [columns.items[owner] for owner in np.unique(columns.owners(addresses[lanes])).tolist()])
        found = table.find(int(addresses[lanes[0]]))
        if found is not None:
            self._remember(number, site, found, int(addresses[lanes[0]]))
            if found.home is None and (self.tags is not None or site.writing):
                self._enter_noted(site, found)

    def unordered(self, told: ToldOrder, tags: int, mine: int, cells: int, found: int, count: int, warp: int) -> None:
        """Say which of some accesses are unordered: vectors of their tags, of those of their threads, and of cells."""
        try:
            told.read()
            told.meet(int(self.record[AT["met"]]))
            given, own, answer = _words(tags, count, "uint32"), _words(mine, count, "uint32"), _words(found, count, "uint8")
            if warp & JOINS:
                self._join(told, given, own, answer, _words(cells, count, "uint32"), warp % CHANGES)
                return
            warp, writes = warp % CHANGES, bool(warp & CHANGES)
            told.tell(warp)
            places, open_ones = _words(cells, count, "uint64"), told.table.unknown(given, answer, warp)
            answer[:] = 0
            for n in open_ones.tolist():
                tag = int(given[n])
                place = self._place(int(places[n])) if MANY < tag & EPOCH - 1 < CROWD else None
                answer[n] = told.unordered(tag, int(own[n]), warp, place, writes=writes)
        except Suspicious:
            self.record[AT["suspicion"]] = 1
        except BaseException as error:  # noqa: BLE001 - the launch raises it
            self._failed(error)

    def _join(self, told: ToldOrder, tags: Array, mine: Array, found: Array, made: Array, warp: int) -> None:
        """Find the new tags of the reads of some cells."""
        told.tell(warp)
        new: dict[tuple[int, int], int] = {}
        several = told.several(tags) & (found != 0)
        made[several] = mine[several] & ~np.uint32(EPOCH - 1) | np.uint32(MANY)
        found[several] = 0
        for n in told.table.unknown(tags, found, warp).tolist():
            tag, own = int(tags[n]), int(mine[n])
            key = tag, own if told.apart else 0
            if key not in new:
                new[key] = told.join(tag, own, warp)
            made[n] = new[key] or own

    def _place(self, cell: int) -> int | None:
        return self.tags.of_cell(cell) if self.tags is not None else None

    def _note(self, site: Site, reached: Sequence[Allocation]) -> None:
        """Note what an access reads, and save what it writes."""
        for allocation in reached:
            if not (site.writing and only_writes(self.facts.bound(self.image, site.instruction))):
                self.observed.read(allocation)
            if site.writing:
                self.observed.save(allocation)

    def learn(self, allocation: Allocation) -> None:
        """Enter an allocation in the table that compiled code searches, unless its accesses are to be noted."""
        if self.tags is None and allocation.home is None and allocation not in self.observed.unread:
            self.enter(allocation, flags(allocation.space, allocation.writable) | NOTED[Verb.READ])

    def _enter_noted(self, site: Site, allocation: Allocation) -> None:
        """Enter an allocation there, with its tags if it has some, for accesses like one that has been noted."""
        alone = site.writing and only_writes(self.facts.bound(self.image, site.instruction))
        verb = Verb.WRITE if alone else Verb.UPDATE if site.writing else Verb.READ
        number = self.enter(allocation, flags(allocation.space, allocation.writable) | NOTED[verb])
        if self.tags is not None:
            self.row_tags[number] = self.tags.of_site(allocation, writing=site.writing) % (1 << 64)

    def look_up(self, work: Work, operands: Operands) -> None:
        """Check the tags of the bytes that a texture look-up reads."""
        if self.tags is not None and isinstance(work, LookUp):
            for touched in work.touched(self.memory, operands):
                self.tags.read(touched)

    def _remember(self, number: int, site: Site, found: Allocation, address: int) -> None:
        """Remember the allocation of an access site, where its next access probably is; of windows, the one of an address.

        The code checks that all lanes are in it before it reads tags.
        """
        start, end = found.start, found.end
        if found.home is not None:
            if found.space is not Space.SHARED:
                return
            start += (address - start) // found.stride * found.stride if found.pieces > 1 else 0
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


def _words(start: int, count: int, dtype: str) -> Array:
    """Words that compiled code has put somewhere."""
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer(memoryview((ctypes.c_uint8 * size).from_address(start)), dtype)
