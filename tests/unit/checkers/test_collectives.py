"""The check `sync` of what lanes do together: the lanes that shfl reads, whole warps, and what meets at one barrier."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm
from ptxvm.diagnostics.diagnostic import Severity

ENGINES = pytest.mark.parametrize("engine", ["interp", "jit"])
HEAD = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {
    .shared .align 16 .b8 a[1024];
    .shared .align 8 .b64 m; .shared .align 8 .b64 m2;
    .reg .b32 %t, %x, %y, %lane; .reg .b64 %d, %s, %s2; .reg .pred %p, %q, %r; .reg .b32 %f<8>; .reg .f64 %g<6>;
    ld.param.u64 %d, [out];
    mov.u32 %t, %tid.x;
    mov.u32 %y, a;
    setp.lt.u32 %p, %t, 16;     // the first half of the first warp
    setp.lt.u32 %q, %t, 32;     // the first warp
"""


def found(body, block=32, engine="interp", head=HEAD):
    kernel = ptxvm.load(head + body + "\n    ret;\n}\n").kernel()
    return kernel.launch(1, block, [np.zeros(64, np.uint32)], check=("sync",), engine=engine).findings


def kinds(*args, **how):
    return [each.kind for each in found(*args, **how)]


# ── shfl: PTX 9.7.9.6, "results are undefined" ──────────────────────────────────────────

HALF = "@!%p bra E; {0} E: bar.warp.sync -1;"
USED = " st.global.u32 [%d], %x;"
WRONG_LANES = {
    "not in the mask": (HALF.format("shfl.sync.idx.b32 %x, %t, 20, 31, 0xffff;" + USED), 32, "0x0000ffff"),
    "one of several": (HALF.format("shfl.sync.bfly.b32 %x, %t, 16, 31, 0xffff;" + USED), 32, "0x0000ffff"),
    "the value is the same in all lanes": (HALF.format("shfl.sync.idx.b32 %x, 7, 20, 31, 0xffff;" + USED), 32, "0x0000ffff"),
    "beyond the block": ("shfl.sync.idx.b32 %x, %t, 20, 31, -1;" + USED, 16, "none of the 16 threads"),
    "beyond a block of two warps": ("shfl.sync.down.b32 %x, %t, 1, 31, -1;" + USED, 48, "lane 15 reads from lane 16"),
    "ended": ("@!%p ret; shfl.sync.idx.b32 %x, %t, 20, 31, -1;" + USED, 32, "lane 20, which has ended"),
    "ended, of the second warp": (
        "setp.lt.u32 %q, %t, 48; @!%q ret; shfl.sync.idx.b32 %x, %t, 20, 31, -1;" + USED, 64, "has ended",
    ),
}  # fmt: skip
RIGHT_LANES = {
    "all lanes": ("shfl.sync.idx.b32 %x, %t, 20, 31, -1;" + USED, 64),
    "out of range is the own lane": ("shfl.sync.down.b32 %x, %t, 16, 31, -1;" + USED, 32),
    "up, in a part of a warp": ("shfl.sync.up.b32 %x, %t, 1, 0, -1;" + USED, 48),
    "within the mask": (HALF.format("shfl.sync.bfly.b32 %x, %t, 8, 31, 0xffff;" + USED), 32),
    "within segments": ("shfl.sync.down.b32 %x, %t, 8, 0x101f, -1;" + USED, 16),
    "a part that is clamped": ("shfl.sync.down.b32 %x, %t, 8, 15, -1;" + USED, 16),
}


@ENGINES
@pytest.mark.parametrize("name", WRONG_LANES)
def test_shfl_reads_a_lane_that_takes_no_part(name, engine):
    body, block, why = WRONG_LANES[name]
    (finding,) = found(body, block, engine)
    assert (finding.kind, finding.severity) == ("undefined-lane", Severity.WARNING)
    assert why in finding.message
    assert finding.accesses[0].place.text.startswith("shfl.sync")


@ENGINES
@pytest.mark.parametrize("name", RIGHT_LANES)
def test_shfl_reads_a_lane_that_takes_part(name, engine):
    body, block = RIGHT_LANES[name]
    assert kinds(body, block, engine) == []


@ENGINES
def test_shfl_without_a_mask(engine):
    old = HEAD.replace("sm_90", "sm_60").replace("8.0", "6.0")
    assert kinds("@%p shfl.idx.b32 %x, %t, 20, 31;" + USED, engine=engine, head=old) == ["undefined-lane"]
    assert kinds("shfl.idx.b32 %x, %t, 20, 31;" + USED, engine=engine, head=old) == []


@ENGINES
@pytest.mark.parametrize("body", [
    "match.any.sync.b32 %x, %t, -1;", "vote.sync.ballot.b32 %x, %p, -1;", "redux.sync.add.u32 %x, %t, -1;",
    "activemask.b32 %x;",
])  # fmt: skip
def test_other_collectives_take_those_who_are_left(body, engine):
    """9.7.13.9 to 9.7.13.12: they wait for the lanes of the mask that have not ended."""
    assert kinds("@!%p ret;" + body, engine=engine) == []
    assert kinds(body, 16, engine) == []


# ── whole warps: `.aligned` ─────────────────────────────────────────────────────────────

MATRICES = {
    "ldmatrix": "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%f0}, [%y];",
    "stmatrix": "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%y], {%f0};",
    "movmatrix": "movmatrix.sync.aligned.m8n8.trans.b16 %x, %t;",
    "mma": "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%g0, %g1}, {%g2}, {%g3}, {%g4, %g5};",
    "wmma.load": "wmma.load.c.sync.aligned.row.m16n16k16.shared.f16 {%f0, %f1, %f2, %f3}, [%y];",
    "wmma.store": "wmma.store.d.sync.aligned.row.m16n16k16.shared.f16 [%y], {%f0, %f1, %f2, %f3};",
}


@ENGINES
@pytest.mark.parametrize("name", MATRICES)
def test_matrices_need_whole_warps(name, engine):
    body = MATRICES[name]
    assert kinds(body, 64, engine) == []
    for before, block in (("", 16), ("", 48), ("@!%p ret;", 32)):
        (finding,) = found(before + body, block, engine)
        assert finding.kind == "incomplete-warp"
        assert "0xffff0000" in finding.message or name == "mma"


@ENGINES
def test_all_threads_of_a_warp_change_its_number_of_registers(engine):
    """9.7.19.5: `.sync` waits for all threads of the warp, and `.aligned` asks for the same instruction in all."""
    head, body = HEAD.replace("sm_90", "sm_90a"), "setmaxnreg.dec.sync.aligned.u32 40;"
    assert kinds(body, 128, engine, head=head) == []
    assert kinds("@!%q bra E; " + body + " E:", 64, engine, head=head) == []
    (finding,) = found("@%p " + body, 32, engine, head=head)
    assert finding.kind == "incomplete-warp"
    assert "setmaxnreg" in str(finding)


# ── one barrier: PTX 9.7.13.1, "should not be intermixed" ───────────────────────────────

POPC, AND, OR = "bar.red.popc.u32 %x, {0}, %p;", "bar.red.and.pred %r, {0}, %p;", "bar.red.or.pred %r, {0}, %p;"
SYNC, ARRIVE = "bar.sync {0};", "bar.arrive {0};"
MIXED = [(POPC, SYNC), (AND, SYNC), (OR, ARRIVE), (POPC, AND), (AND, OR), (POPC, "barrier.sync {0};")]
ALIKE = [(POPC, POPC), (AND, "barrier.red.and.pred %r, {0}, %p;"), (SYNC, SYNC), (SYNC, ARRIVE), (SYNC, "barrier.sync {0};")]


def parted(one, other, barrier):
    return f"@%q bra L; {one.format(barrier)} bra E; L: {other.format(barrier)} E:"


@ENGINES
@pytest.mark.parametrize(("one", "other"), MIXED)
def test_reductions_meet_what_is_none_of_the_kind(one, other, engine):
    for barrier in ("1, 64", *([] if ARRIVE in (one, other) else ["0"])):
        (finding,) = found(parted(one, other, barrier), 64, engine)
        assert finding.kind == "invalid-barrier"
        assert "meet at barrier" in finding.message


@ENGINES
@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_what_may_meet(one, other, engine):
    assert kinds(parted(one, other, "1, 64"), 64, engine) == []


@ENGINES
def test_one_after_the_other_they_may_be_mixed(engine):
    assert kinds(POPC.format(0) + SYNC.format(0) + AND.format(0), 64, engine) == []


# ── states of mbarriers: PTX 9.7.13.15.16 ───────────────────────────────────────────────


def wait(state, label, barrier="m"):
    return f"{label}: mbarrier.test_wait.shared.b64 %r, [{barrier}], {state}; @!%r bra {label};"


INIT = "mbarrier.init.shared.b64 [{0}], {1};"
ARRIVES = "mbarrier.arrive.shared.b64 {0}, [{1}];"
TEST = "mbarrier.test_wait.shared.b64 %r, [{0}], {1};"
TWO_PHASES = INIT.format("m", 1) + ARRIVES.format("%s", "m") + wait("%s", "W1") + ARRIVES.format("%s2", "m") + wait("%s2", "W2")
WRONG_STATES = {
    "of another mbarrier": (
        INIT.format("m", 1) + INIT.format("m2", 2) + ARRIVES.format("%s", "m") + TEST.format("m2", "%s"), "of another mbarrier",
    ),
    "of two phases ago": (TWO_PHASES + TEST.format("m", "%s"), "2 phases have ended"),
    "of two phases ago, try_wait": (TWO_PHASES + TEST.format("m", "%s").replace("test", "try"), "2 phases have ended"),
    "of an mbarrier that was there before": (
        INIT.format("m", 2) + ARRIVES.format("%s", "m") + "mbarrier.inval.shared.b64 [m];" + INIT.format("m", 1)
        + TEST.format("m", "%s"), "no arrival has given",
    ),
    "a number": (INIT.format("m", 1) + "mov.u64 %s, 77;" + TEST.format("m", "%s"), "no arrival has given"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_STATES)
def test_states_that_an_mbarrier_cannot_be_asked_for(name):
    body, why = WRONG_STATES[name]
    (finding,) = found(body, 1)
    assert finding.kind == "invalid-mbarrier"
    assert why in finding.message


@pytest.mark.parametrize("block", [1, 64])
def test_states_of_this_phase_and_the_one_before(block):
    """Every thread waits for the phase in which it arrived; or asks, before it waits, for one that is not over."""
    phases = "".join(ARRIVES.format("%s", "m") + TEST.format("m", "%s") + wait("%s", f"W{n}") + "bar.sync 0;" for n in range(4))
    first = f"setp.ne.u32 %q, %t, 0; @!%q {INIT.format('m', block)} bar.sync 0;"
    assert kinds(first + phases, block) == []


def test_the_state_of_another_thread():
    """Thread 0 arrives, and lets all threads wait for the phase."""
    body = f"""
    setp.ne.u32 %q, %t, 0;
    @%q bra B;
    {INIT.format("m", 1)} {ARRIVES.format("%s", "m")}
    st.shared.u64 [a], %s;
B:  bar.sync 0;
    ld.shared.u64 %s, [a];
    {wait("%s", "W")}
    """
    assert kinds(body, 64) == []
