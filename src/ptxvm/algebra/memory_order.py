"""Memory orders and scopes: what an access or a fence asks of the memory consistency model (PTX 8.5, 8.7)."""

from __future__ import annotations

import enum
from typing import TypeAlias

from ptxvm.algebra.asynchronous import Proxy


class Order(enum.StrEnum):
    """The order of an access or a fence, by its word in PTX."""

    WEAK = "weak"
    RELAXED = "relaxed"
    ACQUIRE = "acquire"
    RELEASE = "release"
    ACQ_REL = "acq_rel"
    SC = "sc"
    VOLATILE = "volatile"
    MMIO = "mmio"

    @property
    def strong(self) -> bool:
        """May other threads wait for the access, or the access for them?"""
        return self is not Order.WEAK

    @property
    def acquires(self) -> bool:
        """Is what follows ordered after it?"""
        return self in (Order.ACQUIRE, Order.ACQ_REL, Order.SC)

    @property
    def releases(self) -> bool:
        """Is what precedes ordered before it?"""
        return self in (Order.RELEASE, Order.ACQ_REL, Order.SC)

    @property
    def halves(self) -> tuple[Order, Order]:
        """The orders of the read and of the write of an atomic operation with this order."""
        return Order.ACQUIRE if self.acquires else Order.RELAXED, Order.RELEASE if self.releases else Order.RELAXED


class PartialFence(enum.StrEnum):
    """A fence that orders the operations of one kind alone, by its word in PTX (PTX 9.7.13.4, 9.7.16.11)."""

    MBARRIER_INIT = "mbarrier_init"  # releases the mbarriers that the thread has made
    BEFORE_THREAD_SYNC = "before_thread_sync"  # releases accesses of tensor memory
    AFTER_THREAD_SYNC = "after_thread_sync"  # acquires them


class GridStep(enum.StrEnum):
    """A step between grids of which one depends on the other, by its word in PTX (PTX 9.7.13.13)."""

    LAUNCH_DEPENDENTS = "launch_dependents"  # grids that depend on this one may begin
    WAIT = "wait"  # the grids that this one depends on have ended


FenceKind: TypeAlias = Order | Proxy | PartialFence | GridStep
"""What a fence orders: accesses by their memory order, those of a proxy, operations of one kind, or whole grids."""


class Scope(enum.StrEnum):
    """The threads for which an order holds, by their word in PTX."""

    CTA = "cta"
    CLUSTER = "cluster"
    GPU = "gpu"
    SYS = "sys"

    @property
    def rank(self) -> int:
        """1 for the narrowest; 0 is for weak accesses, which have no scope."""
        return RANKS[self]


RANKS = {scope: rank for rank, scope in enumerate(Scope, 1)}
