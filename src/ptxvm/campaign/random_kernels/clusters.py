"""Cooperation of the CTAs of a cluster in random kernels: distributed shared memory, and barriers of the cluster.

All have barriers of the cluster before and behind them, and use `tile`, as what CTAs do in `shared.py`.
"""

from __future__ import annotations

from math import prod

from ptxvm.campaign.random_kernels import strategies as st
from ptxvm.campaign.random_kernels.memory import INPUT
from ptxvm.campaign.random_kernels.parts import D, P, R, Shape, Statement
from ptxvm.campaign.random_kernels.shared import BARRIER, counting

SHAPES: list[Shape] = [(2,), (2,), (1, 2), (3,), (4,), (2, 1, 2)]
"""The CTAs of a cluster."""
MEET = st.sampled_from([
    "barrier.cluster.arrive;\nbarrier.cluster.wait;", "barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;",
    "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;",
])  # fmt: skip
POSITIONS = [
    "mov.u32 {r}, %cluster_ctarank;", "mov.u32 {r}, %cluster_nctarank;", "mov.u32 {r}, %cluster_ctaid.x;",
    "mov.u32 {r}, %cluster_ctaid.y;", "mov.u32 {r}, %cluster_nctaid.z;", "mov.u32 {r}, %clusterid.x;",
    "mov.u32 {r}, %nclusterid.y;", "mov.pred {p}, %is_explicit_cluster;", "isspacep.shared::cluster {p}, %any;",
]  # fmt: skip
"""Where a CTA is in its cluster, and a cluster in the grid."""
OTHER = """mov.u32 %xc@n, %cluster_ctarank;
        mov.u32 %xn@n, %cluster_nctarank;
        add.u32 %xc@n, %xc@n, {turn};
        rem.u32 %xc@n, %xc@n, %xn@n;"""
"""The rank of another CTA, or of this one again."""
TURN = st.sampled_from(["1", "1", "2", "3", "%few", "%cluster_nctaid.x"])


def turned(draw: st.Draw) -> str:
    """Lines that compute the rank of a CTA."""
    turn = draw(TURN)
    first = f"mov.u32 %xd@n, {turn};\n" if turn.startswith("%") else ""
    return first + OTHER.format(turn="%xd@n" if first else turn)


@st.composite
def neighbour(draw: st.Draw, shape: Shape) -> Statement:
    """Each thread fills a cell, and reads that of a thread of another CTA, by an address in a window or a generic one."""
    threads, size = prod(shape), draw(st.sampled_from([4, 8]))
    source, target = (draw(R), draw(R)) if size == 4 else (draw(D), draw(D))
    index = draw(st.sampled_from(["mov.u32 %xi@n, %thread;", f"sub.u32 %xi@n, {threads - 1}, %thread;",
                                  f"rem.u32 %xi@n, {draw(R)}, {threads};"]))  # fmt: skip
    load, window = f"b{8 * size} {target}", "shared::cluster"
    read = draw(st.sampled_from([
        f"mapa.{window}.u32 %xp@n, %xp@n, %xc@n;\nld.{window}.{load}, [%xp@n];",
        f"mapa.{window}.u32 %xt@n, tile, %xc@n;\nmad.lo.u32 %xp@n, %xi@n, {size}, %xt@n;\nld.{window}.{load}, [%xp@n];",
        f"cvt.u64.u32 %ya@n, %xp@n;\ncvta.shared.u64 %ya@n, %ya@n;\nmapa.u64 %ya@n, %ya@n, %xc@n;\nld.{load}, [%ya@n];",
    ]))  # fmt: skip
    return Statement(
        f"""{draw(MEET)}
        mov.u32 %xt@n, tile;
        mad.lo.u32 %xo@n, %thread, {size}, %xt@n;
        st.shared.b{8 * size} [%xo@n], {source};
        {draw(MEET)}
        {index}
        mad.lo.u32 %xp@n, %xi@n, {size}, %xt@n;
        {turned(draw)}
        {read}
        {draw(MEET)}"""
    )


@st.composite
def cluster_histogram(draw: st.Draw, shape: Shape) -> Statement:
    """All threads update words of some CTA of the cluster, and read one each."""
    operation, size, bins, value, target, old = counting(draw, shape)
    update = draw(st.sampled_from([
        f"red.relaxed.cluster.shared::cluster.{operation} [%xp@n], {value};",
        f"atom.shared::cluster.{operation} {old}, [%xp@n], {value};",
    ]))  # fmt: skip
    guard = draw(st.one_of(st.just(""), st.builds("@{} ".format, P)))
    return Statement(
        f"""{draw(MEET)}
        mov.u32 %xt@n, tile;
        mad.lo.u32 %xo@n, %thread, {size}, %xt@n;
        st.shared.b{8 * size} [%xo@n], {target};
        {draw(MEET)}
        and.b32 %xi@n, {draw(st.sampled_from([draw(R), "%thread"]))}, {bins - 1};
        mad.lo.u32 %xp@n, %xi@n, {size}, %xt@n;
        {turned(draw)}
        mapa.shared::cluster.u32 %xp@n, %xp@n, %xc@n;
        {guard}{update}
        {draw(MEET)}
        ld.shared.b{8 * size} {target}, [%xo@n];
        {draw(MEET)}"""
    )


@st.composite
def sent(draw: st.Draw, shape: Shape) -> Statement:
    """Each thread, or one for all, stores to shared memory of another CTA, which counts the bytes at its mbarrier."""
    threads = prod(shape)
    if draw(st.booleans()):
        size = 16 * draw(st.integers(1, min(threads, 16)))
        first = 16 * draw(st.integers(0, (INPUT - size) // 16))
        send = f"""add.s64 %ya@n, %in, {first};
        mapa.shared::cluster.u32 %xp@n, %xt@n, %xc@n;
        @%za@n cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%xp@n], [%ya@n], {size}, [%xr@n];"""
    else:
        size = 4 * threads
        send = f"""mapa.shared::cluster.u32 %xp@n, %xo@n, %xc@n;
        st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%xp@n], {draw(R)}, [%xr@n];"""
    return Statement(
        f"""{draw(MEET)}
        mov.u32 %xt@n, tile;
        mad.lo.u32 %xo@n, %thread, 4, %xt@n;
        add.u32 %xb@n, %counts, {BARRIER};
        setp.eq.u32 %za@n, %thread, 0;
        @%za@n mbarrier.init.shared::cta.b64 [%xb@n], 1;
        @%za@n mbarrier.arrive.expect_tx.shared::cta.b64 _, [%xb@n], {size};
        fence.mbarrier_init.release.cluster;
        fence.proxy.async.shared::cta;
        {draw(MEET)}
        {turned(draw)}
        mapa.shared::cluster.u32 %xr@n, %xb@n, %xc@n;
        {send}
        WAIT@n:
        mbarrier.try_wait.parity.shared::cta.b64 %zb@n, [%xb@n], 0;
        @!%zb@n bra WAIT@n;
        and.b32 %xi@n, {draw(R)}, 15;
        min.u32 %xi@n, %xi@n, {size // 4 - 1};
        mad.lo.u32 %xi@n, %xi@n, 4, %xt@n;
        ld.shared.u32 {draw(R)}, [%xi@n];
        {draw(MEET)}
        @%za@n mbarrier.inval.shared::cta.b64 [%xb@n];
        {draw(MEET)}"""
    )


__all__ = ["POSITIONS", "SHAPES", "cluster_histogram", "neighbour", "sent"]
