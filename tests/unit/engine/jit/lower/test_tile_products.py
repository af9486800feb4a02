"""Small floats with scales as bf16: what bf16 does not hold is no zero, which would be added as such."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from ptxvm.algebra.types import e4m3, ue8m0
from ptxvm.engine.jit.lower.tile_products import scaled_in_bf16


def test_numbers_that_are_too_small_for_bf16_are_no_zeros():
    """1 is 2**-9 in e4m3, and the scale 0 is 2**-127: bf16 ends at 2**-133 (PTX 5.2.3)."""
    numbers, scales = np.array([[0, 1, 0x38], [0, 1, 0x38]], np.uint8), np.array([[0], [120]], np.uint8)
    found, _ = scaled_in_bf16(e4m3, numbers, ue8m0, scales)
    values = found.view(ml_dtypes.bfloat16).astype(np.float64)
    assert values[0, 0] == 0
    assert np.isnan(values[0, 1])
    assert values[0, 2] == 2.0**-127
    assert (values[1] == np.array([0, 2.0**-9, 1]) * 2.0**-7).all()
