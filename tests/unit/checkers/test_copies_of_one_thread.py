"""What a wait orders is the work that it waits for, and no other work of the same thread (PTX 8.9.1.1, 9.7.9.25.3, 9.7.16.6).

Each kernel starts two pieces of asynchronous work and waits for one or both of them: by their mbarriers, groups or commits.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

COPIES = {
    "bulk": (
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%i], 16, [bar];",
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile+16], [%i+16], 16, [bar+8];",
    ),
    "values": (
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [tile], {1, 2, 3, 4}, [bar];",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [tile+16], {1, 2, 3, 4}, [bar+8];",
    ),
    "sums": (
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [tile], 1, [bar];",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [tile+16], 1, [bar+8];",
    ),
}
BYTES = {"bulk": 16, "values": 16, "sums": 4}
FIRST, SECOND = "ld.shared.b32 %v, [tile];", "ld.shared.b32 %v, [tile+16];"


def wait(number: int, phase: int = 0) -> str:
    again = f"again{number}{phase}"
    return f"{again}: mbarrier.try_wait.parity.shared::cta.b64 %p, [bar+{8 * number}], {phase}; @!%p bra {again};"


def arm(number: int, size: int) -> str:
    return f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar+{8 * number}], {size};"


def source(*lines: str) -> str:
    body = "\n".join(lines)
    return f"""
        .version 8.6
        .target sm_100a
        .address_size 64
        .visible .entry k(.param .u64 in)
        {{
        .reg .b64 %i, %d; .reg .b32 %v, %t; .reg .pred %p;
        .shared .align 128 .b8 tile[1024];
        .shared .align 8 .b64 bar[4];
        .shared .align 4 .b32 at;
        ld.param.u64 %i, [in];
        mov.u32 %v, %tid.x;
        setp.eq.u32 %p, %v, 0;
        @%p mbarrier.init.shared::cta.b64 [bar], 1;
        @%p mbarrier.init.shared::cta.b64 [bar+8], 1;
        {body}
        ret;
        }}"""


def findings(*lines: str, block: int = 1, when: str = "early", check: tuple[str, ...] = ("race", "sync")):
    kernel = ptxvm.load(source(*lines)).kernel("k")
    return kernel.launch(1, block, [np.zeros(64, np.uint32)], check=check, asynchronous=when, engine="interp").findings


def line(lines: tuple[str, ...], wanted: str) -> int:
    return 1 + next(n for n, text in enumerate(source(*lines).splitlines()) if text.strip() == wanted)


@pytest.mark.parametrize("when", ["early", "late"])
@pytest.mark.parametrize("kind", COPIES)
@pytest.mark.parametrize(("waited", "use"), [(1, FIRST), (0, SECOND)], ids=["the later", "the earlier"])
def test_an_mbarrier_tells_the_end_of_its_own_transfers(kind, waited, use, when):
    one, other = COPIES[kind]
    copies = (arm(0, BYTES[kind]), arm(1, BYTES[kind]), one, other)
    assert findings(*copies, wait(0), wait(1), FIRST, SECOND, when=when) == []
    lines = (*copies, wait(waited), use)
    (found,) = findings(*lines, when=when)
    assert found.kind == "race"
    assert [each.line for each in found.accesses] == [line(lines, one if use == FIRST else other), line(lines, use)]


@pytest.mark.parametrize("when", ["early", "late"])
def test_a_phase_tells_the_end_of_the_transfers_that_it_counts(when):
    one, other = COPIES["bulk"]
    again = other.replace("[bar+8]", "[bar]")
    both = (arm(0, 32), one, again, wait(0), FIRST, SECOND)
    assert findings(*both, when=when) == []
    lines = (arm(0, 16), one, wait(0), FIRST, arm(0, 16), again, SECOND, wait(0, 1))
    (found,) = findings(*lines, when=when)
    assert [each.line for each in found.accesses] == [line(lines, again), line(lines, SECOND)]


def test_what_a_thread_knew_when_it_started_a_transfer_is_over_with_it():
    one, other = COPIES["bulk"]
    assert findings(arm(0, 16), one, wait(0), arm(1, 16), other, wait(1), FIRST, SECOND) == []


CP_ASYNC = "cp.async.ca.shared.global [tile+32], [%i+32], 16;"
ARRIVE = "cp.async.mbarrier.arrive.noinc.shared.b64 [bar+8];"
THIRD = "ld.shared.b32 %v, [tile+32];"


def test_the_mbarrier_of_a_bulk_copy_tells_nothing_of_other_copies():
    bulk = COPIES["bulk"][0]
    assert findings(arm(0, 16), CP_ASYNC, bulk, "cp.async.wait_all;", wait(0), FIRST, THIRD) == []
    lines = (arm(0, 16), CP_ASYNC, bulk, wait(0), THIRD)
    (found,) = findings(*lines)
    assert [each.line for each in found.accesses] == [line(lines, CP_ASYNC), line(lines, THIRD)]


@pytest.mark.parametrize("when", ["early", "late"])
def test_an_arrival_behind_copies_tells_nothing_of_bulk_copies(when):
    bulk = COPIES["bulk"][0]
    assert findings(arm(0, 16), bulk, CP_ASYNC, ARRIVE, wait(0), wait(1), FIRST, THIRD, when=when) == []
    lines = (arm(0, 16), bulk, CP_ASYNC, ARRIVE, wait(1), FIRST)
    (found,) = findings(*lines, when=when)
    assert [each.line for each in found.accesses] == [line(lines, bulk), line(lines, FIRST)]


BULK_STORE = "cp.async.bulk.global.shared::cta.bulk_group [%i+{to}], [tile+{at}], 16;"
WRITE = "st.shared.b32 [tile+16], 7;"


def test_the_mbarrier_of_a_bulk_copy_tells_nothing_of_bulk_groups():
    stores = (BULK_STORE.format(at=16, to=128), "cp.async.bulk.commit_group;")
    load = (arm(0, 16), COPIES["bulk"][0], wait(0))
    assert findings(*stores, *load, "cp.async.bulk.wait_group.read 0;", WRITE) == []
    lines = (*stores, *load, WRITE)
    (found,) = findings(*lines)
    assert (found.kind, found.hazard) == ("race", "WAR")
    assert [each.line for each in found.accesses] == [line(lines, stores[0]), line(lines, WRITE)]


@pytest.mark.parametrize(("left", "races"), [(0, False), (1, True)])
def test_a_wait_for_an_older_group_says_nothing_of_the_same_instruction_in_a_later_one(left, races):
    store = BULK_STORE.format(at=16, to=128)
    lines = (
        "mov.b32 %t, 0;", f"loop: {store}", "cp.async.bulk.commit_group;", "add.u32 %t, %t, 1;", "setp.lt.u32 %p, %t, 2;",
        "@%p bra loop;", f"cp.async.bulk.wait_group.read {left};", WRITE,
    )  # fmt: skip
    assert [each.hazard for each in findings(*lines, check=("race",)) if each.space == "shared"] == ["WAR"] * races


TENSOR = (
    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [at], 32; bar.sync 0; ld.shared.b32 %t, [at];",
    "mov.u32 %v, %tid.x; setp.ne.u32 %p, %v, 0; @%p bra done;",
)
FREE = "done: bar.sync 0; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 32;"
COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar+8];"
TENSOR_COPY = (
    "mov.u32 %v, tile; shr.u32 %v, %v, 4; cvt.u64.u32 %d, %v; or.b64 %d, %d, 0x4000; or.b64 %d, %d, 0x0000400800010000;",
    "tcgen05.cp.cta_group::1.32x128b.warpx4 [%t], %d;",
)


@pytest.mark.parametrize("when", ["early", "late"])
def test_a_commit_tells_nothing_of_bulk_copies(when):
    bulk = COPIES["bulk"][1].replace("tile+16", "tile+768").replace("[bar+8]", "[bar]")
    use = "ld.shared.b32 %v, [tile+768];"
    work = (*TENSOR, arm(0, 16), bulk, *TENSOR_COPY, COMMIT)
    assert findings(*work, wait(1), wait(0), use, FREE, block=32, when=when, check=("race",)) == []
    lines = (*work, wait(1), use, wait(0), FREE)
    (found,) = findings(*lines, block=32, when=when, check=("race",))
    assert [each.line for each in found.accesses] == [line(lines, bulk), line(lines, use)]


MULTICAST = """
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 in) .reqnctapercluster 2
{{
    .reg .b64 %i; .reg .b32 %v, %rank, %at; .reg .pred %p, %first;
    .shared .align 128 .b8 tile[64];
    .shared .align 8 .b64 bar;
    ld.param.u64 %i, [in];
    mov.u32 %rank, %cluster_ctarank;
    mbarrier.init.shared::cta.b64 [bar], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
    barrier.cluster.arrive; barrier.cluster.wait;
    setp.eq.u32 %first, %rank, 0;
    @%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], [%i], 16, [bar], 3;
    again: mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0; @!%p bra again;
    {use}
    barrier.cluster.arrive; barrier.cluster.wait;
    ret;
}}
"""


@pytest.mark.parametrize(("rank", "races"), [("%rank", False), ("1", True)])
def test_the_mbarrier_of_a_cta_tells_the_end_of_a_multicast_there(rank, races):
    use = f"mapa.shared::cluster.u32 %at, tile, {rank}; ld.shared::cluster.b32 %v, [%at];"
    kernel = ptxvm.load(MULTICAST.format(use=use)).kernel("k")
    found = kernel.launch(2, 1, [np.zeros(4, np.uint32)], check=("race",), engine="interp").findings
    assert [each.hazard for each in found] == ["RAW"] * races


PASSED_ON = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 in)
{{
    .reg .b32 %t, %v; .reg .pred %p, %first;
    .shared .align 8 .b64 bar;
    .shared .b32 value[32];
    mov.u32 %t, %tid.x;
    setp.eq.u32 %first, %t, 0;
    @%first mbarrier.init.shared::cta.b64 [bar], 32;
    bar.sync 0;
    setp.lt.u32 %first, %t, 32;
    @!%first bra reader;
    shl.b32 %v, %t, 2; mov.u32 %t, value; add.u32 %t, %t, %v;
    st.shared.b32 [%t], 1;
    mbarrier.arrive.shared::cta.b64 _, [bar];
    bra done;
reader:
    again: mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
    {use}
    ld.shared.b32 %v, [value];
done:
    ret;
}}
"""


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(("use", "races"), [("@!%p bra again;", False), ("", True), ("selp.b32 %v, 1, 0, %p;", True)])
def test_a_test_whose_result_has_no_effect_orders_nothing(use, races, engine):
    kernel = ptxvm.load(PASSED_ON.format(use=use)).kernel("k")
    found = kernel.launch(1, 64, [np.zeros(4, np.uint32)], check=("race",), engine=engine).findings
    assert [each.hazard for each in found] == ["RAW"] * races
