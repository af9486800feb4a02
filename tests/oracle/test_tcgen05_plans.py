"""`tcgen05.mma` where compiled code repeats a product by a plan.

Matrices are sparse, negated or MN-major, or their blocks have scales; D is in several parts, scaled before, or keeps lanes.
The first of three products is the host's, which enters the plan; the others are compiled code's.  Sums are exact ones of small
numbers; D and the metadata lie as PTX 9.7.16.10.5 and `test_tcgen05_sparse` say.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from test_tcgen05 import AT_A, AT_B, AT_SCALES, PLAIN, descriptor, instruction_descriptor, put_by_32, run
from test_tcgen05_sparse import ROWS_OF_16_BYTES, half_of_the_lanes, sparse
from test_wgmma import DTYPES, SHARED, put

LANES, COLUMNS, TIMES = 128, 64, 3
IN_MEMORY = "tcgen05.cp.cta_group::1.128x256b [%b], {a};"
CASES = [
    # kind, type, sums, rows, options
    ("f16", "f16", "f32", 64, "ws"), ("f16", "bf16", "f32", 32, "ws negated"), ("i8", "s8", "s32", 32, "ws turned"),
    ("f16", "f16", "f32", 128, "sparse"), ("f16", "bf16", "f32", 64, "sparse selector"),
    ("tf32", "tf32", "f32", 128, "sparse"), ("f8f6f4", "e4m3", "f32", 128, "sparse"), ("i8", "u8", "s32", 64, "sparse ws"),
    ("f16", "f16", "f32", 32, "sparse ws turned"), ("i8", "s8", "s32", 64, "sparse"),
    ("tf32", "tf32", "f32", 64, "sparse ws memory selector"), ("f16", "f16", "f16", 128, "negated"),
    ("f8f6f4", "e5m2", "f32", 128, "negated turned"), ("tf32", "tf32", "f32", 64, "negated"),
    ("f16", "bf16", "f32", 128, "sparse negated memory"), ("f16", "f16", "f32", 64, "ws memory negated"),
    ("tf32", "tf32", "f32", 128, "turned"), ("f16", "f16", "f32", 128, "masked"), ("tf32", "tf32", "f32", 64, "masked"),
    ("f16", "bf16", "f32", 128, "scaled"), ("tf32", "tf32", "f32", 64, "scaled masked negated"),
    ("f16", "f16", "f32", 128, "sparse scaled masked"), ("f8f6f4", "e4m3", "f32", 32, "sparse ws negated turned"),
]  # fmt: skip


class Setting:
    """Matrices of small numbers in shared memory, and the instruction that multiplies them several times."""

    def __init__(self, rng, kind, type, sums, rows, options):
        self.sums = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[sums]
        self.rows, self.options = rows, options.split()
        size, low = np.dtype(DTYPES[type]).itemsize, 0 if type == "u8" else -4
        is_sparse, ws, turned = (word in self.options for word in ("sparse", "ws", "turned"))
        depth, selector = 32 // size << is_sparse, int("selector" in self.options)
        halved = rows == 64 and not ws and (is_sparse or rows < LANES)
        self.lanes = half_of_the_lanes(rows) if halved else np.arange(LANES)
        self.parts = 1 if halved else LANES // rows
        self.b = rng.integers(low, 5, (COLUMNS, depth))
        self.memory = np.zeros(SHARED, np.uint8)
        if is_sparse:
            self.a, stored, meta = sparse(rng, rows, depth, 8 * size, low)
            moved = np.zeros_like(meta)
            copies = np.tile(meta[: len(self.lanes) // self.parts], (self.parts, 1))
            moved[self.lanes] = np.roll(copies, 4 * selector, axis=1)
            self.memory[AT_SCALES : AT_SCALES + meta.size] = moved.ravel()
        else:
            self.a = stored = rng.integers(low, 5, (rows, depth))
        self.sign = -1 if "negated" in self.options else 1
        self.factor, self.stays = 0.5 ** (2 * ("scaled" in self.options)), np.zeros(LANES, np.bool_)
        tail = ", 2" * ("scaled" in self.options)
        stored = stored.astype(DTYPES[type])
        before, da = "", put(self.memory, AT_A, stored, 32)
        if "memory" in self.options:  # a copy of A for each part of D
            da = put(self.memory, AT_A, np.tile(stored, (LANES // rows, 1)), 32)
            before = IN_MEMORY.format(a=descriptor(da))
        self.da, whole = descriptor(da), self.b.astype(DTYPES[type])
        if turned and size == 4:
            self.db = put_by_32(self.memory, AT_B, whole)
        else:
            self.db = descriptor(put(self.memory, AT_B, whole, 64 if size * depth > 32 else 32, transposed=turned))
        self.idesc = instruction_descriptor(
            rows, COLUMNS, sums, type, type, negated=int(self.sign < 0), transposed=2 * turned
        ) | (is_sparse << 2 | selector)
        masks = ""
        if "masked" in self.options:
            words = np.array([1 << 31 | 6, 0, 0xFFFF_FFFF, 0x1234_5678], np.uint32)
            self.stays = np.unpackbits(words.view(np.uint8), bitorder="little").astype(np.bool_)
            masks = f"mov.b32 %r0, {words[0]}; mov.b32 %r1, 0; mov.b32 %r2, {words[2]}; mov.b32 %r3, {words[3]};"
            tail = f", {{%r0, %r1, %r2, %r3}}, %p{tail}"
        else:
            tail = f", %p{tail}"
        one = PLAIN.format(kind=kind).replace(", %p", tail).replace("mma.cta", f"mma{'.ws' * ws}{'.sp' * is_sparse}.cta")
        one = one.replace("%da", "[%b]") if before else one
        one = one.replace("%i,", "[%a], %i,") if is_sparse else one
        copy = f"tcgen05.cp.cta_group::1.128x128b [%a], {AT_SCALES >> 4 | ROWS_OF_16_BYTES};" if is_sparse else ""
        self.instruction = f"{masks} {copy} {before} {one * TIMES}"

    def cells(self, matrix) -> np.ndarray:
        """The cells that hold D."""
        found = np.zeros((LANES, COLUMNS), np.uint32)
        parts = np.vstack(np.split(matrix.astype(self.sums), self.parts, axis=1))
        found[self.lanes, : COLUMNS // self.parts] = parts.view(f"u{parts.itemsize}")
        return found

    def product(self, added, engine) -> np.ndarray:
        """D in the cells, after all products."""
        return run(self.instruction, self.memory, self.da, self.db, self.idesc, self.cells(added), engine=engine)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(map(str, case)))
def test_products_by_plans_are_exact(case, products_of_the_host, rng):
    setting = Setting(rng, *case)
    added = rng.integers(-50, 50, (setting.rows, COLUMNS))
    got = setting.product(added, "jit")
    assert len(products_of_the_host) == 1
    want, product = added, setting.sign * setting.a @ setting.b.T
    for _ in range(TIMES):
        want = want * setting.factor + product
    cells = np.where(setting.stays[:, None], setting.cells(added), setting.cells(want))
    assert (got == cells).all()


@pytest.mark.parametrize("options", ["ws sparse", "sparse"])
def test_a_product_that_compiled_code_leaves_is_computed_once(options, products_of_the_host, rng):
    """Infinities in the last column of B: the function leaves that part of D, and the parts before it are as they were."""
    setting = Setting(rng, "f16", "f16", "f32", 32 if "ws" in options else 128, options)
    whole = setting.b.astype(np.float16)
    whole[-1, 5] = np.inf
    setting.db = descriptor(put(setting.memory, AT_B, whole, 64 if "sparse" in options else 32))
    added = rng.integers(-50, 50, (setting.rows, COLUMNS))
    found = setting.product(added, "jit")
    assert len(products_of_the_host) == TIMES
    assert (found == setting.product(added, "interp")).all()


# Of blocks with scales: the kind, the type, the size of blocks, that of scales, and how many scales a row has.
SCALED = [
    ("mxf8f6f4", "e4m3", "block32", "ue8m0", 1), ("mxf8f6f4", "e5m2", "scale_vec::1X", "ue8m0", 1),
    ("mxf4", "e2m1", "block32", "ue8m0", 2), ("mxf4nvf4", "e2m1", "scale_vec::2X", "ue8m0", 2),
    ("mxf4nvf4", "e2m1", "block16", "ue4m3", 4),
]  # fmt: skip


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize(("kind", "type", "size", "of_scales", "count"), SCALED)
def test_products_of_blocks_with_scales_by_plans_are_exact(
    kind, type, size, of_scales, count, in_memory, products_of_the_host, rng
):
    """Each row of 32 columns of scales lies in a column of tensor memory, from a byte on (PTX 9.7.16.10.7)."""
    halved, values, memory = type == "e2m1", [0, 0.5, 1, 1.5, -2, -3], np.zeros(SHARED, np.uint8)
    float_type = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e2m1": ml_dtypes.float4_e2m1fn}[type]
    depth, first = 64 if halved else 32, {1: 3, 2: 2, 4: 0}[count]
    matrices, held, places = [rng.choice(values, (rows, depth)) for rows in (LANES, COLUMNS)], [], []
    for number, matrix in enumerate(matrices):
        each = matrix.astype(float_type).view(np.uint8)
        held.append(each[:, ::2] | each[:, 1::2] << 4 if halved else each)
        powers = rng.integers(-2, 3, (len(matrix), count))
        scales = 127 + powers if of_scales == "ue8m0" else (2.0**powers).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
        row, cells = np.arange(len(matrix)), np.zeros((32, 4, 4), np.uint8)
        cells[row % 32, row // 32, first : first + count] = scales
        memory[AT_SCALES + 512 * number :][:512] = cells.ravel()
        places.append(AT_SCALES + 512 * number >> 4 | 128 >> 4 << 32 | 1 << 46)
        matrices[number] = matrix * np.repeat(2.0**powers, depth // count, axis=1)
    da, db = (descriptor(put(memory, at, each, 32)) for at, each in zip((AT_A, AT_B), held, strict=True))
    code = 1 if halved else {"e4m3": 0, "e5m2": 1}[type]
    idesc = first << 4 | code << 7 | code << 10 | COLUMNS // 8 << 17 | (of_scales == "ue8m0") << 23 | first << 29
    idesc |= LANES // 16 << 24
    copies = "".join(f"tcgen05.cp.cta_group::1.32x128b.warpx4 [%{m}], {at}; " for m, at in zip("ab", places, strict=True))
    before, a = "", "%da"
    if in_memory:
        before, a = f"add.u32 %x, %d, 384; tcgen05.cp.cta_group::1.128x256b [%x], {da};", "[%x]"
    one = f"tcgen05.mma.cta_group::1.kind::{kind}.block_scale.{size} [%d], {a}, %db, %i, [%a], [%b], %p;"
    added = rng.integers(-50, 50, (LANES, COLUMNS)).astype(np.float32)
    got = run(f"{copies} {before} {one * TIMES}", memory, da, db, idesc, added.copy().view(np.uint32), engine="jit")
    assert len(products_of_the_host) == 1
    assert (got.view(np.float32) == TIMES * matrices[0] @ matrices[1].T + added).all()
