"""Two versions of a kernel that take turns: vectors of lanes, and scalar code for one thread after the other.

The oracle of what they compute is the interpreter; that of the contest is which of two made-up times is less.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ptxvm
from ptxvm.engine.jit.abi.specialisation import Specialisation, Tier, VersionKind
from ptxvm.engine.jit.cfg import thread_order
from ptxvm.engine.jit.cfg.kernel_analysis import KernelAnalysis
from ptxvm.engine.jit.run import tiering
from ptxvm.engine.jit.run.rivals import Contest, Turns
from ptxvm.engine.jit.translate.translation import Translation
from ptxvm.machine.settings import Tiering

# Each thread makes as many iterations as its number says, which the other lanes do not.
LOOP = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 counts, .param .u64 out, .param .u64 total)
{
    .local .align 8 .b8 room[64];
    .reg .b32 %r<16>; .reg .b64 %d<8>; .reg .pred %p; .reg .f32 %f<4>;
    ld.param.u64 %d0, [counts]; ld.param.u64 %d1, [out]; ld.param.u64 %d2, [total];
    mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r0, %r0, %r1, %r2;
    mul.wide.u32 %d3, %r0, 4; add.u64 %d4, %d0, %d3; add.u64 %d5, %d1, %d3;
    ld.global.u32 %r3, [%d4];
    mov.u32 %r4, 1; mov.u32 %r5, %laneid;
    setp.eq.u32 %p, %r3, 0;
    @%p bra END;
AGAIN:
    BODY
    mad.lo.u32 %r4, %r4, 3, %r5;
    sub.u32 %r3, %r3, 1;
    setp.ne.u32 %p, %r3, 0;
    @%p bra AGAIN;
END:
    st.global.u32 [%d5], %r4;
    ret;
}
"""
BODIES = {
    "numbers": "add.u32 %r4, %r4, %r2;",
    "masks of lanes": "mov.u32 %r6, %lanemask_lt; add.u32 %r4, %r4, %r6; mov.u32 %r6, %warpid; add.u32 %r4, %r4, %r6;",
    "local memory": "and.b32 %r6, %r4, 60; cvt.u64.u32 %d6, %r6; mov.u64 %d7, room; add.u64 %d6, %d6, %d7;"
    " ld.local.u32 %r7, [%d6]; add.u32 %r7, %r7, %r4; st.local.u32 [%d6], %r7; add.u32 %r4, %r4, %r7;",
    "generic local memory": "and.b32 %r6, %r4, 60; cvt.u64.u32 %d6, %r6; mov.u64 %d7, room; cvta.local.u64 %d7, %d7;"
    " add.u64 %d6, %d6, %d7; ld.u32 %r7, [%d6]; add.u32 %r7, %r7, %r4; st.u32 [%d6], %r7; add.u32 %r4, %r4, %r7;",
    "sums by atomics": "red.global.add.u32 [%d2], %r4; atom.global.max.u32 %r9, [%d2+8], %r4;",
    "neighbours": "and.b32 %r6, %r4, 7; mul.wide.u32 %d6, %r6, 4; add.u64 %d6, %d6, %d0; ld.global.u32 %r7, [%d6];"
    " ld.global.u32 %r8, [%d6+4]; ld.global.u32 %r9, [%d6+8]; ld.global.u32 %r10, [%d6+12];"
    " add.u32 %r7, %r7, %r8; add.u32 %r9, %r9, %r10; add.u32 %r4, %r7, %r9;",
    "directed rounding": "cvt.rn.f32.u32 %f0, %r4; div.rp.f32 %f1, %f0, 0f40400000; add.rm.f32 %f1, %f1, %f0; mov.b32 %r6, %f1;"
    " add.u32 %r4, %r4, %r6;",
    "approximations": "cvt.rn.f32.u32 %f0, %r4; ex2.approx.f32 %f1, 0f3F99999A; rsqrt.approx.f32 %f2, %f0;"
    " fma.rn.f32 %f1, %f1, %f2, %f0; mov.b32 %r6, %f1; add.u32 %r4, %r4, %r6;",
}
CTAS, THREADS = 9, 70  # the last warp of each CTA is not whole


def kernel(body: str, end: str = "") -> ptxvm.Kernel:
    return ptxvm.load(LOOP.replace("BODY", body).replace("END:", f"END:{end}")).kernel()


def arguments(rng: np.random.Generator) -> list[np.ndarray]:
    counts = rng.integers(0, 40, CTAS * THREADS, np.uint32)
    return [counts, np.zeros(CTAS * THREADS, np.uint32), np.zeros(4, np.uint32)]


@pytest.fixture
def by_version(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Has one of the versions run all CTAs: 0 for vectors, 1 for scalar code."""
    monkeypatch.setattr(tiering, "policy", lambda: Tiering.BEST)

    def choose(version: int) -> None:
        monkeypatch.setattr(Turns, "next", lambda self, ctas: (version, ctas))

    return choose


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The versions that have run, in order."""
    found: list[int] = []
    ran = Turns.ran

    def note(self: Turns, version: int, ctas: int, seconds: float, work: int) -> None:
        found.append(version)
        ran(self, version, ctas, seconds, work)

    monkeypatch.setattr(Turns, "ran", note)
    return found


# ── what they compute ───────────────────────────────────────────────────────────────────


STRIDE = """
    mov.u32 %r10, %nctaid.x; mul.lo.u32 %r10, %r10, %r1; mov.u32 %r11, %r0;
STRIDE:
    mul.wide.u32 %d6, %r11, 4; add.u64 %d6, %d0, %d6; ld.global.u32 %r12, [%d6]; add.u32 %r4, %r4, %r12;
    add.u32 %r11, %r11, %r10; setp.lt.u32 %p, %r11, 630; @%p bra STRIDE;
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("body", "end"), [*((body, "") for body in BODIES.values()), (BODIES["numbers"], STRIDE)],
                         ids=[*BODIES, "a grid-stride loop"])  # fmt: skip
def test_each_version_computes_what_the_interpreter_does(
    body: str, end: str, by_version: Callable[[int], None], runs: list[int], rng: np.random.Generator
) -> None:
    one, args = kernel(body, end), arguments(rng)
    wanted = [each.copy() for each in args]
    count = one.launch(CTAS, THREADS, wanted, engine="interp").thread_instructions
    for version in (0, 1):
        by_version(version)
        found = [each.copy() for each in args]
        result = one.launch(CTAS, THREADS, found, engine="jit")
        assert runs.pop() == version
        assert [each.tolist() for each in found] == [each.tolist() for each in wanted]
        assert result.thread_instructions == count


def test_both_take_part_in_one_launch(by_version: Callable[[int], None], runs: list[int], rng: np.random.Generator) -> None:
    assert by_version
    counts = rng.integers(0, 40, 4000 * 64, np.uint32)
    found, wanted = (np.zeros(4000 * 64, np.uint32) for _ in range(2))
    one = kernel("add.u32 %r4, %r4, %r2;")
    one.launch(4000, 64, [counts, found, np.zeros(4, np.uint32)], engine="jit", threads=1)
    one.launch(4000, 64, [counts, wanted, np.zeros(4, np.uint32)], engine="interp")
    assert set(runs) == {0, 1}
    assert np.array_equal(found, wanted)


# ── faults ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("setp.eq.u32 %p, %r2, 41; @%p add.u64 %d5, %d5, 1; st.global.u32 [%d5], 1;", "misaligned"),
        ("setp.eq.u32 %p, %r2, 41; @%p mov.u64 %d5, 8; st.global.u32 [%d5], 1;", "null-pointer"),
        ("setp.eq.u32 %p, %r2, 41; @%p trap;", "trap"),
        ("setp.eq.u32 %p, %r2, 41; @%p mov.u64 %d7, 4096; ld.local.u32 %r6, [%d7];", "out-of-bounds"),
    ],
)
def test_a_fault_names_its_thread(body: str, kind: str, by_version: Callable[[int], None], rng: np.random.Generator) -> None:
    by_version(1)
    args = arguments(rng)
    args[0][...] = 1
    if "4096" in body:
        body = "mov.u64 %d7, room;" + body
    with pytest.raises(ptxvm.Fault) as caught:
        kernel(body).launch(CTAS, THREADS, args, engine="jit")
    assert (caught.value.kind, caught.value.place.cta, caught.value.place.thread) == (kind, (0, 0, 0), (41, 0, 0))


# ── which kernels have both ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("body", "suits"),
    [
        ("add.u32 %r4, %r4, 1;", True),
        ("red.global.add.u32 [%d2], 1;", True),
        ("atom.global.add.u32 %r9, [%d2], 1;", True),
        ("atom.global.add.u32 %r4, [%d2], 1;", False),  # its order is seen
        ("red.global.add.f32 [%d2], 0f3F800000;", False),  # so is that of rounding
        ("atom.global.exch.b32 %r9, [%d2], %r2;", False),
        ("bar.sync 0;", False),
        ("shfl.sync.idx.b32 %r4, %r4, 0, 31, -1;", False),
        ("activemask.b32 %r4;", False),
        ("ld.volatile.global.u32 %r6, [%d2];", False),
        ("st.relaxed.gpu.global.u32 [%d2], 1;", False),
        ("membar.gl;", False),
        ("st.shared.u32 [%d3], %r4;", False),
        ("mov.u64 %d7, %clock64;", False),
    ],
)
def test_scalar_code_is_for_threads_without_an_order(body: str, suits: bool) -> None:
    """PTX 9.7.13: what orders threads, or shows their order, keeps a kernel to vectors."""
    one = kernel(body)
    assert thread_order.threads_are_independent(KernelAnalysis(one.module.image, one.function)) is suits


ROWS = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 n)
{
    .reg .b32 %r<9>; .reg .b64 %d<5>; .reg .pred %p;
    ld.param.u64 %d0, [out]; ld.param.u32 %r3, [n];
    mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r0, %r0, %r1, %r2;
    mul.wide.u32 %d1, %r0, LANE; add.u64 %d0, %d0, %d1; mov.u32 %r4, 0;
AGAIN:
    add.u32 %r5, %r4, %r0; st.global.u32 [%d0], %r5; add.u64 %d0, %d0, STEP;
    add.u32 %r4, %r4, 1; setp.lt.u32 %p, %r4, %r3; @%p bra AGAIN;
    ret;
}
"""


def rows(lane: int, step: int) -> ptxvm.Kernel:
    """A kernel whose lanes write so far from each other, and so far on in each iteration."""
    return ptxvm.load(ROWS.replace("LANE", str(lane)).replace("STEP", str(step))).kernel()


@pytest.mark.parametrize(
    ("lane", "step", "both"),
    [(400, 4, True), (400, -4, True), (400, 512, False), (4, 4, False), (4, 512, False)],
)
def test_lanes_that_write_along_rows_of_their_own_may_run_as_scalar_code(lane: int, step: int, both: bool) -> None:
    """As vectors they write one element of each of 32 lines at a time."""
    one = rows(lane, step)
    translation = Translation(one.module.image, Specialisation(one.function, (64, 1, 1)))
    _ = translation.versions
    assert translation.facts.scalar is both


@pytest.mark.parametrize("version", [0, 1])
def test_both_write_the_rows(version: int, by_version: Callable[[int], None]) -> None:
    by_version(version)
    out = np.zeros((CTAS * THREADS, 100), np.uint32)
    rows(400, 4).launch(CTAS, THREADS, [out, 97], engine="jit")
    want = np.arange(CTAS * THREADS, dtype=np.uint32)[:, None] + np.arange(97, dtype=np.uint32)
    assert np.array_equal(out[:, :97], want)
    assert not out[:, 97:].any()


# ── the contest ─────────────────────────────────────────────────────────────────────────


def shares(
    rates: Callable[[int, int], float], ctas: int, turns: Turns, work: Callable[[int], int] = lambda cta: 1
) -> list[int]:
    """How many CTAs each version gets, whose times are given by its number and that of the CTA; a CTA has an amount of work."""
    found, at = [0, 0], 0
    while at < ctas:
        version, count = turns.next(ctas - at)
        assert 1 <= count <= ctas - at
        some = range(at, at + count)
        turns.ran(version, count, sum(rates(version, n) for n in some), sum(map(work, some)))
        found[version] += count
        at += count
    return found


@pytest.mark.parametrize("faster", [0, 1])
def test_the_faster_version_gets_nearly_all(faster: int) -> None:
    got = shares(lambda version, _: 1e-5 if version == faster else 2e-5, 100_000, Turns(Contest()))
    assert got[faster] > 95_000
    assert got[1 - faster] > 100  # the other one is still tried


@pytest.mark.parametrize("faster", [0, 1])
def test_uneven_ctas_are_compared_by_their_work(faster: int) -> None:
    """Those in the middle of a picture take a hundred times as long as those at its edges."""

    def work(cta: int) -> int:
        return 100 if 40 < cta % 100 < 60 else 1

    got = shares(lambda version, cta: work(cta) * (1e-5 if version == faster else 1.5e-5), 20_000, Turns(Contest()), work)
    assert got[faster] > 17_000


def test_the_version_is_chosen_for_the_time_that_it_saves() -> None:
    """At the edges of a picture the second version takes half as long as the first; in the middle it takes 15 times as long.

    The time of a thousand CTAs of an edge is that of one in the middle.  Oracle: the first version's own time.
    """
    spent = 0.0

    def is_inside(cta: int) -> bool:
        return cta % 10_000 > 5000

    def rate(version: int, cta: int) -> float:
        nonlocal spent
        took = (1e-3, 15e-3)[version] if is_inside(cta) else (1e-6, 0.5e-6)[version]
        spent += took
        return took

    turns = Turns(Contest())
    for _ in range(3):
        spent = 0.0
        shares(rate, 30_000, turns, lambda cta: 10_000 if is_inside(cta) else 10)
    assert spent < 1.2 * sum(1e-3 if is_inside(cta) else 1e-6 for cta in range(30_000))


def test_a_cold_start_decides_nothing() -> None:
    turns = Turns(contest := Contest())
    for version, seconds in ((0, 1.0), (1, 2e-4), (0, 0.9)):  # the first one found cold caches
        assert turns.next(640) == (version, 10)
        turns.ran(version, 10, seconds, 10)
    assert contest.faster == 0
    got = shares(lambda version, _: 1e-5 if version == 0 else 2e-5, 20_000, turns)
    assert got[0] > 18_000


def test_it_changes_its_mind_with_the_data() -> None:
    turns = Turns(Contest())
    shares(lambda version, _: (1e-5, 2e-5)[version], 50_000, turns)
    got = shares(lambda version, _: (4e-5, 2e-5)[version], 100_000, turns)
    assert got[1] > 90_000


def test_a_grid_of_one_cta_is_compared_launch_by_launch() -> None:
    turns = Turns(Contest())
    total = [shares(lambda version, _: (4e-5, 2e-5)[version], 1, turns) for _ in range(500)]
    assert sum(second for _, second in total) > 450


def test_a_kernel_that_needs_warps_has_no_rival(by_version: Callable[[int], None], runs: list[int]) -> None:
    by_version(1)
    kernel("bar.warp.sync -1;").launch(1, 32, [np.zeros(32, np.uint32) for _ in range(3)], engine="jit")
    assert not runs


def test_best_code_of_the_disk_cache_gets_its_rival_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rng: np.random.Generator
) -> None:
    """The next process has the same two versions as the one that compiled them."""
    monkeypatch.setenv("PTXVM_CACHE", str(tmp_path))
    monkeypatch.setattr(tiering, "WARM", 0.0)
    for policy in (Tiering.BEST, Tiering.AUTO):
        monkeypatch.setattr(tiering, "policy", lambda policy=policy: policy)
        one = kernel(BODIES["numbers"])
        one.launch(CTAS, THREADS, arguments(rng), engine="jit")
        for thread in threading.enumerate():
            if thread.name == "ptxvm compiles":
                thread.join()
        compiled = one.module.jit.compiled(Specialisation(one.function, (THREADS, 1, 1)))
        assert (compiled.tier is Tier.BEST) is (policy is Tiering.BEST)
        assert compiled.versions[VersionKind.FIRST].tier == Tier.BEST
        assert compiled.rival is not None
