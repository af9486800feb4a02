"""Products of matrices in panels: their bits are those of the model of the tensor cores, which hardware has been held to."""

from __future__ import annotations

import numpy as np
import pytest

from ptxvm.algebra.types import bf16, e4m3, e5m2, f16, f32, tf32
from ptxvm.engine.jit.abi.tile_product import TileProduct
from ptxvm.engine.jit.lower.tile_products import addresses_of, least_exponents
from ptxvm.engine.jit.objects.tile_functions import tile_function
from ptxvm.isa.fragments import Core, Product, mma_fragment
from ptxvm.machine import tensor_core
from ptxvm.machine.tensor_core import Architecture, unit_of
from ptxvm.machine.warpgroup_matrix import no_fma

PIECE = 16  # bytes


def product_of(type, sums, depth, columns):
    shape = f"m16n{columns}k{depth}"
    parts = (mma_fragment(name, each, shape) for name, each in zip("abcd", (type, type, sums, sums), strict=True))
    return Product(*parts, core=Core.TCGEN05)


def factors(rng, type, shape):
    """Numbers of many magnitudes, some of them zero and subnormal."""
    values = (rng.standard_normal(shape) * 2.0 ** rng.integers(-8, 6, shape) * (rng.random(shape) < 0.9)).astype(np.float32)
    if type is f16:
        return np.where(
            rng.random(shape) < 0.1, rng.integers(0, 1024, shape), values.astype(np.float16).view(np.uint16)
        ).astype(np.uint16)
    return values.view(np.uint32) if type is tf32 else (values.view(np.uint32) >> 16).astype(np.uint16)


def any_bits(rng, type, shape):
    """Numbers of any magnitude, infinities and NaN."""
    return rng.integers(0, 1 << type.bits, shape, np.uint32 if type is tf32 else np.uint16)


def in_panels(product, a, b, d, *, enabled=True, sparse=False):
    """What the function says, and D as it leaves it in words."""
    core = unit_of(product, Architecture.BLACKWELL)
    tile = TileProduct(product.a.type, product.b.type, product.d.type, product.a.shape[1], core, sparse=sparse)
    return called(tile_function(tile), a, b, d, np.zeros(len(a) + len(b), np.uint16), enabled=enabled)


def called(function, a, b, d, least, *, enabled=True):
    """The same for a function, given the least exponents of the rows of A and the columns of B."""
    found = d.astype(np.uint32)
    tables = [addresses_of(a, PIECE), addresses_of(b, PIECE), addresses_of(found, found.strides[0])[:, 0]]
    tables = [np.ascontiguousarray(each, np.uint64) for each in tables]
    out = np.empty(d.shape, np.uint32)
    pointers = [each.ctypes.data for each in (*tables, out, least)]
    return function(*pointers, len(a) // 16, len(b) // 8, enabled), found


@pytest.mark.parametrize("columns", [8, 40, 64, 256])
@pytest.mark.parametrize(("type", "sums", "depth"), [(f16, f32, 16), (f16, f16, 16), (bf16, f32, 16), (tf32, f32, 8)])
def test_the_bits_are_those_of_the_model(rng, type, sums, depth, columns):
    product = product_of(type, sums, depth, columns)
    d = factors(rng, f16, (64, columns)) if sums is f16 else factors(rng, tf32, (64, columns))
    for enabled, kind in ((True, factors), (False, factors), (True, any_bits)):
        a, b = kind(rng, type, (64, depth)), kind(rng, type, (columns, depth))
        done, found = in_panels(product, a, b, d, enabled=enabled)
        stacks = a.reshape(4, 16, depth), np.broadcast_to(b.T, (4, depth, columns)), (d * enabled).reshape(4, 16, columns)
        expected = tensor_core.multiply(product, Architecture.BLACKWELL, *stacks, no_fma).reshape(d.shape)
        assert done
        assert (found == expected).all()


@pytest.mark.parametrize("wrong", [0x7C00, 0x7E00])
@pytest.mark.parametrize("matrix", [0, 1])
def test_products_of_sparse_matrices_with_infinite_factors_are_left_and_d_stays(rng, wrong, matrix):
    """The zeros that a sparse A has got would meet them."""
    product = product_of(f16, f32, 16, 64)
    both, d = [factors(rng, f16, (64, 16)) for _ in range(2)], factors(rng, tf32, (64, 64))
    both[matrix][63, 15] = wrong
    done, found = in_panels(product, *both, d, sparse=True)
    assert not done
    assert (found == d).all()


@pytest.mark.parametrize("sums", [f32, f16])
def test_small_floats_of_any_bits_have_the_bits_of_the_model(rng, sums):
    types, rows, columns, depth = (e4m3, e5m2), 32, 40, 32
    shape = f"m16n{columns}k{depth}"
    product = Product(
        *(mma_fragment(n, t, shape) for n, t in zip("abcd", (*types, sums, sums), strict=True)), core=Core.TCGEN05
    )
    a, b = (rng.integers(0, 256, (count, depth), np.uint8) for count in (rows, columns))
    a[:16] &= 0xBF  # these are finite
    d = factors(rng, sums, (rows, columns)) if sums is f16 else factors(rng, tf32, (rows, columns))
    tile = TileProduct(f16, f16, sums, depth, unit_of(product, Architecture.BLACKWELL), small=True, packed=types)
    done, found = called(tile_function(tile), a, b, d, least_exponents(types, rows, columns))
    stacks = a.reshape(2, 16, depth), np.broadcast_to(b.T, (2, depth, columns)), d.reshape(2, 16, columns)
    assert done
    assert (found == tensor_core.multiply(product, Architecture.BLACKWELL, *stacks, no_fma).reshape(d.shape)).all()
