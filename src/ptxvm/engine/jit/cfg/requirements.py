"""Requirements of a kernel: functions of the device, the stack, local memory, clusters, barriers for some threads."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from ptxvm.algebra.asynchronous import AsyncKind
from ptxvm.algebra.state_space import Space
from ptxvm.analysis.call_graph import callees_first
from ptxvm.analysis.flow import registers_in, special_registers, variables_in
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Register
from ptxvm.engine.call_targets import called, callees
from ptxvm.isa.effects import Collective, Verb
from ptxvm.machine.image import Image
from ptxvm.syntax import tree

ASYNCHRONOUS = {"tasks", "tmem"}  # ports of work that goes on beside threads
LARGEST = 8  # bytes of an element of interleaved memory
OF_OTHER_WARPS = (Collective.WARPGROUP, Collective.COLUMNS)  # collectives of a warp that wait for others


def device_functions(image: Image, kernel: Function) -> frozenset[str]:
    """The names of the functions that a kernel calls and no module defines; the device may provide them."""
    named = (bound.callee() for each in called(image, kernel) for bound in each.instructions if bound.calls)
    return frozenset(symbol.name for symbol in named if symbol is not None and not image.resolve(symbol).defined)


def unbounded(image: Image, kernel: Function) -> bool:
    """Is the depth of its stack unknown: does it use `alloca`, pointers to functions, or recursion?"""
    functions = list(called(image, kernel))
    if any(b.summary.grows_stack or b.summary.indirect for f in functions for b in f.instructions):
        return True

    def inner(function: Function) -> list[Function]:
        return [each for b in function.instructions if b.calls for each in callees(image, b)]

    return callees_first([image.resolve(kernel)], inner) is None


# ── local memory ────────────────────────────────────────────────────────────────────────


def local_grain(functions: Sequence[Function]) -> int:
    """The grain in bytes in which local memory can be interleaved: the smallest element that is accessed; else 0.

    The functions are the kernel and those that it calls, as they are translated.  It cannot be where a generic address may
    reach local memory, or where a call passes something in memory, or to a function of the device: these need the memory of
    a thread in one piece.
    """
    sizes = set()
    for bound in (bound for function in functions for bound in function.instructions):
        if bound.summary.grows_stack or bound.summary.generic_of is Space.LOCAL or _passes_in_memory(bound):
            return 0
        for access in bound.summary.accesses:
            if access.window is Space.LOCAL:
                sizes.add(LARGEST + 1 if access.verb is Verb.UPDATE or access.type is None else access.type.bytes)
    return min(sizes) if sizes and max(sizes) <= LARGEST else 0


def _passes_in_memory(bound: Bound) -> bool:
    """Does it pass an argument or a result of a call in memory, or take one from there; or call what has no code here?"""
    if bound.calls and ((callee := bound.callee()) is None or not callee.defined):
        return True
    kernel, own = bound.function, (symbol for operand in bound.node.operands for symbol in variables_in(operand, bound))
    parameters = kernel.signature.parameters if kernel is not None and kernel.entry else ()
    return any(symbol.space is Space.PARAM and symbol not in parameters for symbol in own)


# ── clusters ────────────────────────────────────────────────────────────────────────────


def clusters(image: Image, kernel: Function) -> bool:
    """Does the kernel depend on clusters?"""
    return any(_of_cluster(bound) for each in called(image, kernel) for bound in each.instructions)


def _of_cluster(bound: Bound) -> bool:
    summary = bound.summary
    meets = summary.collective in (Collective.CLUSTER_BARRIER, Collective.CLUSTER_ARRIVAL)
    reaches = summary.maps_cluster or any(access.space is Space.SHARED_CLUSTER for access in summary.accesses)
    return meets or reaches or summary.cancels or any(each.of_cluster for each in special_registers(bound))


def asks_spaces(image: Image, kernel: Function) -> bool:
    """May its threads ask in which windows addresses lie?"""
    return any(bound.summary.asks_space for each in called(image, kernel) for bound in each.instructions)


def cancels(image: Image, kernel: Function) -> bool:
    """May its threads cancel clusters of the grid that have not begun?"""
    return any(bound.summary.cancels for each in called(image, kernel) for bound in each.instructions)


# ── asynchronous work ────────────────────────────────────────────────────────────────────


def works_asynchronously(image: Image, kernel: Function) -> bool:
    """Has it work that goes on beside its threads?"""
    return any(ASYNCHRONOUS & bound.i.of.effects for each in called(image, kernel) for bound in each.instructions)


def defers_products(image: Image, kernel: Function) -> bool:
    """Can each wait for products (wgmma) write their registers: are they in the function of all products, and of no module?"""
    functions = list(called(image, kernel))
    multiplying = [each for each in functions if accumulators(each)]
    waiting = [each for each in functions if any(bound.summary.awaits is AsyncKind.PRODUCT for bound in each.instructions)]
    here = {*multiplying, *waiting}
    return len(here) <= 1 and not any(register.of_module for each in here for register in accumulators(each))


def accumulators(function: Function) -> list[Register]:
    """The registers that asynchronous products of a function change, in order."""
    products = (b for b in function.instructions if b.i.of.updates and ASYNCHRONOUS & b.i.of.effects)
    named = (registers_in(b.operands[name], b) for b in products for name in b.i.of.updates)
    return list(dict.fromkeys(chain.from_iterable(named)))


# ── barriers ────────────────────────────────────────────────────────────────────────────


def partial_barriers(image: Image, kernel: Function) -> bool:
    """Has it a barrier with a count of threads, with a number known only at run time, of the cluster or of a warpgroup?

    Waits for columns of tensor memory are such barriers, too.
    """
    return any(_counts(bound) for each in called(image, kernel) for bound in each.instructions)


def _counts(bound: Bound) -> bool:
    if "cluster" in bound.i.of.effects or bound.summary.collective in OF_OTHER_WARPS:
        return True
    if "cta" not in bound.i.of.effects:
        return False
    if "waits" not in bound.i.of.effects:  # bar.arrive
        return True
    number = bound.operands.get("a")
    return not isinstance(number, tree.Integer) or number.value >= 16 or bound.operands.get("b") is not None
