"""`tcgen05.mma` of sparse and of shifted matrices against exact sums (PTX 9.7.16.10.8, 9.7.16.10.9).

PTX has the layout of metadata in pictures; here it is that of CUTLASS (`cute::UMMA::tmem_e_frg`), bit by bit.  Of 64 rows in
half of the lanes CUTLASS has none: blocks of 16 rows are taken to lie as those of 128 rows do (9.7.16.10.8.5).
"""

from __future__ import annotations

import numpy as np
import pytest
from test_tcgen05 import AT_A, AT_B, AT_SCALES, descriptor, instruction_descriptor, run
from test_wgmma import DTYPES, SHARED, put

import ptxvm

ROWS = 128
PAIRS = [(i, j) for i in range(4) for j in range(i + 1, 4)]
SPARSE = """
    tcgen05.cp.cta_group::1.128x128b [%a], {meta};
    {more}
    tcgen05.mma{ws}.sp.cta_group::1.kind::{kind}{scaled} [%d], %da, %db, [%a], %i, {scales}%p;
    """
ROWS_OF_16_BYTES = 128 >> 4 << 32 | 1 << 46  # of a descriptor: K-major, not swizzled


def place_of_bits(row: int, k: int, bits: int) -> tuple[int, int]:
    """The lane and the first bit of the metadata of an element of K, which has four bits for each chunk."""
    if bits == 32:
        lane, column = divmod(row % 8 + row // 8 % 2 * 1024 + row // 16 * 16 + k % 8 * 128 + k // 8 * 8, 128)[::-1]
        return lane, 2 * column
    if bits == 16:
        lane, column = divmod(row % 8 + row // 8 % 2 * 2048 + row // 16 * 16 + k % 16 * 128 + k // 16 * 8, 128)[::-1]
        return lane, column
    return row, k if bits == 8 else k // 2


def sparse(rng, rows: int, depth: int, bits: int, low: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A matrix half of whose elements are zeros, its stored elements, and the metadata as rows of 16 bytes."""
    chunk, pair = {32: (2, 1), 16: (4, 1), 8: (4, 1), 4: (8, 2)}[bits]
    dense, meta = np.zeros((rows, depth), np.int64), np.zeros((ROWS, 128), np.uint8)
    stored = rng.integers(low, 5, (rows, depth // 2))
    for row in range(rows):
        for n in range(depth // chunk):
            if bits == 32:
                (index,) = rng.integers(0, 2, 1)
                held, code = [index], (0b0100, 0b1110)[index]
            else:
                i, j = PAIRS[rng.integers(6)]
                held, code = [pair * x + y for x in (i, j) for y in range(pair)], i | j << 2
            dense[row, n * chunk + np.array(held)] = stored[row, n * len(held) : (n + 1) * len(held)]
            lane, bit = place_of_bits(row, n * chunk, bits)
            meta[lane, bit : bit + 4] = [code >> each & 1 for each in range(4)]
    return dense, stored, np.packbits(meta, axis=1, bitorder="little")


def half_of_the_lanes(rows: int) -> np.ndarray:
    """The lanes of 64 rows: 16 of each warp (PTX 9.7.16.10.5, layouts C and F)."""
    row = np.arange(rows)
    return row // 16 * 32 + row % 16


@pytest.mark.parametrize("engine", ["interp", pytest.param("jit", marks=pytest.mark.sampled(2))])
@pytest.mark.parametrize(
    ("kind", "type", "sums", "rows", "ws", "selector"),
    [("f16", "f16", "f32", 128, "", 0), ("f16", "bf16", "f32", 128, "", 0), ("tf32", "tf32", "f32", 128, "", 0),
     ("f8f6f4", "e4m3", "f32", 128, "", 0), ("i8", "s8", "s32", 128, "", 0), ("f16", "f16", "f32", 64, ".ws", 0),
     ("i8", "u8", "s32", 32, ".ws", 0), ("tf32", "tf32", "f32", 64, ".ws", 0), ("f16", "f16", "f32", 64, "", 0),
     ("i8", "s8", "s32", 64, "", 0), ("f16", "f16", "f32", 128, "", 1), ("tf32", "tf32", "f32", 128, "", 1)],
)  # fmt: skip
def test_sparse_products_are_exact(kind, type, sums, rows, ws, selector, engine, rng):
    """The selector names the second of two columns, as where CUTLASS has the metadata at an odd column."""
    size, low = np.dtype(DTYPES[type]).itemsize, 0 if type == "u8" else -4
    depth = 64 // size
    columns = 64
    a, stored, meta = sparse(rng, rows, depth, 8 * size, low)
    b, c = rng.integers(low, 5, (columns, depth)), rng.integers(-50, 50, (rows, columns))
    memory = np.zeros(SHARED, np.uint8)
    da, db = put(memory, AT_A, stored.astype(DTYPES[type]), 32), put(memory, AT_B, b.astype(DTYPES[type]), 64)
    halved = rows == 64 and not ws  # half of the lanes of each warp
    lanes = half_of_the_lanes(ROWS // 2) if halved else np.arange(ROWS)
    moved, parts = np.zeros_like(meta), 1 if halved else ROWS // rows  # of D, in lanes beside each other (PTX 9.7.16.10.5)
    moved[lanes] = np.roll(np.tile(meta[: len(lanes) // parts], (parts, 1)), 4 * selector, axis=1)
    memory[AT_SCALES : AT_SCALES + meta.size] = moved.ravel()
    held = {"f32": np.float32, "s32": np.int32}[sums]
    cells = np.zeros((ROWS, columns), np.uint32)
    cells[lanes, : columns // parts] = np.vstack(np.split(c.astype(held).view(np.uint32), parts, axis=1))
    idesc = instruction_descriptor(rows, columns, sums, type, type) | 1 << 2 | selector
    instruction = SPARSE.format(meta=AT_SCALES >> 4 | ROWS_OF_16_BYTES, more="", ws=ws, kind=kind, scaled="", scales="")
    got = run(instruction, memory, descriptor(da), descriptor(db), idesc, cells, engine=engine)
    found = np.hstack(np.split(got[lanes, : columns // parts], parts)).view(held)
    assert (found == a @ b.T + c).all()


@pytest.mark.parametrize("engine", ["interp", pytest.param("jit", marks=pytest.mark.sampled(2))])
@pytest.mark.parametrize(("kind", "type", "blocks"), [("mxf8f6f4", "e4m3", 1), ("mxf4", "e2m1", 2)])
def test_sparse_products_with_scales_are_exact(kind, type, blocks, engine, rng):
    """A block has as many stored elements of A as in a dense product, and twice as many of K."""
    bits, columns = 8 if type == "e4m3" else 4, 64
    depth = 512 // bits
    a, stored, meta = sparse(rng, ROWS, depth, bits, 0)
    b, c = rng.integers(0, 5, (columns, depth)), rng.integers(-50, 50, (ROWS, columns))
    powers = [rng.integers(-2, 3, (count, blocks)) for count in (ROWS, columns)]
    memory, places, lanes = np.zeros(SHARED, np.uint8), [], np.arange(ROWS)
    coded = np.array([0, 2, 4, 5, 6])  # e2m1
    if bits == 8:
        shared = [each.astype(DTYPES[type]).view(np.uint8) for each in (stored, b)]
    else:
        shared = [coded[each[:, ::2]] | coded[each[:, 1::2]] << 4 for each in (stored, b)]
    da, db = (
        put(memory, at, each.astype(np.uint8), width) for at, each, width in zip((AT_A, AT_B), shared, (32, 64), strict=True)
    )
    memory[AT_SCALES : AT_SCALES + meta.size] = meta.ravel()
    for at, each in enumerate(powers):
        scales = np.zeros((32, 4, 4), np.uint8)
        scales[lanes[: len(each)] % 32, lanes[: len(each)] // 32, :blocks] = each + 127
        place = AT_SCALES + 2048 + 512 * at
        memory[place : place + 512] = scales.ravel()
        places.append(place >> 4 | ROWS_OF_16_BYTES)
    more = "".join(
        f"add.u32 %x, %a, {column}; tcgen05.cp.cta_group::1.32x128b.warpx4 [%x], {place};"
        for column, place in zip((8, 16), places, strict=True)
    )
    types = 1 << 7 | 1 << 10 if bits == 4 else 0
    idesc = 1 | 1 << 2 | types | columns // 8 << 17 | 1 << 23 | 1 << 27  # the selector counts as 0 (9.7.16.10.8.4.5)
    instruction = SPARSE.format(
        meta=AT_SCALES >> 4 | ROWS_OF_16_BYTES, more=f"{more} add.u32 %x, %a, 8; add.u32 %b, %a, 16;", ws="", kind=kind,
        scaled=".block_scale", scales="[%x], [%b], ",
    )  # fmt: skip
    got = run(instruction, memory, descriptor(da), descriptor(db), idesc, c.astype(np.float32).view(np.uint32), engine=engine)
    whole = [np.repeat(2.0**each, depth // blocks, axis=1) for each in powers]
    assert (got.view(np.float32) == (a * whole[0]) @ (b * whole[1]).T + c).all()


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_rows_move_to_the_lane_before_theirs(engine, rng):
    """PTX 9.7.16.9.3; as it was read back on a B200: in the lanes of all four warps, and the last of 32 rows stays."""
    cells = rng.integers(0, 2**32, (ROWS, 64), np.uint32)
    got = run("tcgen05.shift.cta_group::1.down [%d];", np.zeros(SHARED, np.uint8), 0, 0, 0, cells.copy(), engine=engine)
    source = np.minimum(np.arange(ROWS) + 1, np.arange(ROWS) | 31)
    assert (got[:, :8] == cells[source, :8]).all()
    assert (got[:, 8:] == cells[:, 8:]).all()


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize("rows", [32, 64])
def test_each_part_of_d_has_its_own_rows_of_a(rows, engine, rng):
    """Where D lies in several parts of the lanes, A is a copy in the lanes of each (CUTLASS); copies may differ (FlashMLA)."""
    parts, columns = ROWS // rows, 64
    a, b = rng.integers(-4, 5, (ROWS, 16)), rng.integers(-4, 5, (columns, 16))
    memory = np.zeros(SHARED, np.uint8)
    da, db = put(memory, AT_A, a.astype(np.float16), 32), put(memory, AT_B, b.astype(np.float16), 32)
    instruction = """tcgen05.cp.cta_group::1.128x256b [%a], %da;
        tcgen05.mma.ws.cta_group::1.kind::f16 [%d], [%a], %db, %i, %p;"""
    idesc = instruction_descriptor(rows, columns, "f32", "f16", "f16")
    got = run(instruction, memory, descriptor(da), descriptor(db), idesc, np.zeros((ROWS, columns), np.uint32), engine=engine)
    exact = [each @ of_b.T for each, of_b in zip(np.split(a, parts), np.split(b, parts), strict=True)]
    assert (got[:, : columns // parts].view(np.float32) == np.vstack(exact)).all()


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_a_shifted_matrix_is_multiplied(engine, rng):
    """PTX 9.7.16.10.9.1: the rows of A are shifted in tensor memory; the product before it is of A as it is (TVM)."""
    a, b = rng.integers(-4, 5, (ROWS, 16)), rng.integers(-4, 5, (32, 16))
    memory = np.zeros(SHARED, np.uint8)
    da, db = put(memory, AT_A, a.astype(np.float16), 32), put(memory, AT_B, b.astype(np.float16), 32)
    instruction = """tcgen05.cp.cta_group::1.128x256b [%a], %da;
        tcgen05.mma.cta_group::1.kind::f16.ashift [%d], [%a], %db, %i, %p;
        add.u32 %x, %d, 32; tcgen05.mma.cta_group::1.kind::f16 [%x], [%a], %db, %i, %p;"""
    idesc = instruction_descriptor(ROWS, 32, "f32", "f16", "f16")
    got = run(instruction, memory, descriptor(da), descriptor(db), idesc, np.zeros((ROWS, 64), np.uint32), engine=engine)
    shifted = np.minimum(np.arange(ROWS) + 1, np.arange(ROWS) | 31)
    assert (got.view(np.float32) == np.hstack([a @ b.T, a[shifted] @ b.T])).all()


@pytest.mark.parametrize(
    ("instruction", "rows", "bits", "error", "said"),
    [
        ("add.u32 %a, %a, 0x100000; tcgen05.mma.sp.cta_group::1.kind::f16 [%d], %da, %db, [%a], %i, %p;", 64, 4, ptxvm.Fault,
         "begin at the same lane"),
        ("add.u32 %d, %d, 0x80000; tcgen05.mma.sp.cta_group::1.kind::f16 [%d], %da, %db, [%a], %i, %p;", 64, 4, ptxvm.Fault,
         "begins at lane 0 or 16, not 8"),
        ("tcgen05.mma.sp.cta_group::1.kind::f16 [%d], %da, %db, [%a], %i, %p;", 128, 6, ptxvm.Unsupported, "selector 2"),
        ("tcgen05.mma.sp.cta_group::1.kind::f8f6f4 [%d], %da, %db, [%a], %i, %p;", 128, 5, ptxvm.Fault,
         "selector of .kind::f8f6f4 is 0, not 1"),
        (
            "tcgen05.mma.sp.cta_group::1.kind::f16 [%d], %da, %db, [%a], %i, %p;",
            128,
            0,
            ptxvm.Fault,
            "says that A is not sparse",
        ),
        ("tcgen05.mma.cta_group::1.kind::f16.ashift [%d], [%a], %db, %i, %p;", 64, 0, ptxvm.Fault,
         "shifted has 128 or 256 rows"),
        ("add.u32 %a, %a, 0x200000; tcgen05.mma.cta_group::1.kind::f16 [%d], [%a], %db, %i, %p;", 128, 0, ptxvm.Fault,
         "matrix A at"),
        ("add.u32 %a, %a, 0x10000; tcgen05.mma.sp.cta_group::1.kind::f16 [%d], %da, %db, [%a], %i, %p;", 128, 4, ptxvm.Fault,
         "the metadata at"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("engine", ["interp", pytest.param("jit", marks=pytest.mark.sampled(3))])
def test_what_cannot_be_is_named(instruction, rows, bits, error, said, engine):
    idesc = instruction_descriptor(rows, 64, "f32", "f16", "f16") | bits
    memory, cells = np.zeros(SHARED, np.uint8), np.zeros((ROWS, 64), np.uint32)
    da, db = (put(memory, at, np.zeros((rows, 32), np.float16), 0) for at in (AT_A, AT_B))
    with pytest.raises(error, match=said):
        run(instruction, memory, descriptor(da), descriptor(db), idesc, cells, engine=engine)
