"""When asynchronous work ends: `asynchronous=` of a launch, and what a kernel without a wait sees (PTX 9.7.9.25, 9.7.15.7)."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import ptxvm

ENGINES = ["interp", "jit"]
COPY = """
    .version 8.6
    .target sm_100a
    .address_size 64
    .visible .entry k(.param .u64 in, .param .u64 out)
    {
    .reg .b64 %i, %o; .reg .b32 %s, %v, %bar; .reg .pred %done;
    .shared .align 16 .b8 tile[64];
    ld.param.u64 %i, [in]; ld.param.u64 %o, [out];
    mov.u32 %s, tile; add.u32 %bar, %s, 32; st.shared.b32 [%s], 7;
    mbarrier.init.shared::cta.b64 [%bar], 1;
    START
    ld.shared.b32 %v, [%s]; st.global.b32 [%o], %v;
    WAIT
    ld.shared.b32 %v, [%s]; st.global.b32 [%o+4], %v;
    ret;
    }"""
KINDS = {
    "cp.async": ("cp.async.ca.shared.global [%s], [%i], 16; cp.async.commit_group;", "cp.async.wait_group 0;"),
    "bulk": (
        """mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 16;
        cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%s], [%i], 16, [%bar];""",
        "wait: mbarrier.try_wait.parity.shared::cta.b64 %done, [%bar], 0; @!%done bra wait;",
    ),
}


GROUPS = """
    .version 8.6
    .target sm_90
    .address_size 64
    .visible .entry k(.param .u64 in, .param .u64 out)
    {
    .reg .b64 %i, %o; .reg .b32 %s, %a, %b, %t; .shared .align 16 .b8 tile[1024]; .reg .pred %even, %done; .shared .b64 bar;
    ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mov.u32 %s, tile;
    mad.lo.u32 %s, %t, 16, %s; mad.wide.u32 %i, %t, 16, %i; mad.wide.u32 %o, %t, 8, %o;
    st.shared.v2.b32 [%s], {7, 7};
    BODY
    ld.shared.v2.b32 {%a, %b}, [%s]; st.global.v2.b32 [%o], {%a, %b};
    ret;
    }"""
PARTS = "cp.async.ca.shared.global [%s], [%i], 4; cp.async.commit_group; cp.async.ca.shared.global [%s+4], [%i+4], 4;"
BODIES = {  # what lanes see of the first and the second copy: 7 is old, 100 times the lane is new
    "the first of two groups": (f"{PARTS} cp.async.commit_group; cp.async.wait_group 1;", (True, False)),
    "all groups": (f"{PARTS} cp.async.commit_group; cp.async.wait_group 0;", (True, True)),
    "what is in no group": (f"{PARTS} cp.async.wait_group 0;", (True, False)),
    "what is in no group, too": (f"{PARTS} cp.async.wait_all;", (True, True)),
    "of no lane": (f"{PARTS} cp.async.commit_group;", (False, False)),
    "an arrival behind copies": (
        f"""setp.eq.u32 %even, %t, 0; @%even mbarrier.init.shared.b64 [bar], 32; bar.sync 0;
        {PARTS} cp.async.mbarrier.arrive.noinc.shared.b64 [bar];
        wait: mbarrier.test_wait.parity.shared.b64 %done, [bar], 0; @!%done bra wait;""",
        (True, True),
    ),
}  # fmt: skip
PRODUCT = """
    .version 8.6
    .target sm_90a
    .address_size 64
    .visible .entry k(.param .u64 out)
    {
    .reg .b64 %o, %m; .reg .b32 %t, %s; .reg .f32 %d<4>; .reg .pred %p;
    .shared .align 128 .b8 tile[4096];
    ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mov.u32 %s, tile; mad.lo.u32 %s, %t, 16, %s;
    st.shared.v4.b32 [%s], {0x3c003c00, 0x3c003c00, 0x3c003c00, 0x3c003c00};
    st.shared.v4.b32 [%s+2048], {0x3c003c00, 0x3c003c00, 0x3c003c00, 0x3c003c00};
    fence.proxy.async; bar.sync 0;
    mov.u32 %s, tile; shr.u32 %s, %s, 4; cvt.u64.u32 %m, %s; or.b64 %m, %m, 0x0000000800040000;
    mov.f32 %d0, 0f40000000; mov.f32 %d1, 0f40000000; mov.f32 %d2, 0f40000000; mov.f32 %d3, 0f40000000;
    setp.eq.u32 %p, 0, 0;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %m, %m, %p, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %m, %m, %p, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    mad.wide.u32 %o, %t, 4, %o;
    WAIT
    st.global.f32 [%o], %d0;
    wgmma.wait_group.sync.aligned 0;
    st.global.f32 [%o+512], %d3;
    ret;
    }"""
STORED = """
    .version 8.6
    .target sm_90
    .address_size 64
    .visible .entry k(.param .u64 out)
    {
    .reg .b64 %o; .reg .b32 %c; .shared .align 16 .b32 tile[4];
    ld.param.u64 %o, [out]; mov.u32 %c, %ctaid.x; mad.wide.u32 %o, %c, 16, %o; add.u32 %c, %c, 1;
    st.shared.v4.b32 [tile], {%c, %c, %c, %c};
    fence.proxy.async;
    cp.async.bulk.global.shared::cta.bulk_group [%o], [tile], 16;
    cp.async.bulk.commit_group;
    ret;
    }"""
WRONG = """
    .version 8.6
    .target sm_90
    .address_size 64
    .visible .entry k(.param .u64 in, .param .u64 out)
    {
    .reg .b64 %i, %o; .reg .b32 %s, %t; .shared .align 16 .b8 tile[1024];
    ld.param.u64 %i, [in]; mov.u32 %t, %tid.x; mov.u32 %s, tile; mad.lo.u32 %s, %t, 16, %s; mad.wide.u32 %i, %t, 16, %i;
    cp.async.cg.shared.global [%s], [%i], 16;
    cp.async.commit_group; cp.async.wait_group 0;
    ret;
    }"""


def run(kind: str, asynchronous: str | None, seed: int | None = None, engine: str = "interp") -> list[int]:
    """What is read before the wait, and after it: 7 is old, 42 the copy."""
    start, wait = KINDS[kind]
    out = np.zeros(2, np.uint32)
    ptxvm.load(COPY.replace("START", start).replace("WAIT", wait)).kernel("k").launch(
        args=[np.full(4, 42, np.uint32), out], asynchronous=asynchronous, seed=seed, engine=engine
    )
    return out.tolist()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_work_ends_at_its_start_or_at_the_wait(kind, engine):
    assert run(kind, "early", engine=engine) == [42, 42]
    assert run(kind, "late", engine=engine) == [7, 42]


@pytest.mark.parametrize("engine", ENGINES)
def test_random_work_ends_at_any_time_by_its_seed(engine):
    """The same seed gives the same run; after the wait the copy is there."""
    steps = " ".join(f"bra on{n}; on{n}:" for n in range(8))  # of the interpreter's schedule
    kernel = ptxvm.load(COPY.replace("START", KINDS["bulk"][0] + steps).replace("WAIT", KINDS["bulk"][1])).kernel("k")
    seen = []
    for seed in range(8):
        out = np.zeros(2, np.uint32)
        args = [np.full(4, 42, np.uint32), out]
        kernel.launch(args=args, asynchronous="random", seed=seed, engine=engine)
        first = out.tolist()
        kernel.launch(args=args, asynchronous="random", seed=seed, engine=engine)
        assert out.tolist() == first
        assert first[1] == 42
        seen.append(first[0])
    assert set(seen) == {7, 42}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("body", BODIES)
def test_a_wait_is_for_groups_of_each_lane(body, engine):
    text, ended = BODIES[body]
    out = np.zeros((32, 2), np.uint32)
    data = np.repeat(np.arange(32, dtype=np.uint32) * 100, 4)
    ptxvm.load(GROUPS.replace("BODY", text)).kernel("k").launch(1, 32, [data, out], asynchronous="late", engine=engine)
    for copy, there in zip(out.T, ended, strict=True):
        assert copy.tolist() == (data[::4] if there else np.full(32, 7)).tolist()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("wait", ["", "wgmma.wait_group.sync.aligned 1;", "wgmma.wait_group.sync.aligned 0;"])
def test_a_product_changes_its_registers_at_a_wait(wait, engine):
    """Each adds 16 to 2: without a wait there is the old sum, and behind a wait for the first group that of one product."""
    out = np.zeros((2, 128), np.float32)
    ptxvm.load(PRODUCT.replace("WAIT", wait)).kernel("k").launch(1, 128, [out], asynchronous="late", engine=engine)
    assert out[0].tolist() == [{"": 2, "1": 18, "0": 34}[wait[-2:-1]]] * 128
    assert out[1].tolist() == [34] * 128


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("asynchronous", ["late", "random"])
def test_a_store_that_nothing_waits_for_has_ended_behind_the_grid(asynchronous, engine):
    """It reads the shared memory of a CTA that has ended before the next one gets it."""
    out = np.zeros((64, 4), np.uint32)
    ptxvm.load(STORED).kernel("k").launch(64, 1, [out], asynchronous=asynchronous, engine=engine)
    assert out.tolist() == [[n + 1] * 4 for n in range(64)]


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_wrong_is_a_fault_of_the_instruction_that_starts_it(engine):
    kernel = ptxvm.load(WRONG).kernel("k")
    with pytest.raises(ptxvm.Fault, match="out-of-bounds") as caught:
        kernel.launch(1, 32, [np.zeros(4 * 20, np.uint32), np.zeros(1)], asynchronous="late", engine=engine)
    assert caught.value.place.line == 9
    assert caught.value.place.thread == (20, 0, 0)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("asynchronous", [None, "late"])
def test_a_matrix_beyond_shared_memory_is_a_fault_of_the_product(asynchronous, engine):
    """B reaches 128 bytes behind the end: the fault is of the first lane of a warp, which reads for all of them."""
    kernel = ptxvm.load("""
        .version 8.0
        .target sm_90a
        .address_size 64
        .visible .entry k()
        {
        .reg .b64 %a, %b; .reg .b32 %s; .reg .f32 %d<4>;
        .shared .align 128 .b8 tile[2048];
        mov.u32 %s, tile; shr.u32 %s, %s, 4; cvt.u64.u32 %a, %s;
        add.u64 %a, %a, 0x1000080000; add.u64 %b, %a, 120;  // the second eight depths are 128 bytes behind the first
        mov.f32 %d0, 0f00000000; mov.f32 %d1, %d0; mov.f32 %d2, %d0; mov.f32 %d3, %d0;
        wgmma.fence.sync.aligned;
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %a, %b, 1, 1, 1, 0, 0;
        wgmma.commit_group.sync.aligned;
        wgmma.wait_group.sync.aligned 0;
        ret;
        }""").kernel("k")
    with pytest.raises(ptxvm.Fault, match=r"0x800 of \.shared: the shared memory has 2048 bytes") as caught:
        kernel.launch(grid=1, block=128, args=[], engine=engine, asynchronous=asynchronous)
    assert caught.value.place.line == 13
    assert caught.value.place.thread[0] % 32 == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_late_work_ends_where_a_thread_looks_for_it_in_memory(engine):
    """No wait that the machine knows: after some time the copy ends, or the loop would never."""
    start, _ = KINDS["cp.async"]
    text = COPY.replace("START", start).replace(
        "WAIT", "{ .reg .pred %p; spin: ld.volatile.shared.b32 %v, [%s]; setp.eq.u32 %p, %v, 7; @%p bra spin; }"
    )
    out = np.zeros(2, np.uint32)
    ptxvm.load(text).kernel("k").launch(args=[np.full(4, 42, np.uint32), out], asynchronous="late", engine=engine)
    assert out.tolist() == [7, 42]


HEAD = """
    .version 8.6
    .target sm_90
    .address_size 64
    .visible .entry k(.param .u64 in, .param .u64 out)
    {
    .reg .b64 %i, %o; .reg .b32 %s, %t, %v, %a, %c; .reg .pred %even, %low; .shared .align 16 .b8 tile[5120];
    ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mad.lo.u32 %c, %c, 40, %t;
    mad.wide.u32 %i, %c, 128, %i; mad.wide.u32 %o, %c, 4, %o; mov.u32 %s, tile; mad.lo.u32 %s, %t, 128, %s;
    mov.u32 %a, 7; and.b32 %v, %t, 1; setp.eq.u32 %even, %v, 0; setp.lt.u32 %low, %t, 11;
"""


def random_copies(random: Random) -> str:
    """A kernel that copies, groups and waits in any order, some of it for some lanes, and reads what may be under way."""
    lines = []
    for n in range(random.randint(6, 16)):
        slot, guard = random.randrange(8) * 16, random.choice(["", "", "@%even ", "@!%even ", "@%low "])
        size, source = random.choice([4, 8, 16]), random.randrange(8) * 16
        part = random.choice(["", "", f", {random.choice([0, 1, 3, size])}"])
        left = random.randrange(3)
        lines.append(random.choice([
            *[f"{guard}cp.async.ca.shared.global [%s+{slot}], [%i+{source}], {size}{part};"] * 6,
            *[f"{guard}cp.async.commit_group;", f"{guard}cp.async.wait_group {left};"] * 2, f"{guard}cp.async.wait_all;",
            f"st.shared.b32 [%s+{slot}], {n};", f"ld.shared.b32 %v, [%s+{slot}]; mad.lo.u32 %a, %a, 31, %v;", "bar.sync 0;",
            f"{{ @%low bra on{n}; cp.async.commit_group; cp.async.wait_group {left}; on{n}: }}",
        ]))  # fmt: skip
    dump = [f"ld.shared.b32 %v, [%s+{4 * n}]; mad.lo.u32 %a, %a, 17, %v;" for n in range(32)]
    return "\n".join([HEAD, *lines, *dump, "st.global.b32 [%o], %a; ret; }"])


@pytest.mark.parametrize("number", range(4))
def test_the_engines_agree_on_what_late_copies_leave(number, rng):
    """Where no lane looks for an mbarrier, late work ends at waits alone."""
    kernel = ptxvm.load(random_copies(Random(int(rng.integers(1 << 32)) + number))).kernel("k")
    data = rng.integers(0, 1 << 32, (120, 32), np.uint32)
    found = {engine: np.zeros(120, np.uint32) for engine in ENGINES}
    for engine, out in found.items():
        kernel.launch(3, 40, [data, out], asynchronous="late", engine=engine, steps=100_000)
    assert found["jit"].tolist() == found["interp"].tolist()


def test_the_automatic_engine_compiles(monkeypatch):
    launched = []
    monkeypatch.setattr(
        "ptxvm.engine.interp.engine.Interpreter.launch",
        lambda *_, **__: launched.append("interp") or pytest.fail("the JIT can run it"),
    )
    assert run("cp.async", "late", engine="auto") == [7, 42]
    assert not launched
    with pytest.raises(ValueError, match="early"):
        run("cp.async", "soon")


def test_the_interpreter_counts_work_that_ends_late():
    kernel = ptxvm.load(GROUPS.replace("BODY", PARTS)).kernel("k")
    args = [np.zeros(4, np.uint32), np.zeros(2, np.uint32)]
    counted = kernel.launch(args=args, asynchronous="late", profile=True).profile
    assert (counted.engine, counted.uncounted) == ("interp", "asynchronous work that ends late")
    with pytest.raises(ptxvm.Unsupported, match="a profile of asynchronous work that ends at random on the JIT"):
        kernel.launch(args=args, asynchronous="random", profile=True, engine="jit")
    copies_nothing = ptxvm.load(GROUPS.replace("BODY", "")).kernel("k")
    assert copies_nothing.launch(args=args, asynchronous="late", profile=True).profile.engine == "jit"


@pytest.mark.parametrize("engine", ["auto", "jit", "interp"])
@pytest.mark.parametrize("asynchronous", ["late", "random"])
def test_checks_follow_work_that_ends_late(asynchronous, engine):
    """The read comes before the wait for the copy (PTX 9.7.9.25.2): it sees what was there, and races."""
    kernel = ptxvm.load(COPY.replace("START", KINDS["bulk"][0]).replace("WAIT", KINDS["bulk"][1])).kernel("k")
    out = np.zeros(2, np.uint32)
    found = kernel.launch(
        args=[np.full(4, 42, np.uint32), out], asynchronous=asynchronous, check="race", engine=engine
    ).findings
    assert {finding.code for finding in found} == {"race"}
    assert out[0] == 7 or asynchronous == "random"


HANDED_OVER = {
    "nothing that the schedule changes": ("", ("race", "memory"), ""),
    "an atomic": ("atom.shared.add.u32 %a, [tile+1020], 0;", ("race", "memory"), "depends on the schedule"),
    "no check for races": ("", ("memory",), "asynchronous work ends late"),
}


@pytest.mark.parametrize(("more", "checks", "why"), HANDED_OVER.values(), ids=HANDED_OVER)
def test_the_jit_clears_what_copies_cannot_change_and_says_why_it_hands_over(more, checks, why, caplog):
    text, _ = BODIES["all groups"]
    data, out = np.arange(128, dtype=np.uint32), np.zeros((32, 2), np.uint32)
    kernel = ptxvm.load(GROUPS.replace("BODY", text + more)).kernel("k")
    with caplog.at_level("INFO", logger="ptxvm.jit"):
        done = kernel.launch(1, 32, [data, out], asynchronous="late", check=checks, engine="jit")
    assert (done.findings, out.tolist()) == ([], data.reshape(32, 4)[:, :2].tolist())
    said = [each.getMessage() for each in caplog.records if "the exact checker runs" in each.getMessage()]
    assert len(said) == bool(why)
    assert all(why in each for each in said)


def test_products_of_several_functions_are_left_to_the_interpreter():
    """A wait in a function has no registers of its caller to write."""
    start = PRODUCT.index(".visible")
    function = ".func wait() { wgmma.wait_group.sync.aligned 0; ret; }\n"
    text = (PRODUCT[:start] + function + PRODUCT[start:]).replace("WAIT", "call wait;")
    out = np.zeros((2, 128), np.float32)
    kernel = ptxvm.load(text).kernel("k")
    with pytest.raises(ptxvm.Unsupported, match="products in several functions"):
        kernel.launch(1, 128, [out], asynchronous="late", engine="jit")
    kernel.launch(1, 128, [out], asynchronous="late")
    assert out.tolist() == [[34] * 128] * 2
