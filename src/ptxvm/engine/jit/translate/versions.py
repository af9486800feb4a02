"""Which version of a kernel runs first, and how many warps abreast."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ptxvm.diagnostics.errors import Unsupported
from ptxvm.engine.jit.ir.builder import TooWideError
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.engine.jit.node.divergence import DivergenceError
from ptxvm.engine.jit.node.instrumentation import Shadow
from ptxvm.engine.jit.translate.fixed_point import translate
from ptxvm.engine.jit.translate.register_pressure import most_registers
from ptxvm.isa.special_registers import WARP

WIDTHS = (256, 128, 64)
REGISTERS = 28  # vectors that may live at one time: the processor has 32
HOPE = 1.3  # by how much fewer a wider version needs, since equal pieces of it share a register


@dataclass(eq=False)
class Versions:
    """The version that runs first with its text, and how the others are made."""

    make: Callable[..., KernelContext]
    kernel: KernelContext
    text: str
    last: KernelContext | None = None  # the version that warps come from to the next

    def masked(self) -> str:
        """The text of the version that warps of the straight one come to."""
        return self._next()

    def shapeless(self) -> str:
        """The text of the version where no affine value can wrap; after the masked one."""
        return self._next(shapeless=True)

    def _next(self, **how: bool) -> str:
        kernel = self.make(before=self.last or self.kernel, **how)
        text = translate(kernel)
        self.last = kernel
        return text


def choose(make: Callable[..., KernelContext], threads: int, checks: frozenset[str] = frozenset()) -> Versions:
    """The version for a CTA of some threads; `make` makes its context by options, `checks` is what its code looks for."""
    if not checks:
        return _first(make, threads)
    shadow = Shadow(checks)
    found = _first(partial(make, shadow=shadow), threads)
    if not shadow.fits:
        found = _first(partial(make, shadow=shadow.finer()), threads)
    return found


def _first(make: Callable[..., KernelContext], threads: int) -> Versions:
    """Whole warps first where it is likely that they stay whole."""
    kernel = make()
    if kernel.partial_barriers and kernel.shadow is not None:
        raise Unsupported("a quick look at a kernel in which threads wait for some others, in the JIT")
    if threads >= WARP and not kernel.partial_barriers:
        narrow = _straight(make, WARP)
        if narrow is not None and narrow.kernel.pays_off():
            needed = max(1, most_registers(narrow.kernel))
            for width in WIDTHS:
                if width <= threads and needed * width <= HOPE * REGISTERS * WARP:
                    wide = _straight(make, width)
                    if wide is not None and wide.kernel.pays_off() and most_registers(wide.kernel) <= REGISTERS:
                        return wide
            if not narrow.kernel.endings:
                return narrow
    return Versions(make, kernel, translate(kernel))


def _straight(make: Callable[..., KernelContext], width: int) -> Versions | None:
    kernel = make(straight=True, width=width)
    try:
        return Versions(make, kernel, translate(kernel))
    except (DivergenceError, TooWideError):
        return None
