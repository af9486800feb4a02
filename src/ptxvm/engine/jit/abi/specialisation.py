"""Specialisations, versions and tiers: for which launches and warps code is compiled, and with how much optimisation."""

from __future__ import annotations

import enum

from ptxvm.analysis.program import Function
from ptxvm.machine.options import Check
from ptxvm.named_tuple import NamedTuple


class Tier(enum.IntEnum):
    """The effort of compilation.  Measured: half the compile time costs 0 to 20 % of speed.

    A sketch is for short launches of kernels without loops, which end before better code would be ready.
    """

    SKETCH = 0
    QUICK = 1
    BEST = 2


class VersionKind(enum.StrEnum):
    """A version of the code of a kernel, in the order in which warps come to them.

    Diverged warps continue in the masked version, and warps with affine values that wrap in the shapeless one.
    """

    FIRST = "first"
    MASKED = "masked"
    SHAPELESS = "shapeless"

    @property
    def entry(self) -> str:
        """Its entry function: that of a grid, or of a warp which comes from another version."""
        return "grid" if self is VersionKind.FIRST else "warp"


class Specialisation(NamedTuple):
    """The kernel, the shape of CTA and the bytes of dynamic shared memory that code is compiled for.

    `cluster` is None where the launch has none.  `fast` arithmetic only keeps the error bounds of the manual; `checks` are
    those that the code is instrumented for; `trusted` code checks no access; `metered` code stops when its threads have
    executed too many instructions; `profiled` code counts what it does.  `scalar` code runs one thread after the other.
    `recorded` code notes which bytes it writes and reads.  The asynchronous work of `deferred` code ends when the host chooses.
    `narrow` code runs one warp at a time even where several abreast would be faster: it is compiled soonest.  `by_warps` says
    that instrumented code orders accesses by what each warp knows of the others, not by the barriers of the whole CTA alone,
    and `by_fences` that it follows what threads tell each other by fences and strong accesses.
    """

    function: Function
    block: tuple[int, int, int]
    shared: int = 0
    fast: bool = False
    checks: frozenset[Check] = frozenset()
    trusted: bool = False
    metered: bool = False
    cluster: tuple[int, int, int] | None = None
    profiled: bool = False
    scalar: bool = False
    recorded: bool = False
    deferred: bool = False
    narrow: bool = False
    by_warps: bool = False
    by_fences: bool = False

    @property
    def plain(self) -> bool:
        """Is the code that of a usual launch, which looks for nothing and counts nothing but instructions?"""
        return not (self.checks or self.metered or self.profiled or self.deferred) and self.cluster is None

    @property
    def passes_in_registers(self) -> bool:
        """Are parameters of calls in registers?  Counts are of their loads and stores, and `init` looks at their bytes."""
        return not (self.profiled or self.metered or "init" in self.checks)
