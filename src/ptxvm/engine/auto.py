"""The engine that takes the JIT, and the interpreter for the kernels that need what the JIT lacks (`lacking`)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ptxvm.analysis.program import Function
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.engine.lacking import lacking
from ptxvm.engine.launch import Counters, Engine
from ptxvm.machine.builtins import Library
from ptxvm.machine.image import Image
from ptxvm.machine.launch import LaunchShape

if TYPE_CHECKING:
    from ptxvm.engine.jit.engine import Jit

log = logging.getLogger("ptxvm.engine")


class Auto:
    """Asks for the interpreter only where the JIT refuses a kernel, and says so."""

    def __init__(self, image: Image, jit: Jit, interpreter: Callable[[], Engine]) -> None:
        self.image, self.jit, self.interpreter = image, jit, interpreter

    @property
    def library(self) -> Library:
        """The functions of the device, and what they printed."""
        return self.image.library

    def launch(
        self, kernel: Function, shape: LaunchShape, parameters: int, *, shared: int = 0, budget: int | None = None, **how: Any
    ) -> Counters:
        """Run a grid to its end; `parameters` is the address of the parameter bank, `budget` bounds the turns.

        `how` is what the JIT is told beside.
        """
        reason = self.jit.supports(kernel, shape.block, shared)
        if reason is None:
            return self.jit.launch(kernel, shape, parameters, shared=shared, budget=budget, **how)
        if lacking(reason) is None:
            raise Unsupported(reason)
        log.info("'%s' runs on the interpreter: %s is not supported yet", kernel.name, reason)
        return self.interpreter().launch(kernel, shape, parameters, shared=shared, budget=budget)
