"""The shape of a launch: grid, block and cluster, within the limits of the hardware (PTX 2.2, CUDA's compute capabilities)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import SupportsIndex, TypeAlias, TypeVar

from ptxvm.analysis.program import Function
from ptxvm.analysis.shared import most_static
from ptxvm.diagnostics.errors import InvalidPTX
from ptxvm.isa.directives import CHIP_SHARED_BYTES, STATIC_SHARED_BYTES, TILES
from ptxvm.machine.options import extent
from ptxvm.machine.per_lane import Array
from ptxvm.named_tuple import NamedTuple
from ptxvm.syntax import tree

Extent = tuple[int, int, int]
Extents: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
"""Sizes as a caller gives them: one, or up to three."""

MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = ((1 << 31) - 1, 65535, 65535)
MAX_CLUSTER_CTAS = 16  # the most that hardware takes; 8 are portable
MAX_CLUSTER = (MAX_CLUSTER_CTAS,) * 3

Number = TypeVar("Number", int, Array)
"""One number, or an array of them."""


class ClusterError(ValueError):
    """The grid, or its kernel, has no such clusters."""


class LaunchShape(NamedTuple):
    """CTAs of a grid, threads of a CTA, and CTAs of a cluster, as (x, y, z).

    `cluster` is None where neither the launch nor the kernel says: each CTA is then a cluster of its own.  CTAs are
    numbered cluster by cluster, so that those of a cluster follow each other; without clusters x is the fastest.  The grid
    is `cooperative` if it has a workspace in which all its CTAs can meet.
    """

    grid: Extent
    block: Extent
    cluster: Extent | None = None
    cooperative: bool = True

    @classmethod
    def of(
        cls,
        grid: SupportsIndex | tuple[SupportsIndex, ...],
        block: SupportsIndex | tuple[SupportsIndex, ...],
        cluster: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    ) -> LaunchShape:
        """The shape from integers or tuples of up to three.  ValueError where the hardware would refuse it."""
        shape = cls(_extent("grid", grid, MAX_GRID), _extent("block", block, MAX_BLOCK))
        if shape.threads > MAX_THREADS:
            raise ValueError(f"block {shape.block} has {shape.threads} threads; a CTA has at most {MAX_THREADS}")
        return shape if cluster is None else shape.in_clusters(_extent("cluster", cluster, MAX_CLUSTER))

    def in_clusters(self, cluster: Extent) -> LaunchShape:
        """The same grid in clusters.  ClusterError where the hardware would refuse it."""
        if prod(cluster) > MAX_CLUSTER_CTAS:
            raise ClusterError(f"cluster {cluster} has {prod(cluster)} CTAs; a cluster has at most {MAX_CLUSTER_CTAS}")
        for axis, ctas, size in zip("xyz", self.grid, cluster, strict=True):
            if ctas % size:
                raise ClusterError(f"grid.{axis} is {ctas}, which is no multiple of the {size} CTAs of a cluster")
        return self._replace(cluster=cluster)

    def for_kernel(self, kernel: Function) -> LaunchShape:
        """The shape in which a kernel runs, in the clusters that it requires; ValueError where it forbids the shape."""
        self.check(kernel)
        required, most = required_cluster(kernel), _directive(kernel, "maxclusterrank")
        shape = self
        if required and self.cluster is None:
            if "blocksareclusters" in kernel.directives:  # the launch counts clusters (PTX 11.8.1)
                x, y, z = (count * size for count, size in zip(self.grid, required, strict=True))
                shape = self._replace(grid=(x, y, z))
            shape = shape.in_clusters(required)
        if required and required != shape.cluster:
            said = f"kernel '{kernel.name}' requires clusters of {required} (.reqnctapercluster), not {shape.cluster}"
            raise ClusterError(said)
        if shape.cluster is None and "explicitcluster" in kernel.directives:
            raise ClusterError(f"kernel '{kernel.name}' is launched in clusters only (.explicitcluster)")
        if most and most[0] < shape.cluster_size:
            said = f"kernel '{kernel.name}' takes clusters of up to {most[0]} CTAs (.maxclusterrank), not {shape.cluster_size}"
            raise ClusterError(said)
        return shape

    @property
    def threads(self) -> int:
        """Threads of a CTA."""
        return prod(self.block)

    @property
    def ctas(self) -> int:
        """CTAs of the grid."""
        return prod(self.grid)

    @property
    def cluster_extent(self) -> Extent:
        """CTAs of a cluster as (x, y, z)."""
        return self.cluster or (1, 1, 1)

    @property
    def cluster_size(self) -> int:
        """CTAs of a cluster."""
        return prod(self.cluster_extent)

    def ctaid(self, number: int) -> Extent:
        """The position of a CTA in the grid, by its number."""
        return cluster_order(number, self.grid, self.cluster_extent)

    def check(self, kernel: Function) -> None:
        """Refuse a block that `.reqntid` or `.maxntid` of the kernel does not allow (PTX 11.4)."""
        required, most = required_block(kernel), _directive(kernel, "maxntid")
        if required and required != self.block:
            raise ValueError(f"kernel '{kernel.name}' requires blocks of {required} (.reqntid), not {self.block}")
        if most and prod(most) < self.threads:
            raise ValueError(
                f"kernel '{kernel.name}' takes blocks of up to {prod(most)} threads (.maxntid), not {self.threads}"
            )


def cluster_order(number: Number, grid: Extent, cluster: Extent) -> tuple[Number, Number, Number]:
    """The positions of CTAs in a grid, by their numbers: cluster by cluster, and the CTAs of a cluster one after the other."""
    index, rank = number // prod(cluster), number % prod(cluster)
    clusters = [count // size for count, size in zip(grid, cluster, strict=True)]
    x = index % clusters[0] * cluster[0] + rank % cluster[0]
    y = index // clusters[0] % clusters[1] * cluster[1] + rank // cluster[0] % cluster[1]
    z = index // (clusters[0] * clusters[1]) * cluster[2] + rank // (cluster[0] * cluster[1])
    return x, y, z


@lru_cache(maxsize=1024)
def _known_shape(
    grid: int | tuple[int, ...], block: int | tuple[int, ...], cluster: int | tuple[int, ...] | None
) -> LaunchShape:
    return LaunchShape.of(grid, block, cluster)


def launch_shape(grid: Extents, block: Extents, cluster: Extents | None = None) -> LaunchShape:
    """`LaunchShape.of`, cached."""
    return _known_shape(extent("grid", grid), extent("block", block), None if cluster is None else extent("cluster", cluster))


def most_threads(kernel: Function) -> int:
    """The threads that a block of the kernel may have, by `.reqntid`, `.maxntid` and the hardware."""
    found = [sizes for name in ("reqntid", "maxntid") if (sizes := _directive(kernel, name))]
    return min(prod(found[0]), MAX_THREADS) if found else MAX_THREADS


def check_shared(kernel: Function, declared: int, dynamic: int) -> None:
    """Refuse too much shared memory: of variables alone (ptxas makes no code for them), or together with the launch's."""
    if declared + dynamic <= STATIC_SHARED_BYTES:
        return
    program = kernel.program
    most = most_static(program) if program is not None else STATIC_SHARED_BYTES
    if declared > most:
        device = program.target if program is not None else "the kernel"
        raise InvalidPTX(
            f"kernel '{kernel.name}' declares {declared:,} bytes of shared memory, and {device} has {most:,} for that"
        )
    if declared + dynamic > CHIP_SHARED_BYTES:
        raise ValueError(
            f"kernel '{kernel.name}' would have {declared + dynamic:,} bytes of shared memory for each CTA; "
            f"the most that there is are {CHIP_SHARED_BYTES:,}"
        )


def _extent(name: str, value: SupportsIndex | tuple[SupportsIndex, ...], limits: Extent) -> Extent:
    """Three sizes; omitted ones are 1."""
    found = extent(name, value)
    sizes = found if isinstance(found, tuple) else (found,)
    if not 1 <= len(sizes) <= len(limits):
        raise ValueError(f"{name} has one to three sizes (x, y, z), not {len(sizes)}")
    for axis, size, limit in zip("xyz", sizes, limits, strict=False):
        if not 1 <= size <= limit:
            raise ValueError(f"{name}.{axis} is {size}; it may be 1 to {limit}")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def required_block(kernel: Function) -> Extent | None:
    """The blocks that a kernel says it requires (PTX 11.4.3); None where it says none."""
    return _directive(kernel, "reqntid")


def is_of_tiles(kernel: Function) -> bool:
    """Is a kernel one of tiles?  Its launches count blocks of one thread; `.reqntid` has the threads of a CTA."""
    return _directive(kernel, "language") == (TILES, 1, 1)


def required_cluster(kernel: Function) -> Extent | None:
    """The clusters that a kernel says it requires (PTX 11.8.2); None where it says none."""
    return _directive(kernel, "reqnctapercluster")


def _directive(kernel: Function, name: str) -> Extent | None:
    node = kernel.directives.get(name)
    if node is None:
        return None
    sizes = [each.value for each in node.arguments if isinstance(each, tree.Integer)]
    x, y, z = (*sizes, 1, 1, 1)[:3]
    return x, y, z
