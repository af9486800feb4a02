"""Lints: each with kernels that have it and kernels that do not; the numbers of sectors and banks are counted by hand."""

from __future__ import annotations

import pytest

from ptxvm.analysis.check import analyse
from ptxvm.analysis.lints import conflicts, lint
from ptxvm.diagnostics import Severity
from ptxvm.syntax.source import Source

MODULE = """\
.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n) {directives}
{{
    .reg .b32 %r<32>;
    .reg .b64 %rd<16>;
    .reg .f32 %f<8>;
    .reg .pred %p<8>;
    .shared .align 16 .b8 tile[8192];
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd2, %rd1;
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mad.lo.s32 %r5, %r3, %r4, %r2;
    mov.u32 %r6, tile;
    st.global.u32 [%rd2], %r5;
    st.global.u32 [%rd2], %r6;
    st.global.u32 [%rd2], %r1;
    {body}
    ret;
}}
"""


def found(body, directives=""):
    """The codes and messages of the lints of a kernel."""
    program, report = analyse(Source(MODULE.format(body=body, directives=directives)))
    assert report.diagnostics == []
    return [(each.code, each.message) for each in lint(program)]


def codes(body, directives=""):
    return [code for code, _ in found(body, directives)]


def test_a_kernel_without_faults_has_no_lint():
    assert codes("bar.sync 0;") == []


# ── P0701, P0702 ────────────────────────────────────────────────────────────────────────


def test_code_behind_a_jump_is_dead():
    assert codes("bra END; add.s32 %r5, %r5, 1; st.global.u32 [%rd2], %r5; END:") == ["P0701"]


@pytest.mark.parametrize(
    "body",
    [
        "@%p1 bra END; st.global.u32 [%rd2], %r5; END: setp.eq.u32 %p1, %r1, 0;",
        "bra END; END:",
        "bra END; trap; END:",
        "ret; ret;",
    ],
)
def test_code_that_a_path_comes_to_is_not_dead(body):
    """A `ret` or `trap` that nothing comes to is what compilers leave behind; it is not reported."""
    assert "P0701" not in codes(body)


def test_a_register_that_no_instruction_reads():
    assert found("add.s32 %r9, %r5, 1;") == [("P0702", "'%r9' is written and never read")]


@pytest.mark.parametrize(
    "body",
    [
        "add.s32 %r9, %r5, 1; st.global.u32 [%rd2], %r9;",
        "setp.eq.u32 %p1, %r1, 0; @%p1 bra END; END:",
        "atom.global.add.u32 %r9, [%rd2], 1;",
        "ld.global.u32 %r9, [%rd2];",
        "mov.b64 {%r9, %r10}, %rd1; st.global.u32 [%rd2], %r9;",
        "@%p1 mov.u32 %r9, 1; st.global.u32 [%rd2], %r9; setp.eq.u32 %p1, %r1, 0;",
    ],
)
def test_registers_that_are_read_or_belong_to_an_effect(body):
    """An access may be meant although its value is not used: it can fault, and it can order others."""
    assert "P0702" not in codes(body)


# ── P0703 ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "body",
    [
        "setp.lt.u32 %p1, %r2, 16; @!%p1 bra END; bar.sync 0; END:",
        "setp.ge.u32 %p1, %r5, %r1; @%p1 bra END; st.global.u32 [%rd2], %r5; bar.sync 0; END:",
        "and.b32 %r9, %r2, 1; setp.eq.u32 %p1, %r9, 0; @%p1 bra END; barrier.sync 0; END:",
        "setp.ge.u32 %p1, %r5, %r1; @%p1 ret; bar.sync 0;",
        "setp.eq.u32 %p1, %r2, 0; @%p1 bra THEN; bra END; THEN: setp.eq.u32 %p2, %r1, 0; @%p2 bra END; bar.sync 0; END:",
        "mov.u32 %r9, 0; LOOP: bar.sync 0; add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, %r2; @%p1 bra LOOP;",
        "setp.lt.u32 %p1, %r2, 9; mov.u32 %r9, 0; @%p1 mov.u32 %r9, 1; setp.eq.u32 %p2, %r9, 1; @%p2 bra END; bar.sync 0; END:",
    ],
)
def test_a_barrier_that_only_some_threads_reach(body):
    assert "P0703" in codes(body)


@pytest.mark.parametrize(
    "body",
    [
        "setp.lt.u32 %p1, %r3, 16; @!%p1 bra END; bar.sync 0; END:",
        "setp.ge.u32 %p1, %r1, 5; @%p1 bra END; bar.sync 0; END:",
        "setp.lt.u32 %p1, %r2, 16; @!%p1 bra END; st.global.u32 [%rd2], %r5; END: bar.sync 0;",
        "setp.lt.u32 %p1, %r2, 32; @!%p1 bra END; bar.sync 1, 32; END:",
        "mov.u32 %r9, 0; LOOP: bar.sync 0; add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, %r1; @%p1 bra LOOP;",
        "ld.global.u32 %r9, [%rd2]; setp.eq.u32 %p1, %r9, 0; @%p1 bra END; bar.sync 0; END:",
        "setp.lt.u32 %p1, %r2, 16; @!%p1 bra END; bar.warp.sync -1; END:",
    ],
)
def test_a_barrier_that_all_threads_reach_or_that_is_for_some(body):
    assert "P0703" not in codes(body)


# ── P0704, P0705 ────────────────────────────────────────────────────────────────────────


def at(stride, access, operand="%f1"):
    """An access whose address grows by a stride from thread to thread."""
    return f"mul.wide.u32 %rd3, %r5, {stride}; add.s64 %rd4, %rd2, %rd3; {access} {operand}, [%rd4];"


@pytest.mark.parametrize(
    ("body", "sectors"),
    [
        (at(128, "ld.global.f32"), "128 bytes apart: 32 sectors where 4 would do"),
        (at(8, "ld.global.f32"), "8 bytes apart: 8 sectors where 4 would do"),
        (at(64, "ld.global.v4.f32", "{%f1, %f2, %f3, %f4}"), "64 bytes apart: 32 sectors where 16 would do"),
        ("shl.b32 %r9, %r2, 6; cvt.u64.u32 %rd3, %r9; add.s64 %rd4, %rd2, %rd3; ld.global.u8 %r10, [%rd4];", "64 bytes apart"),
    ],
)
def test_wide_strides_in_global_memory(body, sectors):
    """A warp of 32 threads, sectors of 32 bytes: 4-byte values 128 bytes apart are in 32 sectors, and 4 would hold them."""
    assert sectors in dict(found(body))["P0704"]


@pytest.mark.parametrize(
    "body",
    [
        at(4, "ld.global.f32"),
        at(16, "ld.global.v4.f32", "{%f1, %f2, %f3, %f4}"),
        at(0, "ld.global.f32"),
        at(1, "ld.global.u8", "%r10") + "ld.global.u8 %r11, [%rd4+3];",
        at(8, "ld.global.f32") + "ld.global.f32 %f2, [%rd4+4];",
        "mul.wide.u32 %rd3, %r3, 128; add.s64 %rd4, %rd2, %rd3; ld.global.f32 %f1, [%rd4];",
        "mul.lo.u32 %r9, %r2, %r1; cvt.u64.u32 %rd3, %r9; add.s64 %rd4, %rd2, %rd3; ld.global.f32 %f1, [%rd4];",
    ],
)
def test_narrow_or_unknown_strides_are_not_reported(body):
    assert "P0704" not in codes(body)


def shared(stride, access, operand="%f1"):
    return f"mad.lo.u32 %r9, %r2, {stride}, %r6; {access} {operand}, [%r9];"


def test_conflicts_of_banks():
    """32 banks of 4 bytes: 128 bytes apart all lanes meet in one, 8 bytes apart two lanes in each."""
    assert "32 words of each" in dict(found(shared(128, "ld.shared.f32")))["P0705"]
    assert "2 words of each" in dict(found(shared(8, "ld.shared.f32")))["P0705"]


@pytest.mark.parametrize(
    "body",
    [
        shared(4, "ld.shared.f32"),
        shared(132, "ld.shared.f32"),
        shared(0, "ld.shared.f32"),
        shared(16, "ld.shared.v4.f32", "{%f1, %f2, %f3, %f4}"),
        shared(1, "ld.shared.u8", "%r10"),
    ],
)
def test_padded_rows_and_neighbours_have_no_conflict(body):
    assert "P0705" not in codes(body)


@pytest.mark.parametrize(
    ("stride", "size", "ways"), [(4, 4, 1), (8, 4, 2), (128, 4, 32), (8, 8, 1), (16, 8, 2), (16, 16, 1), (2, 2, 1)]
)
def test_the_words_of_a_bank(stride, size, ways):
    """Accesses of 8 bytes are served in halves of a warp, those of 16 in quarters (CUDA programming guide)."""
    assert conflicts(stride, size) == ways


# ── P0706, severity ─────────────────────────────────────────────────────────────────────


def test_deprecated_directives():
    text = ".version 2.0\n.target sm_20\n.entry k() .maxntid 32 .maxnctapersm 2 { ret; }\n"
    program, report = analyse(Source(text))
    assert not report.has_errors
    (one,) = lint(program)
    assert (one.code, one.help, one.severity) == ("P0706", "write `.minnctapersm`", Severity.NOTE)


OLD = ".version 6.0\n.target sm_60\n.entry k() {{ .reg .b32 %r<4>; mov.u32 %r1, 1; {body} st.global.u32 [%r1], %r2; ret; }}\n"


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ("shfl.up.b32 %r2, %r1, 1, 0;", ["P0706"]),
        ("shfl.sync.up.b32 %r2, %r1, 1, 0, -1;", []),
        ("vote.ballot.b32 %r2, 1;", ["P0706"]),
        ("add.u32 %r2, %r1, 1;", []),
    ],
)
def test_forms_that_later_versions_refuse(body, codes):
    """`shfl` and `vote` without `.sync` are gone from PTX 6.4 on for sm_70 and later (PTX 9.7.9.5, 9.7.13.9)."""
    program, report = analyse(Source(OLD.format(body=body)))
    assert not report.has_errors
    assert [each.code for each in lint(program)] == codes


def test_a_function_has_lints_too():
    text = ".version 7.0\n.target sm_70\n.func f() { .reg .b32 a; mov.u32 a, 1; ret; }\n.func g();\n.func g() { ret; }\n"
    assert [each.code for each in lint(analyse(Source(text))[0])] == ["P0702"]
