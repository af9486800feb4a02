"""`ptxvm trace`: what it prints follows from the kernel and its arguments."""

from __future__ import annotations

import json
import re

import pytest

# The even threads of a CTA add 1 to a counter, and all store their number times a half.
KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry halves(.param .u64 halves_param_0, .param .u64 halves_param_1)
{
    .reg .pred %p;
    .reg .b32 %r<6>;
    .reg .f32 %f<3>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [halves_param_0];
    ld.param.u64 %rd2, [halves_param_1];
    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 1;
    setp.eq.u32 %p, %r2, 0;
    @%p atom.global.add.u32 %r3, [%rd2], 1;
    bra.uni $STORE;
$STORE:
    cvt.rn.f32.u32 %f1, %r1;
    mul.f32 %f2, %f1, 0f3F000000;
    mul.wide.u32 %rd3, %r1, 4;
    add.u64 %rd4, %rd1, %rd3;
    st.global.f32 [%rd4], %f2;
    ret;
}
"""
LAUNCH = ["--grid", "2", "--block", "40", "f32[40]", "u32[1]"]


@pytest.fixture
def halves(module):
    return module(KERNEL, "halves.ptx")


def test_it_prints_what_a_thread_did(ptxvm, halves):
    done = ptxvm("trace", halves, *LAUNCH, "--thread", "0/6")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "halves  CTA 0,0,0  thread 6,0,0\n"
        "\n"
        "10  ld.param.u64 %rd1, [halves_param_0];\n"
        "        loads param+0 → %rd1 = halves_param_0+0\n"
        "11  ld.param.u64 %rd2, [halves_param_1];\n"
        "        loads param+8 → %rd2 = halves_param_1+0\n"
        "12  mov.u32 %r1, %tid.x;\n"
        "        %tid.x = 6 → %r1 = 6\n"
        "13  and.b32 %r2, %r1, 1;\n"
        "        %r1 = 0x00000006 → %r2 = 0x00000000\n"
        "14  setp.eq.u32 %p, %r2, 0;\n"
        "        %r2 = 0 → %p = true\n"
        "15  @%p atom.global.add.u32 %r3, [%rd2], 1;\n"
        "        updates halves_param_1+0 from 3 to 4 → %r3 = 3\n"
        "16  bra.uni $STORE;\n"
        "        goes on at line 18\n"
        "18  cvt.rn.f32.u32 %f1, %r1;\n"
        "        %r1 = 6 → %f1 = 6.0\n"
        "19  mul.f32 %f2, %f1, 0f3F000000;\n"
        "        %f1 = 6.0 → %f2 = 3.0\n"
        "20  mul.wide.u32 %rd3, %r1, 4;\n"
        "        %r1 = 6 → %rd3 = 24\n"
        "21  add.u64 %rd4, %rd1, %rd3;\n"
        "        %rd1 = halves_param_0+0, %rd3 = 24 → %rd4 = halves_param_0+24\n"
        "22  st.global.f32 [%rd4], %f2;\n"
        "        %f2 = 3.0, stores halves_param_0+24\n"
        "23  ret;\n"
    )


def test_a_warp_shows_the_values_of_its_lanes(ptxvm, halves):
    lines = ptxvm("trace", halves, *LAUNCH, "--warp", "0/1").out.splitlines()
    assert lines[0] == "halves  CTA 0,0,0  warp 1"
    assert "        %tid.x = {32, 33 … 39} → %r1 = {32, 33 … 39}" in lines
    # The 16 even threads of warp 0 have added 1 before the four of warp 1 do.
    assert "        guard is off in lanes 1, 3, 5, 7, updates halves_param_1+0 from {16, 17," in lines
    assert "        18, 19} to {17, 18, 19, 20} → %r3 = {16, 17, 18, 19}" in lines


def test_without_a_thread_it_is_the_first(ptxvm, halves):
    assert ptxvm("trace", halves, *LAUNCH).out.startswith("halves  CTA 0,0,0  thread 0,0,0\n")


def test_a_limit_says_how_much_is_left_out(ptxvm, halves):
    lines = ptxvm("trace", halves, *LAUNCH, "--limit", "2").out.splitlines()
    assert lines[-2:] == ["        loads param+8 → %rd2 = halves_param_1+0", "and 11 more instructions: --limit N records more"]


def test_json_has_each_value_by_lane(ptxvm, halves):
    done = json.loads(ptxvm("trace", halves, *LAUNCH, "--thread", "1/6", "--format", "json").out)
    assert done["executed"] == [{"cta": [1, 0, 0], "warp": 0, "instructions": 13}]
    store = done["steps"][11]
    assert (store["cta"], store["line"], store["lanes"], store["off"]) == ([1, 0, 0], 22, [6], [])
    assert store["accesses"] == [
        {
            "access": "write", "space": "global", "type": "f32", "bytes": 4, "places": {"6": "halves_param_0+24"},
            "values": {"6": ["3.0"]},
        }
    ]  # fmt: skip
    assert store["reads"][1] == {
        "operand": "%f2",
        "type": "f32",
        "values": {"6": "3.0"},
        "bits": {"6": "0x40400000"},
        "places": {},
    }
    assert done["steps"][6]["goes_on_at"] == {"6": 18}


def test_perfetto_has_a_track_for_each_warp(ptxvm, halves):
    done = json.loads(ptxvm("trace", halves, *LAUNCH, "--format", "perfetto").out)
    assert done["otherData"]["time"].endswith("not the time of a GPU")
    slices = [event for event in done["traceEvents"] if event["ph"] == "X"]
    # Perfetto: 0 is the idle process, and a name belongs to the number of a thread, whichever process it is in.
    named = [(e["name"], e["pid"], e.get("tid"), *e["args"].values()) for e in done["traceEvents"] if e["ph"] == "M"]
    assert [each for each in named if each[0].endswith("_name")] == [
        ("process_name", 1, None, "CTA 0,0,0"),
        ("process_name", 2, None, "CTA 1,0,0"),
        ("thread_name", 1, 3, "warp 0"),
        ("thread_name", 1, 4, "warp 1"),
        ("thread_name", 2, 5, "warp 0"),
        ("thread_name", 2, 6, "warp 1"),
    ]
    assert all(each[3] == (each[2] or each[1]) for each in named if each[0].endswith("_sort_index"))
    assert {(each["pid"], each["tid"]) for each in slices} == {(1, 3), (1, 4), (2, 5), (2, 6)}
    assert len(slices) == 4 * 13
    # Nothing diverges, so all warps execute each instruction together: 13 steps, each one long.
    assert {(each["ts"], each["dur"]) for each in slices} == {(n, 1) for n in range(13)}
    atom = next(each for each in slices if each["ts"] == 5 and each["tid"] == 4)
    assert (atom["name"], atom["args"]["lanes"], atom["args"]["guard off"]) == ("@%p atom.global.add.u32 %r3, [%rd2], 1;", 8, 4)


def test_perfetto_of_a_thread_has_its_track_only(ptxvm, halves):
    done = json.loads(ptxvm("trace", halves, *LAUNCH, "--format", "perfetto", "--thread", "1/39").out)
    assert {(each["pid"], each["tid"]) for each in done["traceEvents"] if each["ph"] == "X"} == {(1, 2)}


def test_a_fault_follows_what_happened_before_it(ptxvm, halves):
    done = ptxvm("trace", halves, "--grid", "1", "--block", "40", "f32[39]", "u32[1]", "--thread", "0/39")
    assert done.code == 1
    assert re.search(r"\n22  st.global.f32 \[%rd4\], %f2;\n        \[%rd4\] = 0x[0-9a-f]+, %f2 = 19.5\n$", done.out)
    assert "out-of-bounds" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--thread", "5"], "--thread takes CTA/THREAD, such as 0/5 or 0,1/5,0,0, not '5'"),
        (["--thread", "a/b"], "--thread takes CTA/THREAD, such as 0/5 or 0,1/5,0,0, not 'a/b'"),
        (["--thread", "0/1,2,3,4"], "--thread takes CTA/THREAD, such as 0/5 or 0,1/5,0,0, not '0/1,2,3,4'"),
        (["--warp", "0/1,2"], "--warp takes CTA/WARP, and a warp is a number, not '0/1,2'"),
        (["--warp", "0/0", "--thread", "0/0"], "--thread and --warp: give one of them"),
        (["--thread", "0/40"], "there is no thread 40: the block is (40, 1, 1)"),
        (["--thread", "2/0"], "there is no CTA 2: the grid is (2, 1, 1)"),
        (["--warp", "0/2"], "there is no warp 2: a block (40, 1, 1) has 2"),
        (["--format", "xml"], "--format takes text, json, perfetto, not 'xml'"),
    ],
)
def test_a_wrong_call_is_one_line(ptxvm, halves, words, said):
    done = ptxvm("trace", halves, *LAUNCH, *words)
    assert (done.code, done.out, done.err) == (2, "", f"ptxvm trace: {said}\n")
