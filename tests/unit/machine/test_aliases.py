"""Aliases: which addresses stand for one place (PTX 8.2.2)."""

from __future__ import annotations

import numpy as np
import pytest

from ptxvm.algebra.state_space import Space
from ptxvm.machine.aliases import Aliases, MappedMemory, MappedPart
from ptxvm.machine.allocation import Allocation

PAGE = 4096
FIRST, SECOND, APART = (at * 16 * PAGE for at in (1, 2, 3))


def places(aliases, start, *offsets, space=Space.GLOBAL):
    allocation = Allocation(start, 4 * PAGE, space, "mapped memory")
    found = list(aliases.places(allocation, np.array(offsets)))
    return [(place.start, within.tolist()) for _, place, within in found]


def test_two_addresses_of_one_byte_are_one_place():
    aliases = Aliases([MappedPart(SECOND, 2 * PAGE, 7, PAGE), MappedPart(FIRST, 4 * PAGE, 7, 0)])
    assert aliases
    assert places(aliases, SECOND, 0, 8) == [(FIRST, [PAGE, PAGE + 8])]
    assert places(aliases, FIRST, PAGE, 8) == [(FIRST, [PAGE, 8])]


def test_what_an_access_reaches_elsewhere_stays_where_it_is():
    aliases = Aliases([MappedPart(FIRST, PAGE, 7, 0), MappedPart(SECOND, PAGE, 7, 0)])
    assert places(aliases, SECOND, 4, PAGE + 4) == [(SECOND, [PAGE + 4]), (FIRST, [4])]
    assert places(aliases, SECOND, 4, space=Space.SHARED) == [(SECOND, [4])]


@pytest.mark.parametrize(
    "parts", [[], [MappedPart(FIRST, PAGE, 7, 0), MappedPart(SECOND, PAGE, 8, 0), MappedPart(APART, PAGE, 7, PAGE)]]
)
def test_parts_of_their_own_are_no_aliases(parts):
    aliases = Aliases(parts)
    assert not aliases
    assert places(aliases, FIRST, 4) == [(FIRST, [4])]


def test_what_is_mapped_is_asked_for_after_each_change():
    parts, memory = [MappedPart(FIRST, PAGE, 7, 0)], MappedMemory()
    assert not memory.aliases
    memory.follow(lambda: parts)
    assert not memory.aliases
    parts.append(MappedPart(SECOND, PAGE, 7, 0))
    assert not memory.aliases
    memory.changed()
    assert memory.aliases
