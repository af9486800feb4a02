"""The choice of the first version of a kernel: straight or masked, and how many warps abreast."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property, partial

from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.builder import TooWideError
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.engine.jit.node.divergent_regions import DivergenceError
from ptxvm.engine.jit.node.instrumentation import Shadow
from ptxvm.engine.jit.translate.fixed_point import translate
from ptxvm.engine.jit.translate.register_pressure import expected_registers, most_registers
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.options import Check

WIDTHS = {256: 0.75, 128: 0.8, 64: 0.85, WARP: 1.0}  # the time of a warp in code for so many lanes, about
ALONE = 2.0  # that of a warp for which there is no group, in the masked version
REGISTERS = 28  # vectors that may be live at once: the processor has 32
MOST_WARPS = 32  # of a cluster that have clocks of their own
ONE_GROUP = 1.3  # times as many where a CTA with barriers is one group, whose barriers are free: others spill all registers
HOPE = {256: 1.0, 128: 1.3, 64: 1.3}  # wider versions may need fewer than their width says, since equal parts share one ...
HOPE_OF_ONE = 2.0  # ... and one group is worth more tries


@dataclass(eq=False)
class Versions:
    """The version that runs first, with its text; `make` makes the contexts of the others."""

    make: Callable[..., KernelContext]
    kernel: KernelContext
    text: str
    last: KernelContext | None = None  # the version from which warps come to the next

    @cached_property
    def registers(self) -> int:
        """The most vector registers that are live at once in the first version."""
        return most_registers(self.kernel)

    @property
    def fits(self) -> bool:
        """Does the straight version pay off, within the registers of the processor?"""
        return self.kernel.pays_off() and self.registers <= _room(self.kernel)

    def masked(self) -> str:
        """The text of the masked version, which takes over from the straight one."""
        return self._next()

    def shapeless(self) -> str:
        """The text of the shapeless version, which takes over where an affine value wraps."""
        return self._next(shapeless=True)

    def _next(self, **how: bool) -> str:
        kernel = self.make(before=self.last or self.kernel, **how)
        text = translate(kernel)
        self.last = kernel
        return text


def choose(make: Callable[..., KernelContext], checks: frozenset[Check] = frozenset(), *, narrow: bool = False) -> Versions:
    """Choose the version that runs first; `make` makes contexts, `checks` are compiled in.

    A `narrow` one has no more than one warp abreast.
    """
    if not checks:
        return _first(make, narrow=narrow)
    shadow = Shadow(checks)
    found = _first(partial(make, shadow=shadow))
    if not shadow.fits:
        found = _first(partial(make, shadow=shadow.finer()))
    return found


def scalar(make: Callable[..., KernelContext]) -> Versions:
    """The version that runs one thread after the other; Unsupported where the kernel needs more than one."""
    kernel = make(straight=True, width=1)
    try:
        found = Versions(make, kernel, translate(kernel))
    except (DivergenceError, TooWideError):
        found = None
    if found is None or kernel.endings or any(code.leaves for code in kernel.written.values()):
        raise Unsupported(f"code of '{kernel.function.name}' for one thread at a time")
    return found


def parts_in_loops(kernel: KernelContext) -> bool:
    """May lanes part in loops, in a version that has been translated?"""
    masked = kernel.masked if not kernel.straight else kernel.endings | set(kernel.parting) | kernel.divergent_regions.inside
    return any(kernel.graph.repeats(kernel.nodes[n]) for n in masked)


def _first(make: Callable[..., KernelContext], *, narrow: bool = False) -> Versions:
    """Choose the straight version if warps probably stay whole, as wide as registers allow."""
    found = _whole_warps(make, narrow=narrow)
    if found is not None:
        return found
    kernel = make()
    if kernel.clocked and kernel.warps_together > MOST_WARPS:
        raise Unsupported(f"checks of clusters of more than {MOST_WARPS} warps, in the JIT")
    return Versions(make, kernel, translate(kernel))


def _whole_warps(make: Callable[..., KernelContext], *, narrow: bool) -> Versions | None:
    """The best straight version.  The first to be translated has the width that an estimate says, or the least."""
    one = make(straight=True)
    threads = one.threads
    if threads < WARP or one.rows.padded or one.partial_barriers:
        return None
    widths = [width for width in sorted(WIDTHS, key=partial(_time, threads // WARP)) if width <= threads]
    if narrow or one.follows_fences or _masks_are_slow(one):
        widths = [WARP]
    expected = expected_registers(one)
    known = first = next(width for width in widths if width == WARP or expected * width <= REGISTERS * WARP)
    one_warp = cache(partial(_straight, make, one))
    found = _wide(make, first, one_warp) if first > WARP else None
    if found is None or not found.fits:
        known, found = WARP, one_warp()
    if found is None or not found.kernel.pays_off():
        return None
    needed = max(1, found.registers)
    for width in widths:
        if width == known and not (width == WARP and found.kernel.endings):
            return found
        if width not in (WARP, first) and needed * width <= _hope(one, width) * known:
            wide = _wide(make, width, one_warp)
            if wide is not None and wide.fits:
                return wide
    return None


def _room(kernel: KernelContext) -> float:
    """How many vector registers may be live at once in a version."""
    return REGISTERS * (ONE_GROUP if _barriers_are_free(kernel, kernel.width) else 1)


def _hope(kernel: KernelContext, width: int) -> float:
    """Below how many vector registers, by what another version needs, one of a width is worth a try."""
    return REGISTERS * (HOPE_OF_ONE if _barriers_are_free(kernel, width) else HOPE[width])


def _masks_are_slow(kernel: KernelContext) -> bool:
    """Has a kernel masks for which only one warp is fast?

    Without mask registers a predicate is a vector of bytes; one of more than 32 lanes LLVM takes apart where another block
    needs it.  A group without barriers in between is worth that.
    """
    return kernel.runs_partial_warps and not _has_barriers(kernel) and not cpu.has("avx512f")


def _barriers_are_free(kernel: KernelContext, width: int) -> bool:
    """Is a CTA that has barriers one group in a version of a width?  Tagged code suspends at all barriers."""
    return not kernel.tagged and kernel.threads == width and _has_barriers(kernel)


def _has_barriers(kernel: KernelContext) -> bool:
    return any(node.barrier_wait for node in kernel.nodes)


def _time(warps: int, width: int) -> float:
    """The time of a CTA of so many whole warps in code for so many lanes, about."""
    alone = warps % (width // WARP)
    return (warps - alone) * WIDTHS[width] + alone * ALONE


def _wide(make: Callable[..., KernelContext], width: int, one_warp: Callable[[], Versions | None]) -> Versions | None:
    """The straight version for several warps, whose lanes part only where those of one warp do."""
    found = _straight(make, make(straight=True, width=width))
    if found is None or not (found.kernel.divergent_regions.diverging or found.kernel.parting):
        return found
    one = one_warp()
    if one is None or not found.kernel.parting.keys() <= one.kernel.parting.keys():
        return None  # warps that go different ways, as where the first one of a CTA has a part of its own
    if found.kernel.divergent_regions.diverging <= one.kernel.divergent_regions.diverging:
        return found
    return _straight(make, make(straight=True, width=width, one_warp=one.kernel))


def _straight(make: Callable[..., KernelContext], kernel: KernelContext) -> Versions | None:
    try:
        return Versions(make, kernel, translate(kernel))
    except (DivergenceError, TooWideError):
        return None
