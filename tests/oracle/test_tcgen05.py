"""`tcgen05.mma` against exact sums and what silicon computed, with A and scales in shared and tensor memory.

Source of the recorded dot products: shared/fidelity/dots_hopper_blackwell.npz.  Descriptors are put together by the
manual's tables (PTX 9.7.16.4), and matrices by its canonical layouts, in `test_wgmma`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from test_wgmma import DTYPES, SHARED, put

import ptxvm

DOTS = Path(__file__).parents[3] / "shared" / "fidelity" / "dots_hopper_blackwell.npz"
SWIZZLES = {0: 0, 1: 2, 2: 4, 3: 6}  # of `wgmma`, and here
COLUMNS = 128
AT_A, AT_B, AT_SCALES = 1024, 20 * 1024, 60 * 1024
TYPES = {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5, "f16": 0, "bf16": 1, "tf32": 2, "u8": 0, "s8": 1}


def descriptor(of_wgmma: int) -> int:
    """The descriptor of the same matrix (PTX 9.7.16.4.1)."""
    return of_wgmma & (1 << 62) - 1 | 1 << 46 | SWIZZLES[of_wgmma >> 62] << 61


def instruction_descriptor(m, n, d, a, b, *, negated=0, transposed=0, saturates=0) -> int:
    """Table 42: the types of D, A and B, signs, orders and the shape."""
    sums = {"f16": 0, "f32": 1, "s32": 2}[d]
    return (
        saturates << 3
        | sums << 4
        | TYPES[a] << 7
        | TYPES[b] << 10
        | negated << 13
        | transposed << 15
        | n // 8 << 17
        | m // 16 << 24
    )


@cache
def kernel(instruction: str, columns: int) -> ptxvm.Kernel:
    """Copy shared memory from global, and D to tensor memory; multiply, wait for the mbarrier, and read D."""
    regs = [f"%r{n}" for n in range(32)]
    vector = "{" + ", ".join(regs) + "}"
    held = "".join(f"ld.global.b32 {r}, [%q+{4 * n}]; " for n, r in enumerate(regs))
    kept = "".join(f"st.global.b32 [%q+{4 * n}], {r}; " for n, r in enumerate(regs))
    more = f"add.u64 %q, %q, 128; add.u32 %x, %x, 32; add.u32 %n, %n, 32; setp.lt.u32 %again, %n, {columns};"
    again = "mov.u64 %q, %pd; mov.u32 %x, %own; mov.u32 %n, 0;"
    stores = f"{again} S: {held} tcgen05.st.sync.aligned.32x32b.x32.b32 [%x], {vector}; {more} @%again bra S;"
    loads = f"""{again} G: tcgen05.ld.sync.aligned.32x32b.x32.b32 {vector}, [%x]; tcgen05.wait::ld.sync.aligned;
        {kept} {more} @%again bra G;"""
    return ptxvm.load(f"""
        .version 8.8
        .target sm_100a
        .address_size 64
        .visible .entry k(.param .u64 pd, .param .u64 ps, .param .u64 da, .param .u64 db, .param .u32 idesc, .param .u32 en)
        {{
        .reg .b64 %pd, %ps, %da, %db, %q; .reg .b32 %r<32>, %t, %s, %n, %w, %d, %own, %i, %x, %a, %b;
        .reg .pred %p, %more, %first, %done, %again;
        .shared .align 1024 .b8 tile[{SHARED}];
        .shared .align 8 .b64 bar;
        .shared .align 4 .b32 base;
        mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; setp.eq.u32 %first, %t, 0;
        ld.param.u64 %pd, [pd]; mad.wide.u32 %pd, %t, {4 * columns}, %pd;
        ld.param.u64 %ps, [ps]; ld.param.u64 %da, [da]; ld.param.u64 %db, [db]; ld.param.u32 %i, [idesc];
        mad.wide.u32 %ps, %t, 16, %ps; mov.u32 %s, tile; mad.lo.u32 %s, %t, 16, %s; mov.u32 %n, 0;
        L: ld.global.v4.b32 {{%r0, %r1, %r2, %r3}}, [%ps]; st.shared.v4.b32 [%s], {{%r0, %r1, %r2, %r3}};
        add.u64 %ps, %ps, 2048; add.u32 %s, %s, 2048; add.u32 %n, %n, 2048;
        setp.lt.u32 %more, %n, {SHARED}; @%more bra L;
        @%first mbarrier.init.shared.b64 [bar], 1;
        setp.eq.u32 %more, %w, 0;
        @%more tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 512;
        fence.proxy.async;
        bar.sync 0;
        ld.shared.b32 %d, [base]; shl.b32 %own, %w, 21; add.u32 %own, %own, %d; add.u32 %a, %d, 256; add.u32 %b, %d, 320;
        {stores}
        tcgen05.wait::st.sync.aligned;
        tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
        ld.param.u32 %n, [en]; setp.ne.u32 %p, %n, 0;
        @!%first bra W;
        {instruction}
        tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];
        W: mbarrier.try_wait.parity.shared.b64 %done, [bar], 0;
        @!%done bra W;
        tcgen05.fence::after_thread_sync;
        {loads}
        bar.sync 0;
        @%more tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
        @%more tcgen05.dealloc.cta_group::1.sync.aligned.b32 %d, 512;
        ret;
        }}""").kernel("k")


def run(instruction, memory, da, db, idesc, d, enabled=1, **how) -> np.ndarray:
    """The cells of D, `(128, columns)`."""
    out = np.ascontiguousarray(d)
    args = [out, memory, np.uint64(da), np.uint64(db), np.uint32(idesc), np.uint32(enabled)]
    kernel(instruction, d.shape[1]).launch(grid=1, block=128, args=args, **how)
    return out


PLAIN = "tcgen05.mma.cta_group::1.kind::{kind} [%d], %da, %db, %i, %p;"
CASES = [
    ("f16", "f16", "f32", 128, 64, 128, 0, 0), ("f16", "bf16", "f32", 64, 32, 64, 3, 0),
    ("f16", "f16", "f16", 128, 32, 0, 0, 3),
    ("tf32", "tf32", "f32", 128, 32, 32, 1, 0), ("i8", "s8", "s32", 64, 64, 128, 0, 0), ("i8", "u8", "s32", 128, 32, 0, 0, 1),
    ("f8f6f4", "e4m3", "f32", 128, 96, 64, 2, 2), ("f16", "bf16", "f32", 128, 64, 64, 0, 2),
]  # fmt: skip


@pytest.mark.sampled(6)
@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(("kind", "type", "sums", "m", "n", "swizzle", "negated", "transposed"), CASES)
def test_products_are_exact(kind, type, sums, m, n, swizzle, negated, transposed, engine, rng):
    size, low = np.dtype(DTYPES[type]).itemsize, 0 if type == "u8" else -4
    depth = 32 // size
    a, b, c = rng.integers(low, 5, (m, depth)), rng.integers(low, 5, (n, depth)), rng.integers(-50, 50, (m, n))
    memory = np.full(SHARED, 0x3C, np.uint8)
    da = put(memory, AT_A, a.astype(DTYPES[type]), swizzle, transposed=bool(transposed & 1))
    db = put(memory, AT_B, b.astype(DTYPES[type]), swizzle, transposed=bool(transposed & 2))
    lane = np.arange(m) if m == 128 else np.arange(m) // 16 * 32 + np.arange(m) % 16
    held = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[sums]
    cells = np.full((128, -(-n // 32) * 32), 0xDEAD, np.uint32)
    cells[lane, :n] = c.astype(held).view(f"u{held().itemsize}")
    idesc = instruction_descriptor(m, n, sums, type, type, negated=negated, transposed=transposed)
    enabled = int(m == 128)
    got = run(PLAIN.format(kind=kind), memory, descriptor(da), descriptor(db), idesc, cells, enabled, engine=engine)
    exact = (-1) ** negated.bit_count() * a @ b.T + c * enabled
    assert (got[lane, :n].astype(f"u{held().itemsize}").view(held) == exact).all()
    others = np.setdiff1d(np.arange(128), lane)
    assert (got[others] == 0xDEAD).all()


def put_by_32(memory: np.ndarray, start: int, matrix: np.ndarray) -> int:
    """Write a transposed matrix of words in the swizzle of 128 bytes that moves 32; returns its descriptor.

    The layout is CUTLASS's `LayoutType::128B_BASE32B`: `Swizzle<2,5,2> o ((T,8,m),(4,k)):((1,T,LBO),(8T,SBO))`.
    """
    rows, depth = matrix.shape
    row, k = np.indices(matrix.shape)
    leading, stride = 128 * depth, 512
    at = start + row % 32 * 4 + row // 32 * leading + k % 4 * 128 + k // 4 * stride
    at ^= (at >> 7 & 3) << 5
    memory[at[..., None] + np.arange(4)] = np.ascontiguousarray(matrix).view(np.uint8).reshape(rows, depth, 4)
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | 1 << 61


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize("transposed", [1, 2, 3])
def test_transposed_words_have_a_swizzle_of_their_own(transposed, engine, rng):
    a, b = (rng.integers(-4, 5, (count, 8)).astype(np.float32) for count in (128, 64))
    memory = np.full(SHARED, 0x3C, np.uint8)
    places = [(AT_A, a, transposed & 1), (AT_B, b, transposed & 2)]
    da, db = (
        put_by_32(memory, at, each) if other else descriptor(put(memory, at, each, 32)) for at, each, other in places
    )  # fmt: skip
    idesc = instruction_descriptor(128, 64, "f32", "tf32", "tf32", transposed=transposed)
    got = run(PLAIN.format(kind="tf32"), memory, da, db, idesc, np.zeros((128, 64), np.uint32), engine=engine)
    assert (got.view(np.float32) == a @ b.T).all()


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(("kind", "swizzle"), [("tf32", 2), ("f16", 1)])
def test_a_swizzle_that_transposed_elements_cannot_have_is_named(kind, swizzle, engine):
    """PTX 9.7.16.10.3, table 54."""
    idesc = instruction_descriptor(128, 64, "f32", kind, kind, transposed=1)
    da, db = (at >> 4 | 1 << 46 | swizzle << 61 for at in (AT_A, AT_B))
    with pytest.raises(ptxvm.Fault, match="a transposed matrix of 32 bits has the swizzle"):
        run(PLAIN.format(kind=kind), np.zeros(SHARED, np.uint8), da, db, idesc, np.zeros((128, 64), np.uint32), engine=engine)


# ── products of depth 96 ────────────────────────────────────────────────────────────────

DEEPER = """
    tcgen05.cp.cta_group::1.32x128b.warpx4 [%a], {}; add.u32 %x, %a, 4; tcgen05.cp.cta_group::1.32x128b.warpx4 [%x], {};
    tcgen05.cp.cta_group::1.32x128b.warpx4 [%b], {}; add.u32 %x, %b, 4; tcgen05.cp.cta_group::1.32x128b.warpx4 [%x], {};
    tcgen05.mma.cta_group::1.kind::{}.block_scale.{} [%d], %da, %db, %i, [%a], [%b], %p;
    """
CODES = np.array([0, 2, 4, 5, 6], np.uint8)  # of 0 to 4, in e2m1


def put_from_piece(memory: np.ndarray, start: int, piece: int, matrix: np.ndarray) -> int:
    """Write rows of 48 bytes from a piece of a pattern of 128 bytes on, and in the next pattern; returns the descriptor."""
    rows, after = np.arange(len(matrix)), start + 128 * len(matrix)
    for n in range(3):
        first, part = (start, piece + n) if piece + n < 8 else (after, piece + n - 8)
        at = first + rows * 128 + (part ^ rows % 8) * 16
        memory[at[:, None] + np.arange(16)] = matrix[:, 16 * n : 16 * n + 16]
    return start + 16 * piece >> 4 | after >> 4 << 16 | 1024 >> 4 << 32 | 1 << 46 | 1 << 52 | 2 << 61


@pytest.mark.sampled(3)
@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(("kind", "size", "count"), [("mxf4", "block32", 3), ("mxf4nvf4", "block16", 6)])
@pytest.mark.parametrize(("piece", "first"), [(0, 0), (3, 2), (6, 0), (7, 2)])
def test_products_of_depth_96_are_exact(kind, size, count, piece, first, engine, rng):
    """Rows go on at an absolute address, scales in the words behind those of all rows (PTX 9.7.16.4.1, 9.7.16.10.7.2.4).

    The order is that of CUTLASS's loop for sm_103a, where a row of 128 bytes has two products and two thirds.
    """
    m, n = 128, 64
    values = [rng.integers(0, 5, (rows, 96)) for rows in (m, n)]
    powers = [rng.integers(-2, 3, (rows, count)) for rows in (m, n)]
    memory, places = np.zeros(SHARED, np.uint8), []
    da, db = (
        put_from_piece(memory, at, piece, CODES[each[:, ::2]] | CODES[each[:, 1::2]] << 4)
        for at, each in zip((1024, 1024 + 2 * 128 * m), values, strict=True)
    )
    for each in powers:
        words, row = np.zeros((2, 32, 4, 4), np.uint8), np.arange(len(each))
        for block in range(count):
            place = first + block
            words[place // 4, row % 32, row // 32, place % 4] = 127 + each[:, block]
        for held in words:
            at = AT_SCALES + 512 * len(places)
            memory[at : at + 512] = held.ravel()
            places.append(at >> 4 | 128 >> 4 << 32 | 1 << 46)
    idesc = first << 4 | 1 << 7 | 1 << 10 | n // 8 << 17 | 1 << 23 | m // 16 << 24 | first << 29 | 1 << 31
    got = run(DEEPER.format(*places, kind, size), memory, da, db, idesc, np.zeros((128, n), np.uint32), engine=engine)
    a, b = (each * np.repeat(2.0**power, 96 // count, axis=1) for each, power in zip(values, powers, strict=True))
    assert (got.view(np.float32) == a @ b.T).all()


# ── recorded dot products ───────────────────────────────────────────────────────────────


def recorded(start: str) -> list[str]:
    """The sets whose names begin so, without the kind of their inputs."""
    if not DOTS.is_file():
        return []
    return sorted({key.rsplit("|", 2)[0] for key in np.load(DOTS).files if key.startswith(start)})


def packed(values: np.ndarray, type: str) -> np.ndarray:
    """Elements of four or six bits in 16 bytes for 16 of them (PTX 9.7.16.10.4.4); bytes stay."""
    bits = {"e2m1": 4, "e2m3": 6, "e3m2": 6}.get(type, 8)
    if bits == 8:
        return values
    each = values.reshape(len(values), -1, 16)
    single = np.unpackbits(each[..., None].astype(np.uint8), axis=-1, bitorder="little")[..., :bits]
    found = np.zeros((*each.shape[:2], 128), np.uint8)
    found[..., : 16 * bits] = single.reshape(*each.shape[:2], -1)
    return np.packbits(found, axis=-1, bitorder="little").reshape(len(values), -1)


@pytest.mark.sampled(6)
@pytest.mark.skipif(not DOTS.is_file(), reason="the reference data is missing")
@pytest.mark.parametrize(
    ("engine", "only", "count"),
    [*(("interp", f"|{sums}.{a}.", 5) for sums in ("f32", "f16") for a in ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")),
     ("interp", "f16.f16", 2), ("interp", "bf16", 1), ("interp", "tf32", 1),
     *(("jit", f"|f32.{a}.", 5) for a in ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")),
     ("jit", "f32.f16", 1), ("jit", "bf16", 1), ("jit", "tf32", 1)],
)  # fmt: skip
def test_products_are_what_silicon_computes(engine, only, count):
    names = [name for name in recorded("tcgen05.mma|") if only in name]
    assert len(names) == count
    assert [name for name in names if wrong(name, engine)] == []


SCALED = """
    tcgen05.cp.cta_group::1.32x128b.warpx4 [%a], {a};
    tcgen05.cp.cta_group::1.32x128b.warpx4 [%b], {b};
    tcgen05.mma.cta_group::1.kind::{kind}.block_scale.scale_vec::{blocks}X [%d], %da, %db, %i, [%a], [%b], %p;
    """


@pytest.mark.sampled(3)
@pytest.mark.skipif(not DOTS.is_file(), reason="the reference data is missing")
@pytest.mark.parametrize(
    ("engine", "only", "count"),
    [("interp", "|k64", 4), ("jit", "|k64", 4), ("plan", "|k64", 4), ("plan", "e4m3.e5m2", 1),
     ("interp", "|f32.e4", 5), ("interp", "|f32.e5", 5),
     ("interp", "|f32.e3", 5), ("interp", "|f32.e2m3", 5), ("interp", "|f32.e2m1", 8)],
)  # fmt: skip
def test_products_of_scaled_blocks_are_what_silicon_computes(engine, only, count):
    names = [name for name in recorded("tcgen05.mma.block_scale") if only in name]
    assert len(names) == count + (only == "|f32.e2m1")
    assert [name for number, name in enumerate(names) if wrong_when_scaled(name, engine, number)] == []


def wrong_when_scaled(name: str, engine: str, number: int) -> int:
    """How many of the recorded dot products an instruction with scales gets wrong."""
    file = np.load(DOTS)
    _, a_type, b_type, scale_type = name.split("|")[2].split(".")
    kind = name.partition("|")[0].removeprefix("tcgen05.mma.block_scale").strip(".") or "mxf8f6f4"
    found, memory, lanes, halved = 0, np.zeros(SHARED, np.uint8), np.arange(128), "k64" in name
    for each in ("normal", "wide", "bits"):
        a, b, c, d, *both = (file[f"{name}|{each}|{part}"] for part in ("A", "B", "C", "D", "SA", "SB"))
        blocks = both[0].shape[1]
        byte_a, byte_b = {1: (number % 4, (number + 1) % 4), 2: (2, 0), 4: (0, 0)}[blocks]
        places = []
        for at, (scales, byte) in enumerate(zip(both, (byte_a, byte_b), strict=True)):
            cells = np.zeros((32, 4, 4), np.uint8)
            cells[lanes % 32, lanes // 32, byte : byte + blocks] = scales
            memory[AT_SCALES + 512 * at :][:512] = cells.reshape(-1)
            places.append((AT_SCALES + 512 * at) >> 4 | 128 >> 4 << 32 | 1 << 46)
        if halved:
            a, b = (x[:, ::2] | x[:, 1::2] << 4 for x in (a, b))
        else:
            a, b = packed(a, a_type), packed(b, b_type)
        da, db = put(memory, AT_A, a, 32), put(memory, AT_B, b, 32)
        types = 1 << 7 | 1 << 10 if halved else TYPES[a_type] << 7 | TYPES[b_type] << 10
        idesc = byte_b << 4 | types | 128 // 8 << 17 | (scale_type == "ue8m0") << 23 | 1 << 27 | byte_a << 29
        cells = np.zeros((128, 128), np.uint32)
        cells[lanes, lanes] = c
        instruction = SCALED.format(a=places[0], b=places[1], kind=kind, blocks=blocks)
        if engine == "plan":  # compiled code repeats what the host does first, in other columns
            instruction = "add.u32 %x, %d, 384;" + instruction.replace("[%d]", "[%x]") + instruction
        got = run(instruction, memory, descriptor(da), descriptor(db), idesc, cells, engine=engine.replace("plan", "jit"))
        found += int((got[lanes, lanes] != d).sum())
    return found


def wrong(name: str, engine: str) -> int:
    """How many of the recorded dot products the instruction gets wrong: 128 on the diagonal of a product."""
    file = np.load(DOTS)
    sums, a_type, b_type = name.split("|")[2].split(".")
    kind = {"f16": "f16", "bf16": "f16", "tf32": "tf32"}.get(a_type, "f8f6f4")
    found, memory, lanes = 0, np.zeros(SHARED, np.uint8), np.arange(128)
    idesc = instruction_descriptor(128, 128, sums, a_type, b_type)
    for each in ("normal", "wide", "bits"):
        a, b, c, d = (file[f"{name}|{each}|{part}"] for part in "ABCD")
        da, db = put(memory, AT_A, packed(a, a_type), 32), put(memory, AT_B, packed(b, b_type), 32)
        cells = np.zeros((128, 128), np.uint32)
        cells[lanes, lanes] = c
        got = run(PLAIN.format(kind=kind), memory, descriptor(da), descriptor(db), idesc, cells, engine=engine)
        found += int((got[lanes, lanes] != d).sum())
    return found
