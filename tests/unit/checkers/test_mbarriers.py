"""Misuse of mbarriers, and what looks like it: PTX 9.7.13.15 says what is undefined; both engines find the same."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

HEAD = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data)
{
    .shared .align 16 .b8 s[256];
    .shared .align 8 .b64 bar;
    .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<6>, %state;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.u64 %rd3, %rd3, %rd1;
    setp.eq.u32 %p1, %r1, 0;
    mov.u32 %r2, 0;
"""
MADE = "@%p1 mbarrier.init.shared.b64 [bar], 32;\nbar.sync 0;\n"
ARRIVE = "mbarrier.arrive.shared.b64 %state, [bar];\n"
WAIT = "again: mbarrier.test_wait.shared.b64 %p2, [bar], %state; @!%p2 bra again;\n"
AGAIN = "more: mbarrier.test_wait.shared.b64 %p2, [bar], %state; @!%p2 bra more;\n"
ONE = "@%p1 mbarrier.init.shared.b64 [bar], 1;\nbar.sync 0;\n@!%p1 bra out;\n"  # of one thread
EXPECT = "mbarrier.arrive.expect_tx.shared.b64 %state, [bar], {};\n"
MORE = "mbarrier.expect_tx.relaxed.cta.shared.b64 [bar], {};\n"
COMPLETE = "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [bar], {};\n"
PART = "mbarrier.{}.noComplete.shared.b64 %state, [bar], {};\n"
ENGINES = pytest.mark.parametrize("engine", ["interp", "jit"])


def found(body, engine, check=("sync",), **how):
    kernel = ptxvm.load(HEAD + body + "\nout:\n    ret;\n}\n").kernel()
    return kernel.launch(1, 32, [np.zeros(64, np.uint32)], engine=engine, check=check, **how).findings


WRONG = {
    # 9.7.13.15.3 and 9.7.13.15.9: only init where there is none, and no init where there is one
    "arrive on what is none": (ARRIVE, "there is no mbarrier"),
    "test what is none": ("mbarrier.test_wait.parity.shared.b64 %p2, [bar], 1;", "there is no mbarrier"),
    "expect from what is none": (MORE.format(8), "there is no mbarrier"),
    "invalidate what is none": ("@%p1 mbarrier.inval.shared.b64 [bar];", "no mbarrier to be invalidated"),
    "made twice": (MADE + "@%p1 mbarrier.init.shared.b64 [bar], 32;", "there is an mbarrier already"),
    "made by every thread": ("mbarrier.init.shared.b64 [bar], 32;", "there is an mbarrier already"),
    "arrive on what is no more": (MADE + "@%p1 mbarrier.inval.shared.b64 [bar];\nbar.sync 0;\n" + ARRIVE, "is no more"),
    # 9.7.13.15: no other operation on one
    "read": (MADE + "ld.shared.b64 %rd5, [bar];", "reads from an mbarrier"),
    "written in part": (MADE + "@%p1 st.shared.b32 [bar+4], 0;", "writes to an mbarrier"),
    "updated": (MADE + "red.shared.add.u32 [bar], 1;", "updates an mbarrier"),
    "copied to": (MADE + "cvta.to.global.u64 %rd4, %rd1; cp.async.ca.shared.global [bar], [%rd4], 8;", "copies to an mbarrier"),
    # 9.7.13.15.2: the ranges of the counts
    "made for none": ("@%p1 mbarrier.init.shared.b64 [bar], %r2;", "1 to 1,048,575 arrivals"),
    "made for too many": ("mov.u32 %r3, 1048577;\n@%p1 mbarrier.init.shared.b64 [bar], %r3;", "1 to 1,048,575 arrivals"),
    "arrive for none": (MADE + PART.format("arrive", "%r2"), "counts as 1 to"),
    "too many arrivals": (MADE + PART.format("arrive", 3), "more arrivals than"),
    "too many transactions": (ONE + EXPECT.format(8) + MORE.format(1048575), "1,048,575 transactions"),
    # 9.7.13.15.13 and 14: an arrival without completion completes
    "the last without completion": (MADE + PART.format("arrive", 1), "which .noComplete rules out"),
    "dropped without completion": (MADE + PART.format("arrive_drop", 1), "which .noComplete rules out"),
    # 9.7.13.15.4: somebody finds each phase over before anybody arrives in the next
    "nobody has waited": (MADE + ARRIVE + "bar.sync 0;\n" + ARRIVE, "before any thread found the last one over"),
}  # fmt: skip
RIGHT = {
    "two phases": MADE + ARRIVE + WAIT + "bar.sync 0;\n" + ARRIVE + AGAIN,
    "one waits for all": MADE + ARRIVE + "@!%p1 bra on;\n" + WAIT + "on: bar.sync 0;\n" + ARRIVE,
    "the phase before": MADE + "mbarrier.test_wait.parity.shared.b64 %p2, [bar], 1;\n" + ARRIVE + WAIT,
    "memory that was one": MADE + ARRIVE + WAIT + "bar.sync 0;\n@%p1 mbarrier.inval.shared.b64 [bar];\nbar.sync 0;\n"
    "@%p1 st.shared.b64 [bar], 0;\n@%p1 ld.shared.b64 %rd5, [bar];",
    "another one there": MADE + ARRIVE + WAIT + "bar.sync 0;\n@%p1 mbarrier.inval.shared.b64 [bar];\n"
    "@%p1 mbarrier.init.shared.b64 [bar], 32;\nbar.sync 0;\n" + ARRIVE,
    "all arrivals at once": ONE + "@%p1 mbarrier.inval.shared.b64 [bar];\n@%p1 mbarrier.init.shared.b64 [bar], 7;\n"
    "mbarrier.arrive.noComplete.shared.b64 %state, [bar], 6;\n" + ARRIVE + WAIT,
    "transactions": ONE + EXPECT.format(8) + COMPLETE.format(4) + COMPLETE.format(4) + WAIT,
    # 9.7.13.15.2: the count of transactions may be below 0
    "transactions that end before they are expected": ONE + COMPLETE.format(8) + EXPECT.format(8) + WAIT,
}  # fmt: skip


@ENGINES
@pytest.mark.parametrize("name", WRONG)
def test_misuse_is_found(name, engine):
    body, said = WRONG[name]
    wrong = [each.message for each in found(body, engine) if each.kind == "invalid-mbarrier"]
    assert any(said in each for each in wrong), wrong


@ENGINES
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right(name, engine):
    assert found(RIGHT[name], engine, ("sync", "memory", "init", "race"), schedules=3, seed=0) == []


@ENGINES
@pytest.mark.parametrize("seed", [None, 0, 1])
def test_a_phase_that_does_not_end_is_a_deadlock(seed, engine):
    (wrong,) = found(MADE + "@%p1 bra out;\n" + ARRIVE + WAIT, engine, seed=seed)
    assert wrong.kind == "deadlock"
    assert "31 threads wait for the end of a phase" in wrong.message


@ENGINES
def test_transactions_that_do_not_end_are_a_deadlock(engine):
    (wrong,) = found(ONE + EXPECT.format(8) + COMPLETE.format(4) + WAIT, engine)
    assert wrong.kind == "deadlock"
    assert "1 thread waits for the end of a phase" in wrong.message
