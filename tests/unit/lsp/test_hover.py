"""Hover: what the declarations say; the expected words are those of the manual's sections, the numbers are computed by hand."""

from __future__ import annotations

import pytest

pytest.importorskip("lsprotocol", reason="the language server needs the extra 'lsp'")

from ptxvm.lsp.hover import hover


def said(at, text):
    found = hover(*at(text))
    return found.contents.value if found is not None else None


def test_an_instruction_shows_its_form_operands_and_a_computed_example(at):
    text = said(at, "ad^d.sat.s32 %r2, %r1, 5;")
    assert "add{.sat}.type d, a, b;" in text
    assert "| `d`     | `%r2` | result, .s32 |" in text
    assert "| `out` | `d`     | `.s32` | `0x7fffffff` | `2147483647` |" in text  # 0x7fffffff + 1 saturates (PTX 9.7.1.1)
    assert "PTX ISA 9.7.1.1" in text


def test_an_instruction_that_is_not_finished_shows_all_its_forms(at):
    assert "prmt.b32{.mode} d, a, b, c;" in said(at, "pr^mt")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("ld.glo^bal.u32 %r1, [%rd1];", "**.global**, a modifier of `ld`: global memory"),
        ("ld.acquire.g^pu.global.u32 %r1, [%rd1];", "**.gpu**, a modifier of `ld`"),
        ("add.f^32 %f1, %f2, %f3;", "32-bit floating-point number"),
        ("mov.u32 %r^1, 1;", ".reg .b32 %r<8>;"),
        ("mov.u32 %r1, %ti^d.x;", "The place of the thread in its CTA"),
        ("mov.u32 %r1, %tid.^y;", "The place of the thread in its CTA"),
        ("mov.u32 %r1, til^e;", "`.b8[64]`, 64 bytes, aligned to 4"),
        ("ld.param.u32 %r1, [^n];", "a parameter in `.param`: `.u32`, 4 bytes"),
        ("mov.u32 %r1, tab^le;", ".global .align 4 .u32 table[16];"),
        (".reg^ .b32 x;", "PTX ISA 5.1.1"),
        (".reg .b3^2 x;", "32 bits of any kind"),
        ("bra LO^OP;", "a label"),
        ("@%p^1 ret;", ".reg .pred %p<2>;"),
        ("mov.u32 %r1, WARP_^SZ;", "The number of lanes of a warp"),
    ],
)
def test_every_part_of_a_statement_says_what_it_is(at, text, part):
    assert part in said(at, text)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (".vers^ion 8.0\n.target sm_90\n", "the version of PTX"),
        (".version 8.0\n.target sm_9^0\n", "**sm_90**, a target; PTX 7.8 and later"),
        (".version 8.0\n.target sm_90\n.visible .en^try k() { ret; }", "PTX ISA 11.2.1"),
        (".version 8.0\n.target sm_90\n.visible .entry k^() { ret; }", ".visible .entry k()"),
        (".version 8.0\n.target sm_90\n.visible .entry k() .maxn^tid 32 { ret; }", "Needs PTX 1.3"),
    ],
)
def test_directives_of_a_module_say_what_they_are(at, text, part):
    assert part in said(at, text)


@pytest.mark.parametrize("text", ["// ad^d.s32", "mov.u32 %r1, 4^2;", "mov.u32 %r1, no^thing;", "^", "+++ ^;"])
def test_nothing_is_said_of_what_means_nothing(at, text):
    assert said(at, text) is None


def test_behind_a_nul_there_is_nothing(at):
    assert said(at, "add.s32 \0 %r1, ad^d") is None
