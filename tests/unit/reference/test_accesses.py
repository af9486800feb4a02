"""Sectors, lines and banks of an access: the numbers are those of the CUDA C++ Programming Guide, and closed forms."""

from __future__ import annotations

from math import gcd

import numpy as np
import pytest

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import u64
from ptxvm.isa.effects import Verb
from ptxvm.profile.warp_accesses import global_traffic, shared_traffic
from ptxvm.reference.accesses import Place, WarpAccess, access_of, in_ranges, place_of
from ptxvm.reference.reading import read


def access(text: str, stride: int, base: int = 0) -> WarpAccess:
    place = place_of(read(text))
    assert place is not None
    return access_of(place, [base + lane * stride for lane in range(32)])


SHARED, GLOBAL = "ld.shared.f32 %f1, [%r1];", "ld.global.f32 %f1, [%rd1];"


@pytest.mark.parametrize("stride", range(1, 33))
def test_words_a_stride_apart_conflict_as_often_as_it_shares_factors_with_the_banks(stride):
    """32 lanes at multiples of `stride` words meet in 32 / gcd(stride, 32) banks."""
    (found,) = access(SHARED, 4 * stride).passes
    assert found.turns == gcd(stride, 32)


def test_a_row_of_padding_takes_conflicts_away():
    assert access(SHARED, 4 * 33).passes[0].turns == 1


@pytest.mark.parametrize(("text", "stride"), [(SHARED, 0), ("ld.shared.u8 %r2, [%r1];", 1)])
def test_lanes_that_want_one_word_get_it_together(text, stride):
    assert [each.turns for each in access(text, stride).passes] == [1]


@pytest.mark.parametrize(
    ("text", "size", "passes"),
    [("ld.shared.f64 %fd1, [%r1];", 8, 2), ("ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [%r1];", 16, 4)],
)
def test_a_pass_is_for_128_bytes(text, size, passes):
    assert [each.turns for each in access(text, size).passes] == [1] * passes


@pytest.mark.parametrize(("stride", "sectors", "lines"), [(4, 4, 1), (8, 8, 2), (32, 32, 8), (128, 32, 32), (0, 1, 1)])
def test_sectors_and_lines_of_a_stride(stride, sectors, lines):
    found = access(GLOBAL, stride)
    assert (len(found.sectors), len(found.lines)) == (sectors, lines)


def test_a_row_that_begins_within_a_sector_takes_one_more():
    found = access(GLOBAL, 4, base=4)
    assert (len(found.sectors), found.fewest_sectors) == (5, 4)
    assert found.sectors[0] == list(range(7))


def test_an_offset_belongs_to_the_address():
    assert access("ld.global.f32 %f1, [%rd1+-4];", 4, base=4).addresses[0] == 0


def test_misaligned_lanes_are_known():
    assert access(GLOBAL, 2).misaligned == list(range(1, 32, 2))


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("atom.global.add.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1], {%f5, %f6, %f7, %f8};", 16),
        ("red.global.add.noftz.v8.bf16 [%rd1], {%h1, %h2, %h3, %h4, %h5, %h6, %h7, %h8};", 16),
        ("ld.global.v2.u64 {%rd2, %rd3}, [%rd1];", 16),
        ("red.global.add.u32 [%rd1], %r1;", 4),
    ],
)
def test_the_size_is_that_of_the_whole_vector(text, size):
    """PTX 9.7.13.5: a vector atomic operation updates each of its elements."""
    place = place_of(read(text))
    assert place is not None
    assert (place.size, place.space) == (size, Space.GLOBAL)


@pytest.mark.parametrize(
    "text",
    [
        "add.u32 %r1, %r2, %r3;",
        "ld.shared.u32 %r1, [tile+4];",  # its address is known to a loaded module only
        "cp.async.ca.shared.global [%r1], [%rd1], 16;",
    ],
)
def test_other_instructions_have_no_place(text):
    assert place_of(read(text)) is None


@pytest.mark.parametrize("verb", Verb)
@pytest.mark.parametrize("apart", [0, 1, 2, 3])
@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_wavefronts_and_sectors_are_those_that_a_profile_counts(rng, size, apart, verb):
    """The counters have formulas of their own, over arrays."""
    registers = rng.integers(0, 64, 32)[np.arange(32) & ~apart] * size
    active = rng.random(32) < 0.8
    place = Place("%r1", u64, 0, Space.SHARED, size, verb=verb)
    found = access_of(place, registers.tolist(), active.tolist())
    warp, lanes, registers = np.zeros(active.sum(), np.int64), np.flatnonzero(active), registers[active]
    assert (found.wavefronts, len(found.passes)) == shared_traffic(warp, lanes, registers, verb, size)
    counted = global_traffic(warp, registers, size)
    assert (len(found.sectors), found.fewest_sectors, len(found.lines)) == (counted.sectors, counted.ideal, counted.lines)


@pytest.mark.parametrize(
    ("text", "lanes", "size"),
    [
        ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r5];", 8, 16),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r5];", 32, 16),
        ("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1, %r2}, [%r5];", 16, 16),
        ("ldmatrix.sync.aligned.m8n16.x2.shared.s8.s4 {%r1, %r2}, [%r5];", 16, 8),
        ("stmatrix.sync.aligned.m16n8.x2.trans.shared.b8 [%r5], {%r1, %r2};", 16, 16),
    ],
)
def test_lanes_have_the_addresses_of_rows(text, lanes, size):
    """PTX 9.7.14.5.15: eight or sixteen lanes for each matrix, whose rows are 8 × 16, 16 × 8 or 16 × 4 bits."""
    place = place_of(read(text))
    assert place is not None
    assert (place.lanes, place.size, place.space) == (lanes, size, Space.SHARED)
    found = access_of(place, [size * lane for lane in range(32)])
    assert sorted(found.addresses) == list(range(lanes))


def test_rows_of_a_matrix_that_are_128_bytes_apart_are_in_the_same_banks():
    place = place_of(read("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r5];"))
    assert place is not None
    assert access_of(place, [128 * lane for lane in range(32)]).wavefronts == 32
    assert access_of(place, [(128 + 16) * lane for lane in range(32)]).wavefronts == 4


def test_numbers_in_order_are_ranges():
    assert in_ranges([0, 1, 2, 5, 7, 8]) == "0-2, 5, 7-8"
