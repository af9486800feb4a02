"""`ptxvm-ptxas`: the texts and exit codes are those of ptxas 13.0.88, asked with the same words."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ptxvm.cli.ptxas import main
from ptxvm.cli.ptxas_options import DEEPEST, OPTIONS

HEAD = ".version 7.0\n.target sm_75\n.address_size 64\n"
GOOD = HEAD + ".visible .entry k(.param .u64 a) {\n  .reg .b32 %r<3>;\n  add.u32 %r1, %r2, 1;\n  ret;\n}\n"
BAD = GOOD.replace("add.u32", "foo.u32")
DOUBLE = (
    HEAD
    + """\
.global .b8 g[100];
.const .b32 c[4];
.visible .entry k(.param .u64 a) {
  .reg .b32 %r<3>; .reg .f64 %d<3>;
  .local .align 8 .b8 loc[64];
  .shared .b8 s[40];
  add.f64 %d1, %d2, %d2;
  st.local.f64 [loc], %d1;
  cvt.rni.s32.f64 %r1, %d1;
  ret;
}
"""
)
CALLS = (
    HEAD
    + """\
.extern .func foo (.param .b32 x);
.visible .entry k() { .param .b32 q; call foo, (q); ret; }
"""
)
READS = HEAD + ".extern .global .align 4 .b32 gx;\n.visible .entry k() { ret; }\n"
OPEN = "Unresolved extern variable 'gx' in whole program compilation, ignoring extern qualifier\n"
ABORTED = "ptxas fatal   : Ptx assembly aborted due to errors\n"
STACK = "Local memory used for function 'k', size of stack frame: 64 bytes\n"
ONCE = "Program is doing double precision computations.\n"

Said = tuple[int, str]
Call = Callable[..., Said]


@pytest.fixture
def ptxas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Call it in a folder with the modules above; the exit code, and what it says on stderr."""
    monkeypatch.chdir(tmp_path)
    modules = {"good": GOOD, "bad": BAD, "double": DOUBLE, "calls": CALLS, "reads": READS}
    for name, text in modules.items():
        Path(f"{name}.ptx").write_text(text)

    def call(*words: str) -> Said:
        code = main(words)
        said = capsys.readouterr()
        assert not said.out
        return code, said.err

    return call


def of_text(ptxas: Call, text: str, *words: str) -> Said:
    """What is said of a text."""
    Path("text.ptx").write_text(text)
    return ptxas(*words, "text.ptx")


LIMITED = HEAD + ".visible .entry k() {} {{ ret; }}\n.visible .entry j() {{ ret; }}\n"
THREADS = "Value of threads per SM for entry k is out of range. .minnctapersm {}will be ignored"
TOO_MANY = THREADS.format("and .maxntid ")
CTAS = "Value of minnctapersm for entry k is out of range. minnctapersm will be ignored"


@pytest.mark.parametrize(
    ("words", "directives", "said"),
    [
        ("-arch=sm_90", ".maxntid 2048", []),
        ("-arch=sm_90", ".maxntid 64, 64", [TOO_MANY]),
        ("-arch=sm_90", ".reqntid 64, 64", [TOO_MANY]),
        ("-arch=sm_75", ".maxntid 1025", [TOO_MANY]),
        ("-arch=sm_89", ".maxntid 1537", [TOO_MANY]),
        ("-arch=sm_90", ".maxntid 128 .minnctapersm 16", []),
        ("-arch=sm_90", ".maxntid 128 .minnctapersm 17", [THREADS.format("")]),
        ("-arch=sm_90", ".maxntid 128 .minnctapersm 33", [CTAS]),
        ("-arch=sm_86", ".maxntid 32 .minnctapersm 17", [CTAS]),
        ("-arch=sm_120a", ".maxntid 32 .minnctapersm 25", [CTAS]),
        ("-arch=sm_90", ".maxntid 4096 .minnctapersm 40", [CTAS, TOO_MANY]),
        ("-arch=sm_90", ".maxntid 4096 .minnctapersm 3", [TOO_MANY.replace("threads per SM", "maxntid,")]),
        ("-arch=sm_90 -minnctapersm=17", ".maxntid 128", [THREADS.format("")]),
        ("-arch=sm_90 -minnctapersm=17", ".maxntid 128 .minnctapersm 2", []),
        ("-arch=sm_90 -minnctapersm=17 -override-directive-values", ".maxntid 128 .minnctapersm 2", [THREADS.format("")]),
        ("-arch=sm_90", ".maxnreg 23", ["For entry k adjusting per thread register count of 23 to lower bound of 24"]),
        ("-arch=sm_90", ".maxnreg 256", ["Too many maxnreg specified for entry k, will be ignored"]),
        ("-arch=compute_90", ".maxntid 4096", []),
        ("-arch=sm_90 -w", ".maxntid 4096", []),
    ],
)
def test_limits_that_no_multiprocessor_has(ptxas: Call, words: str, directives: str, said: list[str]) -> None:
    code, found = of_text(ptxas, LIMITED.format(directives), *words.split())
    assert (code, found.splitlines()) == (0, [f"ptxas warning : {each}" for each in said])


@pytest.mark.parametrize(
    ("words", "count"), [("-maxntid=2049x", 1), ("-maxntid=65536,65536", 0), ("-maxntid=x", 0), ("-maxntid=3000000000", 1)]
)
def test_options_are_limits_of_all_kernels_the_last_first(ptxas: Call, words: str, count: int) -> None:
    """They are read as C++ reads numbers, and hold 32 bits."""
    code, found = of_text(ptxas, LIMITED.format(""), "-arch=sm_90", words)
    assert (code, found.splitlines()) == (
        0,
        [f"ptxas warning : {TOO_MANY.replace(' k ', f' {name} ')}" for name in "jk"][: 2 * count],
    )


def test_what_a_directive_alone_does_not_do_is_said_at_the_end_of_its_kernel(ptxas: Call) -> None:
    text = HEAD + ".visible .entry k()\n.minnctapersm 2\n{\n\n  ret;\n}\n"
    said = ".minnctapersm is ignored when neither .maxntid nor .reqntid is specified."
    _, found = of_text(ptxas, text, "-arch=sm_90")
    assert found.endswith(f", line 9; warning : {said}\n")


def test_a_tools_patch_has_no_kernels(ptxas: Call) -> None:
    said = "ptxas error   : Entry function is not allowed when command line option '--compile-as-tools-patch' is specified \n"
    assert of_text(ptxas, GOOD, "-arch=sm_90", "-astoolspatch") == (255, said + ABORTED)
    assert of_text(ptxas, HEAD + ".visible .func f() { ret; }\n", "-arch=sm_90", "-astoolspatch") == (0, "")
    said = "ptxas fatal   : Conflicting options '--compile-only' and --compile-as-tools-patch specified\n"
    assert of_text(ptxas, GOOD, "-arch=sm_90", "-astoolspatch", "-c") == (255, said)


@pytest.mark.parametrize(("target", "ignored"), [("sm_75", True), ("sm_100", True), ("sm_103a", False), ("sm_120a", True)])
def test_accesses_of_tensor_memory_are_checked_where_there_is_some(ptxas: Call, target: str, ignored: bool) -> None:
    """No option silences that."""
    text = GOOD.replace("sm_75", target).replace("version 7.0", "version 9.0")
    options = "'--g-tensor-memory-access-check / --gno-tensor-memory-access-check'"
    said = f"ptxas info    : Command line option {options} not supported for '.target {target}', will be ignored\n"
    arch = target if target.startswith("sm_1") else "sm_90"
    assert of_text(ptxas, text, f"-arch={arch}", "-w", "-g-tmem-access-check") == (0, said * ignored)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-foo", "good.ptx"], "Unknown option 'foo'"),
        (["--arch", "sm_75", "good.ptx"], "Unknown option '-arch'"),
        (["-archsm_80", "good.ptx"], "Unknown option 'archsm_80'"),
        (["-oX", "good.ptx"], "Unknown option 'oX'"),
        (["-arch=sm_999", "good.ptx"], "Value 'sm_999' is not defined for option 'gpu-name'"),
        (["-arch=", "good.ptx"], "Value '' is not defined for option 'gpu-name'"),
        (["-arch", "good.ptx"], "Value 'good.ptx' is not defined for option 'gpu-name'"),
        (["-arch=sm_75,sm_80", "good.ptx"], "Value 'sm_75,sm_80' is not defined for option 'gpu-name'"),
        (["-m", "32", "good.ptx"], "Value '32' is not defined for option 'machine'"),
        (["-m 32"], "Value ' 32' is not defined for option 'machine'"),
        (["-maxrregcount", "foo", "good.ptx"], "Invalid value 'foo' for option 'maxrregcount'"),
        (["-fmad", "3", "good.ptx"], "'3': expected true or false"),
        (["-Ofast", "good.ptx"], "'fast': expected a number"),
        (["-regUsageLevel=x", "good.ptx"], "'x': expected a number"),
        (["-sanitize", "foo", "good.ptx"], "Value 'foo' is not defined for option 'sanitize'"),
        (["-lineinfo=1", "good.ptx"], "no argument expected after '-lineinfo'"),
        (["--verbose=1", "good.ptx"], "no argument expected after '--verbose'"),
        (["-o"], "argument expected after '-o'"),
        (["-optf", "none", "good.ptx"], "Could not open options file 'none'"),
        (["-e", "nope", "good.ptx"], "Unknown function nope"),
        (["-e", "k,k2", "good.ptx"], "Unknown function k2"),
        (["-o", "none/x", "good.ptx"], "Output file 'none/x' could not be opened"),
        (["calls.ptx"], "Unresolved extern function 'foo'"),
    ],
)
def test_what_is_refused(ptxas: Call, words: Sequence[str], said: str) -> None:
    assert ptxas(*words) == (255, f"ptxas fatal   : {said}\n")


@pytest.mark.parametrize(
    "words",
    [
        ["good.ptx"],
        ["-arch=sm_90a", "-O9", "good.ptx"],
        ["-m64", "-lineinfo", "-maxrregcount=32", "-maxrregcount", "32", "good.ptx"],
        ["--opt-level=2", "--gpu-name", "sm_80", "-fmad=false", "--warn-on-spills", "good.ptx"],
        ["-arch=compute_75", "calls.ptx"],
        ["-arch=lto_90", "reads.ptx"],
        ["-c", "calls.ptx"],
        ["-c", "reads.ptx"],
        ["-ias", GOOD],
        ["-warn-double-usage", "-warn-lmem-usage", "-w", "double.ptx"],
        ["-w", "reads.ptx"],
    ],
)
def test_what_passes_says_nothing(ptxas: Call, words: Sequence[str]) -> None:
    assert ptxas(*words) == (0, "")


OLDER = "SM version specified by .target is higher than default SM version assumed"


def test_a_module_for_another_target_is_refused_without_its_place(ptxas: Call) -> None:
    """As ptxas 13.0 does; of a module that is wrong in itself, it says only that."""
    for name, text in (("newer", GOOD), ("wrong", BAD), ("other", GOOD)):
        target = "sm_90a" if name == "other" else "sm_90"
        Path(f"{name}.ptx").write_text(re.sub(r"\.version .*\n\.target \w+", f".version 8.0\n.target {target}", text))
    assert ptxas("-arch=sm_80", "newer.ptx") == (255, f"ptxas fatal   : {OLDER}\n")
    future = "Program with .target 'sm_90a' cannot be compiled to future architecture"
    assert ptxas("-arch=sm_100", "other.ptx") == (255, f"ptxas fatal   : {future}\n")
    code, said = ptxas("-arch=sm_80", "wrong.ptx")
    assert code == 255
    assert OLDER not in said
    assert said.endswith(ABORTED)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--def-load-cache=wb", "load specified: wb"), ("-flcm=CA", "load specified: CA"),
        ("--def-store-cache=ca", "store specified: ca"), ("-fscm=zz", "store specified: zz"),
    ],
)  # fmt: skip
def test_a_cache_operator_is_one_of_the_access(ptxas: Call, option: str, said: str) -> None:
    """PTX 9.7.9.1; ptxas 13.0."""
    assert ptxas(option, "good.ptx") == (255, f"ptxas error   : Invalid default cache modifier on {said}\n{ABORTED}")
    assert ptxas("-dlcm=cv", "-dscm=wt", "good.ptx") == (0, "")


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("mov.u32 %r1, %tid.x add.s32 %r1, %r1, 1;", "add"),
        ("mov.u32 %r1 %tid.x;", "%tid"),
        ("mov.u32 %r1, 5 .reg .b32 %x;", ".reg"),
    ],
)
def test_an_error_of_syntax_is_near_a_word(ptxas: Call, text: str, near: str) -> None:
    """Ptxas 13.0 names an opcode without its modifiers, a register without its component."""
    Path("near.ptx").write_text(f".version 8.0\n.target sm_80\n.entry k() {{ .reg .b32 %r<4>;\n{text}\nret; }}\n")
    assert ptxas("-arch=sm_80", "near.ptx")[1].startswith(f"ptxas near.ptx, line 4; fatal   : Parsing error near '{near}': ")


UNDECLARED = {
    "add.s32 %x1, %x1, %r2;": ["Arguments mismatch for instruction 'add'"],
    "mul.lo.s32 %x2, %r1, 4;": ["Arguments mismatch for instruction 'mul.lo'"],
    "shfl.sync.bfly.b32 %x3|%x4, %r1, 1, 31, -1;": ["Arguments mismatch for instruction 'shfl'"],
    "@%x5 add.s32 %r1, %r2, 3;": ["Predicate expression expected"],
    "@%r1 add.s32 %r1, %r2, 3;": ["Predicate expression expected"],
    "bra %x6;": [],
    "call %x7, (%r1);": ["Call to '%x7' requires call prototype"],
    "ld.global.u32 %r1, [%x8+4];": ["Illegal operand type to instruction 'ld'"],
    "ld.global.u32 %x9, [%x10];": ["Arguments mismatch for instruction 'ld'"],
    "ld.global.v2.u32 {%x11, %r2}, [%rd1];": ["Illegal expression '%x11'"],
    "st.global.v2.u32 [%rd1], {%x12, %x13};": [
        "Illegal expression '%x12'", "Illegal expression '%x13'", "Unable to infer type of vector elements (assuming .b8)",
        "Arguments mismatch for instruction 'st'",
    ],
    "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%x14, {%f1, %f1}];": ["Arguments mismatch for instruction 'tex'"],
    "cvta.to.global.u64 %rd1, %x15;": ["Arguments mismatch for instruction 'cvta.to'"],
    "add.s32 %r1, %r2, %x16+4;": [],
    "add.s32.lo %r1, %r2, %r3;": [
        "Comparison qualifier is not allowed for instruction 'add'",
        "Mismatch between instruction type and comparison qualifier",
    ],
    "mul.wide.s32 3, %r1, %r2;": ["Result register required for instruction 'mul.wide'"],
    "cvta.to.global.u64 %rd1;": ["Arguments mismatch for instruction 'cvta.to'"],
    "add.u32.lo %r1, %r2, %r3;": ["Comparison qualifier is not allowed for instruction 'add'"],
}  # fmt: skip
REGISTERS = ".reg .b32 %r<4>; .reg .b64 %rd<2>; .reg .f32 %f<5>;"


def test_names_are_looked_for_when_all_is_read(ptxas: Call) -> None:
    """Ptxas 13.5: until then their operands have no type; an error of syntax comes before that."""
    text = "\n".join([f"{HEAD}.visible .entry k() {{ {REGISTERS}", *UNDECLARED, "ret; }", ""])
    numbered = list(enumerate(UNDECLARED, 5))
    expected = [f"ptxas text.ptx, line {n}; error   : {said}\n" for n, each in numbered for said in UNDECLARED[each]]
    names = [(n, name) for n, each in numbered for name in re.findall(r"%x\d+", each)]
    symbols = [f"ptxas text.ptx, line {n}; error   : Unknown symbol '{name}'\n" for n, name in names]
    assert of_text(ptxas, text) == (255, "".join([*expected, *symbols, ABORTED]))
    _, said = of_text(ptxas, text.replace("ret; }", "ret }"))
    assert said.startswith("".join([*expected, f"ptxas text.ptx, line {numbered[-1][0] + 1}; fatal "]))
    assert "Unknown symbol" not in said


REFUSED = {
    "add.rn.rz.f32 %f1, %f2, %f3;": ["Multiple rounding modifiers specified"],
    "setp.lt.gt.s32 %p1, %r1, %r2;": ["Multiple comparisons set"],
    "ld.global.ca.cg.u32 %r1, [%rd1];": ["Multiple cache operation modifiers specified"],
    "atom.global.add.min.u32 %r1, [%rd1], %r2;": ["Multiple instruction post-operation flags set"],
    "shfl.sync.up.down.b32 %r1, %r2, 0, 31, -1;": ["Multiple shuffle modifiers specified"],
    "add.ftz.ftz.f32 %f1, %f2, %f3;": ["Duplicate .ftz modifier"],
    "add.wide.u32 %rd1, %r1, %r2;": ["Unknown modifier '.wide'", "Arguments mismatch for instruction 'add'"],
    "mul.lo.wide.s32 %rd1, %r1, %r2;": ["Unknown modifier '.wide'", "Arguments mismatch for instruction 'mul.lo'"],
    "min.wide.s32 %r1, %r1, %r2;": ["Unknown modifier '.wide'"],
    "add.ftz.s32 %r1, %r1, %r2;": ["Illegal modifier '.ftz' for instruction 'add'"],
    "add.ftz.s32 %r1, %rd1, %r2;": ["Arguments mismatch for instruction 'add'"],
    "add.eq.s32 %r1, %rd1, %r2;": ["Arguments mismatch for instruction 'add'"],
    "mul.wide.f32 %f1, %f2, %f3;": ["Unexpected instruction types specified for 'mul.wide'"],
    "mul.lo.f32 %f1, %f2, %f3;": ["Unexpected instruction types specified for 'mul.lo'"],
    "mul.hi.lo.s32 %r1, %r2, %r3;": [
        "Comparison qualifier is not allowed for instruction 'mul.hi'",
        "Mismatch between instruction type and comparison qualifier",
    ],
    "shf.l.wrap.u32 %r1, %r2, %r3, %r1;": ["Unexpected instruction types specified for 'shf.l'"],
    "shf.l.b32 %r1, %r2, %r3, %r1;": ["Clamp modifier required for instruction 'shf.l'"],
    "shf.r %r1, %r2, %r3, %r1;": ["Unexpected instruction types specified for 'shf.r'"],
    "setp.s32 %p1, %r1, %r2;": ["Comparison modifier required for instruction 'setp'"],
    "cvt.ftz.u32.u64 %r1, %rd1;": [
        "Illegal modifier '.ftz' for instruction 'cvt'", "Modifier '.ftz' does not apply to this type of convert operation",
    ],
    "cvt.rn.ftz.f64.s32 %fd1, %r1;": ["Modifier '.ftz' does not apply to this type of convert operation"],
    "ld.global.u32 %r1, [%rd1], %rd1;": [
        ".L2::cache_hint modifier required for instruction 'ld' with 3 arguments", "Arguments mismatch for instruction 'ld'",
    ],
    "atom.global.add.u32 %r1, [%rd1], %r2, %rd1;": [
        ".L2::cache_hint modifier required for instruction 'atom' with 4 arguments",
        "Arguments mismatch for instruction 'atom'",
    ],
}  # fmt: skip
CALLEE = ".func (.reg .b32 out) f(.reg .b32 a, .reg .b32 b);"


def test_modifiers_are_judged_before_operands_or_behind_them(ptxas: Call) -> None:
    """Ptxas 13.0: what it does not know or has met already, it says at once; all else only where the operands are right."""
    head = HEAD.replace("7.0", "8.0").replace("75", "80")
    lines = [f"{head}.visible .entry k() {{ {REGISTERS} .reg .pred %p<2>; .reg .f64 %fd<2>;", *REFUSED, "ret; }", ""]
    expected = [f"ptxas text.ptx, line {n}; error   : {said}\n" for n, each in enumerate(REFUSED, 5) for said in REFUSED[each]]
    assert of_text(ptxas, "\n".join(lines), "-arch=sm_80") == (255, "".join([*expected, ABORTED]))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("call (%r1), f, (%r2, %x);", ["b"]),
        ("call (%x), f, (%y, 3);", ["out", "a"]),
        ("tex.2d.v4.f32.f32 {%x, %f2, %y, %f4}, [t, {%f1, %f2}];", 3 * ["tex"]),
        ("st.global.v2.f32 [%rd1], {%f1, %x};", ["st"]),
        ("st.global.v2.b32 [%rd1], {%r1, %x};", []),
    ],
)
def test_undeclared_names_have_no_type(ptxas: Call, line: str, said: list[str]) -> None:
    """Ptxas 13.0: an argument fits in no respect, and an element differs from its neighbours that are not bits."""
    names = list(dict.fromkeys(re.findall(r"%[xy]\b", line)))
    if line.startswith("call"):
        ways = ["Illegal argument for", "Type of argument does not match", "Alignment of argument does not match"]
        expected = [f"{way} formal parameter '{name}'" for name in said for way in ways]
    else:
        expected = [f"Illegal expression '{name}'" for name in names]
        expected += [f"Vector with elements of different types are not allowed in {opcode} instruction" for opcode in said]
    expected += [f"Unknown symbol '{name}'" for name in names]
    text = f"{HEAD}.global .texref t; {CALLEE}\n.visible .entry k() {{ {REGISTERS}\n{line}\nret; }}\n"
    assert of_text(ptxas, text)[1].splitlines()[:-1] == [f"ptxas text.ptx, line 6; error   : {each}" for each in expected]


@pytest.mark.parametrize("line", ["add.s32 _, %r1, %r2;", "mov.b32 _, %r1;", "mad.lo.s32 _, %r1, %r2, %r3;"])
def test_a_result_that_is_discarded_ends_the_reading(ptxas: Call, line: str) -> None:
    """Ptxas 13.0."""
    opcode = "mad.lo" if line.startswith("mad") else line[:3]
    said = f"ptxas text.ptx, line 6; fatal   : Result discard mode is not allowed for instruction '{opcode}'\n"
    body = f"add.s32 %r1, %f1, 2;\n{line}\nadd.s32 %r1, %f1, 2;"
    before = "ptxas text.ptx, line 5; error   : Arguments mismatch for instruction 'add'\n"
    assert of_text(ptxas, f"{HEAD}.visible .entry k() {{ {REGISTERS}\n{body}\nret; }}\n") == (255, f"{before}{said}{ABORTED}")


def test_a_module_without_a_version_is_named(ptxas: Call) -> None:
    Path("none.ptx").write_text(".target sm_80\n")
    said = "fatal   : Missing .version directive at start of file 'none.ptx'\n"
    assert said in ptxas("none.ptx")[1]


@pytest.mark.parametrize(
    ("data", "line"),
    [(b"\x7fELF\x02\0\n\0", 1), (f"{HEAD})\n\0".encode(), 1 + HEAD.count("\n") + 1), (GOOD.encode() + b"\0", 0)],
)
def test_a_file_ends_at_a_nul_before_all_else(ptxas: Call, data: bytes, line: int) -> None:
    """So does one that ends with it, whatever else is wrong (ptxas 13.0)."""
    Path("nul.ptx").write_bytes(data)
    said = f"ptxas fatal   : Unexpected EOF encountered on line {line or 1 + GOOD.count(chr(10))}\n{ABORTED}"
    assert ptxas("nul.ptx", "good.ptx") == (255, said)


def test_what_is_wrong_in_a_module(ptxas: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """The standard input is called otherwise by ptxas, which copies it to a file."""
    said = "line 6; error   : Not a name of any known instruction: 'foo'\n"
    assert ptxas("bad.ptx") == (255, f"ptxas bad.ptx, {said}{ABORTED}")
    again = "ptxas bad.ptx, line 4; error   : Duplicate definition of function 'k'\n"
    assert ptxas("good.ptx", "bad.ptx") == (255, f"{again}ptxas bad.ptx, {said}{ABORTED}")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    assert ptxas("-arch=sm_75", "-c", "-") == (255, f"ptxas <stdin>, {said}{ABORTED}")
    assert ptxas("none.ptx") == (255, f"ptxas fatal   : Input file 'none.ptx' could not be opened\n{ABORTED}")


def test_warnings(ptxas: Call) -> None:
    places = [f"double.ptx, line {line};" for line in (10, 11, 12)]
    assert ptxas("-warn-double-usage", "double.ptx") == (0, "".join(f"ptxas {each} warning : {ONCE}" for each in places))
    errors = "".join(f"ptxas {each} error   : {ONCE}" for each in places)
    assert ptxas("-warn-double-usage", "-Werror", "double.ptx") == (255, errors + ABORTED)
    assert ptxas("--warn-on-local-memory-usage", "double.ptx") == (0, f"ptxas warning : {STACK}")
    assert ptxas("reads.ptx") == (0, f"ptxas warning : {OPEN}")
    assert ptxas("-Werror", "reads.ptx") == (255, f"ptxas error   : {OPEN}{ABORTED}")
    again = "incompatible redefinition for option 'gpu-name', the last value of this option was used\n"
    assert ptxas("-arch", "sm_80", "-arch", "sm_75", "good.ptx") == (0, f"ptxas warning : {again}")


def test_memory_is_told(ptxas: Call) -> None:
    """But for the registers, the line of bytes and those of the kernel are ptxas's."""
    told = (
        "ptxas info    : 100 bytes gmem, 16 bytes cmem[3]\n"
        "ptxas info    : Compiling entry function 'k' for 'sm_80'\n"
        "ptxas info    : Function properties for k\n"
        "    64 bytes of .local declared, 40 bytes smem; registers are not known\n"
    )
    assert ptxas("-v", "-arch=sm_80", "double.ptx") == (0, told)


def test_a_file_of_options(ptxas: Call) -> None:
    Path("options").write_text("-arch=sm_80 -v\n")
    code, said = ptxas("-optf", "options", "good.ptx")
    assert code == 0
    assert "for 'sm_80'" in said


def test_a_file_of_options_that_names_itself(ptxas: Call) -> None:
    """Here ptxas runs out of memory."""
    Path("options").write_text("-optf options\n")
    assert ptxas("-optf", "options", "good.ptx") == (255, "ptxas fatal   : Options file 'options' includes itself\n")
    assert sys.getrecursionlimit() // 20 > DEEPEST


def test_the_output_is_the_module(ptxas: Call) -> None:
    """There is no machine code: ptxas would write some."""
    assert ptxas("good.ptx", "-o", "out") == (0, "")
    assert Path("out").read_text() == GOOD
    assert ptxas("bad.ptx", "-o", "wrong")[0] == 255
    assert not Path("wrong").exists()


def test_what_clients_read(capsys: pytest.CaptureFixture[str]) -> None:
    """LLVM's tests read the targets from --help and the versions from --list-version, Triton the release."""
    assert main(["--help"]) == 0
    page = capsys.readouterr().out
    section = re.search(r"--gpu-name(.*?)--", page, re.DOTALL)
    assert section is not None
    assert {"75", "90a", "100f"} <= set(re.findall(r"'sm_(\d+[af]?)'", section[1]))
    assert max(map(len, page.splitlines())) <= 80
    assert main(["--list-version"]) == 0
    assert {"6.4", "9.0"} <= set(capsys.readouterr().out.split())
    assert main(["--version"]) == 0
    assert re.search(r"release \d+\.\d+, V\d+\.\d+\.\d+", capsys.readouterr().out)
    assert main([]) == 0
    assert capsys.readouterr().out == page


def test_no_option_stands_twice() -> None:
    names = [name for each in OPTIONS for name in {f"--{each.name}", f"-{each.short}"}]
    assert len(names) == len(set(names))


# ── warnings of instructions ────────────────────────────────────────────────────────────

OLD = "Instruction '{}' without '.sync' "
DIVERGED = OLD + "may produce unpredictable results on sm_70 and later architectures"
DEPRECATED = OLD + "is deprecated since PTX ISA version 6.0 and will be discontinued in a future PTX ISA version"
GONE = OLD + "is not supported on .target sm_70 and higher from PTX ISA version 6.4"
ORDERED = (
    "Advisory: Modifier '.sp::ordered_metadata' should be used on instruction 'mma' instead of modifier '.sp' as it is "
    "expected to have substantially reduced performance on some future architectures"
)
BOTH = [("warning", said.format(each)) for each in ("vote", "shfl") for said in (DIVERGED, DEPRECATED)]
FUNCTION = "Unexpected instruction types specified for 'mov instruction with function address operand'"
LANES = "vote.all.pred %p1, %p2; shfl.idx.b32 %r2, %r1, 0, 31;"
SPARSE = (
    "mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32 {%r1,%r2,%r3,%r4}, {%r1,%r2,%r3,%r4}, {%r1,%r2,%r3,%r4}, "
    "{%r1,%r2,%r3,%r4}, %r5, 0x0;"
)
TO_MANY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%d1], %r2, [%r3], %h1;"


@pytest.mark.parametrize(
    ("version", "target", "text", "said"),
    [
        ("5.0", "sm_60", LANES, [("warning", DIVERGED.format(each)) for each in ("vote", "shfl")]),
        (
            "6.3",
            "sm_75",
            LANES,
            BOTH,
        ),
        (
            "6.4",
            "sm_60",
            LANES,
            BOTH,
        ),
        ("6.4", "sm_70", LANES, [("error", GONE.format(each)) for each in ("vote", "shfl")]),
        ("8.0", "sm_80", SPARSE, [("info", ORDERED)]),
        ("8.5", "sm_80", SPARSE.replace("mma.sp.", "mma.sp::ordered_metadata."), []),
        ("8.0", "sm_80", "mov.s64 %d1, f; mov.u64 %d1, f; mov.b64 %d1, f;", [("warning", FUNCTION)]),
        ("8.6", "sm_90a", TO_MANY, []),
    ],
)
def test_what_an_instruction_is_warned_of(
    ptxas: Call, version: str, target: str, text: str, said: list[tuple[str, str]]
) -> None:
    registers = ".reg .pred %p<3>; .reg .b32 %r<9>; .reg .b16 %h<3>; .reg .b64 %d<3>;"
    head = f".version {version}\n.target {target}\n.address_size 64\n.func f() {{ ret; }}\n"
    Path("m.ptx").write_text(f"{head}.visible .entry k() {{ {registers}\n{text}\nret; }}\n")
    failed = any(word == "error" for word, _ in said)
    lines = "".join(f"ptxas m.ptx, line 6; {word:<8}: {each}\n" for word, each in said)
    arch = target if target == "sm_90a" else "sm_80"
    assert ptxas("-arch", arch, "m.ptx") == (255 if failed else 0, lines + (ABORTED if failed else ""))


KERNEL = ".visible .entry k() { .reg .b32 %r<9>; .reg .b16 %h<3>; .reg .b64 %d<3>;"


def test_a_copy_to_several_ctas_wants_a_target_of_one_chip(ptxas: Call) -> None:
    """The list of targets is that of the newest ptxas."""
    Path("m.ptx").write_text(f".version 8.6\n.target sm_90\n.address_size 64\n{KERNEL}\n{TO_MANY}\nret; }}\n")
    code, said = ptxas("-arch", "sm_90", "m.ptx")
    assert code == 0
    assert said.startswith(
        "ptxas m.ptx, line 5; warning : Advisory: '.multicast::cluster' modifier on instruction 'cp.async.bulk"
    )
    assert "sm_90a/sm_100a/sm_100f/" in said
    assert said.endswith(
        "' instead of .target 'sm_90' as this feature is expected to have substantially reduced performance on some future "
        "architectures\n"
    )


def test_features_are_those_of_the_target_of_the_module(ptxas: Call) -> None:
    """A later -arch does not give them."""
    text = "redux.sync.add.s32 %r1, %r2, %r3;"
    Path("m.ptx").write_text(f".version 8.0\n.target sm_60\n.address_size 64\n{KERNEL}\n{text} ret; }}\n")
    code, said = ptxas("-arch", "sm_80", "m.ptx")
    assert (code, said) == (255, f"ptxas m.ptx, line 5; error   : Feature 'redux' requires .target sm_80 or higher\n{ABORTED}")


# ── debugging, output, several files ────────────────────────────────────────────────────

MISSING = "ptxas warning :  .debug_abbrev section not found\nptxas warning :  .debug_info section not found\n"
CONFLICT = "Conflicting options --device-debug and --generate-line-info specified, ignoring --generate-line-info option\n"
OPTIMIZED = (255, "ptxas fatal   : Optimized debugging not supported\n")
SECTIONS = "\n.section .debug_abbrev { .b8 1 }\n.section .debug_info { .b8 1 }\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-g"], (0, MISSING)),
        (["-g", "-O0"], (0, MISSING)),
        (["-O", "-g"], (0, MISSING)),  # no level, and then the next option
        (["-g", "-w"], (0, "")),
        (["-g", "-lineinfo"], (0, f"ptxas warning : {CONFLICT}{MISSING}")),
        (["-g", "-Werror"], (255, f"{MISSING.replace('warning :', 'error   :')}{ABORTED}")),
        (["-g", "-lineinfo", "-Werror"], (255, f"ptxas error   : {CONFLICT}{ABORTED}")),
        (["-g", "-O3"], OPTIMIZED),
        (["--device-debug", "--opt-level", "1"], OPTIMIZED),
    ],
)
def test_debugging_asks_for_sections_and_no_optimization(ptxas, words, said):
    assert ptxas(*words, "good.ptx") == said


def test_what_is_wrong_with_the_options_comes_before_what_is_wrong_with_a_module(ptxas):
    assert ptxas("-g", "-O2", "bad.ptx") == OPTIMIZED


def test_a_module_for_debugging_is_not_optimized(ptxas):
    Path("debug.ptx").write_text(GOOD.replace("sm_75", "sm_75, debug") + SECTIONS)
    assert ptxas("-O2", "debug.ptx") == OPTIMIZED
    assert ptxas("-g", "debug.ptx") == ptxas("debug.ptx") == (0, "")


def test_the_output_is_elf_o_where_no_other_is_named(ptxas):
    assert ptxas("bad.ptx")[0] == 255
    assert not Path("elf.o").exists()
    assert ptxas("good.ptx") == (0, "")
    assert Path("elf.o").read_text() == GOOD
    assert ptxas("-o", "other.o", "double.ptx") == (0, "")
    assert Path("elf.o").read_text() == GOOD


def test_the_level_of_optimization_stands_in_the_same_word(ptxas):
    missing = (255, f"ptxas fatal   : Input file '3' could not be opened\n{ABORTED}")
    assert ptxas("-O", "3", "good.ptx") == missing
    assert ptxas("-O3", "good.ptx") == ptxas("-O", "good.ptx") == ptxas("--opt-level", "3", "good.ptx") == (0, "")


@pytest.mark.parametrize("words", [[], ["-c"]])
def test_what_two_files_define(ptxas, words):
    Path("more.ptx").write_text(GOOD)
    Path("variable.ptx").write_text(HEAD + ".visible .global .u32 g;\n")
    Path("again.ptx").write_text(HEAD + ".visible .global .u32 g;\n")
    code, said = ptxas(*words, "good.ptx", "more.ptx", "variable.ptx", "again.ptx")
    assert (code, said.splitlines(keepends=True)) == (
        255,
        [
            "ptxas more.ptx, line 4; error   : Duplicate definition of function 'k'\n",
            "ptxas again.ptx, line 4; error   : Duplicate definition of variable 'g'\n",
            ABORTED,
        ],
    )


UNUSED = "Conflicting options {0} and {1} specified, ignoring {1} option"
WHOLE = "Command line option '{}' not supported for 'whole program compilation', will be ignored"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-regUsageLevel=11"], ["Value of RegUsageLevel (11) is out of valid range {0..10}, option will be ignored"]),
        (["-maxrregcount=256"], ["Too big maxrregcount value specified 256, will be ignored"]),
        (["-maxrregcount=-1"], ["Too big maxrregcount value specified -1, will be ignored"]),
        (["-maxrregcount=0x17"], ["For profile sm_75 adjusting per thread register count of 23 to lower bound of 24"]),
        (["-maxrregcount=255"], []),
        (["-maxrregcount=archmin"], []),
        (
            ["-func-maxrregcount=x"],
            [WHOLE.format("device-function-maxrregcount")],
        ),
        (["-func-maxrregcount=300", "-c"], ["Too big maxrregcount value specified 300, will be ignored"]),
        (["-maxntid=1,2,3,4"], ["Too many values specified for option '-maxntid', option will be ignored"]),
        (
            ["-maxntid=1,2,3,4", "-maxrregcount=32"],
            [UNUSED.format("-maxrregcount", "-maxntid")],
        ),
        (
            ["-g", "-regUsageLevel=5"],
            [
                UNUSED.format("'--device-debug'", "'--register-usage-level'"),
                " .debug_abbrev section not found",
                " .debug_info section not found",
            ],
        ),
        (
            ["-ewp", "-c"],
            [UNUSED.format("'--compile-only'", "'--extensible-whole-program'")],
        ),
        (
            ["-suppress-debug-info"],
            ["Option suppress-debug-info requires option device-debug or lineinfo; ignoring since latter is not specified"],
        ),
        (["-suppress-debug-info", "-lineinfo"], []),
        (["-O-1"], []),
        (["-O+3"], []),
        (["-e", ""], []),
    ],
)
def test_values_of_options_that_are_not_used(ptxas, words, said):
    assert ptxas(*words, "good.ptx") == (0, "".join(f"ptxas warning : {each}\n" for each in said))
    assert ptxas(*words, "-w", "good.ptx") == (0, "")


def test_a_warning_about_options_may_be_an_error(ptxas):
    said = "Value of RegUsageLevel (11) is out of valid range {0..10}, option will be ignored"
    assert ptxas("-regUsageLevel=11", "-Werror", "good.ptx") == (255, f"ptxas error   : {said}\n{ABORTED}")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-Ofc=7"], "Invalid value for --Ofast-compile/-Ofc (7), is not 'max', 'mid', 'min', or '0'"),
        (["-split-compile=-1"], "Invalid value '-1' for option '--split-compile'"),
        (["-maxrregcount=1x", "-split-compile=-1"], "Invalid value '-1' for option '--split-compile'"),
        (["-maxrregcount=1x", "-g", "-O3"], OPTIMIZED[1].partition(": ")[2].strip()),
        (["-arch=lto_90a"], "Unsupported gpu architecture 'lto_90a'"),
        (["-func-maxrregcount=x", "-c"], "Invalid value 'x' for option 'device-function-maxrregcount'"),
    ],
)
def test_values_of_options_are_judged_in_an_order(ptxas, words, said):
    assert ptxas(*words, "none.ptx") == (255, f"ptxas fatal   : {said}\n")


def test_a_virtual_target_is_only_checked(ptxas):
    """As with ptxas 13.0, of lto_100f, too: no output, nothing of the whole program."""
    for target in ("compute_75", "lto_75", "lto_100f"):
        assert ptxas(f"-arch={target}", "-v", "-o", "out", "-e", "nope", "calls.ptx") == (0, "")
        assert not Path("out").exists()
    assert ptxas("-arch=compute_75", "bad.ptx")[0] == 255


EXTERN = HEAD + ".extern .func foo (.param .b32 x);\n.visible .entry k2() { .param .b32 q; call foo, (q); ret; }\n"
FOO = HEAD + "{} .func foo (.param .b32 x) {{\n  ret;\n}}\n"


def test_several_files_are_one_program(ptxas):
    """Each name is declared once: what one file declares `.extern`, another does not define."""
    Path("extern.ptx").write_text(EXTERN)
    Path("plain.ptx").write_text(EXTERN.replace(".extern", ".visible"))
    Path("own.ptx").write_text(EXTERN.replace(".extern ", ""))
    Path("foo.ptx").write_text(FOO.format(".visible"))
    Path("weak.ptx").write_text(FOO.format(".weak"))
    again, unlike = "Duplicate definition of function 'foo'", "Inconsistent redefinition of variable 'foo'"
    conflict = "Function definition conflicts with '.extern' declaration for function 'foo'"
    lines = f"ptxas foo.ptx, line 4; error   : {unlike}\nptxas foo.ptx, line 6; error   : {conflict}\n"
    assert ptxas("extern.ptx", "foo.ptx") == (255, lines + ABORTED)
    lines = f"ptxas extern.ptx, line 4; error   : {again}\nptxas extern.ptx, line 4; error   : {unlike}\n"
    assert ptxas("foo.ptx", "extern.ptx") == (255, lines + ABORTED)
    lines = lines.replace("extern.ptx", "weak.ptx")
    assert ptxas("foo.ptx", "weak.ptx") == (255, lines + ABORTED)
    assert ptxas("plain.ptx", "foo.ptx") == (0, "")
    undefined = (255, "ptxas fatal   : Unresolved extern function 'foo'\n")
    for words in (["own.ptx", "foo.ptx"], ["-c", "own.ptx"], ["plain.ptx"], ["extern.ptx", "calls.ptx"]):
        assert ptxas(*words) == undefined
    assert ptxas("-c", "extern.ptx", "calls.ptx") == (0, "")


def test_variables_of_several_files(ptxas):
    texts = {
        "one": ".visible .global .u32 gx;", "wide": ".visible .global .u64 gx;", "many": ".visible .global .u32 gx[3];",
        "open": ".extern .global .u32 gx[];", "same": ".extern .global .u32 gx;",
    }  # fmt: skip
    for name, text in texts.items():
        Path(f"{name}.ptx").write_text(f"{HEAD}{text}\n")
    assert ptxas("one.ptx", "same.ptx") == (0, "")
    assert ptxas("same.ptx", "one.ptx") == ptxas("same.ptx", "same.ptx") == (0, f"ptxas warning : {OPEN}")
    assert ptxas("many.ptx", "open.ptx") == (0, "")
    assert ptxas("open.ptx", "many.ptx")[1] == f"ptxas warning : {OPEN}"
    assert ptxas("open.ptx") == (255, "ptxas fatal   : Unresolved extern variable 'gx'\n")
    unlike = "error   : Inconsistent redefinition of variable 'gx'\n"
    assert ptxas("same.ptx", "wide.ptx") == (255, f"ptxas wide.ptx, line 4; {unlike}{ABORTED}")


def test_files_are_read_in_their_order(ptxas):
    said = "line 6; error   : Not a name of any known instruction: 'foo'\n"
    missing = "ptxas fatal   : Input file 'none.ptx' could not be opened\n"
    assert ptxas("bad.ptx", "none.ptx") == (255, f"ptxas bad.ptx, {said}{missing}{ABORTED}")
    assert ptxas("none.ptx", "bad.ptx") == (255, f"{missing}ptxas bad.ptx, {said}{ABORTED}")
    assert ptxas("-ias", BAD) == (255, f"ptxas application ptx input, {said}{ABORTED}")


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("garbage\n", 1, "Missing .version directive at start of file 'head.ptx'"),
        (".version 7\n.target sm_75\n", 1, "Missing .version directive at start of file 'head.ptx'"),
        ("// c\n\n.entry k(\n", 3, "Missing .version directive at start of file 'head.ptx'"),
        (".version 7.0\n\nfoo\n", 3, "Missing .target directive at start of file 'head.ptx'"),
        (GOOD.replace("sm_75", "sm_33"), 2, "Unsupported .target 'sm_33'"),
    ],
)
def test_nothing_is_read_after_a_wrong_head(ptxas, text, line, said):
    Path("head.ptx").write_text(text)
    assert ptxas("head.ptx", "bad.ptx") == (255, f"ptxas head.ptx, line {line}; fatal   : {said}\n{ABORTED}")


def test_debugging_without_its_sections_is_an_error_without_a_place(ptxas):
    Path("debug.ptx").write_text(GOOD.replace("sm_75", "sm_75, debug"))
    said = "Debug information not found in presence of .target debug"
    assert ptxas("debug.ptx") == (255, f"ptxas error   : {said}\n{ABORTED}")


def test_addresses_of_32_bits_are_no_longer_compiled(ptxas):
    Path("narrow.ptx").write_text(GOOD.replace("address_size 64", "address_size 32"))
    fatal = "ptxas fatal   :  32-Bit compilation is no longer supported\n"
    warning = "ptxas warning :  64 Bit host architecture (--machine) being used mismatches with .address_size of 32 bits\n"
    assert ptxas("narrow.ptx") == (255, warning + fatal)
    assert ptxas("-w", "narrow.ptx") == (255, fatal)
    assert ptxas("-arch=compute_75", "narrow.ptx") == (0, "")


@pytest.mark.parametrize(
    ("declared", "frame"),
    [
        (".b8 l[1];", 8), (".b8 l[9];", 16), (".align 16 .b8 l[20];", 32), (".b8 l[1]; .local .b8 m[33];", 40),
        (".b8 l[5]; .local .b64 m[1];", 16),
    ],
)  # fmt: skip
def test_the_frame_on_the_stack(ptxas, declared, frame):
    """The sizes are those of ptxas 13.0, for variables whose address is stored."""
    Path("local.ptx").write_text(HEAD + f".visible .func f() {{ .local {declared} ret; }}\n")
    said = f"Local memory used for function 'f', size of stack frame: {frame} bytes\n"
    assert ptxas("-warn-lmem-usage", "-c", "local.ptx") == (0, f"ptxas warning : {said}")
    assert ptxas("-warn-lmem-usage", "-c", "-Werror", "local.ptx") == (255, f"ptxas error   : {said}")
    assert ptxas("-warn-lmem-usage", "local.ptx") == (0, "")


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("rzi", "Illegal rounding modifier for instruction 'and'"),
        ("hs", "Comparison qualifier is not allowed for instruction 'and'"),
        ("depth", "Illegal query modifier for instruction 'and'"),
        ("L1::evict_last", "Illegal modifier '.level::eviction_priority' for instruction 'and'"),
        ("shared::cta", "No state space qualifier expected for instruction 'and'"),
        ("acube", "Illegal modifier 'Geometry' for instruction 'and'"),
        ("rc16", "Illegal modifier 'Permute' for instruction 'and'"),
        ("2d", "Illegal modifier 'dimension' for instruction 'and'"),
        ("g", "Illegal modifier 'Component' for instruction 'and'"),
        ("clamp", "Illegal modifier 'Clamp' for instruction 'and'"),
        ("v4", "Vector qualifier is not allowed for instruction 'and'"),
        ("col", "Illegal modifier '.alayout or .blayout' for instruction 'and'"),
        ("shr7", "Illegal modifier 'Shift-right' for instruction 'and'"),
        ("full", "Unknown modifier '.full'"),
        ("sat", "Illegal modifier '.sat' for instruction 'and'"),
    ],
)
def test_a_modifier_of_another_instruction_is_told_by_its_kind(ptxas: Call, word: str, said: str) -> None:
    text = GOOD.replace("7.0", "9.0").replace("add.u32", f"and.{word}.b32")
    _, found = of_text(ptxas, text, "-arch=sm_75")
    assert found.splitlines()[0].endswith(f", line 6; error   : {said}")


OPENED = (
    HEAD
    + """\
.visible .entry k() {
  .reg .pred %p<3>; .reg .b16 %h<3>; .reg .b32 %r<5>; .reg .b64 %rd<3>; .reg .f32 %f<3>;
"""
)
NARROW = "Program uses {}-bit address on line '6' which is conflicting with .address_size 64\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("add.u32 %r1, %r2, 1\n  mul.wide.u32 %rd1, %r1, 4;", "7; fatal   : Parsing error near 'mul.wide': syntax error"),
        ("add.u32 %r1, %r2, 1\n  cvta.to.global.u64 %rd1, %rd1;", "7; fatal   : Parsing error near 'cvta.to': syntax error"),
        ("add.u32 %r1, %r2, %r3\n  .local .b32 a;", "7; fatal   : Parsing error near '.local': syntax error"),
        ("membar.gl\n  ld.global.f32 %f1, [%rd1];", "7; fatal   : Parsing error near '.global': syntax error"),
        ("mov.u32 %r1, %r2.sat;", "6; fatal   : Parsing error near '.sat': syntax error"),
        ("mov.u32 %r1.gpu, %r2;", "6; fatal   : Parsing error near '.gpu': syntax error"),
        ("mov.u32 %r1, %r2.5;", "6; fatal   : Parsing error near '.5': syntax error"),
        ("mov.u32 %r1, %r2.m16n8k16;", "6; fatal   : Parsing error near '.m16n8k16': syntax error"),
        ("mov.u32 %r1, WARP_SZ.x.y;", "6; fatal   : Parsing error near '.x': syntax error"),
        ("mov.u32 %r1, %tid.x.y;", "6; fatal   : Parsing error near '.y': syntax error"),
        ("mov.u32 %r1, 0779;", "6; fatal   : Parsing error near '9': syntax error"),
        ("ret; } /* \n", "6; fatal   : Parsing error near '': unexpected EOF while scanning"),
        ("ret;\n.visible .entry j() { ret; }", "7; fatal   : Parsing error near '.entry': syntax error"),
        ("add.s32 %r1, -%r2, %r3;", "6; error   : Operand negation not allowed for instruction 'add'"),
        ("mul.lo.s32 %r1, -%r2, %r3;", "6; error   : Operand negation not allowed for instruction 'mul.lo'"),
        (
            "add.s32 -%r1, %r2, %r3;",
            "6; error   : Operand negation limited to either (source A xor source B) or source C",
        ),
        (
            "add.f32 %f1, -%f2, %f2;",
            "6; error   : Illegal argument to unary minus|Operand negation not allowed for instruction 'add'",
        ),
        (
            "and.b32 %r1, !%r2, 3;",
            "6; error   : Illegal argument to predicate negation|Arguments mismatch for instruction 'and'",
        ),
        ("mov.u32 %r1, %r2.b0;", "6; error   : Video selector is not allowed on source operand for instruction 'mov'"),
        (
            "mov.u32 %r1, %r2.q;",
            "6; error   : Unknown video selector: '.q'|Video selector is not allowed on source operand for instruction 'mov'",
        ),
        ("mov.u32 %r1, %tid.q;", "6; error   : Unknown vector selector: 'q'"),
        ("mov.u32 %r1, %tid.xy;", "6; error   : Unimplemented feature: vector swizzle"),
        ("mov.u32 %r1, %laneid.q;", "6; error   : Unknown field '.q'"),
        ("mov.u32 %r1, %r2[4];", "6; error   : Array indexing on non-array"),
        ("add.u32 %r1, %r2[4], 3;", "6; error   : Array indexing on non-array"),
        ("ld.global.u32 %r1 [%rd1];", "6; error   : Array indexing on non-array|Arguments mismatch for instruction 'ld'"),
    ],
)
def test_a_broken_line_is_told_as_by_ptxas(ptxas, line, said):
    place, _, messages = said.partition(" : ")
    head = f"ptxas text.ptx, line {place} : "
    code, printed = of_text(ptxas, OPENED + f"  {line}\n  ret;\n}}\n")
    assert (code, printed) == (255, "".join(f"{head}{each}\n" for each in messages.split("|")) + ABORTED)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (".target sm_75\n\n.address_size 64\n", 3),
        (".target sm_75\n\n", 3),
        ("\n", 2),
        (".global .u32 x;\n.global .u32 y;\n", 1),
    ],
)
def test_a_missing_version_is_told_where_the_directive_before_it_ends(ptxas, text, line):
    said = f"ptxas text.ptx, line {line}; fatal   : Missing .version directive at start of file 'text.ptx'\n"
    assert of_text(ptxas, text) == (255, said + ABORTED)


def test_a_character_that_is_not_ascii_is_told_alone(ptxas):
    text = OPENED + "  foo;\n  ret;\n} é\n"
    assert of_text(ptxas, text) == (255, "ptxas fatal   : Unexpected non-ASCII character encountered on line 8\n" + ABORTED)


def test_what_a_call_returns_is_looked_for_only_where_nothing_else_is_wrong(ptxas):
    load = OPENED + "  { .param .b32 q; ld.param.b32 %r1, [q]; }\n"
    missing = "ptxas text.ptx, line 6; error   : Function call sequence invalid: 'ld.param' of 'q' without corresponding call\n"
    assert of_text(ptxas, load + "  ret; }\n") == (255, missing + ABORTED)
    unknown = "ptxas text.ptx, line 7; error   : Not a name of any known instruction: 'foo'\n"
    assert of_text(ptxas, load + "  foo;\n  ret; }\n") == (255, unknown + ABORTED)


@pytest.mark.parametrize(
    "line",
    [
        "ld.global.u32 %r1, [%r2+4];",
        "st.u32 [%r2], %r1;",
        "atom.add.u32 %r1, [%r2], 1;",
        "prefetchu.L1 [%r2];",
        "mbarrier.init.b64 [%r2], 3;",
    ],
)
def test_addresses_of_32_bits_have_no_code(ptxas, line):
    text = OPENED.replace("sm_75", "sm_80") + f"  {line}\n  ret;\n}}\n"
    refused = "ptxas fatal   :  32-Bit compilation is no longer supported\n"
    assert of_text(ptxas, text, "-arch=sm_80") == (255, f"ptxas warning : {NARROW.format(32)}{refused}")
    code, said = of_text(ptxas, text, "-arch=sm_90")
    assert code == 255
    assert "32-Bit ABI" in said


@pytest.mark.parametrize("line", ["cvta.shared.u32 %r1, %r2;", "cvta.to.global.u32 %r1, %r2;", "mov.u32 %r1, x;"])
def test_a_narrow_register_for_a_generic_or_global_address_has_no_code(ptxas, line):
    text = OPENED.replace(".entry", ".global .u32 x; .entry").replace(".visible .global", ".global") + f"  {line}\n  ret;\n}}\n"
    refused = "ptxas fatal   :  32-Bit compilation is no longer supported\n"
    assert of_text(ptxas, text) == (255, f"ptxas warning : {NARROW.format(32)}{refused}")


@pytest.mark.parametrize(
    ("line", "bits"),
    [
        ("ld.global.u32 %r1, [%rd1];", 64), ("mov.u32 %r1, %r2;", 64), ("ld.shared.u32 %r1, [%r2];", 64),
        ("ld.global.u32 %r1, [%r2]; st.global.u32 [%r2], %r1;", 32), ("ld.global.u32 %r1, [%h2];", 16),
    ],
)  # fmt: skip
def test_without_an_address_size_addresses_say_how_wide_they_are(ptxas, line, bits):
    """As ptxas 13.0 has it, whose addresses have 64 bits where none is narrower."""
    text = OPENED.replace(".address_size 64", "") + f"  {line}\n  ret;\n}}\n"
    warning = f"ptxas warning :  64 Bit host architecture (--machine) being used mismatches with .address_size of {bits} bits\n"
    refused = "ptxas fatal   :  32-Bit compilation is no longer supported\n"
    assert of_text(ptxas, text) == {64: (0, ""), 32: (255, warning + refused), 16: (0, warning)}[bits]


@pytest.mark.parametrize(
    "line", ["ld.shared.u32 %r1, [%r2];", "ld.const.u32 %r1, [%r2];", "ld.local.u32 %r1, [%r2];", "isspacep.global %p1, %r1;"]
)
def test_windows_have_addresses_of_32_bits(ptxas, line):
    assert of_text(ptxas, OPENED + f"  {line}\n  ret;\n}}\n") == (0, "")


def test_an_address_of_16_bits_is_warned_of(ptxas):
    text = OPENED + "  ld.global.u32 %r1, [%h2];\n  ret;\n}\n"
    assert of_text(ptxas, text) == (0, f"ptxas warning : {NARROW.format(16)}")
    assert of_text(ptxas, text, "-w") == (0, "")
    assert of_text(ptxas, text, "-Werror") == (255, f"ptxas error   : {NARROW.format(16)}{ABORTED}")


SYMBOL = "Illegal to use symbol '{}' of type {} as address operand. Use integer or bit only."


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ld.global.f32 %f1, [%f2+4];", SYMBOL.format("%f2", ".f32")),
        ("st.shared.f32 [%f1], %f2;", SYMBOL.format("%f1", ".f32")),
        ("prefetch.global.L1 [%p1];", SYMBOL.format("%p1", ".pred")),
        ("ld.global.u32 %r1, [%p1];", SYMBOL.format("%p1", ".pred") + "|Illegal operand type to instruction 'ld'"),
        ("ld.global.u32 %f1, [%f2];", "Arguments mismatch for instruction 'ld'"),
        ("add.u32 %f1, %r2, %f2;", "Arguments mismatch for instruction 'add'"),
        ("mov.u32 %tid.x, %r1;", "Read-only special register cannot be destination argument"),
        ("cvt.u32.u64 %tid.x, %rd1;", "Read-only special register cannot be destination argument"),
        ("mov.u32 %r1, %r2.u32;",
         "Unknown video selector: '.u32'|Video selector is not allowed on source operand for instruction 'mov'"),
        ("neg.u32 %r1, %r2;", "Instruction 'neg' applies only to signed numeric types"),
        ("abs.u64 %rd1, %rd2;", "Instruction 'abs' applies only to signed numeric types"),
        ("add.cc.u16 %h1, %h2, %h1;", "Modifier '.cc' applies only to add integer types"),
        ("sub.cc.f32 %f1, %f2, %f1;",
         "Illegal modifier '.cc' for instruction 'sub'|Modifier '.cc' applies only to sub integer types"),
        ("membar;", "Membar level required for instruction 'membar'"),
        ("max.add %r1, %r2, %r3;", "Illegal modifier '.add' for instruction 'max'"),
        ("min.and.b32 %r1, %r2, %r3;", "Illegal modifier '.and' for instruction 'min'"),
        ("max.inc.u32 %r1, %r2, %r3;", "Illegal reduction operation for instruction 'max.u32'"),
        ("slct.exch.f32.s32 %f1, %f2, %f1, %r1;", "Illegal reduction operation for instruction 'slct.f32.s32'"),
        ("membar.dec.gl;", "Illegal reduction operation for instruction 'membar'"),
        ("mov.dec %r1, %r2;", "Unexpected instruction types specified for 'mov'"),
        ("red.exch.global.b32 [%rd1], %r1;",
         "Illegal operation '.exch' for instruction 'red'|Operation .exch requires  type for instruction 'red'"),
        ("add.u32 %r1, [%r2+4], %r1;", "Argument 1 of instruction 'add': must be register"),
        ("setp.lt.u32 [%p1], %r1, %r2;", "Argument 0 of instruction 'setp': must be register"),
        ("st.global.u32 [%rd1], [%r2];", "Argument 1 of instruction 'st': must be register"),
        ("add.u32 %r1, [%rd2], %r1;", "Arguments mismatch for instruction 'add'"),
        ("mul.wide.s32 %rd1, {%r1, %r2}, 4;", "Vector operand is not allowed for instruction 'mul.wide'"),
        ("add.u32 {%r1, %r2}, %r1, %r2;", "Vector operand is not allowed for instruction 'add'"),
        ("and.b32 %r1, {%r1, %r2}, %r2;", "Arguments mismatch for instruction 'and'"),
        ("add.u32 %r1, {%f1, %f2}, %r2;", "Arguments mismatch for instruction 'add'"),
        ("foo.bar.commit_group.u32 %r1, %r2;",
         "Unknown modifier '.bar'|Unknown modifier '.commit_group'|Not a name of any known instruction: 'foo'"),
        ("ld.shared.nc.u32 %r1, [%rd1];", "Modifier '.nc' requires .global space"),
        ("ld.nc.L1::evict_last.u32 %r1, [%rd1];", "Modifier '.nc' requires .global space"),
        ("red.global.u32 [%rd1], %r2;",
         "|".join(f"{each} for instruction 'red'" for each in (
             "Illegal operation ''", "Operation  requires  type", "Reduction operation is required"))),
    ],
)  # fmt: skip
def test_words_of_single_instructions(ptxas, line, said):
    """As ptxas 13.0 prints them."""
    head = "ptxas text.ptx, line 6; error   : "
    assert of_text(ptxas, OPENED + f"  {line}\n  ret;\n}}\n") == (
        255, "".join(f"{head}{each}\n" for each in said.split("|")) + ABORTED
    )  # fmt: skip


SUMS = "{%f1,%f1,%f1,%f1}"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("wgmma.fence.sync.aligned;", "Instruction 'wgmma.fence'"),
        ("tcgen05.wait::ld.sync.aligned;", "Instruction 'tcgen05.wait'"),
        ("setmaxnreg.inc.sync.aligned.u32 64;", "Instruction 'setmaxnreg.inc'"),
        (f"mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e4m3.e4m3.f32 {SUMS}, {{%r1,%r1,%r1,%r1}}, {{%r1,%r1}}, {SUMS};",
         "Feature '.kind::f8f6f4'"),
    ],
)  # fmt: skip
def test_what_chips_have_alone(ptxas, line, said):
    """As ptxas 13.0 prints them for sm_90; what all later chips have is said otherwise."""
    text = f".version 8.6\n.target sm_90\n.visible .entry k() {{\n.reg .b32 %r<4>; .reg .f32 %f<4>;\n{line}\nret;\n}}\n"
    error = f"ptxas text.ptx, line 5; error   : {said} not supported on .target 'sm_90'\n"
    assert of_text(ptxas, text, "-arch=sm_90") == (255, error + ABORTED)
