"""Races where several addresses stand for the same memory: an access is compared with those of all of them (PTX 8.2.2, 8.7.1).

What synchronisation orders is ordered at other addresses, too: an alias fence that is missing (PTX 8.9.5) is not looked for.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxvm.checkers.race import RaceDetector
from ptxvm.isa.effects import Verb
from ptxvm.machine.aliases import MAPPED, Selection
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.events import Access, Offsets, StoredValues, Threads


class AliasedRaces(RaceDetector):
    """The race detector for a run with aliases."""

    def read(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets) -> None:
        """Threads have read."""
        for mine, place, within in self._places(allocation, offsets):
            super().read(access, threads[mine], place, within)

    def wrote(
        self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets, left: StoredValues | None = None
    ) -> None:
        """Threads have written; of an access to several places the values are not followed."""
        places = list(self._places(allocation, offsets))
        for mine, place, within in places:
            super().wrote(access, threads[mine], place, within, left if len(places) == 1 else None)

    def updated(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets) -> None:
        """Threads have read and written in one step."""
        for mine, place, within in self._places(allocation, offsets):
            super().updated(access, threads[mine], place, within)

    def copying(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets, verb: Verb) -> None:
        """Agents read or write."""
        for mine, place, within in self._places(allocation, offsets):
            super().copying(access, threads[mine], place, within, verb)

    def _places(self, allocation: Allocation, offsets: Offsets) -> Iterator[tuple[Selection, Allocation, Offsets]]:
        return MAPPED.aliases.places(allocation, offsets)


__all__ = ["AliasedRaces"]
