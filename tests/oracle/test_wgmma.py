"""`wgmma` against exact sums and what silicon computed, in every layout of shared memory.

Each layout is put together by the manual's canonical layouts (PTX 9.7.15.5.1.2.1.3), written as shapes and strides; `T` is
the number of elements in 16 bytes.  Source of the recorded dot products: shared/fidelity/dots_hopper_blackwell.npz.
"""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import ptxvm

DOTS = Path(__file__).parents[3] / "shared" / "fidelity" / "dots_hopper_blackwell.npz"
DTYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "s8": np.int8, "u8": np.uint8,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip
SWIZZLES = {0: 0, 128: 1, 64: 2, 32: 3}  # the bits of a descriptor
AT_A, AT_B, SHARED = 1024, 24 * 1024, 64 * 1024


def place(
    row: np.ndarray, k: np.ndarray, size: int, swizzle: int, leading: int, stride: int, *, transposed: bool
) -> np.ndarray:
    """The offsets of elements in bytes, before the swizzle."""
    t, w = 16 // size, swizzle // 16
    if not transposed and not w:  # ((8,m),(T,2k)):((1T,SBO),(1,LBO))
        return row % 8 * 16 + row // 8 * stride + k % t * size + k // t * leading
    if not transposed:  # ((8,m),(T,2k)):((wT,SBO),(1,T))
        return row % 8 * swizzle + row // 8 * stride + k * size
    if not w:  # ((T,1,m),(8,k)):((1,T,SBO),(1T,LBO))
        return row % t * size + row // t * stride + k % 8 * 16 + k // 8 * leading
    # ((T,w,m),(8,k)):((1,T,LBO),(wT,SBO))
    return row % (t * w) * size + row // (t * w) * leading + k % 8 * swizzle + k // 8 * stride


def swizzled(address: np.ndarray, swizzle: int) -> np.ndarray:
    """Swizzle<B, 4, 3>: the bits from 4 on are combined with those from 7 on."""
    return address ^ ((address >> 7) & (max(swizzle, 16) // 16 - 1)) << 4


def put(memory: np.ndarray, start: int, matrix: np.ndarray, swizzle: int, *, transposed: bool = False) -> int:
    """Write a matrix `(rows, K)` of bit patterns to shared memory; returns its descriptor."""
    rows, depth = matrix.shape
    size = matrix.dtype.itemsize
    row_bytes = max(swizzle, 16)
    if not transposed:
        stride = 8 * row_bytes * (1 if swizzle else depth * size // 16)
        leading = 128
    elif swizzle:
        leading = 8 * row_bytes * -(-depth // 8)
        stride = 8 * row_bytes
    else:
        leading, stride = 128 * -(-rows * size // 16), 128
    offsets = place(*np.indices((rows, depth)), size, swizzle, leading, stride, transposed=transposed)
    raw = np.ascontiguousarray(matrix).view(np.uint8).reshape(rows, depth, size)
    memory[swizzled(start + offsets, swizzle)[..., None] + np.arange(size)] = raw
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | SWIZZLES[swizzle] << 62


def fragment_of_a(matrix: np.ndarray) -> np.ndarray:
    """The four registers of each of 128 lanes: of a warp 16 rows, as of `mma` (PTX 9.7.15.5.1.1)."""
    size = matrix.dtype.itemsize
    run = 4 // size
    raw = np.ascontiguousarray(matrix).view(np.uint32)
    found = np.zeros((128, 4), np.uint32)
    for lane, n in itertools.product(range(128), range(4)):
        row = lane // 32 * 16 + lane % 32 // 4 + 8 * (n % 2)
        found[lane, n] = raw[row, (lane % 4 * run + n // 2 * 4 * run) * size // 4]
    return found


@cache
def kernel(instruction: str, registers: int, sizes: tuple[int, int]) -> ptxvm.Kernel:
    """Copy shared memory from global, load D, A and metadata, multiply, wait, store D."""
    d = [f"%d{n}" for n in range(registers)]
    body = instruction.format(d="{" + ", ".join(d) + "}", a="{%a0, %a1, %a2, %a3}")
    loads = "".join(f"ld.global.b32 {r}, [%pd+{4 * n}]; " for n, r in enumerate(d))
    stores = "".join(f"st.global.b32 [%pd+{4 * n}], {r}; " for n, r in enumerate(d))
    return ptxvm.load(f"""
        .version 8.4
        .target sm_90a
        .address_size 64
        .visible .entry k(.param .u64 pd, .param .u64 pa, .param .u64 ps, .param .u64 da, .param .u64 db, .param .u32 en)
        {{
        .reg .b64 %pd, %pa, %ps, %q, %da, %db; .reg .b32 %d<{registers}>, %a<4>, %t, %s, %n, %m; .reg .pred %p, %more;
        .shared .align 1024 .b8 tile[{SHARED}];
        mov.u32 %t, %tid.x;
        ld.param.u64 %pd, [pd]; mad.wide.u32 %pd, %t, {4 * registers}, %pd;
        ld.param.u64 %pa, [pa]; mad.wide.u32 %pa, %t, 20, %pa;
        ld.param.u64 %ps, [ps]; ld.param.u64 %da, [da]; ld.param.u64 %db, [db];
        mad.wide.u32 %ps, %t, 16, %ps; mov.u32 %s, tile; mad.lo.u32 %s, %t, 16, %s; mov.u32 %n, 0;
        L: ld.global.v4.b32 {{%a0, %a1, %a2, %a3}}, [%ps]; st.shared.v4.b32 [%s], {{%a0, %a1, %a2, %a3}};
        add.u64 %ps, %ps, 2048; add.u32 %s, %s, 2048; add.u32 %n, %n, 2048;
        setp.lt.u32 %more, %n, {SHARED}; @%more bra L;
        ld.global.b32 %a0, [%pa]; ld.global.b32 %a1, [%pa+4]; ld.global.b32 %a2, [%pa+8]; ld.global.b32 %a3, [%pa+12];
        ld.global.b32 %m, [%pa+16];
        ld.param.u32 %n, [en]; setp.ne.u32 %p, %n, 0;
        {loads}
        fence.proxy.async;
        bar.sync 0;
        wgmma.fence.sync.aligned;
        {body}
        wgmma.commit_group.sync.aligned;
        wgmma.wait_group.sync.aligned 0;
        {stores}
        ret;
        }}""").kernel("k")


def run(instruction: str, memory, da, db, d, a=None, metadata=None, enabled=1, **how) -> np.ndarray:
    """The registers of D, `(128, registers)`."""
    registers = np.zeros((128, 5), np.uint32)
    if a is not None:
        registers[:, :4] = a
    if metadata is not None:
        registers[:, 4] = metadata
    out = np.ascontiguousarray(d)
    args = [out, registers, memory, np.uint64(da), np.uint64(db), np.uint32(enabled)]
    kernel(instruction, d.shape[1], (0, 0)).launch(grid=1, block=128, args=args, **how)
    return out


def places_of_d(columns: int) -> tuple[np.ndarray, np.ndarray]:
    """The row and column of each element of D of a lane (PTX 9.7.15.5.1.1)."""
    lane, n = np.arange(128)[:, None], np.arange(columns // 2)
    return lane // 32 * 16 + lane % 32 // 4 + 8 * (n // 2 % 2), n // 4 * 8 + lane % 4 * 2 + n % 2


CASES = [
    # type, swizzle, A in registers, MN-major A, MN-major B, columns, negated A
    ("f16", 128, False, False, False, 64, False),
    ("f16", 0, False, True, True, 24, True),
    ("bf16", 64, True, False, True, 32, False),
    ("bf16", 32, False, True, False, 16, True),
    ("f16", 128, False, True, True, 72, False),
    ("bf16", 64, False, True, True, 64, False),
    ("tf32", 32, False, False, False, 8, False),
    ("tf32", 0, True, False, False, 40, True),
    ("s8", 0, False, False, False, 48, False),
    ("u8", 64, True, False, False, 8, False),
    ("e4m3", 128, False, False, False, 24, False),
    ("e5m2", 32, True, False, False, 8, True),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(("type", "swizzle", "registers", "major_a", "major_b", "columns", "negated"), CASES)
def test_products_in_every_layout_are_exact(type, swizzle, registers, major_a, major_b, columns, negated, engine, rng):
    size = np.dtype(DTYPES[type]).itemsize
    depth, low = 32 // size, 0 if type == "u8" else -4
    a, b = (rng.integers(low, 5, (rows, depth)) for rows in (64, columns))
    rows, places = places_of_d(columns)
    whole = type in ("s8", "u8")
    held = np.int32 if whole else np.float32
    d = rng.integers(-50, 50, (64, columns))
    memory = np.full(SHARED, 0x3C, np.uint8)
    stored_a, stored_b = a.astype(DTYPES[type]), b.astype(DTYPES[type])
    da = 0 if registers else put(memory, AT_A, stored_a, swizzle, transposed=major_a)
    db = put(memory, AT_B, stored_b, swizzle, transposed=major_b)
    scales = "" if whole else f", {-1 if negated else 1}, 1"
    if size == 2:
        scales += f", {int(major_b)}" if registers else f", {int(major_a)}, {int(major_b)}"
    sums = "s32" if whole else "f32"
    instruction = (
        f"wgmma.mma_async.sync.aligned.m64n{columns}k{depth}.{sums}.{type}.{type} {{d}}, "
        f"{'{a}' if registers else '%da'}, %db, %p{scales};"
    )
    given = d[rows, places].astype(held).view(np.uint32)
    for enabled in (1, 0):
        got = run(instruction, memory, da, db, given, fragment_of_a(stored_a), enabled=enabled, engine=engine).view(held)
        exact = (-1 if negated else 1) * a @ b.T + d * enabled
        assert (got == exact[rows, places]).all()


@pytest.mark.parametrize(
    ("shape", "types", "scales", "name"),
    [
        ("m64n16k16", "f32.f16.f16", "1, 1, 0, 0", "mma.f32.f16.f16.f32.m16n8k16"),
        ("m64n16k16", "f32.bf16.bf16", "-1, 1, 1, 1", "mma.f32.bf16.bf16.f32.m16n8k16"),
        ("m64n16k32", "f32.e4m3.e5m2", "1, 1", "panels.f32.f16.f32.k32"),
        ("m64n48k16", "f32.f16.f16", "1, 1, 0, 0", "panels.f32.f16.f32.k16"),
        ("m64n48k32", "s32.s8.s8", "", "mma.s32.s8.s8.s32.m16n8k32"),
        ("m64n48k32", "f32.f16.f16", "1, 1, 0, 0", "mma.f32.f16.f16.f32.m16n8k32"),
        ("m64n16k64", "s32.u8.u8", "", "mma.s32.u8.u8.s32.m16n8k64"),
        ("m64n16k64", "f32.e4m3.e4m3", "1, -1", "mma.f32.f16.f16.f32.m16n8k64"),
    ],
)
def test_products_are_compiled(shape, types, scales, name):
    """They go through functions that kernels share, whatever their order, signs and types; sparse ones are twice as deep."""
    sparse = (shape[6:], types) in (("k32", "f32.f16.f16"), ("k64", "s32.u8.u8"), ("k64", "f32.e4m3.e4m3"))
    line = (
        f"wgmma.mma_async{'.sp' * sparse}.sync.aligned.{shape}.{types} {{d}}, %da, %db, {'%m, 0, ' * sparse}%p"
        f"{', ' * bool(scales)}{scales};"
    )
    text = kernel(line, int(shape[4:6]) // 2, (0, 0)).dump("llvm", block=128)
    assert f"@ptxvm.library.ptxvm.{name}" in text
    assert ".wgmma." in text


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_bits_and_small_accumulators(engine, rng):
    rows, places = places_of_d(16)
    a, b = (rng.integers(0, 256, (count, 32)).astype(np.uint8) for count in (64, 16))
    memory = np.zeros(SHARED, np.uint8)
    da, db = put(memory, AT_A, a, 0), put(memory, AT_B, b, 0)
    got = run("wgmma.mma_async.sync.aligned.m64n16k256.s32.b1.b1.and.popc {d}, %da, %db, %p;",
              memory, da, db, np.zeros((128, 8), np.uint32), engine=engine)  # fmt: skip
    ones = np.unpackbits(a[:, None] & b[None], axis=-1).sum(axis=-1)
    assert (got == ones[rows, places]).all()
    values_a, values_b = rng.integers(-3, 4, (64, 16)), rng.integers(-3, 4, (16, 16))
    da = put(memory, AT_A, values_a.astype(np.float16), 32)
    db = put(memory, AT_B, values_b.astype(np.float16), 32)
    got = run("wgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16 {d}, %da, %db, %p, 1, -1, 0, 0;",
              memory, da, db, np.zeros((128, 4), np.uint32), engine=engine).view(np.float16)  # fmt: skip
    assert (got == -(values_a @ values_b.T)[rows, places]).all()


SPARSE = [
    # type, A in registers, columns, the swizzle of B, MN-major B, negated
    ("f16", False, 16, 128, False, False),
    ("bf16", True, 72, 64, False, True),
    ("tf32", False, 16, 128, False, False),
    ("s8", False, 24, 64, False, False),
    ("e4m3", True, 40, 128, False, True),
    ("f16", True, 64, 128, True, False),
    ("bf16", False, 32, 0, True, True),
    ("u8", True, 16, 0, False, False),
    ("e5m2", False, 256, 64, False, False),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(("type", "registers", "columns", "swizzle", "major_b", "negated"), SPARSE)
def test_sparse_products_are_exact(type, registers, columns, swizzle, major_b, negated, engine, rng):
    """The upper eight rows of each warp store the first halves of the chunks, the lower ones the second halves."""
    size, low = np.dtype(DTYPES[type]).itemsize, 0 if type == "u8" else -4
    stored, chunk = 32 // size, 2 if type == "tf32" else 4
    a, b = rng.integers(low, 5, (64, stored)), rng.integers(low, 5, (columns, 2 * stored))
    dense = np.zeros((64, 2 * stored), np.int64)
    for row, n in itertools.product(range(64), range(stored)):
        half = chunk // 2
        dense[row, n // half * chunk + n % half + (row % 16 >= 8) * half] = a[row, n]
    lanes = np.arange(128)
    wide = size == 1
    metadata = np.where(lanes % 2, 0xEEEE_EEEE, 0x4444_4444) if wide else np.where(lanes % 4 < 2, 0, 0xEEEE_4444)
    memory = np.zeros(SHARED, np.uint8)
    stored_a = a.astype(DTYPES[type])
    da, db = put(memory, AT_A, stored_a, 32), put(
        memory, AT_B, b.astype(DTYPES[type]), swizzle, transposed=major_b
    )  # fmt: skip
    rows, places = places_of_d(columns)
    whole, sign = type in ("s8", "u8"), -1 if negated else 1
    tail = "" if whole else f", {sign}, 1"
    if size == 2:
        tail += f", {int(major_b)}" if registers else f", 0, {int(major_b)}"
    sums = "s32" if whole else "f32"
    instruction = (
        f"wgmma.mma_async.sp.sync.aligned.m64n{columns}k{2 * stored}.{sums}.{type}.{type} {{d}}, "
        f"{'{a}' if registers else '%da'}, %db, %m, {int(not wide)}, %p{tail};"
    )
    held, d = np.int32 if whole else np.float32, rng.integers(-50, 50, (64, columns))
    given = d[rows, places].astype(held).view(np.uint32)
    for enabled in (1, 0):
        got = run(instruction, memory, da, db, given, fragment_of_a(stored_a), metadata, enabled, engine=engine).view(held)
        assert (got == (sign * dense @ b.T + d * enabled)[rows, places]).all()


# ── recorded dot products ───────────────────────────────────────────────────────────────


def recorded() -> list[str]:
    """The sets for `wgmma`, without the kind of their inputs."""
    if not DOTS.is_file():
        return []
    return sorted({key.rsplit("|", 2)[0] for key in np.load(DOTS).files if key.startswith("wgmma|")})


@pytest.mark.skipif(not DOTS.is_file(), reason="the reference data is missing")
def test_each_set_is_there():
    assert len(recorded()) == 12


@pytest.mark.sampled(3)
@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize("name", recorded())
def test_products_are_what_silicon_computes(name, engine):
    """128 dot products of each set stand on the diagonals of two products of 64 by 64."""
    assert not wrong(name, engine)


def wrong(name: str, engine: str) -> int:
    """How many of the recorded dot products the instruction gets wrong."""
    file = np.load(DOTS)
    sums, a_type, b_type = name.split("|")[2].split(".")
    size, found = np.dtype(DTYPES[a_type]).itemsize, 0
    rows, places = places_of_d(64)
    tail = ", 1, 1, 0, 0" if size == 2 else ", 1, 1"
    instruction = f"wgmma.mma_async.sync.aligned.m64n64k{32 // size}.{sums}.{a_type}.{b_type} {{d}}, %da, %db, %p{tail};"
    memory = np.zeros(SHARED, np.uint8)
    for kind, half in itertools.product(("normal", "wide", "bits"), (slice(0, 64), slice(64, 128))):
        a, b, c, d = (file[f"{name}|{kind}|{part}"][half] for part in "ABCD")
        da, db = put(memory, AT_A, a, 128), put(memory, AT_B, b, 128)
        given = np.where(rows == places, c[rows], 0).astype(c.dtype)
        got = run(instruction, memory, da, db, given.view(np.uint32), engine=engine).view(c.dtype)
        found += int((got != d[rows])[rows == places].sum())
    return found
