"""Litmus tests of every syntax, and what the machine makes of them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ptxvm.api import Module, load
from ptxvm.checkers.checker import Checker
from ptxvm.diagnostics.errors import Fault
from ptxvm.engine.interp.alone import Alone
from ptxvm.engine.launch import Watch, launch
from ptxvm.model import Test, read_tests
from ptxvm.model.kernels import KernelTest, Launch, read_kernels
from ptxvm.model.translate import as_kernel

if TYPE_CHECKING:
    from ptxvm.analysis.program import Bound, Function
    from ptxvm.machine.alone import Stage

State = tuple[tuple[str, int], ...]
"""A final state, sorted by name."""


def read(path: str | os.PathLike[str]) -> list[Test]:
    """The litmus tests of a file, for `ptxvm.model.judge`: of `.litmus` and `.test` files, and of kernels in PTX.

    Raises `NotALitmusTest` where it has none, and for PTX also what `ptxvm.load` raises.
    """
    if not os.fspath(path).endswith(".ptx"):
        return read_tests(Path(path))
    return list(read_module(load(Path(path))))


def read_module(module: Module) -> list[KernelTest]:
    """The litmus tests among the kernels of a module."""

    def explore(kernel: Function, how: Launch, perform: Callable[[Stage], None]) -> None:
        launch(Alone(module.interpreter, perform), kernel, how.grid, how.block, how.args, shared=how.shared)

    return read_kernels(module.programs[0], module.image, explore)


class Nobody(Checker):
    """Checks nothing, so that a schedule may be random and a fault stays a fault."""

    def __init__(self) -> None:
        super().__init__(())

    def refused(self, fault: Fault, bound: Bound | None, thread: int) -> bool:
        """A fault is one."""
        del fault, bound, thread
        return False


class Machine:
    """The machine on which a test runs: it becomes a kernel, if it is none, and its final states are seen.

    `packed` puts the threads of a CTA in one warp, otherwise each has a warp of its own.  Raises `Untranslatable`.
    """

    def __init__(self, test: Test, *, packed: bool = False) -> None:
        self.kernel = as_kernel(test, packed=packed)
        self.module = load(self.kernel.text)
        [self.test] = read_module(self.module)

    def run(self, seed: int | None = None, engine: str = "interp") -> State | None:
        """The final state of one run, in the schedule of a seed; None where the run deadlocks."""
        how = self.test.launch
        for place in self.test.places:
            if place.cta is None:
                place.held[:] = np.frombuffer(place.first, np.uint8)
        watch = Watch(Nobody(), 1, seed) if engine == "interp" else None
        chosen = self.module.interpreter if engine == "interp" else self.module.jit
        try:
            launch(chosen, how.kernel, how.grid, how.block, how.args, shared=how.shared, watch=watch)
        except Fault as fault:
            if fault.kind == "deadlock":
                return None
            raise
        return tuple(sorted(self.kernel.state({place.name: place.held.tobytes() for place in self.test.places}).items()))


def observe(test: Test, runs: int, seed: int = 0, engine: str = "interp") -> Mapping[State | None, int]:
    """How often each final state is seen in so many runs, on the interpreter in random schedules from a seed on."""
    machines = [Machine(test), Machine(test, packed=True)]
    return Counter(machines[n % 2].run(seed + n, engine) for n in range(runs))
