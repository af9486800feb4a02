"""Misuse of barriers: lanes of one warp that wait at different ones, or not all of which come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ptxvm.analysis.program import Bound
from ptxvm.machine.events import Threads

WARP = 32


def aligned(bound: Bound) -> bool:
    """Must all lanes of a warp execute this together?  `bar` is `barrier….aligned` (PTX 9.7.13.1)."""
    return bound.node.opcode == "bar" or "aligned" in bound.node.words


def diverged(groups: Sequence[tuple[Bound, Threads]], size: int) -> Iterator[tuple[Bound, int, str]]:
    """Warps that did not come whole to one aligned barrier: the instruction, a lane, and what is wrong."""
    together: dict[Bound, list[Threads]] = {}
    for bound, threads in groups:
        together.setdefault(bound, []).append(threads)
    for bound, parts in together.items():
        if not aligned(bound):
            continue
        threads = np.concatenate(parts)
        warps, first, counts = np.unique(threads // size * 64 + threads % size // WARP, return_index=True, return_counts=True)
        for warp, at, count in zip(warps.tolist(), first.tolist(), counts.tolist(), strict=True):
            lanes = min(WARP, size - warp % 64 * WARP)
            if count < lanes:
                said = f"{count} of the {lanes} lanes of a warp came to this barrier, which needs all of them together"
                yield bound, int(threads[at]), said
