"""Memory that tells of each access after it: for counting and for recording."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TypeAlias

from ptxvm.engine.interp.accesses import Access, Update
from ptxvm.engine.interp.lane_memory import LaneMemory
from ptxvm.isa.effects import Verb
from ptxvm.machine.per_lane import Lanes, PerLane

Values: TypeAlias = Callable[[], Sequence[PerLane]]
"""Computes the values of an access, where something asks for them."""


class ObservedMemory(LaneMemory):
    """Memory whose accesses are observed."""

    def observe(self, access: Access, verb: Verb, lanes: Lanes, address: PerLane, values: Values) -> None:
        """Lanes have accessed memory.

        `values` computes the elements that were read or written; of an atomic the elements before
        it, those after it, and its operands.
        """
        raise NotImplementedError

    def gather(self, access: Access, lanes: Lanes, address: PerLane) -> PerLane:
        """Load, and tell of it."""
        values = super().gather(access, lanes, address)
        self.observe(access, Verb.READ, lanes, address, lambda: values if access.count > 1 else [values])
        return values

    def scatter(self, access: Access, lanes: Lanes, address: PerLane, values: Sequence[PerLane]) -> None:
        """Store, and tell of it."""
        super().scatter(access, lanes, address, values)
        self.observe(access, Verb.WRITE, lanes, address, lambda: values)

    def update(self, access: Access, lanes: Lanes, address: PerLane, update: Update, operands: Sequence[PerLane]) -> PerLane:
        """Update, and tell of it."""
        old = super().update(access, lanes, address, update, operands)
        updates = [(old, *operands)] if access.count == 1 else list(zip(old, operands, strict=True))
        before = [each[0] for each in updates]
        self.observe(access, Verb.UPDATE, lanes, address, lambda: [*before, *itertools.starmap(update, updates), *operands])
        return old


__all__ = ["ObservedMemory", "Values"]
