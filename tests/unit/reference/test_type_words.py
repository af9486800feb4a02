"""Types: where the manual has them, and since when."""

from __future__ import annotations

import pytest

from ptxvm.algebra.types import Type
from ptxvm.isa.catalog import load_catalog
from ptxvm.isa.model import ISA
from ptxvm.reference import type_words
from ptxvm.reference.instruction_parts import requirements

load_catalog()


def test_every_type_that_an_instruction_takes_is_one():
    taken = {
        word
        for instruction in ISA.instructions
        for form in instruction.forms
        for slot in form.slots
        if slot.is_type
        for word in slot.choices
    }
    assert taken == {name for name in Type.named if type_words.is_type(name)} & taken
    assert {name for name in Type.named if type_words.is_type(name)} <= taken


def test_each_is_a_modifier_of_what_brought_it():
    for name, (_, mnemonic) in type_words.OTHERS.items():
        assert not mnemonic or name in mnemonic.split("."), name


@pytest.mark.parametrize(
    ("name", "section", "needs"),
    [
        ("bf16", "5.2.3", "PTX 7.0, sm_80"), ("tf32", "5.2.3", "PTX 7.0, sm_80"),  # PTX 9.7.9.21
        ("e4m3x2", "5.2.5", "PTX 7.8, sm_89"), ("s4", "9.7.14.2", "PTX 6.3, sm_75"), ("f32x2", "5.2.5", "PTX 8.6, sm_100"),
    ],
)  # fmt: skip
def test_what_a_type_needs(name, section, needs):
    type = Type.named[name]
    bringing = type_words.first(type)
    assert type_words.section(type) == section
    assert bringing is not None
    assert requirements(bringing) == needs
