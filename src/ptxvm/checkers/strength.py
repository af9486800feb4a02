"""Moral strength (PTX 8.7): the sites of accesses, with their size, order and scope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.memory_order import Order, Scope
from ptxvm.analysis.program import Bound
from ptxvm.machine.events import Access

PROXIES = {"": 0, "texture": 1, "surface": 2}  # PTX 8.6; nothing of PTX orders accesses of different ones in a grid
WIDE = Scope.GPU.rank  # from here on a scope has all threads of a grid; a cluster has one CTA


@dataclass(frozen=True, slots=True)
class Site:
    """An access of the code."""

    bound: Bound
    operation: str  # read, write or atomic
    space: str
    size: int  # of an element in bytes
    order: Order
    scope: int  # 0 is weak
    asynchronous: bool = False
    proxy: str = ""  # texture or surface; empty for the generic one, and that of asynchronous copies

    @property
    def strength(self) -> str:
        """As PTX says it."""
        if not self.scope:
            return "weak"
        return f"{self.order}.{next(scope for scope in Scope if scope.rank == self.scope)}"

    @property
    def described(self) -> str:
        """What it does."""
        if self.proxy == "texture" and "texture" not in self.bound.summary.spaces:
            return "non-coherent read"
        kind = "asynchronous" if self.asynchronous else self.proxy
        return f"{kind} {self.operation}".lstrip()

    @property
    def writes(self) -> bool:
        """Does it write?"""
        return self.operation != "read"


class Sites:
    """The sites that were seen, by number; 0 is none."""

    def __init__(self) -> None:
        nowhere: Sequence[Site | None] = [None]
        self._sites = list(nowhere)
        self._numbers: dict[tuple[int, str, int], int] = {}
        self.scope = np.zeros(64, np.int64)
        self.size = np.zeros(64, np.int64)
        self.proxy = np.zeros(64, np.int64)  # by PROXIES
        self.plain = np.zeros(64, np.bool_)  # does it store what the thread says, at once?

    def __getitem__(self, number: int) -> Site:
        site = self._sites[number]
        if site is None:
            raise KeyError(number)
        return site

    def number(self, access: Access, operation: str) -> int:
        """The number of a site."""
        key = (id(access.bound), operation, access.type.bytes)  # images have elements of many sizes
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._sites)
            order = access.attributes.get("order") or Order.WEAK
            scope = (access.attributes.get("scope") or Scope.SYS).rank if order.strong else 0
            late = bool(access.attributes.get("asynchronous")) and "mbarrier" not in access.attributes
            proxy = str(access.attributes.get("proxy", ""))
            proxy = proxy if proxy in PROXIES else ""
            site = Site(access.bound, operation, access.space, access.type.bytes, order, scope, late, proxy)
            self._sites.append(site)
            if found >= len(self.scope):
                self.scope, self.size, self.proxy, self.plain = (
                    np.concatenate([held, np.zeros_like(held)]) for held in (self.scope, self.size, self.proxy, self.plain)
                )
            self.scope[found], self.size[found], self.proxy[found] = site.scope, site.size, PROXIES[proxy]
            self.plain[found] = operation == "write" and not late and not proxy
        return found

    def numbers_of(self, others: Sites) -> npt.NDArray[np.int64]:
        """The numbers here of the sites of others, by their numbers there; -1 where there are none."""
        found = np.full(len(others._sites), -1, np.int64)
        for key, number in others._numbers.items():
            found[number] = self._numbers.get(key, -1)
        return found

    def morally_strong(
        self, site: int, others: npt.NDArray[np.int64], same_cta: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        """Is an access morally strong with others, of other threads, on bytes that they share?

        Both are strong and of one proxy, each one's scope has the other's thread, and they cover the same bytes: as every
        access is aligned to its size, that means that they are of one size.
        """
        mine, theirs = int(self.scope[site]), self.scope[others]
        if not mine:
            return np.zeros(len(others), np.bool_)
        wide = theirs >= WIDE if mine >= WIDE else np.zeros(len(others), np.bool_)
        alike = (self.size[others] == self.size[site]) & (self.proxy[others] == self.proxy[site])
        strong: npt.NDArray[np.bool_] = (theirs > 0) & alike & (same_cta | wide)
        return strong

    def see_each_other(
        self, site: int, earlier: npt.NDArray[np.int64], same_cta: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        """Can an order let an access see the effects of earlier writes of its grid (PTX 2.3 and 8.9.5)?

        Those of the generic proxy do, and those to surfaces within a CTA; nothing writes by that of textures.  What is
        morally strong needs no order.
        """
        mine, theirs = int(self.proxy[site]), self.proxy[earlier]
        seen: npt.NDArray[np.bool_] = (theirs == mine) & (same_cta | (mine == 0))
        return seen | self.morally_strong(site, earlier, same_cta)

    def covers(
        self, later: npt.NDArray[np.int64], earlier: npt.NDArray[np.int64], same_cta: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        """Is a later access, ordered after an earlier one of the same bytes, morally strong with no more than that is?

        Then whatever races with the earlier one races with the later one too.
        """
        mine, theirs = self.scope[later], self.scope[earlier]
        alike = (self.size[later] == self.size[earlier]) & (self.proxy[later] == self.proxy[earlier]) & same_cta & (theirs > 0)
        found: npt.NDArray[np.bool_] = (mine == 0) | alike & ((theirs >= WIDE) | (mine < WIDE))
        return found
