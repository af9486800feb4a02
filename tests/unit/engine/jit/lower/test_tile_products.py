"""Products of matrices in memory: small floats with scales as bf16, and half bytes with scales."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ptxvm.algebra.types import e4m3, f32, ue4m3, ue8m0
from ptxvm.engine.jit.lower.tile_products import Tiles, scaled_in_bf16
from ptxvm.engine.jit.objects.tile_functions import tile_function
from ptxvm.isa import fragments
from ptxvm.machine.tensor_core import Architecture
from ptxvm.machine.tensor_products import by_sixteen


class Host:
    """What products need of a host."""

    tile_function = staticmethod(tile_function)


def test_numbers_that_are_too_small_for_bf16_are_no_zeros():
    """1 is 2**-9 in e4m3, and the scale 0 is 2**-127: bf16 ends at 2**-133 (PTX 5.2.3)."""
    numbers, scales = np.array([[0, 1, 0x38], [0, 1, 0x38]], np.uint8), np.array([[0], [120]], np.uint8)
    found, _ = scaled_in_bf16(e4m3, numbers, ue8m0, scales)
    values = found.view(ml_dtypes.bfloat16).astype(np.float64)
    assert values[0, 0] == 0
    assert np.isnan(values[0, 1])
    assert values[0, 2] == 2.0**-127
    assert (values[1] == np.array([0, 2.0**-9, 1]) * 2.0**-7).all()


@pytest.mark.parametrize(("type", "blocks", "low", "high"), [(ue8m0, 2, 110, 140), (ue4m3, 4, 0, 126), (ue8m0, 4, 0, 254)])
def test_half_bytes_with_scales_are_multiplied_as_on_the_host(type, blocks, low, high, rng):
    rows, columns, depth = 32, 24, 64
    shape = f"m16n{columns}k{depth}"
    a, b = (fragments.halved_fragment(name, shape) for name in "ab")
    c, d = (fragments.mma_fragment(name, f32, shape) for name in "cd")
    product = fragments.Product(a, b, c, d, scaling=fragments.scaling(shape, blocks, type), core=fragments.Core.TCGEN05)
    left, right = rng.integers(0, 16, (rows, depth), np.uint8), rng.integers(0, 16, (depth, columns), np.uint8)
    added = rng.standard_normal((rows, columns)).astype(np.float32).view(np.uint32)
    scales = [rng.integers(low, high, size, np.uint8) for size in ((rows, blocks), (blocks, columns))]
    found = Tiles(Host, None, Architecture.BLACKWELL, fast=False).multiply(product, left, right, added, scales)
    assert (found == by_sixteen(product, left, right, added, [*scales])).all()
    scales[0][3, 1] = 0xFF  # no number: the function leaves the product
    assert Tiles(Host, None, Architecture.BLACKWELL, fast=False).multiply(product, left, right, added, scales) is None
