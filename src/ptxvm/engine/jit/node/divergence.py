"""Divergence prediction: where lanes probably diverge at a branch, the straight version is of no use."""

from __future__ import annotations

from ptxvm.algebra.types import pred
from ptxvm.engine.jit.cfg.nodes import Node
from ptxvm.engine.jit.ir.lane_values import Raw, known_lanes
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.engine.jit.node.divergent_regions import DivergenceError


def expect_whole(kernel: KernelContext, node: Node, guard: Raw, *, affine: bool) -> bool:
    """Do all warps but few agree on a guard?  Raises DivergenceError if lanes part often and meet nowhere.

    They part by loaded data, if it differs between them.  They do so too by a bound that was loaded for all of them, by a
    guard that differs as a constant, by their place in the CTA, or in a loop if it is not `affine`; but these may part within
    a closed region.  Other guards compare the number of a thread in the grid with a size: nearly all warps agree on them, and
    a loop diverges at its end at most.
    """
    read = node.code[-1].guard()
    own = read[0].index if read is not None else -1
    if own >= 0 and kernel.memory_dependent(node.frame) >> own & 1:
        if kernel.varying_memory_dependent(node.frame) >> own & 1 or not kernel.divergent_regions.add(node):
            raise DivergenceError
        return False
    differs = known_lanes(pred, guard, kernel.width) is not None or (kernel.graph.repeats(node) and not affine)
    if not differs and not (own >= 0 and kernel.place_dependent(node.frame) >> own & 1):
        return True
    if kernel.divergent_regions.add(node):
        return False
    if differs:
        raise DivergenceError
    return True
