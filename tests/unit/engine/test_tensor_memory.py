"""Misuse of tensor memory is named, with the instruction (PTX 9.7.16.1, 9.7.16.7, 9.7.16.8.1)."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

ALLOCATE = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 64; ld.shared.b32 %d, [base];"
FREE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %d, 64;"
LOAD = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r}, [%d]; tcgen05.wait::ld.sync.aligned;"
MULTIPLY = "@%first tcgen05.mma.cta_group::1.kind::f16 [%d], %a, %a, %i, 0;"
MATRIX = "mov.b64 %a, 0x400800080000;"  # at 0, without a swizzle


def run(body: str, engine: str, block: int = 32) -> None:
    ptxvm.load(f"""
        .version 8.6
        .target sm_100a
        .address_size 64
        .visible .entry k()
        {{
        .reg .b64 %a; .reg .b32 %d, %i, %r, %t; .reg .pred %first; .shared .align 128 .b8 tile[8192]; .shared .b32 base;
        mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0; mov.b32 %i, 0x8100010; mov.b32 %d, 0;
        {body}
        ret;
        }}""").kernel("k").launch(grid=1, block=block, engine=engine)


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        (LOAD, "tensor-memory", "not allocated"),
        (ALLOCATE + FREE + LOAD, "tensor-memory", "not allocated"),
        (ALLOCATE + FREE + FREE, "tensor-memory", "no allocation begins there"),
        (ALLOCATE + FREE.replace("64", "32"), "tensor-memory", "64 columns were allocated"),
        (ALLOCATE, "tensor-memory", "has not given back 64 columns at 0x0"),
        (ALLOCATE + "add.u32 %d, %d, 0x200000;" + LOAD, "tensor-memory", "warp 0 of the CTA names lane 32"),
        (ALLOCATE + "add.u32 %d, %d, %t;" + LOAD, "tensor-memory", "differ in operand 'a'"),
        (ALLOCATE.replace("64", "512") + ALLOCATE, "deadlock", r"32 threads wait .*alloc.*, 64\); too few columns"),
        (ALLOCATE.replace("64", "%i"), "tensor-memory", "64, 128, 256 or 512, not by 135266320"),
        ("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" + ALLOCATE, "tensor-memory", "relinquished"),
        (MATRIX + MULTIPLY, "tensor-memory", "matrix D"),
        (ALLOCATE + "mov.b64 %a, 0;" + MULTIPLY, "invalid-descriptor", "bits 46 to 48"),
        (ALLOCATE + MATRIX + "mov.b32 %i, 0x8100014;" + MULTIPLY, "invalid-descriptor", "sparse"),
        (ALLOCATE + "mov.b64 %a, 0x400800080300;" + MULTIPLY, "out-of-bounds", "shared memory"),
    ],
)
def test_misuse_is_named(body, kind, said, engine):
    with pytest.raises(ptxvm.Fault, match=said) as fault:
        run(body, engine)
    assert fault.value.kind == kind
    assert fault.value.place.line > 0


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize("body", ["tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;", ALLOCATE])
def test_a_warp_needs_all_its_lanes(body, engine):
    with pytest.raises(ptxvm.Fault) as fault:
        run(body, engine, block=16)
    assert fault.value.kind == "incomplete-warp"


@pytest.mark.parametrize("how", [{}, {"asynchronous": "random", "seed": 3}, {"check": ("memory", "race", "sync", "init")}])
@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_an_allocation_waits_until_others_have_given_columns_back(engine, how):
    """Of four warps each wants all columns, twice; a fifth has given the first ones back when the others come."""
    out = np.zeros((2, 160), np.uint32)
    result = (
        ptxvm.load("""
        .version 8.6
        .target sm_100a
        .address_size 64
        .visible .entry k(.param .u64 out)
        {
        .reg .b64 %p; .reg .b32 %d, %t, %w, %n, %o, %r; .reg .pred %again; .shared .b32 bases[5];
        mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; mov.u32 %n, bases; mad.lo.u32 %n, %w, 4, %n;
        and.b32 %o, %w, 3; shl.b32 %o, %o, 21; setp.ne.u32 %again, %w, 4; mov.u32 %r, 0;
        L:
        tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%n], 512; ld.shared.b32 %d, [%n];
        add.u32 %o, %o, %d; add.u32 %r, %r, %t;
        tcgen05.st.sync.aligned.32x32b.x1.b32 [%o], {%r}; tcgen05.wait::st.sync.aligned;
        tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r}, [%o]; tcgen05.wait::ld.sync.aligned;
        tcgen05.dealloc.cta_group::1.sync.aligned.b32 %d, 512; bar.warp.sync -1;
        @!%again bra E;
        setp.eq.u32 %again, %w, 4; bra L;
        E: mov.u32 %w, %ctaid.x; mad.lo.u32 %w, %w, 160, %t; ld.param.u64 %p, [out]; mad.wide.u32 %p, %w, 4, %p;
        st.global.u32 [%p], %r;
        ret;
        }""")
        .kernel("k")
        .launch(grid=2, block=160, args=[out], engine=engine, **how)
    )
    assert not result.findings
    thread = np.arange(160)
    assert (out == np.where(thread < 128, 2 * thread, thread)).all()


KERNEL = """
    .version 8.6
    .target sm_100a
    .address_size 64
    .visible .entry k(.param .u64 out)
    {{
    .reg .b64 %p, %a; .reg .b32 %d, %o, %r<2>, %t, %w, %x; .reg .pred %first, %one, %done;
    .shared .align 1024 .b8 tile[8192]; .shared .b32 base; .shared .align 8 .b64 bar;
    mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; setp.eq.u32 %first, %t, 0; setp.eq.u32 %one, %w, 0;
    mov.u32 %x, tile; mad.lo.u32 %x, %t, 64, %x; mov.b32 %r0, {fill};
    st.shared.v4.b32 [%x], {{%r0, %r0, %r0, %r0}}; st.shared.v4.b32 [%x+16], {{%r0, %r0, %r0, %r0}};
    st.shared.v4.b32 [%x+32], {{%r0, %r0, %r0, %r0}}; st.shared.v4.b32 [%x+48], {{%r0, %r0, %r0, %r0}};
    @%first mbarrier.init.shared.b64 [bar], 1;
    @%one tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 512;
    fence.proxy.async; bar.sync 0; ld.shared.b32 %d, [base];
    shl.b32 %o, %w, 21; add.u32 %o, %o, %d; mov.u64 %a, 0x401000080000; mov.b32 %r1, 0x3F000000;
    tcgen05.st.sync.aligned.32x32b.x2.b32 [%o], {{%r1, %r1}}; tcgen05.wait::st.sync.aligned;
    add.u32 %x, %o, 256; tcgen05.st.sync.aligned.32x32b.x1.b32 [%x], {{%r0}};
    add.u32 %x, %o, 257; tcgen05.st.sync.aligned.32x32b.x1.b32 [%x], {{%r0}};
    tcgen05.wait::st.sync.aligned; bar.sync 0; add.u32 %x, %d, 256;
    @!%first bra W;
    {work}
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];
    W: mbarrier.try_wait.parity.shared.b64 %done, [bar], 0; @!%done bra W;
    tcgen05.ld.sync.aligned.32x32b.x2.b32 {{%r0, %r1}}, [%o]; tcgen05.wait::ld.sync.aligned;
    bar.sync 0;
    @%one tcgen05.dealloc.cta_group::1.sync.aligned.b32 %d, 512;
    ld.param.u64 %p, [out]; mad.wide.u32 %p, %t, 8, %p; st.global.v2.b32 [%p], {{%r0, %r1}};
    ret;
    }}"""
ONES = 0x3C003C00
IDESC = 1 << 4 | 64 // 8 << 17 | 128 // 16 << 24


def results(work: str, engine: str, fill: int = ONES) -> np.ndarray:
    out = np.zeros((128, 2), np.float32)
    ptxvm.load(KERNEL.format(work=work, fill=fill)).kernel("k").launch(grid=1, block=128, args=[out], engine=engine)
    return out


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_a_from_tensor_memory_scaled_sums_and_lanes_that_stay(engine):
    """A has two words a lane there, so K = 16 reads eight: the last six are 0."""
    body = f"mov.b32 %r1, {IDESC}; mov.b32 %r0, 0xFFFF0000;"
    body += "tcgen05.mma.cta_group::1.kind::f16 [%d], [%x], %a, %r1, {%r0, 0, 0, 0}, 1, 2;"
    found = results(body, engine)
    assert (found[:16] == 4 + 0.5 / 4).all()
    assert (found[16:32] == 0.5).all()
    assert (found[32:] == 4 + 0.5 / 4).all()


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_weights_that_stay_put_columns_beside_each_other(engine):
    """M = 32: D has a quarter of its columns in each warp, of which each second one is zero here."""
    zeros = 1 << 39 | 0xF << 32
    idesc = 1 << 4 | 64 // 8 << 17 | 32 // 16 << 24
    work = f"mov.b32 %r1, {idesc}; mov.b64 %p, {zeros}; tcgen05.mma.ws.cta_group::1.kind::f16 [%d], %a, %a, %r1, 0, %p;"
    found = results(work, engine)
    assert (found[:, 0] == 0).all()
    assert (found[:, 1] == 16).all()


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(
    ("shape", "format", "fill", "want"),
    [
        ("128x128b", "", 0x12345678, 0x12345678),
        ("64x128b.warpx2::01_23", "", 0x12345678, 0x12345678),
        ("128x256b", "b8x16.b4x16_p64", 0xF1F1F1F1, 0x3C043C04),
        ("128x128b", "b8x16.b6x16_p32", 0x41041041, 0x01010101),
    ],
)
def test_copies_widen_small_elements(shape, format, fill, want, engine):
    dot = f".{format}" if format else ""
    found = results(f"tcgen05.cp.cta_group::1.{shape}{dot} [%d], %a;", engine, fill).view(np.uint32)
    assert (found[:, 0] == want).all()
