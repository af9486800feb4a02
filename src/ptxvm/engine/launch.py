"""One launch, whatever engine runs it: the arguments packed, the grid run, the host's memory given back."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ptxvm.analysis.program import Function
from ptxvm.diagnostics.errors import Fault, Place
from ptxvm.machine.builtins import Library
from ptxvm.machine.device_array import DeviceArray
from ptxvm.machine.image import Image
from ptxvm.machine.launch import LaunchShape, check_shared, launch_shape
from ptxvm.machine.opaque import HANDLES
from ptxvm.machine.result import LaunchResult

if TYPE_CHECKING:
    from ptxvm.engine.watching import Watch

BYTE = np.dtype(np.uint8)


class Counters:
    """What a launch did: instructions of groups, of threads, and turns of the schedule."""

    __slots__ = ("instructions", "thread_instructions", "turns")

    def __init__(self, instructions: int = 0, thread_instructions: int = 0, turns: int = 0) -> None:
        self.instructions, self.thread_instructions, self.turns = instructions, thread_instructions, turns


class Budget(NamedTuple):
    """How many turns a launch may take, and how many other grids of it took before."""

    turns: int
    spent: int = 0

    def left(self, taken: int) -> int:
        """Turns that remain for a grid that has taken some."""
        return self.turns - self.spent - taken

    def overrun(self, kernel: str) -> Fault:
        """What is raised when none remain."""
        return Fault("step-budget", f"the grid did not end within {self.turns} steps", place=Place(kernel))


class Engine(Protocol):
    """What runs the kernels of an image."""

    @property
    def image(self) -> Image:
        """The program in memory."""
        ...

    @property
    def library(self) -> Library:
        """The functions of the device, and what they printed."""
        ...

    def launch(self, kernel: Function, shape: LaunchShape, parameters: int, *, shared: int, budget: int | None) -> Counters:
        """Run a grid to its end; `parameters` is the address of the parameter bank, `budget` bounds the turns."""
        ...


def launch(
    engine: Any,
    kernel: Function,
    grid: Any,
    block: Any,
    args: Sequence[Any],
    *,
    shared: int = 0,
    steps: int | None = None,
    watch: Watch | None = None,
    how: Mapping[str, Any] | None = None,
) -> LaunchResult:
    """Run a kernel to its end: on an `Engine`, or a `WatchedEngine` where somebody watches.

    `how` is what the JIT is told beside; the interpreter has no such options.
    """
    if shared < 0:
        raise ValueError(f"shared is how many bytes of dynamic shared memory a CTA gets, not {shared}")
    if steps is not None and steps < 1:
        raise ValueError(f"steps is how many steps the launch may take, not {steps}")
    memory, printed = engine.image.memory, engine.library.output
    if not engine.image.resolve(kernel).defined:
        raise ValueError(f"the kernel '{kernel.name}' has no body")
    shape = launch_shape(grid, block)
    shape.check(kernel)
    check_shared(kernel, engine.image.declared_shared(kernel), shared)
    printed.clear()
    packed, bank = engine.image.bank(kernel).pack(args, memory), None
    try:
        bank = memory.lend(max(len(packed.data), 1), "param", "the parameters")
        began = time.perf_counter()
        bank.view(BYTE, 1).data[: len(packed.data)] = packed.data
        if watch is not None:
            from ptxvm.engine.watching import fresh, watched  # noqa: PLC0415 - only who is watched needs it

            counters = watched(engine, kernel, shape, bank.start, (shared, steps), watch, fresh(memory.table.items, args))
        elif how is None:
            counters = engine.launch(kernel, shape, bank.start, shared=shared, budget=steps)
        else:
            counters = engine.launch(kernel, shape, bank.start, shared=shared, budget=steps, given=packed.allocations, **how)
        seconds = time.perf_counter() - began
    finally:
        hand_over(args)
        if bank is not None:
            memory.take_back(bank)
        packed.release()
    return LaunchResult(
        grid=shape.grid,
        block=shape.block,
        instructions=counters.instructions,
        thread_instructions=counters.thread_instructions,
        steps=counters.turns,
        seconds=seconds,
        output="".join(printed),
        schedules=watch.schedules if watch is not None else 1,
        findings=list(watch.watcher.findings) if watch is not None else [],
    )


def hand_over(args: Sequence[Any]) -> None:
    """The kernel had these device arrays, and all surfaces: what it left in them counts as written."""
    for each in args:
        if isinstance(each, DeviceArray):
            each.given = True
    for image in list(HANDLES.values()) if HANDLES else ():
        if image.kind == "surfref" and image.source is not None:
            image.source.given = True
