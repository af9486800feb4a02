"""Warps of compiled code that wait for columns of tensor memory, and go on when they have them (PTX 9.7.16.7.1).

A warp waits as at a barrier of its CTA, whose record says which of its lanes are released (`abi.cta_barriers`).
"""

from __future__ import annotations

import ctypes

from ptxvm.analysis.program import Bound
from ptxvm.engine.jit.abi.cta_barriers import CtaBarriers
from ptxvm.engine.jit.abi.host import Host
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.per_lane import LaneNumbers

WHOLE = (1 << WARP) - 1  # all lanes of a warp


class ColumnWaits:
    """Those of the CTAs that a host thread runs, which have so many warps."""

    def __init__(self, host: Host, warps: int) -> None:
        self.host, self.layout = host, CtaBarriers(warps)
        self.come: dict[tuple[int, int], int] = {}  # of CTA and warp, the lanes that wait for others

    def arrive(self, bound: Bound, threads: LaneNumbers, columns: int) -> None:
        """Lanes of a warp of the CTA that runs wait; when all that live have come, the warp asks for its columns.

        A part of a warp is released, and gets none.
        """
        first, numbers = int(threads[0]), threads % self.host.threads_per_cta
        warp = int(numbers[0]) // WARP
        key, record = (self.host.cta_of(first), warp), self._record()
        come = self.come.pop(key, 0) | sum(1 << number % WARP for number in numbers.tolist())
        if come != record[self.layout.of_warp("alive") + warp]:
            self.come[key] = come
        elif come == WHOLE:
            self.host.tensor_memory(bound, first).request(warp, columns)
            self.grant(bound, first)
        else:
            record[self.layout.of_warp("released") + warp] |= come

    def grant(self, bound: Bound, thread: int) -> None:
        """Release the warps of the CTA that runs for which there are columns now; `thread` is one of its threads."""
        for warp in self.host.tensor_memory(bound, thread).grant():
            self._record()[self.layout.of_warp("released") + warp] = WHOLE

    def _record(self) -> ctypes.Array[ctypes.c_uint32]:
        return (ctypes.c_uint32 * (self.layout.size // 4)).from_address(self.host.barrier_record)


__all__ = ["ColumnWaits"]
