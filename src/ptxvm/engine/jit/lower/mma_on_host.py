"""Matrix multiply-accumulate (mma) on the host: a host call computes it with the model of the tensor cores."""

from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np

from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.engine import fused
from ptxvm.engine.jit.abi.host import Host
from ptxvm.isa.fragments import Product
from ptxvm.machine import warp_matrix
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.per_lane import Array, LaneNumbers
from ptxvm.machine.tensor_core import Architecture, architecture_for


@dataclass(frozen=True, slots=True)
class Multiplication:
    """Host call: a matrix product, the architecture of the tensor cores, and the registers of each matrix."""

    product: Product
    architecture: Architecture
    counts: tuple[int, ...]

    @classmethod
    def of(cls, bound: Bound, product: Product, counts: tuple[int, ...]) -> Multiplication:
        """The product of an instruction."""
        return cls(product, architecture_for(bound), counts)

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> list[Array]:
        """D = A * B + C."""
        if len(threads) < 32:
            raise AccessFault("incomplete-warp", "a matrix product needs all 32 lanes of the warp")
        ends = list(accumulate(self.counts, initial=0))
        parts = [values[first:last] for first, last in pairwise(ends)]
        return warp_matrix.multiply(self.product, self.architecture, *parts, fma=_fma)


def _fma(rounding: str, a: Array, b: Array, c: Array) -> Array:
    """A fused multiply-add of f64, for the tensor cores."""
    made: Array = fused.fma(rounding, np.dtype(np.float64), a, b, c)
    return made
