"""Divergence prediction: where lanes probably diverge at a branch, the straight version is of no use."""

from __future__ import annotations

from ptxvm.algebra.types import pred
from ptxvm.engine.jit.cfg.nodes import Node
from ptxvm.engine.jit.ir.lane_values import Raw, known_lanes
from ptxvm.engine.jit.node.context import KernelContext


class DivergenceError(Exception):
    """Lanes probably diverge often at a branch."""


def expect_whole(kernel: KernelContext, node: Node, guard: Raw, *, affine: bool) -> None:
    """Raise DivergenceError if a guard differs between lanes as a constant, by loaded data, or in a loop if it is not `affine`.

    Other guards compare the number of a thread with a size: nearly all warps agree on them, and a loop diverges at its end at
    most.
    """
    if known_lanes(pred, guard, kernel.width) is not None or (kernel.plan.repeats(node) and not affine):
        raise DivergenceError
    read = node.code[-1].guard()
    if read is not None and kernel.by_memory(node.frame) >> read[0].index & 1:
        raise DivergenceError
