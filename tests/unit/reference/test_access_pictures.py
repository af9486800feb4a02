"""Pictures of accesses: a line from each lane to the banks or sectors that closed forms say."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from ptxvm.algebra.state_space import Space
from ptxvm.reference.access_pictures import lanes_of_access
from ptxvm.reference.accesses import APART, WarpAccess

SVG = "{http://www.w3.org/2000/svg}"


def drawn(space, size, stride, lanes=range(32), memories=()):
    """The titles of the shapes of a picture, and the number of its lines."""
    access = WarpAccess(space, size, {lane: lane * stride for lane in lanes}, memories)
    root = ET.fromstring(lanes_of_access(access))  # noqa: S314 - our own text
    titles = [title.text for title in root.iter(f"{SVG}title")]
    return titles, len(list(root.iter(f"{SVG}line")))


@pytest.mark.parametrize(("stride", "words"), [(4, 1), (8, 2), (128, 32)])
def test_banks_are_asked_for_as_many_words_as_the_stride_says(stride, words):
    titles, lines = drawn(Space.SHARED, 4, stride)
    asked = f"{words} word{'s' * (words > 1)}"
    assert f"bank 0: {asked}" in titles
    assert sum(title.startswith("bank") and asked in title for title in titles) == 32 // words
    assert titles[0] == f"Lanes and the banks that they ask: {words} wavefront{'s' * (words > 1)}, ideal 1"
    assert lines == 32


def test_an_access_of_16_bytes_has_four_passes_of_eight_lanes_and_four_banks_each():
    titles, lines = drawn(Space.SHARED, 16, 16)
    assert titles[0] == "Lanes and the banks that they ask: 4 wavefronts, ideal 4"
    assert sum(title.startswith("bank") for title in titles) == 4 * 32
    assert lines == 32 * 4


def test_passes_without_an_active_lane_are_left_out():
    titles, _ = drawn(Space.SHARED, 8, 8, lanes=range(3))
    assert titles[0] == "Lanes and the banks that they ask: 1 wavefront, ideal 1"
    assert "lane 3: not active" in titles


def test_sectors_say_how_much_of_them_is_used():
    titles, lines = drawn(Space.GLOBAL, 4, 8, memories=("x",))
    assert titles[0] == "Lanes and the sectors that they touch: 8, ideal 4"
    assert "x+0x20: 16 of 32 bytes, lanes 4-7" in titles
    assert lines == 32


def test_two_memories_are_apart():
    access = WarpAccess(Space.GLOBAL, 4, {0: 0, 1: APART}, ("x", "y<b>"))
    titles = [title.text for title in ET.fromstring(lanes_of_access(access)).iter(f"{SVG}title")]  # noqa: S314
    assert "y<b>+0x0: 4 of 32 bytes, lanes 1" in titles
