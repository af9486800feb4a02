"""`mbarrier.inval` after what other lanes have done with the mbarrier (PTX 9.7.13.15.3 and 9.7.13.15.10).

An arrival has to come before it in causality order (PTX 8.9.5): `bar.warp.sync` and barriers order the two, other collectives
wait for the lanes and order no memory operation (PTX 9.7.13.2).  Of a test, the result decides whether its lane goes on: it
cannot come after what the lanes have waited for (PTX 8.10.4).
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm
from ptxvm.diagnostics.diagnostic import Severity

HEAD = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data)
{
    .shared .align 8 .b64 bar;
    .shared .b32 left;
    .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 31;
    setp.eq.u32 %p1, %r1, 0;
    setp.eq.u32 %p2, %r2, 0;
    @%p1 st.shared.u32 [left], 0;
    mov.u32 %r5, %ntid.x;
    @%p1 mbarrier.init.shared.b64 [bar], %r5;
    bar.sync 0;
"""
ARRIVE = "mbarrier.arrive.shared.b64 _, [bar];\n"
PHASE = ARRIVE + "wait: mbarrier.test_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra wait;\n"
LOOK = "mbarrier.test_wait.parity.shared.b64 %p3, [bar], 1;\n"  # at the phase before, with a result that nothing uses
MATCH = "match.any.sync.b32 %r3, 5, -1;\n"
SHUFFLE = "shfl.sync.idx.b32 %r3, %r1, 0, 31, -1;\n"
HALF = "setp.lt.u32 %p3, %r2, 16; @!%p3 bra on; vote.sync.any.pred %p3, %p1, 0xffff; on:\n"
ORDERED = "bar.warp.sync -1;\n"
INVALIDATE = "@%p1 mbarrier.inval.shared.b64 [bar];\n"
COUNT = "@!%p2 bra out;\natom{}.shared.add.u32 %r4, [left], 1;\nsetp.eq.u32 %p1, %r4, 1;\n"  # the last warp invalidates
ONLY, RACE = "unordered-invalidation", "race"


CASES = {
    # tests, after arrivals that they have found
    "test": (PHASE + INVALIDATE, 32, [RACE]),
    "test, shfl": (PHASE + SHUFFLE + INVALIDATE, 32, []),
    "test, match": (PHASE + MATCH + INVALIDATE, 32, []),
    "test, vote of other lanes": (PHASE + HALF + INVALIDATE, 32, [RACE]),
    "test without effect, shfl": (LOOK + SHUFFLE + INVALIDATE, 32, [ONLY]),
    # arrivals that no test has found
    "arrival": (ARRIVE + INVALIDATE, 32, [RACE]),
    "arrival, match": (ARRIVE + MATCH + INVALIDATE, 32, [ONLY]),
    "arrival, shfl": (ARRIVE + SHUFFLE + INVALIDATE, 32, [ONLY]),
    "arrival, bar.warp": (ARRIVE + ORDERED + INVALIDATE, 32, []),
    "arrival, vote of other lanes": (ARRIVE + HALF + INVALIDATE, 32, [RACE]),
    "arrival, barrier": (ARRIVE + "bar.sync 0;\n" + INVALIDATE, 64, []),
    # the other warp: how far its lanes have come passes on by release and acquire
    "two warps": (ARRIVE + MATCH + INVALIDATE, 64, [RACE]),
    "two warps, acq_rel": (ARRIVE + MATCH + COUNT.format(".acq_rel.cta") + INVALIDATE, 64, [ONLY]),
    "two warps, bar.warp, acq_rel": (ARRIVE + ORDERED + COUNT.format(".acq_rel.cta") + INVALIDATE, 64, []),
    "two warps, test, acq_rel": (PHASE + MATCH + COUNT.format(".acq_rel.cta") + INVALIDATE, 64, []),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize("name", CASES)
def test_what_comes_before_an_invalidation(name, engine):
    body, block, found = CASES[name]
    kernel = ptxvm.load(f"{HEAD}{body}\nout: ret;\n}}\n").kernel()
    findings = kernel.launch(1, block, [np.zeros(1, np.uint32)], engine=engine, check=("race",)).findings
    assert [each.code for each in findings] == found
    assert all((each.severity is Severity.WARNING) == (each.code == ONLY) for each in findings)


def test_other_accesses_are_not_ordered_by_a_collective():
    store = "st.shared.u32 [left], %r1;\n"
    kernel = ptxvm.load(f"{HEAD}{PHASE}@%p1 {store}{SHUFFLE}{INVALIDATE}@!%p1 {store}\nout: ret;\n}}\n").kernel()
    assert RACE in [each.code for each in kernel.launch(1, 32, [np.zeros(1, np.uint32)], check=("race",)).findings]


def test_the_warning_gives_way_to_a_race_of_the_same_instructions():
    again = "mov.u32 %r6, 0;\nagain: " + ARRIVE + "setp.eq.u32 %p3, %r6, 0; @%p3 " + MATCH
    body = again + INVALIDATE + "bar.sync 0;\n@%p1 mbarrier.init.shared.b64 [bar], 32;\nbar.sync 0;\n"
    body += "add.u32 %r6, %r6, 1; setp.lt.u32 %p3, %r6, 2; @%p3 bra again;\n"
    kernel = ptxvm.load(f"{HEAD}{body}\nout: ret;\n}}\n").kernel()
    (found,) = kernel.launch(1, 32, [np.zeros(1, np.uint32)], check=("race",)).findings
    assert found.code == RACE
