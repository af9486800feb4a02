"""What `ptxvm-ptxas` says of labels, vectors, spaces, the head of a module, and of what it finds last: by ptxas 13.0.88."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ptxvm.cli.ptxas import main

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
REGISTERS = """\
.reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .f32 %f<4>; .reg .v2 .u32 %v;
.shared .b32 sm[64]; .local .b32 lo[8];
"""
KERNEL = ".visible .entry k(.param .u64 p, .param .u32 n)\n{\n" + REGISTERS
ABORTED = "ptxas fatal   : Ptx assembly aborted due to errors"

Said = tuple[int, list[str]]
Call = Callable[..., Said]


@pytest.fixture
def ptxas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Check a text as `a.ptx`; the exit code, and the lines on stderr without the last one of a module with errors."""
    monkeypatch.chdir(tmp_path)

    def call(text: str, *words: str) -> Said:
        Path("a.ptx").write_text(text)
        code = main([*(words or ["-arch=sm_90"]), "a.ptx"])
        return code, [line for line in capsys.readouterr().err.splitlines() if line != ABORTED]

    return call


def errors(line: int, *said: str) -> Said:
    """The exit code and lines of errors."""
    return 255, [f"ptxas a.ptx, line {line}; error   : {each}" for each in said]


LABEL = "Label expected for argument 0 of instruction 'bra'"
NO_REGISTER = "Argument 0 of instruction 'bra': must be register"
MISMATCH = "Arguments mismatch for instruction 'bra'"


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("%r1", [LABEL]), ("%rd1", [LABEL]), ("4", [LABEL]), ("k", [LABEL]),
        ("n", [LABEL, NO_REGISTER]), ("%p1", [MISMATCH]), ("%f1", [MISMATCH]), ("1.0", [MISMATCH]),
    ],
)  # fmt: skip
def test_a_branch_to_what_is_no_label(ptxas: Call, target: str, said: list[str]) -> None:
    """It looks at the operand as a number first."""
    assert ptxas(f"{HEAD}{KERNEL}bra {target};\nret; }}\n") == errors(8, *said)


def test_a_branch_to_a_list_of_labels(ptxas: Call) -> None:
    assert ptxas(f"{HEAD}{KERNEL}T: .branchtargets A; bra T; A:\nret; }}\n") == errors(8, LABEL)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("mov.b64 %rd1, {%r1,%h2};", "Incompatible elements of vector expression"),
        ("mov.b64 {%r1,%h2}, %rd1;", "Incompatible elements of vector expression"),
        ("st.global.v2.u32 [%rd1], {%r1,%rd2};", "Incompatible elements of vector expression"),
        ("ld.global.v2.u32 {%r1,4}, [%rd1];", "Result register required for instruction 'ld'"),
        ("mov.b64 {%r1,4}, %rd1;", "Result register required for instruction 'mov'"),
        (
            "mov.b64 {%r1,%r2}, {%r3,%r4};",
            "Illegal vector-vector operands for vector-scalar or scalar-vector mov instruction",
        ),
        ("add.u32 %r1, %v, 1;", "Vector operand is not allowed for instruction 'add'"),
        ("add.u32 %v, %r1, 1;", "Vector operand is not allowed for instruction 'add'"),
        ("atom.const.add.u32 %r1, [%rd1], 1;", "State space incorrect for instruction 'atom'"),
        ("red.local.add.u32 [%rd1], 1;", "State space incorrect for instruction 'red'"),
        ("st.const.u32 [%rd1], %r1;", "State space incorrect for instruction 'st'"),
        ("ldu.shared.u32 %r1, [%rd1];", "State space incorrect for instruction 'ldu'"),
        ("mbarrier.init.global.b64 [%rd1], 4;", "State space incorrect for instruction 'mbarrier.init'"),
        ("add.shared.u32 %r1,%r2,%r3;", "No state space qualifier expected for instruction 'add'"),
        (".reg .u32 %r<4>;", "Duplicate definition of variable '%r<'"),
        (".reg .u32 zz1; .reg .f32 zz<2>;", "Duplicate definition of variable 'zz1'"),
        ("ld.global.u32 %r1, [L]; L:", "Illegal operand type to instruction 'ld'"),
    ],
)
def test_operands_and_names(ptxas: Call, line: str, said: str) -> None:
    assert ptxas(f"{HEAD}{KERNEL}{line}\nret; }}\n") == errors(8, said)


def test_a_function_as_an_address(ptxas: Call) -> None:
    use = "Illegal to use symbol 'k' of type unexpected as address operand. Use integer or bit only."
    illegal = "Illegal operand type to instruction 'ld'"
    assert ptxas(f"{HEAD}{KERNEL}ld.u32 %r1, [k];\nret; }}\n") == errors(8, use, illegal, illegal)


@pytest.mark.parametrize(("called", "count"), [("call e;", 1), ("call e, (%r1);", 0), ("call (%r1), e, (%r1);", 1)])
def test_a_call_of_a_kernel(ptxas: Call, called: str, count: int) -> None:
    said = ["Illegal call target, device function expected", *["Call has wrong number of parameters"] * count]
    assert ptxas(f"{HEAD}.entry e(.param .u32 a) {{ ret; }}\n{KERNEL}{called}\nret; }}\n") == errors(9, *said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (".global .const .u32 a;", ["Multiple state spaces specified"]),
        (".global .const .global .u32 a[4];", 2 * ["Multiple state spaces specified"]),
        (
            ".global .u32 a; .global .f32 a;",
            ["Inconsistent redefinition of variable 'a'", "Duplicate definition of variable 'a'"],
        ),
    ],
)
def test_declarations(ptxas: Call, text: str, said: list[str]) -> None:
    assert ptxas(HEAD + text) == errors(4, *said)


@pytest.mark.parametrize(
    ("head", "line", "said"),
    [
        (".version 99.9", 1, "Unsupported .version 99.9; current version is '9.5'"),  # '9.0' in ptxas 13.0
        (".version", 1, "Missing .version directive at start of file 'a.ptx'"),
        (".version 8.0\n.target", 3, "Parsing error near '.visible': syntax error"),
        (".version 8.0\n.target sm_80,", 3, "Parsing error near '.visible': syntax error"),
        (".version 8.0\n.target sm80", 2, "Target architecture not defined at start of file 'a.ptx'"),
        (".version 8.0\n.target SM_80", 2, "Target architecture not defined at start of file 'a.ptx'"),
        (".version 8.0\n.target sm_80, sm80", 2, "Unsupported .target 'sm80'"),
        (".version 8.0\n.target compute_81", 2, "Unsupported .target 'compute_81'"),
    ],
)
def test_the_head_of_a_module(ptxas: Call, head: str, line: int, said: str) -> None:
    assert ptxas(f"{head}\n.visible .entry k() {{ ret; }}\n") == (255, [f"ptxas a.ptx, line {line}; fatal   : {said}"])


def test_a_target_after_the_version_is_said_last(ptxas: Call) -> None:
    text = ".version 7.0\n.target sm_90\n.address_size 64\n.visible .entry k() { .reg .u32 %r; add.u32 %r, %f; ret; }\n"
    code, said = errors(4, "Arguments mismatch for instruction 'add'", "Unknown symbol '%f'")
    assert ptxas(text) == (code, [*said, "ptxas a.ptx, line 2; error   : PTX .version 7.0 does not support .target sm_90"])


PRAGMA, CONSTANTS = '.pragma "unknown thing";\n', ".const .u32 a[20000];\n"
UNSUPPORTED = "ptxas error   : Pragma 'unknown thing' not supported"
TOO_LARGE = "ptxas error   : File uses too much global constant data (0x13880 bytes, 0x10000 max)"
OPEN = "ptxas fatal   : Unresolved extern function 'f'"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PRAGMA + CONSTANTS + ".entry e() { ret; }\n", [UNSUPPORTED, TOO_LARGE]),
        (CONSTANTS + ".func f();\n.entry e() { call f; ret; }\n", [OPEN]),
        (".func g();\n.func f();\n.func h() { call g; ret; }\n.entry e() { call f; ret; }\n", [OPEN]),
        (".extern .func g();\n.func f();\n.entry e() { ret; }\n", [OPEN]),
        (".extern .func f();\n.func g() { call f; ret; }\n.entry e() { ret; }\n", [OPEN]),  # code that nothing calls counts
        (
            KERNEL + "\nmov.u64 %rd1, k+8;\nret; }\n",
            ["ptxas fatal   : Line No: 9: Cannot take address of function 'k' in arithmetic expressions"],
        ),
        (
            KERNEL + "\nmov.u64 %rd1, L+8; L:\nret; }\n",
            ["ptxas fatal   : Line No: 9: Cannot take address of label 'L' in arithmetic expressions"],
        ),
    ],
)
def test_what_is_found_last(ptxas: Call, text: str, said: list[str]) -> None:
    """It has no place, and is not said beside other errors."""
    assert ptxas(HEAD + text) == (255, said)
    other = errors(text.count("\n") + 4, "Not a name of any known instruction: 'foo'")
    assert ptxas(HEAD + text + ".entry wrong() { foo; ret; }\n") == other


def test_a_shared_variable_with_a_size_is_defined_here(ptxas: Call) -> None:
    """The warning of ptxas 13.0 is of `s`, and not of an array that a launch sizes."""
    said = "ptxas warning : Unresolved extern variable 's' in whole program compilation, ignoring extern qualifier"
    text = HEAD + ".extern .shared .u32 s;\n.extern .shared .u32 room[];\n.entry e() { ret; }\n"
    assert ptxas(text) == (0, [said])


def test_what_is_found_last_is_not_looked_for_without_code(ptxas: Call) -> None:
    assert ptxas(HEAD + CONSTANTS + ".entry e() { ret; }\n", "-arch=compute_90") == (0, [])


@pytest.mark.parametrize(("file", "count"), [("", 1), ('.file 1 "a.cu"\n', 0)])
def test_lines_of_no_file(ptxas: Call, file: str, count: int) -> None:
    said = ".loc directive without .file directive is found, line information in generated binary may not be complete"
    assert ptxas(f"{HEAD}{file}.entry e() {{ .loc 1 1 1\nret; }}\n") == (0, [f"ptxas warning : {said}"] * count)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("ld.param.u64 %rd1, [n];", ("n", ".u32", ".u64")),
        ("ld.param.u64 %rd1, [n+1];", ("n", ".u32", ".u64")),
        ("st.shared.b64 [one], %rd1;", ("one", ".b16", ".b64")),
        ("ld.param.u64 %rd1, [p+4];", None),
        ("ld.shared.u64 %rd1, [sm];", None),
        ("ld.param.v2.u32 {%r1, %r2}, [n];", None),
    ],
)
def test_an_access_wider_than_its_variable(ptxas: Call, line: str, found: tuple[str, ...] | None) -> None:
    """Of a variable that is an array or a vector nothing is said; `-w` does not silence it."""
    said = "ptxas a.ptx, line 9; info    : Potential out of bound access while accessing symbol '{}' of type '{}' with "
    lines = [] if found is None else [said.format(*found[:2]) + f"instruction type '{found[2]}'."]
    assert ptxas(f"{HEAD}{KERNEL}.shared .b16 one;\n{line}\nret; }}\n", "-arch=sm_90", "-w") == (0, lines)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ld.global.v4.f64 {%f1,%f2,%f3,%f0},[%rd1];", ["Arguments mismatch for instruction 'ld'"]),
        ("ld.global.b128 %rd1,[%rd2];", ["Arguments mismatch for instruction 'ld'"]),
        ("redux.sync.add.s32 %r1,%f1,-1;", ["Arguments mismatch for instruction 'redux'"]),
        ("redux.sync.add.s32 %r1,%r2,-1;", ["Feature 'redux' requires .target sm_80 or higher"]),
        ("szext.wrap.u32 %r1,%r2,%f1;", ["Arguments mismatch for instruction 'szext'"]),
        (
            "fma.rn.bf16 %h1,%h2,%h3,%f1;",
            ["Feature '.bf16' requires .target sm_80 or higher", "Arguments mismatch for instruction 'fma'"],
        ),
    ],
)
def test_what_an_instruction_needs_is_said_where_its_operands_fit(ptxas: Call, line: str, said: list[str]) -> None:
    head = HEAD.replace("8.0", "7.0").replace("sm_80", "sm_75")
    assert ptxas(f"{head}{KERNEL}{line}\nret; }}\n") == errors(8, *said)


@pytest.mark.parametrize(
    ("line", "near"),
    [
        ("ld.param.u32 %r1,[n+099];", "99"), ("add.u32 %r1,%r2,0189;", "89"), (".reg .u32 y<099>;", "99"),
        (".local .b32 l2[09];", "9"), ("mov.u32 %r1,0x1g;", "g"),
    ],
)  # fmt: skip
def test_a_number_is_read_up_to_the_first_wrong_digit(ptxas: Call, line: str, near: str) -> None:
    said = f"ptxas a.ptx, line 8; fatal   : Parsing error near '{near}': syntax error"
    assert ptxas(f"{HEAD}{KERNEL}{line}\nret; }}\n") == (255, [said])
