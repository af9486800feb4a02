"""Thread block clusters of a kernel: the sizes that it requires or allows (driver API, `cuFuncSetAttribute`).

The directives of the kernel say some of it, and a client the rest.
"""

from __future__ import annotations

from enum import IntEnum
from math import prod

from ptxvm.analysis.program import Function
from ptxvm.driver.results import DriverError, Result
from ptxvm.machine.launch import MAX_CLUSTER_CTAS, required_cluster

PORTABLE = 8  # blocks of a cluster that any device with clusters runs
POLICIES = range(3)  # CUclusterSchedulingPolicy: default, spread, load balancing


class ClusterAttribute(IntEnum):
    """The attributes of a kernel that are about clusters (CUfunction_attribute)."""

    SIZE_MUST_BE_SET = 10
    REQUIRED_WIDTH = 11
    REQUIRED_HEIGHT = 12
    REQUIRED_DEPTH = 13
    NON_PORTABLE_SIZE_ALLOWED = 14
    SCHEDULING_POLICY_PREFERENCE = 15


A = ClusterAttribute
EXTENTS = (A.REQUIRED_WIDTH, A.REQUIRED_HEIGHT, A.REQUIRED_DEPTH)


class KernelClusters:
    """What a kernel says of its clusters, and what a client has said."""

    def __init__(self, function: Function) -> None:
        declared = required_cluster(function)
        self.declared = declared is not None
        self.values = dict.fromkeys(A, 0) | dict(zip(EXTENTS, declared or (0, 0, 0), strict=True))
        self.values[A.SIZE_MUST_BE_SET] = int("explicitcluster" in function.directives)
        self.decides = declared is not None  # may it change or refuse a launch that asks for no clusters?  Most kernels do not

    def set(self, which: ClusterAttribute, value: int) -> None:
        """Set an attribute; DriverError where the kernel has said it itself, or it has no such value."""
        if which in EXTENTS and self.declared:
            raise DriverError(Result.NOT_PERMITTED, "the code of the kernel says which clusters it requires")
        good = {A.NON_PORTABLE_SIZE_ALLOWED: value in (0, 1), A.SCHEDULING_POLICY_PREFERENCE: value in POLICIES}
        if not good.get(which, which in EXTENTS and value >= 0):
            raise DriverError(Result.INVALID_VALUE, f"attribute {which} of a kernel cannot be set to {value}")
        self.values[which], self.decides = value, True

    def take(self, of: KernelClusters) -> None:
        """Take what a client has said of the same code on another device."""
        self.values, self.decides = of.values.copy(), of.decides

    @property
    def required(self) -> tuple[int, int, int] | None:
        """The extents of the clusters that the kernel requires; None where it requires none, or a client has not set all."""
        x, y, z = (self.values[each] for each in EXTENTS)
        return (x, y, z) if x and y and z else None

    @property
    def most(self) -> int:
        """How many blocks a cluster may have."""
        return MAX_CLUSTER_CTAS if self.values[A.NON_PORTABLE_SIZE_ALLOWED] else PORTABLE

    def chosen(self, asked: tuple[int, int, int] | None) -> tuple[int, int, int] | None:
        """The clusters of a launch that asks for some, or for none; DriverError where the kernel does not allow them."""
        if asked is None and not self.decides:
            return None
        extents = tuple(self.values[each] for each in EXTENTS)
        if any(extents) and not all(extents):
            said = f"the extents {extents} of the required clusters are neither all 0 nor all positive"
            raise DriverError(Result.INVALID_CLUSTER_SIZE, said)
        if asked is not None and self.required not in (None, asked):
            raise DriverError(Result.INVALID_CLUSTER_SIZE, f"the kernel requires clusters of {self.required}, not {asked}")
        cluster = asked or self.required
        if cluster is not None and prod(cluster) > self.most:
            said = f"a cluster of the kernel has up to {self.most} blocks, not {prod(cluster)}"
            more = "; an attribute of the kernel allows more" if self.most == PORTABLE else ""
            raise DriverError(Result.INVALID_CLUSTER_SIZE, said + more)
        return asked if self.declared else cluster  # the engine knows what the code says


__all__ = ["EXTENTS", "ClusterAttribute", "KernelClusters"]
