"""Sources of divergence: the registers of a function that depend on loaded data, or on the place of a thread in its CTA.

Sets of registers are masks.  A register depends on a source directly, or by the registers that its value is computed from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import pred
from ptxvm.analysis.flow import bit_of, changes, reads_and_writes, special_registers
from ptxvm.analysis.program import Bound, Function

LOADING = frozenset({"mem", "warp", "cta"})
"""The ports whose results may differ from lane to lane."""

LANES = frozenset({"laneid", "lanemask_eq", "lanemask_lt", "lanemask_le", "lanemask_gt", "lanemask_ge"})
"""The special registers that tell the lane of a thread ..."""

PLACES = LANES | {"tid"}
"""... and those that tell its place in its CTA."""


def memory_dependent(code: Sequence[Bound], into: int = -1) -> int:
    """The registers that depend on values that are loaded `into` some registers, or that come from other lanes."""
    return dependent_on(code, lambda bound: _loads(bound) and bool(changes(bound) & into))


def lane_dependent(code: Sequence[Bound]) -> int:
    """The registers that depend on the place of a thread in its CTA."""
    return dependent_on(code, lambda bound: reads_special(bound, PLACES))


def place_dependent(function: Function, lanes: int) -> int:
    """The registers of those in `lanes` that do not depend on the place of the CTA.

    A predicate counts, too, if some part of it does not: whatever the CTA, `tid.x > 0 && x < width` differs in a warp.
    """
    code = function.instructions
    predicates = sum(bit_of(register) for register in function.registers if register.type is pred)
    own = lanes & ~dependent_on(code, lambda bound: reads_special(bound, frozenset({"ctaid"})))
    return own | dependent_on(code, lambda bound: bool(changes(bound) & predicates & own), predicates)


def dependent_on(code: Sequence[Bound], is_source: Callable[[Bound], bool], through: int = -1) -> int:
    """The registers that depend on the results of sources, by way of registers in `through`."""
    flows = []
    for bound in code:
        changed = changes(bound)
        if changed:  # a guarded instruction may leave a register as it is: that counts as read
            flows.append((reads_and_writes(bound)[0], changed, is_source(bound)))
    found, grown = -1, 0
    while grown != found:
        found = grown
        for reads, changed, begins in flows:
            if begins or reads & grown:
                grown |= changed & through
    return found


def _loads(bound: Bound) -> bool:
    """Does an instruction give what memory or other lanes hold?  A parameter is the same for all lanes."""
    summary = bound.summary
    return bool(bound.i.of.effects & LOADING) and Space.PARAM not in summary.spaces and not summary.converts_address


def reads_special(bound: Bound, names: frozenset[str]) -> bool:
    """Does an instruction read one of some special registers?"""
    return any(register.name.removeprefix("%").partition(".")[0] in names for register in special_registers(bound))
