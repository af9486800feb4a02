"""What compiled code asks of Python: checks that the quick way refuses, functions of NumPy, faults, and patience."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ptxvm.algebra.types import Type
from ptxvm.diagnostics.errors import Fault, Place, Unsupported
from ptxvm.engine.jit.facts import Facts
from ptxvm.engine.jit.launching import Launch
from ptxvm.engine.jit.raw import WARP
from ptxvm.engine.jit.record import AT, REACHED, ROWS, TICKS, WRITABLE
from ptxvm.machine.allocation import REACHES, Allocation
from ptxvm.machine.builtins import Library
from ptxvm.machine.environment import Environment
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.image import Image
from ptxvm.machine.window import Window

CHECK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int)
FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
FAULT = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_uint, ctypes.c_int, ctypes.c_int)
OUTSIDE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int)
TICK = ctypes.CFUNCTYPE(ctypes.c_int)
FUNCTIONS: list[Callable[[Any], Any]] = [np.sin, np.cos, np.log2, np.exp2, np.tanh]
WORDS = {16: (np.dtype(np.float64), 8), 0: (np.dtype(np.float32), 4)}
BYTE = np.dtype(np.uint8)
NEVER = np.uint64(2**64 - 1)
TRAP, DEADLOCK = 1, 3  # kinds of faults


class Calls:
    """The callbacks of a kernel, for one thread of the host; what they raise is kept by the launch."""

    launch: Launch

    def __init__(
        self, facts: Facts, image: Image, library: Library, windows: dict[str, Window], record: np.ndarray[Any, Any]
    ) -> None:
        self.facts, self.image, self.memory, self.library = facts, image, image.memory, library
        self.windows, self.record = windows, record
        self.sites = np.empty((facts.most_sites, 4), np.uint64)
        self.rows = np.zeros((ROWS, 4), np.uint64)
        self.check = CHECK(self._check)
        self.function = FUNCTION(self._function)
        self.fault = FAULT(self._fault)
        self.tick = TICK(self._tick)
        self.outside = OUTSIDE(self._outside)
        self.forget()

    @property
    def cta(self) -> int:
        """The number of the CTA that runs."""
        return int(self.record[AT["cta"]])

    def _failed(self, error: BaseException) -> None:
        if isinstance(error, Exception):
            self.launch.failed(self.cta, error)
        else:
            self.launch.interrupted(error)

    # ── what memory is known ────────────────────────────────────────────────────────────

    def forget(self) -> None:
        """No place of the code has met an allocation yet."""
        self.sites[:, 0] = NEVER
        self.sites[:, 1:] = 0

    def learn(self, allocation: Allocation) -> None:
        """Let compiled code find an allocation by itself; it cannot tell whose piece of a window a thread may use."""
        if allocation.home is None:
            count = int(self.record[AT["row_count"]])
            self.rows[count if count < ROWS else allocation.start // 16 % ROWS] = row(allocation)
            self.record[AT["row_count"]] = min(count + 1, ROWS)

    # ── checks ──────────────────────────────────────────────────────────────────────────

    def _check(self, site: int, addresses: int, mask: int, warp: int) -> int:
        """Zero where the access is allowed after all."""
        try:
            with self.memory.lock:
                self._look(site, np.ctypeslib.as_array((ctypes.c_uint64 * WARP).from_address(addresses)), mask, warp)
        except BaseException as error:  # noqa: BLE001 - it is raised again when the code has returned
            self._failed(error)
            return 1
        return 0

    def _look(self, number: int, addresses: Any, mask: int, warp: int) -> None:
        site = self.facts.sites[number]
        lanes = np.flatnonzero(mask >> np.arange(WARP) & 1)
        threads, wanted = lanes + warp * WARP, addresses[lanes]
        if not len(lanes):
            return
        try:
            if site.space in self.windows:
                offsets = wanted & np.uint64(0xFFFF_FFFF)
                self.windows[site.space].resolve(BYTE, offsets, site.size, threads, writing=site.writing)
                return
            self.memory.table.check(wanted, site.size, site.space, threads, writing=site.writing)
        except AccessFault as wrong:
            place = self.place(site.place, int(threads[wrong.lane_index]))
            raise Fault(wrong.kind, str(wrong), address=wrong.address, size=wrong.size, place=place) from None
        found = self.memory.table.find(int(wanted[0]))
        if found is not None:
            self.learn(found)

    # ── others ──────────────────────────────────────────────────────────────────────────

    def _function(self, which: int, given: int, made: int) -> None:
        held, size = WORDS[which & 16]
        word = ctypes.c_double if size == 8 else ctypes.c_float
        source = np.ctypeslib.as_array((word * WARP).from_address(given))
        target = np.ctypeslib.as_array((word * WARP).from_address(made))
        with np.errstate(all="ignore"):
            target[:] = FUNCTIONS[which & 15](source.astype(np.float64)).astype(held)

    def _outside(self, number: int, room: int, mask: int, warp: int) -> int:
        """Something that Python does."""
        table = self.memory.table
        try:
            with self.memory.lock:
                removed = table.removed
                self._work(number, room, mask, warp)
                if table.removed != removed:  # the kernel has freed memory, which is known no longer
                    self.record[AT["row_count"]] = 0
                    self.forget()
        except BaseException as error:  # noqa: BLE001 - it is raised again when the code has returned
            self._failed(error)
            return 1
        return 0

    def _work(self, number: int, room: int, mask: int, warp: int) -> None:
        work = self.facts.works[number]
        lanes = np.flatnonzero(mask >> np.arange(WARP) & 1)
        if not len(lanes):
            return
        threads = lanes + warp * WARP

        def column(n: int, type: Type) -> Any:
            held = held_as(type)
            words = (ctypes.c_ubyte * (WARP * type.bytes)).from_address(room + 16 * WARP * n)
            return np.ctypeslib.as_array(words).view(held)

        try:
            given = [column(n, type)[lanes] for n, type in enumerate(work.inputs)]
            found = work.outside(self, self.facts.bound(self.image, work.place), threads, given)
        except AccessFault as wrong:
            place = self.place(work.place, int(threads[wrong.lane_index]))
            raise Fault(wrong.kind, str(wrong), address=wrong.address, size=wrong.size, place=place) from None
        for n, type in enumerate(work.outputs):
            target = column(n, type)
            values = None if found is None else found[n]
            target[lanes] = 0 if values is None else np.asarray(values).astype(target.dtype)

    @property
    def environment(self) -> Environment:
        """What the driver tells every thread of the grid."""
        return self.launch.environment

    @property
    def cohort(self) -> Calls:
        """As the library wants to know the threads."""
        return self

    @property
    def layout(self) -> Calls:
        """As the library wants to know the threads."""
        return self

    def coordinates(self, lane: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """The CTA and the thread of a lane."""
        return _unfold(self.cta, self.launch.shape.grid), _unfold(lane, self.launch.shape.block)

    def _tick(self) -> int:
        """Time has passed: the user may have interrupted, the budget be spent, or an earlier CTA have failed."""
        try:
            self.launch.passed(TICKS)
        except BaseException as error:  # noqa: BLE001 - it is raised again when the code has returned
            self._failed(error)
        return int(self.cta >= self.launch.limit)

    def _fault(self, kind: int, bits: int, index: int, warp: int) -> None:
        """What is wrong at an instruction, for some lanes."""
        try:
            lane = (bits & -bits).bit_length() - 1 if kind != DEADLOCK else 0
            self._failed(self._wrong(kind, index, warp * WARP + max(lane, 0)))
        except BaseException as error:  # noqa: BLE001 - it is raised again when the code has returned
            self._failed(error)

    def _wrong(self, kind: int, index: int, thread: int) -> Exception:
        if kind == DEADLOCK:
            said = "no thread can go on: the warps wait at different barriers"
            return Fault("deadlock", said, place=Place(self.facts.name))
        place = self.place(index, thread)
        if kind == TRAP:
            return Fault("trap", "the kernel executed trap", place=place)
        mnemonic = self.facts.bound(self.image, index).i.mnemonic
        return Unsupported(f"'{mnemonic}' of lanes that stand at different places, in the JIT", f"line {place.line}")

    def place(self, number: int, thread: int) -> Place:
        """Where an instruction stands, and which thread ran it."""
        bound = self.facts.bound(self.image, number)
        program = bound.function.program if bound.function is not None else None
        file, line, text, origin = "", 0, bound.node.head, ""
        if program is not None:
            line, _ = program.source.location(bound.node.start)
            text = " ".join(program.source.text[bound.node.start : bound.node.end].split()).rstrip(";")
            file = program.source.name
            if bound.location is not None:
                origin = f"{program.files.get(bound.location.file, '?')}:{bound.location.line}"
        name = bound.function.name if bound.function is not None else ""
        return Place(
            self.facts.name,
            line,
            text,
            _unfold(self.cta, self.launch.shape.grid),
            _unfold(thread, self.launch.shape.block),
            name,
            file,
            origin,
        )


def row(allocation: Allocation) -> tuple[int, int, int, int]:
    """An allocation as compiled code finds it."""
    return allocation.start, allocation.end, allocation.origin, flags(allocation.space, allocation.writable)


@cache
def flags(space: str, writable: bool) -> int:  # noqa: FBT001
    """By which spaces an allocation is reached, and whether it is written."""
    return sum(bit for by, bit in REACHED.items() if space in REACHES[by]) | (WRITABLE if writable else 0)


def held_as(type: Type) -> np.dtype[Any]:
    """How Python sees the values of a type: f32 and f64 as such, the bits of anything else."""
    if type.is_float and not type.is_packed and type.bits >= 32:
        return np.dtype(f"f{type.bytes}")
    return np.dtype(f"{'i' if type.is_signed else 'u'}{type.bytes}")


def _unfold(number: int, extent: tuple[int, int, int]) -> tuple[int, int, int]:
    return number % extent[0], number // extent[0] % extent[1], number // (extent[0] * extent[1])
