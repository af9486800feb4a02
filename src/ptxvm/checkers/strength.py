"""Moral strength (PTX 8.7): the sites of accesses, with their size, order and scope."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.asynchronous import AsyncKind, MbarrierStep, Proxy
from ptxvm.algebra.memory_order import Order, Scope
from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.isa.effects import Verb
from ptxvm.machine.events import Access

# PTX 8.6; nothing in PTX orders accesses of different proxies in a grid.
PROXIES = {None: 0, Proxy.TEXTURE: 1, Proxy.SURFACE: 2}
Ints = npt.NDArray[np.int64]
WIDE = Scope.GPU.rank
"""This scope and wider ones include all threads of a grid."""


def invalidates(bound: Bound) -> bool:
    """Does an instruction invalidate an mbarrier?"""
    return any(access.mbarrier is MbarrierStep.INVAL for access in bound.summary.accesses)


@dataclass(frozen=True, slots=True)
class Site:
    """An access in the code: an instruction, with its verb, size, order and scope."""

    bound: Bound
    verb: Verb
    space: Space
    size: int  # of an element in bytes
    order: Order
    scope: int  # 0 is weak
    asynchronous: bool = False
    proxy: Proxy | None = None  # texture or surface; None for the generic one, and that of asynchronous copies

    @property
    def strength(self) -> str:
        """The order and scope, as PTX writes them."""
        if not self.scope:
            return "weak"
        return f"{self.order}.{next(scope for scope in Scope if scope.rank == self.scope)}"

    @property
    def described(self) -> str:
        """The access in words."""
        if self.proxy is Proxy.TEXTURE and Space.TEXTURE not in self.bound.summary.spaces:
            return "non-coherent read"
        kind = "asynchronous" if self.asynchronous else self.proxy or ""
        return f"{kind} {self.verb}".lstrip()

    @property
    def writes(self) -> bool:
        """Does the access write?"""
        return self.verb is not Verb.READ

    @property
    def invalidates(self) -> bool:
        """Does it invalidate an mbarrier?"""
        return invalidates(self.bound)

    @property
    def initialises(self) -> bool:
        """Does it initialise an mbarrier?"""
        return any(access.mbarrier is MbarrierStep.INIT for access in self.bound.summary.accesses)

    @property
    def of_tensor_core(self) -> bool:
        """Is it of a `tcgen05` instruction?"""
        return self.bound.summary.uses_tensor_memory


class Sites:
    """The sites of a run, by number; 0 is none."""

    def __init__(self) -> None:
        nowhere: Sequence[Site | None] = [None]
        self._sites = list(nowhere)
        self._numbers: dict[tuple[int, str, int], int] = {}
        self.scope = np.zeros(64, np.int64)
        self.size = np.zeros(64, np.int64)
        self.proxy = np.zeros(64, np.int64)  # by PROXIES
        self.plain = np.zeros(64, np.bool_)  # does it store the value of the thread, at once?
        self.of_mbarrier = np.zeros(64, np.bool_)
        self.copied = np.zeros(64, np.bool_)  # is it of `cp.async`, whose accesses are of the generic proxy?
        self.of_warp = np.zeros(64, np.bool_)  # does a warp write as one, as `tcgen05.alloc` does (PTX 9.7.16.6.1)?

    def __getitem__(self, number: int) -> Site:
        site = self._sites[number]
        if site is None:
            raise KeyError(number)
        return site

    def number(self, access: Access, verb: Verb) -> int:
        """The number of a site, new or known."""
        key = (id(access.bound), verb, access.type.bytes)  # an image has elements of several sizes
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._sites)
            order = access.attributes.get("order") or Order.WEAK
            scope = (access.attributes.get("scope") or Scope.SYS).rank if order.strong else 0
            if scope and "mbarrier" in access.attributes:  # whose operations are atomic for the cluster, whatever they order
                scope = max(scope, Scope.CLUSTER.rank)
            late = bool(access.attributes.get("asynchronous")) and "mbarrier" not in access.attributes
            proxy = access.attributes.get("proxy")
            proxy = proxy if proxy in PROXIES else None
            site = Site(access.bound, verb, access.space, access.type.bytes, order, scope, late, proxy)
            self._sites.append(site)
            if found >= len(self.scope):
                self.scope, self.size, self.proxy, self.plain, self.of_mbarrier, self.of_warp, self.copied = (
                    np.concatenate([column, np.zeros_like(column)])
                    for column in (
                        self.scope, self.size, self.proxy, self.plain, self.of_mbarrier, self.of_warp, self.copied,
                    )
                )  # fmt: skip
            self.scope[found], self.size[found], self.proxy[found] = site.scope, site.size, PROXIES[proxy]
            self.of_mbarrier[found] = "mbarrier" in access.attributes
            self.copied[found] = late and access.attributes.get("group") is AsyncKind.COPY
            self.of_warp[found] = site.of_tensor_core and site.writes and not late
            self.plain[found] = verb is Verb.WRITE and not late and not proxy
        return found

    def numbers_of(self, others: Sites) -> npt.NDArray[np.int64]:
        """For each site of `others`, its number here; -1 if it is not known here."""
        found = np.full(len(others._sites), -1, np.int64)
        for key, number in others._numbers.items():
            found[number] = self._numbers.get(key, -1)
        return found

    def morally_strong(self, site: int, others: Ints, needed: Ints) -> npt.NDArray[np.bool_]:
        """Is an access morally strong with accesses of other threads, on bytes that they share?

        It is if both are strong and of one proxy, each scope includes the other thread, and they cover the same bytes: their
        ranks are `needed`, or more.  Every access is aligned to its size, so accesses of one size cover the same bytes.
        """
        mine, theirs = int(self.scope[site]), self.scope[others]
        if not mine:
            return np.zeros(len(others), np.bool_)
        alike = (self.size[others] == self.size[site]) & (self.proxy[others] == self.proxy[site])
        strong: npt.NDArray[np.bool_] = alike & (theirs >= needed) & (mine >= needed)
        return strong

    def see_each_other(self, site: int, earlier: Ints, needed: Ints) -> npt.NDArray[np.bool_]:
        """Can an access see the effects of earlier writes of its grid, given an order (PTX 2.3 and 8.9.5)?

        It can for writes by the generic proxy, and for writes to surfaces within a CTA; nothing writes by the texture proxy.
        Morally strong accesses need no order.
        """
        mine, theirs = int(self.proxy[site]), self.proxy[earlier]
        seen: npt.NDArray[np.bool_] = (theirs == mine) & ((needed <= Scope.CTA.rank) | (mine == 0))
        return seen | self.morally_strong(site, earlier, needed)

    def covers(self, later: Ints, earlier: Ints, same_cta: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Is a later access morally strong with no more accesses than an earlier one, which it is ordered after?

        Both access the same bytes.  Then every access that races with the earlier one races with the later one too.
        """
        mine, theirs = self.scope[later], self.scope[earlier]
        alike = (self.size[later] == self.size[earlier]) & (self.proxy[later] == self.proxy[earlier]) & same_cta & (theirs > 0)
        found: npt.NDArray[np.bool_] = (mine == 0) | alike & (np.minimum(theirs, WIDE) >= np.minimum(mine, WIDE))
        return found
