"""`clusterlaunchcontrol`: the threads of a grid cancel clusters that have not begun, and do their work (PTX 9.7.13.17).

The kernel is the loop of the manual's example: a cluster asks for another while it works on its own.
"""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

import ptxvm

ALL = ".multicast::cluster::all"


def source(multicast: str = "", *, steal: bool = True) -> str:
    """Thread 0 of each CTA counts in `done` at the CTA's place in the grid, and stores how many it has worked on."""
    cancel = f"clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes{multicast}.b128 [%s], [%bar];"
    meet = "barrier.cluster.arrive; barrier.cluster.wait;" if multicast else "bar.sync 0;"
    return f"""
        .version 8.7
        .target sm_100a
        .address_size 64
        .visible .entry k(.param .u64 done, .param .u64 many)
        {{
        .reg .b64 %done, %many, %a; .reg .b128 %answer; .reg .pred %p, %one, %asks;
        .reg .b32 %s, %bar, %t, %n, %x, %y, %z, %i, %old, %phase, %rank, %nx, %ny, %rx, %ry, %rz, %own;
        .shared .align 16 .b8 room[32];
        ld.param.u64 %done, [done]; ld.param.u64 %many, [many];
        mov.u32 %s, room; add.u32 %bar, %s, 16; mov.u32 %t, %tid.x; setp.eq.u32 %one, %t, 0;
        mov.u32 %x, %ctaid.x; mov.u32 %y, %ctaid.y; mov.u32 %z, %ctaid.z; mov.u32 %nx, %nctaid.x; mov.u32 %ny, %nctaid.y;
        mov.u32 %rx, %cluster_ctaid.x; mov.u32 %ry, %cluster_ctaid.y; mov.u32 %rz, %cluster_ctaid.z;
        mov.u32 %rank, %cluster_ctarank; setp.eq.and.u32 %asks, %rank, 0, %one;
        mov.u32 %n, 0; mov.u32 %phase, 0;
        mad.lo.u32 %own, %z, %ny, %y; mad.lo.u32 %own, %own, %nx, %x;
        @%one mbarrier.init.shared::cta.b64 [%bar], 1;
        @%one fence.mbarrier_init.release.cluster;
        {meet}
        work:
        {"bra count;" if not steal else ""}
        @%one mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 16;
        {"@%asks" if multicast else "@%one"} {cancel}
        count:
        mad.lo.u32 %i, %z, %ny, %y; mad.lo.u32 %i, %i, %nx, %x;
        mad.wide.u32 %a, %i, 4, %done;
        @%one atom.global.add.u32 %old, [%a], 1;
        add.u32 %n, %n, 1;
        {"bra end;" if not steal else ""}
        again:
        mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [%bar], %phase;
        @!%p bra again;
        xor.b32 %phase, %phase, 1;
        ld.shared.b128 %answer, [%s];
        clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p, %answer;
        @!%p bra end;
        clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {{%x, %y, %z, _}}, %answer;
        {"add.u32 %x, %x, %rx; add.u32 %y, %y, %ry; add.u32 %z, %z, %rz;" if multicast else ""}
        fence.proxy.async;
        {meet}
        bra work;
        end:
        mad.wide.u32 %a, %own, 4, %many;
        @%one st.global.u32 [%a], %n;
        {meet if multicast else ""}
        ret;
        }}"""


ENGINES = ["interp", "jit"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("grid", "cluster", "multicast"),
    [((37,), None, ""), ((5, 3, 2), None, ""), ((8, 6), (2, 3), ALL), ((1,), None, "")],
    ids=["37 CTAs", "three dimensions", "clusters", "one CTA"],
)
def test_each_part_of_the_work_is_done_once_and_some_by_others(engine, grid, cluster, multicast):
    kernel = ptxvm.load(source(multicast)).kernel("k")
    done, many = np.zeros(prod(grid), np.uint32), np.zeros(prod(grid), np.uint32)
    kernel.launch(grid=grid, block=64, args=[done, many], cluster=cluster, engine=engine)
    assert (done == 1).all()
    assert many.sum() == prod(grid)
    assert (many == 0).any() == (prod(grid) > 1)  # a CTA that was cancelled has stored nothing


@pytest.mark.parametrize("engine", ENGINES)
def test_a_grid_that_cancels_nothing_runs_whole(engine):
    kernel = ptxvm.load(source(steal=False)).kernel("k")
    done, many = np.zeros(37, np.uint32), np.zeros(37, np.uint32)
    kernel.launch(grid=37, block=64, args=[done, many], engine=engine)
    assert (done == 1).all()
    assert (many == 1).all()


@pytest.mark.parametrize("asynchronous", ["late", "random"])
@pytest.mark.parametrize("multicast", ["", ALL])
def test_stealing_has_no_findings_whenever_answers_come(asynchronous, multicast):
    kernel = ptxvm.load(source(multicast)).kernel("k")
    done, many = np.zeros(12, np.uint32), np.zeros(12, np.uint32)
    result = kernel.launch(
        grid=12, block=64, args=[done, many], cluster=2 if multicast else None, asynchronous=asynchronous, seed=3,
        check=("memory", "race", "sync", "init"),
    )  # fmt: skip
    assert result.findings == []
    assert (done == 1).all()
