"""Special registers that are the same for a whole launch (PTX 10)."""

from __future__ import annotations

from itertools import count

from ptxvm.machine.allocation import Allocation
from ptxvm.machine.memory import Memory
from ptxvm.machine.running_graph import RUNNING, RunningGraph

LAUNCHES = count(1)
WORKSPACE = 64  # bytes; CUDA's cooperative groups count the CTAs that have come to a barrier of the grid in the second word


def allocation_unit(architecture: int) -> int:
    """The granularity of a CTA's shared memory in bytes (PTX 10.30)."""
    return 256 if 30 <= architecture < 80 else 128


class Environment:
    """The special registers of one launch that do not depend on the thread.

    All CTAs of a grid make progress.  In a `cooperative` launch `%envreg1` and `%envreg2` are the halves of the address of
    a workspace for `grid.sync()`, as CUDA's runtime leaves it, and in others zero.  `%envreg3` and `%envreg4` are those of
    the record of the graph that the launch belongs to: by default the one that runs on this thread.  CTAs that are a part of a
    grid have the number of that `grid`.
    """

    def __init__(
        self, memory: Memory, dynamic: int, total: int, architecture: int, reserved: int = 0, graph: RunningGraph | None = None,
        *, cooperative: bool = True, grid: int | None = None,
    ) -> None:  # fmt: skip
        unit = allocation_unit(architecture)
        shared = -(-(total - reserved) // unit) * unit
        self.memory, self.cooperative = memory, cooperative
        self._workspace: Allocation | None = None
        graph = graph or RUNNING.get()
        self._known = {
            "gridid": next(LAUNCHES) if grid is None else grid,
            "dynamic_smem_size": dynamic,
            "total_smem_size": shared,
            "aggr_smem_size": shared + reserved,
            "current_graph_exec": graph.handle,
            "envreg3": graph.record >> 32,
            "envreg4": graph.record & 0xFFFF_FFFF,
        }

    def get(self, name: str) -> int | None:
        """The value of a special register; None for a register that is not constant in the launch."""
        if name in ("envreg1", "envreg2"):
            start = self.workspace.start if self.cooperative else 0
            return start >> 32 if name == "envreg1" else start & 0xFFFF_FFFF
        return self._known.get(name)

    @property
    def workspace(self) -> Allocation:
        """Memory that the CTAs of the grid share, allocated when it is first used."""
        if self._workspace is None:
            self._workspace = self.memory.allocate(WORKSPACE, name="the workspace of the grid")
        return self._workspace

    def release(self) -> None:
        """Release the workspace, after the grid has ended."""
        if self._workspace is not None:
            self.memory.release(self._workspace)
            self._workspace = None
