"""A data race as the detector reports it: two accesses, their threads, and the bytes of each."""

from __future__ import annotations

import enum

from ptxvm.checkers.strength import Site
from ptxvm.machine.allocation import Allocation

HAZARDS = {(False, True): "WAR", (True, False): "RAW", (True, True): "WAW"}  # keys: the earlier writes, the later writes


class Cause(enum.Enum):
    """The reason why two accesses race."""

    UNORDERED = "nothing orders them"
    UNFENCED = "one goes through the async proxy, without a proxy fence between them"
    UNMAPPED = "one reads a tensor map through the tensormap proxy, without fences of that proxy between them"
    INCOHERENT = "they go through different caches, for which there is no fence"
    EXECUTED = "only a collective of the warp is between them, which waits for lanes and orders none of their accesses"


class Race:
    """Two racing accesses: their sites, their threads, and the bytes of each in an allocation.

    With a `cause` other than `UNORDERED`, the threads may be ordered, but the accesses go through different proxies.  With
    `equal_values`, both write, and all racing writes there have stored one value.
    """

    def __init__(
        self,
        allocation: Allocation,
        sites: tuple[Site, Site],
        threads: tuple[int, int],
        byte: int,
        *,
        cause: Cause = Cause.UNORDERED,
        equal_values: bool = False,
    ) -> None:
        self.allocation, self.sites, self.threads, self.cause = allocation, sites, threads, cause
        self.equal_values = equal_values
        self.offsets = tuple(byte & -site.size for site in sites)  # every element is aligned to its size

    @property
    def mild(self) -> bool:
        """Is it a race by the manual alone: does the hardware leave the same bytes whichever comes first?"""
        return self.equal_values or self.cause is Cause.EXECUTED

    @property
    def hazard(self) -> str:
        """RAW, WAR or WAW."""
        return HAZARDS[self.sites[0].writes, self.sites[1].writes]

    @property
    def mixed_size(self) -> bool:
        """Do the accesses cover different bytes?"""
        return self.sites[0].size != self.sites[1].size


__all__ = ["HAZARDS", "Cause", "Race"]
