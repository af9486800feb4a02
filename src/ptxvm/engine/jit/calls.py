"""What compiled code asks of Python: checks that the quick way refuses, functions of NumPy, faults, and patience."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ptxvm.algebra.types import Type
from ptxvm.analysis.program import Bound
from ptxvm.diagnostics.errors import Fault, Place, Unsupported
from ptxvm.engine.jit.raw import WARP
from ptxvm.machine.allocation import REACHES
from ptxvm.machine.environment import Environment
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.launch import LaunchShape
from ptxvm.machine.memory import Memory
from ptxvm.machine.window import Window

CHECK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int)
FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
FAULT = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_uint, ctypes.c_int, ctypes.c_int)
OUTSIDE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int)
TICK = ctypes.CFUNCTYPE(ctypes.c_int)
FUNCTIONS: list[Callable[[Any], Any]] = [np.sin, np.cos, np.log2, np.exp2, np.tanh]
WORDS = {16: (np.dtype(np.float64), 8), 0: (np.dtype(np.float32), 4)}
BYTE = np.dtype(np.uint8)


class Calls:
    """The callbacks of one launch; what they raise is kept for the end of it."""

    def __init__(self, kernel: Any, shape: LaunchShape, memory: Memory, windows: dict[str, Window], budget: int | None) -> None:
        self.kernel, self.shape, self.memory, self.windows, self.budget = kernel, shape, memory, windows, budget
        self.turns = 0
        self.raised: BaseException | None = None
        self.sites = np.empty((kernel.most_sites, 4), np.uint64)
        self.sites[:, 0] = np.uint64(2**64 - 1)
        self.sites[:, 1:] = 0
        self.cta = 0  # set by who made the record of the launch
        self.check = CHECK(self._check)
        self.function = FUNCTION(self._function)
        self.fault = FAULT(self._fault)
        self.tick = TICK(self._tick)
        self.outside = OUTSIDE(self._outside)
        self.library: Any = None
        self.current_cta: Callable[[], int] = lambda: 0

    # ── checks ──────────────────────────────────────────────────────────────────────────

    def _check(self, site: int, addresses: int, mask: int, warp: int) -> int:
        """Zero where the access is allowed after all."""
        try:
            self._look(site, np.ctypeslib.as_array((ctypes.c_uint64 * WARP).from_address(addresses)), mask, warp)
        except BaseException as error:  # noqa: BLE001 - it is raised again when the code has returned
            self.raised = self.raised or error
            return 1
        return 0

    def _look(self, site: int, addresses: Any, mask: int, warp: int) -> None:
        bound, space, size, _, writing = self.kernel.sites[site]
        lanes = np.flatnonzero(mask >> np.arange(WARP) & 1)
        threads, wanted = lanes + warp * WARP, addresses[lanes]
        if not len(lanes):
            return
        try:
            if space in self.windows:
                offsets = wanted & np.uint64(0xFFFF_FFFF)
                self.windows[space].resolve(BYTE, offsets, size, threads, writing=writing)
                return
            self.memory.table.check(wanted, size, space, threads, writing=writing)
        except AccessFault as wrong:
            place = self.place(bound, int(threads[wrong.lane_index]))
            raise Fault(wrong.kind, str(wrong), address=wrong.address, size=wrong.size, place=place) from None
        self._remember(site, int(wanted[0]), space, size, writing=writing)

    def _remember(self, site: int, address: int, space: str, size: int, *, writing: bool) -> None:
        """The next access at this place will be in the same allocation, in all likelihood."""
        found = self.memory.table.find(address)
        if found is None or found.space not in REACHES[space] or (writing and not found.writable):
            return
        start, end = found.start, found.end
        if found.home is not None:
            if found.space != "shared":
                return
            end = start + found.window
        low = -(-start // 16) * 16
        room = end - low
        if room < size or (size > 16 and low != start):
            return
        log, span = size.bit_length() - 1, self.kernel.sites[site][3]
        whole = ((room - size - span) >> log) + 1 if room >= size + span else 0
        self.sites[site] = low, whole, ((room - size) >> log) + 1, 0

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
        try:
            self._work(number, room, mask, warp)
        except BaseException as error:  # noqa: BLE001 - it is raised again when the code has returned
            self.raised = self.raised or error
            return 1
        return 0

    def _work(self, number: int, room: int, mask: int, warp: int) -> None:
        bound, work, inputs, outputs = self.kernel.works[number]
        lanes = np.flatnonzero(mask >> np.arange(WARP) & 1)
        if not len(lanes):
            return
        threads = lanes + warp * WARP

        def column(n: int, type: Type) -> Any:
            held = held_as(type)
            words = (ctypes.c_ubyte * (WARP * type.bytes)).from_address(room + 16 * WARP * n)
            return np.ctypeslib.as_array(words).view(held)

        try:
            found = work(self, bound, threads, [column(n, type)[lanes] for n, type in enumerate(inputs)])
        except AccessFault as wrong:
            place = self.place(bound, int(threads[wrong.lane_index]))
            raise Fault(wrong.kind, str(wrong), address=wrong.address, size=wrong.size, place=place) from None
        for n, type in enumerate(outputs):
            target = column(n, type)
            values = None if found is None else found[n]
            target[lanes] = 0 if values is None else np.asarray(values).astype(target.dtype)

    @cached_property
    def environment(self) -> Environment:
        """What the driver tells every thread of the grid."""
        program = self.kernel.function.program
        dynamic, total = (self.kernel.constants[name] for name in ("dynamic_smem_size", "total_smem_size"))
        return Environment(self.memory, dynamic, total, program.target.number if program is not None else 0)

    def release(self) -> None:
        """The grid has ended."""
        if "environment" in self.__dict__:
            self.environment.release()

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
        return _unfold(self.current_cta(), self.shape.grid), _unfold(lane, self.shape.block)

    def _tick(self) -> int:
        """Time has passed: the user may have interrupted, or the budget be spent."""
        try:
            self.turns += self.kernel.TICKS
            if self.budget is not None and self.turns >= self.budget:
                said = f"the grid did not end within {self.budget} steps"
                raise Fault("step-budget", said, place=Place(self.kernel.function.name))  # noqa: TRY301
        except BaseException as error:  # noqa: BLE001 - it is raised again when the code has returned
            self.raised = self.raised or error
        return int(self.raised is not None)

    def _fault(self, kind: int, bits: int, index: int, warp: int) -> None:
        """What is wrong at an instruction, for some lanes."""
        lane = (bits & -bits).bit_length() - 1 if kind != 3 else 0
        bound = self.kernel.places[index]
        place = self.place(bound, warp * WARP + max(lane, 0))
        if kind == 1:
            error: BaseException = Fault("trap", "the kernel executed trap", place=place)
        elif kind == 2:
            error = Unsupported(
                f"'{bound.i.mnemonic}' of lanes that stand at different places, in the JIT", f"line {place.line}"
            )
        else:
            error = Fault("deadlock", "no thread can go on: the warps wait at different barriers", place=Place(place.kernel))
        self.raised = self.raised or error

    def place(self, bound: Bound, thread: int) -> Place:
        """Where an instruction stands, and which thread ran it."""
        cta = self.current_cta()
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
            self.kernel.function.name,
            line,
            text,
            _unfold(cta, self.shape.grid),
            _unfold(thread, self.shape.block),
            name,
            file,
            origin,
        )


def held_as(type: Type) -> np.dtype[Any]:
    """How Python sees the values of a type: f32 and f64 as such, the bits of anything else."""
    if type.is_float and not type.is_packed and type.bits >= 32:
        return np.dtype(f"f{type.bytes}")
    return np.dtype(f"{'i' if type.is_signed else 'u'}{type.bytes}")


def _unfold(number: int, extent: tuple[int, int, int]) -> tuple[int, int, int]:
    return number % extent[0], number // extent[0] % extent[1], number // (extent[0] * extent[1])
