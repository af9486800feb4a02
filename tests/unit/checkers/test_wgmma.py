"""The race checker and the reads of `wgmma`: a buffer is in use until the group of the product has been waited for."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm
from ptxvm.algebra.state_space import Space

A, B = 0, 2048  # where 64 by 16 and 8 by 16 elements of f16 lie
NO_SWIZZLE = 128 >> 4 << 16 | 256 >> 4 << 32  # K-major: the next eight columns, the next eight rows


FENCE = "wgmma.fence.sync.aligned;"
WAIT = "wgmma.wait_group.sync.aligned 0;"


def kernel(before: str, after: str, fence: str = FENCE) -> ptxvm.Kernel:
    """All elements of A and B are 1; `before` and `after` stand around the wait."""
    return ptxvm.load(source(before, after, fence)).kernel("k")


def source(before: str, after: str, fence: str = FENCE) -> str:
    """Two products of one accumulator."""
    return f"""
        .version 8.0
        .target sm_90a
        .address_size 64
        .visible .entry k(.param .u64 out)
        {{
        .reg .b64 %p, %a, %b; .reg .b32 %t, %s, %one; .reg .f32 %d<4>; .reg .pred %first;
        .shared .align 128 .b8 tile[2304];
        mov.u32 %t, %tid.x; mov.u32 %s, tile; mad.lo.u32 %s, %t, 16, %s; mov.b32 %one, 0x3C003C00;
        st.shared.v4.b32 [%s], {{%one, %one, %one, %one}};
        setp.lt.u32 %first, %t, 16;
        @%first st.shared.v4.b32 [%s+{B}], {{%one, %one, %one, %one}};
        mov.f32 %d0, 0f00000000; mov.f32 %d1, %d0; mov.f32 %d2, %d0; mov.f32 %d3, %d0;
        fence.proxy.async;
        bar.sync 0;
        mov.u32 %s, tile; shr.u32 %s, %s, 4;
        cvt.u64.u32 %a, %s; add.u64 %a, %a, {NO_SWIZZLE}; add.u64 %b, %a, {B // 16};
        {fence}
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%d0, %d1, %d2, %d3}}, %a, %b, 1, 1, 1, 0, 0;
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%d0, %d1, %d2, %d3}}, %a, %b, 1, 1, 1, 0, 0;
        wgmma.commit_group.sync.aligned;
        {before}
        wgmma.wait_group.sync.aligned 0;
        {after}
        ld.param.u64 %p, [out]; mad.wide.u32 %p, %t, 4, %p; st.global.f32 [%p], %d0;
        ret;
        }}"""


OVERWRITE = "setp.eq.u32 %first, %t, 0; @%first st.shared.b16 [tile], 0;"
BARRIER = "bar.sync 0;"


def findings(before: str, after: str) -> list[str]:
    result = kernel(before, after).launch(grid=1, block=128, args=[np.zeros(128, np.float32)], check=("race",))
    return [each.kind for each in result.findings]


@pytest.mark.parametrize("between", ["", BARRIER])
def test_a_buffer_may_be_reused_after_the_wait(between):
    """A group is one of the warpgroup: what a warp has waited for has ended for all warps (PTX 9.7.15.7.2 and 9.7.15.7.3)."""
    assert findings("", between + OVERWRITE) == []


@pytest.mark.parametrize(("before", "after"), [(OVERWRITE, ""), (BARRIER + OVERWRITE, "")])
def test_a_buffer_that_is_reused_before_the_wait_is_a_race(before, after):
    assert set(findings(before, after)) == {"race"}


def test_in_a_random_schedule_the_lanes_of_a_warp_come_to_the_wait_in_parts():
    def kinds(before: str, after: str, seed: int) -> set[str]:
        made = kernel(before, after).launch(grid=1, block=128, args=[np.zeros(128, np.float32)], check=("race",), seed=seed)
        return {each.kind for each in made.findings}

    for seed in range(6):
        assert kinds("", OVERWRITE, seed) == set(), seed
        assert kinds(BARRIER + OVERWRITE, "", seed) == {"race"}, seed


@pytest.mark.parametrize("use", ["mov.f32 %d0, 0f00000000;", "mov.b32 %one, %d2;"])
def test_a_register_that_is_used_before_the_wait_is_named(use):
    result = kernel(use, "").launch(grid=1, block=128, args=[np.zeros(128, np.float32)], check=("race",))
    assert [each.kind for each in result.findings] == ["register-in-use"]
    assert "%d" in result.findings[0].message
    assert result.findings[0].line == 1 + source(use, "").splitlines().index(f"        {use}")
    assert findings("", use) == []


def test_a_product_without_a_fence_before_it_is_named():
    """PTX 9.7.15.7.1: before the first product, and after other instructions that use its registers."""
    out = [np.zeros(128, np.float32)]
    (found,) = kernel("", "", fence="").launch(grid=1, block=128, args=out, check=("race",)).findings
    assert (found.kind, "first product" in found.message) == ("missing-fence", True)
    late = "mov.f32 %d2, 0f00000000;"
    (found,) = kernel("", "", fence=FENCE + late).launch(grid=1, block=128, args=out, check=("race",)).findings
    assert (found.kind, "%d2" in found.message) == ("missing-fence", True)
    assert [each.place.text.split()[0] for each in found.accesses] == [
        "mov.f32", "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16",
    ]  # fmt: skip
    assert kernel("", "", fence=late + FENCE).launch(grid=1, block=128, args=out, check=("race",)).findings == []


@pytest.mark.parametrize("asynchronous", ["early", "late", "random"])
def test_the_machine_chooses_when_a_product_ends(asynchronous):
    """A register that is read before the wait has what it had, or the sum of both products, or of one at random."""
    out = np.zeros(128, np.float32)
    kernel("mov.b32 %one, %d0;", "mov.b32 %d0, %one;").launch(
        grid=1, block=128, args=[out], engine="interp", asynchronous=asynchronous, seed=3
    )
    assert set(out.tolist()) <= {"early": {32.0}, "late": {0.0}, "random": {0.0, 16.0, 32.0}}[asynchronous]
    kernel("", "").launch(grid=1, block=128, args=[out], asynchronous=asynchronous)
    assert (out == 32).all()


def test_products_of_one_accumulator_follow_each_other_and_end_late():
    """Until the wait, the interpreter leaves the registers as they were."""
    out = np.zeros(128, np.float32)
    kernel("mov.f32 %d1, %d0;", "").launch(grid=1, block=128, args=[out], engine="interp")
    assert (out == 32).all()
    kernel("", "mov.f32 %d0, %d1;").launch(grid=1, block=128, args=[out])
    assert (out == 32).all()
    early = kernel("mov.b32 %one, %d0;", "mov.b32 %d0, %one;")
    early.launch(grid=1, block=128, args=[out], engine="interp")
    assert (out == 0).all()


def product(size: int, address: str, b: str) -> ptxvm.Kernel:
    """A product in a tile of so many bytes; `address` makes %a, the descriptor of A, from the thread in %t."""
    return ptxvm.load(f"""
        .version 8.0
        .target sm_90a
        .address_size 64
        .visible .entry k()
        {{
        .reg .b64 %a; .reg .b32 %t; .reg .f32 %d<4>;
        .shared .align 128 .b8 tile[{size}];
        mov.u32 %t, %tid.x; {address} add.u64 %a, %a, {NO_SWIZZLE};
        mov.f32 %d0, 0f00000000; mov.f32 %d1, %d0; mov.f32 %d2, %d0; mov.f32 %d3, %d0;
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%d0, %d1, %d2, %d3}}, %a, {b}, 1, 1, 1, 0, 0;
        ret;
        }}""").kernel("k")


def test_a_matrix_outside_of_shared_memory_is_a_fault():
    with pytest.raises(ptxvm.Fault) as fault:
        product(2304, "shr.u32 %t, %t, 5; cvt.u64.u32 %a, %t;", "512").launch(grid=1, block=128)
    assert fault.value.kind == "out-of-bounds"


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_lanes_of_a_warp_share_a_descriptor(engine):
    with pytest.raises(ptxvm.Fault) as fault:
        product(4096, "cvt.u64.u32 %a, %t;", "%a").launch(grid=1, block=128, engine=engine)
    assert fault.value.kind == "invalid-descriptor"


ZEROS = "mov.f32 %d0, 0f00000000; mov.f32 %d1, %d0; mov.f32 %d2, %d0; mov.f32 %d3, %d0;"
SOME = "setp.gt.u32 %first, %t, 999; @%first mov.f32 %d0, 0f00000000;"  # in no thread
ADDS = "%d2, %d3}, %a, %b, 1, 1, 1, 0, 0;"


def unset(zeros: str, enabled: str) -> tuple[str, np.ndarray, list[ptxvm.Finding]]:
    """Two products, of which the first one reads D where `enabled` is not 0: the text, the sums and the findings."""
    first = ADDS.replace("1", "%first", 1)
    text = source("", "", f"setp.ne.u32 %first, {enabled}, 0; {FENCE}").replace(ZEROS, zeros).replace(ADDS, first, 1)
    out = np.zeros(128, np.float32)
    return text, out, ptxvm.load(text).kernel("k").launch(1, 128, [out], check=("init",)).findings


@pytest.mark.parametrize("zeros", ["", SOME])
def test_a_product_that_does_not_add_gives_all_of_d_a_value(zeros):
    """Where scale-d is false, D is A times B, whatever was in D (PTX 9.7.15.5.2)."""
    _, out, findings = unset(zeros, "0")
    assert findings == []
    assert (out == 32).all()


@pytest.mark.parametrize("zeros", ["", SOME])
def test_a_product_that_adds_reads_d(zeros):
    text, _, findings = unset(zeros, "%one")
    assert {each.kind for each in findings} == {"uninitialised-read"}
    assert findings[0].line == 1 + next(n for n, each in enumerate(text.splitlines()) if ADDS.replace("1", "%first", 1) in each)


def handed_over(hold: str, release: str, hand_over: str) -> str:
    """A product of 128 threads, of which threads 32 to 63 come late, and a warp that overwrites the matrices when it may.

    `hold` runs before the product, `release` in the other warp, and `hand_over` behind the wait of the warpgroup.
    """
    return f"""
    .version 8.0
    .target sm_90a
    .address_size 64
    .visible .entry k(.param .u64 out)
    {{
    .reg .b64 %p, %a, %b; .reg .b32 %t, %s, %one, %bar, %n, %late, %go; .reg .f32 %d<4>; .reg .pred %q;
    .shared .align 128 .b8 tile[2304]; .shared .align 8 .b64 empty, start;
    mov.u32 %t, %tid.x; mov.u32 %bar, empty; mov.u32 %go, start; mov.b32 %one, 0x3C003C00;
    setp.eq.u32 %q, %t, 0; @%q mbarrier.init.shared::cta.b64 [%bar], 1; @%q mbarrier.init.shared::cta.b64 [%go], 32;
    mov.u32 %s, tile; mad.lo.u32 %s, %t, 16, %s; setp.lt.u32 %q, %t, 144; @%q st.shared.v4.b32 [%s], {{%one, %one, %one, %one}};
    fence.proxy.async; bar.sync 0;
    setp.ge.u32 %q, %t, 128; @%q bra other;
    and.b32 %late, %t, 96;
    {hold}
    mov.u32 %s, tile; shr.u32 %s, %s, 4; cvt.u64.u32 %a, %s; add.u64 %a, %a, {NO_SWIZZLE}; add.u64 %b, %a, {B // 16};
    {FENCE}
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%d0, %d1, %d2, %d3}}, %a, %b, 0, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    {WAIT}
    setp.eq.u32 %q, %t, 0;
    {hand_over}
    ld.param.u64 %p, [out]; mad.wide.u32 %p, %t, 4, %p; st.global.f32 [%p], %d0;
    ret;
    other:
    {release}
    setp.ge.u32 %q, %t, 144; @!%q st.shared.v4.b32 [%s], {{%t, %t, %t, %t}};
    ret;
    }}"""


SLOW = "mov.u32 %n, 0; slow: add.u32 %n, %n, 1; setp.lt.u32 %q, %n, %late; @%q bra slow;"
HELD = "setp.ne.u32 %q, %late, 32; @%q bra on; held: mbarrier.try_wait.parity.shared::cta.b64 %q, [%go], 0; @!%q bra held; on:"
RELEASED = "mbarrier.arrive.shared::cta.b64 _, [%go];"
EMPTIED = "mbarrier.try_wait.parity.shared::cta.b64 %q, [%bar], 0; @!%q bra emptied;"
HAND_OVER = "@%q mbarrier.arrive.shared::cta.b64 _, [%bar];"
OWN_COPY = "mov.u32 %s, tile; @%q st.shared.v4.b32 [%s+512], {%t, %t, %t, %t};"
KERNELS = {
    "slow": handed_over(SLOW, f"emptied: {EMPTIED}", HAND_OVER),
    "held": handed_over(HELD, f"{RELEASED} emptied: {EMPTIED}", HAND_OVER),
    "held late": handed_over(HELD, f"mov.u32 %late, 99; {SLOW} {RELEASED} emptied: {EMPTIED}", HAND_OVER),
    "its own": handed_over(SLOW, "ret;", OWN_COPY),
}  # fmt: skip


@pytest.mark.parametrize(("engine", "asynchronous"), [("jit", None), *(("interp", each) for each in (None, "early", "late"))])
@pytest.mark.parametrize("name", KERNELS)
def test_one_thread_of_a_warpgroup_hands_a_matrix_over(name, engine, asynchronous):
    """A group of products is one of the warpgroup (PTX 9.7.15.7.2): it has not ended for one warp before all have begun it."""
    out = np.zeros(128, np.float32)
    ptxvm.load(KERNELS[name]).kernel().launch(1, 160, [out], engine=engine, asynchronous=asynchronous)
    assert (out == 16).all()


def test_what_comes_after_the_wait_of_one_thread_comes_after_the_products_of_all_warps():
    """The arrival of a thread that hands the matrix over comes after its wait; before that wait it is a race."""
    arrive = HAND_OVER.partition(" ")[2]
    early = handed_over(SLOW, f"emptied: {EMPTIED}", "").replace(WAIT, f"setp.eq.u32 %q, %t, 0; @%q {arrive}\n{WAIT}")
    other = KERNELS["slow"].replace(HAND_OVER, f"setp.eq.u32 %q, %t, 77; {HAND_OVER}")
    for text, kinds in ((KERNELS["slow"], set()), (other, set()), (early, {("race", "WAR")})):
        result = ptxvm.load(text).kernel().launch(1, 160, [np.zeros(128, np.float32)], check=("race", "sync"))
        assert {(each.kind, each.hazard) for each in result.findings} == kinds


SOME_WARPS = """
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k()
{
    .reg .pred %q; .reg .b32 %t;
    mov.u32 %t, %tid.x; setp.ge.u32 %q, %t, 96; @%q bra skip;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
skip:
    ret;
}
"""


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize("threads", [64, 128, 224])
def test_a_wait_without_all_warps_of_the_warpgroup_is_a_deadlock(threads, engine):
    """PTX 9.7.15.7.3: all threads of a warpgroup execute the same `wgmma.wait_group`, also where the CTA has fewer warps."""
    with pytest.raises(ptxvm.Fault, match="all four warps of a warpgroup") as fault:
        ptxvm.load(SOME_WARPS).kernel().launch(1, threads, [], engine=engine)
    assert fault.value.kind == "deadlock"


COPY = """
    .reg .b64 %g; ld.param.u64 %g, [out]; cvta.to.global.u64 %g, %g; mov.u32 %s, tile; mad.lo.u32 %s, %t, 16, %s;
    cp.async.ca.shared.global [%s], [%g], 16; cp.async.wait_all;
"""

WAIT_OF_COPIES = "cp.async.wait_group (or wait_all, or an mbarrier) that covers the copy"


@pytest.mark.parametrize(
    ("before", "missing"),
    [
        ("fence.proxy.async; bar.sync 0;", set()),
        ("bar.sync 0;", {"fence.proxy.async after the write, before the threads synchronise for the copy"}),
        ("fence.proxy.async;", {WAIT_OF_COPIES + ", fence.proxy.async, then a barrier of the CTA (bar.sync), between the two"}),
    ],
)
def test_a_product_of_what_threads_have_copied_waits_for_them(before, missing):
    """`cp.async` writes through the generic proxy, and its wait is for the copies of the thread (PTX 9.7.9.25.3.3)."""
    made = kernel("", "", fence=COPY + before + FENCE)
    result = made.launch(grid=1, block=128, args=[np.zeros(128, np.float32)], check=("race",))
    assert {each.missing for each in result.findings if each.space is Space.SHARED} == missing
