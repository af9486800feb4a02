"""The JIT engine: kernels compiled when they are first launched with a shape of CTA."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from ptxvm.analysis.program import Function
from ptxvm.diagnostics.errors import Crash, Unsupported
from ptxvm.engine.jit import refusals
from ptxvm.engine.jit.calls import Calls
from ptxvm.engine.jit.kernel import FIELDS, Kernel
from ptxvm.engine.jit.native import Code, Tier, made
from ptxvm.engine.jit.sieve import Sieve
from ptxvm.engine.jit.versions import Versions, choose
from ptxvm.engine.jit.watched import Look, WatchedCalls
from ptxvm.engine.launch import Counters
from ptxvm.machine.builtins import Library
from ptxvm.machine.image import Image
from ptxvm.machine.launch import LaunchShape
from ptxvm.machine.window import Window

GRID = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)


@dataclass(eq=False)
class Compiled:
    """A kernel for one shape of CTA: its translations, and the code."""

    versions: Versions

    @property
    def kernel(self) -> Kernel:
        """The version that runs first."""
        return self.versions.kernel

    @cached_property
    def native(self) -> Code:
        """The code."""
        return made(self.versions.text, "grid")

    @cached_property
    def grid(self) -> Any:
        """The function that runs some CTAs."""
        return GRID(self.native.address("grid"))

    @cached_property
    def twin(self) -> Code:
        """The version without shapes, for warps in which a linear value wraps."""
        return made(self.versions.shapeless(), "warp", Tier.QUICK)

    @cached_property
    def masked(self) -> Code:
        """The version for warps whose lanes have parted."""
        return made(self.versions.masked(), "warp", Tier.QUICK)


class Jit:
    """Runs the kernels of an image."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self._compiled: dict[Any, Compiled] = {}

    @cached_property
    def library(self) -> Library:
        """The functions of the device, and what they printed."""
        return Library(self.image.memory)

    @cached_property
    def sieve(self) -> Sieve:
        """What looks quickly whether the checkers have anything to find."""
        return Sieve(self)

    def supports(self, kernel: Function) -> str | None:
        """Why this engine cannot run a kernel; None where it can."""
        function = self.image.resolve(kernel)
        reason = refusals.reason(self.image, function)
        if reason is None:
            try:
                self.compiled(function, (32, 1, 1), 0)
            except Unsupported as lacking:
                return lacking.feature
        return reason

    def compiled(
        self, kernel: Function, block: tuple[int, int, int], shared: int, checks: frozenset[str] = frozenset()
    ) -> Compiled:
        """The code of a kernel; `shared` is the dynamic shared memory in bytes, `checks` what the code looks for."""
        key = (kernel, block, shared, checks)
        if key not in self._compiled:
            if (reason := refusals.reason(self.image, kernel)) is not None:
                raise Unsupported(reason)
            size = self.image.shared_size(kernel, shared)
            constants = {"dynamic_smem_size": shared, "total_smem_size": size}

            threads = block[0] * block[1] * block[2]
            make = partial(Kernel, self.image, kernel, block, size, constants)
            self._compiled[key] = Compiled(choose(make, threads, checks))
        return self._compiled[key]

    def launch(
        self, kernel: Function, shape: LaunchShape, parameters: int, *, shared: int = 0, budget: int | None = None,
        look: Look | None = None,
    ) -> Counters:  # fmt: skip
        """Run a grid to its end; `parameters` is the address of the parameter bank, `look` is who watches."""
        function = self.image.resolve(kernel)
        compiled = self.compiled(function, shape.block, shared, look.checks if look is not None else frozenset())
        translation, memory = compiled.kernel, self.image.memory
        windows = {"shared": Window(memory, "shared", translation.shared_size, np.zeros(shape.threads, np.int64))}
        if translation.uses_local:
            windows["local"] = Window(memory, "local", translation.stack_size, np.arange(shape.threads))
        try:
            return self._run(compiled, shape, parameters, windows, budget, look)
        finally:
            for window in windows.values():
                window.release()

    def _run(
        self, compiled: Compiled, shape: LaunchShape, parameters: int, windows: dict[str, Window], budget: int | None,
        look: Look | None,
    ) -> Counters:  # fmt: skip
        translation = compiled.kernel
        calls = (Calls if look is None else WatchedCalls)(translation, shape, self.image.memory, windows, budget)
        calls.library = self.library if look is None else look.library
        record = np.zeros(len(FIELDS), np.uint64)
        others = {
            name: TWIN(lambda *arguments, name=name: self._other(compiled, name, record, calls, arguments))
            for name in ("masked", "twin")
        }
        fields = {
            "params": parameters,
            "shared": windows["shared"].allocation.start,
            "local": windows["local"].allocation.start if "local" in windows else 0,
            "check": _address(calls.check),
            "function": _address(calls.function),
            "fault": _address(calls.fault),
            "tick": _address(calls.tick),
            **{name: _address(function) for name, function in others.items()},
            "outside": _address(calls.outside),
            **dict(zip(("nctaid.x", "nctaid.y", "nctaid.z"), shape.grid, strict=True)),
        }
        for name, value in fields.items():
            record[FIELDS.index(name)] = value
        if isinstance(calls, WatchedCalls) and look is not None:
            look.begin(calls, record)
        calls.current_cta = lambda: int(record[FIELDS.index("cta")])
        warps = np.empty(translation.warps * translation.record_size + 64, np.uint8)
        start = -(-warps.ctypes.data // 64) * 64
        states = np.zeros(translation.warps, np.int32)
        try:
            failed = compiled.grid(record.ctypes.data, calls.sites.ctypes.data, start, states.ctypes.data, 0, shape.ctas)
        finally:
            calls.release()
        if calls.raised is not None:
            raise calls.raised
        if look is not None:
            look.end(record)
        if failed:
            raise Crash(f"the compiled kernel '{translation.function.name}' stopped and nobody knows why")
        return Counters(turns=calls.turns)

    def _other(self, compiled: Compiled, name: str, record: Any, calls: Calls, arguments: tuple[Any, ...]) -> int:
        """The first warp that needs another version waits until that is compiled."""
        try:
            address = getattr(compiled, name).address("warp")
            record[FIELDS.index(name)] = address
            return int(TWIN(address)(*arguments))
        except BaseException as error:  # noqa: BLE001 - it is raised again when the code has returned
            calls.raised = calls.raised or error
            return -2


TWIN = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 3, *[ctypes.c_int] * 5)


def _address(function: Any) -> int:
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)
