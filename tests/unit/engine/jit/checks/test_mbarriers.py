"""The check for races of kernels with mbarriers, on the JIT: who finds a phase over comes after all its arrivals.

PTX 9.7.13.15.13 and 9.7.13.15.16: an arrival releases what its thread has done, a wait that succeeds acquires it.
"""

from __future__ import annotations

import numpy as np
import pytest
from warp_roles import by_warp

import ptxvm
from ptxvm.engine.jit.checks import observed_launch

WARP = 32
HEAD = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data)
{
    .shared .align 16 .b8 m[1024];
    .shared .align 8 .b8 full[8], empty[8];
    .reg .pred %p<4>; .reg .b32 %r<8>, %t, %w, %lane, %own, %other; .reg .b64 %g;
    ld.param.u64 %g, [data];
    mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; and.b32 %lane, %t, 31;
    mov.u32 %r0, m;
    mad.lo.u32 %own, %lane, 4, %r0;     // a word for each lane
    xor.b32 %other, %lane, 1;
    mad.lo.u32 %other, %other, 4, %r0;  // that of its neighbour
    setp.ne.u32 %p0, %t, 0;
    @%p0 bra MADE;
    mbarrier.init.shared.b64 [full], FULL;
    mbarrier.init.shared.b64 [empty], EMPTY;
    MADE: bar.sync 0;
    mov.u32 %r0, 0;
"""
FILL, TAKE = "st.shared.u32 [%own], %lane;", "ld.shared.u32 %r1, [%other];"
ARRIVE, FREE = "mbarrier.arrive.shared.b64 _, [full];", "mbarrier.arrive.shared.b64 _, [empty];"


def wait(name, where="full", parity="0"):
    return f"{name}: mbarrier.try_wait.parity.shared.b64 %p1, [{where}], {parity}; @!%p1 bra {name};"


def consumer(name):
    return f"""
        {name}: and.b32 %r2, %r0, 1; {wait(name + "W", "full", "%r2")} {TAKE} {FREE}
        add.u32 %r0, %r0, 1; setp.lt.u32 %p2, %r0, 5; @%p2 bra {name};
        """


PRODUCER = f"""
    P: and.b32 %r2, %r0, 1; xor.b32 %r2, %r2, 1; {wait("PW", "empty", "%r2")} {FILL} {ARRIVE}
    add.u32 %r0, %r0, 1; setp.lt.u32 %p2, %r0, 5; @%p2 bra P;
    """
FINE = {  # the roles of the warps, and how many arrivals `full` and `empty` are for
    "one fills, another takes": ([f"{FILL} {ARRIVE}", wait("L") + TAKE], 32, 1),
    "one that does not wait goes on": ([f"{FILL} {ARRIVE} ld.shared.u32 %r1, [%own];", wait("L") + TAKE], 32, 1),
    "two arrive": ([f"{FILL} {ARRIVE}", f"st.shared.u32 [%own+128], 1; {ARRIVE}", wait("L") + TAKE], 64, 1),
    "what is known is passed on": ([f"{FILL} {ARRIVE}", wait("L") + FREE, wait("M", "empty") + TAKE], 32, 32),
    "a ring of one buffer": ([PRODUCER, consumer("A"), consumer("B")], 32, 64),
    "lanes that meet, and one arrives": (
        [f"{FILL} bar.warp.sync -1; setp.eq.u32 %p1, %lane, 0; @%p1 {ARRIVE}", wait("L") + TAKE], 1, 1,
    ),
    "test_wait": ([f"{FILL} {ARRIVE}", wait("L").replace("try", "test") + TAKE], 32, 1),
    "a barrier of the CTA as well": ([f"{FILL} {ARRIVE} bar.sync 0; {TAKE}", wait("L") + TAKE + "bar.sync 0;"], 32, 1),
}  # fmt: skip
WRONG = {
    "not waited for": ([f"{FILL} {ARRIVE}", TAKE], 32, 1),
    "written after the arrival": ([f"{ARRIVE} {FILL}", wait("L") + TAKE], 32, 1),
    "lanes that have not met, and one arrives": (
        [f"{FILL} setp.eq.u32 %p1, %lane, 0; @%p1 {ARRIVE}", wait("L") + TAKE], 1, 1,
    ),
    "one of two is waited for": ([f"{FILL} {ARRIVE}", f"{FILL} {FREE}", wait("L") + TAKE], 32, 32),
    "a relaxed arrival": ([f"{FILL} {ARRIVE.replace('arrive', 'arrive.relaxed.cta')}", wait("L") + TAKE], 32, 1),
    "a relaxed wait": ([f"{FILL} {ARRIVE}", wait("L").replace("parity", "parity.relaxed.cta") + TAKE], 32, 1),
    "a ring that does not wait for the buffer": (
        [PRODUCER.replace(wait("PW", "empty", "%r2"), ""), consumer("A"), consumer("B")], 32, 64,
    ),
    "a phase that ends within a warp": ([f"{FILL} {ARRIVE}", wait("L") + TAKE], 16, 1),
    "an ordinary write to an mbarrier": ([f"{ARRIVE} st.shared.u64 [full], 1;", ""], 64, 1),
}  # fmt: skip


def launched(case, engine="jit", check=("race",), grid=2, **how):
    roles, full, empty = case
    text = HEAD.replace("FULL", str(full)).replace("EMPTY", str(empty)) + by_warp(roles)
    if "relaxed" in text:
        text = text.replace(".version 8.0", ".version 8.6")
    data = np.zeros(64, np.uint32)
    result = ptxvm.load(text).kernel().launch(grid, WARP * len(roles), [data], engine=engine, check=check, **how)
    return [str(each) for each in result.findings]


@pytest.mark.parametrize("name", FINE)
def test_what_arrivals_and_waits_order_is_cleared(name, quick):
    assert launched(FINE[name], check=("race", "memory", "init")) == []
    assert quick()
    assert launched(FINE[name], "interp", check=("race", "memory", "init")) == []


@pytest.mark.parametrize("name", WRONG)
def test_what_they_do_not_order_is_found_as_by_the_interpreter(name, quick):
    found = launched(WRONG[name])
    assert not quick()
    assert found == launched(WRONG[name], "interp")


def test_a_wait_for_ever_is_a_deadlock_as_on_the_interpreter(quick):
    found = launched(([wait("L"), ""], 32, 1))
    assert not quick()
    assert [each.split(":")[0] for each in found] == ["deadlock"]


def test_memory_is_checked_without_clocks(quick):
    assert launched(FINE["a ring of one buffer"], check=("memory",)) == []
    assert quick()


@pytest.mark.parametrize("check", [("sync",), ("sync", "race"), "all"])
@pytest.mark.parametrize("name", FINE)
def test_mbarriers_that_are_used_well_are_cleared(name, check, quick):
    case = FINE[name]
    if name == "one that does not wait goes on":
        case = ([FILL + ARRIVE, *case[0][1:]], *case[1:])
    assert launched(case, check=check) == []
    assert quick()


MEET = "bar.sync 1, 32;"
ONE = "setp.eq.u32 %p3, %lane, 0;"
ARRIVES = "mbarrier.arrive.shared.b64 %s, [full];"
TESTS = "mbarrier.test_wait.shared.b64 %p1, [{}], %s;"
MISUSE = {  # by one warp, of mbarriers for 32 arrivals and for 1: PTX 9.7.13.15 has the rules
    "there is none": "mbarrier.arrive.shared.b64 _, [m];",
    "a test of what is none": "mbarrier.test_wait.parity.shared.b64 %p1, [m], 1;",
    "made twice": f"{ONE} @%p3 mbarrier.init.shared.b64 [full], 32;",
    "made for none": f"{ONE} @%p3 mbarrier.init.shared.b64 [m], %r0;",
    "nothing to invalidate": f"{ONE} @%p3 mbarrier.inval.shared.b64 [m];",
    "used when it is no more": f"{ONE} @%p3 mbarrier.inval.shared.b64 [full]; {MEET} {ARRIVES}",
    "read": "ld.shared.u8 %r1, [full+7];",
    "written in part": f"{ONE} @%p3 st.shared.u32 [full+4], 1;",
    "read by a generic address": "mov.u64 %g, full; cvta.shared.u64 %g, %g; ld.u32 %r1, [%g+4];",
    "updated": "red.shared.add.u32 [empty], 1;",
    "too many arrivals": "mbarrier.arrive.noComplete.shared.b64 %s, [full], 2;",
    "an arrival that must not end the phase": "mbarrier.arrive.noComplete.shared.b64 %s, [full], 1;",
    "nobody found the phase over": f"{ARRIVES} {MEET} {ARRIVES}",
    "too many transactions": f"{ONE} @%p3 mbarrier.expect_tx.relaxed.cta.shared.b64 [full], 1048575; "
    "@%p3 mbarrier.expect_tx.relaxed.cta.shared.b64 [full], 8;",
    "a state that no arrival gave": f"mov.u64 %s, 1; {TESTS.format('full')}",
    "the state of another one": f"{ARRIVES} {MEET} {TESTS.format('empty')}",
    "a state of two phases ago": f"{ARRIVES} mov.u64 %g, %s; {TESTS.format('full')} {MEET} "
    f"{ONE} @%p3 mbarrier.arrive.noComplete.shared.b64 %s, [full], 31; @%p3 {ARRIVES} "
    f"{MEET} mov.u64 %s, %g; {TESTS.format('full')}",
}  # fmt: skip


@pytest.mark.parametrize("name", MISUSE)
def test_misuse_is_left_to_the_exact_checker(name, quick):
    """A second warp waits as it should, or nothing is looked at."""
    head = HEAD.replace(".b64 %g;", ".b64 %g, %s;")
    roles = [MISUSE[name], "mbarrier.test_wait.parity.shared.b64 %p1, [empty], 1;"]
    text = head.replace("FULL", "32").replace("EMPTY", "1") + by_warp(roles)
    found = {}
    for engine in ("jit", "interp"):
        result = ptxvm.load(text).kernel().launch(1, 64, [np.zeros(64, np.uint32)], engine=engine, check=("sync",))
        found[engine] = [str(each) for each in result.findings]
        assert engine == "interp" or not quick()
    assert found["jit"] == found["interp"] != []


def test_an_mbarrier_at_a_generic_address_is_left_to_the_exact_checker(quick):
    arrives = FILL + "mov.u64 %g, full; cvta.shared.u64 %g, %g; mbarrier.arrive.b64 _, [%g];"
    assert launched(([arrives, wait("L") + TAKE], 32, 1)) == []
    assert not quick()


class Guarded:
    """NumPy, whose zeros are followed by memory that is not theirs."""

    BEHIND = 1 << 20  # words

    def __init__(self):
        self.behind = []

    def __getattr__(self, name):
        return getattr(np, name)

    def zeros(self, count, dtype):
        found = np.full(count + self.BEHIND, 0xAB, dtype)
        found[:count] = 0
        self.behind.append(found[count:])
        return found[:count]


def test_mbarriers_that_nobody_waits_for_have_no_clocks(monkeypatch):
    """They order nothing, and their rows would lie behind those of the warps."""
    guarded = Guarded()
    monkeypatch.setattr(observed_launch, "np", guarded)
    kernel = ptxvm.load(f"""
        {HEAD.replace("FULL", "64").replace("EMPTY", "64")}
        {ARRIVE} {FREE} setp.lt.u32 %p1, %w, 2; @%p1 bar.sync 1, 64; ret; }}""").kernel()
    result = kernel.launch(1, 128, [np.zeros(64, np.uint32)], check="race", engine="jit")
    assert not result.findings
    assert guarded.behind
    assert all((each == 0xAB).all() for each in guarded.behind)


@pytest.mark.parametrize("threads", [1, 2])
def test_many_ctas_that_wait_are_looked_at_together_under_memory(threads, quick):
    meet = "M{n}: and.b32 %r2, %r0, 1; {arrive} {wait} add.u32 %r0, %r0, 1; setp.lt.u32 %p2, %r0, 8; @%p2 bra M{n};"
    roles = [meet.format(n=n, arrive=ARRIVE, wait=wait(f"L{n}", "full", "%r2")) for n in range(8)]
    case = roles, 256, 1  # all threads meet, again and again
    assert launched(case, check=("memory",), grid=64, threads=threads) == []
    assert quick()
