"""Bulk copies in pieces, the same on every engine (PTX 9.7.9.25.4)."""

from __future__ import annotations

import numpy as np

from ptxvm.machine.faults import AccessFault
from ptxvm.machine.per_lane import Addresses, LaneNumbers

PIECE = 16  # bytes: sizes are multiples of it, and so are addresses


def pieces(sizes: LaneNumbers) -> tuple[LaneNumbers, Addresses]:
    """The pieces of the bulk copies of some lanes, lane by lane: the position of the lane, and the offset in its copy."""
    if (sizes % PIECE).any():
        wrong = int(np.argmax(sizes % PIECE != 0))
        said = f"a bulk copy is of a multiple of {PIECE} bytes, not {sizes[wrong]}"
        raise AccessFault("misaligned", said, lane_index=wrong)
    counts = sizes // PIECE
    whose = np.repeat(np.arange(len(sizes)), counts)
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    return whose, ((np.arange(len(whose)) - starts) * PIECE).astype(np.uint64)
