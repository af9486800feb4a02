"""Occupancy, by the limits of cards in the CUDA C++ Programming Guide ("Compute Capabilities")."""

from __future__ import annotations

import pytest

from ptxvm.profile.occupancy import Multiprocessor, occupancy_limits

KIB = 1024
SM_90, SM_75 = Multiprocessor(32, 2048, 228 * KIB, KIB), Multiprocessor(16, 1024, 64 * KIB, 0)


@pytest.mark.parametrize(
    ("card", "threads", "shared", "expected"),
    [
        (SM_90, 256, 0, {"blocks": 32, "warps": 8, "shared_mem": 228}),
        (SM_90, 33, 75 * KIB, {"blocks": 32, "warps": 32, "shared_mem": 3}),  # a warp and a lane take two warps
        (SM_75, 1024, 33 * KIB, {"blocks": 16, "warps": 1, "shared_mem": 1}),
        (SM_75, 32, 0, {"blocks": 16, "warps": 32}),  # no shared memory, no limit by it
    ],
)
def test_limits(card, threads, shared, expected):
    assert occupancy_limits(card, threads, shared) == expected
