"""Memoised validation: what it clears is right, and what it doubts is reported as without it."""

import random
import re

import pytest

import ptxvm
from ptxvm.algebra.types import Type
from ptxvm.analysis import body_check
from ptxvm.analysis.check import analyse
from ptxvm.analysis.program import Program
from ptxvm.analysis.scope import register_shape
from ptxvm.analysis.validate import recogniser
from ptxvm.diagnostics import Severity
from ptxvm.isa.targets import Target
from ptxvm.syntax.source import Source

HEAD = ".version 8.3\n.target sm_90\n.address_size 64\n"
DECLARATIONS = """
.global .u32 gv[4];
.extern .func (.param .b32 r) f(.param .b32 a);
.func two() { ret; }
.visible .entry k(.param .u64 p, .param .u32 n)
{
    .reg .pred %p<4>;
    .reg .b32 %r<10>;
    .reg .b64 %rd<10>;
    .reg .f32 %f<10>;
"""


ONLY_REGISTERS = DECLARATIONS.partition(".visible")[1] + DECLARATIONS.partition(".visible")[2]
REGISTER = register_shape(Type.named["b16"], 1)


def module(body: str) -> str:
    return f"{HEAD}{DECLARATIONS}{body}\n    ret;\n}}\n"


def read(source: str) -> Program:
    program, report = analyse(Source(source))
    assert not report.diagnostics
    return program


@pytest.fixture
def reports(in_full):
    """The diagnostics of a text, which are those of a full reading."""

    def reported(source: str) -> list[object]:
        _, found = analyse(Source(source))
        assert found.diagnostics == in_full(source)
        return found.diagnostics

    return reported


RIGHT = [
    "add.s32 %r1, %r2, -5; add.s32 %r3, %r1, 0x10U;",
    "ld.param.u64 %rd1, [p]; cvta.to.global.u64 %rd2, %rd1; ld.global.v2.f32 {%f1, _}, [%rd2+-8];",
    "setp.eq.s32 %p1|%p2, %r1, 0; @!%p1 bra L; mov.u32 %r1, %tid.x; L: mov.b32 %f1, 0f3F800000;",
    "{ .reg .b32 %r; mov.u32 %r, %r1; bra IN; IN: { bra OUT; } } OUT: and.pred %p1, %p2, !%p3;",
    "{ .param .b32 a; .param .b32 r; st.param.b32 [a+0], %r1; call.uni (r), f, (a); ld.param.b32 %r2, [r+0]; }",
    '.pragma "nounroll"; mov.u64 %rd1, gv; ld.global.u32 %r1, [gv+4]; .shared .b8 s[16];',
    ".loc 1 2 3\n mov.u32 %r1, %r2;\n .loc 1 4 5, function_name L0, inlined_at 1 2 3\n mov.u32 %r1, %ctaid.y;",
]


@pytest.mark.parametrize("body", RIGHT)
def test_a_body_without_doubt_is_read_when_it_is_asked_for(body, monkeypatch):
    function = read(module(body)).functions["k"]
    assert function.lazy is not None
    monkeypatch.setattr("ptxvm.analysis.check.outline", lambda _: None)
    full = read(module(body)).functions["k"]
    assert [b.node for b in function.instructions] == [b.node for b in full.instructions]
    assert [(b.node.start, b.node.end, b.i.mnemonic, dict(b.places)) for b in function.instructions] == [
        (b.node.start, b.node.end, b.i.mnemonic, dict(b.places)) for b in full.instructions
    ]
    assert [(r.name, r.type) for r in function.registers] == [(r.name, r.type) for r in full.registers]
    assert {name: label.index for name, label in function.labels.items()} == {n: x.index for n, x in full.labels.items()}
    assert function.body == full.body
    assert function.lazy is None


WRONG = [
    "add.s32 %r1, %r2, %r10;",  # no such register
    "add.s32 %r1, %r2, %f1;",
    "add.s32 %r1, %r2,, %r3;",
    "add.s32 %r1 %r2;",
    "add.s32 %r1, %r2, 99999999999999999999;",
    "add.s32 %r1, %r2, 08;",
    "@%r1 bra L; L:",
    "bra _; _:",  # no name (PTX 4.4)
    "%: $: bra %;",
    "bra IN; { IN: }",
    "L: bra L; L:",
    "{ bra L; } %r1: L:",
    "bra %r1; .reg .b32 L;",
    "ld.global.u32 %r1, [gv+99999999999999999999];",
    "ld.global.v2.u32 {%r1, gv}, [%rd1];",
    "ld.param.b32 %r1, [q]; .param .b32 q;",
    "st.param.b32 [n], %r1;",
    "{ .param .b32 a; ld.param.b32 %r1, [a]; }",
    "{ .param .b64 a; .param .b32 r; st.param.b64 [a], %rd1; call.uni (r), f, (a); }",
    "call.uni two, (%r1);",
    ".loc 1 4 5, function_name L0, inlined_at 1 2 3\n ret;",
    ".reg .b32 %r<4>; mov.u32 %r1, %r2;",
    "mov.u32 %r1, %tid.w0; mov.u32 %r1, %nothing;",
    "mov.u32 %r1, %r2 }",
    "mov.u32 %r1, %r2; } }",
    "mov.u32 %r1, 'a';",
    "shf.l.wrap.b32 %r1, %r2, %r3, 5; bfe.u32 %r1, %r2, 1, -1; bfi.b32 %r1, _, %r2, 0, 8;",
]


@pytest.mark.parametrize("body", WRONG)
def test_a_mistake_is_reported_as_by_a_full_reading(body, reports):
    assert reports(module(f"{RIGHT[0]} {RIGHT[2]} {body}"))


def test_a_blank_stands_before_the_colon_of_a_prototype() -> None:
    call = "{ .param .b32 r; q : .callprototype (.param .b32 _) _ (); call (r), %d, (), q; ld.param.b32 %x, [r]; }"
    text = f"{HEAD}.entry k() {{ .reg .b64 %d; .reg .b32 %x; {call} loop : bra loop; }}\n"
    program, report = analyse(Source(text))
    assert not report.diagnostics
    assert program.functions["k"].lazy is not None


def test_a_form_that_is_right_in_one_module_is_not_in_another_for_a_lower_target(reports):
    body = "fence.acq_rel.cluster; redux.sync.add.s32 %r1, %r2, -1;"
    assert not reports(module(body))
    assert reports(module(body).replace("sm_90", "sm_75"))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("bar.sync 0", "bar.sync 18"), ("pmevent 0", "pmevent 16"), ("bar.sync 0x0", "bar.sync 0x12"),
        ("bar.sync 0, 64", "bar.sync 0, 63"),
    ],
)  # fmt: skip
def test_a_line_with_a_constant_of_zero_says_nothing_of_others(right, wrong, reports):
    """Barriers and events are numbered 0 to 15 (PTX 9.7.13.1, 9.7.19.3); a common line has zeros for all constants."""
    (found,) = reports(module(f"    mov.u32 %r1, %tid.x;\n    {right};\n    {wrong};"))
    assert found.severity is Severity.ERROR


def test_the_values_of_constants_are_looked_at_where_a_rule_asks(reports):
    assert not reports(module("pmevent 1; pmevent 2; pmevent 15;"))
    assert reports(module("pmevent 1; pmevent 2; pmevent 16;"))


def test_a_launch_reads_only_what_it_runs(monkeypatch):
    second = "\n.visible .entry other() { .shared .b32 s[4]; .reg .b32 %r<3>; mov.u32 %r1, s; ret; }\n"
    loaded = ptxvm.load(module(RIGHT[0]).replace(".extern .func (.param .b32 r) f(.param .b32 a);", "") + second)
    kernels = loaded.kernels
    kernels["k"].launch(1, 1, [0, 0], engine="jit")
    assert kernels["k"].function.lazy is None
    assert kernels["other"].function.lazy is not None
    (variable,) = (v for v in kernels["other"].function.statics if v.space == "shared")
    assert variable in kernels["other"].function.variables
    assert kernels["other"].function.lazy is None


def test_an_error_of_syntax_outside_of_bodies_is_reported_with_those_inside(reports):
    assert len(reports(module("add.s32 %r1;") + ".global .u32 %;")) == 2
    assert reports(module("}") + module("add.s32 %r1, %r2"))


# ── known lines: text that is skipped is right, and what only looks like it is reported ─────────

LINES = """
add.s32 %r1, %r2, 5;
add.s32 %r1, %r2, 0x5;
mov.f32 %f1, 0f3F800000;
pmevent 1;
ld.global.u32 %r1, [%rd1+4];
ld.global.u32 %r1, [gv+4];
@%p1 bra $L1;
$L1:
{
.reg .b32 t;
.reg .b32 %temp;
add.s32 t, %r1, 5;
mov.u32 %temp, t;
}
{ .reg .b64 w; cvta.to.global.u64 w, %rd1; }
.loc 1 2 3
bra $L2;
$L2:
"""
"""The lines of a body that is right, so that they are known."""

LIKE = {
    "a register past the end of its family": "add.s32 %r10, %r2, 5;",
    "the same with the common number behind it": "add.s32 %r0, %r2, 5;\nadd.s32 %r99, %r2, 5;",
    "a register of another type": "add.s32 %r1, %f2, 5;",
    "a short constant of the common form": "mov.f32 %f1, 0f0;",
    "an integer that is too long": "add.s32 %r1, %r2, 0x55555555555555555;",
    "a constant that a rule refuses": "pmevent 16;",
    "a label that is nowhere": "@%p1 bra $L9;",
    "the common label, which is nowhere": "@%p1 bra $L;",
    "a label twice": "$L1:",
    "a label in a block of its own": "bra $L3;\n{\n$L3:\nret;\n}",
    "a name of a block outside of it": "add.s32 t, %r1, 5;",
    "a variable of a block as a register": "{\n.reg .b32 u;\n.reg .b32 %temp;\nadd.s32 t, %r1, 5;\nmov.u32 %temp, t;\n}",
    "a block that is not closed": "{\n.reg .b32 t;\n.reg .b32 %temp;\nadd.s32 t, %r1, 5;\nmov.u32 %temp, t;\n",
    "a register that a block hides": "{\n.reg .f32 %r1;\nadd.s32 %r1, %r2, 5;\n}",
    "a family that a block hides": "{\n.reg .b64 %r<100>;\nadd.s32 %r1, %r2, 5;\n}",
    "a label that a block hides": "{\n.reg .b32 $L1;\n@%p1 bra $L1;\n}",
    "a special register that a block hides": "mov.u32 %r1, %laneid;\n{\n.reg .pred %laneid;\nmov.u32 %r1, %laneid;\n}",
    "a name that is declared below": ".reg .f32 %q;\nadd.s32 %q, %r2, 5;",
    "the rest of a statement": "add.s32 %r1,\nadd.s32 %r1, %r2, 5;",
    "the begin of a comment": "/*\nadd.s32 %r1, %r2, 5;",
    "an element of a vector": "mov.u32 %r1.x, %r2;",
    "a longer name": "add.s32 %r1x, %r2, 5;",
}


@pytest.mark.parametrize("body", LIKE.values(), ids=LIKE)
def test_what_looks_like_a_known_line_is_reported_as_by_a_full_reading(body, reports):
    assert not reports(module(LINES))
    assert reports(module(LINES + body))


def test_a_name_means_in_each_module_what_it_declares(reports):
    assert not reports(module(LINES))
    assert reports(module(LINES).replace(".reg .b32 %r<10>", ".reg .f32 %r<10>"))
    assert reports(module(LINES).replace(".global .u32 gv[4]", ".global .texref gv"))
    assert reports(module(".reg .f32 %r1;" + LINES).replace("%r<10>", "%r1<2>"))
    few = module("add.s32 %r1, %r2, 5;\n" * 3)
    assert not reports(few)
    assert reports(few.replace("%r<10>", "%r<2>"))


def test_a_family_is_declared_by_each_body_with_its_own_count(reports):
    assert reports(module("{ .reg .b32 %x<7>; mov.u32 %x6, 1; } { .reg .b32 %x<6>; mov.u32 %x6, 1; }"))
    assert reports(module("{ .reg .b32 %x<7>; } { .reg .b32 %x<>; }"))
    assert reports(module("{ .reg .b32 %x<7>; } { .reg .b32 %x<0>; mov.u32 %x6, 1; }"))
    assert not reports(module("{ .reg .b32 %x<7>; } { .reg .b32 %x<9>; mov.u32 %x8, 1; }"))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (".reg .align 8 .b64 w;\nmov.b64 w, %rd1;", ".reg .align 3 .b64 w;\nmov.b64 w, %rd1;"),
        (
            ".param .b32 r;\n.param .b8 a[ 4 ];\nst.param.b32 [a+0], %r1;\ncall.uni (r), f, (a);",
            ".param .b32 r;\n.param .b8 a[ 8 ];\nst.param.b32 [a+0], %r1;\ncall.uni (r), f, (a);",
        ),
        (".reg .b32 t< 4 >;\nmov.b32 t3, %r1;", ".reg .b32 t< 3 >;\nmov.b32 t3, %r1;"),
    ],
)
def test_the_sizes_and_alignments_of_a_block_are_looked_at(right, wrong, reports):
    text = module(f"{{\n{right}\n}}\n" * 3).replace("f(.param .b32 a)", "f(.param .b8 a[4])")
    assert not reports(text)
    assert reports(text.replace("    ret;", f"{{\n{wrong}\n}}\n    ret;"))


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that are looked at one by one."""
    texts: list[str] = []

    class Statement:
        @staticmethod
        def match(text: str, at: int, end: int) -> re.Match[str] | None:
            found = usual.match(text, at, end)
            if found is not None:
                texts.append(found[0].strip())
            return found

    usual = body_check.STATEMENT
    monkeypatch.setattr(body_check, "STATEMENT", Statement)
    return texts


def test_lines_are_read_once(seen):
    analyse(Source(module(LINES)))
    seen.clear()
    twice = LINES + LINES.replace("%r1", "%r3").replace("%r2", "%r4").replace("5", "77").replace("$L", "$M")
    _, report = analyse(Source(module(twice)))
    assert not report.diagnostics
    instructions = [text for text in seen if text.endswith(";") and not text.startswith(".")]  # the first is that of `two`
    assert instructions[1:] == ["add.s32 %r1, %r2, 5;", "ld.global.u32 %r1, [gv+4];"]


NESTED = "{{\n{{ .reg .b32 t{0};\n{{\nmov.b32 t{0}, %r1;\nadd.s32 %r2, t{0}, {0};\n}}\n}}\n}}\n"


def test_blocks_in_one_another_are_read_once(seen, reports):
    text = module("".join(map(NESTED.format, range(20))))
    analyse(Source(text))
    assert sum(each.startswith("mov.b32 t") for each in seen) == 1
    assert not reports(text)
    assert reports(text.replace("mov.b32 t19", "mov.b32 t18"))
    assert reports(text.replace(".reg .b32 t19", ".reg .f32 t19"))
    assert reports(text.replace("    ret;", f"{NESTED.format(20)[:-2]}    ret;"))


# ── blocks that call: known in their function, where they stand again ───────────────────────────

CALL = """
{ // callseq 0, 0
.param .b32 a;
.param .b32 r;
st.param.b32 [a+0], %r1;
call.uni (r),
f,
(
a
);
ld.param.b32 %r2, [r+0];
} // callseq 0
"""
LIKE_A_CALL = {
    "an argument of another type": CALL.replace(".param .b32 a", ".param .b64 a"),
    "no argument": CALL.replace("\na\n", "\n"),
    "a function that is nowhere": CALL.replace("\nf,", "\ng,"),
    "a kernel": CALL.replace("\nf,", "\nk,"),
    "a result that no call gives a value": CALL.replace("(r)", "(_)"),
    "no call": CALL.partition("call.uni")[0] + "ld.param.b32 %r2, [r+0];\n}",
    "a variable of another block": CALL.replace(".param .b32 a;\n", ""),
    "a name with another meaning": f".reg .b32 f;\n{CALL}",
    "a register past the end of its family": CALL.replace("%r1", "%r10"),
    "a block that is not closed": CALL.replace("}", ""),
}


@pytest.mark.parametrize("body", LIKE_A_CALL.values(), ids=LIKE_A_CALL)
def test_what_looks_like_a_known_call_is_reported_as_by_a_full_reading(body, reports):
    assert not reports(module(2 * CALL))
    assert reports(module(2 * CALL + body))
    assert reports(module(2 * CALL + body + 2 * CALL))


def test_a_call_is_known_in_its_function_alone(reports):
    assert not reports(module(3 * CALL))
    assert reports(module(3 * CALL).replace("f(.param .b32 a)", "f(.param .b64 a)"))
    assert reports(module(3 * CALL + "{ .param .b32 r; ld.param.b32 %r2, [r+0]; }"))


@pytest.mark.parametrize("constant", ["5", "-5", "0x5", "5000000000", "0f3F800000", "0d3FF0000000000000"])
def test_the_constants_that_calls_pass_are_looked_at(constant, reports):
    """A full reading is the oracle: some of these it refuses."""
    first = "{\n.param .b32 r;\ncall (r), f, (7);\n}\n"
    assert not reports(module(2 * first))
    reports(module(2 * first + first.replace("7", constant)))


def test_calls_are_read_once(seen):
    program = read(module(2 * CALL + 8 * CALL.replace("%r1", "%r3").replace("callseq 0", "callseq 1")))
    assert sum(text.startswith("call") for text in seen) == 1
    assert sum(bound.calls for bound in program.functions["k"].instructions) == 10


def test_a_call_of_registers_is_read_once_in_its_function(seen, reports):
    function = ".func (.reg .b32 o) g(.reg .b32 a) { mov.b32 o, a; ret; }\n"
    call = "call.uni (%r1), g, (%r2);\n"
    text = module(call + 4 * call.replace("%r2", "%r3")).replace(".visible", function + ".visible")
    assert not reports(text)
    seen.clear()
    read(text)
    assert sum(each.startswith("call") for each in seen) == 2  # the first follows no instruction
    assert reports(text.replace("g, (%r3);\n\n    ret", "g, (%p3);\n    ret"))
    assert reports(text.replace("(.reg .b32 a)", "(.reg .f32 a, .reg .b32 b)"))


# ── lists of labels ─────────────────────────────────────────────────────────────────────────────

SWITCH = """
$T1: .branchtargets $L1, $L2;
brx.idx %r1, $T1;
$L1:
add.s32 %r1, %r2, 5;
$L2:
"""
LIKE_A_SWITCH = {
    "a label that is nowhere": "$T2: .branchtargets $L1, $L9;",
    "a list twice": "$T1: .branchtargets $L1;",
    "a list as a target": "$T2: .branchtargets $T1;",
    "a register as a target": "$T2: .branchtargets %r1;",
    "a list that is nowhere": "brx.idx %r1, $T9;",
    "a list that stands below": "brx.idx %r1, $T2;\n$T2: .branchtargets $L1;",
    "a list of another block": "{\n$T2: .branchtargets $L1;\n}\nbrx.idx %r1, $T2;",
    "a jump to a list": "@%p1 bra $T1;",
    "a jump to a list below": "@%p1 bra $T2;\n$T2: .branchtargets $L1;",
    "a label as a list": "brx.idx %r1, $L1;",
    "a label with the name of a list": "$T1:",
    "an index of another type": "brx.idx %rd1, $T1;",
    "a label of a block": "$T2: .branchtargets $L3;\n{\n$L3:\nret;\n}",
}


@pytest.mark.parametrize("body", LIKE_A_SWITCH.values(), ids=LIKE_A_SWITCH)
def test_what_looks_like_a_known_list_is_reported_as_by_a_full_reading(body, reports):
    again = SWITCH.replace("$L", "$M").replace("$T", "$U")
    assert not reports(module("@%p1 bra $L1;\n" + SWITCH + again))
    assert reports(module("@%p1 bra $L1;\n" + SWITCH + again + body))


def test_a_body_with_lists_of_labels_is_read_when_it_is_asked_for():
    program = read(module(SWITCH + "{\n$T1: .branchtargets $L1, M;\nbrx.idx %r1, $T1;\nM:\n}"))
    assert program.functions["k"].lazy is not None
    jumps = [bound for bound in program.functions["k"].instructions if bound.node.opcode == "brx"]
    lists = [bound.scope.find(bound.node.operands[1].text) for bound in jumps]
    assert [[label.name for label in each.targets] for each in lists] == [["$L1", "$L2"], ["$L1", "M"]]


# ── what is right for one target is right for others that give what it needs ────────────────────

TARGETS = [
    ("8.3", "sm_90"),
    ("8.3", "sm_70"),
    ("7.0", "sm_80"),
    ("6.0", "sm_70"),
    ("6.4", "sm_75"),
    ("3.2", "sm_30"),
    ("8.3", "sm_60"),
]
BY_TARGET = [
    "add.u32 %r1, %r2, %r3;",
    "activemask.b32 %r1;",  # PTX 6.2
    "redux.sync.add.s32 %r1, %r2, %r3;",  # sm_80
    "bar.warp.sync %r1;",  # PTX 6.0
    "shfl.up.b32 %r1, %r2, %r3, 0;",  # a rule: not from PTX 6.4 on for sm_70
    "mov.u32 %r1, %clock_hi;",  # a rule: PTX 5.0
    "mov.u32 %r1, %aggr_smem_size;",  # a rule: PTX 8.1
    "div.f32 %f1, %f2, %f3;",  # a rule: rounding is written since PTX 1.4
    "bfind.u32 %r1, 7; bfe.u32 %r1, %r2, 3, 4;",
    "lop3.b32 %r1, %r2, %r3, 1, 0x80;",  # sm_50
    "ld.global.nc.u32 %r1, [%rd1];",  # sm_32
    "{ .param .b32 a; st.param.b32 [a], %r1; call two, (); }",
    "mul.wide.u32 %rd1, %r1, 300;",
]


@pytest.mark.parametrize("reverse", [False, True])
def test_what_targets_share_is_right_for_each(reports, reverse):
    """The full reading shares nothing between targets; twice, as lines are known the second time."""
    rng = random.Random(7)
    found = set()
    for _ in range(2):
        for version, target in sorted(TARGETS, reverse=reverse):
            head = f".version {version}\n.target {target}\n.address_size 64\n"
            for body in rng.sample(BY_TARGET, len(BY_TARGET)):
                text = f"{head}.func two() {{ ret; }}\n{ONLY_REGISTERS}\n{body}\nmov.u32 %r1, %r2;\n{body}\nret;\n}}\n"
                wrong = any(each.severity is Severity.ERROR for each in reports(text))
                found.add((version, target, body, wrong))
    assert ("8.3", "sm_90", BY_TARGET[2], False) in found
    assert ("8.3", "sm_70", BY_TARGET[2], True) in found
    assert ("8.3", "sm_60", BY_TARGET[4], False) in found
    assert ("8.3", "sm_70", BY_TARGET[4], True) in found


def test_a_form_that_is_only_too_new_is_taken_where_it_is_not(reports):
    """Of two forms the first was wrong for its target alone: elsewhere it may be the one (`recognise.best`)."""
    known = recogniser((6, 0), Target(70), ()), recogniser((8, 3), Target(90), ())
    for each in known:
        wide = each.recognise("add", ("f16",), (REGISTER,) * 3, (None,) * 3)
        assert wide.needs is not None
        assert not wide.problems
    old = recogniser((2, 0), Target(20), ()).recognise("add", ("f16",), (REGISTER,) * 3, (None,) * 3)
    assert {p.code for p in old.problems} >= {"P0306", "P0307"}
