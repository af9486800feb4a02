"""`tcgen05.mma` where compiled code repeats a product by a plan: sparse, negated, MN-major, and with D in several parts.

The first of three products is the host's, which enters the plan; the others are compiled code's.  Sums are exact ones of small
numbers; D and the metadata lie as PTX 9.7.16.10.5 and `test_tcgen05_sparse` say.
"""

from __future__ import annotations

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
    ("tf32", "tf32", "f32", 128, "turned"), ("f8f6f4", "e4m3", "f32", 32, "sparse ws negated turned"),
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
        one = PLAIN.format(kind=kind).replace("mma.cta", f"mma{'.ws' * ws}{'.sp' * is_sparse}.cta")
        one = one.replace("%da", "[%b]") if before else one
        one = one.replace("%i,", "[%a], %i,") if is_sparse else one
        copy = f"tcgen05.cp.cta_group::1.128x128b [%a], {AT_SCALES >> 4 | ROWS_OF_16_BYTES};" if is_sparse else ""
        self.instruction = f"{copy} {before} {one * TIMES}"

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
    assert (got == setting.cells(TIMES * setting.sign * setting.a @ setting.b.T + added)).all()


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
