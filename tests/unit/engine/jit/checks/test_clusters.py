"""Checks of kernels in clusters: compiled code clears what is right, and finds what is wrong (PTX 5.1.7, 8.9, 9.7.13.3)."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from ordered_warps import Ordered
from warp_roles import by_warp

import ptxvm

KERNEL = """
    .version 8.6
    .target sm_90
    .address_size 64
    .visible .entry k(.param .u64 in, .param .u64 out)
    {
    .reg .b64 %i, %o, %g; .reg .b32 %t, %r, %s, %p, %v, %c, %a;
    .shared .b32 first[64]; .shared .b32 second[64];
    ld.param.u64 %i, [in]; ld.param.u64 %o, [out];
    mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %r, %cluster_ctarank; xor.b32 %p, %r, 1;
    mad.lo.u32 %v, %c, 32, %t; mad.wide.u32 %i, %v, 4, %i; mad.wide.u32 %o, %v, 4, %o; ld.global.b32 %v, [%i];
    mov.u32 %s, second; mad.lo.u32 %s, %t, 4, %s; st.shared.b32 [%s], %v;
    mapa.shared::cluster.u32 %a, %s, %p; cvt.u64.u32 %g, %s; cvta.shared.u64 %g, %g;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    BODY
    st.global.b32 [%o], %v;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    ret;
    }"""
RIGHT = {
    "a load": "ld.shared::cluster.b32 %v, [%a];",
    "a generic load": "mapa.u64 %g, %g, %p; ld.b32 %v, [%g];",
    "a load of the own memory": "xor.b32 %s, %s, 4; ld.shared.b32 %v, [%s]; mad.lo.u32 %v, %p, 32, 0; sub.u32 %v, %v, 0;",
    "an atomic": "atom.shared::cluster.exch.b32 %v, [%a], 7;",
}
WRONG = {
    "beyond the memory of a CTA": ("ld.shared::cluster.b32 %v, [%a+256];", "out-of-bounds"),
    "of no CTA": ("mapa.shared::cluster.u32 %a, %s, 7; ld.shared::cluster.b32 %v, [%a];", "out-of-bounds"),
    "misaligned": ("st.shared::cluster.b32 [%a+2], %v;", "misaligned"),
    "beyond the own memory": ("ld.shared.b32 %v, [%s+256];", "out-of-bounds"),
    "before the own variable": ("ld.shared.b32 %v, [%s+-4];", "out-of-bounds"),
    "before the own variable, generic": ("ld.b32 %v, [%g+-4];", "out-of-bounds"),
    "beyond an array": ("add.u64 %o, %o, 4;", "out-of-bounds"),
}


def run(body: str, engine: str) -> tuple[list[str], list[int]]:
    """The findings, without the addresses of this process, and the result."""
    data, out = np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)
    kernel = ptxvm.load(KERNEL.replace("BODY", body)).kernel("k")
    found = kernel.launch(8, 32, [data, out], cluster=2, engine=engine, check="memory").findings
    return [re.sub("at 0x[0-9a-f]{9,}", "there", str(each)) for each in found], out.tolist()


@pytest.mark.parametrize("body", RIGHT)
def test_what_is_right_is_cleared(body, quick):
    found, out = run(RIGHT[body], "jit")
    assert quick()
    assert not found
    if body != "a load of the own memory":
        assert out == np.arange(256).reshape(-1, 2, 32)[:, ::-1].ravel().tolist()


@pytest.mark.parametrize("body", WRONG)
def test_what_is_wrong_is_found_on_each_engine(body, quick):
    text, code = WRONG[body]
    expected = run(text, "interp")
    assert expected[0][0].startswith(code)
    assert run(text, "jit") == expected
    assert not quick()


# ── races, reads of nothing and misuse ───────────────────────────────────────────────────

MEET, PUT = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;", "st.shared.b32 [%own], %t;"
ALL = ("race", "init", "sync")
ORDERED = {
    "what another CTA has written": f"{PUT} {MEET} ld.shared::cluster.b32 %v, [%far]; {MEET}",
    "what another CTA writes": f"st.shared::cluster.b32 [%far], %t; {MEET} ld.shared.b32 %v, [%own];",
    "by generic addresses": f"{PUT} {MEET} ld.b32 %v, [%generic]; {MEET}",
    "work between arrival and wait": f"{PUT} barrier.cluster.arrive; ld.shared.b32 %v, [%own]; barrier.cluster.wait; "
    f"ld.shared::cluster.b32 %v, [%far]; {MEET}",
    "atomics": f"@%first st.shared.b32 [m], 0; {MEET} red.shared::cluster.add.u32 [%far0], 1; {MEET} ld.shared.b32 %v, [m];",
    "the barrier of a CTA passes it on": f"{PUT} bar.sync 0; barrier.cluster.arrive; barrier.cluster.wait; bar.sync 0; "
    f"ld.shared::cluster.b32 %v, [%far]; {MEET}",
    "global memory": f"st.global.b32 [%gown], %t; {MEET} ld.global.b32 %v, [%gfar];",
    "in turn": f"{PUT} {MEET} ld.shared::cluster.b32 %v, [%far]; {MEET} {PUT} {MEET} ld.shared::cluster.b32 %v, [%far]; "
    f"{MEET}",
    "copies": f"cp.async.ca.shared.global [%own], [%gown], 4; cp.async.wait_all; {MEET} ld.shared::cluster.b32 %v, [%far]; "
    f"{MEET}",
}  # fmt: skip
UNORDERED = {
    "no barrier": (f"{PUT} ld.shared::cluster.b32 %v, [%far]; {MEET}", "race"),
    "the barrier of the CTA": (f"{PUT} bar.sync 0; ld.shared::cluster.b32 %v, [%far]; {MEET}", "race"),
    "written behind the arrival": (
        f"{MEET} barrier.cluster.arrive; {PUT} barrier.cluster.wait; ld.shared::cluster.b32 %v, [%far]; {MEET}", "race",
    ),
    "read before the wait": (f"{PUT} barrier.cluster.arrive; ld.shared::cluster.b32 %v, [%far]; barrier.cluster.wait;", "race"),
    "an arrival that releases nothing": (
        f"{PUT} barrier.cluster.arrive.relaxed; barrier.cluster.wait; ld.shared::cluster.b32 %v, [%far]; {MEET}", "race",
    ),
    "written again": (f"{PUT} {MEET} ld.shared::cluster.b32 %v, [%far]; {PUT} {MEET}", "race"),
    "two write": (f"st.shared::cluster.b32 [%far0], %t; {MEET}", "race"),
    "an atomic and a load": (
        f"@%first st.shared.b32 [m], 0; {MEET} red.shared::cluster.add.u32 [%far0], 1; ld.shared.b32 %v, [m]; {MEET}", "race",
    ),
    "an atomic of the CTA": (
        f"@%first st.shared.b32 [m], 0; {MEET} red.shared::cluster.add.u32 [%far0], 1; red.cta.shared.add.u32 [m], 1; {MEET}",
        "race",
    ),
    "global memory": (f"st.global.b32 [%gown], %t; bar.sync 0; ld.global.b32 %v, [%gfar]; {MEET}", "race"),
    "of another cluster": (f"st.global.b32 [%gown], %t; {MEET} ld.global.b32 %v, [%gbeyond];", "race"),
    "read of the other CTA at its end": (f"{PUT} {MEET} ld.shared::cluster.b32 %v, [%far];", "ended-cta"),
    "read through a generic address at its end": (f"{PUT} {MEET} ld.b32 %v, [%generic];", "ended-cta"),
    "written at its end": (f"{MEET} st.shared::cluster.b32 [%far], 1;", "ended-cta"),
    "nothing has been written": (
        f"{MEET} ld.shared::cluster.b32 %v, [%far]; st.global.b32 [%gown], %v; {MEET}", "uninitialised-read",
    ),
    "written by one CTA of two": (
        f"setp.eq.u32 %p, %rank, 0; @%p {PUT} {MEET} ld.shared::cluster.b32 %v, [%far]; st.global.b32 [%gown], %v; {MEET}",
        "uninitialised-read",
    ),
    "an unset register": (
        f"{PUT} setp.eq.u32 %p, %rank, 1; @%p mov.u32 %unset, 1; {MEET} st.global.b32 [%gown], %unset;",
        "uninitialised-read",
    ),
    "it arrives twice": (f"barrier.cluster.arrive; barrier.cluster.arrive; barrier.cluster.wait; {PUT}", "invalid-barrier"),
    "it waits twice": (f"{MEET} barrier.cluster.wait; {PUT}", "invalid-barrier"),
}  # fmt: skip
WARPS = """
    .version 8.6
    .target sm_90
    .address_size 64
    .visible .entry k(.param .u64 data)
    {
    .shared .align 16 .b32 m[96];
    .reg .pred %p, %p0, %first; .reg .b64 %g, %gown, %gfar, %gbeyond, %generic;
    .reg .b32 %u, %unset, %v, %t, %w, %lane, %rank, %peer, %own, %far, %far0, %c;
    ld.param.u64 %g, [data]; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x;
    setp.eq.u32 %first, %t, 0; shr.u32 %w, %t, 5; and.b32 %lane, %t, 31;
    mov.u32 %rank, %cluster_ctarank; xor.b32 %peer, %rank, 1;
    mov.u32 %own, m; mapa.shared::cluster.u32 %far0, %own, %peer; mad.lo.u32 %own, %t, 4, %own;
    mapa.shared::cluster.u32 %far, %own, %peer; cvt.u64.u32 %generic, %far; cvta.shared::cluster.u64 %generic, %generic;
    mad.lo.u32 %u, %c, 96, %t; mad.wide.u32 %gown, %u, 4, %g;
    xor.b32 %u, %c, 1; mad.lo.u32 %u, %u, 96, %t; mad.wide.u32 %gfar, %u, 4, %g;
    xor.b32 %u, %c, 2; mad.lo.u32 %u, %u, 96, %t; mad.wide.u32 %gbeyond, %u, 4, %g;
"""


def judged(body: str, engine: str, threads: int = 64, check: tuple[str, ...] = ALL) -> tuple[list[str], list[int]]:
    """The findings and the memory behind a run of clusters of two CTAs."""
    data = np.arange(8 * 96, dtype=np.uint32)
    result = ptxvm.load(WARPS + body).kernel().launch(4, threads, [data], cluster=2, engine=engine, check=check)
    return [re.sub("at 0x[0-9a-f]{9,}", "there", str(each)) for each in result.findings], data.tolist()


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", ORDERED)
@pytest.mark.parametrize("check", [ALL, ("init",), ("sync",)], ids="+".join)
def test_what_barriers_of_clusters_order_is_cleared(name, check, quick):
    found, data = judged(ORDERED[name] + "ret; }", "jit", check=check)
    assert found == []
    assert quick()
    assert judged(ORDERED[name] + "ret; }", "interp", check=check) == ([], data)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", UNORDERED)
def test_what_they_do_not_order_is_found_as_by_the_interpreter(name, quick):
    body, kind = UNORDERED[name]
    found, _ = judged(body + "ret; }", "jit")
    assert kind in {each.split()[0].rstrip(":") for each in found}
    assert not quick()
    assert found == judged(body + "ret; }", "interp")[0]


def random_warps(seed: int, wrong: float) -> tuple[str, int]:
    """Warps of two CTAs that access words of both and meet, in their CTA or all; `wrong` is the share without an order."""
    draw = random.Random(seed)
    warps, ctas = draw.choice([1, 2, 3]), 2
    everyone = list(range(ctas * warps))
    order, roles = Ordered(len(everyone)), [[] for _ in everyone]

    def accesses() -> None:
        for warp, lines in enumerate(roles):
            cta, word, how = draw.randrange(ctas), draw.randrange(40), draw.choice(("ld", "ld", "st"))
            if not order.fine(warp, (cta, word), how) and draw.random() >= wrong:
                continue
            order.past.setdefault((cta, word), []).append((warp, order.now[warp], how))
            where = f"[m+{4 * word}]" if cta == warp // warps else f"[%far0+{4 * word}]"
            space = "shared" if cta == warp // warps else "shared::cluster"
            one = f"setp.eq.u32 %p, %lane, {word % 32}; @%p "
            lines.append(f"{one}st.{space}.u32 {where}, 1;" if how == "st" else f"ld.{space}.u32 %v, {where};")

    for _ in range(draw.choice([3, 6])):
        accesses()
        if draw.random() < 0.5:
            rank = draw.randrange(ctas)
            own = everyone[rank * warps : (rank + 1) * warps]
            order.meets([], own)
            for warp in own:
                roles[warp].append("bar.sync 0;")
            continue
        split = draw.random() < 0.4
        known = order.arrive(everyone)
        for lines in roles:
            lines.append("barrier.cluster.arrive;")
        if split:
            accesses()
        order.learn(everyone, known)
        for lines in roles:
            lines.append("barrier.cluster.wait;")
    numbered = [" ".join([*lines, MEET]) for lines in roles]
    return f"mad.lo.u32 %w, %rank, {warps}, %w;\n" + by_warp(numbered), 32 * warps


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("wrong", [0, 0.02], ids=["ordered", "some not"])
def test_random_clusters_are_judged_as_by_the_interpreter(seed, wrong, quick):
    body, threads = random_warps(seed, wrong)
    found, data = judged(body, "jit", threads, ("race", "sync"))
    cleared = quick()
    assert (found, data) == judged(body, "interp", threads, ("race", "sync"))
    assert cleared == (not found)


def test_clusters_of_more_warps_than_have_clocks_are_left_to_the_interpreter(quick):
    body = f"setp.lt.u32 %p, %t, 96; @!%p bra END; {PUT} END: {MEET} ret; }}"
    assert judged(body, "jit", threads=576) == judged(body, "interp", threads=576)
    assert not quick()
