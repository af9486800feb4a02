"""What a kernel needs, as far as its code shows: what it calls, a stack without bounds, and which barriers it has."""

from __future__ import annotations

from collections.abc import Iterator

from ptxvm.analysis.program import Bound, Function
from ptxvm.engine.jit.plan import GROWS, callees
from ptxvm.machine.image import Image
from ptxvm.syntax import tree


def called(image: Image, function: Function) -> Iterator[Function]:
    """A kernel, and the functions that it calls by name."""
    seen, work = set(), [function]
    while work:
        each = image.resolve(work.pop())
        if each in seen:
            continue
        seen.add(each)
        yield each
        for bound in each.instructions:
            if bound.node.opcode == "call":
                work += callees(image, bound)


def asks(image: Image, kernel: Function) -> frozenset[str]:
    """The functions that a kernel calls and no module defines: the device may have them."""
    named = (bound.callee() for each in called(image, kernel) for bound in each.instructions if bound.node.opcode == "call")
    return frozenset(symbol.name for symbol in named if symbol is not None and not image.resolve(symbol).defined)


def unbounded(image: Image, kernel: Function) -> bool:
    """Does nobody know how deep its stack gets?  It takes memory as it goes, calls through pointers, or itself."""
    return any(b.node.opcode in GROWS or _points(b) for f in called(image, kernel) for b in f.instructions) or _recurs(
        image, kernel, (), set()
    )


def _points(bound: Bound) -> bool:
    return bound.node.opcode == "call" and "flow" in bound.i.of.effects and bound.operands.get("func") is None


def _recurs(image: Image, function: Function, above: tuple[Function, ...], seen: set[Function]) -> bool:
    if function in above:
        return True
    if function in seen:  # by another way, which would have told
        return False
    seen.add(function)
    inner = {each for b in function.instructions if b.node.opcode == "call" for each in callees(image, b)}
    return any(_recurs(image, each, (*above, function), seen) for each in inner)


# ── barriers ────────────────────────────────────────────────────────────────────────────


def meets(image: Image, kernel: Function) -> bool:
    """Is one of the barriers for so many threads, or is it unknown which one it is?"""
    return any(_counts(bound) for each in called(image, kernel) for bound in each.instructions)


def _counts(bound: Bound) -> bool:
    if "cta" not in bound.i.of.effects:
        return False
    if "waits" not in bound.i.of.effects:  # bar.arrive
        return True
    number = bound.operands.get("a")
    return not isinstance(number, tree.Integer) or number.value >= 16 or bound.operands.get("b") is not None
