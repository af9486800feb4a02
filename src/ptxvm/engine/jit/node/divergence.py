"""Whether the lanes of a warp are likely to part at a branch: then the straight version of a kernel is no use."""

from __future__ import annotations

from ptxvm.algebra.types import pred
from ptxvm.engine.jit.cfg.nodes import Node
from ptxvm.engine.jit.ir.lane_values import Raw, known_lanes
from ptxvm.engine.jit.node.context import KernelContext


class DivergenceError(Exception):
    """Lanes part at a place where they are likely to do so often."""


def expect_whole(kernel: KernelContext, node: Node, guard: Raw, *, affine: bool) -> None:
    """Raise where lanes differ for certain, or by what memory holds, or in a loop by something that is not `affine`.

    What is left compares the number of a thread with a size, and is the same for all lanes of nearly all warps; in a loop
    lanes part at most once, at its end.
    """
    if known_lanes(pred, guard, kernel.width) is not None or (kernel.plan.repeats(node) and not affine):
        raise DivergenceError
    read = node.code[-1].guard()
    if read is not None and kernel.by_memory(node.frame) >> read[0].index & 1:
        raise DivergenceError
