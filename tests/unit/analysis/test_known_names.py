"""Lines whose names are known ahead: each is looked at once, and what looks like one is reported as by a full reading."""

import re

import pytest

from ptxvm.analysis import body_check
from ptxvm.analysis.check import analyse
from ptxvm.analysis.incremental import IncrementalChecker
from ptxvm.syntax.source import Source

HEAD = """.version 8.3
.target sm_90
.address_size 64
.global .texref gt;
.visible .entry k(.param .u64 p, .param .u64 q)
{
.reg .b64 %d;
.reg .pred %p<4>;
.reg .b32 %r<10>;
.reg .f32 %f<10>;
.reg .b32 r<10>;
"""


def module(body: str) -> str:
    return f"{HEAD}{body}\nret;\n}}\n"


@pytest.fixture
def reports(in_full):
    """The diagnostics of a text by three ways, which agree: in full, by known lines, and by the incremental checker."""

    def reported(source: str) -> list[object]:
        _, found = analyse(Source(source))
        full = in_full(source)
        assert found.diagnostics == full
        assert IncrementalChecker().check(Source(source)) == full
        return found.diagnostics

    return reported


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that are looked at one by one."""
    texts: list[str] = []

    class Statement:
        @staticmethod
        def match(*place: object) -> re.Match[str] | None:
            if (found := STATEMENT.match(*place)) is not None:
                texts.append(found[0].strip())
            return found

    monkeypatch.setattr(body_check, "STATEMENT", Statement)
    return texts


STATEMENT = body_check.STATEMENT
FIRST = "add.s32 %r1, %r1, 1;\n"
"""Known lines begin behind an instruction."""

KINDS = {
    "registers without a percent sign": ("add.s32 r1, r2, 7;\n", "add.s32 r5, r6, 8;\n"),
    "a register that is declared where it is used": (
        ".reg .b32 t1;\nadd.s32 t1, %r1, 1;\n",
        ".reg .b32 u;\nadd.s32 u, %r2, 9;\n",
    ),
    "several registers in a declaration": (
        ".reg .f32 a, b;\nadd.f32 a, b, %f1;\n",
        ".reg .f32 %c, d1;\nadd.f32 %c, d1, %f2;\n",
    ),
    "labels of any name": ("@%p1 bra A;\nA:\n", "@%p2 bra loop1;\nloop1:\n"),
    "lists of labels": (
        "T: .branchtargets C, D;\nbrx.idx %r1, T;\nC:\nD:\n",
        "S: .branchtargets E, F;\nbrx.idx %r2, S;\nE:\nF:\n",
    ),
    "a list on lines of its own": (
        "T:\n.branchtargets\nC, D;\nbrx.idx %r1, T;\nC:\nD:\n",
        "S:\n.branchtargets\nE, F;\nbrx.idx %r2, S;\nE:\nF:\n",
    ),
    "a statement on several lines": (
        "mov.b32 \n%r1,\n%r2;\n",
        "mov.b32 \n%r3,\n%r4;\n",
    ),
    "a statement whose operands have lines of their own": (
        "fma.rn.f32\n\t%f1,\n\t%f2,\n\t%f3,\n\t%f4\n;\nmov.b64\n\t{%r1, %r2}, %d;\n",
        "fma.rn.f32\n\t%f4,\n\t%f3,\n\t%f2,\n\t%f1\n;\nmov.b64\n\t{%r3, %r4}, %d;\n",
    ),
    "decimal constants": (
        "mul.f32 %f1, %f2, 1.5;\nadd.f32 %f1, %f1, -0.25;\n",
        "mul.f32 %f3, %f4, 23.75;\nadd.f32 %f5, %f6, -100.0;\n",
    ),
    "loads of parameters": (
        "ld.param.u64 %d, [p];\n",
        "ld.param.u64 %d, [q];\n",
    ),
    "several statements on a line": (
        9 * "add.s32 %r1, %r2, 5; mov.b32 %r1, %f1; sub.s32 %r1, %r1, 2;\n",
        9 * "add.s32 %r3, %r4, 6; mov.b32 %r7, %f5; sub.s32 %r5, %r6, 3;\n",
    ),
    "operands of an unusual form": (
        "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [gt, {%f5, %f6}];\n",
        "tex.2d.v4.f32.f32 {%f4, %f3, %f2, %f1}, [gt, {%f7, %f8}];\n",
    ),
    "a block with names of its own": (
        "{\n.reg .pred c;\nE:\nsetp.eq.s32 c, %r1, 0;\n@c bra E;\n}\n",
        "{\n.reg .pred u;\nF:\nsetp.eq.s32 u, %r2, 1;\n@u bra F;\n}\n",
    ),
    "a block with a prototype": (
        "{\n.param .b32 z;\nst.param.b32 [z], %r1;\nP: .callprototype _ (.param .b32 _);\ncall %d, (z), P;\n}\n",
        "{\n.param .b32 u;\nst.param.b32 [u], %r2;\nS: .callprototype _ (.param .b32 _);\ncall %d, (u), S;\n}\n",
    ),
    "a block in a block": (
        "{\n.reg .b32 t;\nadd.s32 t, %r1, 1;\n{\n.reg .pred q;\nsetp.eq.s32 q, t, 0;\n}\n}\n",
        "{\n.reg .b32 t;\nadd.s32 t, %r2, 2;\n{\n.reg .pred q;\nsetp.eq.s32 q, t, 4;\n}\n}\n",
    ),
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_line_is_looked_at_once_whatever_its_names_are(kind, seen):
    for text in kind:
        program, report = analyse(Source(module(FIRST + text)))
        assert not report.diagnostics
        assert program.functions["k"].lazy is not None
    seen.clear()
    analyse(Source(module(FIRST + kind[1])))
    if "{\n" not in kind[0] and "gt" not in kind[0]:  # a block, and what names a variable, is looked at once in each body
        assert seen[-1:] == ["add.s32 %r1, %r1, 1;"] or seen[-2:-1] == ["add.s32 %r1, %r1, 1;"]
    once = len(seen)
    seen.clear()
    analyse(Source(module(FIRST + kind[1] + re.sub(r"\b(u|c|d1|loop1|S|E|F)\b", r"\g<1>9", kind[1]))))
    assert len(seen) == once


LIKE_KNOWN = {
    "a register of another type": ".reg .pred q;\nadd.s32 q, %r1, 1;",
    "a use above the declaration": "add.s32 v, %r1, 1;\n.reg .b32 v;",
    "a use above and below": "add.s32 v, %r1, 1;\n.reg .b32 v;\nadd.s32 v, %r1, 1;",
    "a declaration twice": ".reg .b32 v;\n.reg .b32 v;",
    "a declaration twice in a list": ".reg .b32 v, v;",
    "a register of a family again": ".reg .b32 %r3;",
    "a family again": ".reg .b32 %r<3>;",
    "a family over a register": ".reg .b32 v1;\n.reg .b32 v<3>;",
    "a register in a block, used behind it": "{\n.reg .b32 v;\nadd.s32 v, %r1, 1;\n}\nadd.s32 v, %r1, 1;",
    "a register of a block, and one around it": (
        ".reg .b32 v;\nadd.s32 v, %r1, 1;\n{\n.reg .pred v;\nadd.s32 v, %r1, 1;\n}\nadd.s32 v, %r1, 1;"
    ),
    "another meaning in a block, above its declaration": (
        ".reg .b32 v;\n{\nadd.s32 v, %r1, 1;\n.reg .pred v;\nadd.s32 v, %r1, 1;\n}"
    ),
    "a register of a family hidden in a block": (
        "{\n.reg .pred %r7;\nsetp.eq.s32 %r7, %r1, 0;\n}\n{\n.reg .pred %r7;\nsetp.eq.s32 %r8, %r1, 0;\n}"
    ),
    "a family hidden in a block": "{\n.reg .pred r<4>;\nadd.s32 r1, %r1, 1;\n}",
    "a name with a number like a constant's": (
        ".reg .b32 a0x12;\nadd.s32 %r1, %r1, a0x12;\nadd.s32 %r1, %r1, a0x12;\nadd.s32 %r1, %r1, a0x13;"
    ),
    "a name with a float like a constant's": (
        ".reg .f32 a0f00000012;\nadd.f32 %f1, %f1, a0f00000012;\nadd.f32 %f1, %f1, a0f00000012;\nadd.f32 %f1, %f1, a0f00000013;"
    ),
    "a label that is a register": ".reg .b32 A9;\n@%p1 bra A9;",
    "a label of a block": "@%p1 bra IN;\n{\nIN:\n}",
    "a label twice": "M:\nM:\n@%p1 bra M;",
    "a label twice on a line": "M: M: @%p1 bra M;",
    "a label behind another": "M:\nQ: M:\n@%p1 bra M;",
    "a label behind another kind of line": "M:\n@%p1 bra M;\rM:",
    "a declaration behind another kind of line": ".reg .b32 v;\nadd.s32 v, %r1, 1;\r.reg .b32 v;",
    "a declaration behind a label": ".reg .b32 v;\nadd.s32 v, %r1, 1;\nQ: .reg .b32 v;",
    "a declaration behind a place": ".reg .b32 v;\nadd.s32 v, %r1, 1;\n.loc 1 2 3 .reg .b32 v;",
    "a label in a choice": "mov.u32 %r1, 1 ?\nN :\n2;\n@%p1 bra N;",
    "a label in a string": '.pragma "x;\tO: y";\n@%p1 bra O;',
    "a label with the name of a family's register": "r3:\nadd.s32 r3, r3, 1;",
    "a label below with that name": "add.s32 r3, r3, 1;\nr3:",
    "a brace in a string": '{\n.pragma "}";\n.reg .b32 v;\nadd.s32 v, %r1, 1;\n}\nadd.s32 v, %r1, 1;',
    "a register for an opcode": ".reg .b32 ret, w;\nw;",
    "a label for an opcode": "exit:\nexit;\nX:\nX;",
    "a list above its labels' block": "{\nG:\n}\nU: .branchtargets G;",
    "a list that is used above": "brx.idx %r1, U;\nU: .branchtargets V;\nV:",
    "a list twice": "U: .branchtargets V;\nU: .branchtargets V;\nV:",
    "a list of a prototype": "P: .callprototype _ (.reg .b32 _);\nU: .branchtargets P;",
    "a division by zero in an operand": "mov.u32 %r1, 4 / 2;\nmov.u32 %r1, 4 / 0;",
    "a component of a number": "add.s32 r1, 0r5, 1;",
    "a word behind a percent sign": "add.s32 r1, 7%r1, 1;",
    "a declaration with an error of syntax": "U: .branchtargets V, add.s32;\nbrx.idx %r1, U;\nV:",
    "a declaration without its end": ".reg .b32 v\nadd.s32 v, v, 1;",
    "a label with a percent sign": "%p2:\n@%p2 bra A;",
    "a mark in the text": "add.s32 \x011, \x011, 5;",
    "a pragma like another": '.pragma "frequency 5";\n.pragma "frequency 0";\n.pragma "frequency 9";',
    "a label of another block": "{\nI1:\n@%p1 bra I1;\n}\n{\n@%p1 bra I1;\n}",
    "a register of another type in another block": (
        "{\n.reg .b32 i1;\nadd.s32 i1, %r1, 1;\n}\n{\n.reg .pred i2;\nadd.s32 i2, %r1, 1;\n}"
    ),
    "a name of another block": "{\n.reg .b32 i1;\nadd.s32 i1, i1, 1;\n}\n{\n.reg .b32 i2;\nadd.s32 i2, i1, 1;\n}",
    "names of the block around": (
        "{\n.reg .b32 i1;\n.reg .pred i2;\nadd.s32 i1, i1, 1;\n{\nadd.s32 i1, i1, 1;\n}\n{\nadd.s32 i2, i2, 1;\n}\n}"
    ),
    "a size that is a name": "{\n.param .b8 i1[WARP_SZ];\n}\n{\n.param .b8 i2[i3];\n}",
    "a prototype with a name for a sink": (
        "{\nP1: .callprototype _ (.reg .b32 _);\ncall %d, (%r1), P1;\n}\n"
        "{\nP2: .callprototype i (.reg .b32 i);\ncall %d, (%r1), P2;\n}"
    ),
    "a prototype of another block": (
        "{\nP1: .callprototype _ (.reg .b32 _);\ncall %d, (%r1), P1;\n}\n"
        "{\nP2: .callprototype _ (.reg .b32 _);\ncall %d, (%r1), P1;\n}"
    ),
    "a store to a parameter": "ld.param.u64 %d, [p];\nst.param.u64 [p], %d;",
    "an element of a parameter": "ld.param.u64 %d, [p];\nld.param.u64 %d, [q[1]];",
    "a parameter of another type": "ld.param.u64 %d, [p];\nadd.s64 %d, p, 1;",
    "a name of a parameter that is hidden": "{\n.reg .pred p;\nld.param.u64 %d, [p];\n}",
    "a decimal constant for an integer": "add.s32 %r1, %r1, 1;\nadd.s32 %r1, %r1, 1.5;",
    "operands of two instructions": "add.s32\n%r1,\n%r2,\n%r3\nadd.s32\n%r1,\n%r2,\n%r3;",
    "an element of no array": ".shared .b32 s;\n.shared .b32 a[4];\nmov.u32 %r1, a[1];\nmov.u32 %r1, s[1];",
}
USUAL = "".join(first for first, _ in KINDS.values() if "C, D" not in first or "T:\n" not in first)


@pytest.mark.parametrize("text", LIKE_KNOWN.values(), ids=LIKE_KNOWN)
def test_what_looks_like_a_known_name_is_reported_as_by_a_full_reading(text, reports):
    assert not reports(module(FIRST + USUAL))
    assert reports(module(FIRST + USUAL + text))
    assert reports(module(FIRST + text + "\n" + USUAL))


RIGHT = {
    "a register of each block": 3 * "{\n.reg .b32 v;\nadd.s32 v, %r1, 1;\n}\n",
    "a name of two meanings": "{\n.reg .pred v;\nsetp.eq.s32 v, %r1, 1;\n}\n.reg .b32 v;\nadd.s32 v, %r1, 1;\n",
    "a register with the name of an opcode": ".reg .b32 add, ex2;\nadd.s32 add, ex2, 1;\nadd.s32 ex2, add, 1;\n",
    "a family with the begin of an opcode": ".reg .f32 ex<4>;\nex2.approx.f32 ex2, ex3;\nex2.approx.f32 ex2, ex3;\n",
    "a label with the name of an opcode": "@%p1 bra exit;\nexit:\nexit;\n",
    "a label in a block with a name from around": "L:\n{\n.reg .b32 L;\nadd.s32 L, %r1, 1;\n}\n@%p1 bra L;\n",
    "a jump into the future": f"@%p1 bra Z;\n{200 * 'add.s32 %r1, %r1, 1;' * 20}\nZ:\n",
    "declarations in between": "".join(f".reg .b32 %t{n}<2>;\nadd.s32 %t{n}1, %r1, {n};\n".replace(f"%t{n}<", f"%t{n}_<")
                                       .replace(f"%t{n}1", f"%t{n}_1") for n in range(12)),
    "an address with an offset of a variable": ".shared .b32 s[4];\nld.shared.b32 %r1, [s+4];\nld.shared.b32 %r1, [s+8];\n",
}  # fmt: skip


@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT)
def test_names_of_any_kind_are_right_where_a_full_reading_finds_them_right(text, reports):
    assert not reports(module(FIRST + text))
    assert not reports(module(FIRST + USUAL + text + FIRST))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("last", ["add.s32 %r1, %r2, 5;", "add.s32 %r1, %r2, v;", ".reg .b32 v; add.s32 %r1, %r2, v;"])
def test_statements_of_a_long_line_are_looked_at_once(last, reports, seen):
    """The line is longer than some stretches."""
    line = 20000 * "add.s32 %r1, %r2, 5; mov.b32 %r1, %r3; "
    assert bool(reports(module(FIRST + line + last))) == (last == "add.s32 %r1, %r2, v;")
    seen.clear()
    analyse(Source(module(FIRST + line)))
    assert len(seen) < 100


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "last",
    [
        "add.s32 t3999, %r1, 1;",
        "add.s32 t4000, %r1, 1;",
        "add.s32 t1, %p1, 1;",
        "bra A3999;",
        ".reg .b32 t1;",
        ".reg .b32 t<5>;",
        ".reg .b32 v;\nadd.s32 v, w, 1;\n.reg .b32 w;",
    ],
)
def test_names_are_known_over_stretches_of_lines(last, reports):
    """A stretch has 64 KB: the text has several, and a block across the end of one."""
    lines = "".join(f".reg .b32 t{n};\nadd.s32 t{n}, %r1, {n};\n" for n in range(4000))
    block = "{\n.reg .b32 t1, u;\n" + 3000 * "add.s32 t1, u, 1;\nadd.s32 t2, t1, 1;\n" + "}\n"
    assert bool(reports(module(FIRST + lines + block + last))) == (last != "add.s32 t3999, %r1, 1;")


def test_a_word_in_the_place_of_another_is_reported_as_by_a_full_reading(rng, reports):
    """Blocks, calls and loads that were right a few lines above, where one word is another's."""
    pieces = [text for kind in KINDS.values() for text in kind if len(text) < 200]
    wrong = 0
    for _ in range(60):
        chosen = [FIRST, *(pieces[n] for n in rng.integers(len(pieces), size=4))]
        text = module("".join(f"{{\n{each}}}\n" if rng.random() < 0.5 else each for each in chosen * 2))
        words = list(re.finditer(r"[%$\w.]+", text[len(HEAD) :]))
        one, other = (words[n] for n in rng.integers(len(words), size=2))
        wrong += bool(reports(text[: len(HEAD) + one.start()] + other[0] + text[len(HEAD) + one.end() :]))
    assert 0 < wrong <= 60
