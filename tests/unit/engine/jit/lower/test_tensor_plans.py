"""Work on tensor memory that is done again and again, by compiled code without the host, against exact sums and NumPy."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from test_tcgen05 import AT_A, AT_B, CASES, PLAIN, descriptor, instruction_descriptor, run
from test_wgmma import DTYPES, SHARED, put

import ptxvm
from ptxvm.engine.jit.lower.tensor_memory import TensorCall

ENGINES = ["interp", "jit"]


@pytest.fixture
def on_host(monkeypatch):
    """Counts the works that the host does, by their names."""
    counted, call = Counter(), TensorCall.__call__
    monkeypatch.setattr(
        TensorCall, "__call__", lambda self, *args: counted.update([type(self.work).__name__]) or call(self, *args)
    )
    return counted


def matrices(rng, type, m, n, swizzles=(0, 0), transposed=0):
    """A, B and the memory that holds them, with their descriptors."""
    size, low = np.dtype(DTYPES[type]).itemsize, 0 if type == "u8" else -4
    a, b = rng.integers(low, 5, (m, 32 // size)), rng.integers(low, 5, (n, 32 // size))
    memory = np.full(SHARED, 0x3C, np.uint8)
    da, db = (
        put(memory, at, each.astype(DTYPES[type]), swizzle, transposed=bool(transposed & bit))
        for at, each, swizzle, bit in ((AT_A, a, swizzles[0], 1), (AT_B, b, swizzles[1], 2))
    )
    return a, b, memory, descriptor(da), descriptor(db)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("kind", "type", "sums", "m", "n", "swizzle", "negated", "transposed"),
    [
        *CASES,
        ("f16", "f16", "f32", 64, 40, 32, 0, 0),
        ("f16", "f16", "f16", 128, 8, 128, 0, 0),
        ("f8f6f4", "e5m2", "f32", 128, 64, 128, 0, 0),
        ("f8f6f4", "e4m3", "f16", 64, 32, 0, 0, 0),
        ("f16", "bf16", "f32", 128, 64, 64, 0, 3),
        ("f16", "f16", "f32", 64, 128, 0, 0, 2),
        ("i8", "s8", "s32", 128, 64, 128, 0, 1),
        ("f8f6f4", "e4m3", "f32", 128, 32, 32, 0, 3),
    ],
)
def test_the_same_product_three_times(rng, on_host, kind, type, sums, m, n, swizzle, negated, transposed, engine):
    a, b, memory, da, db = matrices(rng, type, m, n, (swizzle, swizzle), transposed)
    lane = np.arange(m) if m == 128 else np.arange(m) // 16 * 32 + np.arange(m) % 16
    held = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[sums]
    c = rng.integers(-50, 50, (m, n))
    cells = np.full((128, -(-n // 32) * 32), 0xDEAD, np.uint32)
    cells[lane, :n] = c.astype(held).view(f"u{held().itemsize}")
    idesc = instruction_descriptor(m, n, sums, type, type, negated=negated, transposed=transposed)
    got = run(3 * PLAIN.format(kind=kind), memory, da, db, idesc, cells, engine=engine)
    exact = 3 * (-1) ** negated.bit_count() * a @ b.T + c
    assert (got[lane, :n].astype(f"u{held().itemsize}").view(held) == exact).all()
    assert (got[np.setdiff1d(np.arange(128), lane)] == 0xDEAD).all()
    assert (got[lane, n:] == 0xDEAD).all()
    if engine == "jit":
        words = np.dtype(DTYPES[type]).itemsize == 4  # MN-major matrices of these are left to the host
        assert on_host["Multiply"] == (3 if negated or (transposed and words) else 1)
        assert on_host["Load"] == on_host["Store"] == 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("masks", ["", "{%r0, %r0, %r0, %r0}, ", "{%r0, %r1, %r0, %r0}, "])
def test_matrices_in_tensor_memory_and_masks_of_lanes(rng, on_host, masks, engine):
    """A lies 64 columns behind D; of the second product the lanes of a mask keep their D."""
    a, b, memory, da, db = matrices(rng, "f16", 128, 32)
    cells = np.zeros((128, 96), np.uint32)
    cells[:, 64:72] = a.astype(np.float16).view(np.uint32)
    product = "tcgen05.mma.cta_group::1.kind::f16 [%d], [%x], %db, %i, {masks}%p;"
    body = "add.u32 %x, %d, 64; mov.b32 %r0, 0; mov.b32 %r1, 0xF0;" + product.format(masks="") + product.format(masks=masks)
    idesc = instruction_descriptor(128, 32, "f32", "f16", "f16")
    got = run(body, memory, da, db, idesc, cells, engine=engine)
    times = np.full(128, 2)
    times[36:40] = 1 if "%r1" in masks else 2
    assert (got[:, :32].view(np.float32) == times[:, None] * (a @ b.T)).all()
    if engine == "jit":
        assert on_host["Multiply"] == 1  # the host makes the plan of the first product, compiled code multiplies again


@pytest.mark.parametrize("engine", ENGINES)
def test_other_matrices_and_infinite_factors(rng, engine):
    """The third product has other matrices at other places; of the fourth, one factor is infinite, and its row of D then is."""
    a, b, memory, da, db = matrices(rng, "f16", 128, 32, (128, 64))
    other = rng.integers(-4, 5, (128, 16)).astype(np.float16)
    moved = descriptor(put(memory, 36 * 1024, other, 32))
    endless = other.copy()
    endless[5, 3] = np.inf
    last = descriptor(put(memory, 48 * 1024, endless, 32))
    one = PLAIN.format(kind="f16")
    body = f"{one}{one}mov.b64 %q, {moved}; {one.replace('%da', '%q')}"
    idesc = instruction_descriptor(128, 32, "f32", "f16", "f16")
    got = run(body, memory, da, db, idesc, np.zeros((128, 32), np.uint32), engine=engine).view(np.float32)
    assert (got == (2 * a + other.astype(np.int64)) @ b.T).all()
    body += f"mov.b64 %q, {last}; {one.replace('%da', '%q')}"
    got = run(body, memory, da, db, idesc, np.zeros((128, 32), np.uint32), engine=engine).view(np.float32)
    finite = np.delete(np.arange(128), 5)
    assert (got[finite] == ((2 * a + 2 * other.astype(np.int64)) @ b.T)[finite]).all()
    assert not np.isfinite(got[5]).any()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("add.u32 %d, %d, 500;", "matrix D"),
        ("add.u32 %d, %d, 0x10000;", "lanes of tensor memory"),
        ("or.b64 %da, %da, 0x3FFF;", "shared memory"),
        ("mov.b32 %i, 0x8080014;", "sparse"),
    ],
)
def test_what_is_wrong_is_named_after_products_that_were_right(rng, wrong, said, engine):
    _, _, memory, da, db = matrices(rng, "f16", 128, 32)
    one, idesc = PLAIN.format(kind="f16"), instruction_descriptor(128, 32, "f32", "f16", "f16")
    with pytest.raises(ptxvm.Fault, match=said):
        run(f"{one}{one}{wrong}{one}", memory, da, db, idesc, np.zeros((128, 32), np.uint32), engine=engine)


TILES = {"16x64b": 1, "16x128b": 2, "16x256b": 4, "32x32b": 1}


def cell(tile, thread, register):
    """The row and column of a register of a thread, as CUTLASS (copy_traits_sm100.hpp) and Triton (getTileLayout) have it."""
    match tile:
        case "32x32b":
            return thread, register
        case "16x64b":
            return thread // 4 + thread % 2 * 8, 2 * register + thread % 4 // 2
        case "16x128b":
            return thread // 4 + register % 2 * 8, register // 2 * 4 + thread % 4
        case _:
            return thread // 4 + register % 4 // 2 * 8, register // 4 * 8 + thread % 4 * 2 + register % 2


MOVES = """
    .version 8.6
    .target sm_100a
    .address_size 64
    .visible .entry k(.param .u64 cells, .param .u64 back)
    {{
    .reg .b64 %p, %q; .reg .b32 %r<32>, %z, %t, %w, %d, %own, %x; .reg .pred %one; .shared .b32 base;
    mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; setp.eq.u32 %one, %w, 0; mov.b32 %z, 0;
    @%one tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 32;
    bar.sync 0; ld.shared.b32 %d, [base]; shl.b32 %own, %w, 21; add.u32 %own, %own, %d;
    tcgen05.st.sync.aligned.32x32b.x32.b32 [%own], {zeros}; tcgen05.wait::st.sync.aligned;
    add.u32 %x, %own, {at}; {values}
    tcgen05.st.sync.aligned.{tile}.x{number}.b32 [%x], {registers}; tcgen05.wait::st.sync.aligned;
    tcgen05.ld.sync.aligned.{tile}.x{number}.b32 {registers}, [%x]; tcgen05.wait::ld.sync.aligned;
    ld.param.u64 %q, [back]; mad.wide.u32 %q, %t, {bytes}, %q; {kept}
    tcgen05.ld.sync.aligned.32x32b.x32.b32 {all}, [%own]; tcgen05.wait::ld.sync.aligned;
    ld.param.u64 %p, [cells]; mad.wide.u32 %p, %t, 128, %p; {shown}
    bar.sync 0;
    @%one tcgen05.dealloc.cta_group::1.sync.aligned.b32 %d, 32;
    ret;
    }}"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("tile", "number"), [("16x64b", 8), ("16x128b", 4), ("16x256b", 2), ("32x32b", 8)])
def test_registers_go_to_cells_and_come_back(on_host, tile, number, engine):
    """Stored three columns on, in the lower lanes of each warp where it takes 16 of them; the other cells stay zero."""
    count, lower = TILES[tile] * number, 0 if tile == "32x32b" else 16
    names, every = [f"%r{n}" for n in range(count)], [f"%r{n}" for n in range(32)]
    text = MOVES.format(
        tile=tile, number=number, at=(lower << 16) + 3, bytes=4 * count, registers="{" + ", ".join(names) + "}",
        zeros="{" + ", ".join(["%z"] * 32) + "}", all="{" + ", ".join(every) + "}",
        values=" ".join(f"add.u32 {name}, %t, {(n + 1) << 8};" for n, name in enumerate(names)),
        kept=" ".join(f"st.global.b32 [%q+{4 * n}], {name};" for n, name in enumerate(names)),
        shown=" ".join(f"st.global.b32 [%p+{4 * n}], {name};" for n, name in enumerate(every)),
    )  # fmt: skip
    found, back = np.zeros((128, 32), np.uint32), np.zeros((128, count), np.uint32)
    ptxvm.load(text).kernel("k").launch(1, 128, [found, back], engine=engine)
    threads = np.arange(128)
    values = threads[:, None] + (np.arange(count) + 1 << 8)
    expected = np.zeros((128, 32), np.uint32)
    for thread in threads:
        for register in range(count):
            row, column = cell(tile, thread % 32, register)
            expected[thread // 32 * 32 + lower + row, 3 + column] = values[thread, register]
    assert (back == values).all()
    assert (found == expected).all()
    if engine == "jit":
        assert on_host["Load"] == on_host["Store"] == 0
