"""Parameters that a kernel only reduces into: all accesses through one are a commutative operation whose result nothing reads.

What they leave depends on no order of threads, but for the rounding of floats, which PTX leaves open.  Partial results that
begin with the neutral element of the operation can be joined by it.
"""

from __future__ import annotations

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.analysis.flow import reads_and_writes
from ptxvm.analysis.outputs import NONE, reaches_memory, sources, used, written
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Variable
from ptxvm.isa.effects import Access, Verb
from ptxvm.named_tuple import NamedTuple

COMMUTATIVE = frozenset({"add", "and", "or", "xor", "min", "max"})
OWN = frozenset({Space.SHARED, Space.LOCAL, Space.CONST})  # memory that no parameter points to


class Reduction(NamedTuple):
    """An operation on elements of a type, whose width is a power of two."""

    operation: str
    type: Type


def joinable(function: Function) -> frozenset[Bound]:
    """The atomic operations of a kernel whose partial results can be joined."""
    known, through = sources(function), reductions(function)
    atomics = (bound for bound in function.instructions if through and bound.summary.having(Verb.UPDATE))
    return frozenset(bound for bound in atomics if not used(bound, known).isdisjoint(through))


def reductions(function: Function) -> dict[Variable, Reduction]:
    """The parameters that a kernel only reduces into, with the operation.

    There are none where a function is called, or an address comes from elsewhere than one parameter: it may be memory of any.
    """
    known, found, others = sources(function), dict[Variable, set[Reduction]](), set[Variable]()
    ever_read = 0
    for bound in function.instructions:
        ever_read |= reads_and_writes(bound)[0]
    for bound in function.instructions:
        if not _reaches_arrays(bound):
            continue
        through = NONE if bound.calls else used(bound, known)
        if len(through) != 1:
            return {}
        (parameter,) = through
        if (each := _reduction(bound, ever_read)) is None:
            others.add(parameter)
        else:
            found.setdefault(parameter, set()).add(each)
    return {parameter: min(each) for parameter, each in found.items() if len(each) == 1 and parameter not in others}


def _reaches_arrays(bound: Bound) -> bool:
    """Does an instruction, or its callee, access memory that parameters may point to?"""
    return reaches_memory(bound) and (bound.calls or not bound.summary.spaces <= OWN)


def _reduction(bound: Bound, ever_read: int) -> Reduction | None:
    """The reduction that an instruction is; None where it is none, or some instruction reads its result."""
    (access, *more) = bound.summary.accesses or (None,)
    if access is None or more or any(1 << register.index & ever_read for register in written(bound)):
        return None
    return _of(access)


def _of(access: Access) -> Reduction | None:
    if access.verb is not Verb.UPDATE or access.type is None or access.operation not in COMMUTATIVE or access.count != 1:
        return None
    plain = not access.type.is_packed and access.type.bits in (32, 64)
    if not plain or (access.type.is_float and access.operation != "add"):
        return None
    return Reduction(access.operation, access.type)
