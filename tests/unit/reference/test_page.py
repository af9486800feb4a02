"""Reference pages, codes and modifiers in words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ptxvm
from ptxvm.algebra.types import Type
from ptxvm.isa.catalog import load_catalog
from ptxvm.isa.exactness import DEFINED, SILICON
from ptxvm.isa.model import ISA
from ptxvm.reference import modifiers
from ptxvm.reference.codes import every_code, page_of
from ptxvm.reference.instruction_parts import operands_of
from ptxvm.reference.page import Page, find, pages
from ptxvm.reference.reading import read

load_catalog()


@pytest.mark.parametrize(
    ("name", "titles"),
    [
        ("prmt", ["prmt"]),
        ("mul.wide", ["mul.wide"]),
        ("ld.global.nc", ["ld.global.nc"]),
        ("ld.global.nc.f32", ["ld.global.nc"]),
        ("add.cc.u32;", ["add.cc"]),
        ("nix", []),
        ("add.nix", []),
    ],
)
def test_pages_are_found_by_their_words(name, titles):
    assert [page.title for page in find(name)] == titles


def test_every_instruction_has_a_page():
    found = [page.of for of_family in pages().values() for page in of_family]
    assert len(found) == len(set(found)) == len(ISA.instructions)
    for page in map(Page, found):
        assert page.headline, page.title
        assert page.needs, page.title
        assert page.operands or not page.of.sources, page.title


def test_shapes_are_those_of_the_types_on_the_page():
    """The shapes of `mma`, dense, sparse and with scaled blocks, by the types of A and B in the table of PTX 9.7.14.1."""
    shapes = {page.of.name: line for page in find("mma") for line in page.syntax if line.startswith(".mnk")}
    assert {name: re.findall(r"m\d+n\d+k\d+", line) for name, line in shapes.items()} == {
        "mma":           ["m8n8k4", "m16n8k8", "m16n8k16"],
        "mma_alternate": ["m16n8k4", "m16n8k8", "m16n8k16"],
        "mma_small":     ["m16n8k16", "m16n8k32"],
        "mma_f64":       ["m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"],
        "mma_integer":   ["m8n8k16", "m8n8k32", "m16n8k16", "m16n8k32", "m16n8k64"],
        "mma_bits":      ["m8n8k128", "m16n8k128", "m16n8k256"],
        "mma_sp":          ["m16n8k8", "m16n8k16", "m16n8k32"],
        "mma_sp_integer":  ["m16n8k32", "m16n8k64", "m16n8k128"],
        "mma_sp_small":    ["m16n8k64"],
        "mma_scaled":      ["m16n8k32", "m16n8k64"],
        "mma_sp_scaled":   ["m16n8k64", "m16n8k128"],
    }  # fmt: skip


def test_needs_are_of_modifiers_that_the_instruction_has():
    (page,) = find("ld.global.nc")
    words = " ".join(what for what, _ in page.needs)
    assert ".L2::cache_hint" in words
    assert ".shared::cta" not in words


def test_exactness_is_of_what_computes():
    assert find("add")[0].of.exactness == (DEFINED,)
    assert find("ex2")[0].of.exactness == (SILICON,)
    assert find("bar.sync")[0].of.exactness == ()


def test_what_only_has_a_bound_or_an_order_says_what_it_was_held_against():
    """`.approx` and `.full` are never taken for defined; what has no data is within its bound (PTX 9.7.3, 9.7.4)."""
    found = [page.of for family in pages().values() for page in family]
    approximate = [of for of in found if {"approx", "full"} & of.modifiers]
    assert len(approximate) > 10
    for of in approximate:
        assert DEFINED not in of.exactness, of.name
        assert of.exactness, of.name
    words = {f"{of.family}.{of.name}": of.exactness[0].word for of in approximate}
    assert [name for name, word in words.items() if word == "within bound"] == [
        "float.tanh", "half.tanh",
    ]  # fmt: skip


def test_every_code_in_the_source_has_a_page():
    package = Path(ptxvm.__file__).parent
    used = {code for path in package.rglob("*.py") for code in re.findall(r'"(P\d{4})"', path.read_text())}
    assert used <= set(every_code())
    for code in used:
        assert page_of(code).title, code


def test_a_code_is_found_in_either_case():
    assert page_of("p0102") == page_of("P0102")
    assert page_of("P9999") is None


def test_a_rule_that_several_instructions_share_names_them_all():
    assert {"ld", "st", "atom"} <= {i.name for i in page_of("P1801").instructions}


def test_every_modifier_has_words():
    """None is left to its instruction, and none says only which others might stand there."""
    lacking = {
        (form.opcode, word)
        for instruction in ISA.instructions
        for form in instruction.forms
        for slot in (*form.slots, *form.marks)
        for word in slot.choices
        if not modifiers.meaning(slot, word, form.opcode)
    }
    assert lacking == set()


def test_every_word_of_the_table_is_a_modifier():
    said = {
        key
        for instruction in ISA.instructions
        for form in instruction.forms
        for slot in (*form.slots, *form.marks)
        for word in slot.choices
        for key in (word, f"{slot.name}.{word}", f"{form.opcode}:{word}")
    }
    assert modifiers.WORDS.keys() <= said


@pytest.mark.parametrize(
    ("opcode", "word", "said"),
    [
        ("match", "any", "each lane finds the lanes that have its own value"),  # PTX 9.7.13.10
        ("vote", "any", "true of any lane"),  # PTX 9.7.13.9
        ("dp2a", "lo", "the two lower bytes of `b`"),  # PTX 9.7.1.24
        ("mul", "lo", "keep the lower half of the product"),  # PTX 9.7.1.3
        ("mma", "popc", "count the ones"), ("bar", "popc", "count the true predicates"),  # PTX 9.7.14.5.14, 9.7.13.1
        ("suld", "clamp", "out of bounds, the nearest element"), ("shf", "clamp", "limit the amount to the width"),
        ("mma", "m16n8k16", "A has 16 × 16 elements, B 16 × 8, and the result 16 × 8"), ("ldmatrix", "x1", "1 matrix"),
        ("tcgen05", "collector::b2::lastuse", "take B from the collector buffer 2 for the last time"),
        ("vadd", "b0", "byte 0"), ("vadd2", "h10", "halves 0, 1"), ("vadd4", "b32", "bytes 2, 3"),
    ],
)  # fmt: skip
def test_a_word_says_what_it_does_to_its_instruction(opcode, word, said):
    forms = [form for instruction in ISA.instructions for form in instruction.forms if form.opcode == opcode]
    slots = [slot for form in forms for slot in (*form.slots, *form.marks) if word in slot.choices]
    assert {modifiers.meaning(slot, word, opcode) for slot in slots} == {said}


@pytest.mark.parametrize(
    ("type", "words"),
    [
        ("u32", "32-bit unsigned integer"), ("b64", "64 bits of any kind"), ("f16x2", "2 × .f16, packed in 32 bits"),
        ("f64", "64-bit floating-point number"), ("pred", "a predicate: true or false"),
        ("s8x4", "4 × .s8, packed in 32 bits"),
    ],
)  # fmt: skip
def test_types_in_words(type, words):
    assert modifiers.type_in_words(Type.named[type]) == words


@pytest.mark.parametrize(("types", "said"), [("u32.u32", "u32"), ("s32.u32", "s32"), ("u32.s32", "s32"), ("s32.s32", "s32")])
@pytest.mark.parametrize("opcode", ["dp4a", "dp2a.hi"])
def test_the_sum_of_products_is_signed_where_a_factor_is(opcode, types, said):
    """Of `c` and `d`, PTX 9.7.1.23 and 9.7.1.24."""
    rows = operands_of(read(f"{opcode}.{types} %r0, %r1, %r2, 5").bound)
    assert [what for name, _, what in rows if name in "cd"] == [f"result, .{said}", f"source, .{said}"]
