"""The manual's notation of a syntax line, and what is none."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest

from ptxvm.diagnostics.errors import Unsupported
from ptxvm.isa.catalog import load_catalog
from ptxvm.isa.model import Registry, candidates
from ptxvm.isa.notation import parse_forms

load_catalog()


def test_a_slot_is_written_as_in_the_manual() -> None:
    (form,) = parse_forms("add{.sat}.type d, a, b; .type = { .u32, .s32 };", 0)
    assert [str(slot) for slot in form.slots] == ["{.sat}", ".type"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (".sat d, a;", r"\.sat d, a"),
        ("add d, [a;", "no ']'"),
        ("setp d{|p q};", "'q' where .* was expected"),
    ],
)
def test_what_is_no_line(line: str, said: str) -> None:
    with pytest.raises(SyntaxError, match=said):
        parse_forms(line, 0)


def test_variants_of_lines_that_overlap_come_once() -> None:
    (add, *_) = candidates("add", ("u32",))
    overlapping = replace(add.of, syntax="add{.sat} d, a; add.sat d, a;", fixed=0)
    assert [each.mnemonic for each in overlapping.variants()] == ["add", "add.sat"]


def test_a_modifier_that_no_form_has_is_no_attribute() -> None:
    (add, *_) = candidates("add", ("u32",))
    with pytest.raises(AttributeError, match="levitating"):
        _ = add.levitating
    assert copy.copy(add).mnemonic == add.mnemonic  # `copy` asks for special methods, which are no modifiers


def test_what_is_checked_only_says_so_when_it_runs() -> None:
    (found, *_) = candidates("fabric", ("submit",))
    with pytest.raises(Unsupported, match=r"'fabric\.submit' is not supported yet"):
        found.of.meaning(found, None)


def test_the_forms_of_an_opcode_are_read_when_they_are_asked_for() -> None:
    registry = Registry()
    (add, *_) = candidates("add", ("u32",))
    registry.add(replace(add.of, syntax="one{.sat} d; // a; comment\n two.x e; one f; .x = { .y };"))
    registry.add(replace(add.of, syntax="wrong [a;"))
    assert list(registry.by_opcode) == ["one", "two", "wrong"]
    assert "wrong" in registry.by_opcode
    assert [form.text for _, form in registry.by_opcode["one"]] == ["one{.sat} d", "one f"]
    with pytest.raises(SyntaxError):
        registry.by_opcode["wrong"]
    with pytest.raises(KeyError):
        registry.by_opcode["three"]
