"""Small kernels with asynchronous work, each right as it stands; and each with one mistake, which a check names.

The expectations come from the manual: what orders asynchronous work (PTX 9.7.9.25.3, 9.7.13.15, 9.7.16.6), which proxy fence it
and its tensor map need (9.7.13.4, 9.7.13.16), and what the barrier of a cluster asks of a thread (9.7.13.3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import ptxvm


@dataclass(frozen=True)
class Kernel:
    """A kernel with its mistakes: by name the text, what stands instead, the kind of the finding, and its instructions."""

    body: str
    mistakes: dict[str, tuple[str, str, str, tuple[str, ...]]]
    block: int = 32
    grid: int = 1
    target: str = "sm_90a"
    attributes: str = ""


def wait(label: str, barrier: str, phase: str = "0") -> str:
    return f"{label}: mbarrier.try_wait.parity.shared::cta.b64 %p, [{barrier}], {phase}; @!%p bra {label};"


BULK_STORE = "cp.async.bulk.global.shared::cta.bulk_group"
BULK_END = f"""
        fence.proxy.async.shared::cta;
        bar.sync 0;
        @%one {BULK_STORE} [%o+128], [tile], 128;
        @%one cp.async.bulk.commit_group;
        @%one cp.async.bulk.wait_group.read 0;"""
BULK_LOAD = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
MULTICAST = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
TRY_WAIT = "mbarrier.try_wait.parity.shared::cta.b64"
INIT = "mbarrier.init.shared::cta.b64"
CLUSTER_BARRIER = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
PAIR = ".reqnctapercluster 2"
RANK = "mov.u32 %rank, %cluster_ctarank; setp.eq.and.u32 %first, %rank, 0, %one; mov.b16 %h, 3;"
REMOTE_LOAD, REMOTE_ARRIVAL = "ld.shared::cluster.b32", "mbarrier.arrive.release.cluster.shared::cluster.b64"
READ_NEIGHBOUR = f"""
        {RANK}
        st.shared.b32 [%mine], %t;
        {CLUSTER_BARRIER}
        xor.b32 %rank, %rank, 1; mapa.shared::cluster.u32 %there, %mine, %rank;
        {REMOTE_LOAD} %v, [%there];"""
CANCEL = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128"
WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
ALLOCATE = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"
FREE, PRODUCT = "tcgen05.dealloc.cta_group::1.sync.aligned.b32", "tcgen05.mma.cta_group::1.kind::f16"
GROUP_DESCRIPTOR = 128 >> 4 << 16 | 256 >> 4 << 32
DESCRIPTOR = 1 << 46 | GROUP_DESCRIPTOR
SHAPE = 1 << 4 | 8 // 8 << 17 | 128 // 16 << 24
LOAD_TENSOR = "tcgen05.ld.sync.aligned.32x32b.x2.b32"

TENSOR_LOAD = "cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes"
COPY_MAP = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
ACQUIRE_MAP = "fence.proxy.tensormap::generic.acquire.gpu [%b], 128;"
RELEASE_MAP = "fence.proxy.tensormap::generic.release.gpu;"
COPY_BY_STORES = "ld.shared.b32 %v, [%mine+1024]; cvt.u64.u32 %a, %t; mad.lo.u64 %a, %a, 4, %b; st.global.b32 [%a], %v;"
REPLACE, REPLACED = "@%one tensormap.replace.tile", "tensormap.replace.tile.global_address.global.b1024.b64"

KERNELS = {
    "tensor map": Kernel(
        f"""
        .global .align 128 .b8 map[256];
        mov.b64 %b, map; mov.u32 %v, tile; add.u32 %v, %v, 1024;
        st.shared.b32 [%mine+1024], 0;
        @%one {INIT} [bar], 1;
        bar.sync 0;
        {REPLACE}.global_address.shared::cta.b1024.b64 [%v], %i;
        {REPLACE}.rank.shared::cta.b1024.b32 [%v], 0;
        {REPLACE}.box_dim.shared::cta.b1024.b32 [%v], 0, 32;
        {REPLACE}.global_dim.shared::cta.b1024.b32 [%v], 0, 64;
        {REPLACE}.element_stride.shared::cta.b1024.b32 [%v], 0, 1;
        {REPLACE}.elemtype.shared::cta.b1024.b32 [%v], 2;
        bar.warp.sync -1;
        {COPY_MAP} [%b], [%v], 128;
        bar.sync 0;
        {ACQUIRE_MAP}
        @%one mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
        @%one {TENSOR_LOAD} [tile], [%b, {{0}}], [bar];
        {wait("over", "bar")}
        bar.sync 0;
        {REPLACE}.global_address.global.b1024.b64 [%b], %i;
        {RELEASE_MAP}
        bar.sync 0;
        setp.eq.u32 %first, %t, 31; @!%first bra last;
        {ACQUIRE_MAP}
        mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
        {TENSOR_LOAD} [tile], [%b, {{0}}], [bar];
        last:
        {wait("again", "bar", "1")}
        """,
        {
            "copied by stores": (f"{COPY_MAP} [%b], [%v], 128;", COPY_BY_STORES, "race", ("st.global.b32", TENSOR_LOAD)),
            "not acquired": (f"bar.sync 0;\n        {ACQUIRE_MAP}", "bar.sync 0;", "race", (COPY_MAP, TENSOR_LOAD)),
            "acquired for another map": (
                ACQUIRE_MAP, "fence.proxy.tensormap::generic.acquire.gpu [%b+128], 128;", "race", (COPY_MAP, TENSOR_LOAD)
            ),
            "not released": (RELEASE_MAP, "fence.acq_rel.gpu;", "race", (REPLACED, TENSOR_LOAD)),
            "acquired by another thread": (
                f"@!%first bra last;\n        {ACQUIRE_MAP}", f"@%one {ACQUIRE_MAP} @!%first bra last;", "race",
                (REPLACED, TENSOR_LOAD),
            ),
        },
    ),
    "store": Kernel(
        f"""
        st.shared.b32 [%mine], %t;
        fence.proxy.async.shared::cta;
        bar.sync 0;
        @%one {BULK_STORE} [%o], [tile], 128;
        @%one cp.async.bulk.commit_group;
        @%one cp.async.bulk.wait_group.read 0;
        bar.sync 0;
        st.shared.b32 [%mine], 9;{BULK_END}
        """,
        {
            "still read at the end": (f"9;{BULK_END}", f"9;{BULK_END[: BULK_END.rindex('@')]}", "ended-cta", (BULK_STORE,)),
            "no fence": ("fence.proxy.async.shared::cta;", "", "race", ("st.shared.b32", BULK_STORE)),
            "fence for another space": ("async.shared::cta;", "async.global;", "race", ("st.shared.b32", BULK_STORE)),
            "no commit": ("@%one cp.async.bulk.commit_group;", "", "race", (BULK_STORE, "st.shared.b32")),
            "others wait": ("@%one cp.async.bulk.wait", "@!%one cp.async.bulk.wait", "race", (BULK_STORE, "st.shared.b32")),
        },
    ),
    "load": Kernel(
        f"""
        @%one {INIT} [bar], 1;
        bar.sync 0;
        st.global.b32 [%here], %t;
        fence.proxy.async.global;
        bar.sync 0;
        @%one mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
        @%one {BULK_LOAD} [tile], [%o], 128, [bar];
        {wait("over", "bar")}
        ld.shared.b32 %v, [%mine];
        """,
        {
            "no fence": ("fence.proxy.async.global;", "", "race", ("st.global.b32", BULK_LOAD)),
            "fence for another space": ("async.global;", "async.shared::cta;", "race", ("st.global.b32", BULK_LOAD)),
            "no loop around the test": ("@!%p bra over;", "", "race", (BULK_LOAD, "ld.shared.b32")),
            "test of no effect": ("@!%p bra over;", "selp.b32 %v, 1, 0, %p;", "race", (BULK_LOAD, "ld.shared.b32")),
            "not armed": ("@%one mbarrier.arrive.expect_tx", "// ", "deadlock", (TRY_WAIT,)),
            "too many bytes": ("_, [bar], 128;", "_, [bar], 256;", "deadlock", (TRY_WAIT,)),
            "one too many": (
                "ld.shared.b32 %v, [%mine];", f"ld.shared.b32 %v, [%mine]; @%one {BULK_LOAD} [tile+128], [%o], 128, [bar];",
                "ended-cta", (BULK_LOAD,),
            ),
        },
    ),
    "ring": Kernel(
        f"""
        @%one {INIT} [bar], 1;
        @%one {INIT} [bar+8], 32;
        bar.sync 0;
        mov.b32 %n, 0;
        setp.lt.u32 %q, %t, 32;
        @!%q bra consumer;
        @!%one bra done;
        fill:
        and.b32 %phase, %n, 1; xor.b32 %other, %phase, 1;
        {wait("free", "bar+8", "%other")}
        mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;
        {BULK_LOAD} [tile], [%i], 256, [bar];
        add.u32 %n, %n, 1; setp.lt.u32 %q, %n, 4; @%q bra fill;
        bra done;
        consumer:
        and.b32 %phase, %n, 1;
        {wait("full", "bar", "%phase")}
        ld.shared.b32 %v, [%mine];
        mbarrier.arrive.shared::cta.b64 _, [bar+8];
        add.u32 %n, %n, 1; setp.lt.u32 %q, %n, 4; @%q bra consumer;
        done:
        """,
        {
            "the producer does not wait": ("@!%p bra free;", "", "race", (BULK_LOAD, BULK_LOAD)),
            "the consumer does not wait": ("@!%p bra full;", "", "race", (BULK_LOAD, "ld.shared.b32")),
            "the producer waits for the other phase": (
                "xor.b32 %other, %phase, 1;", "mov.b32 %other, %phase;", "deadlock", (TRY_WAIT,),
            ),
            "the buffer is not given back": ("mbarrier.arrive.shared::cta.b64 _, [bar+8];", "", "deadlock", (TRY_WAIT,)),
            "given back before it is read": (
                "ld.shared.b32 %v, [%mine];\n        mbarrier.arrive.shared::cta.b64 _, [bar+8];",
                "mbarrier.arrive.shared::cta.b64 _, [bar+8]; ld.shared.b32 %v, [%mine];", "race", ("ld.shared.b32", BULK_LOAD),
            ),
        },
        block=64,
    ),
    "neighbour": Kernel(
        f"""{READ_NEIGHBOUR}
        {CLUSTER_BARRIER}
        """,
        {
            "no barrier at the end": (
                f"%v, [%there];\n        {CLUSTER_BARRIER}", "%v, [%there];", "ended-cta", (REMOTE_LOAD,),
            ),
            "no barrier before": (f"%t;\n        {CLUSTER_BARRIER}", "%t;", "race", ("st.shared.b32", REMOTE_LOAD)),
            "arrives without .release": ("arrive.aligned", "arrive.relaxed.aligned", "race", ("st.shared.b32", REMOTE_LOAD)),
            "releases mbarriers alone": (
                "barrier.cluster.arrive.aligned", "fence.mbarrier_init.release.cluster; barrier.cluster.arrive.relaxed.aligned",
                "race", ("st.shared.b32", REMOTE_LOAD),
            ),
            "arrives twice": (
                CLUSTER_BARRIER, f"barrier.cluster.arrive.aligned; {CLUSTER_BARRIER}", "invalid-barrier",
                ("barrier.cluster.arrive.aligned",),
            ),
            "waits twice": (
                CLUSTER_BARRIER, f"{CLUSTER_BARRIER} barrier.cluster.wait.aligned;", "invalid-barrier",
                ("barrier.cluster.wait.aligned",),
            ),
        },
        grid=2,
        attributes=PAIR,
    ),
    "relaxed end": Kernel(
        f"""{READ_NEIGHBOUR}
        barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;
        """,
        {
            "the other CTA arrives before": (
                f"{REMOTE_LOAD} %v, [%there];\n        barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;",
                f"barrier.cluster.arrive.relaxed.aligned; {REMOTE_LOAD} %v, [%there]; barrier.cluster.wait.aligned;",
                "ended-cta", (REMOTE_LOAD,),
            ),
        },
        grid=2,
        attributes=PAIR,
    ),
    "multicast": Kernel(
        f"""
        {RANK}
        @%one {INIT} [bar], 1;
        @%one fence.mbarrier_init.release.cluster;
        @%one mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
        {CLUSTER_BARRIER}
        @%first {MULTICAST} [tile], [%i], 128, [bar], %h;
        {wait("over", "bar")}
        ld.shared.b32 %v, [%mine];
        {CLUSTER_BARRIER}
        """,
        {
            "the mbarriers are not made yet": (CLUSTER_BARRIER, "bar.sync 0;", "race", (INIT, MULTICAST)),
            "no wait": ("@!%p bra over;", "", "race", (MULTICAST, "ld.shared.b32")),
            "one CTA is left out": ("mov.b16 %h, 3;", "mov.b16 %h, 1;", "deadlock", (TRY_WAIT,)),
            "one CTA is not armed": ("@%one mbarrier.arrive", "@%first mbarrier.arrive", "deadlock", (TRY_WAIT,)),
        },
        grid=2,
        attributes=PAIR,
    ),
    "mbarriers of a cluster": Kernel(
        f"""
        {RANK}
        @%one {INIT} [bar], 64;
        @%one fence.mbarrier_init.release.cluster;
        barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;
        mov.u32 %there, bar; mapa.shared::cluster.u32 %v, %there, 0; mapa.shared::cluster.u32 %there, %there, 1;
        {REMOTE_ARRIVAL} _, [%v]; {REMOTE_ARRIVAL} _, [%there];
        {wait("over", "bar").replace("parity.", "parity.acquire.cluster.")}
        {CLUSTER_BARRIER}
        """,
        {
            "no fence": ("@%one fence.mbarrier_init.release.cluster;", "", "race", (INIT, REMOTE_ARRIVAL)),
            "fence for the CTA": ("mbarrier_init.release.cluster", "acq_rel.cta", "race", (INIT, REMOTE_ARRIVAL)),
            "fence after the arrival": (
                "@%one fence.mbarrier_init.release.cluster;\n        barrier.cluster.arrive.relaxed.aligned;",
                "barrier.cluster.arrive.relaxed.aligned; @%one fence.mbarrier_init.release.cluster;",
                "race", (INIT, REMOTE_ARRIVAL),
            ),
        },
        grid=2,
        attributes=PAIR,
    ),
    "multicast ring": Kernel(
        f"""
        {RANK}
        @%one {INIT} [bar], 1;
        @%one {INIT} [bar+8], 2;
        @%one fence.mbarrier_init.release.cluster;
        {CLUSTER_BARRIER}
        mov.b32 %n, 0; mov.u32 %there, bar; mapa.shared::cluster.u32 %there, %there, 0;
        again:
        and.b32 %phase, %n, 1; xor.b32 %other, %phase, 1;
        @%one mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
        @!%first bra get;
        {wait("free", "bar+8", "%other").replace("parity.", "parity.acquire.cluster.")}
        {MULTICAST} [tile], [%i], 128, [bar], %h;
        get:
        {wait("full", "bar", "%phase")}
        ld.shared.b32 %v, [%mine];
        bar.warp.sync -1;
        @%one {REMOTE_ARRIVAL} _, [%there+8];
        add.u32 %n, %n, 1; setp.lt.u32 %q, %n, 4; @%q bra again;
        {CLUSTER_BARRIER}
        """,
        {
            "the buffer is not waited for": ("@!%p bra free;", "", "race", (MULTICAST, MULTICAST)),
            "one lane gives back what others read": ("bar.warp.sync -1;", "", "race", ("ld.shared.b32", MULTICAST)),
            "no barrier at the end": (
                f"bra again;\n        {CLUSTER_BARRIER}", "bra again;", "ended-cta", (REMOTE_ARRIVAL,),
            ),
        },
        grid=2,
        attributes=PAIR,
    ),
    "cancellation": Kernel(
        f"""
        @%one {INIT} [bar], 1;
        bar.sync 0;
        mov.b32 %n, 0;
        again:
        and.b32 %phase, %n, 1;
        @%one mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
        @%one {CANCEL} [tile], [bar];
        {wait("over", "bar", "%phase")}
        ld.shared.b128 %answer, [tile];
        clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %q, %answer;
        add.u32 %n, %n, 1;
        bar.sync 0;
        @%q bra again;
        """,
        {
            "no wait": (
                "@!%p bra over;", "", "race",
                (CANCEL, "ld.shared.b128"),
            ),
            "no barrier before the next": (
                "%n, 1;\n        bar.sync 0;", "%n, 1;", "race",
                ("ld.shared.b128", CANCEL),
            ),
        },
        grid=4,
        target="sm_100a",
    ),
    "product of a warpgroup": Kernel(
        f"""
        st.shared.b32 [%mine], 0; fence.proxy.async.shared::cta; bar.sync 0;
        mov.u32 %v, tile; shr.u32 %v, %v, 4; cvt.u64.u32 %a, %v; add.s64 %a, %a, {GROUP_DESCRIPTOR};
        mov.b64 %b, %a; setp.ne.u32 %q, %t, %t;
        wgmma.fence.sync.aligned;
        {WGMMA} {{%f0, %f1, %f2, %f3}}, %a, %b, %q, 1, 1, 0, 0;
        wgmma.commit_group.sync.aligned;
        wgmma.wait_group.sync.aligned 0;
        bar.sync 0;
        st.shared.b32 [%mine], 1;
        """,
        {
            "a matrix outside of shared memory": ("mov.b64 %b, %a;", "add.s64 %b, %a, 15000;", "out-of-bounds", (WGMMA,)),
            "no wait": (
                "wgmma.wait_group.sync.aligned 0;\n        bar.sync 0;\n        st.shared.b32 [%mine], 1;", "",
                "ended-cta", (WGMMA,),
            ),
        },
        block=128,
    ),
    "tensor memory": Kernel(
        f"""
        @%one {INIT} [bar], 1;
        setp.lt.u32 %q, %t, 32;
        @%q {ALLOCATE} [bar+8], 32;
        bar.sync 0;
        ld.shared.b32 %d, [bar+8]; shl.b32 %v, %t, 16; and.b32 %v, %v, 0x600000; add.u32 %v, %v, %d;
        mov.b64 %a, {DESCRIPTOR}; mov.b64 %b, {DESCRIPTOR}; mov.b32 %n, {SHAPE}; setp.ne.u32 %p, %t, %t;
        @%one {PRODUCT} [%d], %a, %b, %n, %p;
        @%one tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];
        {wait("over", "bar")}
        {LOAD_TENSOR} {{%other, %phase}}, [%v];
        tcgen05.wait::ld.sync.aligned;
        bar.sync 0;
        @%q {FREE} %d, 32;
        """,
        {
            "a matrix outside of shared memory": (
                f"mov.b64 %b, {DESCRIPTOR};", "add.s64 %b, %a, 15000;", "out-of-bounds", (PRODUCT,),
            ),
            "no wait for the product": ("@!%p bra over;", "", "race", (PRODUCT, LOAD_TENSOR)),
            "no wait for the load": ("tcgen05.wait::ld.sync.aligned;", "", "race", (LOAD_TENSOR, FREE)),
            "not given back": ("@%q tcgen05.dealloc", "// ", "tensor-memory", (ALLOCATE,)),
        },
        block=128,
        target="sm_100a",
    ),
}  # fmt: skip


def findings(kernel: Kernel, old: str = "", new: str = "", when: str = "early") -> list[ptxvm.Finding]:
    assert old in kernel.body
    text = f"""
        .version 8.7
        .target {kernel.target}
        .address_size 64
        .visible .entry k(.param .u64 in, .param .u64 out) {kernel.attributes}
        {{
        .reg .b128 %answer; .reg .b64 %i, %o, %a, %b, %here; .reg .b16 %h; .reg .f32 %f<4>; .reg .pred %p, %q, %one, %first;
        .reg .b32 %t, %v, %n, %phase, %other, %mine, %there, %rank, %d;
        .shared .align 1024 .b8 tile[8192];
        .shared .align 8 .b64 bar[2];
        ld.param.u64 %i, [in]; ld.param.u64 %o, [out];
        mov.u32 %t, %tid.x; setp.eq.u32 %one, %t, 0; mul.wide.u32 %here, %t, 4; add.u64 %here, %here, %o;
        mov.u32 %mine, tile; mad.lo.u32 %mine, %t, 4, %mine;
        {kernel.body.replace(old, new, 1) if old else kernel.body}
        ret;
        }}"""
    arrays = [np.zeros(64, np.uint32), np.zeros(64, np.uint32)]
    launch = ptxvm.load(text).kernel("k").launch
    return launch(kernel.grid, kernel.block, arrays, check=("race", "memory", "sync"), asynchronous=when).findings


@pytest.mark.parametrize("when", ["early", "late", "random"])
@pytest.mark.parametrize("name", KERNELS)
def test_what_is_right_has_no_findings(name, when):
    assert findings(KERNELS[name], when=when) == []


@pytest.mark.sampled(3)
@pytest.mark.parametrize("when", ["early", "late"])
@pytest.mark.parametrize(("name", "what"), [(name, what) for name, kernel in KERNELS.items() for what in kernel.mistakes])
def test_a_mistake_is_found_and_its_instructions_are_named(name, what, when):
    old, new, kind, instructions = KERNELS[name].mistakes[what]
    found = findings(KERNELS[name], old, new, when)
    named = [(each.kind, tuple(opcode(party.place.text) for party in each.accesses)) for each in found]
    assert (kind, instructions) in named


def opcode(text: str) -> str:
    """The instruction of a text without its guard and operands."""
    return next(word for word in text.split() if word[0] != "@").rstrip(";")


REDUCTION = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32"
BULK_REDUCTION = "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32"


@pytest.mark.parametrize("unset", [False, True])
@pytest.mark.parametrize(
    ("line", "size"), [(f"{REDUCTION} [%mine], %t, [bar];", 4), (f"{BULK_REDUCTION} [%mine], [tile+1024], 16, [bar];", 16)]
)
def test_a_reduction_reads_what_it_adds_to(line, size, unset):
    """PTX 9.7.9.25.4.2: the operation combines the source with what lies there, which has no value before the first store."""
    text = f"""
        .version 8.7
        .target sm_90
        .address_size 64
        .visible .entry k()
        {{
        .reg .b32 %t, %mine; .reg .pred %p;
        .shared .align 16 .b8 tile[2048];
        .shared .align 8 .b64 bar;
        mov.u32 %t, %tid.x; mov.u32 %mine, tile;
        {INIT} [bar], 1;
        mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {size};
        {"" if unset else "st.shared.v4.b32 [%mine], {%t, %t, %t, %t};"}
        st.shared.v4.b32 [tile+1024], {{%t, %t, %t, %t}};
        fence.proxy.async.shared::cta;
        {line}
        {wait("over", "bar")}
        ret;
        }}"""
    found = ptxvm.load(text).kernel("k").launch(1, 1, check=("init", "race")).findings
    assert [(each.kind, opcode(each.accesses[0].place.text)) for each in found] == [
        ("uninitialised-read", line.split()[0])
    ] * unset
