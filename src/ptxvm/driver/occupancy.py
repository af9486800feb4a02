"""Occupancy: the blocks of a kernel that fit a multiprocessor (CUDA C++ Programming Guide, "Occupancy Calculator")."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Protocol

from ptxvm.driver.attributes import Attribute
from ptxvm.driver.context import Context
from ptxvm.driver.kernel_clusters import KernelClusters
from ptxvm.driver.results import DriverError, Result
from ptxvm.profile.occupancy import Multiprocessor, occupancy_limits

WARP = 32
GROUP = 16  # multiprocessors of a GPC, of which cards have between 14 and 18
CLUSTERS = (1, 2, 4, 8, 16)


class Kernel(Protocol):
    """What occupancy depends on."""

    carveout: int
    clusters: KernelClusters

    @property
    def most_dynamic_shared(self) -> int:
        """Bytes of dynamic shared memory that a block may have."""

    @property
    def shared(self) -> int:
        """Bytes of static shared memory."""

    @property
    def registers(self) -> int:
        """Registers of a thread."""

    @property
    def most_threads(self) -> int:
        """How many threads a block may have."""


def resident_blocks(attribute: Callable[[Attribute], int], kernel: Kernel, threads: int, dynamic: int) -> int:
    """Blocks of so many threads, with so many bytes of dynamic shared memory, that a multiprocessor holds at once."""
    shared, warps = kernel.shared + dynamic, -(-threads // WARP)
    if not 0 < threads <= attribute(Attribute.MAX_THREADS_PER_BLOCK) or dynamic > kernel.most_dynamic_shared:
        return 0
    if shared > attribute(Attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN):
        return 0
    by_registers = attribute(Attribute.MAX_REGISTERS_PER_MULTIPROCESSOR) // (warps * WARP * kernel.registers)
    return min(by_registers, *occupancy_limits(multiprocessor(attribute, kernel.carveout), threads, shared).values())


SPLITS = (0, 8, 16, 32, 64, 100, 132, 164, 196)
"""The sizes in KB that shared memory has beside its largest (CUDA C++ Programming Guide, compute capability 9.0)."""


def multiprocessor(attribute: Callable[[Attribute], int], carveout: int = -1) -> Multiprocessor:
    """What a multiprocessor holds, by the attributes of its device; a carveout is a preferred share of shared memory."""
    most = attribute(Attribute.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)
    if carveout >= 0:
        most = next((size << 10 for size in SPLITS if size << 10 >= most * carveout // 100 and size << 10 < most), most)
    return Multiprocessor(
        attribute(Attribute.MAX_BLOCKS_PER_MULTIPROCESSOR),
        attribute(Attribute.MAX_THREADS_PER_MULTIPROCESSOR),
        most,
        attribute(Attribute.RESERVED_SHARED_MEMORY_PER_BLOCK),
    )


def resident_clusters(context: Context, kernel: Kernel, threads: int, dynamic: int, size: int) -> int:
    """Clusters of so many blocks that a context holds at once: a cluster stays in one group of multiprocessors (GPC).

    DriverError for more than one block on a device without clusters.
    """
    if size > 1 and not context.device.model.has_clusters:
        raise DriverError(Result.INVALID_CLUSTER_SIZE, f"{context.device.name} has no clusters")
    blocks = resident_blocks(context.device.attribute, kernel, threads, dynamic)
    whole, rest = divmod(context.multiprocessors, GROUP)
    return whole * (GROUP * blocks // size) + rest * blocks // size


def largest_cluster(context: Context, kernel: Kernel, threads: int, dynamic: int) -> int:
    """The size of the largest cluster that fits a context, or of those that the kernel requires."""
    required, most = kernel.clusters.required, kernel.clusters.most if context.device.model.has_clusters else 1
    asked = (prod(required),) if required is not None else [size for size in CLUSTERS if size <= most]
    sizes = [size for size in asked if resident_clusters(context, kernel, threads, dynamic, size)]
    return max(sizes, default=0)


def largest_block(context: Context, kernel: Kernel, dynamic: Callable[[int], int], limit: int = 0) -> tuple[int, int]:
    """The block size with the most resident threads, and the number of such blocks that fill the multiprocessors of a context.

    `dynamic` gives the bytes of dynamic shared memory of a block of so many threads; `limit` is the most threads, if not 0.
    """
    most = min(kernel.most_threads, limit or kernel.most_threads)
    sizes = range(min(WARP, most), most + 1, WARP)
    resident = {size: resident_blocks(context.device.attribute, kernel, size, dynamic(size)) for size in sizes}
    best = max(sizes, key=lambda size: (resident[size] * size, size))
    return best, resident[best] * context.multiprocessors


__all__ = ["largest_block", "largest_cluster", "multiprocessor", "resident_blocks", "resident_clusters"]
