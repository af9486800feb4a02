"""Completion and signature help: what the syntax lines of the manual let stand at the cursor, and nothing else."""

from __future__ import annotations

import pytest

pytest.importorskip("lsprotocol", reason="the language server needs the extra 'lsp'")

from ptxvm.lsp.completion import completion
from ptxvm.lsp.signature import signature_help


def labels(at, text):
    return [item.label for item in completion(*at(text))]


def test_a_statement_begins_with_an_opcode(at):
    found = labels(at, "ad^")
    assert {"add", "addc", "ld", "wgmma", "tcgen05", "bra"} <= set(found)
    assert not any(name.startswith(("%", ".")) for name in found)


def test_after_a_load_stand_the_modifiers_that_open_its_syntax_lines(at):
    assert {"global", "shared", "weak", "relaxed", "acquire", "volatile", "v2", "u32"} <= set(labels(at, "ld.^"))


def test_modifiers_come_in_the_order_of_the_syntax(at):
    """After the state space come cache operators, vectors and types, and no order or second space (PTX 9.7.9.8)."""
    found = set(labels(at, "ld.global.^"))
    assert {"v4", "u32", "f32", "b64"} <= found
    assert not found & {"acquire", "shared", "weak", "volatile", "global"}


def test_after_the_last_modifier_there_is_none(at):
    assert labels(at, "add.sat.s32.^") == []


def test_a_required_modifier_hides_those_behind_it(at):
    assert set(labels(at, "setp.^")) >= {"lt", "eq", "geu"}
    assert "s32" not in labels(at, "setp.^")


def test_modifiers_that_the_target_lacks_come_last_and_say_what_they_need(at):
    text = ".version 6.0\n.target sm_60\n.address_size 64\n.entry k() {\n.reg .b32 %r<3>;\n ld.^\n}"
    items = {item.label: item for item in completion(*at(text))}
    assert items["acquire"].documentation == "needs PTX 6.0, sm_70"
    assert items["acquire"].sort_text > items["u32"].sort_text


@pytest.mark.parametrize(
    ("text", "there", "missing"),
    [
        ("add.s32 %r2, ^", {"%r1"}, {"%f1", "%p1", "%rd1", "LOOP", "tile", "k"}),
        ("add.f32 %f1, %^", {"%f1", "%r1"}, {"%rd1", "%p1", "%tid"}),
        ("@^", {"%p1"}, {"%r1", "%f1", "%rd1"}),
        ("@!%^", {"%p1"}, {"%r1"}),
        ("bra ^", {"LOOP"}, {"%r1", "tile", "table"}),
        ("ld.shared.u32 %r2, [^", {"tile", "%r1", "%rd1"}, {"%f1", "LOOP", "%p1"}),
        ("ld.param.u32 %r2, [^", {"n", "out"}, {"LOOP", "%p1"}),
        ("setp.eq.s32 %p1, %r1, ^", {"%r1"}, {"%p1", "%f1"}),
        ("st.global.v2.f32 [%rd1], {%f1, ^", {"%f1"}, {"%p1", "LOOP"}),
        ("mov.b64 {%r2, ^}, %rd1;", {"%r1"}, {"%p1", "LOOP"}),  # PTX 9.7.9.11: elements have half of the bits
        ("mov.b64 {%r2, ^", {"%r1"}, {"%p1", "LOOP", "%laneid"}),
        ("mov.u64 %rd1, ^", {"k", "tile", "%rd1"}, {"%f1", "%p1"}),
        ("mov.u32 %r2, ^", {"%laneid", "%tid", "%r1", "WARP_SZ"}, {"%f1", "%p1"}),
    ],
)
def test_operands_are_what_fits(at, text, there, missing):
    """By the types of operands (PTX 9.2) and of addresses (6.4.1)."""
    found = set(labels(at, text))
    assert there <= found
    assert not missing & found


CALLS = """.version 8.0
.target sm_80
.address_size 64
.global .u64 targets[2];
.func (.reg .b32 out) f(.reg .b32 x) { mov.u32 out, x; ret; }
.visible .entry k() {
    .reg .b32 %r<2>; .reg .b64 %rd<2>; .reg .pred %p<2>;
    .param .b32 given;
    proto: .callprototype (.reg .b32 _) _ (.reg .b32 _);
    mov.u32 %r1, 0; mov.u64 %rd1, f; setp.eq.u32 %p1, %r1, 0;
    BODY
}
"""


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("call ^", {"f", "%rd1"}),
        ("call (^", {"%r1", "%rd1", "given"}),
        ("call (%r1), ^", {"f", "%rd1"}),
        ("call (%r1), f, (^", {"%r1", "%rd1", "given"}),
        ("call (%r1), %rd1, (%r1), ^", {"proto", "targets"}),
    ],
)
def test_a_call_has_functions_pointers_to_them_and_prototypes(at, text, offered):
    """PTX 9.7.12.5; predicates and special registers are no arguments, and no register of 32 bits has an address here."""
    every = {"f", "k", "%rd1", "%r1", "%p1", "given", "proto", "targets", "%tid"}
    assert every & set(labels(at, CALLS.replace("BODY", text))) == offered


def test_a_register_that_is_not_used_yet_is_offered_too(at):
    items = {item.label: item.detail for item in completion(*at("add.s32 ^"))}
    assert items["%r2"] == ".b32, not used yet"


def test_the_only_register_of_a_family_is_offered(at):
    """`%one<1>` declares %one0 alone (PTX 5.3)."""
    assert "%one0" in labels(at, ".reg .b32 %one<1>; mov.b32 ^")


def test_registers_that_are_used_are_looked_through_a_few_times(at, monkeypatch):
    class Number(int):
        hashed = 0

        def __hash__(self):
            Number.hashed += 1
            return int(self)

    monkeypatch.setattr("ptxvm.lsp.completion._used", lambda *_: {Number(n) for n in range(1, 100)})
    assert {"%r1", "%r2", "%r99"} <= set(labels(at, "add.s32 ^"))
    assert Number.hashed == 99  # when the set was made


def test_components_of_special_registers(at):
    assert labels(at, "mov.u32 %r2, %tid.^") == ["x", "y", "z", "w"]
    assert labels(at, "mov.u32 %r2, %laneid.^") == []


@pytest.mark.parametrize(
    ("text", "there"),
    [
        (".reg .^", {"b32", "pred", "f64"}),
        (".sh^", {"shared", "reg"}),
        (".version 8.0\n.target ^", {"sm_90a", "sm_75"}),
        (".version ^", {"9.1", "6.4"}),
        (".version 8.0\n.target sm_90\n.^", {"visible", "entry", "global"}),
        (".version 8.0\n.target sm_90\n.visible .^", {"entry", "func", "global"}),
        (".version 8.0\n.target sm_90\n.visible .entry k() .^", {"maxntid", "reqntid"}),
        (".version 8.0\n.target sm_90\n.visible .entry k(.param .^", {"u64", "align"}),
    ],
)
def test_directives(at, text, there):
    assert there <= set(labels(at, text))


@pytest.mark.parametrize("text", ["// ld.^", '.pragma "no^', "/* ad^ */", "/* a  ^  b */", "mov.u32 %r1, 1; //  ^"])
def test_comments_and_strings_have_none(at, text):
    assert labels(at, text) == []


def test_what_is_chosen_replaces_the_beginning_of_the_word(at):
    document, position = at("ld.gl^")
    edit = next(item.text_edit for item in completion(document, position) if item.label == "global")
    assert document.text.text[slice(*document.text.span(edit.range))] == "gl"


# ── signature help ──────────────────────────────────────────────────────────────────────


def test_signatures_name_the_operands_and_the_one_that_is_written(at):
    found = signature_help(*at("mad.lo.s32 %r1, %r2, ^"))
    shown = found.signatures[found.active_signature]
    assert shown.label == "mad.lo.s32 d, a, b, c;"
    assert found.active_parameter == 2
    assert [shown.label[slice(*p.label)] for p in shown.parameters] == ["d", "a", "b", "c"]
    assert next(p.documentation for p in shown.parameters).startswith("d: result")


def test_signatures_of_an_unfinished_head_are_those_that_it_may_become(at):
    found = signature_help(*at("setp.lt %p1, ^"))
    assert any(each.label.startswith("setp.lt") for each in found.signatures)


@pytest.mark.parametrize("text", ["nothing.u32 %r1, ^", "ad^", "^", "// add.s32 %r1, ^"])
def test_no_operand_no_signature(at, text):
    assert signature_help(*at(text)) is None


def test_a_string_that_looks_like_a_comment_hides_nothing(at):
    assert "u32" in labels(at, '.pragma "//"; mov.^')
    assert "u32" in labels(at, "/* over */ mov.^")
