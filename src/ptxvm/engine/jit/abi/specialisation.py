"""Tiers and specialisations: what code is made for, and how much work goes into it."""

from __future__ import annotations

import enum
from typing import NamedTuple

from ptxvm.analysis.program import Function


class Tier(enum.IntEnum):
    """How much work goes into code: half the time of compilation buys, measured, 0 to 20 % of speed.

    A sketch is for short launches of kernels without loops, which are over before anything better would be made.
    """

    SKETCH = 0
    QUICK = 1
    BEST = 2


class Specialisation(NamedTuple):
    """What code is made for: a kernel, a shape of CTA, and bytes of dynamic shared memory.

    `fast` arithmetic keeps the manual's bounds and no more; `checks` is what the code looks for by itself;
    the accesses of `trusted` code are not checked; `metered` code stops where its threads have executed too many
    instructions.
    """

    function: Function
    block: tuple[int, int, int]
    shared: int = 0
    fast: bool = False
    checks: frozenset[str] = frozenset()
    trusted: bool = False
    metered: bool = False
