"""Reading a single instruction, without a module."""

from __future__ import annotations

import gzip
import json

import pytest

from ptxvm.isa.targets import Target
from ptxvm.reference.evaluation import compute, is_computable, wanted
from ptxvm.reference.reading import NotUnderstood, read


def registers(text: str) -> dict[str, str]:
    """The types that the names got."""
    scope = read(text).bound.scope
    found = {name: symbol for name, symbol in scope.names.items() if symbol.shape.kind == "register"}
    return {name: symbol.type.name for name, symbol in found.items()}


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("add.s32 %r1, %r2, 5", {"%r1": "s32", "%r2": "s32"}),
        ("mul.wide.u16 %r1, %rs1, %rs2;", {"%r1": "u32", "%rs1": "u16", "%rs2": "u16"}),
        ("setp.lt.and.f64 %p1|_, %fd1, %fd2, !%p3;", {"%p1": "pred", "%fd1": "f64", "%fd2": "f64", "%p3": "pred"}),
        ("@%p1 mov.b64 %rd1, {%r1, %r2};", {"%p1": "pred", "%rd1": "b64", "%r1": "b32", "%r2": "b32"}),
        ("ld.global.v2.f32 {%f1, %f2}, [%rd1+8];", {"%f1": "f32", "%f2": "f32", "%rd1": "u64"}),
        ("fma.rn.bf16x2 %r1, %r2, %r3, %r4;", {"%r1": "b32", "%r2": "b32", "%r3": "b32", "%r4": "b32"}),
        ("ld.global.f32 d, [a];", {"d": "f32", "a": "u64"}),  # as the manual writes
    ],
)  # fmt: skip
def test_registers_get_the_types_of_their_places(text, types):
    assert registers(text) == types


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("ld.shared.u8 %rs1, [buffer+4];", "buffer", "variable"),
        ("mov.u64 %rd1, buffer;", "buffer", "variable"),
        ("@%p1 bra DONE;", "DONE", "label"),
        ("call (%r1), f, (%r2, 5);", "f", "function"),
        ("brx.idx %r1, targets;", "targets", "table"),
        ("call (%r1), %rd1, (%r2), prototype;", "prototype", "prototype"),
    ],
)
def test_other_names_are_what_their_places_ask_for(text, name, kind):
    reading = read(text)
    assert reading.bound.scope.find(name).shape.kind == kind


@pytest.mark.parametrize("text", ["ret;", "ret", "  bar.sync 0  ", "membar.gl;"])
def test_blanks_and_the_semicolon_do_not_matter(text):
    assert read(text).text == text.strip().rstrip(";") + ";"


def test_the_newest_version_that_takes_it_is_taken():
    assert read("ret").refused == ()
    old = read("mad.f32 %f1, %f2, %f3, %f4")  # PTX 9.7.3.7: sm_1x needs no rounding modifier
    assert old.target < Target(30)
    assert [d.code for d in old.refused] == ["P1201"]


def test_what_is_wrong_has_its_place_in_the_text():
    with pytest.raises(NotUnderstood) as wrong:
        read("  add.u32 %r1, %r2, %f3.q;")
    (found,) = wrong.value.diagnostics
    assert wrong.value.source.text[found.span.start : found.span.end] == "%f3.q"
    assert (found.line, found.column) == (1, 19)


@pytest.mark.parametrize(
    "text", ["", ";", "{", "}", "} ret;", "a b c", ".entry k() {}", "ret; ret;", "L: ret;", "/* ", "\0", "@"]
)
def test_what_is_no_instruction_is_not_understood(text):
    with pytest.raises(NotUnderstood) as wrong:
        read(text)
    assert wrong.value.diagnostics


def test_instructions_of_all_kinds(shared, rng):
    """Whatever ptxas knows is read and computed, or refused with a reason; nothing crashes."""
    with gzip.open(shared / "isa" / "variants.jsonl.gz", "rt") as file:
        rows = [json.loads(line)["text"] for line in file]
    read_well = unexplained = 0
    for text in rng.choice(rows, 500, replace=False):
        try:
            reading = read(text)
        except NotUnderstood as wrong:
            unexplained += not wrong.diagnostics
            continue
        read_well += 1
        if is_computable(reading):
            given = {name: int(rng.integers(1 << min(type.bits, 62))) for name, type in wanted(reading).items()}
            compute(reading, given)
    assert read_well > 35
    assert not unexplained
