"""The memory consistency model of PTX 9.1, where it is not that of 6.4.  Sections are those of 9.1.

New are proxies, aliases, and fences that only release or only acquire.

`.cluster` scope, `.mmio` and `mbarrier` need nothing here: they are a depth in the hierarchy of scopes, strong operations,
and release and acquire operations.  Asynchronous operations are unordered with what their thread does next (`memory_events`).
"""

from __future__ import annotations

from functools import cached_property

from ptxvm.algebra.asynchronous import Proxy
from ptxvm.model.axioms_6_4 import PTX64
from ptxvm.model.memory_events import EventKind
from ptxvm.model.relations import Events, Relation


class PTX91(PTX64):
    """An execution as PTX 9.1 sees it."""

    name = "9.1"
    axioms_section = "8.10"
    mixed_size_section = "8.7.2"
    known_from_the_start = (*PTX64.known_from_the_start, "same_address", "same_proxy", "same_cta", "fenced", "generic")

    # ── 8.2.1, 8.6 and 8.7: the same address, by the same proxy ─────────────────────────

    @cached_property
    def same_address(self) -> Relation:
        """8.2.1: operations that overlap, through one virtual address."""
        names = [self.test.virtual(e.location.variable) if e.location else "" for e in self.events]
        return self.overlap & self.pairs(lambda i, j: names[i] == names[j])

    @cached_property
    def same_proxy(self) -> Relation:
        """8.6: operations by the same method of access."""
        return Relation.where(self.events, lambda a, b: a.proxy == b.proxy)

    @cached_property
    def morally_strong(self) -> Relation:
        """8.7: as in 6.4, of one proxy, and through one virtual address."""
        related = (self.program_order | self.program_order.inverse | self.mutually_in_scope) & self.same_proxy
        return related - (self.both_access_memory - (self.overlap_completely & self.same_address))

    @cached_property
    def overlapping_program_order(self) -> Relation:
        """Program order between operations on the same bytes of one virtual address."""
        return self.program_order & self.same_address

    @cached_property
    def same_location_program_order(self) -> Relation:
        """Program order between operations on one location M."""
        return self.program_order & self.same_address & self.overlap_completely

    # ── 8.8: fences that release, and fences that acquire ───────────────────────────────

    @cached_property
    def releasing_fences(self) -> Events:
        """8.8: a release pattern begins with a fence that releases."""
        return self.those(lambda e: e.kind is EventKind.FENCE and e.order.releases)

    @cached_property
    def acquiring_fences(self) -> Events:
        """8.8: an acquire pattern ends with a fence that acquires."""
        return self.those(lambda e: e.kind is EventKind.FENCE and e.order.acquires)

    # ── 8.9.5: causality keeps to proxies ───────────────────────────────────────────────

    @cached_property
    def base_causality(self) -> Relation:
        """8.9.5: program order and synchronization, transitive."""
        return (self.program_order | self.synchronizes).transitive

    @cached_property
    def generic(self) -> Events:
        """Memory operations by the generic proxy."""
        return self.those(lambda e: e.is_memory and e.proxy is Proxy.GENERIC)

    @cached_property
    def fenced(self) -> Relation:
        """A proxy fence serves the accesses of its own CTA by the proxy that it names (8.6, and `fence.proxy`)."""
        fences = self.those(lambda e: e.kind is EventKind.PROXY_FENCE)
        return (self.same_proxy & self.same_cta).between(fences, self.reads | self.writes)

    @cached_property
    def becomes_generic(self) -> Relation:
        """From an operation to the point at which the generic proxy has its effect: itself, or a proxy fence after it."""
        return Relation.identity(self.generic, self.count) | (self.base_causality & self.fenced.inverse)

    @cached_property
    def was_generic(self) -> Relation:
        """To an operation from the point after which it sees the generic proxy: itself, or a proxy fence before it."""
        return Relation.identity(self.generic, self.count) | (self.base_causality & self.fenced)

    @cached_property
    def through_generic(self) -> Relation:
        """8.9.5, 1: through the generic proxy; operations of other proxies reach and leave it by proxy fences."""
        return self.becomes_generic.then(self.base_causality).then(self.was_generic)

    @cached_property
    def in_one_cta(self) -> Relation:
        """8.9.5, 2: the same proxy, and the same thread block."""
        return self.base_causality & self.same_proxy & self.same_cta

    @cached_property
    def past_an_alias_fence(self) -> Relation:
        """8.9.5, 3: the same, with an alias fence along the path."""
        alias_fences = self.those(lambda e: e.kind is EventKind.PROXY_FENCE and e.proxy is Proxy.ALIAS)
        to_fence = self.becomes_generic.then(self.base_causality.between(~0, alias_fences))
        return to_fence.then(self.base_causality).then(self.was_generic)

    @cached_property
    def proxy_preserved_base_causality(self) -> Relation:
        """8.9.5: the part of base causality that carries memory from one operation to another."""
        to_same_address = (self.through_generic | self.in_one_cta) & self.same_address
        return to_same_address | (self.past_an_alias_fence & self.overlap)

    @cached_property
    def causality(self) -> Relation:
        """8.9.5: proxy-preserved base causality, perhaps after an observation."""
        preserved = self.proxy_preserved_base_causality
        return preserved | self.observation.then(preserved) | self.fences_in_order

    @cached_property
    def fences_in_order(self) -> Relation:
        """For 8.10.2: proxies say nothing of fences, so base causality orders them."""
        return self.base_causality.between(self.fence_scs, self.fence_scs)
