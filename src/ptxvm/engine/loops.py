"""Loops, as the code of a function is written: from where a branch goes back to, up to that branch."""

from __future__ import annotations

from ptxvm.analysis.flow import targets
from ptxvm.analysis.program import Bound

Loop = tuple[int, int]
"""The first and the last instruction."""


def loops(code: list[Bound]) -> list[Loop]:
    """All loops, in the order of their ends."""
    return [(min(targets(b)), n) for n, b in enumerate(code) if targets(b) and min(targets(b)) <= n]


def innermost_loops(code: list[Bound]) -> list[Loop]:
    """Those in which no other begins and ends."""
    found = loops(code)
    return [each for each in found if not any(_inside(each, other) for other in found)]


def _inside(outer: Loop, inner: Loop) -> bool:
    return inner != outer and outer[0] <= inner[0] and inner[1] <= outer[1]
