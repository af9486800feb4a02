"""A race of writes that all store the same value is a race (PTX 8.7.1), and a warning that can be allowed."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm
from ptxvm.cli import main

HEAD = """.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 p)
{
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    .reg .pred %p<3>;
    .reg .f32 %f<3>;
    .shared .b32 s[64];
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    shr.u32 %r3, %r1, 5;
"""
EQUAL, RACE = "race-of-equal-values", "race"


def codes(body: str, grid: int = 1, block: int = 32, **how) -> list[str]:
    kernel = ptxvm.load(f"{HEAD}    {body}\n    ret;\n}}\n").kernel()
    findings = kernel.launch(grid, block, [np.zeros(64, np.uint32)], check=("race",), **how).findings
    assert {found.kind for found in findings} <= {"race"}
    assert all((found.severity == "warning") == found.equal_values == (found.code == EQUAL) for found in findings)
    return sorted(found.code for found in findings)


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(
    ("body", "shape", "found"),
    [
        # lanes of a warp, warps and CTAs, in one step and in several
        ("st.global.u32 [%rd1], 7;", (1, 32), [EQUAL]),
        ("st.global.u32 [%rd1], 7;", (4, 64), [EQUAL]),
        ("st.shared.u32 [s], 7;", (1, 96), [EQUAL]),
        ("setp.lt.u32 %p1, %r1, 5; @%p1 st.global.u32 [%rd1+4], 1;", (1, 32), [EQUAL]),
        ("mov.f32 %f1, 0f7FFFFFFF; st.global.f32 [%rd1], %f1;", (1, 32), [EQUAL]),
        ("st.global.v2.u32 [%rd1], {7, 8};", (1, 32), [EQUAL]),
        ("st.global.u64 [%rd1], 0x100000002;", (1, 32), [EQUAL]),
        # what is ordered begins anew
        ("st.global.u32 [%rd1], 7; bar.sync 0; st.global.u32 [%rd1], 8;", (1, 64), [EQUAL, EQUAL]),
        # values that differ: in a step, between warps, between CTAs, in one of two elements, in the upper half
        ("st.global.u32 [%rd1], %r1;", (1, 32), [RACE]),
        ("st.global.u32 [%rd1], %r3;", (1, 64), [RACE]),
        ("st.global.u32 [%rd1], %r2;", (3, 32), [RACE]),
        ("st.global.v2.u32 [%rd1], {7, %r1};", (1, 32), [RACE]),
        ("mov.b64 %rd2, {%r2, %r1}; st.global.u64 [%rd1], %rd2;", (1, 32), [RACE]),
        ("st.global.u8 [%rd1], %r1;", (1, 32), [RACE]),
        # a read that races sees the one value or what was before
        ("st.global.u32 [%rd1], 7; ld.global.u32 %r4, [%rd1];", (1, 32), [RACE, EQUAL]),
        # an atomic stores what it makes of what was there
        ("atom.global.add.u32 %r4, [%rd1], 1; st.global.u32 [%rd1], 1;", (1, 32), [RACE, RACE]),
    ],
)
def test_what_is_stored_tells_a_warning_from_an_error(body, shape, found, engine):
    assert codes(body, *shape, engine=engine) == found


def test_random_schedules_agree():
    assert codes("st.global.u32 [%rd1], 7;", 3, 64, schedules=6) == [EQUAL]
    assert codes("st.global.u32 [%rd1], %r2;", 3, 64, schedules=6) == [RACE]


def test_the_message_says_so():
    kernel = ptxvm.load(f"{HEAD}    st.global.u32 [%rd1], 7;\n    ret;\n}}\n").kernel()
    (found,) = kernel.launch(1, 32, [np.zeros(64, np.uint32)], check=("race",)).findings
    assert found.message.endswith("are not ordered, and store the same value")
    assert found.details["equal_values"] is True
    assert str(found).startswith("race-of-equal-values: ")
    assert "race-of-equal-values can be allowed" in found.missing  # a barrier between two runs of one instruction cannot be


@pytest.mark.parametrize(
    ("body", "how", "found"),
    [
        ("st.global.u32 [%rd1], 7; // ptxvm: allow race-of-equal-values", {}, []),
        ("// ptxvm: allow race-of-equal-values\n    st.global.u32 [%rd1], 7;", {}, []),
        ("st.global.u32 [%rd1], 7;", {"allow": ("race-of-equal-values",)}, []),
        ("st.global.u32 [%rd1], 7;", {"allow": "race-of-equal-values"}, []),
        ("st.global.u32 [%rd1], %r1; // ptxvm: allow leak, race", {}, []),
        # of another code, on another line
        ("st.global.u32 [%rd1], %r1; // ptxvm: allow race-of-equal-values", {}, [RACE]),
        ("mov.b32 %r4, 1; // ptxvm: allow race-of-equal-values\n    st.global.u32 [%rd1], 7;", {}, [EQUAL]),
        ("st.global.u32 [%rd1], 7; // allow race-of-equal-values", {}, [EQUAL]),
    ],
)
def test_what_is_meant_is_allowed(body, how, found):
    assert codes(body, **how) == found


def test_there_is_no_other_code_to_allow():
    with pytest.raises(ValueError, match="there is no finding 'races'; did you mean `race`"):
        codes("st.global.u32 [%rd1], 7;", allow=("races",))


@pytest.mark.parametrize(("more", "code"), [([], 0), (["--allow", "race-of-equal-values"], 0), (["--allow", "rice"], 2)])
def test_a_warning_leaves_the_exit_code_at_0(more, code, tmp_path, capsys):
    path = tmp_path / "k.ptx"
    path.write_text(f"{HEAD}    st.global.u32 [%rd1], 7;\n    ret;\n}}\n")
    assert main(["run", str(path), "--grid", "1", "--block", "32", "--check", "race", *more, "u32[64]"]) == code
    printed = capsys.readouterr().err
    assert ("warning[race-of-equal-values]" in printed) == (not more)
    assert ("--allow rice: there is no finding 'rice'" in printed) == (code == 2)


BULK = """
.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
    .reg .b32 %r<6>; .reg .b64 %rd<4>; .reg .pred %p<2>;
    .shared .align 16 .b32 s[128];
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, s;
    mad.lo.u32 %r3, %r1, 4, %r2;
    st.shared.u32 [%r3], 7;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    BODY
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ret;
}
"""
STORE = "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], 64;"


@pytest.mark.parametrize(
    ("body", "shape", "found"),
    [
        (STORE, (1, 32), [EQUAL]),  # every lane stores the same bytes from the same place
        ("setp.eq.u32 %p1, %r1, 0; @%p1 " + STORE, (1, 32), []),
        ("and.b32 %r4, %r1, 1; mad.lo.u32 %r2, %r4, 64, %r2; " + STORE, (1, 32), [RACE]),  # from two places
        (STORE, (2, 32), [RACE]),  # in each CTA from its own memory
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r2], 64;", (1, 32), []),
    ],
)
def test_lanes_that_store_in_bulk_what_another_lane_stores(body, shape, found):
    kernel = ptxvm.load(BULK.replace("BODY", body)).kernel()
    findings = kernel.launch(*shape, [np.zeros(64, np.uint32)], check=("race",)).findings
    assert [each.code for each in findings] == found


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("st.global.u32 [%rd1], %r1;", "two executions of the write at line 15 are not ordered"),
        (
            "ld.global.u32 %r4, [%rd1];\nst.global.u32 [%rd1], %r1;",
            "the write at line 16 and the read at line 15 are not ordered",
        ),
        ("ld.global.u32 %r4, [%rd1]; st.global.u32 [%rd1], %r1;", "the write and the read at line 15 are not ordered"),
    ],
)
def test_accesses_on_one_line_are_told_in_one(body, said):
    kernel = ptxvm.load(f"{HEAD}    {body}\n    ret;\n}}\n").kernel()
    messages = [found.message for found in kernel.launch(1, 64, [np.zeros(64, np.uint32)], check=("race",)).findings]
    assert any(message.endswith(f".global memory: {said}") for message in messages), messages
