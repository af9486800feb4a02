"""Products of matrices in memory by functions for tiles; small floats are converted, and sparse matrices filled, before."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cache, partial

import numpy as np

from ptxvm.algebra.types import Type, bf16, f16, f32, s32
from ptxvm.engine.jit.abi.host import Host
from ptxvm.engine.jit.abi.tile_product import HEIGHT, MOST_COLUMNS, MOST_ROWS, WIDTH, TileFunction, TileProduct
from ptxvm.engine.jit.values import mma_half_bytes
from ptxvm.engine.jit.values.small_floats import WIDENED, least_exponent
from ptxvm.isa import fragments
from ptxvm.isa.fragments import Product, Scaling
from ptxvm.isa.shared_matrix import PIECE
from ptxvm.isa.special_registers import WARP
from ptxvm.machine import tensor_core
from ptxvm.machine.per_lane import Array
from ptxvm.machine.tensor_core import FORMATS, Accumulation, Architecture, Matrices, unit_of
from ptxvm.machine.tensor_engine import InPlace
from ptxvm.machine.warp_matrix import where
from ptxvm.machine.window import Window

BIAS, NAN = 127, 0x7FC0  # of bf16
TILE = f"m{HEIGHT}n{WIDTH}k{mma_half_bytes.DEPTH}"  # of half bytes
MOST_CALLS = 256  # of products that are remembered
SMALL = 8  # bits of small floats, which come to a function as wider ones


@cache
def in_f16(type: Type) -> Matrices:
    """Every bit pattern of a small float as an f16, which holds it exactly."""
    values, _ = tensor_core.table(type, type, tensor_core.SHIFT.get(type.name, 0))
    with np.errstate(all="ignore"):
        found: Matrices = values.astype(np.float16).view(np.uint16)
    return found


def scaled_in_bf16(type: Type, matrix: Matrices, of_scales: Type, scales: Matrices) -> tuple[Matrices, Array]:
    """Rows of small floats times the power of two of each row, as bf16, and the least exponent of each row.

    Where bf16 does not hold them exactly, their exponents are such that the function leaves the product: what would become
    zero is a NaN.
    """
    values, _ = tensor_core.table(type, type, tensor_core.SHIFT.get(type.name, 0))
    factors, _ = tensor_core.table(of_scales, of_scales, 0)
    with np.errstate(all="ignore"):
        numbers = values[matrix]
        found = (numbers * factors[scales]).astype(np.float32).view(np.uint32) >> np.uint32(16)
    found[(found & 0x7FFF == 0) & (numbers != 0)] = NAN
    return found.astype(np.uint16), least_of_scales(type, scales[:, 0])


def in_pairs(matrix: Matrices) -> Matrices:
    """Half bytes, two in a byte."""
    found: Matrices = np.ascontiguousarray(matrix[:, ::2] | matrix[:, 1::2] << 4)
    return found


def tile_of_half_bytes(product: Product) -> TileProduct | None:
    """The tile of a product of half bytes whose blocks have scales; None where there is none."""
    scaling, depth = product.scaling, product.b.shape[0]
    if scaling is None or depth != mma_half_bytes.DEPTH or product.sparsity is not None or product.d.type is not f32:
        return None
    return TileProduct(product.a.type, product.b.type, f32, depth, None, scales=(scaling.a.type, scaling.a.shape[1]))


def registers_of_scales(place: Array, scales: Matrices) -> Array:
    """The registers of the scales of all tiles; `place` has the lane and the byte of each scale of a tile."""
    tiles = scales.reshape(-1, *place.shape).astype(np.uint32)
    found = np.zeros((len(tiles), WARP), np.uint32)
    for block in range(place.shape[1]):
        lanes, bytes_ = np.divmod(place[:, block], 4)
        found[:, lanes] |= tiles[:, :, block] << (8 * bytes_).astype(np.uint32)
    return found


def least_of_scales(type: Type, scales: Matrices) -> Array:
    """The least exponents of rows of small floats with some scales."""
    least = scales.astype(np.int64) + FORMATS[type.name][1]  # a scale has the bias of bf16
    return least.clip(0, 2 * BIAS).astype(np.uint16)


def addresses_of(matrix: Array, step: int) -> Array:
    """The addresses of every so many bytes of the rows of a matrix in memory."""
    first, along = np.arange(len(matrix)) * matrix.strides[0], np.arange(0, matrix.strides[0], step)
    found: Array = matrix.ctypes.data + first[:, None] + along
    return found


def least_exponents(types: tuple[Type, Type], rows: int, columns: int) -> Array:
    """The least exponents of the rows of A and the columns of B, where they come in bytes; 0 for wider floats."""
    return np.repeat([least_exponent(type) if type.name in WIDENED else 0 for type in types], (rows, columns)).astype(np.uint16)


def _called(function: TileFunction, tables: Sequence[Array], least: Array, *, enabled: bool) -> bool:
    of_a, of_b, of_d = (np.ascontiguousarray(each, np.uint64) for each in tables)
    if len(of_d) > MOST_ROWS or len(of_b) > MOST_COLUMNS:
        return False
    out = np.empty((len(of_d), len(of_b)), np.uint32)
    a, b, d, there, exponents = (each.ctypes.data for each in (of_a, of_b, of_d, out, least))
    return bool(function(a, b, d, there, exponents, len(of_d) // HEIGHT, len(of_b) // WIDTH, enabled))


def _call(
    function: TileFunction, tables: Sequence[Array], places: tuple[int, int, int, int, int], tiles: tuple[int, int],
    enabled: bool,  # noqa: FBT001 - `InPlace`
) -> bool:  # fmt: skip
    """Call a function for tables at some places, which stay as long as the call may come."""
    del tables
    return bool(function(*places, *tiles, enabled))


class Tiles:
    """Products by functions for tiles, on an architecture; `fast` for numerics within the bounds of the manual."""

    def __init__(self, host: Host, window: Window, architecture: Architecture, *, fast: bool) -> None:
        self.host, self.window, self.architecture, self.fast = host, window, architecture, fast

    def function(
        self, product: Product, types: tuple[Type, Type], depth: int, *, small: bool = False,
        packed: tuple[Type, Type] | None = None,
    ) -> TileFunction | None:  # fmt: skip
        """The function for a product whose factors come as floats or integers of some types, or are `packed` in bytes."""
        if product.c.type is not product.d.type or product.operation != "mul" or product.a.matrices > 1:
            return None
        core: Accumulation | None = None
        if product.d.type is not s32:
            core = unit_of(product, self.architecture)
            if core.converted or core.group > 1 or product.d.type not in (f16, f32) or types[0] is not types[1]:
                return None
        sparse = product.sparsity is not None
        return self.host.tile_function(
            TileProduct(*types, product.d.type, depth, core, small, sparse, product.finite, self.fast, packed)
        )

    def there(self, product: Product) -> TileFunction | None:
        """The function for factors that are read where they lie, or for a copy of them; of a sparse A the whole one."""
        types, depth = (product.a.type, product.b.type), product.b.shape[0]
        if product.scaling is not None:
            return None
        if product.d.type is s32 or types[0].bits > SMALL:
            return self.function(product, types, depth)
        return self.function(product, (f16, f16), depth, small=True, packed=types)

    def on_copies(self, product: Product) -> TileFunction | None:
        """The function for a product whose factors are read where they lie, or from copies that have their scales."""
        if product.scaling is None:
            return self.there(product)
        if product.a.halved:
            wanted = tile_of_half_bytes(product)
            return None if wanted is None else self.host.tile_function(wanted)
        one = product.scaling.a.shape[1] == 1 and product.sparsity is None
        return self.function(product, (bf16, bf16), product.b.shape[0], small=True) if one else None

    def in_place(self, product: Product, a: Array, b: Array, d: Array) -> InPlace | None:
        """The code for a product, given where the pieces of A and B and the rows of D lie."""
        function = self.there(product)
        if function is None or len(d) > MOST_ROWS or len(b) > MOST_COLUMNS:
            return None
        least = least_exponents((product.a.type, product.b.type), len(d), len(b))
        a, b, d = (np.ascontiguousarray(each, np.uint64) for each in (a, b, d))
        room, tiles = self.host.plan_tables.room, (len(d) // HEIGHT, len(b) // WIDTH)
        places = a.ctypes.data, b.ctypes.data, d.ctypes.data, room.ctypes.data, least.ctypes.data
        return partial(_call, function, (a, b, d, room, least), places, tiles)

    def multiply(
        self, product: Product, left: Matrices, right: Matrices, added: Matrices, further: Sequence[Matrices] = ()
    ) -> Matrices | None:
        """D = A * B + C for matrices of the elements' bits; None where there is no function, or it leaves the product.

        `further` are the metadata of A, and the scales of A and B.
        """
        if product.a.type.bits < SMALL and product.d.type is s32:
            return None
        if product.a.halved:
            return self._of_half_bytes(product, left, right.T, added, further)
        types, small = (product.a.type, product.b.type), product.a.type.bits <= SMALL and product.d.type is not s32
        a, b, least = left, right.T, np.zeros(len(left) + right.shape[1], np.uint16)
        if product.scaling is not None:
            if product.scaling.a.shape[1] > 1:
                return None
            types = bf16, bf16
            a, b, least = self._scaled(product, product.scaling, a, b, further[-2:])
        elif small:
            a, b = in_f16(types[0])[a], in_f16(types[1])[b]
            least[: len(a)], least[len(a) :] = (least_exponent(type) for type in types)
            types = f16, f16
        function = self.function(product, types, product.b.shape[0], small=small)
        if function is None:
            return None
        if product.sparsity is not None:
            a = tensor_core.filled(product.sparsity, a[None], further[0][None], product.b.shape[0])[0]
        a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
        found: Matrices = added.astype(np.uint32)
        tables = addresses_of(a, PIECE), addresses_of(b, PIECE), addresses_of(found, found.strides[0])[:, 0]
        return found if _called(function, tables, least, enabled=True) else None

    def _of_half_bytes(
        self, product: Product, a: Matrices, b: Matrices, added: Matrices, scales: Sequence[Matrices]
    ) -> Matrices | None:
        """The product of half bytes whose blocks have scales."""
        wanted = tile_of_half_bytes(product)
        function = None if wanted is None else self.host.tile_function(wanted)
        if function is None or product.scaling is None:
            return None
        found: Matrices = added.astype(np.uint32)
        tile = fragments.scaling(TILE, product.scaling.a.shape[1], product.scaling.a.type)
        of_a, of_b = where(tile.a)[0], where(tile.b)[0].T
        held = registers_of_scales(of_a, scales[0]), registers_of_scales(of_b, np.ascontiguousarray(scales[1].T))
        a, b = in_pairs(a), in_pairs(b)
        tables = addresses_of(a, PIECE), addresses_of(b, PIECE), addresses_of(found, found.strides[0])[:, 0]
        return found if _called(function, tables, np.concatenate(held), enabled=True) else None

    def _scaled(
        self, product: Product, scaling: Scaling, a: Matrices, b: Matrices, scales: Sequence[Matrices]
    ) -> tuple[Matrices, Matrices, Array]:
        """The factors of scaled blocks as bf16, and their least exponents."""
        left, of_rows = scaled_in_bf16(product.a.type, a, scaling.a.type, scales[0])
        right, of_columns = scaled_in_bf16(product.b.type, b, scaling.b.type, scales[1].T)
        return left, right, np.concatenate((of_rows, of_columns))

    def remembered(self, key: Hashable, make: Callable[[], list[InPlace | None]]) -> list[InPlace | None]:
        """What was made for a key, in this launch, or is made now."""
        known = self.host.plan_tables.calls
        if key not in known:
            if len(known) >= MOST_CALLS:
                known.clear()
            known[key] = make()
        return known[key]

    def addresses_of_pieces(self, lane: int, addresses: Array) -> Array:
        """Where pieces of 16 bytes of shared memory lie in the memory of this machine."""
        return self.window.places(addresses, PIECE, lane)
