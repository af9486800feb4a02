"""Residency: how many CTAs of a grid are resident at once, which is how far they run interleaved or in step."""

from __future__ import annotations

from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.isa.special_registers import WARP

MOST_THREADS = 1 << 18  # of CTAs that are resident at once ...
MOST_BYTES = 1 << 30  # ... and of their records, shared and local memory
MOST_IN_STEP = 64  # CTAs that run a grid-stride loop in step ...
BYTES_IN_STEP = 1 << 26  # ... and bytes of their records, shared and local memory


def most_resident(kernel: KernelContext) -> int:
    """The most CTAs that are resident at once: more than one if they may wait for each other."""
    one_by_one = kernel.follows_threads and not kernel.runs_beside
    if kernel.cluster_size == 1 and (not kernel.fair or one_by_one):
        return 1
    if one_by_one:  # their tags tell one cluster from those before it
        return kernel.cluster_size
    clusters = min(MOST_THREADS // kernel.threads, MOST_BYTES // _size(kernel)) // kernel.cluster_size
    return max(1, clusters) * kernel.cluster_size


def most_in_step(kernel: KernelContext) -> int:
    """The most CTAs that run in step; 1 where none shall."""
    return max(1, min(MOST_IN_STEP, BYTES_IN_STEP // _size(kernel))) if kernel.pauses else 1


def _size(kernel: KernelContext) -> int:
    """Bytes of the records, shared and local memory of a resident CTA."""
    local = kernel.local_stride * kernel.threads if kernel.uses_local else 0
    saved = kernel.saved_room * kernel.warps * WARP if kernel.graph.shared else 0
    return kernel.cta_size + kernel.shared_stride + local + saved
