"""Execution configurations: all that a launch asks for besides its arguments, checked.  Equal launches share one."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, cast

from ptxvm.analysis.program import Function
from ptxvm.diagnostics.errors import InvalidPTX
from ptxvm.driver.context import Context
from ptxvm.driver.module import Kernel
from ptxvm.driver.results import DriverError, Result
from ptxvm.machine.launch import ClusterError, check_shared, is_of_tiles, launch_shape, required_block
from ptxvm.machine.launch_options import LaunchOptions

if TYPE_CHECKING:
    from ptxvm.engine.jit.run.relaunch import Relaunch

ONE_THREAD = (1, 1, 1)
MOST_FITTING = 1024  # checked options of launches that a kernel remembers


class Configuration:
    """How a kernel is launched in a context; `shared` is in bytes of dynamic shared memory.

    DriverError where the kernel does not allow it.
    """

    def __init__(self, context: Context, kernel: Kernel, options: LaunchOptions) -> None:
        self.context, self.kernel, self.options = context, kernel, in_threads(kernel.function, options)
        self.life = context.life
        self._relaunch: Relaunch | None = None
        self._check()

    @property
    def has_ended(self) -> bool:
        """Has its context ended, or was it reset?"""
        return self.life is not self.context.life

    @property
    def grid(self) -> tuple[int, int, int]:
        """The extents of the grid in CTAs."""
        return cast("tuple[int, int, int]", self.options.grid)

    @property
    def block(self) -> tuple[int, int, int]:
        """The extents of a CTA in threads."""
        return cast("tuple[int, int, int]", self.options.block)

    @property
    def shared(self) -> int:
        """The bytes of dynamic shared memory."""
        return self.options.shared

    @property
    def cluster(self) -> tuple[int, int, int] | None:
        """The extents of a cluster, None if the launch names none."""
        return cast("tuple[int, int, int] | None", self.options.cluster)

    def with_grid(self, grid: tuple[int, int, int]) -> Configuration:
        """The same with another grid."""
        return Configuration(self.context, self.kernel, self.options._replace(grid=grid))

    def as_cooperative(self, cooperative: bool) -> Configuration:  # noqa: FBT001 - the value of an attribute
        """The same with CTAs that may wait for each other by `grid.sync()`, or without."""
        return Configuration(self.context, self.kernel, self.options._replace(cooperative=cooperative))

    def in_clusters(self, cluster: tuple[int, int, int] | None) -> Configuration:
        """The same in clusters."""
        return Configuration(self.context, self.kernel, self.options._replace(cluster=cluster))

    @property
    def relaunch(self) -> Relaunch | None:
        """The quick path of a launch that was short before; None where there is none."""
        found = self._relaunch
        if found is None or not found.valid:
            found = self._relaunch = self.kernel.kernel.ready(self.options)
        return found

    def _check(self) -> None:
        asked, fitting = self.options, self.kernel.fitting
        if asked in fitting:
            return
        if not self.context.device.model.has_clusters and prod(self.cluster or ()) > 1:
            raise DriverError(Result.INVALID_CLUSTER_SIZE, f"{self.context.device.name} has no clusters")
        try:
            launch_shape(self.grid, self.block, self.cluster).for_kernel(self.kernel.function)
            check_shared(self.kernel.function, self.kernel.shared, self.shared)
        except InvalidPTX as wrong:
            raise DriverError(Result.INVALID_PTX, str(wrong)) from wrong
        except ClusterError as wrong:
            raise DriverError(Result.INVALID_CLUSTER_SIZE, str(wrong)) from wrong
        except ValueError as wrong:
            raise DriverError(Result.INVALID_VALUE, str(wrong)) from wrong
        if len(fitting) >= MOST_FITTING:
            fitting.clear()
        fitting.add(asked)


def in_threads(kernel: Function, asked: LaunchOptions) -> LaunchOptions:
    """The options with the threads of a CTA.  A kernel of tiles is launched with blocks of one (CUDA Programming Guide 2.4)."""
    if (block := required_block(kernel)) is None or not is_of_tiles(kernel):
        return asked
    if asked.block not in (ONE_THREAD, block):
        said = f"kernel '{kernel.name}' is one of tiles: it is launched with blocks of (1, 1, 1), not {asked.block}"
        raise DriverError(Result.INVALID_VALUE, said)
    return asked._replace(block=block)


__all__ = ["Configuration"]
