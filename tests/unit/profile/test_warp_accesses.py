"""Sectors, wavefronts and contention, against the closed forms of strides (CUDA C++ Programming Guide)."""

from __future__ import annotations

from math import gcd

import numpy as np
import pytest

from ptxvm.isa.effects import Verb
from ptxvm.profile.warp_accesses import contention, global_traffic, shared_traffic

LANES = np.arange(32)
WARP = np.zeros(32, np.int64)
STRIDES = range(1, 33)


def lanes_of(warps):
    """The warps and lanes of some whole warps."""
    return np.repeat(np.arange(warps), 32), np.tile(LANES, warps)


@pytest.mark.parametrize("stride", STRIDES)
def test_words_a_stride_apart_touch_each_sector_and_line_between_the_first_and_the_last(stride):
    found = global_traffic(WARP, LANES * 4 * stride, 4)
    last = 31 * 4 * stride
    assert found == (last // 32 + 1 if stride <= 8 else 32, 4, last // 128 + 1)


@pytest.mark.parametrize(("size", "sectors", "lines"), [(1, 1, 1), (2, 2, 1), (4, 4, 1), (8, 8, 2), (16, 16, 4), (32, 32, 8)])
def test_neighbours_touch_no_more_than_their_bytes(size, sectors, lines):
    assert global_traffic(WARP, LANES * size, size) == (sectors, sectors, lines)


def test_a_row_that_begins_in_the_middle_of_a_sector_takes_one_more():
    assert global_traffic(WARP, LANES * 4 + 16, 4) == (5, 4, 2)


def test_lanes_that_ask_for_the_same_word_touch_one_sector():
    assert global_traffic(WARP, np.zeros(32, np.int64), 4) == (1, 1, 1)


def test_warps_share_nothing():
    warps, lanes = lanes_of(3)
    assert global_traffic(warps, lanes * 4, 4) == (12, 12, 3)
    assert shared_traffic(warps, lanes, lanes * 4, Verb.READ, 4) == (3, 3)


@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize(("size", "passes"), [(4, 1), (8, 2), (16, 4)])
def test_words_a_stride_apart_conflict_as_often_as_the_stride_and_the_banks_divide(stride, size, passes):
    # A pass has 32 / passes lanes, which go to as many groups of banks: the gcd of stride and number of groups collide.
    found = shared_traffic(WARP, LANES, LANES * size * stride, Verb.READ, size)
    assert found == (passes * gcd(stride, 32 // passes), passes)


@pytest.mark.parametrize(("size", "passes"), [(1, 1), (2, 1), (4, 1), (8, 2), (16, 4)])
@pytest.mark.parametrize("verb", Verb)
def test_a_word_that_all_lanes_ask_for_is_broadcast(size, passes, verb):
    taken = passes // 2 if verb is Verb.READ and size >= 8 else passes  # loads of pairs of lanes, see below
    assert shared_traffic(WARP, LANES, np.zeros(32, np.int64), verb, size) == (taken, taken)


# ── pairs of lanes that load from one address: forums.developer.nvidia.com/t/77228 ─────────────────────


@pytest.mark.parametrize("apart", [1, 2])
@pytest.mark.parametrize(("size", "passes"), [(8, 2), (16, 4)])
def test_loads_of_pairs_take_half_the_passes(apart, size, passes):
    assert shared_traffic(WARP, LANES, (LANES & ~apart) * size, Verb.READ, size) == (passes, passes // 2)
    within = LANES // (2 * apart) * apart + LANES % apart  # the number of its pair
    assert shared_traffic(WARP, LANES, within * size, Verb.READ, size) == (passes // 2, passes // 2)
    assert shared_traffic(WARP, LANES, within * size, Verb.WRITE, size) == (passes, passes)


@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize(("size", "passes"), [(8, 1), (16, 2)])
def test_pairs_a_stride_apart_conflict_as_often_as_the_stride_and_the_banks_divide(stride, size, passes):
    # A pass has 16 / passes pairs of lanes, which go to as many groups of banks.
    found = shared_traffic(WARP, LANES, LANES // 2 * size * stride, Verb.READ, size)
    assert found == (passes * gcd(stride, 16 // passes), passes)


@pytest.mark.parametrize(("size", "passes"), [(8, 2), (16, 4)])
def test_one_lane_beside_its_pair_keeps_the_warp_from_it(size, passes):
    addresses = LANES // 2 * size
    addresses[31] = 16 * size
    assert shared_traffic(WARP, LANES, addresses, Verb.READ, size).ideal == passes
    assert shared_traffic(WARP[:31], LANES[:31], addresses[:31], Verb.READ, size).ideal == passes // 2


def test_each_warp_has_its_own_pairs():
    warps, lanes = lanes_of(3)
    addresses = np.where(warps == 1, lanes, np.where(warps == 0, lanes // 2, lanes // 4 * 2 + lanes % 2)) * 16
    assert shared_traffic(warps, lanes, addresses, Verb.READ, 16) == (2 + 4 + 2, 2 + 4 + 2)


def test_bytes_of_a_word_are_served_together():
    assert shared_traffic(WARP, LANES, LANES, Verb.READ, 1) == (1, 1)
    assert shared_traffic(WARP, LANES, LANES * 128, Verb.READ, 1) == (32, 1)


def test_lanes_that_are_off_take_no_pass():
    low = LANES[:8]
    assert shared_traffic(WARP[:8], low, low * 16, Verb.READ, 16) == (1, 1)


def test_an_xor_swizzle_of_rows_has_no_conflicts_in_columns():
    # Row r holds column c at c ^ r: the elements of a column are in 32 different banks.
    column = 5
    assert shared_traffic(WARP, LANES, LANES * 128 + (column ^ LANES) * 4, Verb.READ, 4) == (1, 1)
    assert shared_traffic(WARP, LANES, LANES * 128 + column * 4, Verb.READ, 4) == (32, 1)


@pytest.mark.parametrize("rivals", [1, 2, 4, 8, 16, 32])
def test_atomics_of_lanes_to_one_address_are_done_one_after_the_other(rivals):
    assert contention(WARP, LANES // rivals * 4) == (32 // rivals, rivals)


def test_the_most_wanted_address_of_each_warp_counts():
    warps, lanes = lanes_of(2)
    addresses = np.where(warps == 0, 0, np.minimum(lanes, 3) * 4)
    assert contention(warps, addresses) == (1 + 4, 32 + 29)
