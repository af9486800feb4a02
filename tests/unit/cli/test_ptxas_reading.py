"""`ptxvm-ptxas` on lines that end before their `;`, and on operands that are no registers: as ptxas 13.0.88 prints them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ptxvm.cli.ptxas import main

FRAME = """.version 8.6
.target sm_90
.address_size 64
.global .align 8 .u64 gl = 17;
.const .align 4 .f32 cst[4];
.visible .entry k(.param .u64 p) {
  .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<4>; .reg .f64 %fd<4>;
  .shared .align 16 .b8 sm[256];
  LINE
L:
  ret;
}
"""
ADDED = ".u32 or .s32 or .u64 or .f64 or f16 or f16x2 or .f32 or .bf16 or .bf16x2"
COMPARED = ".u32 or .s32 or .u64 or .s64 or .f16 or .f16x2 or .bf16 or .bf16x2"
WIDE = "Feature '256 bit wide load/store'"
CA = "Illegal modifier '.ca' for"
ABORTED = "ptxas fatal   : Ptx assembly aborted due to errors\n"

Lines = Callable[[str], list[str]]


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Lines:
    """What is said of a kernel with a line, without the file; in a module around it where it names one."""
    monkeypatch.chdir(tmp_path)

    def check(line: str) -> list[str]:
        text = line if line.startswith(".version") else FRAME.replace("LINE", line)
        Path("a.ptx").write_text(text)
        code = main(["-arch=sm_90", "a.ptx"])
        printed = capsys.readouterr().err
        found = printed.removesuffix(ABORTED).splitlines()
        assert (code == 255) is (": error" in printed or ": fatal" in printed or "fatal   :" in printed)
        return [each.removeprefix("ptxas a.ptx, line ").replace("   : ", ": ").replace(" : ", ": ") for each in found]

    return check


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        # an instruction without its `;`: only what is said of words
        ("add.s32 %r1, %f2, %r3", ["10; fatal: Parsing error near 'L': syntax error"]),
        ("frob.u32.foo %r1, %r2, %r3",
         ["9; error: Unknown modifier '.foo'", "10; fatal: Parsing error near 'L': syntax error"]),
        ("ret1", ["10; fatal: Parsing error near ':': syntax error"]),
        ("ret add.u32 %r1, %r2, 1;", ["9; error: Unknown field '.u32'", "9; fatal: Parsing error near '%r1': syntax error"]),
        # one that goes wrong in the middle
        ("ld.foo.u32 %r1, [.u32];", ["9; error: Unknown modifier '.foo'", "9; fatal: Parsing error near '.u32': syntax error"]),
        ("@%p1 ld.foo.u32 %r1, [.u32];",
         ["9; error: Unknown modifier '.foo'", "9; fatal: Parsing error near '.u32': syntax error"]),
        ("@!%p1 ld .foo.u32 %r1, [.u32];",
         ["9; error: Unknown modifier '.foo'", "9; fatal: Parsing error near '.u32': syntax error"]),
        ("M: {ld.foo.u32 %r1, [.u32];",
         ["9; error: Unknown modifier '.foo'", "9; fatal: Parsing error near '.u32': syntax error"]),
        ("%tid.x mov.u32 %r1, %r2;",
         ["9; error: Unknown modifier '.x'", "9; error: Unknown field '.u32'",
          "9; fatal: Parsing error near '%r1': syntax error"]),
        ("mov.u32 %r1, %tid.x 4;", ["9; fatal: Parsing error near '4': syntax error"]),
        ("mov.u32 99999999999999999999 %r1;",
         ["9; error: Constant overflow", "9; fatal: Parsing error near '%r1': syntax error"]),
        ("mov.u32 %r1, %r2 99999999999999999999;",
         ["9; error: Constant overflow", "9; fatal: Parsing error near '99999999999999999999': syntax error"]),
        ("ld.global.u32 %r1, [%rd1+0.sat];",
         ["9; error: Integer constant expression expected", "9; fatal: Parsing error near 'sat': syntax error"]),
        ("add.s32 %r1, %r2.u8 4;",
         ["9; error: Unknown video selector: '.u8'", "9; fatal: Parsing error near '4': syntax error"]),
        ("add.s64 %rd1, %rd2.u8 4;", ["9; error: Unknown field '.u8'", "9; fatal: Parsing error near '4': syntax error"]),
        ("add.s64 %rd1, %rd2.u8, 4;", ["9; error: Unknown field '.u8'"]),
        ("add.f64 %fd1, %fd2.u8, %fd3;",
         ["9; error: Unknown field '.u8'", "9; error: Arguments mismatch for instruction 'add'"]),
        # a declaration without its state space
        (".b64 x;", ["9; fatal: No variable storage specified"]),
        (".align 8 .b64 x;", ["9; fatal: No variable storage specified"]),
        (".v4 .f32 x[4];", ["9; fatal: No variable storage specified"]),
        (".f16x2 add.u32 %r1, %r2, %r3;", ["9; fatal: Parsing error near '.u32': syntax error"]),
        (".s64.s32 %r1, %r2;", ["9; fatal: Parsing error near '.s32': syntax error"]),
        (".u8", ["10; fatal: Parsing error near ':': syntax error"]),
    ],
)  # fmt: skip
def test_what_is_said_while_it_reads(said, line, lines):
    assert said(line) == lines


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("add.s32 %r1, [sm], 4;", "Argument 1 of instruction 'add': must be register"),
        ("add.s32 %r1, [gl+8], 4;", "Argument 1 of instruction 'add': must be register"),
        ("add.s64 %rd1, [sm], 4;", "Arguments mismatch for instruction 'add'"),
        ("add.s64 %rd1, [4], 4;", "Argument 1 of instruction 'add': must be register"),
        ("add.f32 %f1, [sm], %f2;", "Arguments mismatch for instruction 'add'"),
        ("add.u32 %r1, %r2, gl;", "Argument 2 of instruction 'add': must be register"),
        ("add.f32 %f1, cst, %f2;", "Argument 1 of instruction 'add': must be register"),
        ("add.f32 %f1, gl, %f2;", "Arguments mismatch for instruction 'add'"),
        ("mov.f32 %f1, sm;", "Arguments mismatch for instruction 'mov'"),
        ("mov.u32 %r1, [%r2];", "Argument 1 of instruction 'mov': must be register"),
        ("bfi.b32 %r1, [%r2], %r3, 4, 8;", "Argument 1 of instruction 'bfi': must be register"),
        ("bfi.b32 %r1, %r2, %r3, [%r4], 8;", "Arguments mismatch for instruction 'bfi'"),
        ("shl.b32 %r1, %r2, [%r3];", "Arguments mismatch for instruction 'shl'"),
        ("prmt.b32 %r1, %r2, %r3, [%r4];", "Argument 3 of instruction 'prmt': must be register"),
        ("selp.b32 %r1, %r2, %r3, [%p1];", "Argument 3 of instruction 'selp': must be register"),
        ("redux.sync.add.s32 %r1, [%r2], -1;", "Arguments mismatch for instruction 'redux'"),
        ("st.global.u32 [%rd1], gl;", "Argument 1 of instruction 'st': must be register"),
        ("atom.global.add.u32 %r1, [%rd1], gl;", "Argument 2 of instruction 'atom': must be register"),
        ("cvt.f32.s32 %f1, [%r2];",
         "Rounding modifier required for instruction 'cvt'|Argument 1 of instruction 'cvt': must be register"),
        ("discard.global.L2 [%rd1], 64;", "Argument 2 of instruction 'discard': unexpected value '64', expected to be 128"),
        # operands of other types hide all that is wrong besides
        ("cvt.f32.s32 %f1, %f2;", "Arguments mismatch for instruction 'cvt'"),
        ("setp.lo.s32 %p1, %rd1, 4;", "Arguments mismatch for instruction 'setp'"),
        ("ld.acquire.u32 %f1, [%rd1];", "Arguments mismatch for instruction 'ld'"),
        # types of atomic operations
        ("red.global.add.s64 [%rd1], %rd2;",
         f"Operation .add requires {ADDED} type for instruction 'red'"),
        ("atom.global.min.f32 %f1, [%rd1], %f2;",
         f"Operation .min requires {COMPARED} type for instruction 'atom'"),
        ("atom.global.min.noftz.f16 %h1, [%rd1], %h2;", "Vector modifier required for instruction 'atom.min.f16.global'"),
        ("ld.v8.global.b32 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%rd1];",
         f"{WIDE} requires PTX ISA .version 8.8 or later|{WIDE} requires .target sm_100 or higher"),
    ],
)  # fmt: skip
def test_operands_that_are_no_registers(said, line, message):
    assert said(line) == [f"9; error: {each}" for each in message.split("|")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("setp.ca.s32 %p1, %r2, %r3;", f"Comparison modifier required for|{CA}|{CA}"),
        ("setp.row.s32 %p1, %r2, %r3;", "Illegal modifier '.alayout or .blayout' for|Comparison modifier required for"),
        ("sqrt.noinc.f32 %f1, %f2;", "Illegal modifier '.noinc' for|Rounding modifier or '.approx' modifier required for"),
        ("fma.ca.f32 %f1, %f2, %f3, %f4;", f"Rounding modifier required for|{CA}|{CA}"),
        ("ex2.ca.f32 %f1, %f2;", f".approx modifier required for|.approx modifier required for|{CA}|{CA}"),
        ("match.any.noinc.b32 %r1, %r2, -1;", "Illegal modifier '.noinc' for|.sync modifier required for"),
        ("cvt.trans.f32.s32 %f1, %r1;", "Rounding modifier required for|Illegal modifier '.trans' for"),
    ],
)  # fmt: skip
def test_a_refused_modifier_beside_what_is_missing(said, line, message):
    opcode = line.partition(".")[0]
    assert said(line) == [f"9; error: {each} instruction '{opcode}'" for each in message.split("|")]


def test_a_refused_modifier_in_the_place_of_sync(said):
    missing = (
        "9; error: Instruction 'vote' without '.sync' is not supported on .target sm_70 and higher from PTX ISA version 6.4"
    )
    assert said("vote.ca.ballot.b32 %r1, %p1, 5;") == [
        "9; error: .sync modifier required for instruction 'vote'", missing,
        *["9; error: Illegal modifier '.ca' for instruction 'vote'"] * 2,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("ld.v4.global.u32 {%r1,%r2,%r3,%r4}, [%rd1];", ["9; warning: Vector Type not specified properly"]),
        ("ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%rd1];", []),
        ("ld.global.v4 .u32 {%r1,%r2,%r3,%r4}, [%rd1];", []),
        ("shl.v2 %r1, %r2, 3;",
         ["9; error: Unexpected instruction types specified for 'shl'", "9; warning: Vector Type not specified properly"]),
        ("add.v2.s32 %r1, %r2, %r3;",
         ["9; error: Vector qualifier is not allowed for instruction 'add'", "9; error: Result vector expected",
          "9; error: Argument vector size mismatch for instruction 'add'"]),
    ],
)  # fmt: skip
def test_vectors_without_a_type(said, line, lines):
    assert said(line) == lines


def test_a_name_that_is_not_declared_as_an_initial_value(said):
    head = ".version 8.6\n.target sm_90\n.address_size 64\n"
    assert said(head + ".global .u32 x = nope;\n.global .u32 y = nope;\n") == [
        "4; fatal: Invalid initial value symbol 'nope'"
    ]  # fmt: skip


def test_instructions_that_are_no_features(said):
    head = ".version 8.6\n.target sm_35\n.address_size 64\n.entry k() { .reg .b32 %r<5>;\n"
    assert said(head + "lop3.b32 %r1, %r2, %r3, %r4, 5;\nret; }\n") == [
        "5; error: Instruction 'lop3' requires .target sm_50 or higher"
    ]  # fmt: skip


NOT_KNOWN = "Not a name of any known instruction: 'foo'"
FUSED = "Unexpected instruction types specified for 'fma'"
ZZ, YY = "Unknown symbol 'zz'", "Unknown symbol 'yy'"


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("foo zz, zz;", [NOT_KNOWN, ZZ, ZZ]),
        ("foo.bar [zz+4], 1;", ["Unknown modifier '.bar'", NOT_KNOWN, ZZ]),
        ("foo {zz, %r1}, yy;", ["Illegal expression 'zz'", NOT_KNOWN, ZZ, YY]),
        ("foo %p1|zz, %r1;", [NOT_KNOWN, ZZ]),
        ("foo !zz, 1;", ["Illegal argument to predicate negation", NOT_KNOWN, ZZ]),
        ("foo 1, -zz;", ["Illegal argument to unary minus", NOT_KNOWN, ZZ]),
        ("foo zz[2];", ["Array indexing on non-array", NOT_KNOWN, ZZ]),
        ("@zz foo yy;", ["Predicate expression expected", NOT_KNOWN, ZZ, YY]),
        ("foo.u32 zz.s32, yy;", ["Unknown field '.s32'", NOT_KNOWN, ZZ, YY]),
        ("foo %r1.x, %r2.b0;", ["Unknown video selector: '.x'", NOT_KNOWN]),
        ("foo L, p, k, %tid.x;", [NOT_KNOWN]),
        ("fma zz;", [FUSED, ZZ]),
        ("@%p1 mad.u32 %r1, zz, 1, 2;", [FUSED.replace("fma", "mad"), ZZ]),
    ],
)
def test_what_a_wrong_head_leaves_of_the_operands(said: Lines, line: str, lines: list[str]) -> None:
    assert said(line) == [f"9; error: {each}" for each in lines]


@pytest.mark.parametrize(("line", "near"), [("ld.global.v2..u32 {%r1, %r2}, [%rd1];", "."), ("foo zz.v2, 1;", ".v2")])
def test_a_vector_without_a_type_is_that_of_an_instruction(said: Lines, line: str, near: str) -> None:
    assert said(line) == [f"9; fatal: Parsing error near '{near}': syntax error"]
