"""The function that multiplies tiles of matrices: what names it, and how it is called."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TypeAlias

from ptxvm.algebra.types import Type
from ptxvm.machine.tensor_core import Accumulation
from ptxvm.named_tuple import NamedTuple

HEIGHT, WIDTH = 16, 8  # of a tile
MOST_ROWS, MOST_COLUMNS = 128, 256  # of a product
CALL = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 5, *[ctypes.c_int] * 3)
TileFunction: TypeAlias = Callable[[int, int, int, int, int, int, int, int], int]
"""`f(a, b, d, out, least, rows, columns, enabled)`: five addresses of tables, the tiles along M and N, and whether D counts.

A and B are given by the address of each piece of 16 bytes along K, D by that of each row of words; `least` has the exponents
below which a small number of each row of A and column of B counts as having that one.  Of half bytes it has the registers of
the scales, those of the tiles along M and then those along N.  0 where the function leaves the product.
"""


class TileProduct(NamedTuple):
    """A product of tiles, `depth` deep: A and B of the types `a` and `b`, added to `sums`.

    A product of floats is added by a `core`.  `small` numbers come as wider floats, or in bytes of the types `packed`; of a
    `sparse` A half of the elements at most are not zero; `finite` is `.satfinite`; `fast` is for numerics within the bounds of
    the manual.  `scales` are the type of the scales of half bytes, and how many blocks of a row have one.
    """

    a: Type
    b: Type
    sums: Type
    depth: int
    core: Accumulation | None
    small: bool = False
    sparse: bool = False
    finite: bool = False
    fast: bool = False
    packed: tuple[Type, Type] | None = None
    scales: tuple[Type, int] | None = None
