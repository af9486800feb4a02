"""Blocks, and their parts between late declarations."""

from __future__ import annotations

from ptxvm.algebra.types import Type
from ptxvm.analysis.scope import Family, NameScope
from ptxvm.analysis.symbols import Label

B32, F32 = Type.named["b32"], Type.named["f32"]


def block() -> NameScope:
    """A block in a block."""
    return NameScope(NameScope())


def test_a_part_sees_what_is_declared_above_it_and_nothing_below():
    first = block()
    a = first.declare(first.new_register("a", B32))
    second = first.split()
    b = second.declare(second.new_register("b", B32))
    assert (first.find("a"), second.find("a"), second.find("b")) == (a, a, b)
    assert first.find("b") is None
    assert first.declares_later("b")
    assert (first.spellings(), second.spellings()) == ({"a"}, {"a", "b"})


def test_a_late_name_hides_that_of_the_block_around_from_there_on():
    first = block()
    outer = first.outer.declare(first.new_register("a", B32))
    assert first.find("a") is outer
    second = first.split()
    inner = second.declare(second.new_register("a", F32))
    assert (first.find("a"), first.inner().find("a"), second.find("a")) == (outer, outer, inner)


def test_a_name_that_is_declared_twice_keeps_its_meaning_above():
    first = block()
    a = first.declare(first.new_register("a", B32))
    second = first.split()
    again = second.declare(second.new_register("a", F32))
    assert (first.peek("a"), second.peek("a")) == (a, again)


def test_a_late_family_is_out_of_sight_above():
    first = block()
    second = first.split()
    second.declare_family(Family("%r", B32, 4))
    assert (first.find("%r1"), first.family("%r"), first.spellings()) == (None, None, set())
    assert first.declares_later("%r1")
    assert not first.declares_later("%r4")
    assert second.find("%r1").name == "%r1"
    third = second.split()
    third.declare_family(Family("%r", F32, 8))
    assert (second.find("%r2").type, third.find("%r2").type) == (B32, F32)


def test_a_register_of_a_family_stands_for_itself_once_it_is_made():
    first = block()
    first.declare_family(family := Family("%r", B32, 4))
    assert first.declared("%r1") is family
    register = first.inner().find("%r01")
    assert first.declared("%r1") is first.declared("%r01") is register
    assert first.declared("%r4") is None


def test_parts_share_their_names():  # a body with a declaration for each instruction would take quadratic memory
    first = block()
    second = first.split()
    second.declare(second.new_register("a", B32))
    assert second.split().names is first.names


def test_a_part_copies_the_names_above_once() -> None:
    """However many names it declares again: a family of variables can have tens of thousands."""
    above = NameScope(NameScope())
    for name in "ab":
        above.declare(Label(name, 0))
    below, kept = above.split(), dict(above.names)
    below.declare(Label("a", 1))
    own = below.names
    below.declare(Label("b", 1))
    assert below.names is own
    assert above.names == kept
