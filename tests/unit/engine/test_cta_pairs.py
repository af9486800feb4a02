"""Pairs of CTAs: products, copies and shifts with `.cta_group::2`, and commits to several CTAs (PTX 9.7.16.5.1, 9.7.16.10).

NumPy multiplies the same small integers.  Of 256 rows each CTA has 128; of 128 rows it has 64, and the columns of D lie in two
halves of its lanes.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import ptxvm

PRODUCT = """.version 8.6
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 out, .param .u32 idesc, .param .u32 cols)
{
.reg .b64 %pa, %pb, %p, %a, %b, %q; .reg .b32 %t, %s, %d, %mine, %i, %bar, %x, %rank, %rows, %brows, %n, %g, %col, %cols, %v;
.reg .pred %one, %first, %lead, %done, %more;
.shared .align 1024 .b8 tile[16384];
mov.u32 %t, %tid.x; mov.u32 %s, tile; add.u32 %bar, %s, 8; setp.eq.u32 %one, %t, 0; setp.lt.u32 %first, %t, 32;
mov.u32 %rank, %cluster_ctarank; mov.u32 %g, %ctaid.x; setp.eq.u32 %lead, %rank, 0; and.pred %lead, %lead, %one;
ld.param.u64 %pa, [pa]; ld.param.u64 %pb, [pb]; ld.param.u64 %p, [out]; ld.param.u32 %i, [idesc]; ld.param.u32 %cols, [cols];
@%one mbarrier.init.shared::cta.b64 [%bar], 1;
shr.u32 %rows, %i, 24; and.b32 %rows, %rows, 31; shl.b32 %rows, %rows, 3;   // M/2
shr.u32 %brows, %i, 17; and.b32 %brows, %brows, 63; shl.b32 %brows, %brows, 2; // N/2
setp.ge.u32 %more, %t, %rows; @%more bra noA;
mad.lo.u32 %x, %rank, %rows, %t; mul.wide.u32 %q, %x, 32; add.u64 %pa, %pa, %q;
shr.u32 %n, %t, 3; shl.b32 %n, %n, 8; and.b32 %x, %t, 7; shl.b32 %x, %x, 4; add.u32 %x, %x, %n; add.u32 %x, %x, %s;
{ .reg .b32 %w<8>; ld.global.v4.b32 {%w0,%w1,%w2,%w3}, [%pa]; ld.global.v4.b32 {%w4,%w5,%w6,%w7}, [%pa+16];
st.shared.v4.b32 [%x+1024], {%w0,%w1,%w2,%w3}; st.shared.v4.b32 [%x+1152], {%w4,%w5,%w6,%w7}; }
noA:
setp.ge.u32 %more, %t, %brows; @%more bra noB;
mad.lo.u32 %x, %rank, %brows, %t; mul.wide.u32 %q, %x, 32; add.u64 %pb, %pb, %q;
shr.u32 %n, %t, 3; shl.b32 %n, %n, 8; and.b32 %x, %t, 7; shl.b32 %x, %x, 4; add.u32 %x, %x, %n; add.u32 %x, %x, %s;
{ .reg .b32 %w<8>; ld.global.v4.b32 {%w0,%w1,%w2,%w3}, [%pb]; ld.global.v4.b32 {%w4,%w5,%w6,%w7}, [%pb+16];
st.shared.v4.b32 [%x+8192], {%w0,%w1,%w2,%w3}; st.shared.v4.b32 [%x+8320], {%w4,%w5,%w6,%w7}; }
noB:
@!%first bra allocated;
tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%s], 64;
tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
allocated:
fence.proxy.async; bar.sync 0;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
ld.shared.b32 %d, [%s]; shl.b32 %mine, %t, 16; and.b32 %mine, %mine, 0x600000; add.u32 %mine, %mine, %d;
setp.ne.u32 %done, %i, %i;
add.u32 %x, %s, 1024; and.b32 %x, %x, 0x3FFFF; shr.u32 %x, %x, 4; cvt.u64.u32 %a, %x; add.s64 %a, %a, 0x401000080000;
add.u32 %x, %s, 8192; and.b32 %x, %x, 0x3FFFF; shr.u32 %x, %x, 4; cvt.u64.u32 %b, %x; add.s64 %b, %b, 0x401000080000;
@!%lead bra wait;
tcgen05.mma.cta_group::2.kind::f16 [%d], %a, %b, %i, %done;
tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%bar], 3;
wait: mbarrier.try_wait.parity.shared::cta.b64 %done, [%bar], 0; @!%done bra wait;
mad.lo.u32 %x, %g, 128, %t; mul.lo.u32 %x, %x, %cols; mul.wide.u32 %q, %x, 4; add.u64 %p, %p, %q; mov.u32 %col, 0;
loop: tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v}, [%mine]; tcgen05.wait::ld.sync.aligned;
st.global.b32 [%p], %v; add.u64 %p, %p, 4; add.u32 %mine, %mine, 1;
add.u32 %col, %col, 1; setp.lt.u32 %more, %col, %cols; @%more bra loop;
bar.sync 0; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
@!%first bra last;
tcgen05.dealloc.cta_group::2.sync.aligned.b32 %d, 64;
last: ret;
}
"""


def product(
    engine: str, rows: int, columns: int, text: str = PRODUCT, **how: object
) -> tuple[np.ndarray, np.ndarray, list[ptxvm.Finding]]:
    """A product by a pair of CTAs; what it is, and what it should be."""
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-3, 4, (count, 16)).astype(np.float16) for count in (rows, columns))
    width = columns if rows == 256 else columns // 2
    out, idesc = np.zeros((2, 128, width), np.float32), 1 << 4 | columns // 8 << 17 | rows // 16 << 24
    result = ptxvm.load(text).kernel().launch(2, 128, [a, b, out, idesc, width], cluster=2, engine=engine, **how)
    halves = out if rows == 256 else [np.hstack([each[:64], each[64:]]) for each in out]
    return np.vstack(list(halves)), a.astype(np.float32) @ b.astype(np.float32).T, result.findings


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(("rows", "columns"), [(256, 16), (128, 32)])
def test_a_pair_of_ctas_multiplies_together(engine, rows, columns):
    found, wanted, _ = product(engine, rows, columns)
    assert (found == wanted).all()


TWICE = """setp.eq.u32 %more, %i, %i; tcgen05.mma.cta_group::2.kind::f16 [%d], %a, %b, %i, %done;
tcgen05.mma.cta_group::2.kind::f16 [%d], %a, %b, %i, %more;"""


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize("infinite", [1, 200])
def test_a_sum_of_one_cta_may_be_infinite(engine, infinite, rng):
    """Compiled code multiplies finite numbers where they lie; the part of the other CTA is added once all the same."""
    a, b = (rng.integers(1, 4, (count, 16)).astype(np.float16) for count in (256, 16))
    a[infinite, 3] = np.inf
    out, idesc = np.zeros((2, 128, 16), np.float32), 1 << 4 | 16 // 8 << 17 | 256 // 16 << 24
    text = PRODUCT.replace("tcgen05.mma.cta_group::2.kind::f16 [%d], %a, %b, %i, %done;", TWICE)
    ptxvm.load(text).kernel().launch(2, 128, [a, b, out, idesc, 16], cluster=2, engine=engine)
    assert (np.vstack(list(out)) == 2 * (a.astype(np.float32) @ b.astype(np.float32).T)).all()


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize("masked", [2, 6])
def test_lanes_of_either_cta_keep_their_sums(engine, masked, rng):
    """PTX 9.7.16.10.9.1: of the eight words of `disable-output-lane` the upper four are of the odd CTA."""
    a, b = (rng.integers(-3, 4, (count, 16)).astype(np.float16) for count in (256, 16))
    words = ", ".join(f"%m{n}" for n in range(8))
    masks = f".reg .b32 %m<8>; {' '.join(f'mov.b32 %m{n}, {255 if n == masked else 0};' for n in range(8))}"
    text = PRODUCT.replace("tcgen05.mma.cta_group::2.kind::f16 [%d], %a, %b, %i, %done;",
                           masks + TWICE.replace("%i, %more;", f"%i, {{{words}}}, %more;"))  # fmt: skip
    out, idesc = np.zeros((2, 128, 16), np.float32), 1 << 4 | 16 // 8 << 17 | 256 // 16 << 24
    ptxvm.load(text).kernel().launch(2, 128, [a, b, out, idesc, 16], cluster=2, engine=engine)
    times = np.where((np.arange(256) >= 32 * masked) & (np.arange(256) < 32 * masked + 8), 1, 2)[:, None]
    assert (np.vstack(list(out)) == times * (a.astype(np.float32) @ b.astype(np.float32).T)).all()


# A lies in tensor memory from column 48 on, a copy in the upper and one in the lower 64 lanes; the lower one is scaled.
IN_TENSOR_MEMORY = """{ .reg .b32 %w<8>; .reg .pred %lower;
ld.param.u64 %q, [pa]; and.b32 %x, %t, 63; mad.lo.u32 %x, %rank, 64, %x; mad.wide.u32 %q, %x, 32, %q; add.u32 %x, %mine, 48;
ld.global.v4.b32 {%w0,%w1,%w2,%w3}, [%q]; ld.global.v4.b32 {%w4,%w5,%w6,%w7}, [%q+16]; setp.ge.u32 %lower, %t, 64;
SCALED
tcgen05.st.sync.aligned.32x32b.x8.b32 [%x], {%w0,%w1,%w2,%w3,%w4,%w5,%w6,%w7}; tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
tcgen05.fence::after_thread_sync; }
setp.ne.u32 %done, %i, %i;"""
DOUBLED = " ".join(f"@%lower add.f16x2 %w{n}, %w{n}, %w{n};" for n in range(8))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(("scaled", "factor"), [("", 1), (DOUBLED, 2)])
def test_a_pair_multiplies_copies_of_a_in_tensor_memory(engine, scaled, factor, rng):
    """PTX 9.7.16.10.5, layout B: the halves of the lanes have halves of the columns, and read their own copies of A."""
    a, b = (rng.integers(-3, 4, (count, 16)).astype(np.float16) for count in (128, 32))
    text = PRODUCT.replace("setp.ne.u32 %done, %i, %i;", IN_TENSOR_MEMORY.replace("SCALED", scaled))
    text = text.replace(
        "tcgen05.mma.cta_group::2.kind::f16 [%d], %a", "add.u32 %x, %d, 48; tcgen05.mma.cta_group::2.kind::f16 [%d], [%x]"
    )
    out, idesc = np.zeros((2, 128, 16), np.float32), 1 << 4 | 32 // 8 << 17 | 128 // 16 << 24
    launched = ptxvm.load(text).kernel().launch(2, 128, [a, b, out, idesc, 16], cluster=2, engine=engine)
    wanted = a.astype(np.float32) @ b.astype(np.float32).T
    assert (np.vstack([np.hstack([each[:64], each[64:]]) for each in out]) == wanted * np.repeat([1, factor], 16)).all()
    assert launched.findings == []


FURTHER = """add.u32 %x, %x, %n; { .reg .b32 %w<8>;
ld.global.v4.b32 {%w0,%w1,%w2,%w3}, [%pb+32]; ld.global.v4.b32 {%w4,%w5,%w6,%w7}, [%pb+48];
st.shared.v4.b32 [%x+8448], {%w0,%w1,%w2,%w3}; st.shared.v4.b32 [%x+8576], {%w4,%w5,%w6,%w7};
ld.global.v4.b32 {%w0,%w1,%w2,%w3}, [%pb]"""
METADATA = """ld.param.u64 %q, [meta]; mad.lo.u32 %x, %rank, 128, %t; mad.wide.u32 %q, %x, 4, %q; ld.global.b32 %v, [%q];
add.u32 %x, %mine, 48; tcgen05.st.sync.aligned.32x32b.x1.b32 [%x], {%v}; tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
tcgen05.fence::after_thread_sync;
setp.ne.u32 %done, %i, %i;"""
# What is another where A is sparse: B has rows of 64 bytes, and the metadata of each lane lie in column 48 of tensor memory.
SPARSE = {
    ".param .u64 out,": ".param .u64 out, .param .u64 meta,",
    "mul.wide.u32 %q, %x, 32; add.u64 %pb": "mul.wide.u32 %q, %x, 64; add.u64 %pb",
    "{ .reg .b32 %w<8>; ld.global.v4.b32 {%w0,%w1,%w2,%w3}, [%pb]": FURTHER,
    "add.s64 %b, %b, 0x401000080000": "add.s64 %b, %b, 0x402000080000",
    "setp.ne.u32 %done, %i, %i;": METADATA,
    "tcgen05.mma.cta_group::2": "add.u32 %x, %d, 48; tcgen05.mma.sp.cta_group::2",
    "%b, %i, %done;": "%b, [%x], %i, %done;",
}


def of_sparse_a() -> str:
    """The same kernel for a sparse A."""
    text = PRODUCT
    for old, new in SPARSE.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


@pytest.mark.sampled(2)
@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize("rows", [256, 128])
def test_a_pair_multiplies_a_sparse_matrix(engine, rows, rng):
    """Each chunk of four has its first and third element; of 128 rows half of the lanes are used (9.7.16.10.5, layout C)."""
    columns, row = 32, np.arange(rows // 2)
    stored, b = rng.integers(-3, 4, (rows, 16)).astype(np.float16), rng.integers(-3, 4, (columns, 32)).astype(np.float16)
    dense = np.zeros((rows, 32))
    dense[:, ::2] = stored
    out, meta = np.zeros((2, 128, columns), np.float32), np.full(256, 0x8888_8888, np.uint32)
    idesc = 1 << 2 | 1 << 4 | columns // 8 << 17 | rows // 16 << 24
    ptxvm.load(of_sparse_a()).kernel().launch(2, 128, [stored, b, out, meta, idesc, columns], cluster=2, engine=engine)
    lanes = row if rows == 256 else row // 16 * 32 + row % 16
    assert (np.vstack(list(out[:, lanes])) == dense @ b.T.astype(np.float64)).all()


SCALES = """ld.param.u64 %q, [scales]; mad.lo.u32 %x, %rank, 128, %t; mad.wide.u32 %q, %x, 32, %q; add.u32 %x, %mine, 128;
{ .reg .b32 %w<8>; ld.global.v4.b32 {%w0,%w1,%w2,%w3}, [%q]; ld.global.v4.b32 {%w4,%w5,%w6,%w7}, [%q+16];
tcgen05.st.sync.aligned.32x32b.x8.b32 [%x], {%w0,%w1,%w2,%w3,%w4,%w5,%w6,%w7}; tcgen05.wait::st.sync.aligned; }
tcgen05.fence::before_thread_sync; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
tcgen05.fence::after_thread_sync;
setp.ne.u32 %done, %i, %i;"""
# What is another where blocks have scales, which lie from column 128 on: four columns of A, four of B.
SCALED = {
    ".param .u64 out,": ".param .u64 out, .param .u64 scales,",
    "setp.ne.u32 %done, %i, %i;": SCALES,
    ".cta_group::2.kind::f16": ".cta_group::2.kind::mxf8f6f4.block_scale.scale_vec::1X",
    "@!%lead bra wait;": "add.u32 %x, %d, 128; add.u32 %v, %d, 132; @!%lead bra wait;",
    "%b, %i, %done;": "%b, %i, [%x], [%v], %done;",
    "[%s], 64;": "[%s], 256;", "%d, 64;": "%d, 256;",
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(("rows", "columns"), [(256, 64), (128, 128), (128, 80)])
def test_a_pair_multiplies_blocks_with_scales(engine, rows, columns, rng):
    """32 scales are in a column; of 128 rows, the scales of each half of the columns of D are in its half of the lanes.

    The layouts are those of CUTLASS (mma_traits_sm100.hpp, `tmem_sf_frg`), with their copies for other warps.
    """
    text = PRODUCT
    for old, new in SCALED.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    a, b = (rng.integers(-3, 4, (count, 32)).astype(ml_dtypes.float8_e4m3fn) for count in (rows, columns))
    powers_a, powers_b = (rng.integers(-3, 4, count) for count in (rows, columns))
    words, own, halves = np.zeros((2, 4, 32, 8), np.uint32), rows // 2, 256 // rows
    for rank in range(2):
        for warp in range(4):
            for row in range(own):
                words[rank, warp, row % 32, row // 32] = 127 + powers_a[rank * own + row]
            part = columns // halves
            for column in range(part):
                power = powers_b[warp // 2 * part + column] if halves == 2 else powers_b[column]
                words[rank, warp, column % 32, 4 + column // 32] = 127 + power
    width = columns // halves
    out, idesc = np.zeros((2, 128, width), np.float32), columns // 8 << 17 | 1 << 23 | rows // 16 << 24
    ptxvm.load(text).kernel().launch(
        2, 128, [a.view(np.uint8), b.view(np.uint8), out, words, idesc, width], cluster=2, engine=engine
    )
    found = np.vstack(list(out if rows == 256 else [np.hstack([each[:64], each[64:]]) for each in out]))
    exact = a.astype(np.float64) @ b.astype(np.float64).T * 2.0 ** powers_a[:, None] * 2.0 ** powers_b[None, :]
    assert (found == exact).all()


def test_a_pair_without_a_race_has_no_findings():
    *_, findings = product("interp", 256, 16, check=("race", "sync", "memory"), asynchronous="late")
    assert findings == []


ARRIVE = """fence.proxy.async; bar.sync 0;
mapa.shared::cluster.u32 %x, %bar, 0; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%x+8];"""
WAIT = "ready: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %more, [%bar+8], 0; @!%more bra ready;"


def test_the_thread_that_starts_a_product_reads_the_matrices_of_both_ctas():
    """It alone has to know that both CTAs have filled their halves (PTX 9.7.16.5.1): the other CTA waits for nothing."""
    both = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
    init = "@%one mbarrier.init.shared::cta.b64 [%bar], 1;"
    text = PRODUCT.replace(f"fence.proxy.async; bar.sync 0;\n{both}", ARRIVE)
    text = text.replace(init, f"{init} @%one mbarrier.init.shared::cta.b64 [%bar+8], 256; {both}")
    for wait, kinds in ((WAIT, set()), ("", {"race"})):
        ordered = text.replace("@!%lead bra wait;", f"@!%lead bra wait;\n{wait}")
        found, wanted, findings = product("interp", 256, 16, ordered, check=("race",))
        assert {each.kind for each in findings} == kinds
        assert not wait or (found == wanted).all()


SHORT = """
.version 8.6
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out)
{
.reg .b64 %p; .reg .b32 %t, %d, %v; .reg .pred %one; .shared .b32 base; .shared .b64 bar;
ld.param.u64 %p, [out]; mov.u32 %t, %tid.x; setp.eq.u32 %one, %t, 0;
@%one mbarrier.init.shared::cta.b64 [bar], 1;
BODY
ret;
}"""
ALLOCATE = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 32; ld.shared.b32 %d, [base];"
FREE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %d, 32;"
SHIFT = """
tcgen05.st.sync.aligned.32x32b.x1.b32 [%d], {%t}; tcgen05.wait::st.sync.aligned;
@%one tcgen05.shift.cta_group::1.down [%d];
@%one tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%p];
"""


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_rows_are_shifted_down_by_one(engine):
    """PTX 9.7.16.9.3, in the direction that a B200 was seen to take: row 1 goes to row 0, the last stays; 32 bytes of each."""
    body = (
        ALLOCATE
        + SHIFT.replace("[%p]", "[bar]").replace("one.b64", "one.shared::cluster.b64")
        + """
        wait: mbarrier.try_wait.parity.shared::cta.b64 %one, [bar], 0; @!%one bra wait;
        tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v}, [%d]; tcgen05.wait::ld.sync.aligned;
        mad.wide.u32 %p, %t, 4, %p; st.global.b32 [%p], %v;
    """
        + FREE
    )
    out = np.zeros(32, np.uint32)
    ptxvm.load(SHORT.replace("BODY", body)).kernel().launch(1, 32, [out], engine=engine)
    assert out.tolist() == [*range(1, 32), 31]


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(
    ("body", "said"),
    [
        (ALLOCATE.replace("::1", "::2") + FREE.replace("::1", "::2"), "needs a pair of CTAs"),
        (ALLOCATE + "@%one tcgen05.shift.cta_group::2.down [%d];" + FREE, "needs a pair of CTAs"),
        (ALLOCATE + "add.u32 %v, %d, 0x100000; @%one tcgen05.shift.cta_group::1.down [%v];" + FREE, "no multiple of 32"),
    ],
)
def test_misuse_is_named(engine, body, said):
    with pytest.raises(ptxvm.Fault, match=said) as fault:
        ptxvm.load(SHORT.replace("BODY", body)).kernel().launch(1, 32, [np.zeros(32, np.uint32)], engine=engine)
    assert fault.value.kind == "tensor-memory"


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_a_kernel_has_one_group(engine):
    """PTX 9.7.16.7.1: all instructions of a kernel have the same `.cta_group`."""
    body = ALLOCATE + FREE.replace("::1", "::2")
    with pytest.raises(ptxvm.Fault, match=r"cta_group::2 after one with .cta_group::1"):
        ptxvm.load(SHORT.replace("BODY", body)).kernel().launch(2, 32, [np.zeros(32, np.uint32)], cluster=2, engine=engine)
