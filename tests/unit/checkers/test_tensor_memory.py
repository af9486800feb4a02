"""The race checker and tensor memory: products, loads and stores whose order nothing makes (PTX 9.7.16.6).

The kernels are those of the canonical patterns of PTX 9.7.16.6.4, whole and with one line left out.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

DESCRIPTOR = 1 << 46 | 128 >> 4 << 16 | 256 >> 4 << 32  # not swizzled, K-major
SHAPE = 1 << 4 | 8 // 8 << 17 | 128 // 16 << 24  # f32 = f16 * f16, 128 by 8
A, B = 1024, 1024 + 4096  # in shared memory

PRODUCT = "@%one tcgen05.mma.cta_group::1.kind::f16 [%d], %a, %b, %i, %on;"
COMMIT = "@%one tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%bar];"
WAIT = "wait: mbarrier.try_wait.parity.shared::cta.b64 %done, [%bar], 0; @!%done bra wait;"
LOAD = "tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r0, %r1, %r2, %r3}, [%mine];"
WAIT_LOAD = "tcgen05.wait::ld.sync.aligned;"
STORE = "tcgen05.st.sync.aligned.32x32b.x4.b32 [%mine], {%t, %t, %t, %t};"
WAIT_STORE = "tcgen05.wait::st.sync.aligned;"
BARRIER = "bar.sync 0;"


def source(*lines: str) -> str:
    """Four warps; thread 0 is %one, D lies at %d, and %mine is a warp's part of it."""
    body = "\n".join(lines)
    return f"""
        .version 8.6
        .target sm_100a
        .address_size 64
        .visible .entry k()
        {{
        .reg .b64 %a, %b; .reg .b32 %t, %s, %d, %mine, %i, %bar, %x, %r<4>; .reg .pred %one, %first, %on, %done;
        .shared .align 1024 .b8 tile[8192];
        mov.u32 %t, %tid.x; mov.u32 %s, tile; add.u32 %bar, %s, 8; setp.eq.u32 %one, %t, 0; setp.lt.u32 %first, %t, 32;
        @%one mbarrier.init.shared::cta.b64 [%bar], 1;
        mad.lo.u32 %x, %t, 16, %s; st.shared.v4.b32 [%x+{A}], {{%t, %t, %t, %t}};
        @!%first bra allocated;
        tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%s], 64;
        tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
        allocated:
        fence.proxy.async; bar.sync 0;
        ld.shared.b32 %d, [%s]; shl.b32 %mine, %t, 16; and.b32 %mine, %mine, {96 << 16}; add.u32 %mine, %mine, %d;
        mov.b32 %i, {SHAPE}; setp.ne.u32 %on, %i, %i;
        add.u32 %x, %s, {A}; shr.u32 %x, %x, 4; cvt.u64.u32 %a, %x; add.s64 %a, %a, {DESCRIPTOR};
        add.u32 %x, %s, {B}; shr.u32 %x, %x, 4; cvt.u64.u32 %b, %x; add.s64 %b, %b, {DESCRIPTOR};
        {body}
        bar.sync 0;
        @!%first bra last;
        tcgen05.dealloc.cta_group::1.sync.aligned.b32 %d, 64;
        last:
        ret;
        }}"""


def findings(*lines: str, **how: object) -> list[ptxvm.Finding]:
    kernel = ptxvm.load(source(*lines)).kernel("k")
    return kernel.launch(grid=1, block=128, check=("race",), **how).findings


@pytest.mark.parametrize(
    "lines",
    [
        (PRODUCT, PRODUCT, COMMIT, WAIT),
        (PRODUCT, COMMIT, WAIT, LOAD, WAIT_LOAD),
        (STORE, WAIT_STORE, LOAD, WAIT_LOAD),
        (STORE, WAIT_STORE, BARRIER, PRODUCT, COMMIT, WAIT),
        (STORE, WAIT_STORE, LOAD, WAIT_LOAD, BARRIER, PRODUCT, COMMIT, WAIT),
    ],
    ids=["products", "product, load", "store, load", "store, product", "load, product"],
)
def test_the_canonical_patterns_have_no_race(lines):
    assert findings(*lines) == []


@pytest.mark.parametrize(
    ("lines", "hazard", "both", "missing"),
    [
        ((PRODUCT, LOAD, WAIT_LOAD, BARRIER, COMMIT, WAIT), "RAW", (PRODUCT, LOAD), "tcgen05.commit"),
        ((PRODUCT, STORE, WAIT_STORE, BARRIER, COMMIT, WAIT), "WAW", (PRODUCT, STORE), "tcgen05.commit"),
        ((STORE, LOAD, WAIT_STORE, WAIT_LOAD), "RAW", (STORE, LOAD), "tcgen05.wait::st"),
        ((STORE, BARRIER, PRODUCT, COMMIT, WAIT, WAIT_STORE), "WAW", (STORE, PRODUCT), "tcgen05.wait::st"),
        ((LOAD, BARRIER, PRODUCT, COMMIT, WAIT, WAIT_LOAD), "WAR", (LOAD, PRODUCT), "tcgen05.wait::ld"),
        ((LOAD, WAIT_LOAD, PRODUCT, COMMIT, WAIT), "WAR", (LOAD, PRODUCT), "a barrier"),
        ((LOAD, STORE, WAIT_STORE, WAIT_LOAD), "WAR", (LOAD, STORE), "tcgen05.wait::ld"),
    ],
    ids=["commit", "commit, store", "wait::st", "wait::st, product", "wait::ld, product", "barrier", "wait::ld, store"],
)
def test_a_missing_wait_is_a_race_of_two_named_instructions(lines, hazard, both, missing):
    (found, *more) = findings(*lines)
    assert not more
    assert (found.kind, found.hazard, found.space) == ("race", hazard, "tensor")
    assert found.missing.startswith(missing)
    text = source(*lines).splitlines()
    assert [text[each.line - 1].split()[-1] for each in found.accesses] == [each.split()[-1] for each in both]


RELAXED = WAIT.replace("parity.", "parity.relaxed.cluster.")
SECOND = "@%one mbarrier.init.shared::cta.b64 [%s+16], 128; bar.sync 0;"
TOLD = "mbarrier.arrive.relaxed.cluster.shared::cta.b64 _, [%s+16];"
HEARD = RELAXED.replace("wait:", "heard:").replace("bra wait", "bra heard").replace("[%bar]", "[%s+16]")
BEFORE, AFTER = "tcgen05.fence::before_thread_sync;", "tcgen05.fence::after_thread_sync;"
FLAG = "st.relaxed.cta.shared.u32 [%s+24], 1;"
SPIN = "spin: ld.relaxed.cta.shared.u32 %x, [%s+24]; setp.ne.u32 %done, %x, 1; @%done bra spin;"
LOADED = (SECOND, LOAD, WAIT_LOAD, BEFORE, TOLD, HEARD, AFTER, PRODUCT, COMMIT, WAIT)


@pytest.mark.parametrize(
    "lines",
    [
        (PRODUCT, COMMIT, RELAXED, AFTER, LOAD, WAIT_LOAD),
        LOADED,
        (SECOND, PRODUCT, COMMIT, "@!%first bra known;", RELAXED, AFTER, BEFORE, "known:", TOLD, HEARD, AFTER, LOAD, WAIT_LOAD),
        (PRODUCT, COMMIT, "@!%first bra other;", WAIT, BEFORE, f"@%one {FLAG} other:", SPIN, AFTER, LOAD, WAIT_LOAD),
    ],
    ids=["commit", "arrival", "both", "flag"],
)
@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_relaxed_synchronisation_with_fences_of_tensor_memory_orders_it(lines, engine):
    """PTX 9.7.16.6.4: the canonical patterns, as the manual has them; `tcgen05.fence` goes with any execution ordering."""
    assert findings(*lines, engine=engine) == []


@pytest.mark.parametrize(
    ("lines", "both", "missing"),
    [
        ((PRODUCT, COMMIT, RELAXED, LOAD, WAIT_LOAD), (PRODUCT, LOAD), "tcgen05.fence::after_thread_sync"),
        (tuple(each for each in LOADED if each is not AFTER), (LOAD, PRODUCT), "tcgen05.fence::after_thread_sync"),
        (tuple(each for each in LOADED if each is not BEFORE), (LOAD, PRODUCT), "a barrier, or an mbarrier"),
        (tuple(each for each in LOADED if each is not WAIT_LOAD), (LOAD, PRODUCT), "tcgen05.wait::ld"),
    ],
    ids=["commit", "after", "before", "wait"],
)
def test_relaxed_synchronisation_without_such_a_fence_does_not(lines, both, missing):
    found, *_ = findings(*lines)
    assert (found.kind, found.space) == ("race", "tensor")
    assert found.missing.startswith(missing)
    text = source(*lines).splitlines()
    assert [text[each.line - 1].split()[-1] for each in found.accesses] == [each.split()[-1] for each in both]


def test_fences_of_tensor_memory_order_no_other_accesses():
    found = findings(SECOND, "@%one st.shared.b32 [%s+28], %t;", BEFORE, TOLD, HEARD, AFTER, "ld.shared.b32 %x, [%s+28];")
    assert [[access.place.text.split()[-2] for access in each.accesses] for each in found] == [["[%s+28],", "%x,"]]


def test_giving_memory_back_that_a_product_uses_is_a_race():
    (found,) = [each for each in findings(PRODUCT, COMMIT) if each.space == "tensor"]
    assert "tcgen05.dealloc" in found.accesses[1].place.text


def test_a_result_may_be_read_before_the_wait():
    """PTX 9.7.16.6.4.5: what reads it gets what was loaded."""
    assert findings(LOAD, "mov.b32 %x, %r2;", WAIT_LOAD) == []


def test_a_result_that_is_written_before_the_wait_is_an_error():
    (found,) = findings(LOAD, "mov.b32 %r1, 0;", WAIT_LOAD)
    assert (found.kind, "%r1" in found.message) == ("register-in-use", True)
    assert [each.place.text.split()[0] for each in found.accesses] == [LOAD.split(maxsplit=1)[0], "mov.b32"]


@pytest.mark.parametrize(("lines", "races"), [((PRODUCT, COMMIT, WAIT), 0), ((PRODUCT, COMMIT), 1)])
def test_a_matrix_in_shared_memory_is_in_use_until_the_commit_is_over(lines, races):
    overwrite = f"st.shared.b32 [%s+{A}], %i;"
    found = [each for each in findings(*lines, "@%one " + overwrite) if each.space == "shared"]
    assert [each.hazard for each in found] == ["WAR"] * races


@pytest.mark.parametrize("asynchronous", ["early", "late", "random"])
def test_races_do_not_depend_on_when_work_ends(asynchronous):
    assert findings(PRODUCT, COMMIT, WAIT, LOAD, WAIT_LOAD, asynchronous=asynchronous) == []
    (found,) = findings(PRODUCT, LOAD, WAIT_LOAD, BARRIER, COMMIT, WAIT, asynchronous=asynchronous)
    assert found.hazard == "RAW"


ALLOCATE = "@%first tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%s], 32;"
OVERWRITE = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%s], [%in], 16, [%bar];"
MULTIPLY = (
    "cvt.u64.u32 %n, %s; shr.u64 %n, %n, 4; add.s64 %n, %n, %descriptor;",
    "tcgen05.mma.cta_group::1.kind::f16 [%d], %n, %n, %i, %on;",
)


def loading_over(first: str, *then: str) -> str:
    """What Triton's matrix products for sm_100 do: the word with the address of tensor memory becomes part of a tile."""
    return f"""
        .version 8.6
        .target sm_100a
        .address_size 64
        .visible .entry k(.param .u64 in)
        {{
        .reg .b64 %in, %n, %descriptor; .reg .b32 %t, %s, %d, %i, %bar; .reg .pred %first, %one, %on, %done;
        .shared .align 1024 .b8 tile[8192];
        ld.param.u64 %in, [in];
        mov.u32 %t, %tid.x; mov.u32 %s, tile; add.u32 %bar, %s, 4096; setp.eq.u32 %one, %t, 0; setp.lt.u32 %first, %t, 32;
        mov.b64 %descriptor, {DESCRIPTOR}; mov.b32 %i, {SHAPE}; setp.ne.u32 %on, %i, %i;
        @%one mbarrier.init.shared::cta.b64 [%bar], 1;
        {first}
        bar.sync 0;
        ld.shared.b32 %d, [%s];
        bar.sync 0;
        @!%one bra over;
        {" ".join(then)}
        {WAIT}
        over: bar.sync 0;
        @%first tcgen05.dealloc.cta_group::1.sync.aligned.b32 %d, 32;
        ret;
        }}"""


ARM = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 16;"


def races_over(first: str, *then: str) -> list[ptxvm.Finding]:
    kernel = ptxvm.load(loading_over(first, *then)).kernel("k")
    found = kernel.launch(grid=1, block=64, args=[np.zeros(4, np.uint32)], check=("race",)).findings
    return [each for each in found if each.kind == "race"]


@pytest.mark.parametrize(("block", "races"), [(32, 0), (64, 1)])
def test_lanes_of_the_warp_that_allocates_read_the_address_at_once(block, races):
    """The first example of PTX 9.7.16.7.1; another warp has to wait."""
    text = """
        .version 8.6
        .target sm_100a
        .address_size 64
        .visible .entry k()
        {
        .reg .b32 %t, %d; .reg .pred %other;
        .shared .align 4 .b32 at;
        mov.u32 %t, %tid.x; setp.ge.u32 %other, %t, 32; @%other bra read;
        tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [at], 32;
        ld.shared.b32 %d, [at];
        tcgen05.dealloc.cta_group::1.sync.aligned.b32 %d, 32;
        tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
        ret;
        read: ld.shared.b32 %d, [at];
        ret;
        }"""
    found = ptxvm.load(text).kernel().launch(1, block, check=("race", "memory")).findings
    assert [each.kind for each in found] == ["race"] * races


def test_a_copy_may_overwrite_the_address_that_alloc_wrote():
    """PTX 9.7.16.6.1: allocation keeps the order of accesses of its address by instructions that are not `tcgen05`."""
    assert races_over(ALLOCATE, ARM, OVERWRITE) == []


def test_a_copy_may_not_overwrite_a_store_without_a_proxy_fence():
    (found,) = races_over(f"@%one st.shared.b32 [%s], 0; bar.sync 0; {ALLOCATE.replace('[%s]', '[%s+64]')}", ARM, OVERWRITE)
    assert (found.hazard, found.missing[:17]) == ("WAW", "fence.proxy.async")


def test_a_product_that_reads_the_address_that_alloc_wrote_needs_a_proxy_fence():
    """PTX 9.7.16.6.1 excepts `tcgen05` instructions, whose reads of shared memory are of the async proxy (9.7.16.6.5)."""
    (found, *_) = races_over(ALLOCATE, *MULTIPLY, COMMIT)
    assert (found.hazard, found.missing[:17]) == ("RAW", "fence.proxy.async")
    assert races_over(f"{ALLOCATE} fence.proxy.async;", *MULTIPLY, COMMIT) == []


@pytest.mark.parametrize(
    ("type", "words", "found"),
    [(5, 2, []), (3, 3, []), (3, 2, ["uninitialised-read"])],
    ids=["four bits", "six bits", "six bits, the last missing"],
)
@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_what_pads_narrow_elements_needs_no_value(type, words, found, engine):
    """PTX 9.7.16.10.5.1: 16 elements of four or six bits have 16 bytes, of which they fill the first 8 or 12."""
    first = "".join(f"st.shared.b32 [%x+{4 * n}], %t;" for n in range(words))
    row = f"mad.lo.u32 %x, %t, 32, %s; add.u32 %x, %x, {A}; {first} add.u32 %x, %x, 16; {first}"
    of_b = f"and.b32 %x, %t, 15; mad.lo.u32 %x, %x, 16, %s; add.u32 %x, %x, {B}; {first}"
    shape = f"mov.b32 %i, {SHAPE | type << 7 | type << 10};"
    text = source(row, of_b, "fence.proxy.async; bar.sync 0;", shape, PRODUCT.replace("f16", "f8f6f4"), COMMIT, WAIT)
    text = text.replace(f"st.shared.v4.b32 [%x+{A}], {{%t, %t, %t, %t}};", "")
    launched = ptxvm.load(text).kernel("k").launch(1, 128, check=("init",), engine=engine)
    assert [each.kind for each in launched.findings] == found


STORED = f"st.shared.v4.b32 [%x+{A}], {{%t, %t, %t, %t}};"
FILLED = " ".join(STORED.replace(str(A), str(at)) for at in (A, A + 2048, B))
ENABLED = "setp.eq.u32 %on, %i, %i;"
AFTER_D = "add.u32 %mine, %mine, 8;"
PRODUCT_OF_A = "add.u32 %x, %d, 32; @%one tcgen05.mma.cta_group::1.kind::f16 [%d], [%x], %b, %i, %on;"
STORE_A = """add.u32 %x, %mine, 32; tcgen05.st.sync.aligned.32x32b.x8.b32 [%x], {%t, %t, %t, %t, %t, %t, %t, %t};
tcgen05.wait::st.sync.aligned; bar.sync 0;"""
STORE_D = f"{STORE} {WAIT_STORE} bar.sync 0;"


@pytest.mark.parametrize(
    ("lines", "unset"),
    [
        ((PRODUCT, COMMIT, WAIT, LOAD, WAIT_LOAD), None),
        ((PRODUCT, COMMIT, WAIT, AFTER_D, LOAD, WAIT_LOAD), "columns 8 to 11"),
        ((LOAD, WAIT_LOAD), "columns 0 to 3"),
        ((STORE_D, LOAD, WAIT_LOAD), None),
        ((ENABLED, PRODUCT, COMMIT, WAIT), "columns 0 to 7"),
        ((ENABLED, STORE_D, PRODUCT, COMMIT, WAIT), "columns 4 to 7"),
        ((PRODUCT, ENABLED, PRODUCT, COMMIT, WAIT), None),
        ((PRODUCT_OF_A, COMMIT, WAIT), "columns 32 to 39"),
        ((STORE_A, PRODUCT_OF_A, COMMIT, WAIT), None),
        ((STORE_A.replace("tcgen05.st", "@%first tcgen05.st"), PRODUCT_OF_A, COMMIT, WAIT), "columns 32 to 39"),
    ],
)
@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_cells_have_no_value_before_something_writes_them(lines, unset, engine):
    """PTX 9.7.16.1: an allocation gives columns, and no values."""
    text = source(*lines).replace(STORED, FILLED)
    launched = ptxvm.load(text).kernel("k").launch(1, 128, check=("init",), engine=engine)
    said = [f"reading {unset} of tensor memory, which nothing has written since the allocation"] if unset else []
    assert [(each.kind, each.message) for each in launched.findings] == [("uninitialised-read", each) for each in said]


def test_columns_that_are_given_back_lose_their_values():
    again = """bar.sync 0; @!%first bra given; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %d, 64;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%s], 64; given: bar.sync 0;"""
    text = source(PRODUCT, COMMIT, WAIT, LOAD, WAIT_LOAD, again, LOAD, WAIT_LOAD)
    text = text.replace("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;", "").replace(STORED, FILLED)
    (found,) = ptxvm.load(text).kernel("k").launch(1, 128, check=("init",)).findings
    assert (found.message[:21], text.splitlines()[found.accesses[0].place.line - 1]) == ("reading columns 0 to ", LOAD)
