"""Launches in clusters: the same on every engine (PTX 2.2.2, 9.7.13.3)."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

GRID, CLUSTER, BLOCK = (4, 6, 2), (2, 3, 1), 40

# The number of the CTA in the grid, and in its cluster.
PLACE = """mov.u32 %x, %ctaid.x; mov.u32 %y, %ctaid.y; mov.u32 %z, %ctaid.z;
    mov.u32 %n, %nctaid.x; mov.u32 %m, %nctaid.y;
    mad.lo.u32 %cta, %z, %m, %y;
    mad.lo.u32 %cta, %cta, %n, %x;
    mov.u32 %rank, %cluster_ctarank;"""

# Each CTA tells where it is, and sums over its cluster what lies in the shared memory of each CTA.
SUMS = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry sums(.param .u64 out) {
    .reg .b64 %out; .reg .b32 %x, %y, %z, %n, %m, %cta, %rank, %count, %t, %at, %one, %sum; .reg .pred %p;
    .shared .b32 own[64];
    ld.param.u64 %out, [out];
    PLACE
    mov.u32 %count, %cluster_nctarank;
    mov.u32 %t, %tid.x;
    mov.u32 %at, own;
    mad.lo.u32 %at, %t, 4, %at;
    st.shared.b32 [%at], %cta;
    barrier.cluster.arrive.release.aligned;
    barrier.cluster.wait.acquire.aligned;
    mov.u32 %sum, 0;
next:
    sub.u32 %count, %count, 1;
    mapa.shared::cluster.u32 %one, %at, %count;
    ld.shared::cluster.b32 %one, [%one];
    add.u32 %sum, %sum, %one;
    setp.ne.u32 %p, %count, 0;
    @%p bra next;
    mad.lo.u32 %cta, %cta, %ntid, %t;
    mad.wide.u32 %out, %cta, 8, %out;
    st.global.v2.b32 [%out], {%sum, %rank};
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    ret;
}
""".replace("PLACE", PLACE).replace("%ntid", str(BLOCK))


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_ctas_read_the_memory_of_their_cluster(engine):
    out = np.zeros((GRID[2], GRID[1], GRID[0], BLOCK, 2), np.uint32)
    result = ptxvm.load(SUMS).kernel().launch(GRID, BLOCK, [out], cluster=CLUSTER, engine=engine)
    assert result.cluster == CLUSTER
    numbers = np.arange(48).reshape(2, 6, 4)
    parts = numbers.reshape(2, 2, 3, 2, 2)  # z, clusters along y, y in the cluster, clusters along x, x in the cluster
    sums = np.broadcast_to(parts.sum(axis=(2, 4), keepdims=True), parts.shape).reshape(2, 6, 4)
    ranks = np.broadcast_to(np.arange(6).reshape(1, 1, 3, 1, 2), parts.shape).reshape(2, 6, 4)
    assert (out[..., 0] == sums[..., None]).all()
    assert (out[..., 1] == ranks[..., None]).all()


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_threads_that_wait_for_their_cluster_for_ever(engine):
    arrive = "barrier.cluster.arrive.release.aligned;"
    text = SUMS.replace(arrive, f"setp.eq.u32 %p, %rank, 1; @%p bar.sync 1, 96; {arrive}")
    with pytest.raises(ptxvm.Fault, match="no thread can go on") as found:
        ptxvm.load(text).kernel().launch(6, 1, [np.zeros(480, np.uint32)], cluster=6, engine=engine)
    assert found.value.kind == "deadlock"
    assert "at line 20 (barrier.cluster.wait.acquire.aligned)" in str(found.value)


# Libraries reach another CTA through a pointer: of `mapa.u64` `cvta.to.shared` makes an address of the cluster, and of an
# address of the cluster `cvta.shared` makes a pointer, on hardware and in cuda::ptx (PTX 9.7.9.20 leaves it open).
POINTERS = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry pointers(.param .u64 out) {
    .reg .b64 %out, %own, %there; .reg .b32 %cta, %other, %t, %at, %one, %two, %sum;
    .shared .b32 before[100], own[64];
    ld.param.u64 %out, [out];
    mov.u32 %cta, %ctaid.x; mov.u32 %t, %tid.x;
    mov.u32 %other, %cluster_ctarank; xor.b32 %other, %other, 1;
    mov.u32 %at, own; mad.lo.u32 %at, %t, 4, %at;
    mad.lo.u32 %sum, %cta, 64, %t; st.shared.b32 [%at], %sum;
    barrier.cluster.arrive; barrier.cluster.wait;
    cvt.u64.u32 %own, %at; cvta.shared.u64 %own, %own; mapa.u64 %there, %own, %other;
    cvta.to.shared.u64 %there, %there; cvt.u32.u64 %one, %there;
    ld.shared::cluster.b32 %one, [%one];
    mapa.shared::cluster.u32 %two, %at, %other; cvt.u64.u32 %there, %two; cvta.shared.u64 %there, %there;
    ld.b32 %two, [%there];
    cvta.to.shared.u64 %own, %own; cvt.u32.u64 %at, %own; ld.shared.b32 %at, [%at];
    mad.wide.u32 %out, %sum, 12, %out;
    st.global.b32 [%out], %one; st.global.b32 [%out+4], %two; st.global.b32 [%out+8], %at;
    barrier.cluster.arrive; barrier.cluster.wait;
    ret;
}
"""


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_pointers_into_the_cluster_and_addresses_are_converted(engine):
    out = np.zeros((4, 64, 3), np.uint32)
    ptxvm.load(POINTERS).kernel().launch(4, 64, [out], cluster=2, engine=engine)
    numbers = np.arange(4 * 64).reshape(4, 64)
    other = numbers[[1, 0, 3, 2]]
    assert (out == np.stack([other, other, numbers], axis=-1)).all()


ALIGNED = """
.version 8.0
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 raw[];
.visible .entry aligned(.param .u64 out) {
    .reg .b64 %out, %p; .reg .b32 %cta, %at, %low;
    .shared .align 16 .b8 before[48];
    ld.param.u64 %out, [out];
    mov.u32 %at, raw; cvt.u64.u32 %p, %at; cvta.shared.u64 %p, %p;
    cvt.u32.u64 %low, %p; sub.u32 %low, %low, %at; and.b32 %low, %low, 1023;
    mov.u32 %cta, %ctaid.x; mad.wide.u32 %out, %cta, 4, %out; st.global.b32 [%out], %low;
    st.shared.b8 [before], 1;
    barrier.cluster.arrive; barrier.cluster.wait;
    ret;
}
"""


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize("size", [1000, 1100, 5000])
def test_pointers_into_shared_memory_are_aligned_as_their_addresses(engine, size):
    """So an offset that a kernel rounds up by its pointer, as for a swizzle, is the same in all CTAs of a cluster."""
    out = np.full(8, -1, np.int32)
    ptxvm.load(ALIGNED).kernel().launch(8, 32, [out], cluster=4, shared=size - 48, engine=engine)
    assert (out == 0).all()


# Each CTA counts itself, and waits for no other one of its cluster.
COUNTS = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry counts(.param .u64 out) {
    .reg .b64 %out; .reg .b32 %x, %y, %z, %n, %m, %cta, %rank;
    ld.param.u64 %out, [out];
    PLACE
    add.u32 %rank, %rank, 1;
    mad.wide.u32 %out, %cta, 4, %out;
    red.global.add.u32 [%out], %rank;
    ret;
}
""".replace("PLACE", PLACE)


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(
    ("grid", "cluster"),
    [((8, 1, 1), (2, 1, 1)), ((4, 4, 1), (2, 2, 1)), ((4, 4, 1), (1, 2, 1)), ((8, 8, 1), (4, 2, 1)), ((4, 2, 4), (1, 2, 2))],
)
def test_all_ctas_run_that_end_without_waiting_for_their_cluster(engine, grid, cluster):
    out = np.zeros(grid[::-1], np.uint32)
    ptxvm.load(COUNTS).kernel().launch(grid, 32, [out], cluster=cluster, engine=engine)
    z, y, x = np.indices(out.shape)
    ranks = (z % cluster[2] * cluster[1] + y % cluster[1]) * cluster[0] + x % cluster[0]
    assert (out == 32 * (ranks + 1)).all()


ABSENT = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 rank)
{
    .reg .b64 %out, %own; .reg .b32 %r, %rank, %at; .shared .b32 own;
    ld.param.u64 %out, [out]; ld.param.u32 %rank, [rank];
    mov.u32 %r, 7; st.shared.b32 [own], %r;
    mov.u32 %at, own; mov.u64 %own, own; cvta.shared.u64 %own, %own;
    ACCESS
    st.global.b32 [%out], %r;
    ret;
}"""


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(
    ("access", "said"),
    [
        (
            "mapa.shared::cluster.u32 %at, %at, %rank; ld.shared::cluster.b32 %r, [%at];",
            "no CTA 1 in a launch without clusters",
        ),
        (
            "mapa.shared::cluster.u32 %at, %at, %rank; atom.shared::cluster.add.u32 %r, [%at], 0;",
            "no CTA 1 in a launch without",
        ),
        ("mapa.u64 %own, %own, %rank; ld.b32 %r, [%own];", "nothing is allocated there"),
    ],
)
def test_a_launch_without_clusters_has_rank_0_alone(engine, access, said):
    """PTX 9.7.9.23: the rank is that of a CTA of the cluster; what a launch that forgets its clusters reads is not its own."""
    kernel = ptxvm.load(ABSENT.replace("ACCESS", access)).kernel()
    out = np.zeros(1, np.uint32)
    kernel.launch(1, 1, [out, 0], engine=engine)
    assert out[0] == 7
    with pytest.raises(ptxvm.Fault, match=said) as fault:
        kernel.launch(1, 1, [out, 1], engine=engine)
    assert fault.value.kind == "out-of-bounds"


COUNTED = """
.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out, .param .align 64 .b8 map[128], .param .u32 other)
{
    .reg .b64 %out, %map; .reg .b32 %r, %rank, %at, %bar, %other; .reg .pred %first, %over;
    .shared .align 128 .b32 own[4]; .shared .b64 done;
    ld.param.u64 %out, [out]; ld.param.u32 %other, [other]; mov.b64 %map, map; cvta.param.u64 %map, %map;
    mov.u32 %rank, %cluster_ctarank; setp.eq.u32 %first, %rank, 0;
    mbarrier.init.shared.b64 [done], 1; fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared.b64 _, [done], BYTES;
    barrier.cluster.arrive; barrier.cluster.wait;
    mapa.shared::cluster.u32 %at, own, 1; mapa.shared::cluster.u32 %bar, done, %other; mov.u32 %r, 1;
    @%first COPY
    setp.eq.u32 %first, %rank, %other;
    @!%first bra end;
wait:
    mbarrier.try_wait.parity.acquire.cluster.shared.b64 %over, [done], 0;
    @!%over bra wait;
end:
    barrier.cluster.arrive; barrier.cluster.wait;
    setp.eq.u32 %first, %rank, 1;
    @%first ld.shared.b32 %r, [own];
    @%first st.global.b32 [%out], %r;
    ret;
}"""
STORE = "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%at], %r, [%bar];"
TENSOR = "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytesGROUP [%at], [%map, {0}], [%bar];"


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(
    ("copy", "size", "allowed"),
    [(STORE, 4, {1}), (TENSOR.replace("GROUP", ""), 16, {1}), (TENSOR.replace("GROUP", ".cta_group::2"), 16, {0, 1})],
    ids=["st.async", "tensor", "tensor to a pair"],
)
def test_an_mbarrier_counts_what_comes_to_its_own_cta(engine, copy, size, allowed):
    """PTX 9.7.9.12, 9.7.9.27.1.2: only with `.cta_group::2` may it lie in the other CTA of the pair."""
    kernel = ptxvm.load(COUNTED.replace("COPY", copy).replace("BYTES", str(size))).kernel()
    tensor = ptxvm.DeviceArray.from_host(np.ones(4, np.uint32))
    map = ptxvm.TensorMap.tiled(ptxvm.TensorType.UINT32, tensor, (4,))
    for other in (0, 1):
        out = np.zeros(1, np.uint32)
        if other in allowed:
            kernel.launch(2, 1, [out, map, other], cluster=2, engine=engine)
            assert out[0] == 1
            continue
        with pytest.raises(
            ptxvm.Fault, match="the mbarrier lies in CTA 0 of the cluster, and what it counts goes to CTA 1"
        ) as fault:
            kernel.launch(2, 1, [out, map, other], cluster=2, engine=engine)
        assert fault.value.kind == "invalid-mbarrier"


# Each thread stores four words at its place in the next CTA, and the last thread WRONG bytes further.
STORES = """
.version 8.1
.target sm_90
.address_size 64
.visible .entry stores(.param .u64 out) .reqnctapercluster 2 {
    .reg .b64 %out; .reg .b32 %t, %rank, %at, %bar, %r<4>; .reg .pred %p;
    .shared .align 16 .b32 own[128];
    .shared .align 8 .b64 done;
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    mov.u32 %rank, %cluster_ctarank;
    setp.eq.u32 %p, %t, 0;
    @%p mbarrier.init.shared.b64 [done], 1;
    @%p mbarrier.arrive.expect_tx.shared.b64 _, [done], 512;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    xor.b32 %rank, %rank, 1;
    mov.u32 %at, own;
    mad.lo.u32 %at, %t, 16, %at;
    setp.eq.u32 %p, %t, 31;
    @%p add.u32 %at, %at, WRONG;
    mapa.shared::cluster.u32 %at, %at, %rank;
    mov.u32 %bar, done;
    mapa.shared::cluster.u32 %bar, %bar, %rank;
    mad.lo.u32 %r0, %rank, 100, %t;
    add.u32 %r1, %r0, 1000;
    add.u32 %r2, %r0, 2000;
    add.u32 %r3, %r0, 3000;
    st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%at], {%r0, %r1, %r2, %r3}, [%bar];
again:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [done], 0;
    @!%p bra again;
    mov.u32 %at, own;
    mad.lo.u32 %at, %t, 16, %at;
    ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [%at];
    mov.u32 %rank, %ctaid.x;
    mad.lo.u32 %at, %rank, 32, %t;
    mad.wide.u32 %out, %at, 16, %out;
    st.global.v4.b32 [%out], {%r0, %r1, %r2, %r3};
    ret;
}
"""


@pytest.mark.parametrize("asynchronous", [None, "early", "late"])
@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_a_warp_stores_to_another_cta(engine, asynchronous):
    """PTX 9.7.9.12: the values of each thread at its place; the bytes of all threads end the phase."""
    out = np.zeros((2, 32, 4), np.uint32)
    ptxvm.load(STORES.replace("WRONG", "0")).kernel().launch(2, 32, [out], engine=engine, asynchronous=asynchronous)
    assert (out == 100 * np.arange(2)[:, None, None] + np.arange(32)[:, None] + 1000 * np.arange(4)).all()


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(("wrong", "kind"), [("1048576", "out-of-bounds"), ("4", "misaligned")])
def test_one_wrong_place_of_a_warp_names_its_thread(engine, wrong, kind):
    with pytest.raises(ptxvm.Fault) as caught:
        ptxvm.load(STORES.replace("WRONG", wrong)).kernel().launch(2, 32, [np.zeros(256, np.uint32)], engine=engine)
    assert (caught.value.kind, caught.value.place.thread) == (kind, (31, 0, 0))
