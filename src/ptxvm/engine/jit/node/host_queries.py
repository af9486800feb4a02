"""Host calls that answer queries: the space of an address, special registers of the launch, wrong branch targets."""

from __future__ import annotations

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.abi.host import Host
from ptxvm.isa.special_registers import OF_LAUNCHES
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.per_lane import Array, LaneNumbers
from ptxvm.machine.teams import TEAMS


@dataclass(frozen=True, slots=True)
class IsInSpace:
    """Host call of a kernel in clusters: is a generic address in a space (`isspacep`)?"""

    space: Space

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> list[Array]:
        """The answers for the active lanes."""
        window = host.windows.get(self.space)
        if window is not None:
            return [window.contains(values[0], threads)]
        return [host.memory.within(self.space.window, values[0])]


@dataclass(frozen=True, slots=True)
class ReplicaDistance:
    """Host call: how far from a multimem address the memory of a further device is; 0 where there is none."""

    number: int

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> list[Array]:
        """The answers for the active lanes."""
        return [TEAMS.distances(self.number, values[0])]


@dataclass(frozen=True, slots=True)
class SpecialRegisterQuery:
    """Host call: the value of a special register that is the same for all threads and is known only at run time."""

    name: str

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> list[Array]:
        """Its value, for each active lane."""
        return [np.full(len(threads), host.environment.get(self.name), np.uint64)]


@dataclass(frozen=True, slots=True)
class PhaseGoesOn:
    """Host call of deferred code: a phase of an mbarrier is not over."""

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> None:
        """Work may end."""
        host.deferral.poll(threads)


@dataclass(frozen=True, slots=True)
class NoTarget:
    """Host call: the fault of an index beyond a list of branch targets."""

    name: str
    count: int

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> None:
        """Raise the fault of the lane with the least wrong index."""
        wrong = np.where(values[0] >= self.count, values[0], np.iinfo(values[0].dtype).max)
        first = int(np.argmin(wrong))
        said = f"the index {wrong[first]} is outside the list '{self.name}' of {self.count} targets"
        raise AccessFault("invalid-branch", said, lane_index=first)


LAUNCH = {"gridid", "dynamic_smem_size", "total_smem_size", "aggr_smem_size", "current_graph_exec", *OF_LAUNCHES}
