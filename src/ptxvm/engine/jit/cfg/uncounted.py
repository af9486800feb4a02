"""Uncounted events: those that a profile leaves to the interpreter, since compiled code counts them not, or not reliably."""

from __future__ import annotations

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Bound, Function
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.engine.call_targets import called
from ptxvm.engine.jit.cfg import requirements
from ptxvm.machine.image import Image


class Uncounted(Unsupported):
    """A profile that compiled code cannot make; `what` names what it does not count."""

    def __init__(self, what: str) -> None:
        super().__init__(f"a profile of {what} on the JIT")
        self.what = what


def uncounted(image: Image, kernel: Function) -> str:
    """Names what compiled code does not count of a kernel; empty if it counts everything."""
    if image.memory.address_bits != 64:
        return "addresses of 32 bits"
    if requirements.clusters(image, kernel):
        return "clusters of CTAs"
    instructions = (bound for function in called(image, kernel) for bound in function.instructions)
    return next(filter(None, map(_uncounted, instructions)), "")


def _uncounted(bound: Bound) -> str:
    found = bound.summary
    if bound.calls:
        callee = bound.callee()
        return "calls through pointers" if callee is None else "" if callee.defined else f"calls of '{callee.name}'"
    if found.own_groups:
        return "copies of part of their bytes" if bound.operands.get("source_size") is not None else ""
    if Space.SURFACE in found.spaces or not bound.i.of.effects.isdisjoint(("tex", "tmem", "tasks")):
        return f"'{bound.i.mnemonic}'"
    return ""


__all__ = ["Uncounted", "uncounted"]
