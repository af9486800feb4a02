"""Gather, scatter and atomics of the lanes of a cohort: the port `mem` over the machine's memory and its windows.

A guard is resolved first: `load`, `store` and `atomic` select the lanes, then `gather`, `scatter` and `update` access
memory for them; `update` goes by `update_element`.  Subclasses that watch or replace accesses override the latter four.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.state_space import Space
from ptxvm.dataclass import dataclass
from ptxvm.engine.interp.accesses import Access, Update
from ptxvm.engine.interp.lanes import LaneLayout, spread
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.cluster_queue import ClusterQueue
from ptxvm.machine.environment import Environment
from ptxvm.machine.faults import AccessFault, PlacedFault
from ptxvm.machine.launch import LaunchShape
from ptxvm.machine.memory import Memory
from ptxvm.machine.per_lane import Guard, LaneNumbers, Lanes, PerLane
from ptxvm.machine.teams import TEAMS
from ptxvm.machine.window import LOW_WORD, NOWHERE, RANK, WITHIN, ClusterWindow, Window

ALL_OF_THEM = slice(None)


@dataclass(frozen=True, slots=True)
class CohortInputs:
    """The inputs of a cohort: some CTAs of a grid, and the memory and registers that all threads of the grid share.

    `parameters` is the address of the parameter bank; `shared_size` counts the bytes of shared memory of a CTA, and
    `stack_size` those of local memory of a thread; `clusters` have not begun.
    """

    shape: LaunchShape
    ctas: Sequence[int]
    memory: Memory
    parameters: int
    shared_size: int
    stack_size: int
    environment: Environment
    clusters: ClusterQueue


class LaneMemory:
    """The memory of the lanes of a cohort."""

    def __init__(self, inputs: CohortInputs, layout: LaneLayout) -> None:
        self.layout, self.machine = layout, inputs.memory
        self.stack_size = inputs.stack_size
        self.parameters = np.uint64(inputs.parameters)
        cluster = inputs.shape.cluster_size
        self.shared = Window(inputs.memory, Space.SHARED, inputs.shared_size, layout.cta, cluster)
        self.cluster = ClusterWindow(self.shared, cluster) if cluster > 1 else self.shared
        first = int(layout.ctas[0]) * layout.threads  # the CTAs follow each other
        self.threads: npt.NDArray[np.int64] = layout.numbers.astype(np.int64) + first
        self._local: Window | None = None

    # ── windows ─────────────────────────────────────────────────────────────────────────

    @property
    def local(self) -> Window:
        """The local memory, allocated at its first access."""
        if self._local is None:
            self._local = Window(self.machine, Space.LOCAL, self.stack_size, np.arange(self.layout.size))
        return self._local

    @property
    def has_local(self) -> bool:
        """Has local memory been touched?"""
        return self._local is not None

    @property
    def windows(self) -> dict[Space, Window]:
        """The windows that exist, by their spaces."""
        return {Space.SHARED: self.shared} | ({Space.LOCAL: self._local} if self._local is not None else {})

    def window(self, space: Space) -> Window | None:
        """The window of a state space; None for one without."""
        if space is Space.SHARED_CLUSTER:
            return self.cluster
        if space.startswith(Space.SHARED):
            return self.shared
        return self.local if space is Space.LOCAL else None

    def release(self) -> None:
        """Release the windows."""
        for window in self.windows.values():
            window.release()

    # ── accesses ────────────────────────────────────────────────────────────────────────

    def load(self, access: Access, lanes: Lanes, guard: Guard, address: PerLane) -> PerLane:
        """Gather; lanes whose guard is false get zeros."""
        if guard is not None:
            chosen, lanes_chosen = self.layout.chosen(lanes, guard)
            if chosen is not None:
                count = self.layout.count(lanes)
                result = np.zeros((access.count, count) if access.count > 1 else count, access.dtype)
                if len(chosen):
                    result[..., chosen] = self.gather(access, lanes_chosen, spread(address, chosen))
                return result
        return self.gather(access, lanes, address)

    def gather(self, access: Access, lanes: Lanes, address: PerLane) -> PerLane:
        """Load for some lanes."""
        try:
            if (window := self.window(access.space)) is not None:
                return window.load(access.dtype, window.offsets(address, lanes), access.count, lanes)
            return self.machine.load(access.dtype, self._whole(address), access.count, space=access.space, lanes=lanes)
        except AccessFault as fault:
            raise located(fault, access, lanes) from None

    def store(self, access: Access, lanes: Lanes, guard: Guard, address: PerLane, values: Sequence[PerLane]) -> None:
        """Scatter; where addresses of lanes are equal, the value of the last lane stays."""
        if guard is not None:
            chosen, lanes_chosen = self.layout.chosen(lanes, guard)
            if chosen is not None:
                if not len(chosen):
                    return
                lanes, address = lanes_chosen, spread(address, chosen)
                values = [spread(v, chosen) for v in values]
        self.scatter(access, lanes, address, values)

    def scatter(self, access: Access, lanes: Lanes, address: PerLane, values: Sequence[PerLane]) -> None:
        """Store for some lanes."""
        stored: PerLane = values if access.count > 1 else values[0]
        try:
            if (window := self.window(access.space)) is not None:
                window.store(access.dtype, window.offsets(address, lanes), stored, access.count, lanes)
            else:
                self.machine.store(access.dtype, self._whole(address), stored, access.count, space=access.space, lanes=lanes)
        except AccessFault as fault:
            raise located(fault, access, lanes) from None

    def atomic(
        self, access: Access, lanes: Lanes, guard: Guard, address: PerLane, update: Update, operands: Sequence[PerLane]
    ) -> PerLane:
        """Update lane after lane; the value before each update.  Lanes whose guard is false get zeros.

        A vector has an operand for each of its elements.
        """
        chosen, lanes_chosen = self.layout.chosen(lanes, guard) if guard is not None else (None, lanes)
        count = self.layout.count(lanes)
        every = np.arange(count) if chosen is None else chosen
        result = np.zeros((access.count, count) if access.count > 1 else count, access.dtype)
        if not len(every):
            return result
        old = self.update(access, lanes_chosen, spread(address, every), update, [spread(o, every) for o in operands])
        if chosen is None:
            return old
        result[..., chosen] = old
        return result

    def update(self, access: Access, lanes: Lanes, address: PerLane, update: Update, operands: Sequence[PerLane]) -> PerLane:
        """An atomic for some lanes, with an address and operands for each; of a vector, element after element."""
        try:
            if access.count == 1:
                return self.update_element(access, lanes, address, update, operands)
            self._resolve(access, lanes, address, writing=True)  # which is aligned as a whole (PTX 5.4.5)
            pairs = zip(access.elements(address), operands, strict=True)
            return np.stack([self.update_element(access, lanes, where, update, [each]) for where, each in pairs])
        except AccessFault as fault:
            raise located(fault, access, lanes) from None

    def update_element(
        self, access: Access, lanes: Lanes, address: PerLane, update: Update, operands: Sequence[PerLane]
    ) -> PerLane:
        """An atomic on one element for each lane."""
        if (window := self.window(access.space)) is not None:
            where = window.offsets(address, lanes)
            return window.atomic(access.dtype, where, update.operation, operands, update, lanes)
        where = self._whole(address)
        return self.machine.atomic(access.dtype, where, update.operation, operands, update, space=access.space, lanes=lanes)

    def _whole(self, address: PerLane) -> PerLane:
        """An address; in a module of 32-bit addresses only its low 32 bits."""
        return address & LOW_WORD if self.machine.address_bits == 32 else address

    # ── bounds ──────────────────────────────────────────────────────────────────────────

    def reachable(self, access: Access, lanes: LaneNumbers, address: PerLane, *, writing: bool) -> PerLane:
        """The positions of the lanes whose access is in bounds; here all of them, or a fault."""
        try:
            self._resolve(access, lanes, address, writing=writing)
        except AccessFault as fault:
            raise located(fault, access, lanes) from None
        return np.arange(len(lanes))

    def _resolve(self, access: Access, lanes: Lanes, address: PerLane, *, writing: bool) -> None:
        """Fault where a lane is out of bounds."""
        if (window := self.window(access.space)) is not None:
            window.resolve(access.dtype, window.offsets(address, lanes), access.count, lanes, writing=writing)
        else:
            self.machine.resolve(access.dtype, self._whole(address), access.count, access.space, lanes, writing=writing)

    def fitting(self, access: Access, lanes: Lanes, address: PerLane, *, writing: bool) -> PerLane:
        """Which lanes are in bounds?"""
        size, count = access.dtype.itemsize * access.count, self.layout.count(lanes)
        if (window := self.window(access.space)) is not None:
            return np.broadcast_to(window.fitting(np.atleast_1d(window.offsets(address, lanes)), size), count)
        address = self._whole(np.broadcast_to(address, count))
        return self.machine.table.fitting(address, size, access.space, lanes, writing=writing)

    # ── addresses ───────────────────────────────────────────────────────────────────────

    def to_generic(self, space: Space, lanes: Lanes, address: PerLane) -> PerLane:
        """`cvta`; of an address of a parameter a register may have kept the low 32 bits only."""
        if space is Space.PARAM:
            near = (address - self.parameters & LOW_WORD) + self.parameters
            return np.where(address <= LOW_WORD, near, address).astype(np.uint64)[()]
        window = self._converting(space)
        return address if window is None else window.to_generic(window.offsets(address, lanes), lanes)

    def from_generic(self, space: Space, lanes: Lanes, address: PerLane) -> PerLane:
        """`cvta.to`."""
        window = self._converting(space)
        return address if window is None else window.addresses(window.from_generic(address, lanes), lanes)

    def _converting(self, space: Space) -> Window | None:
        """The window in which `cvta` finds addresses: of shared memory that of the cluster, which has those of its CTAs."""
        return self.window(Space.SHARED_CLUSTER if space is Space.SHARED else space)

    def shared_base(self, lanes: Lanes) -> PerLane:
        """The address at which the shared memory of each lane's CTA begins."""
        base = self.shared.base
        if base is None:
            return np.uint64(0)
        return base if lanes is None else base[lanes]

    def mapped(self, space: Space, lanes: Lanes, address: PerLane, rank: PerLane) -> PerLane:
        """The address in the CTA of a rank that corresponds to an address in shared memory (`mapa`).

        Without clusters there is rank 0; addresses of others are in no memory.
        """
        generic = space is Space.GENERIC
        if self.cluster is self.shared:
            return address + (rank << np.uint64(NOWHERE if generic else RANK))
        inside = self.from_generic(Space.SHARED_CLUSTER, lanes, address) if generic else address
        made = inside & np.uint64(WITHIN) | rank << np.uint64(RANK)
        return self.to_generic(Space.SHARED_CLUSTER, lanes, made) if generic else made

    def rank(self, space: Space, lanes: Lanes, address: PerLane) -> PerLane:
        """The rank of the CTA in which an address of shared memory lies (`getctarank`)."""
        if self.cluster is self.shared:
            return address & np.uint64(0)
        inside = self.from_generic(Space.SHARED_CLUSTER, lanes, address) if space is Space.GENERIC else address
        return (inside & LOW_WORD) >> np.uint64(RANK)

    def distances(self, number: int, lanes: Lanes, address: PerLane) -> PerLane:
        """From multimem addresses to the memory of a further device; 0 where there is none."""
        return TEAMS.distances(number, np.zeros(self.layout.count(lanes), np.uint64) + address)

    def within(self, space: Space, lanes: Lanes, address: PerLane) -> PerLane:
        """`isspacep`."""
        window = self.window(space) if self.cluster is not self.shared and space is not Space.LOCAL else None
        if window is None:
            return self.machine.within(space.window, address)
        like = np.zeros(self.layout.count(lanes), np.uint64) + address
        return window.contains(like, lanes)

    def touched(self, access: Access, lanes: Lanes, address: PerLane) -> Iterator[tuple[Allocation, PerLane, PerLane]]:
        """The allocations that an access touches, each with its threads and their offsets."""
        for _, found in self.touched_by_lane(access, lanes, address):
            yield found

    def touched_by_lane(
        self, access: Access, lanes: Lanes, address: PerLane
    ) -> Iterator[tuple[PerLane, tuple[Allocation, PerLane, PerLane]]]:
        """The allocations that an access touches, each with the positions of its lanes among those that run."""
        threads = self.threads_of(lanes)
        window = self.window(access.space)
        if window is not None:
            yield ALL_OF_THEM, (window.allocation, threads, window.positions(window.offsets(address, lanes), lanes))
            return
        if not np.ndim(address):
            address = np.full(len(threads), address)
        address = self._whole(address)
        if not len(address):
            return
        table = self.machine.table
        first = table.find(int(address[0]))
        if first is not None and int(address.min()) >= first.start and int(address.max()) < first.end:
            yield ALL_OF_THEM, (first, threads, (address - first.base).view(np.int64))
            return
        columns = table.columns  # arrays that are collected meanwhile leave the table
        owners = columns.owners(address)
        for owner in np.unique(owners).tolist():
            mine = owners == owner
            allocation = columns.items[owner]
            yield mine, (allocation, threads[mine], (address[mine] - allocation.base).view(np.int64))

    def threads_of(self, lanes: Lanes) -> npt.NDArray[np.int64]:
        """The numbers of the threads of some lanes in the whole grid."""
        return self.threads if lanes is None else self.threads[lanes]


class CohortLanes(Protocol):
    """The part of a cohort that all asynchronous work uses: its lanes and their memory."""

    layout: LaneLayout

    @property
    def mem(self) -> LaneMemory:
        """The memory of the lanes."""


def located(fault: AccessFault, access: Access, lanes: Lanes) -> PlacedFault:
    """A fault with its instruction and lane."""
    lane = fault.lane_index if lanes is None else int(lanes[min(fault.lane_index, len(lanes) - 1)])
    return fault.placed(access.bound, lane)
