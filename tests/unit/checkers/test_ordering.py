"""Small kernels for what mbarriers, asynchronous copies and barriers order, and what not (PTX 8.7, 8.9.1.1, 9.7.9.25, 9.7.13).

Each verdict follows from the sentence of the manual that its name paraphrases.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

HEAD = """
.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data)
{
    .shared .align 16 .b8 s[1024];
    .shared .align 8 .b64 bar;
    .reg .pred %p<6>; .reg .b16 %h<4>; .reg .b32 %r<16>; .reg .b64 %rd<10>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mov.u64 %rd4, s;
    mul.wide.u32 %rd5, %r1, 4;
    add.u64 %rd3, %rd5, %rd4;      // the own cell
    add.u64 %rd6, %rd5, %rd1;      // the own word of the data
    xor.b32 %r15, %r1, 1;
    mul.wide.u32 %rd7, %r15, 4;
    add.u64 %rd7, %rd7, %rd4;      // the cell of the neighbour
    setp.eq.u32 %p1, %r1, 0;
"""


def hazards(body):
    kernel = ptxvm.load(HEAD + body + "\n ret;\n}\n").kernel()
    data = np.arange(256, dtype=np.uint32)
    found = kernel.launch(1, 64, [data], check=("race",), schedules=6, seed=0, steps=100_000).findings
    assert all(each.kind == "race" for each in found), found
    return [each.hazard for each in found]


MADE = "@%p1 mbarrier.init.shared.b64 [bar], 64; bar.sync 0; "

MBARRIERS_RACING = {
    "no init barrier": "@%p1 mbarrier.init.shared.b64 [bar], 64; mbarrier.arrive.shared.b64 _, [bar];",
    "relaxed arrive": MADE
    + """st.shared.u32 [%rd3], %r1; mbarrier.arrive.relaxed.cta.shared.b64 _, [bar];
        W1: mbarrier.try_wait.parity.shared.b64 %p5, [bar], 0; @!%p5 bra W1; ld.shared.u32 %r3, [%rd7];""",
    "relaxed wait": MADE
    + """st.shared.u32 [%rd3], %r1; mbarrier.arrive.shared.b64 _, [bar];
        W1: mbarrier.try_wait.parity.relaxed.cta.shared.b64 %p5, [bar], 0; @!%p5 bra W1;
        ld.shared.u32 %r3, [%rd7];""",
    "write after arrive": MADE
    + """mbarrier.arrive.shared.b64 _, [bar]; st.shared.u32 [%rd3], %r1;
        W1: mbarrier.try_wait.parity.shared.b64 %p5, [bar], 0; @!%p5 bra W1; ld.shared.u32 %r3, [%rd7];""",
    "two phases WAR": MADE
    + """st.shared.u32 [%rd3], %r1; mbarrier.arrive.shared.b64 _, [bar];
        W1: mbarrier.try_wait.parity.shared.b64 %p5, [bar], 0; @!%p5 bra W1; ld.shared.u32 %r3, [%rd7];
        st.shared.u32 [%rd3], 5;""",
}

MBARRIERS_ORDERED = {
    "all arrive": MADE
    + """st.shared.u32 [%rd3], %r1; mbarrier.arrive.shared.b64 _, [bar];
        W1: mbarrier.try_wait.parity.shared.b64 %p5, [bar], 0; @!%p5 bra W1; ld.shared.u32 %r3, [%rd7];""",
    "relaxed arrive with fence": MADE
    + """st.shared.u32 [%rd3], %r1; fence.acq_rel.cta; mbarrier.arrive.relaxed.cta.shared.b64 _, [bar];
        W1: mbarrier.try_wait.parity.shared.b64 %p5, [bar], 0; @!%p5 bra W1; ld.shared.u32 %r3, [%rd7];""",
    "relaxed wait with fence": MADE
    + """st.shared.u32 [%rd3], %r1; mbarrier.arrive.shared.b64 _, [bar];
        W1: mbarrier.try_wait.parity.relaxed.cta.shared.b64 %p5, [bar], 0; @!%p5 bra W1; fence.acq_rel.cta;
        ld.shared.u32 %r3, [%rd7];""",
    "two phases ok": MADE
    + """st.shared.u32 [%rd3], %r1; mbarrier.arrive.shared.b64 _, [bar];
        W1: mbarrier.try_wait.parity.shared.b64 %p5, [bar], 0; @!%p5 bra W1; ld.shared.u32 %r3, [%rd7];
        mbarrier.arrive.shared.b64 _, [bar]; W2: mbarrier.try_wait.parity.shared.b64 %p5, [bar], 1;
        @!%p5 bra W2; st.shared.u32 [%rd3], 5;""",
    "inval ok": MADE
    + """mbarrier.arrive.shared.b64 _, [bar]; W1: mbarrier.try_wait.parity.shared.b64 %p5, [bar], 0;
        @!%p5 bra W1; bar.sync 0; @%p1 mbarrier.inval.shared.b64 [bar];""",
    "by generic": MADE
    + """mov.u64 %rd8, bar; cvta.shared.u64 %rd8, %rd8; st.shared.u32 [%rd3], %r1;
        mbarrier.arrive.b64 _, [%rd8]; W1: mbarrier.try_wait.parity.shared.b64 %p5, [bar], 0; @!%p5 bra W1;
        ld.shared.u32 %r3, [%rd7];""",
    "test_wait state": MADE
    + """st.shared.u32 [%rd3], %r1; mbarrier.arrive.shared.b64 %rd8, [bar];
        W: mbarrier.test_wait.shared.b64 %p5,[bar],%rd8; @!%p5 bra W; ld.shared.u32 %r3, [%rd7];""",
}

COPIES_RACING = {
    "own read nowait": "cp.async.ca.shared.global [%rd3], [%rd6], 4; ld.shared.u32 %r3, [%rd3];",
    "neighbour wait no bar": "cp.async.ca.shared.global [%rd3], [%rd6], 4; cp.async.wait_all; ld.shared.u32 %r3, [%rd7];",
    "uncommitted": """cp.async.ca.shared.global [%rd3], [%rd6], 4; cp.async.wait_group 0; bar.sync 0;
        ld.shared.u32 %r3, [%rd7];""",
    "source overwritten": "cp.async.ca.shared.global [%rd3], [%rd6], 4; st.global.u32 [%rd6], 1; cp.async.wait_all;",
    "two same dst": """cp.async.ca.shared.global [%rd3], [%rd6], 4; cp.async.ca.shared.global [%rd3], [%rd6], 4;
        cp.async.wait_all;""",
    "WAR": """st.shared.u32 [%rd3], 1; bar.sync 0; ld.shared.u32 %r3, [%rd7];
        cp.async.ca.shared.global [%rd3], [%rd6], 4; cp.async.wait_all;""",
    "mbarrier noinc does not publish stores": MADE
    + """st.shared.u32 [%rd3+256], 1; cp.async.ca.shared.global [%rd3], [%rd6], 4;
        cp.async.mbarrier.arrive.noinc.shared.b64 [bar];
        W1: mbarrier.try_wait.parity.shared.b64 %p5, [bar], 0; @!%p5 bra W1; ld.shared.u32 %r3, [%rd7+256];""",
    "after mbarrier arrive": MADE
    + """cp.async.mbarrier.arrive.shared.b64 [bar]; cp.async.ca.shared.global [%rd3], [%rd6], 4;
        mbarrier.arrive.shared.b64 _, [bar]; W1: mbarrier.try_wait.parity.shared.b64 %p5, [bar], 0;
        @!%p5 bra W1; ld.shared.u32 %r3, [%rd7];""",
    "pipeline no 2nd bar": """mov.u32 %r5, 0; cp.async.ca.shared.global [%rd3], [%rd6], 4; cp.async.commit_group;
        L: add.u32 %r6, %r5, 1; and.b32 %r7, %r6, 1; mul.wide.u32 %rd8, %r7, 256; add.u64 %rd8, %rd8, %rd3;
        cp.async.ca.shared.global [%rd8], [%rd6], 4; cp.async.commit_group; cp.async.wait_group 1;
        bar.sync 0; and.b32 %r7, %r5, 1; mul.wide.u32 %rd8, %r7, 256; add.u64 %rd8, %rd8, %rd7;
        ld.shared.u32 %r3, [%rd8]; add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 4; @%p2 bra L;
        cp.async.wait_all;""",
}

COPIES_ORDERED = {
    "own read wait": "cp.async.ca.shared.global [%rd3], [%rd6], 4; cp.async.wait_all; ld.shared.u32 %r3, [%rd3];",
    "source overwritten after": "cp.async.ca.shared.global [%rd3], [%rd6], 4; cp.async.wait_all; st.global.u32 [%rd6], 1;",
    "two same dst waited": """cp.async.ca.shared.global [%rd3], [%rd6], 4; cp.async.wait_all;
        cp.async.ca.shared.global [%rd3], [%rd6], 4; cp.async.wait_all;""",
    "over previous store": "st.shared.u32 [%rd3], 1; cp.async.ca.shared.global [%rd3], [%rd6], 4; cp.async.wait_all;",
    "WAR ok": """st.shared.u32 [%rd3], 1; bar.sync 0; ld.shared.u32 %r3, [%rd7]; bar.sync 0;
        cp.async.ca.shared.global [%rd3], [%rd6], 4; cp.async.wait_all;""",
    "mbarrier": MADE
    + """cp.async.ca.shared.global [%rd3], [%rd6], 4; cp.async.mbarrier.arrive.shared.b64 [bar];
        mbarrier.arrive.shared.b64 _, [bar]; W1: mbarrier.try_wait.parity.shared.b64 %p5, [bar], 0;
        @!%p5 bra W1; ld.shared.u32 %r3, [%rd7];""",
    "mbarrier noinc": """@%p1 mbarrier.init.shared.b64 [bar], 128; bar.sync 0; cp.async.ca.shared.global [%rd3], [%rd6], 4;
        cp.async.mbarrier.arrive.noinc.shared.b64 [bar]; mbarrier.arrive.shared.b64 _, [bar];
        W1: mbarrier.try_wait.parity.shared.b64 %p5, [bar], 0; @!%p5 bra W1; ld.shared.u32 %r3, [%rd7];""",
    "mbarrier only noinc": MADE
    + """cp.async.ca.shared.global [%rd3], [%rd6], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [bar];
        W1: mbarrier.try_wait.parity.shared.b64 %p5, [bar], 0; @!%p5 bra W1; ld.shared.u32 %r3, [%rd7];""",
    "pipeline right": """mov.u32 %r5, 0; cp.async.ca.shared.global [%rd3], [%rd6], 4; cp.async.commit_group;
        L: add.u32 %r6, %r5, 1; and.b32 %r7, %r6, 1; mul.wide.u32 %rd8, %r7, 256; add.u64 %rd8, %rd8, %rd3;
        cp.async.ca.shared.global [%rd8], [%rd6], 4; cp.async.commit_group; cp.async.wait_group 1;
        bar.sync 0; and.b32 %r7, %r5, 1; mul.wide.u32 %rd8, %r7, 256; add.u64 %rd8, %rd8, %rd7;
        ld.shared.u32 %r3, [%rd8]; bar.sync 0; add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 4; @%p2 bra L;
        cp.async.wait_all;""",
}

OTHERS_RACING = {
    "generic vs shared race": "cvta.shared.u64 %rd8, %rd7; st.shared.u32 [%rd3], 1; ld.u32 %r3, [%rd8];",
    "weak vs relaxed same": "@%p1 st.relaxed.cta.shared.u32 [s], 1; @!%p1 ld.weak.shared.u32 %r3, [s];",
    "red vs ld weak": "red.shared.add.u32 [s], 1; @%p1 ld.shared.u32 %r3, [s];",
    "vec partial": "@%p1 st.shared.v2.u32 [s], {%r1, %r1}; @!%p1 ld.shared.u32 %r3, [s+4];",
    "shfl no sync": "st.shared.u32 [%rd3], %r1; shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1; ld.shared.u32 %r4, [%rd7];",
    "vote no sync": "st.shared.u32 [%rd3], %r1; vote.sync.any.pred %p2, %p1, -1; ld.shared.u32 %r4, [%rd7];",
    "warp sync across warps": """xor.b32 %r15,%r1,32; mul.wide.u32 %rd7,%r15,4; add.u64 %rd7,%rd7,%rd4;
        st.shared.u32 [%rd3], %r1;
        bar.warp.sync -1; ld.shared.u32 %r4, [%rd7];""",
    "arrive then write": """setp.lt.u32 %p2, %r1, 32; @%p2 bra P; bar.sync 1, 64; ld.shared.u32 %r3, [%rd7+-128]; ret;
        P: bar.arrive 1, 64; st.shared.u32 [%rd3], 1;""",
    "different named barriers": """setp.lt.u32 %p2, %r1, 32; @%p2 bra P; bar.sync 1, 32; ld.shared.u32 %r3, [%rd7+-128]; ret;
        P: st.shared.u32 [%rd3], 1; bar.sync 2, 32;""",
    "same value waw": "st.shared.u32 [s], 1;",
    "atom b64 vs b32": "@%p1 atom.shared.add.u64 %rd8, [s], 1; @!%p1 atom.shared.add.u32 %r3, [s], 1;",
    "vec atomics": "mov.u16 %h1, 1; @%p1 st.shared.u16 [s+2], %h1; @!%p1 ld.shared.u8 %r3, [s+2];",
}

OTHERS_ORDERED = {
    "generic vs shared ok": "cvta.shared.u64 %rd8, %rd7; st.shared.u32 [%rd3], 1; bar.sync 0; ld.u32 %r3, [%rd8];",
    "relaxed both": "@%p1 st.relaxed.cta.shared.u32 [s], 1; @!%p1 ld.relaxed.cta.shared.u32 %r3, [s];",
    "volatile vs relaxed": "@%p1 st.volatile.shared.u32 [s], 1; @!%p1 ld.relaxed.cta.shared.u32 %r3, [s];",
    "red vs ld relaxed": "red.shared.add.u32 [s], 1; @%p1 ld.relaxed.gpu.shared.u32 %r3, [s];",
    "atom add only": "atom.shared.add.u32 %r3, [s], 1;",
    "vec disjoint": "@%p1 st.shared.v2.u32 [s], {%r1, %r1}; @!%p1 ld.shared.u32 %r3, [s+8];",
    "warp sync": "st.shared.u32 [%rd3], %r1; bar.warp.sync -1; ld.shared.u32 %r4, [%rd7];",
    "arrive/sync": """setp.lt.u32 %p2, %r1, 32; @%p2 bra P; bar.sync 1, 64; ld.shared.u32 %r3, [%rd7+-128]; ret;
        P: st.shared.u32 [%rd3], 1; bar.arrive 1, 64;""",
    "arrive/sync double": """setp.lt.u32 %p2, %r1, 32; mov.u32 %r5, 0; @%p2 bra P; bar.arrive 2, 64; C: bar.sync 1, 64;
        ld.shared.u32 %r3, [%rd7+-128]; bar.arrive 2, 64; add.u32 %r5,%r5,1; setp.lt.u32 %p3,%r5,3;
        @%p3 bra C; ret; P: bar.sync 2, 64; st.shared.u32 [%rd3], %r5; bar.arrive 1, 64; add.u32 %r5,%r5,1;
        setp.lt.u32 %p3,%r5,3; @%p3 bra P; bar.sync 2, 64;""",
    "global per cta": "st.global.u32 [%rd6], 1;",
    "bytes disjoint": "mov.u16 %h1, 1; @%p1 st.shared.u8 [s+2], %h1; @!%p1 ld.shared.u8 %r3, [s+3];",
}


@pytest.mark.parametrize("body", MBARRIERS_RACING.values(), ids=MBARRIERS_RACING)
def test_what_mbarriers_do_not_order(body):
    assert len(hazards(body)) >= 1


@pytest.mark.parametrize("body", COPIES_RACING.values(), ids=COPIES_RACING)
def test_what_asynchronous_copies_do_not_order(body):
    assert len(hazards(body)) >= 1


@pytest.mark.parametrize("body", OTHERS_RACING.values(), ids=OTHERS_RACING)
def test_what_the_rest_do_not_order(body):
    assert len(hazards(body)) >= 1


@pytest.mark.parametrize("body", MBARRIERS_ORDERED.values(), ids=MBARRIERS_ORDERED)
def test_what_mbarriers_order(body):
    assert hazards(body) == []


@pytest.mark.parametrize("body", COPIES_ORDERED.values(), ids=COPIES_ORDERED)
def test_what_asynchronous_copies_order(body):
    assert hazards(body) == []


@pytest.mark.parametrize("body", OTHERS_ORDERED.values(), ids=OTHERS_ORDERED)
def test_what_the_rest_order(body):
    assert hazards(body) == []


# ── copies in bulk, which go through the async proxy (PTX 9.7.9.25.2) ───────────────────

ONE = "@%p1 mbarrier.init.shared.b64 [bar], 1; @%p1 fence.proxy.async; bar.sync 0; "
FETCH = """@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;
        @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd1], 256, [bar]; """
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %p5, [bar], 0; @!%p5 bra W; "
STORE = "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [s], 256; @%p1 cp.async.bulk.commit_group; "
READ = "@%p1 cp.async.bulk.wait_group.read 0; "
BULK_ORDERED = {
    "a fetch that all wait for": ONE + FETCH + WAIT + "ld.shared.u32 %r3, [%rd3];",
    "a store after the fence": "st.shared.u32 [%rd3], %r1; fence.proxy.async; bar.sync 0; " + STORE + READ,
    "a store after the fence of its thread": "st.shared.u32 [%rd3], %r1; bar.sync 0; fence.proxy.async.shared::cta; "
    + STORE + READ,
    "the source again after it was read": "st.shared.u32 [%rd3], %r1; fence.proxy.async; bar.sync 0; "
    + STORE + READ + "bar.sync 0; st.shared.u32 [%rd3], 5;",
    "the destination after the wait": "st.shared.u32 [%rd3], %r1; fence.proxy.async; bar.sync 0; "
    + STORE + "@%p1 cp.async.bulk.wait_group 0; bar.sync 0; ld.global.u32 %r3, [%rd6];",
}  # fmt: skip
BULK_RACING = {
    "a fetch that nobody waits for": ONE + FETCH + "ld.shared.u32 %r3, [%rd3];",
    "a store without a proxy fence": "st.shared.u32 [%rd3], %r1; bar.sync 0; " + STORE,
    "a fence before the writes": "fence.proxy.async; st.shared.u32 [%rd3], %r1; bar.sync 0; " + STORE,
    "the source again too early": "st.shared.u32 [%rd3], %r1; fence.proxy.async; bar.sync 0; " + STORE
    + "bar.sync 0; st.shared.u32 [%rd3], 5;",
    "the destination after the reading": "st.shared.u32 [%rd3], %r1; fence.proxy.async; bar.sync 0; " + STORE
    + "@%p1 cp.async.bulk.wait_group.read 0; bar.sync 0; ld.global.u32 %r3, [%rd6];",
    "copies of 4 bytes are waited for in vain": "st.shared.u32 [%rd3], %r1; fence.proxy.async; bar.sync 0; " + STORE
    + "@%p1 cp.async.wait_all; bar.sync 0; ld.global.u32 %r3, [%rd6];",
}  # fmt: skip


@pytest.mark.parametrize("body", BULK_ORDERED.values(), ids=BULK_ORDERED)
def test_what_orders_copies_in_bulk(body):
    assert hazards(body) == []


@pytest.mark.parametrize("body", BULK_RACING.values(), ids=BULK_RACING)
def test_what_does_not_order_copies_in_bulk(body):
    assert len(hazards(body)) == 1
