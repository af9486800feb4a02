"""Restart points: where a node begins so that a side exit can restart it in another version.

A side exit is taken where an affine value wraps as it is extended to 64 bits.  The node then runs again from its start, so
no instruction before that may have changed memory.
"""

from __future__ import annotations

from ptxvm.analysis.program import Bound
from ptxvm.isa.summary import widens


def touches(bound: Bound) -> bool:
    """Does it change memory, or depend on what other threads did?"""
    found = bound.summary
    return found.collective is not None or found.writes or bool(found.fences) or found.polls or found.grows_stack


def after_stores(code: list[Bound]) -> list[int]:
    """The extensions from 32 to 64 bits that come after a change of memory: each begins a node."""
    cuts, dirty = [], False
    for n, bound in enumerate(code):
        if dirty and widens(bound.i):
            cuts.append(n)
            dirty = False
        dirty = dirty or touches(bound)
        if bound.i.of.effects & {"flow", "waits"}:
            dirty = False
    return cuts
