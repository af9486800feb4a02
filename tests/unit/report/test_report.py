"""Reports of launches: the page says what the profile and the addresses of the lanes are."""

from __future__ import annotations

import json
import re
from html import unescape

import numpy as np
import pytest

import ptxvm
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.report.sample import FIRST, LATER, WARPS, sample


def text_of(html, start, end):
    """The texts of a part of a page."""
    part = html[html.index(start) : html.index(end, html.index(start))]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", part)).split())


def test_the_counters_stand_beside_their_ideal(html):
    said = text_of(html, '<section id="counters"', "</section>")
    # 4 warps; each stores and loads a column of 32 words of one bank.
    assert "Counted by ptxvm on a CPU, by compiled code." in text_of(html, "<header", "</header>")
    assert "Wavefronts of shared memory 256 wavefront ideal 8" in said
    assert "248 wavefronts are bank conflicts" in said
    assert "Sectors of global memory 16 sector ideal 16 Each sector of 32 bytes that a warp touches is wanted whole." in said
    assert "After 4 of 4 branches" in said


def test_each_executed_line_has_its_metrics(html):
    lines = json.loads(re.search(r'<script type="application/json" id="lines">(.*?)</script>', html)[1])
    (store,) = [line for line in lines.values() if line["text"] == "st.shared.u32 [%r3], %r1;"]
    assert store["place"] == "column.ptx:18"
    assert store["metrics"]["shared_bank_conflicts"] == 124
    (source,) = [lines[key] for key in store["of"]]
    assert source["place"] == "column.cu:3"
    assert source["metrics"]["shared_bank_conflicts"] == 248  # with the load, which is of the same line


def test_what_others_wrote_is_escaped(html):
    assert "</script><script>" not in html
    assert "&lt;/script&gt;&lt;script&gt;document.title" in html
    assert html.count("</script>") == 2


def test_the_lanes_of_a_warp_part_and_meet(html):
    figure = text_of(html, '<figure class="lanes" data-warp="0">', "</figure>")
    assert "line 23: @%p bra EVEN; (lanes 0-31, guard off in 1, 3, 5" in figure
    assert "line 24: add.u32 %r4, %r4, 1; (lanes 1, 3, 5" in figure
    assert "line 26: cvt.rn.f32.u32 %f1, %r4; (lanes 0-31)" in figure
    assert "all 16 instructions, 1 of them with fewer lanes than the first" in figure


def test_ctas_are_on_threads_of_the_host(html):
    said = text_of(html, '<section id="ctas"', "</section>")
    assert re.search(r"CTAs? \S+ on thread 0: from 0 µs to", said)


def test_the_roofline_has_the_published_figures_of_the_card(column, reported):
    # One addition for each store of four bytes: L4 moves 0.3 TB/s, H100 3.35 TB/s.
    usual, other = (
        text_of(reported(column, device).html, '<section id="roofline"', "</section>") for device in ("sm_89", "sm_90")
    )
    assert "0.25 operations for each byte" in usual
    assert "device memory allows 75 Gop a second at most" in usual
    assert "device memory allows 838 Gop a second at most" in other
    assert "No time of a GPU is claimed" in other


def test_a_source_that_is_no_source_is_not_shown(column, reported):
    secret = column.parent / "secret"
    secret.write_text("a\nb\nPASSWORD\nd\ne\nf\ng\n")
    column.write_text(column.read_text().replace('"column.cu"', f'"{secret}"'))
    html = reported(column).html
    assert "PASSWORD" not in html
    assert "secret:3" in html


def test_a_launch_without_arithmetic_has_no_roofline(column, reported):
    column.write_text(column.read_text().replace("add.f32 %f2, %f1, %f1", "mov.f32 %f2, %f1"))
    assert 'id="roofline"' not in reported(column).html


def test_a_report_in_a_notebook_is_a_frame(report):
    frame = report._repr_html_()
    assert unescape(re.search('srcdoc="([^"]*)"', frame)[1]) == report.html
    assert report.result.profile["shared_bank_conflicts"] == 248


def test_a_report_is_written_to_a_file(report, tmp_path):
    report.write(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == report.html


def test_an_unknown_card_is_refused(column, reported):
    with pytest.raises(ValueError, match="sm_1"):
        reported(column, "sm_1")


# ── samples ─────────────────────────────────────────────────────────────────────────────

# Each thread adds to its word `rounds` times; the module counts launches, and the kernel prints.
COUNT = """.version 8.0
.target sm_80
.address_size 64
.global .u32 launches;
.visible .entry count(.param .u64 out, .param .u32 rounds)
{
    .reg .pred %p;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [rounds];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r4, %r2, %r3, %r4;
    mul.wide.u32 %rd2, %r4, 4;
    add.u64 %rd3, %rd1, %rd2;
    atom.global.add.u32 %r6, [launches], 1;
LOOP:
    ld.global.u32 %r5, [%rd3];
    add.u32 %r5, %r5, 1;
    st.global.u32 [%rd3], %r5;
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p, %r1, 0;
    @%p bra LOOP;
    st.global.u32 [%rd3], %r5;
    ret;
}
"""


def sampled(out, rounds, block=32, grid=1):
    kernel = ptxvm.load(COUNT).kernel()
    return kernel, sample(kernel, LaunchOptions(grid, block), [out, rounds])


def test_a_sample_leaves_no_mark():
    out = np.arange(64, dtype=np.uint32)
    kernel, _ = sampled(out, 3, grid=2)
    assert (out == np.arange(64)).all()
    assert kernel.module.symbol("launches") == 0
    ptxvm.launch_report(kernel, 2, 32, [out, 3])
    assert (out == np.arange(64) + 3).all()
    assert kernel.module.symbol("launches") == 64


def test_arrays_that_overlap_stay_so():
    both = np.zeros(64, np.uint32)
    sampled(both[32:], 2)
    assert not both.any()


def test_a_sample_has_the_first_instructions_and_some_of_each_later_one():
    _, found = sampled(np.zeros(32, np.uint32), 400)
    ((name, steps),) = found.warps.items()
    assert (name.cta, name.warp) == ((0, 0, 0), 0)
    assert found.executed[name] == 9 + 400 * 6 + 2
    assert len(steps) == FIRST
    later = [step.text for step in found.steps[FIRST:]]
    assert later == ["st.global.u32 [%rd3], %r5;", "ret;"]
    assert LATER > 1


def test_a_sample_ends_where_nothing_new_comes():
    """A warp that goes round a million times is not followed to its end."""
    _, found = sampled(np.zeros(32, np.uint32), 1_000_000)
    (executed,) = found.executed.values()
    assert executed < 20_000
    assert "ret;" not in [step.text for step in found.steps]


def test_a_sample_is_of_some_warps_of_the_first_cta():
    _, found = sampled(np.zeros(4096, np.uint32), 1, block=512, grid=8)
    assert sorted(found.warps) == [((0, 0, 0), warp) for warp in range(WARPS)]


def test_the_sample_ends_with_its_warps():
    """Other CTAs run only as long as those of the sample: a grid of 100,000 would take a minute."""
    _, found = sampled(np.zeros(32 * 100_000, np.uint32), 1, grid=100_000)
    assert len(found.warps) == 1


def test_the_pieces_of_the_grid_are_all_ctas_once():
    _, found = sampled(np.zeros(32 * 100, np.uint32), 5, grid=100)
    assert sorted(cta for piece in found.pieces for cta in range(piece.first, piece.last)) == list(range(100))
    assert all(piece.began <= piece.ended for piece in found.pieces)
    assert found.pieces[0].began == 0


def test_a_fault_is_raised_by_the_launch():
    with pytest.raises(ptxvm.Fault, match="just past the end of `out`"):
        ptxvm.launch_report(ptxvm.load(COUNT).kernel(), 2, 32, [np.zeros(32, np.uint32), 1])
