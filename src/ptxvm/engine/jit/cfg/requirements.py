"""Requirements of a kernel: functions of the device, an unbounded stack, barriers for some threads."""

from __future__ import annotations

from ptxvm.analysis.call_graph import callees_first
from ptxvm.analysis.program import Bound, Function
from ptxvm.engine.targets import called, callees
from ptxvm.machine.image import Image
from ptxvm.syntax import tree


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


# ── barriers ────────────────────────────────────────────────────────────────────────────


def partial_barriers(image: Image, kernel: Function) -> bool:
    """Has it a barrier with a count of threads, or with a number that is known only at run time?"""
    return any(_counts(bound) for each in called(image, kernel) for bound in each.instructions)


def _counts(bound: Bound) -> bool:
    if "cta" not in bound.i.of.effects:
        return False
    if "waits" not in bound.i.of.effects:  # bar.arrive
        return True
    number = bound.operands.get("a")
    return not isinstance(number, tree.Integer) or number.value >= 16 or bound.operands.get("b") is not None
