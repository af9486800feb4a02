"""One launch, whatever engine runs it: the arguments packed, the grid run, the host's memory given back."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ptxvm.analysis.program import Function
from ptxvm.machine.builtins import Library
from ptxvm.machine.image import Image
from ptxvm.machine.launch import LaunchShape, pack_arguments
from ptxvm.machine.result import LaunchResult


@dataclass(slots=True)
class Counters:
    """What a launch did: instructions of groups, of threads, and turns of the schedule."""

    instructions: int = 0
    thread_instructions: int = 0
    turns: int = 0


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

    def launch(
        self, kernel: Function, shape: LaunchShape, parameters: int, *, shared: int, budget: int | None
    ) -> Counters:
        """Run a grid to its end; `parameters` is the address of the parameter bank, `budget` bounds the turns."""
        ...


def launch(
    engine: Engine,
    kernel: Function,
    grid: Any,
    block: Any,
    args: Sequence[Any],
    *,
    shared: int = 0,
    steps: int | None = None,
) -> LaunchResult:
    """Run a kernel to its end."""
    memory, printed = engine.image.memory, engine.library.output
    shape = LaunchShape.of(grid, block)
    shape.check(kernel)
    packed = pack_arguments(kernel.signature.parameters, args, memory, f"kernel '{kernel.name}'")
    bank = memory.allocate(max(len(packed.buffer), 1), 256, "param", "the parameters", writable=False)
    printed.clear()
    began = time.perf_counter()
    try:
        bank.bytes[: len(packed.buffer)] = packed.buffer
        counters = engine.launch(kernel, shape, bank.start, shared=shared, budget=steps)
    finally:
        packed.release()
        memory.release(bank)
    return LaunchResult(
        grid=shape.grid,
        block=shape.block,
        instructions=counters.instructions,
        thread_instructions=counters.thread_instructions,
        steps=counters.turns,
        seconds=time.perf_counter() - began,
        output="".join(printed),
    )
