"""Checks of kernels with barriers for some threads, on the JIT: warps have clocks, and findings are the interpreter's.

What is ordered follows PTX 9.7.13.1 (a barrier orders what the arriving threads did before what the waiting ones do) and the
base causality order of PTX 8.9.5.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from ordered_warps import Ordered
from warp_roles import by_warp

import ptxvm

WARP = 32
HEAD = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data)
{
    .shared .align 16 .b8 m[8192];
    .reg .pred %p<4>; .reg .b32 %r<8>, %s, %t, %w, %lane, %own, %other; .reg .b64 %g, %gown;
    ld.param.u64 %g, [data];
    mov.u32 %s, m;
    mov.u32 %t, %tid.x;
    shr.u32 %w, %t, 5;
    and.b32 %lane, %t, 31;
    mad.lo.u32 %own, %lane, 4, %s;      // a word for each lane
    xor.b32 %other, %lane, 1;
    mad.lo.u32 %other, %other, 4, %s;   // that of its neighbour
    mad.wide.u32 %gown, %lane, 4, %g;
"""


def launched(roles, engine="jit", check=("race", "sync"), **how):
    """Run a kernel whose warps have a role each: its instructions."""
    data = np.zeros(2048, np.uint32)
    kernel = ptxvm.load(HEAD + by_warp(roles)).kernel()
    result = kernel.launch(2, WARP * len(roles), [data], engine=engine, check=check, **how)
    return [str(each) for each in result.findings], data.tolist()


FILL, TAKE = "st.shared.u32 [%own], %lane;", "ld.shared.u32 %r1, [%other];"
PRODUCER = f"""
    mov.u32 %r0, 0;
    L: bar.sync 2, 96; {FILL} bar.arrive 1, 96;
    add.u32 %r0, %r0, 1; setp.lt.u32 %p1, %r0, 6; @%p1 bra L;
    """
CONSUMER = f"""
    bar.arrive 2, 96; mov.u32 %r0, 0;
    C%: bar.sync 1, 96; {TAKE} setp.lt.u32 %p1, %r0, 5; @%p1 bar.arrive 2, 96;
    add.u32 %r0, %r0, 1; setp.lt.u32 %p1, %r0, 6; @%p1 bra C%;
    """
FINE = {
    "two warps meet, two others do not": [f"{FILL} bar.sync 1, 64;", f"bar.sync 1, 64; {TAKE}", "", ""],
    "a producer goes on": [f"{FILL} bar.arrive 1, 64; ld.shared.u32 %r1, [%own];", f"bar.sync 1, 64; {TAKE}"],
    "what is known is passed on": [f"{FILL} bar.arrive 1, 64;", "bar.sync 1, 64; bar.arrive 2, 64;", f"bar.sync 2, 64; {TAKE}"],
    "a ring of one buffer": [PRODUCER, CONSUMER.replace("C%", "C1"), CONSUMER.replace("C%", "C2")],
    "all have read, then one writes": [
        f"{TAKE} bar.sync 1, 96; {FILL}",
        f"{TAKE} bar.arrive 1, 96;",
        f"ld.shared.u32 %r1, [m]; {TAKE} bar.arrive 1, 96;",
    ],
    "global memory": ["st.global.u32 [%gown], 1; bar.arrive 3, 64;", "bar.sync 3, 64;", ""],
    "some, then all": [f"{FILL} bar.sync 1, 64; bar.sync 0;", "bar.sync 1, 64; bar.sync 0;", f"bar.sync 0; {TAKE}"],
    "atomics, then all": ["red.shared.add.u32 [m], 1; bar.sync 1, 64;", "red.shared.add.u32 [m], 1; bar.sync 1, 64; " + TAKE],
}
FINE["global memory"][0] = "mov.u32 %r2, %ctaid.x; mad.wide.u32 %gown, %r2, 128, %gown; " + FINE["global memory"][0]
WRONG = {
    "the reader does not come": [f"{FILL} bar.sync 1, 64;", "bar.sync 1, 64;", TAKE],
    "the reader only arrives": [f"bar.sync 1, 64; {FILL}", f"bar.arrive 1, 64; {TAKE}"],
    "written after the arrival": [f"bar.arrive 1, 64; {FILL}", f"bar.sync 1, 64; {TAKE}"],
    "written again too early": [f"{FILL} bar.arrive 1, 64; {FILL}", f"bar.sync 1, 64; {TAKE}"],
    "one of two readers is not waited for": [
        f"{TAKE} bar.sync 1, 64; {FILL}",
        f"{TAKE} bar.arrive 1, 64;",
        f"ld.shared.u32 %r1, [m]; {TAKE}",
    ],
    "lanes of a warp that only arrives": [f"{FILL} bar.arrive 1, 64; {TAKE}", "bar.sync 1, 64;"],
    "two CTAs": ["st.global.u32 [%gown], 1; bar.sync 1, 64;", "bar.sync 1, 64;"],
    "counts that differ": ["bar.sync 1, 64;", "bar.sync 1, 96;", "bar.sync 1, 96;"],
    "half a warp": ["setp.lt.u32 %p1, %lane, 16; @%p1 bar.sync 1, 64;", "bar.sync 1, 64;"],
    "no multiple of a warp": ["mov.u32 %r2, 48; bar.sync 1, %r2;", "bar.sync 1, 64;"],
    "a warp has ended": ["bar.sync 0;", "bar.sync 0;", "bar.sync 1, 32;"],
    "they wait for each other": ["bar.sync 1, 64; bar.sync 2, 64;", "bar.sync 2, 64; bar.sync 1, 64;"],
}


@pytest.mark.parametrize("name", FINE)
def test_what_barriers_for_some_threads_order_is_cleared(name, quick):
    found, data = launched(FINE[name])
    assert found == []
    assert quick()
    assert launched(FINE[name], "interp") == ([], data)


@pytest.mark.parametrize("name", WRONG)
def test_what_they_do_not_order_is_found_as_by_the_interpreter(name, quick):
    found, _ = launched(WRONG[name])
    assert found
    assert not quick()
    assert found == launched(WRONG[name], "interp")[0]


def test_one_run_answers_for_all_schedules(quick):
    assert launched(FINE["a ring of one buffer"], schedules=20, seed=0)[0] == []
    assert quick()


def test_a_barrier_that_other_warps_may_come_to_is_left_to_the_exact_checker(quick):
    roles = ["bar.sync 1, 64;"] * 4  # which two of them meet is up to the schedule
    assert launched(roles) == launched(roles, "interp")
    assert not quick()


def test_local_memory_that_an_earlier_cta_has_written_is_not_initialised(quick):
    role = (
        ".local .b32 l; mov.u32 %r2, %ctaid.x; setp.ne.u32 %p1, %r2, 0; @!%p1 st.local.u32 [l], 1; bar.sync 1, 32; "
        "ld.local.u32 %r1, [l]; setp.eq.u32 %p1, %r1, 1; @%p1 bra NEXT; NEXT:"
    )
    found, _ = launched([role], check=("init",))
    assert found
    assert not quick()
    assert found == launched([role], "interp", check=("init",))[0]


# ── random kernels ──────────────────────────────────────────────────────────────────────


def random_roles(seed, wrong):
    """Warps that read and write some words, and meet in some groups; `wrong` is the share of accesses without an order."""
    draw = random.Random(seed)
    warps = draw.choice([2, 3, 5])
    order, roles, used = Ordered(warps), [[] for _ in range(warps)], set()
    for _ in range(draw.choice([4, 8, 12])):
        for warp, lines in enumerate(roles):
            word, how = draw.randrange(40), draw.choice(("ld", "ld", "st"))
            if order.fine(warp, word, how) or draw.random() < wrong:
                order.past.setdefault(word, []).append((warp, order.now[warp], how))
                one = f"setp.eq.u32 %p1, %lane, {word % WARP}; @%p1 "
                lines.append(
                    f"{one} st.shared.u32 [m+{4 * word}], 1;" if how == "st" else f"ld.shared.u32 %r1, [m+{4 * word}];"
                )
        some, number = draw.sample(range(warps), draw.randrange(1, warps + 1)), draw.randrange(1, 16)
        if draw.random() < 0.3 or number in used:
            waiting, arriving, how = list(range(warps)), [], "0"
            used.clear()
        else:
            cut = draw.randrange(len(some))
            waiting, arriving, how = some[cut:], some[:cut], f"{number}, {WARP * len(some)}"
            used.add(number)
        order.meets(arriving, waiting)
        for warp in arriving:
            roles[warp].append(f"bar.arrive {how};")
        for warp in waiting:
            roles[warp].append(f"bar.sync {how};")
    return [" ".join(lines) for lines in roles]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("wrong", [0, 0.02], ids=["ordered", "some not"])
def test_random_kernels_are_judged_as_by_the_interpreter(seed, wrong, quick):
    roles = random_roles(seed, wrong)
    found, data = launched(roles)
    cleared = quick()
    assert (found, data) == launched(roles, "interp")
    assert cleared == (not found)  # a tag may say too little, but does not in these
