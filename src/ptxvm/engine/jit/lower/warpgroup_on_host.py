"""Products of a warpgroup (wgmma) on the host: a host call of each warp reads shared memory and multiplies."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.abi.host import Host
from ptxvm.engine.jit.ir.lane_values import Raw
from ptxvm.engine.jit.lower.tile_products import Tiles
from ptxvm.isa.special_registers import WARP
from ptxvm.isa.warpgroup import WarpgroupProduct
from ptxvm.machine import warpgroup_matrix
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.per_lane import Array, LaneNumbers
from ptxvm.machine.tensor_core import Architecture, architecture_for

WORD = np.dtype(np.uint32)


@dataclass(frozen=True, slots=True)
class WarpgroupMultiplication:
    """Host call: a product, the architecture of the tensor cores, and how many operands each part has.

    `fast` is for numerics within the bounds of the manual.
    """

    spec: WarpgroupProduct
    architecture: Architecture
    counts: tuple[int, ...]
    fast: bool

    @classmethod
    def of(
        cls, bound: Bound, spec: WarpgroupProduct, parts: Sequence[Sequence[Value]], *, fast: bool
    ) -> tuple[WarpgroupMultiplication, list[tuple[Type, Raw]]]:  # fmt: skip
        """The product of an instruction whose operands have some values each, and all of these values."""
        inputs = [(each.type, each.raw) for part in parts for each in part]
        return cls(spec, architecture_for(bound), tuple(map(len, parts)), fast), inputs

    def check(self, threads: LaneNumbers) -> None:
        """AccessFault unless a whole warp multiplies."""
        if len(threads) < WARP:
            raise AccessFault("incomplete-warp", "a matrix product needs all 32 lanes of the warp")

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> list[Array]:
        """D = A * B + D."""
        self.check(threads)
        d, a, (b, enabled), *further = (values[first:last] for first, last in pairwise(accumulate(self.counts, initial=0)))
        window = host.windows[Space.SHARED]

        def read(_: int, addresses: Array) -> Array:
            try:
                view, index = window.resolve(WORD, addresses, 4, np.repeat(threads[:1], len(addresses)), writing=False)
            except AccessFault as wrong:
                raise wrong.at_lane(0) from None  # which reads for its warp
            found: Array = view[index]
            return found

        warps = threads[:1] % host.threads_per_cta // WARP
        words = [each.view(np.uint32) for each in d]
        return warpgroup_matrix.multiply(
            self.spec, self.architecture, warps, words, a, b, enabled.astype(np.bool_), further, read,
            faster=Tiles(host, window, self.architecture, fast=self.fast).multiply,
        )  # fmt: skip
