"""Scalar code: may the threads of a CTA run one after the other, each to its end?

They may where no thread waits for another one, and no order of theirs can be seen.  So there are no barriers, collectives and
spin loops, no clocks, no strong accesses and fences, no writes to shared memory (which kernels for lanes in lock-step read
without a barrier), and of atomics only those whose result no instruction reads and that give the same sum in any order.  Where
lanes part by loaded data in loops, a processor often runs scalar code faster than vectors of which few lanes are active:
`run.rivals` decides.
"""

from __future__ import annotations

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.flow import special_registers
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.reductions import COMMUTATIVE
from ptxvm.engine.call_targets import called
from ptxvm.engine.data_flow import read, written
from ptxvm.engine.jit.cfg.kernel_analysis import KernelAnalysis
from ptxvm.isa.effects import Access, Verb

PORTS = frozenset({"mem", "flow", "cc"})  # of the machine, that its instructions may use


def suits(analysis: KernelAnalysis) -> bool:
    """Does a kernel have no order of threads, and loops?"""
    if analysis.spinning or analysis.unbounded or analysis.device_functions or not analysis.graph(general=False).has_loops:
        return False
    return not analysis.partial_barriers(1) and all(map(_unordered, called(analysis.image, analysis.function)))


def _unordered(function: Function) -> bool:
    """Has a function no instruction that shows in which order threads come to it?"""
    ever_read = 0
    for bound in function.instructions:
        ever_read |= read(bound)
    return all(_computes(bound) and _accesses_unordered(bound, ever_read) for bound in function.instructions)


def _computes(bound: Bound) -> bool:
    """Does an instruction concern its own thread alone, but for what it accesses?"""
    summary = bound.summary
    if summary.waits or summary.fences or summary.collective is not None or summary.generic_of is Space.SHARED:
        return False
    return bound.i.of.effects <= PORTS and not any(register.volatile for register in special_registers(bound))


def _accesses_unordered(bound: Bound, ever_read: int) -> bool:
    """Do its accesses show no order of threads?  `ever_read` are the registers that some instruction reads."""
    unseen = not written([bound]) & ever_read
    return all(_is_private(access) or (unseen and _commutes(access)) for access in bound.summary.accesses)


def _is_private(access: Access) -> bool:
    """Is it an access by which threads that are ordered do not communicate?"""
    if access.window is Space.LOCAL:
        return True
    return not access.strong and (access.verb is Verb.READ or access.window is not Space.SHARED)


def _commutes(access: Access) -> bool:
    """Is it an atomic operation that gives the same in any order?"""
    known = access.type is not None and not access.type.is_float
    return access.verb is Verb.UPDATE and access.operation in COMMUTATIVE and known and access.window is not Space.SHARED
