"""What is said of mistakes in the declarations of a module: one message for each, with a way out (PTX 4, 5, 11)."""

from __future__ import annotations

import pytest

from ptxvm.analysis.check import analyse
from ptxvm.syntax.source import Source

HEAD = ".version 7.0\n.target sm_70\n.address_size 64\n"
BODY = "\n{\n    ret;\n}\n"

MISTAKES = [
    (".version 7\n.target sm_70\n.entry k()" + BODY, "7", "a version", "`7.0`"),
    (".version 7.0\n.target 70\n.entry k()" + BODY, "70", "a target", "`sm_70`"),
    (".version 7.0\n.target SM_70\n.entry k()" + BODY, "SM_70", "no target", "`sm_70`"),
    (".version 7.0;\n.target sm_70\n.entry k()" + BODY, ";", "no statement", "take no `;`"),
    (HEAD + ".visible .kernel k()" + BODY, ".kernel", "found `.kernel`", "`.visible .entry name("),
    (HEAD + "__global__ void k(int n)" + BODY, "__global__", "outside of a function", "`.visible .entry name("),
    (HEAD + "__device__ void k(int n)" + BODY, "__device__", "outside of a function", "`.func name("),
    (HEAD + ".visible entry k()" + BODY, "entry", "found `entry`", "`.entry`"),
    (HEAD + "entry k()" + BODY, "entry", "outside of a function", "`.entry`"),
    (HEAD + ".entry k(.param u32 n)" + BODY, "u32", "expected a type", "`.u32`"),
    (HEAD + ".entry k(.param .float n)" + BODY, ".float", "not the type", "`.f32`"),
    (HEAD + ".entry k(.param .u64 *p)" + BODY, "*", "expected a name", "a pointer is an integer"),
    (HEAD + ".entry k(.param .u32 n; .param .u32 m)" + BODY, ";", "found `;`", "commas"),
    (HEAD + ".entry k() .maxntid(256)" + BODY, "(", "expected an integer", "`.maxntid 256`"),
    (HEAD + ".global .u32 a[2] = [1, 2];\n.entry k()" + BODY, "[", "an initial value", "braces"),
    (HEAD + ".global .f32 a = 1.0f;\n.entry k()" + BODY, "1.0f", "not a number", "`1.0`"),
    (HEAD + ".const int a[4];\n.entry k()" + BODY, "int", "expected a type", "`.s32` or `.u32`"),
    (HEAD + ".entry k()\n{\n.L1:\n    ret;\n}\n", ".L1", "unknown directive", "`L1:`"),
    (HEAD + ".entry k()\n{\n1:\n    ret;\n}\n", "1", "a label", "`L1:`"),
]


@pytest.mark.parametrize(("text", "place", "message", "help"), MISTAKES, ids=[f"{n}" for n in range(len(MISTAKES))])
def test_a_mistake_has_one_message_with_a_way_out(text, place, message, help):
    source = Source(text)
    _, report = analyse(source)
    (one,) = report.diagnostics
    assert source.text[one.span.start : one.span.end] == place
    assert message in one.message
    assert help in one.help


def test_what_follows_a_body_that_belongs_to_nothing_is_read():
    source = Source(HEAD + "entry k()\n{\n  { add.u31 a, b; }\n}\n.entry m()\n{\n    add.u31 a, b, c;\n}\n")
    _, report = analyse(source)
    assert [(d.code, d.line) for d in report.diagnostics] == [("P0105", 4), ("P0305", 10)]
