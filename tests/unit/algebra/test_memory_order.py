"""Orders of memory accesses (PTX 8.4): which are strong, and what they order."""

from __future__ import annotations

import pytest

from ptxvm.algebra.memory_order import Order


@pytest.mark.parametrize(
    ("order", "strong", "acquires", "releases", "halves"),
    [
        (Order.WEAK, False, False, False, (Order.RELAXED, Order.RELAXED)),
        (Order.RELAXED, True, False, False, (Order.RELAXED, Order.RELAXED)),
        (Order.ACQUIRE, True, True, False, (Order.ACQUIRE, Order.RELAXED)),
        (Order.RELEASE, True, False, True, (Order.RELAXED, Order.RELEASE)),
        (Order.ACQ_REL, True, True, True, (Order.ACQUIRE, Order.RELEASE)),
        (Order.SC, True, True, True, (Order.ACQUIRE, Order.RELEASE)),
    ],
)
def test_what_an_order_orders(order: Order, strong: bool, acquires: bool, releases: bool, halves: tuple[Order, Order]) -> None:
    assert (order.strong, order.acquires, order.releases) == (strong, acquires, releases)
    assert order.halves == halves
