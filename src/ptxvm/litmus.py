"""Litmus tests of every syntax, and what the machine makes of them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ptxvm.api import Module, load
from ptxvm.checkers.checker import Checker
from ptxvm.diagnostics.errors import Fault
from ptxvm.engine.interp.thread_stage import SingleThreadEngine
from ptxvm.engine.launch import launch
from ptxvm.engine.watching import Watch
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.options import count, count_or_none, one_of
from ptxvm.model import Test, read_tests
from ptxvm.model.kernels import KernelTest, TestLaunch, read_kernels
from ptxvm.model.translate import as_kernel

if TYPE_CHECKING:
    from ptxvm.analysis.program import Bound, Function
    from ptxvm.machine.single_thread import Stage

STEPS = 200_000  # instructions: threads that wait for each other spin
"""What takes longer on the interpreter does not end."""
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

    def explore(kernel: Function, how: TestLaunch, perform: Callable[[Stage], None]) -> None:
        launch(
            SingleThreadEngine(module.interpreter, perform), kernel, LaunchOptions(how.grid, how.block, how.shared), how.args
        )

    return read_kernels(module.programs[0], module.image, explore)


class NullChecker(Checker):
    """Checks nothing, so that a schedule may be random and a fault stays a fault."""

    def __init__(self) -> None:
        super().__init__(())

    def refused(self, fault: Fault, bound: Bound | None, thread: int) -> bool:
        """A fault is one."""
        del fault, bound, thread
        return False


class KernelRunner:
    """The machine, on which a kernel that is a litmus test runs: again and again from the first values of memory."""

    def __init__(self, module: Module, test: KernelTest) -> None:
        self.module, self.test = module, test

    def run(self, seed: int | None = None, engine: str = "interp") -> dict[str, bytes] | None:
        """What memory holds after one run, in the schedule of a seed; None where the run does not end.

        The JIT ends only what ends in every fair schedule, and its schedule is its own.
        """
        one_of("engine", engine, ("interp", "jit"))
        seed = count_or_none("seed", seed)
        how, variables = self.test.launch, [variable for variable in self.test.named_variables if variable.cta is None]
        for variable in variables:
            variable.memory[:] = np.frombuffer(variable.initial, np.uint8)
        interprets = engine == "interp"
        watch = Watch(NullChecker(), self.module.interpreter, 1, seed) if interprets else None
        chosen = self.module.interpreter if interprets else self.module.jit
        try:
            launch(chosen, how.kernel, LaunchOptions(how.grid, how.block, how.shared, STEPS), how.args, watch)
        except Fault as fault:
            if fault.kind in ("deadlock", "step-budget"):
                return None
            raise
        return {variable.name: variable.memory.tobytes() for variable in variables}

    def memory(self, final: Mapping[str, bytes]) -> dict[str, int]:
        """Memory, as the test names it."""
        return self.test.shown({name: int.from_bytes(raw, "little") for name, raw in final.items()})


class TranslatedMachine(KernelRunner):
    """The machine, on which a test of another syntax runs as a kernel; raises `Untranslatable`.

    `packed` puts the threads of a CTA in one warp, otherwise each has a warp of its own.
    """

    def __init__(self, test: Test, *, packed: bool = False) -> None:
        self.kernel = as_kernel(test, packed=packed)
        module = load(self.kernel.text)
        (kernel,) = read_module(module)
        super().__init__(module, kernel)

    def memory(self, final: Mapping[str, bytes]) -> dict[str, int]:
        """Memory and registers, as the test names them."""
        return self.kernel.state(final)


def machines(test: Test, path: str | os.PathLike[str] = "") -> list[KernelRunner]:
    """The machines on which a test runs: a kernel on that of its module, which the path names."""
    if isinstance(test, KernelTest):
        module = load(Path(path))
        return [KernelRunner(module, each) for each in read_module(module) if each.name == test.name]
    return [TranslatedMachine(test), TranslatedMachine(test, packed=True)]


def observe(machines: Sequence[KernelRunner], runs: int, seed: int = 0, engine: str = "interp") -> Mapping[State | None, int]:
    """How often each final state is seen in so many runs, on the interpreter in random schedules from a seed on."""
    seen: Counter[State | None] = Counter()
    if not machines:
        raise ValueError("there is no machine on which the test could run")
    for n in range(count("runs", runs)):
        machine = machines[n % len(machines)]
        final = machine.run(seed + n, engine)
        seen[None if final is None else tuple(sorted(machine.memory(final).items()))] += 1
    return seen
