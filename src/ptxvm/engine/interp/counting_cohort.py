"""A cohort that counts: it tells the counter of the launch of accesses, copies, guards and branches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import b8
from ptxvm.analysis.program import Bound
from ptxvm.engine.interp.accesses import Access, CopyInstruction
from ptxvm.engine.interp.cohort import Cohort
from ptxvm.engine.interp.lane_memory import CohortInputs
from ptxvm.engine.interp.observed_memory import ObservedMemory, Values
from ptxvm.engine.interp.ports import TextureAccess
from ptxvm.engine.interp.transfers import UnderWay
from ptxvm.isa.effects import Verb
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.per_lane import Guard, LaneNumbers, Lanes, PerLane
from ptxvm.profile.counter import APART, Counter

NOT_COUNTED = frozenset({"asynchronous", "mbarrier"})  # a copy is counted at its start; an mbarrier is no atomic of the program


class Places:
    """Where global memory lies for the counter, whatever the addresses of the host are."""

    def __init__(self) -> None:
        self._first: dict[Allocation, int] = {}
        self._end = 0

    def of(self, allocation: Allocation) -> np.int64:
        """Where an allocation begins."""
        if allocation not in self._first:
            self._first[allocation] = self._end
            self._end += -(-(allocation.end - allocation.origin) // APART) * APART
        return np.int64(self._first[allocation])


class CountingMemory(ObservedMemory):
    """Memory whose accesses are counted."""

    counter: Counter
    places: Places

    def observe(self, access: Access, verb: Verb, lanes: Lanes, address: PerLane, values: Values) -> None:
        """Count an access of a thread that waits for it."""
        if NOT_COUNTED.isdisjoint(access.attributes):
            self.count_all(access, verb, self.layout.every(lanes), address)

    def count_all(self, access: Access, verb: Verb, lanes: LaneNumbers, address: PerLane) -> None:
        """Count an access: by the state space of the access, or of the allocation that a generic address is in."""
        found: dict[Space, list[tuple[LaneNumbers, PerLane]]] = {}
        for position, (allocation, _, offsets) in self.touched_by_lane(access, lanes, address):
            space = allocation.space if access.space is Space.GENERIC else access.space.window
            first = self.places.of(allocation) if space is Space.GLOBAL else 0
            found.setdefault(space, []).append((lanes[position], offsets + first))
        layout, size = self.layout, access.type.bytes * access.count
        for space, parts in found.items():
            those, addresses = (np.concatenate(each) for each in zip(*parts, strict=True))
            self.counter.accessed(access.bound, space, verb, size, layout.warp[those], layout.lane[those], addresses)


class CountingCohort(Cohort):
    """A cohort whose work is counted."""

    mem: CountingMemory

    def __init__(self, inputs: CohortInputs, counter: Counter, places: Places) -> None:
        super().__init__(inputs, CountingMemory)
        self.counter = self.mem.counter = counter
        self.mem.places = places

    def guarded(self, bound: Bound, lanes: Lanes, guard: PerLane) -> None:
        """Count the lanes that an instruction passes by."""
        count = self.layout.count(lanes)
        on = int(np.count_nonzero(guard)) if np.ndim(guard) else count * bool(guard)
        if on < count:
            self.counter.guarded(bound, count - on)

    def texture(
        self, access: TextureAccess, lanes: Lanes, guard: Guard, operands: dict[str, Sequence[PerLane]]
    ) -> list[PerLane]:
        """Access a texture or surface, and count the warps."""
        _, those = self.layout.chosen(lanes, guard) if guard is not None else (None, lanes)
        self.counter.sampled(access.bound, self.warps_of(those))
        return super().texture(access, lanes, guard, operands)

    def copy_started(
        self, copying: CopyInstruction, lanes: LaneNumbers, target: PerLane, source: PerLane, source_size: PerLane
    ) -> None:
        """Count copies as the loads and stores that they do."""
        for size in np.unique(source_size[source_size > 0]).tolist():
            some = np.flatnonzero(source_size == size)
            self.mem.count_all(Access(copying.bound, copying.origin, b8, size), Verb.READ, lanes[some], source[some])
        self.mem.count_all(copying.target, Verb.WRITE, lanes, target)

    def transfer_started(self, begun: UnderWay) -> None:
        """Count the bytes of a bulk or tensor copy."""
        self.counter.copied(begun.copying.bound, begun.pieces.unit * len(begun.written))

    def warps_of(self, lanes: Lanes) -> int:
        """The number of warps of some lanes."""
        if lanes is None:
            return self.layout.warps
        return int(np.count_nonzero(np.bincount(self.layout.warp[lanes], minlength=1)))


__all__ = ["CountingCohort", "Places"]
