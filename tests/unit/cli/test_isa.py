"""`ptxvm isa`."""

from __future__ import annotations

from ptxvm.cli.isa import brief
from ptxvm.reference.page import opcodes
from ptxvm.reference.syntax_lines import hanging


def test_the_list_has_every_instruction_on_a_line_of_its_own(ptxvm):
    done = ptxvm("isa")
    assert (done.code, done.err) == (0, "")
    assert max(map(len, done.out.splitlines())) <= 80
    assert {line.split()[0].split(".")[0] for line in done.out.splitlines() if line.startswith("  ")} == set(opcodes())
    assert "  mul.wide            9.7.1.3      Multiply two values and keep the whole …\n" in done.out


def test_the_chapters_stand_in_the_order_of_the_manual(ptxvm):
    lines = ptxvm("isa").out.splitlines()
    assert lines[0] == "Integer arithmetic (PTX 9.7.1)"
    assert lines.index("Floating-point instructions (PTX 9.7.3)") < lines.index("Control flow (PTX 9.7.12)")


def test_the_page_of_an_instruction(ptxvm):
    assert ptxvm("isa", "lop3").out == (
        """\
lop3, PTX ISA 9.7.8.6

Any logical function of three bits, given as a truth table: bit `4a + 2b + c` of
it is the result.

With .BoolOp, tell too whether the result is nonzero, combined with a predicate.

    lop3.b32 d{|p}, a, b, c, immLut;
    lop3.BoolOp.b32 d|p, a, b, c, immLut, {!}q;
    .BoolOp = { .or, .and };

operands     d       result, .b32
             p       result, .pred
             a       source, .b32
             b       source, .b32
             c       source, .b32
             immLut  source, .u32, a constant
             q       source, .pred
needs        PTX 4.3, sm_50  always
             PTX 8.2, sm_70  .BoolOp
rules        P1501  The predicate result of lop3 comes with .and or .or, and
                    only then.
accuracy     exact  The ISA defines every bit of the result, and ptxvm computes
                    it.
"""
    )


def test_an_opcode_with_its_words(ptxvm):
    assert ptxvm("isa", "mul.wide").out.startswith("mul.wide, PTX ISA 9.7.1.3\n")
    assert ptxvm("isa", "ld.global.nc").out.startswith("ld.global.nc, PTX ISA 9.7.9.9\n")
    whole = ptxvm("isa", "mul").out
    assert "\nmul.wide, PTX ISA 9.7.1.3\n" in whole
    assert "\nmul, PTX ISA 9.7.3.5\n" in whole  # the one for floats, after those for integers


def test_pages_fit_the_terminal(ptxvm):
    for opcode in opcodes():
        done = ptxvm("isa", opcode)
        assert done.code == 0
        assert max(map(len, done.out.splitlines())) <= 80, opcode


def test_unknown_instructions(ptxvm):
    done = ptxvm("isa", "prmtt")
    assert (done.code, done.out) == (1, "")
    assert done.err == "ptxvm isa: no instruction is called 'prmtt'; did you mean `prmt`?\n"


def test_long_syntax_lines_are_broken_between_modifiers():
    assert hanging("ld{.weak}{.ss}.type d, [a]{, policy};", 26) == ["ld{.weak}{.ss}.type", "        d, [a]{, policy};"]
    assert hanging(".ss = { .const, .global, .local };", 26) == [".ss = { .const, .global,", "        .local };"]


def test_a_brief_sentence_is_a_clause_or_ends_with_dots():
    assert brief("Add; then stop.", 10) == "Add"
    assert brief("Add two values of one type.", 25) == "Add two values of one …"
    assert brief("Add.", 10) == "Add."
