"""A data race as the detector reports it: two accesses, their threads, and the bytes of each."""

from __future__ import annotations

from ptxvm.checkers.strength import Site
from ptxvm.machine.allocation import Allocation

HAZARDS = {(False, True): "WAR", (True, False): "RAW", (True, True): "WAW"}  # by what the earlier and the later one do


class Race:
    """Two accesses that race: their sites, threads, and the bytes of each in an allocation.

    With `proxy` the threads may be in order, but the accesses go through different proxies: `async` without a fence between
    the two, or those of `images`, for which there is none.  With `equal_values` both write, and all that race there have
    stored the same.
    """

    def __init__(
        self,
        allocation: Allocation,
        sites: tuple[Site, Site],
        threads: tuple[int, int],
        byte: int,
        *,
        proxy: str = "",
        equal_values: bool = False,
    ) -> None:
        self.allocation, self.sites, self.threads, self.proxy = allocation, sites, threads, proxy
        self.equal_values = equal_values
        self.offsets = tuple(byte & -site.size for site in sites)  # every element is aligned to its size

    @property
    def hazard(self) -> str:
        """RAW, WAR or WAW."""
        return HAZARDS[self.sites[0].writes, self.sites[1].writes]

    @property
    def mixed_size(self) -> bool:
        """Do the accesses cover different bytes?"""
        return self.sites[0].size != self.sites[1].size


__all__ = ["HAZARDS", "Race"]
