"""What the lanes of a warp, and the threads of a CTA, do together in random kernels."""

from __future__ import annotations

from math import prod

from ptxvm.campaign.random_kernels import strategies as st
from ptxvm.campaign.random_kernels.memory import OWN
from ptxvm.campaign.random_kernels.parts import ALL, F, P, R, Shape, Statement, Strategy, filled, pure

# ── what lanes do together ──────────────────────────────────────────────────────────────

COLLECTIVES = [
    "shfl.sync.bfly.b32 {r}, {r}, {r}, 0x1f, ALL;", "shfl.sync.idx.b32 {r}|{p}, {r}, {r}, 0x1f, ALL;",
    "shfl.sync.up.b32 {r}|{p}, {r}, 3, 0, ALL;", "shfl.sync.down.b32 {r}, {r}, {r}, 0x181f, ALL;",
    "shfl.sync.bfly.b32 {f}, {f}, 16, 0x1f, ALL;", "vote.sync.ballot.b32 {r}, {p}, ALL;", "vote.sync.any.pred {p}, {p}, ALL;",
    "vote.sync.all.pred {p}, !{p}, ALL;", "vote.sync.uni.pred {p}, {p}, ALL;", "match.any.sync.b32 {r}, {r}, ALL;",
    "match.any.sync.b64 {r}, {d}, ALL;", "match.all.sync.b32 {r}|{p}, {r}, ALL;", "match.all.sync.b64 {r}|{p}, {d}, ALL;",
    "redux.sync.add.u32 {r}, {r}, ALL;", "redux.sync.min.s32 {r}, {r}, ALL;", "redux.sync.max.u32 {r}, {r}, ALL;",
    "redux.sync.and.b32 {r}, {r}, ALL;", "redux.sync.or.b32 {r}, {r}, ALL;", "redux.sync.xor.b32 {r}, {r}, ALL;",
    "redux.sync.max.abs.NaN.f32 {f}, {f}, ALL;", "redux.sync.min.f32 {f}, {f}, ALL;", "elect.sync {r}|{p}, ALL;",
    "bar.warp.sync ALL;", "call ({r}), f3, ({r}, ALL);",
    """mov.b64 {{%t0, %t2}}, {d};
    shfl.sync.bfly.b32 %t0, %t0, 5, 0x1f, ALL;
    shfl.sync.bfly.b32 %t2, %t2, 5, 0x1f, ALL;
    mov.b64 {d}, {{%t0, %t2}};""",
]  # fmt: skip
MATRICES = [
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%f0,%f1,%f2,%f3}}, {{{r},{r},{r},{r}}}, {{{r},{r}}}, FOUR;",
    "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {{%f3,%f2,%f1,%f0}}, {{{r},{r}}}, {{{r}}}, FOUR;",
    "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {{%r4,%r5}}, {{{r},{r},{r},{r}}}, {{{r},{r}}}, {{{r},{r}}};",
    "mma.sync.aligned.m16n8k16.row.col.satfinite.s32.s8.u8.s32 {{%r0,%r1,%r2,%r3}}, {{{r},{r}}}, {{{r}}}, WORDS;",
    "movmatrix.sync.aligned.m8n8.trans.b16 {r}, {r};",
]
WHOLE = ["activemask.b32 {r};"]
SHORT = {"FOUR": "{{{f},{f},{f},{f}}}", "WORDS": "{{{r},{r},{r},{r}}}"}
BARRIERS = [
    "bar.sync 0;", "barrier.sync 1;", "bar.red.and.pred {p}, 2, {p};",
    "bar.red.or.pred {p}, 2, !{p};", "bar.red.popc.u32 {r}, 4, {p};", "bar.sync 5, %whole;",
]  # fmt: skip
NOBODY = st.just("")
MASKS = ["%m0", "%m1", "%m2"]  # of the lanes that are here, where a warp has parted, from the outside to the inside


def collective(shape: Shape, mask: str) -> Strategy[Statement]:
    """Something that the lanes of a mask do: a whole warp, or a part of it."""
    lines = COLLECTIVES + (MATRICES + WHOLE if mask == ALL else [])
    if prod(shape) % 32:
        lines = [each for each in lines if each not in MATRICES]
    for word, meaning in {**SHORT, "ALL": mask}.items():
        lines = [each.replace(word, meaning) for each in lines]
    return filled(lines, NOBODY)


def inside(mask: str) -> str:
    """The register for the mask of a part of the lanes of another one; empty where there is none left."""
    return next(iter(MASKS[MASKS.index(mask) + 1 if mask in MASKS else 0 :]), "")


@st.composite
def exchange(draw: st.Draw, shape: Shape) -> Statement:
    """Threads read what others have written, between barriers."""
    index, source, target = draw(R), draw(st.one_of(R, F)), draw(st.one_of(R, F))
    last = 1 << (prod(shape).bit_length() - 1)
    return Statement(f"""
        bar.sync 0;
        st.shared.b32 [%own+4], {source};
        bar.sync 0;
        and.b32 %t0, {index}, {last - 1};
        mad.lo.u32 %t0, %t0, {OWN}, %buffer;
        ld.shared.b32 {target}, [%t0+4];
        bar.sync 0;""")


@st.composite
def meeting(draw: st.Draw, mask: str) -> Statement:
    """Lanes of both sides of a branch meet in a shuffle."""
    met = [f"shfl.sync.bfly.b32 {draw(R)}, {draw(R)}, {n}, 0x1f, {mask};" for n in (1, 16)]
    lines = f"@{draw(P)} bra ELSE@n;\n{{0}}\n{met[0]}\nbra END@n;\nELSE@n:\n{{1}}\n{met[1]}\nEND@n:"
    return Statement(lines, [[draw(pure())], [draw(pure())]])


ARRIVAL = Statement("""
    and.b32 %t0, %thread, 32;
    setp.ne.u32 %q1, %t0, 0;
    @%q1 bra ELSE@n;
    bar.sync 3, %whole;
    bra END@n;
    ELSE@n:
    bar.arrive 3, %whole;
    END@n:
    bar.sync 0;""")
"""Warps meet at a barrier where some only arrive."""

LOCK = """
    LOCK@n:
    atom.shared.cas.b32 %t0, [%counts+132], 0, 1;
    setp.ne.u32 %q1, %t0, 0;
    @%q1 bra LOCK@n;
    ld.volatile.shared.u32 %t0, [%counts+128];
    add.u32 %t0, %t0, {};
    st.volatile.shared.u32 [%counts+128], %t0;
    membar.cta;
    atom.shared.exch.b32 %t0, [%counts+132], 0;"""
