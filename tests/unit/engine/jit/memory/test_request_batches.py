"""Batches of requests: the network that sorts them, and the transposition of their keys."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ptxvm.engine.jit.memory.request_batches import exchanges


@pytest.mark.parametrize("count", [2, 4, 8, 16])
def test_a_network_sorts_all_zeros_and_ones_and_so_anything(count):
    """The zero-one principle (Knuth, The Art of Computer Programming, volume 3, 5.3.4, theorem Z)."""
    values = np.array([*itertools.product((0, 1), repeat=count)], np.uint8)
    for a, b in exchanges(count):
        values[:, a], values[:, b] = np.minimum(values[:, a], values[:, b]), np.maximum(values[:, a], values[:, b])
    assert (np.diff(values.astype(int), axis=1) >= 0).all()


@pytest.mark.parametrize(("count", "most"), [(4, 5), (8, 19), (16, 63), (32, 191)])
def test_a_network_has_as_many_exchanges_as_merging_takes(count, most):
    found = [*exchanges(count)]
    assert len(found) == most
    assert all(0 <= a < b < count for a, b in found)
