"""Grid-stride loops: loops whose threads advance by a multiple of the number of threads of the grid.

A warp that runs such a loop alone touches a few lines in each stride of the whole grid, which may be in a page of its own.
The CTAs of a grid read memory as a stream only if they are in step.
"""

from __future__ import annotations

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.flow import bits, special_registers
from ptxvm.analysis.program import Bound, Function
from ptxvm.engine.data_flow import data_flow, dependent, written
from ptxvm.engine.loops import innermost_loops
from ptxvm.isa.effects import Verb

# Spaces whose accesses are no stream of memory.
NEAR = frozenset({Space.PARAM, Space.CONST, Space.SHARED, Space.LOCAL, Space.TEXTURE})


def grid_strides(function: Function) -> frozenset[Bound]:
    """The branches at the ends of innermost grid-stride loops, without barriers and calls, that access global memory."""
    code = function.instructions
    flows = data_flow(code)
    sizes = 0
    for bound, (_, writes) in zip(code, flows, strict=True):
        if any(register.name == "nctaid" for register in special_registers(bound)):
            sizes |= writes
    if not sizes:
        return frozenset()
    sizes |= dependent(flows, sizes)
    return frozenset(code[last] for first, last in innermost_loops(code) if _strides(code[first : last + 1], sizes))


def _strides(body: list[Bound], sizes: int) -> bool:
    """Does a loop access global memory, and advance by a size of the grid, which is in one of the registers `sizes`?

    Atomics take a lane after the other: they, not memory, take the time of a loop.
    """
    if any("waits" in b.i.of.effects or b.calls for b in body):
        return False
    if any(access.verb is Verb.UPDATE for b in body for access in b.summary.accesses):
        return False
    if not any(access.window not in NEAR for b in body for access in b.summary.accesses):
        return False
    flows, own = data_flow(body), written(body)
    for reads, writes in flows:
        if reads & sizes & ~own and any(dependent(flows, register) & register for register in bits(writes & own)):
            return True
    return False
