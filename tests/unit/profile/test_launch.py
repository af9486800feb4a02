"""Profiles of launches, against what follows from the text of the kernels and the addresses of their lanes."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ptxvm
from ptxvm.profile.metrics import COUNTED, DERIVED, METRICS
from ptxvm.reference.metrics_page import metrics_page

HEAD = ".version 8.1\n.target sm_90\n.address_size 64\n"
REGISTERS = ".reg .pred %p<4>; .reg .b32 %r<20>; .reg .f32 %f<20>; .reg .b64 %rd<20>; .reg .f64 %d<8>;\n"


@pytest.fixture(params=["interp", "jit"])
def profile_of(request):
    """The profile of a kernel with a body, by each engine."""

    def run(body, *, block=32, grid=1, args=(), parameters=".param .u64 out", shared="", engine=request.param, **options):
        kernel = ptxvm.load(f"{HEAD}.visible .entry k({parameters}) {{ {REGISTERS}{shared}\n{body}\nret;\n}}").kernel()
        result = kernel.launch(grid, block, args or [np.zeros(4096, np.uint32)], profile=True, engine=engine, **options)
        assert result.profile is not None
        assert engine in ("auto", result.profile.engine)
        return result.profile

    return run


def counts(measured, *names):
    return tuple(measured[name] for name in names)


OUT = "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;\n"


# ── instructions ────────────────────────────────────────────────────────────────────────


def test_each_warp_executes_an_instruction_once(profile_of):
    found = profile_of("mov.u32 %r1, 1;", block=(40, 2), grid=3)  # 80 threads: two warps and a half
    assert counts(found, "inst_executed", "thread_inst_executed") == (2 * 3 * 3, 2 * 80 * 3)
    assert counts(found, "threads_per_inst", "threads_true_per_inst") == (80 / 3, 80 / 3)


def test_lines_are_described_when_they_are_asked_for(profile_of, monkeypatch):
    """A launch of a kernel of thousands of lines does not wait for their texts."""
    described = []
    monkeypatch.setattr("ptxvm.profile.profile.line", lambda *of: described.append(of))
    found = profile_of("mov.u32 %r1, 1;\nmov.u32 %r2, 2;")
    assert (found["inst_executed"], described) == (3, [])
    assert len(found.lines) == len(described) == 3


def test_lanes_whose_guard_does_not_hold_are_active_and_off(profile_of):
    found = profile_of("mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 5;\n@%p1 mov.u32 %r2, 7;\n@!%p1 mov.u32 %r2, 8;")
    two = [line for line in found.lines if line.text.startswith("@")]
    assert [counts(line, "inst_executed", "thread_inst_executed", "thread_inst_executed_true") for line in two] == [
        (1, 32, 5), (1, 32, 27),
    ]  # fmt: skip
    assert found["thread_inst_executed_off"] == 32


def test_an_instruction_whose_guard_holds_for_no_lane_is_executed(profile_of):
    found = profile_of("setp.ne.u32 %p1, 0, 0;\n@%p1 mov.u32 %r2, 7;")
    (line,) = [line for line in found.lines if line.text.startswith("@")]
    assert counts(line, "inst_executed", "thread_inst_executed_true") == (1, 0)


def test_diverged_lanes_execute_both_sides_and_meet_again(profile_of):
    found = profile_of("""
        mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0;
        @%p1 bra EVEN;
        mov.u32 %r3, 1;
        bra JOIN;
    EVEN:
        mov.u32 %r3, 2;
    JOIN:
        mov.u32 %r4, %r3;""")  # fmt: skip
    by_text = {line.text: line for line in found.lines}
    assert counts(found, "branches", "divergent_branches", "branch_uniform_pct") == (2, 1, 50)
    for text, lanes in {"mov.u32 %r3, 1;": 16, "mov.u32 %r3, 2;": 16, "mov.u32 %r4, %r3;": 32}.items():
        assert counts(by_text[text], "inst_executed", "thread_inst_executed") == (1, lanes)


def test_lanes_leave_a_loop_one_after_the_other_and_meet_behind_it(profile_of):
    found = profile_of("""
        mov.u32 %r1, %tid.x; mov.u32 %r2, 0;
    LOOP:
        add.u32 %r2, %r2, 1;
        setp.le.u32 %p1, %r2, %r1;
        @%p1 bra LOOP;
        mov.u32 %r3, %r2;""", block=256)  # fmt: skip
    by_text = {line.text: line for line in found.lines}
    # Lane n of the block goes round n + 1 times; a warp as often as its last lane.
    rounds = sum(32 * warp + 32 for warp in range(8))
    assert counts(by_text["add.u32 %r2, %r2, 1;"], "inst_executed", "thread_inst_executed") == (rounds, 256 * 257 // 2)
    assert counts(by_text["@%p1 bra LOOP;"], "branches", "divergent_branches") == (rounds, 8 * 31)
    assert counts(by_text["mov.u32 %r3, %r2;"], "inst_executed", "thread_inst_executed") == (8, 256)


def test_a_lane_may_wait_for_another_of_its_warp(profile_of):
    found = profile_of(OUT + """
        setp.eq.u32 %p1, %r1, 0;
        @%p1 bra LAST;
    SPIN:
        ld.relaxed.gpu.global.u32 %r2, [%rd1];
        setp.eq.u32 %p2, %r2, 0;
        @%p2 bra SPIN;
        bra END;
    LAST:
        mov.u32 %r3, 1;
        st.relaxed.gpu.global.u32 [%rd1], %r3;
    END:""")  # fmt: skip
    assert found["global_store_requests"] == 1
    by_text = {line.text: line["thread_inst_executed"] for line in found.lines}
    assert found.waits == [13]
    assert found["divergent_branches"] >= 1
    # Each waiting lane leaves the loop once, whenever that is.
    spins = next(line for line in found.lines if line.text == "@%p2 bra SPIN;")
    assert spins["thread_inst_executed"] - spins["thread_inst_executed_true"] == by_text["bra END;"] == 31


def test_a_switch_diverges_where_lanes_go_to_several_labels(profile_of):
    found = profile_of("""
        mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 3;
        TABLE: .branchtargets A, B, C, C;
        brx.idx %r2, TABLE;
    A:  mov.u32 %r3, 1;
    B:  mov.u32 %r3, 2;
    C:  mov.u32 %r3, 3;""")  # fmt: skip
    assert counts(found, "branches", "divergent_branches") == (1, 1)
    uniform = profile_of("TABLE: .branchtargets A, B;\nmov.u32 %r2, 1;\nbrx.idx %r2, TABLE;\nA: mov.u32 %r3, 1;\nB:")
    assert counts(uniform, "branches", "divergent_branches") == (1, 0)


def test_kinds_are_the_families_of_the_instruction_set(profile_of):
    found = profile_of("add.u32 %r1, 1, 2; mul.lo.u32 %r2, %r1, %r1; add.f32 %f1, %f2, %f3; bar.sync 0;", block=64)
    assert {name: kind["inst_executed"] for name, kind in found.kinds.items()} == {
        "integer": 4, "float": 2, "barrier": 2, "control": 2,
    }  # fmt: skip
    assert found["barriers"] == 2


# ── memory ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("stride", [1, 2, 4, 8, 16, 32])
def test_stores_a_stride_apart(profile_of, stride):
    found = profile_of(f"{OUT} mul.wide.u32 %rd2, %r1, {4 * stride}; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r1;",
                       block=64)  # fmt: skip
    names = ("requests", "bytes", "sectors", "sectors_ideal", "lines")
    sectors = min(4 * stride, 32)
    assert counts(found, *(f"global_store_{name}" for name in names)) == (2, 256, 2 * sectors, 8, 2 * max(stride, 1))
    assert counts(found, "global_sectors", "global_sectors_excessive") == (2 * sectors, 2 * sectors - 8)
    assert found["global_coalesced_pct"] == 100 * 8 / (2 * sectors)


def test_arrays_count_as_if_they_began_at_a_sector_wherever_the_host_has_them(profile_of):
    room = np.zeros(4096 + 8, np.uint32)
    for first in range(0, 8, 4):  # 16 bytes apart: a host array is aligned as far
        found = profile_of(f"{OUT} st.global.u32 [%rd3], %r1;", args=[room[first : first + 4096]])
        assert found["global_store_sectors"] == 4


def test_an_access_of_a_warp_to_two_arrays_is_one_request(profile_of):
    found = profile_of("""
        ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [other]; mov.u32 %r1, %tid.x;
        setp.lt.u32 %p1, %r1, 16; selp.b64 %rd3, %rd1, %rd2, %p1;
        ld.global.u32 %r2, [%rd3];""", parameters=".param .u64 out, .param .u64 other",
        args=[np.zeros(8, np.uint32), np.zeros(8, np.uint32)])  # fmt: skip
    assert counts(found, "global_load_requests", "global_load_sectors") == (1, 2)


def test_a_generic_access_counts_for_the_space_of_its_address(profile_of):
    found = profile_of(f"{OUT} st.u32 [%rd3], %r1; mov.u64 %rd4, tile; cvta.shared.u64 %rd5, %rd4; st.u32 [%rd5], %r1;",
                       shared=".shared .b32 tile[32];")  # fmt: skip
    assert counts(found, "global_store_requests", "shared_store_requests", "shared_store_wavefronts") == (1, 1, 1)


TRANSPOSE = """
    mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, tile;
    mad.lo.u32 %r4, %r2, PITCH, %r3; mad.lo.u32 %r5, %r1, 4, %r4;
    st.shared.u32 [%r5], %r1;
    bar.sync 0;
    mad.lo.u32 %r6, %r1, PITCH, %r3; mad.lo.u32 %r7, %r2, 4, %r6;
    ld.shared.u32 %r8, [%r7];"""


@pytest.mark.parametrize(("pitch", "wavefronts"), [(128, 32), (132, 1), (136, 2), (144, 4)])
def test_a_transpose_through_shared_memory_conflicts_without_padding(profile_of, pitch, wavefronts):
    found = profile_of(TRANSPOSE.replace("PITCH", str(pitch)), block=(32, 32), shared=".shared .align 16 .b8 tile[4608];")
    assert counts(found, "shared_store_wavefronts", "shared_load_wavefronts") == (32, 32 * wavefronts)
    assert counts(found, "shared_wavefronts_ideal", "shared_bank_conflicts") == (64, 32 * (wavefronts - 1))


def test_vectors_of_shared_memory_take_a_pass_for_each_quarter_of_a_warp(profile_of):
    found = profile_of("mov.u32 %r1, %tid.x; mov.u32 %r2, tile; mad.lo.u32 %r3, %r1, 16, %r2; "
                       "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3];", shared=".shared .align 16 .b8 tile[512];")  # fmt: skip
    assert counts(found, "shared_load_bytes", "shared_load_wavefronts", "shared_bank_conflicts") == (512, 4, 0)


@pytest.mark.parametrize("rivals", [1, 4, 32])
def test_atomics_count_by_address(profile_of, rivals):
    shift = rivals.bit_length() - 1
    found = profile_of(f"{OUT} shr.u32 %r2, %r1, {shift}; mul.wide.u32 %rd2, %r2, 4; add.u64 %rd3, %rd1, %rd2;"
                       "red.global.add.u32 [%rd3], 1;", block=64)  # fmt: skip
    names = ("atomic_operations", "atomic_addresses", "atomic_steps", "atomic_contention")
    assert counts(found, *names) == (64, 64 // rivals, 2 * rivals, rivals)
    assert counts(found, "global_atomic_requests", "global_atomic_sectors") == (2, 2 * max(4 // rivals, 1))


def test_a_vector_atomic_is_one_access(profile_of):
    found = profile_of(OUT.replace("4;", "16;") + "red.global.add.v4.f32 [%rd3], {%f1, %f1, %f1, %f1};", block=64)
    assert counts(found, "global_atomic_requests", "global_atomic_bytes", "global_atomic_sectors") == (2, 1024, 32)
    assert counts(found, "atomic_operations", "atomic_addresses", "atomic_steps") == (64, 64, 2)


def test_an_asynchronous_copy_is_a_load_and_a_store(profile_of):
    found = profile_of(OUT + "mov.u32 %r2, tile; mad.lo.u32 %r3, %r1, 16, %r2; mul.wide.u32 %rd2, %r1, 16; "
                       "add.u64 %rd3, %rd1, %rd2; cp.async.ca.shared.global [%r3], [%rd3], 16; cp.async.wait_all;",
                       shared=".shared .align 16 .b8 tile[512];")  # fmt: skip
    assert counts(found, "global_load_requests", "global_load_sectors", "shared_store_wavefronts") == (1, 16, 4)


def test_other_spaces_count_requests_and_bytes(profile_of):
    found = profile_of("ld.param.u64 %rd1, [out]; st.local.u32 [room], 1; ld.local.u32 %r1, [room];",
                       shared=".local .b32 room;")  # fmt: skip
    assert counts(found, "param_load_bytes", "local_store_bytes", "local_load_requests", "local_bytes") == (256, 128, 1, 256)


# ── arithmetic ──────────────────────────────────────────────────────────────────────────


def test_a_fused_multiply_add_is_two_operations_and_packed_ones_count_each(profile_of):
    found = profile_of("""
        fma.rn.f32 %f1, %f2, %f3, %f4; add.f32 %f1, %f1, %f1; add.f64 %d1, %d2, %d3; fma.rn.f16x2 %r1, %r2, %r3, %r4;
        div.full.f32 %f1, %f2, %f3; ex2.approx.f32 %f1, %f2; cvt.f64.f32 %d1, %f1; max.f32 %f1, %f2, %f3;""")  # fmt: skip
    assert counts(found, "fp16_operations", "fp32_operations", "fp64_operations", "flop") == (128, 96, 32, 256)


def test_a_matrix_product_is_counted_by_its_shape(profile_of):
    found = profile_of("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                       "{%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};", block=64)  # fmt: skip
    assert found["tensor_operations"] == 2 * 2 * 16 * 8 * 16


def test_arithmetic_intensity_is_by_the_bytes_asked_for(profile_of):
    found = profile_of(f"{OUT} ld.global.f32 %f1, [%rd3]; fma.rn.f32 %f1, %f1, %f1, %f1; st.global.f32 [%rd3], %f1;")
    assert found["arithmetic_intensity"] == 2 / 8
    assert profile_of("mov.u32 %r1, 1;")["arithmetic_intensity"] is None


# ── the table, and what a profile refuses ───────────────────────────────────────────────


def test_every_formula_is_over_metrics_that_stand_before_it():
    known = set(COUNTED)
    for metric in DERIVED.values():
        assert metric.formula is not None
        assert {*metric.formula.over, *metric.formula.under, *metric.formula.minus} <= known, metric.name
        known.add(metric.name)


def test_a_formula_reads_as_it_is_computed():
    assert str(DERIVED["threads_per_inst"].formula) == "thread_inst_executed / inst_executed"
    assert str(DERIVED["branch_uniform_pct"].formula) == "100 * (branches - divergent_branches) / branches"
    assert str(DERIVED["arithmetic_intensity"].formula) == "(flop + tensor_operations) / global_bytes"


def test_names_are_known_and_nothing_else(profile_of):
    found = profile_of("mov.u32 %r1, 1;")
    assert list(found.metrics) == list(METRICS)
    with pytest.raises(KeyError):
        found["time"]


def test_a_profile_is_asked_for_by_true():
    with pytest.raises(TypeError, match="profile is True or False"):
        ptxvm.load(f"{HEAD}.visible .entry k() {{ ret; }}").kernel().launch(profile=1)  # type: ignore[arg-type]


# ── beside checks ───────────────────────────────────────────────────────────────────────

ADDS = f"{OUT} red.global.add.u32 [%rd1], 1; ld.global.u32 %r2, [%rd3+4]; add.u32 %r2, %r2, 3; st.global.u32 [%rd3+512], %r2;"


@pytest.mark.parametrize("engine", ["auto", "interp", "jit"])
@pytest.mark.parametrize(
    "options", [{"check": ("race", "memory", "init")}, {"schedules": 3}, {"check": ("sync",), "schedules": 2}]
)
def test_a_checked_launch_is_counted_from_the_same_memory(engine, options):
    """The kernel adds to what is there: run twice from one another's memory it would leave twice as much."""
    kernel = ptxvm.load(f"{HEAD}.visible .entry k(.param .u64 out) {{ {REGISTERS}\n{ADDS}\nret;\n}}").kernel()
    alone, both = (np.arange(400, dtype=np.uint32) for _ in range(2))
    expected = kernel.launch(2, 32, [alone], profile=True, engine=engine).profile
    done = kernel.launch(2, 32, [both], profile=True, engine=engine, **options)
    assert done.profile.metrics == expected.metrics
    assert [line.counts for line in done.profile.lines] == [line.counts for line in expected.lines]
    assert np.array_equal(both, alone)
    assert both[0] == 64


def test_what_checks_find_stands_beside_the_profile(capfd):
    body = f"{OUT} mov.u32 %r2, 7; st.global.u32 [%rd1], %r1;"
    kernel = ptxvm.load(f"{HEAD}.visible .entry k(.param .u64 out) {{ {REGISTERS}\n{body}\nret;\n}}").kernel()
    done = kernel.launch(2, 32, [np.zeros(4, np.uint32)], profile=True, check="race")
    assert [each.kind for each in done.findings] == ["race"]
    assert done.profile["global_store_requests"] == 2


def test_a_launch_that_faults_has_findings_and_no_profile():
    kernel = ptxvm.load(f"{HEAD}.visible .entry k(.param .u64 out) {{ {REGISTERS}\n{ADDS}\nret;\n}}").kernel()
    short = np.zeros(32, np.uint32)
    done = kernel.launch(1, 32, [short], profile=True, check="memory")
    assert done.findings
    assert done.profile is None
    assert short[0] == 32  # of the watched run


def test_what_a_checked_kernel_prints_is_printed_once(capfd):
    text = (
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
        ".global .align 1 .b8 text[4] = {104, 105, 10, 0};\n"
        f".visible .entry k() {{ {REGISTERS}\n{{ .param .b64 f; .param .b64 a; .param .b32 r;\n"
        "mov.u64 %rd1, text; cvta.global.u64 %rd1, %rd1; st.param.b64 [f], %rd1; st.param.b64 [a], 0;\n"
        "call.uni (r), vprintf, (f, a); }\nret;\n}"
    )
    done = ptxvm.load(HEAD + text).kernel().launch(profile=True, check="memory")
    assert done.output == "hi\n"
    assert done.profile is not None
    assert capfd.readouterr().out in ("", "hi\n")


def test_a_loop_that_never_ends_ends_in_the_counted_run_too():
    kernel = ptxvm.load(f"{HEAD}.visible .entry k() {{\nL:\nbra L;\n}}").kernel()
    done = kernel.launch(profile=True, schedules=2, steps=1000)
    assert [each.kind for each in done.findings] == ["step-budget"]
    assert done.profile is None


def test_a_launch_without_a_profile_has_none():
    assert ptxvm.load(f"{HEAD}.visible .entry k() {{ ret; }}").kernel().launch().profile is None


def test_the_reference_has_a_row_for_each_metric():
    page = metrics_page()["reference/metrics.md"]
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == list(METRICS)
