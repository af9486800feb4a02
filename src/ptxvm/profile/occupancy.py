"""Occupancy: how many CTAs a multiprocessor holds at once (CUDA C++ Programming Guide, "Multiprocessor Level").

Registers limit it too; how many a thread has is not known from PTX, as ptxas gives them out.
"""

from __future__ import annotations

from ptxvm.dataclass import dataclass
from ptxvm.isa.special_registers import WARP


@dataclass(frozen=True)
class Multiprocessor:
    """What one multiprocessor of a card holds: CTAs, threads, and bytes of shared memory, of which each CTA loses some."""

    blocks: int
    threads: int
    shared: int
    reserved: int


def occupancy_limits(holds: Multiprocessor, threads: int, shared: int) -> dict[str, int]:
    """The CTAs of so many threads and bytes of shared memory that fit, by what limits them.

    The names are those of Nsight Compute, behind `launch__occupancy_limit_`.
    """
    warps = -(-threads // WARP)
    found = {"blocks": holds.blocks, "warps": holds.threads // (warps * WARP)}
    if taken := shared + holds.reserved:
        found["shared_mem"] = holds.shared // taken
    return found


__all__ = ["Multiprocessor", "occupancy_limits"]
