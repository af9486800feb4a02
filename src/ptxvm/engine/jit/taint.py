"""Whether the lanes of a warp are likely to part at a branch: then the straight version of a kernel is no use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxvm.algebra.types import pred
from ptxvm.engine.jit.raw import Raw, known_lanes

if TYPE_CHECKING:
    from ptxvm.engine.jit.kernel import Kernel
    from ptxvm.engine.jit.plan import Node


class PartsError(Exception):
    """Lanes part at a place where they are likely to do so often."""


def expect_whole(kernel: Kernel, node: Node, guard: Raw, *, linear: bool) -> None:
    """Raise where lanes differ for certain, or by what memory holds, or in a loop by something that is not `linear`.

    What is left compares the number of a thread with a size, and is the same for all lanes of nearly all warps; in a loop
    lanes part at most once, at its end.
    """
    if known_lanes(pred, guard, kernel.width) is not None or (kernel.plan.repeats(node) and not linear):
        raise PartsError
    read = node.code[-1].guard()
    if read is not None and kernel.by_memory(node.frame) >> read[0].index & 1:
        raise PartsError
