"""What programs and kernels ask of a kernel: its attributes as the runtime tells them, and its occupancy."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import c_int32, c_size_t
from typing import Protocol

from ptxvm.analysis.program import Function
from ptxvm.driver.kernel_clusters import EXTENTS, ClusterAttribute as Of
from ptxvm.driver.models import Model
from ptxvm.driver.occupancy import Kernel as OccupyingKernel, resident_blocks


class Kernel(OccupyingKernel, Protocol):
    """What the attributes tell."""

    @property
    def constant(self) -> int:
        """Bytes of variables in constant memory."""

    @property
    def local(self) -> int:
        """Bytes of local memory of a thread."""

    @property
    def architecture(self) -> int:
        """The architecture that the PTX is for: 90 for sm_90."""


class FunctionAttributes(ctypes.Structure):
    """cudaFuncAttributes."""

    _fields_ = (
        ("shared", c_size_t), ("constant", c_size_t), ("local", c_size_t), ("most_threads", c_int32), ("registers", c_int32),
        ("ptx", c_int32), ("binary", c_int32), ("cached", c_int32), ("most_dynamic_shared", c_int32), ("carveout", c_int32),
        ("must_have_clusters", c_int32), ("cluster", c_int32 * 3), ("policy", c_int32), ("not_portable", c_int32),
        ("reserved", c_int32 * 16),
    )  # fmt: skip


def attributes_of(kernel: Kernel, model: Model) -> bytes:
    """The attributes of a kernel on a model of devices, for which its code is compiled."""
    clusters, (major, minor) = kernel.clusters.values, model.capability
    return bytes(FunctionAttributes(
        shared=kernel.shared, constant=kernel.constant, local=kernel.local, most_threads=kernel.most_threads,
        registers=kernel.registers, ptx=kernel.architecture, binary=10 * major + minor,
        most_dynamic_shared=kernel.most_dynamic_shared, carveout=kernel.carveout,
        must_have_clusters=clusters[Of.SIZE_MUST_BE_SET], cluster=tuple(clusters[each] for each in EXTENTS),
        policy=clusters[Of.SCHEDULING_POLICY_PREFERENCE], not_portable=clusters[Of.NON_PORTABLE_SIZE_ALLOWED],
    ))  # fmt: skip


class ModuleFacts:
    """The facts of the kernels of a module, for kernels that ask (`machine.image.KernelFacts`)."""

    def __init__(self, kernels: Mapping[str, Kernel], model: Model, limits: Mapping[int, int]) -> None:
        self.kernels, self.model, self.values, self.limits = kernels, model, model.attributes(), limits

    def attributes(self, kernel: Function) -> bytes:
        """The attributes of a kernel."""
        return attributes_of(self.kernels[kernel.name], self.model)

    def limit(self, number: int) -> int | None:
        """A limit of the context, None where there is none of that number."""
        return self.limits.get(number)

    def resident_blocks(self, kernel: Function, threads: int, dynamic: int) -> int:
        """Blocks of a kernel that a multiprocessor holds."""
        return resident_blocks(lambda number: self.values.get(number, 0), self.kernels[kernel.name], threads, dynamic)


__all__ = ["Kernel", "ModuleFacts", "attributes_of"]
