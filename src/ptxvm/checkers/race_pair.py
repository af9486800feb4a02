"""A data race as the detector reports it: two accesses, their threads, and the bytes of each."""

from __future__ import annotations

from ptxvm.checkers.strength import Site
from ptxvm.machine.allocation import Allocation

HAZARDS = {(False, True): "WAR", (True, False): "RAW", (True, True): "WAW"}  # keys: the earlier writes, the later writes


class Race:
    """Two racing accesses: their sites, their threads, and the bytes of each in an allocation.

    With `proxy`, the threads may be ordered, but the accesses go through different proxies: `async` without a fence between
    them, or `images`, for which there is no fence.  With `equal_values`, both write, and all racing writes there have stored
    one value.
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
