"""The order of threads: may the threads of a CTA run one after the other, and in other warps than those of the ISA?

One after the other they may run where no thread waits for another one, and no order of theirs can be seen.  So there are no
barriers, collectives and spin loops, no clocks, no strong accesses and fences, no writes to shared memory (which kernels for
lanes in lock-step read without a barrier), and of atomics only those whose result no instruction reads and that give the same
sum in any order.  Where lanes part by loaded data in loops, a processor often runs such scalar code faster than vectors of
which few lanes are active: `run.rivals` decides.

In other warps they may run where no thread knows its lane or its warp.  Barriers of the whole CTA may order them, and they may
write to shared memory, but not by volatile accesses: lanes in lock-step communicate by these.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.flow import special_registers
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.reductions import COMMUTATIVE
from ptxvm.engine.call_targets import called
from ptxvm.engine.data_flow import read, written
from ptxvm.engine.jit.cfg.divergence_sources import LANES, reads_special
from ptxvm.engine.jit.cfg.kernel_analysis import KernelAnalysis
from ptxvm.isa.effects import Access, Collective, Verb

PORTS = frozenset({"mem", "flow", "cc"})  # of the machine, that instructions of threads without an order may use ...
OF_CTAS = PORTS | {"cta", "waits", "tex"}  # ... and of threads whose warps nobody knows
OF_WARPS = LANES | {"warpid", "nwarpid"}
"""The special registers that tell the lane or the warp of a thread."""


def threads_are_independent(analysis: KernelAnalysis) -> bool:
    """Has a kernel loops, and may its threads run one after the other, each to its end?"""
    return analysis.graph(general=False).has_loops and _has_no_order(analysis, _is_independent)


def warps_are_hidden(analysis: KernelAnalysis) -> bool:
    """Can no thread tell which others are in its warp?"""
    return _has_no_order(analysis, _hides_warp)


def _has_no_order(analysis: KernelAnalysis, is_free: Callable[[Bound, int], bool]) -> bool:
    """Does nothing show an order?  `is_free` tells it of an instruction, and takes the registers that any of them reads."""
    if analysis.spinning or analysis.unbounded or analysis.device_functions or analysis.partial_barriers(1):
        return False
    return all(_all_are(is_free, each) for each in called(analysis.image, analysis.function))


def _all_are(is_free: Callable[[Bound, int], bool], function: Function) -> bool:
    ever_read = 0
    for bound in function.instructions:
        ever_read |= read(bound)
    return all(is_free(bound, ever_read) for bound in function.instructions)


def _is_independent(bound: Bound, ever_read: int) -> bool:
    """Does an instruction show no order in which threads come to it?"""
    summary = bound.summary
    if summary.waits or summary.fences or summary.collective is not None or summary.generic_of is Space.SHARED:
        return False
    own = bound.i.of.effects <= PORTS and not _is_volatile(bound)
    return own and all(
        _is_private(access) or (access.window is not Space.SHARED and _is_unseen_sum(bound, access, ever_read))
        for access in summary.accesses
    )


def _hides_warp(bound: Bound, ever_read: int) -> bool:
    """Does an instruction not show which threads are in a warp?"""
    summary = bound.summary
    if summary.fences or summary.collective not in (None, Collective.BARRIER) or _is_volatile(bound):
        return False
    if not bound.i.of.effects <= OF_CTAS or reads_special(bound, OF_WARPS):
        return False
    return all(not access.strong or _is_unseen_sum(bound, access, ever_read) for access in summary.accesses)


def _is_volatile(bound: Bound) -> bool:
    """Does it read a special register that is another one each time, as a clock?"""
    return any(register.volatile for register in special_registers(bound))


def _is_private(access: Access) -> bool:
    """Is it an access by which threads that are ordered do not communicate?"""
    if access.window is Space.LOCAL:
        return True
    return not access.strong and (access.verb is Verb.READ or access.window is not Space.SHARED)


def _is_unseen_sum(bound: Bound, access: Access, ever_read: int) -> bool:
    """Is it an atomic operation that gives the same in any order, and whose result nobody reads?"""
    known = access.type is not None and not access.type.is_float
    commutes = access.verb is Verb.UPDATE and access.operation in COMMUTATIVE and known
    return commutes and not written([bound]) & ever_read
