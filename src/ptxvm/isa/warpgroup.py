"""Products of a warpgroup (`wgmma.mma_async`): the product of each of its warps (PTX 9.7.15.5)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from ptxvm.algebra.types import Type
from ptxvm.dataclass import dataclass
from ptxvm.isa import fragments
from ptxvm.isa.fragments import Core, Product
from ptxvm.isa.shared_matrix import Factor

ROWS = 16  # of A and D that a warp computes
WARPS = 4  # of a warpgroup


@dataclass(frozen=True)
class WarpgroupProduct:
    """The product of a warp: 16 rows of A, in registers or in shared memory, and B in shared memory.

    `transposed` says of A and of B whether they are MN-major, `negated` whether their elements change their sign.
    """

    product: Product
    in_registers: bool
    transposed: tuple[bool, bool] = (False, False)
    negated: tuple[bool, bool] = (False, False)

    def a(self, warp: int) -> Factor:
        """The rows of A of one of the four warps."""
        rows, depth = self.product.a.shape
        return Factor(warp * ROWS, rows, depth, self.product.a.width, self.transposed[0])

    @property
    def b(self) -> Factor:
        """The whole of B."""
        depth, columns = self.product.b.shape
        return Factor(0, columns, depth, self.product.b.width, self.transposed[1])


@cache
def product(shape: str, d: Type, a: Type, b: Type, *, sparse: bool, finite: bool, operation: str) -> Product:
    """The product of a warp: fragments as of `mma`, with the columns of the warpgroup."""
    _, n, k = fragments.dimensions(shape)
    own = f"m{ROWS}n{n}k{k}"
    stored = fragments.half_as_deep(own) if sparse else own
    made = fragments.mma_fragment
    whole = Product(
        made("a", a, stored), made("b", b, own), made("c", d, own), made("d", d, own), operation, finite, core=Core.WGMMA
    )
    return replace(whole, sparsity=fragments.sparsity(a, own, paired=False)) if sparse else whole
