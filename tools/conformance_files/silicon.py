"""What silicon computes: the recorded results of the functions of `.approx`, by input."""

from __future__ import annotations

from functools import cache

import exact
import numpy as np
from exact import F32

from conformance_files import FIDELITY


@cache
def recorded(function: str) -> dict[int, int]:
    """The results of a function, by input."""
    data = np.load(FIDELITY / "sfu_random.npz")
    return dict(zip(data["x"].astype(np.uint32).tolist(), data[function].tolist(), strict=True))


@cache
def edges() -> list[tuple[int]]:
    """Recorded inputs at the ends of what the functions tell apart: zeros, one, infinities, NaN, where ex2 overflows."""
    every = recorded_inputs()[0]
    ends = [x for x in every if x & 0x7FFF_FFFF in (0, F32.infinity)]
    nans = [x for x in every if exact.is_nan(x, F32)]
    ones = [x for x in every if 0x3F7F_F000 <= x < 0x3F80_1000]
    near = [x for x in every if 0x42FA_0000 <= x & 0x7FFF_FFFF < 0x4304_0000]  # 125 to 132
    great = [x for x in every if 0x7E80_0000 <= x & 0x7FFF_FFFF < 0x7F00_0000]  # whose reciprocals are the first subnormals
    return [(x,) for x in (*ends, *ones, *nans[:2], *great[:4], *near[::4])]


@cache
def recorded_inputs() -> tuple[list[int], list[int], list[int]]:
    """The recorded inputs: all, those of sizes that matter to most functions, and the ends of the range."""
    every = list(recorded("rcp"))
    return (
        every,
        [x for x in every if 0x3C00_0000 <= x & 0x7FFF_FFFF < 0x4400_0000],
        [x for x in every if not 0x0100_0000 <= x & 0x7FFF_FFFF < 0x7F00_0000],
    )
