"""Textures, samplers, surfaces and arrays as operands: verdicts and words of ptxas 13.5."""

import pytest

HEAD = ".version 9.0\n.target sm_75{}\n.address_size 64\n"
REGISTERS = ".reg .b64 %d<3>; .reg .b32 %r<4>;"


@pytest.mark.parametrize("mode", ["", ", texmode_independent"])
@pytest.mark.parametrize("kind", ["texref", "samplerref", "surfref"])
@pytest.mark.parametrize("type", [".u64", ".b64", ".u32"])
def test_a_parameter_may_point_to_one(errors, kind, mode, type):
    for pointer in (f".ptr .{kind} x", f".ptr .{kind} .align 8 x", f".ptr .{kind} x[2]"):
        assert errors(HEAD.format(mode) + f".visible .entry k(.param {type} {pointer}) {{ ret; }}") == []


@pytest.mark.parametrize("pointer", [".ptr .global .texref x", ".ptr .texref .global x"])
def test_it_points_to_one_thing(ptxas_words, pointer):
    word = ".texref" if ".global .texref" in pointer else ".global"
    text = HEAD.format("") + f".visible .entry k(.param .u64 {pointer}) {{ ret; }}"
    assert ptxas_words(text) == [f"Parsing error near '{word}': syntax error"]


def test_functions_have_no_such_parameters(ptxas_words):
    text = HEAD.format("") + ".func f(.param .u64 .ptr .texref x) { ret; }"
    assert ptxas_words(text) == ["Illegal placement of kernel parameter attribute"]


def test_it_came_with_4_3(ptxas_words):
    text = ".version 4.2\n.target sm_30\n.address_size 64\n.entry k(.param .u64 .ptr .texref x) { ret; }"
    assert ptxas_words(text) == ["Feature 'kernel parameter pointers to opaque types' requires PTX ISA .version 4.3 or later"]


@pytest.mark.parametrize("kind", ["texref", "surfref"])
def test_their_bytes_are_not_moved(ptxas_words, kind):
    for opcode, code in {
        "ld": "ld.global.u64 %d1, [x];",
        "st": "st.global.u32 [x+4], %r1;",
        "ldu": "ldu.global.u32 %r1, [x];",
    }.items():
        text = f".global .{kind} x; .visible .entry k() {{ {REGISTERS} {code} ret; }}"
        assert ptxas_words(HEAD.format("") + text) == [f"Illegal operand type to instruction '{opcode}'"]
    text = f".visible .entry k(.param .{kind} x) {{ {REGISTERS} ld.param.u64 %d1, [x]; ret; }}"
    assert ptxas_words(HEAD.format("") + text) == ["Illegal operand type to instruction 'ld'"]


def test_handles_and_arrays_are(errors):
    code = f"{REGISTERS} mov.u64 %d1, t; ld.param.u64 %d1, [x]; ld.global.u64 %d1, [a]; ret;"
    text = f".global .texref t; .global .texref a[2]; .visible .entry k(.param .u64 .ptr .texref x) {{ {code} }}"
    assert errors(HEAD.format("") + text) == []


INDEXED = {
    "mov.u64 %d1, s[1];": ["Array indexing on non-array"],
    "mov.u64 %d1, s[0];": ["Array indexing on non-array"],
    "mov.u64 %d1, a[1];": [],
    "mov.u64 %d1, e[1];": [],
    "mov.b64 %d1, {%r1, a};": ["Illegal expression 'a'"],
    "mov.b64 %d1, {%r1, v};": ["Illegal expression 'v'"],
    "mov.b64 %d1, {%r1, s};": [],
}


@pytest.mark.parametrize("code", INDEXED)
def test_elements(ptxas_words, code):
    variables = ".global .u32 s; .global .u32 a[4]; .extern .global .u32 e[]; .global .v2 .u32 v;"
    text = HEAD.format("") + f"{variables} .visible .entry k() {{ {REGISTERS} {code} ret; }}"
    assert ptxas_words(text) == INDEXED[code]


def test_a_local_of_the_name_of_a_parameter_is_not_written(ptxas_words):
    text = ".func f(.param .b32 a) { { .param .b32 a; st.param.b32 [a], 1; } ret; }"
    assert ptxas_words(HEAD.format("") + text) == ["Illegal to write to function input parameter 'a'"]
