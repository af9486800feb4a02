"""`ptxvm profile`: the numbers follow from the kernel, whose lanes conflict in shared memory as told."""

from __future__ import annotations

import json

import pytest

from ptxvm.cli.profile import number
from ptxvm.profile.metrics import METRICS

# Each of 64 threads writes a word of a column of shared memory, reads it back, and stores it: two warps.
COLUMN = """.version 8.0
.target sm_80
.address_size 64
.file 1 "k.cu"
.visible .entry column(.param .u64 column_param_0)
{
    .reg .pred %p;
    .reg .b32 %r<6>;
    .reg .b64 %rd<4>;
    .shared .b8 tile[8192];
    ld.param.u64 %rd1, [column_param_0];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, tile;
    mad.lo.u32 %r3, %r1, 128, %r2;
    st.shared.u32 [%r3], %r1;
    setp.lt.u32 %p, %r1, 16;
    @%p bra $L;
    bar.warp.sync -1;
$L:
    .loc 1 12 3
    ld.shared.u32 %r4, [%r3];
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r4;
    ret;
}
"""
LAUNCH = ["--grid", "1", "--block", "64", "u32[64]"]


@pytest.fixture
def column(module):
    return module(COLUMN.replace("    bar.warp.sync -1;\n", "    mov.u32 %r5, 0;\n"), "column.ptx")


def test_it_prints_what_the_kernel_did(ptxvm, column):
    done = ptxvm("profile", column, *LAUNCH, "--lines", "4")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "column  grid 1,1,1  block 64,1,1\n"
        "\n"
        "executed     26 instructions of warps, 31.4 of 32 lanes active, 29.5 with a true\n"
        "             guard\n"
        "kinds        memory 31%, move 23%, integer 23%, control 15%, compare 8%\n"
        "branches     2, 1 of them divergent\n"
        "global       256 bytes in 8 sectors, ideal 8 (100.0 %); 4 a request\n"
        "shared       512 bytes in 128 wavefronts, ideal 4; 124 by bank conflicts\n"
        "occupancy    at most 56% of the warps of A100: CTAs 32 by their number, 32 by\n"
        "             warps, 18 by shared memory; registers are not known from PTX\n"
        "engine       jit\n"
        "\n"
        "line  warps  lanes  sectors  wavefronts\n"
        "  15      2   32.0             64 ×32.0  st.shared.u32 [%r3], %r1;\n"
        "  21      2   32.0             64 ×32.0  ld.shared.u32 %r4, [%r3];  // k.cu:12\n"
        "  24      2   32.0   8 ×1.0              st.global.u32 [%rd3], %r4;  // k.cu:12\n"
        "  11      2   32.0                       ld.param.u64 %rd1, [column_param_0];\n"
        "\n"
        "warps: how often one executed it; lanes: with a true guard; × of the ideal\n"
    )


def test_one_sector_is_no_sectors(ptxvm, module):
    """16 lanes that store to one word touch one sector of 32 bytes."""
    name = module(COLUMN.replace("mul.wide.u32 %rd2, %r1, 4", "mul.wide.u32 %rd2, %r1, 0"), "word.ptx")
    out = ptxvm("profile", name, "--grid", "1", "--block", "16", "u32[16]").out
    assert "global       64 bytes in 1 sector, ideal 1 (" in out


def test_lines_are_sorted_by_a_metric(ptxvm, column):
    done = ptxvm("profile", column, *LAUNCH, "--lines", "1", "--sort", "divergent_branches")
    assert "@%p bra $L;" in done.out
    assert "st.shared" not in done.out


def test_json_has_every_metric_and_those_of_each_line(ptxvm, column):
    report = json.loads(ptxvm("profile", column, *LAUNCH, "--json").out)
    assert report["outcome"] == "done"
    assert list(report["profile"]["metrics"]) == list(METRICS)
    lines = {line["line"]: line for line in report["profile"]["lines"]}
    assert lines[21]["source"] == "k.cu:12"
    assert lines[21]["metrics"]["shared_load_wavefronts"] == 64
    assert sum(line["metrics"]["inst_executed"] for line in lines.values()) == report["profile"]["metrics"]["inst_executed"]
    assert "profile" not in json.loads(ptxvm("run", column, *LAUNCH, "--format", "json").out)


def test_the_card_decides_the_occupancy(ptxvm, column):
    done = ptxvm("profile", column, *LAUNCH, "--device", "sm_90")
    # 228 KiB, of which each CTA takes 8 KiB and 1 KiB that the system has: 25 CTAs of two warps, of 64 warps.
    assert (
        "at most 78% of the warps of H100: CTAs 32 by their number, 32 by\n             warps, 25 by shared memory" in done.out
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--sort", "inst_execute"], "--sort inst_execute: no such metric; did you mean `inst_executed`?"),
        (["--device", "sm_1"], "--device is one of sm_75, sm_80, sm_86, sm_89, sm_90, sm_100, sm_120, not sm_1"),
    ],
)
def test_wrong_calls(ptxvm, column, words, said):
    done = ptxvm("profile", column, *LAUNCH, *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.lower() == f"ptxvm profile: {said}\n".lower()


def test_numbers_are_short():
    assert [number(each) for each in (None, 12345, 12345.678, 0.123)] == ["-", "12,345", "12345.7", "0.12"]


def test_a_page_is_written_beside_what_is_printed(ptxvm, column, tmp_path):
    usual = ptxvm("profile", column, *LAUNCH)
    done = ptxvm("profile", column, *LAUNCH, "--html", "page.html", "--device", "sm_90")
    assert (done.code, done.err) == (0, "")
    assert done.out.replace("H100", "A100").splitlines()[:6] == usual.out.splitlines()[:6]
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<title>column - ptxvm profile</title>" in page
    assert "A multiprocessor of H100" in page
    assert json.loads(ptxvm("profile", column, *LAUNCH, "--json", "--html", "other.html").out)["outcome"] == "done"
    assert (tmp_path / "other.html").exists()


def test_a_page_that_cannot_be_written(ptxvm, column):
    done = ptxvm("profile", column, *LAUNCH, "--html", "nowhere/page.html")
    assert (done.code, done.out) == (2, "")
    assert "cannot write 'nowhere/page.html': No such file or directory" in done.err


def test_a_page_keeps_to_the_limits_of_the_launch(ptxvm, module):
    """Its sample ends with the time of the launch, which is a fault then; no page is written."""
    name = module(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry forever() { L: bra L; }\n", "forever.ptx")
    done = ptxvm("profile", name, "--grid", "1", "--block", "32", "--timeout", "0.2", "--html", "page.html")
    assert done.code == 1
    assert "timeout" in done.err


def test_a_line_names_its_source_without_the_folder(ptxvm, module):
    path = module(COLUMN.replace('"k.cu"', '"/a/folder/that/takes/all/the/room/there/is/k.cu"'), "far.ptx")
    assert "ld.shared.u32 %r4, [%r3];  // k.cu:12\n" in ptxvm("profile", path, *LAUNCH).out


def test_checks_stand_beside_the_profile(ptxvm, column):
    alone = json.loads(ptxvm("profile", column, *LAUNCH, "--json").out)
    done = ptxvm("profile", column, *LAUNCH, "--check", "all", "--json")
    assert json.loads(done.out)["profile"]["metrics"] == alone["profile"]["metrics"]


def test_a_kernel_that_faults_without_checks_has_findings_and_no_profile(ptxvm, column):
    done = ptxvm("profile", column, "--grid", "1", "--block", "64", "u32[32]", "--check", "memory")
    assert done.code == 1
    assert "There is no profile: without checks the kernel comes to a fault." in done.out
    assert "error[out-of-bounds]" in done.out + done.err
