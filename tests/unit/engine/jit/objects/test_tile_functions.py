"""Functions for tiles of matrices are compiled once, kept on disk, and compute what NumPy does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ptxvm.algebra.types import f16, f32, s8, s32, u8
from ptxvm.engine.jit.abi.tile_product import TileProduct
from ptxvm.engine.jit.lower.tile_products import addresses_of
from ptxvm.engine.jit.objects import tile_functions
from ptxvm.machine.tensor_core import FIFTH_GENERATION

TILE = TileProduct(u8, s8, s32, 32, None)


def product(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A product of 32 rows and 8 columns by the function; what it is, and what it should be."""
    a, b = rng.integers(0, 256, (32, 32), np.uint8), rng.integers(-128, 128, (8, 32), np.int8)
    d = rng.integers(-999, 999, (32, 8), np.int32)
    wanted, out, least = a.astype(np.int32) @ b.T.astype(np.int32) + d, np.empty((32, 8), np.int32), np.zeros(40, np.uint16)
    tables = [addresses_of(each, step).astype(np.uint64) for each, step in ((a, 16), (b, 16), (d, 32))]
    function = tile_functions.tile_function(TILE)
    assert function is not None
    assert function(*(each.ctypes.data for each in (*tables, out, least)), 2, 1, 1) == 1
    return d, wanted


def test_a_function_is_kept_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    monkeypatch.setenv("PTXVM_CACHE", str(tmp_path))
    monkeypatch.setattr(tile_functions, "_FOUND", {})
    found, wanted = product(rng)
    assert (found == wanted).all()
    assert len(list(tmp_path.iterdir())) == 1
    monkeypatch.setattr(tile_functions, "_FOUND", {})
    monkeypatch.setattr(tile_functions, "_compiled", None)  # as a later process, which must not compile
    found, wanted = product(rng)
    assert (found == wanted).all()


def test_some_products_have_no_function() -> None:
    assert tile_functions.tile_function(TileProduct(f16, f16, f32, 16, FIFTH_GENERATION, finite=True)) is None
