"""Races between the CTAs of a cluster, and of copies that go on beside them (PTX 8.9, 9.7.13.3, 9.7.9.25)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxvm
from ptxvm import DeviceArray, TensorMap, TensorType

FILES = Path(__file__).parents[2] / "conformance" / "cluster"
ALL = ("race", "memory", "init", "sync")


@pytest.mark.parametrize(
    ("file", "kernel", "ctas", "threads"),
    [
        ("addresses", "neighbours", 4, 1), ("addresses", "generic", 4, 1), ("asynchronous", "stores", 2, 1),
        ("asynchronous", "copies", 3, 1),
    ],
)  # fmt: skip
def test_right_kernels_have_no_findings(file, kernel, ctas, threads):
    module = ptxvm.load(FILES / f"{file}.ptx")
    result = module.kernel(kernel).launch(ctas, threads, [np.zeros(16, np.uint32)], check=ALL, schedules=3, seed=1)
    assert result.findings == []


@pytest.mark.parametrize(
    ("file", "kernel", "ctas", "old", "new"),
    [
        # the write of the neighbour is not awaited, or its arrival passes nothing on
        ("addresses", "neighbours", 4, "    barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;\n", ""),
        ("addresses", "neighbours", 4, "barrier.cluster.arrive.aligned;", "barrier.cluster.arrive.relaxed.aligned;"),
        # what st.async stores is read before its mbarrier says so
        ("asynchronous", "stores", 2, "    @!%over bra again;\n    ld.shared.v2", "    ld.shared.v2"),
        # the bytes are sent on while the copy that brings them may go on
        ("asynchronous", "copies", 3, "    @!%over bra wait;\n", ""),
    ],
)
def test_what_is_missing_is_a_race(file, kernel, ctas, old, new):
    text = (FILES / f"{file}.ptx").read_text()
    assert text.count(old) >= 1
    module = ptxvm.load(text.replace(old, new, 1))
    result = module.kernel(kernel).launch(ctas, 1, [np.zeros(16, np.uint32)], check="race", schedules=6, seed=1)
    assert {each.kind for each in result.findings} == {"race"}


STORE = """
.version 8.6
.target sm_90
.address_size 64
.visible .entry store(.param .align 64 .b8 map[128]) {
    .reg .b64 %map; .reg .b32 %i, %at; .reg .pred %first;
    .shared .align 128 .b32 tile[32];
    mov.b64 %map, map;
    mov.u32 %i, %tid.x;
    setp.eq.u32 %first, %i, 0;
    mov.u32 %at, tile;
    mad.lo.u32 %at, %i, 4, %at;
    st.shared.b32 [%at], %i;
    fence.proxy.async;
    bar.sync 0;
    @%first cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%map, {0}], [tile];
    @%first cp.async.bulk.commit_group;
    @%first cp.async.bulk.wait_group.read 0;
    bar.sync 0;
    st.shared.b32 [%at], 7;
    ret;
}
"""


@pytest.mark.parametrize("waits", [True, False])
def test_a_buffer_is_not_used_again_while_a_copy_reads_it(waits):
    array = DeviceArray(32, np.uint32)
    made = TensorMap.tiled(TensorType.UINT32, array, (32,))
    text = STORE if waits else STORE.replace("@%first cp.async.bulk.wait_group.read 0;", "")
    result = ptxvm.load(text).kernel().launch(1, 32, [made], check="race", schedules=4, seed=3)
    if waits:
        assert result.findings == []
        assert (array.array == np.arange(32)).all()
        return
    (found,) = result.findings
    assert (found.kind, found.hazard) == ("race", "WAR")
    assert "cp.async.bulk.wait_group" in found.missing


ARRIVALS = """
.version 8.6
.target sm_90
.address_size 64
.visible .entry arrivals(.param .u64 out) .reqnctapercluster 2 {
    .reg .b64 %out; .reg .b32 %i, %at, %r, %rank; .reg .pred %p;
    .shared .align 8 .b64 done;
    .shared .b32 own;
    ld.param.u64 %out, [out];
    mov.u32 %rank, %cluster_ctarank;
    mov.u32 %i, 9;
    st.shared.b32 [own], %i;
    mbarrier.init.shared.b64 [done], 2;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    mapa.shared::cluster.u32 %at, done, 0;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%at];
    setp.ne.u32 %p, %rank, 0;
    @%p bra end;
again:
    mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p, [done], 0;
    @!%p bra again;
    mapa.shared::cluster.u32 %at, own, 1;
    ld.shared::cluster.b32 %r, [%at];
    st.shared::cluster.b32 [%at], 1;
    st.global.b32 [%out], %r;
end:
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    ret;
}
"""


def test_ctas_that_arrive_at_one_mbarrier_together_pass_on_what_each_knows():
    out = np.zeros(1, np.uint32)
    result = ptxvm.load(ARRIVALS).kernel().launch(2, 1, [out], check=ALL, schedules=4, seed=2)
    assert result.findings == []
    assert out[0] == 9


@pytest.mark.parametrize("fenced", [True, False])
def test_a_fence_makes_an_mbarrier_known_to_the_cluster(fenced):
    """`barrier.cluster.arrive.relaxed` passes on what `fence.mbarrier_init` has released, and nothing else (PTX 9.7.13.4)."""
    fence = "    fence.mbarrier_init.release.cluster;\n"
    text = ARRIVALS.replace(fence + "    barrier.cluster.arrive.aligned", fence + "    barrier.cluster.arrive.relaxed.aligned")
    result = ptxvm.load(text if fenced else text.replace(fence, "")).kernel().launch(2, 1, [np.zeros(1, np.uint32)], check=ALL)
    missing = {each.missing for each in result.findings if "mbarrier.init" in each.accesses[0].place.text}
    assert missing == (set() if fenced else {
        "fence.mbarrier_init.release.cluster after the mbarrier.init, before the CTAs of the cluster synchronise"
    })  # fmt: skip


MESSAGE = """
.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 box) {
    .reg .b64 %box; .reg .b32 %cta, %v; .reg .pred %p;
    ld.param.u64 %box, [box];
    mov.u32 %cta, %ctaid.x;
    setp.ne.u32 %p, %cta, 0;
    @%p bra reader;
    st.global.b32 [%box+4], 42;
    st.release.SCOPE.global.b32 [%box], 1;
    ret;
reader:
    setp.ne.u32 %p, %cta, READER;
    @%p ret;
again:
    ld.acquire.SCOPE.global.b32 %v, [%box];
    setp.eq.u32 %p, %v, 0;
    @%p bra again;
    ld.global.b32 %v, [%box+4];
    ret;
}
"""


@pytest.mark.parametrize(
    ("scope", "reader", "missing"),
    [
        ("cta", 1, ".cluster"), ("cta", 2, ".gpu"), ("cluster", 1, None), ("cluster", 2, ".gpu"), ("gpu", 1, None),
        ("gpu", 2, None),
    ],
)  # fmt: skip
def test_the_scope_of_a_cluster_includes_its_ctas_alone(scope, reader, missing):
    """Message passing to the other CTA of the cluster, or to the next cluster (PTX 8.5)."""
    text = MESSAGE.replace("SCOPE", scope).replace("READER", str(reader))
    result = ptxvm.load(text).kernel().launch(4, 1, [np.zeros(2, np.uint32)], cluster=2, check="race", timeout=20)
    assert {each.kind for each in result.findings} == ({"race"} if missing else set())
    if missing:
        assert any(f"a scope of {missing}" in each.missing for each in result.findings)


@pytest.mark.parametrize(("scope", "reader", "races"), [("cluster", 1, False), ("cluster", 2, True), ("gpu", 2, False)])
def test_fences_of_a_cluster_order_its_ctas_alone(scope, reader, races):
    """The same by relaxed accesses of the device and fences of a scope (PTX 8.8)."""
    text = MESSAGE.replace("READER", str(reader)).replace("st.release.SCOPE", f"fence.acq_rel.{scope}; st.relaxed.gpu")
    text = text.replace("ld.acquire.SCOPE", "ld.relaxed.gpu").replace(
        "@%p bra again;", f"@%p bra again; fence.acq_rel.{scope};"
    )
    result = ptxvm.load(text).kernel().launch(4, 1, [np.zeros(2, np.uint32)], cluster=2, check="race", timeout=20)
    assert {each.kind for each in result.findings} == ({"race"} if races else set())
