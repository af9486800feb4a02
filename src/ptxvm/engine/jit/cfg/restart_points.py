"""Where nodes begin beside where segments do."""

from __future__ import annotations

from ptxvm.analysis.program import Bound
from ptxvm.isa.summary import widens


def touches(bound: Bound) -> bool:
    """Does it change memory, or depend on what others did?"""
    found = bound.summary
    return found.collective is not None or found.writes or bool(found.fences) or found.polls or found.grows_stack


def after_stores(code: list[Bound]) -> list[int]:
    """Before what extends 32 bits to 64 after something was changed: code that finds it to wrap begins its node again."""
    cuts, dirty = [], False
    for n, bound in enumerate(code):
        if dirty and widens(bound.i):
            cuts.append(n)
            dirty = False
        dirty = dirty or touches(bound)
        if bound.i.of.effects & {"flow", "waits"}:
            dirty = False
    return cuts
