"""A cohort that logs the stores of its lanes to global memory."""

from __future__ import annotations

from functools import partial

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.engine.interp.accesses import Access
from ptxvm.engine.interp.cohort import Cohort
from ptxvm.engine.interp.lane_memory import CohortInputs
from ptxvm.engine.interp.observed_memory import ObservedMemory, Values
from ptxvm.engine.interp.recording_cohort import at_positions, bits_of
from ptxvm.isa.effects import Verb
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.launch import LaunchShape
from ptxvm.machine.per_lane import Lanes, PerLane
from ptxvm.profile.stores import StoreLog
from ptxvm.profile.trace import Extent

FOUND = 2  # values of an element of an atomic that depend on the order of threads: those before and after it


class LoggingMemory(ObservedMemory):
    """Memory whose stores are logged."""

    log: StoreLog | None = None

    def observe(self, access: Access, verb: Verb, lanes: Lanes, address: PerLane, values: Values) -> None:
        """Log the elements of a store to global memory, or the operands of an atomic."""
        if self.log is None or verb is Verb.READ or access.attributes.get("mbarrier"):
            return
        every = self.layout.every(lanes)
        for position, (allocation, threads, offsets) in self.touched_by_lane(access, lanes, address):
            if allocation.space is not Space.GLOBAL:
                continue
            positions = np.arange(len(every))[position]
            start = offsets - (allocation.start - allocation.origin)
            for n, element in enumerate(values() if verb is Verb.WRITE else values()[FOUND * access.count :]):
                at = start + (n * access.type.bytes if verb is Verb.WRITE or access.count > 1 else 0)
                bits = bits_of(at_positions(element, positions), access.type)
                self.log.stored((access.bound, verb, access.type), place_of(allocation), threads, at, bits)


class LoggingCohort(Cohort):
    """A cohort whose stores are logged."""

    mem: LoggingMemory

    def __init__(self, inputs: CohortInputs, log: StoreLog | None) -> None:
        super().__init__(inputs, LoggingMemory)
        self.mem.log = log
        if log is not None:
            log.where = partial(coordinates, inputs.shape)


def place_of(allocation: Allocation) -> str:
    """The argument that an allocation is, whatever the kernel calls it, or the name of the allocation."""
    detail = allocation.detail
    return detail if detail.startswith("argument ") else allocation.name.replace("`", "")


def coordinates(shape: LaunchShape, number: int) -> tuple[Extent, Extent]:
    """The CTA and the thread of a thread of the grid, by its number."""
    cta, thread = divmod(number, shape.threads)
    x, y, _ = shape.block
    return shape.ctaid(cta), (thread % x, thread // x % y, thread // (x * y))


__all__ = ["LoggingCohort"]
