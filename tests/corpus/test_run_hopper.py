"""Kernels of the corpus with clusters, tensor copies, mbarriers and wgmma: of nvcc and of Triton, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from modules import module

from ptxvm import DeviceArray, Swizzle, TensorMap, TensorType

ENGINES = ["interp", "jit"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_cluster_of_cooperative_groups(engine):
    """Each thread adds what lies in the other CTA; at last all threads write one sum."""
    out = np.zeros(64, np.uint32)
    module("nvcc/hopper_sm_90.ptx").kernel("cluster").launch(2, 64, [out], engine=engine)
    first = np.arange(64) + 1 + 2  # the rank of the other CTA, and the number of CTAs
    assert out[0] == 1 + 1 + 2
    assert ((out == first) | (out == first - 1 + 64))[1:].all()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_tile_of_a_matrix_there_and_back(engine, rng):
    """A tile of 32 by 32 is loaded, one is added to its first row, it is stored, and its second row is given out."""
    source = DeviceArray.from_host(rng.normal(size=(64, 96)).astype(np.float32))
    target, out = DeviceArray.from_host(np.zeros((64, 96), np.float32)), np.zeros(32, np.float32)
    maps = [TensorMap.tiled(TensorType.FLOAT32, each, (32, 32)) for each in (source, target)]
    module("nvcc/hopper_sm_90.ptx").kernel("tma2d").launch(1, 32, [*maps, 64, 16, out], engine=engine)
    tile = source.array[16:48, 64:96].copy()
    tile[0] += 1
    want = np.zeros((64, 96), np.float32)
    want[16:48, 64:96] = tile
    assert (target.array == want).all()
    assert (out == tile[1]).all()


@pytest.mark.parametrize("engine", ["interp", pytest.param("jit", marks=pytest.mark.long)])
def test_a_product_of_matrices_by_triton(engine, rng):
    """A pipeline of tensor copies and mbarriers before wgmma, for blocks of 128 by 128, with the swizzle of 128 bytes."""
    size, depth = (128, 256), 192
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((size[0], depth), (depth, size[1])))
    arrays = [DeviceArray.from_host(a), DeviceArray.from_host(b), DeviceArray(size, np.float16)]
    args = []
    for array, rows in zip(arrays, (128, 64, 128), strict=True):
        made = TensorMap.tiled(TensorType.FLOAT16, array, (64, rows), swizzle=Swizzle.B128)
        args += [made, *array.shape, array.shape[1], 1]
    kernel = module("triton/matmul_tma_sm90.ptx").kernel()
    result = kernel.launch((1, 2), 128, [*args, depth, 0, 0], shared=3 << 15 | 64, engine=engine)
    assert result.grid == (1, 2, 1)
    assert (arrays[2].array == (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)).all()
