"""`wmma` against exact products of small integers, and the kernels that nvcc made of the C++ interface."""

from __future__ import annotations

import itertools
import re
import tarfile
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import ptxvm

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "corpus.tar.xz"
SQUARE, WIDE, TALL = "m16n16k16", "m8n32k16", "m32n8k16"
ORDERS = ("row", "col")

# Types of D, A, B, C; shapes; target; whether A and B may lie in any order.
CASES = [
    *[(f"{d}.f16.f16.{c}", (SQUARE, WIDE, TALL), "sm_70", True) for d in ("f16", "f32") for c in ("f16", "f32")],
    *[(f"s32.{t}.{t}.s32", (SQUARE, WIDE, TALL), "sm_75", True) for t in ("s8", "u8")],
    *[(f"s32.{t}.{t}.s32", ("m8n8k32",), "sm_75", False) for t in ("s4", "u4")],
    ("f32.bf16.bf16.f32", (SQUARE, WIDE, TALL), "sm_80", True),
    ("f32.tf32.tf32.f32", ("m16n16k8",), "sm_80", True),
    ("f64.f64.f64.f64", ("m8n8k4",), "sm_80", True),
]
HELD = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f32": np.float32, "f64": np.float64,
    "s8": np.int8, "u8": np.uint8, "s32": np.int32,
}  # fmt: skip
REGISTERS = {
    ("a", "f16"): (8, 8, 8), ("b", "f16"): (8, 8, 8), ("a", "bf16"): (4, 2, 8), ("b", "bf16"): (4, 8, 2),
    ("a", "s8"): (2, 1, 4), ("b", "s8"): (2, 4, 1), ("a", "tf32"): 4, ("b", "tf32"): 4,
}  # fmt: skip


def dimensions(name):
    return tuple(map(int, re.findall(r"\d+", name)))


def count(matrix, type, shape):
    """The registers of a fragment (the tables of PTX 9.7.14.4.1)."""
    if matrix in "ab":
        found = REGISTERS.get((matrix, type.replace("u8", "s8")), 1)
        return found if isinstance(found, int) else found[(SQUARE, WIDE, TALL).index(shape)]
    m, n, _ = dimensions(shape)
    return m * n // 32 // (2 if type == "f16" else 1)


def vector(matrix, size):
    return "{" + ", ".join(f"%{matrix}{n}" for n in range(size)) + "}"


def chosen(code, choices, *operands):
    """PTX that runs one of some lines: the operands tell which, each by being 0 or 1."""
    names = [f"at_{code}_{n}" for n in range(len(choices))]
    lines = [f"mov.u32 %at, {operands[0]};", *(f"mad.lo.u32 %at, %at, 2, {operand};" for operand in operands[1:])]
    lines += [f"list_{code}: .branchtargets {', '.join(names)};", f"brx.idx %at, list_{code};"]
    for name, line in zip(names, choices, strict=True):
        lines.append(f"{name}: {line} bra end_{code};")
    return "\n".join([*lines, f"end_{code}:"])


@cache
def kernel(types, shape, target, any_order, space, operation=""):
    """Load A, B and C, multiply, store D, each with its order and stride; `space` is global, shared or empty.

    What multiplies takes long to compile, so one kernel has all orders, and parameters that choose: 0 for rows, 1 for columns.
    """
    kinds = dict(zip("dabc", types.split("."), strict=True))
    size = {m: count(m, kinds[m], shape) for m in "dabc"}
    dotted = f".{space}" if space else ""
    named = kinds["d"] + "." + kinds["c"] if kinds["a"] == "f16" else types
    orders = dict.fromkeys("abcd", ORDERS) if any_order else {"a": ("row",), "b": ("col",), "c": ORDERS, "d": ORDERS}
    moves = {}
    for m in "abcd":
        where = f"[%pd], {vector('d', size['d'])}, %sd;" if m == "d" else f"{vector(m, size[m])}, [%p{m}], %s{m};"
        verb = "store" if m == "d" else "load"
        lines = [f"wmma.{verb}.{m}.sync.aligned.{order}.{shape}{dotted}.{kinds[m]} {where}" for order in orders[m]]
        moves[m] = chosen(m, lines, f"%o{m}") if len(lines) > 1 else lines[0]
    operands = ", ".join(vector(m, size[m]) for m in "dabc")
    products = [
        f"wmma.mma{operation}.sync.aligned.{a}.{b}.{shape}.{named} {operands};"
        for a, b in itertools.product(orders["a"], orders["b"])
    ]
    product = chosen("mma", products, "%oa", "%ob") if any_order else products[0]
    bits = {m: 64 if kinds[m] == "f64" else 32 for m in size}
    registers = " ".join(f".reg .b{bits[m]} %{m}<{size[m]}>; .reg .b64 %p{m}; .reg .u32 %s{m}, %o{m};" for m in size)
    parameters = ", ".join(f".param .u64 p{m}, .param .u32 s{m}, .param .u32 o{m}" for m in size)
    arguments = "\n".join(f"ld.param.u64 %p{m}, [p{m}]; ld.param.u32 %s{m}, [s{m}]; ld.param.u32 %o{m}, [o{m}];" for m in size)
    return ptxvm.load(f"""
        .version 7.1
        .target {target}
        .address_size 64
        .visible .entry k({parameters})
        {{
        {registers} .reg .u32 %at;
        {arguments}
        {moves["a"]}
        {moves["b"]}
        {moves["c"]}
        {product}
        {moves["d"]}
        ret;
        }}""").kernel("k")


def laid_out(values, type, order, gap):
    """A matrix in memory, with `gap` elements between its rows or columns, and its stride."""
    lines = values if order == "row" else values.T
    padded = np.zeros((lines.shape[0], lines.shape[1] + gap), np.int64)
    padded[:, : lines.shape[1]] = lines
    bits = {"s4": 4, "u4": 4, "b1": 1}.get(type)
    if bits is None:
        return np.ascontiguousarray(padded.astype(HELD[type])), padded.shape[1]
    parts = (padded & (1 << bits) - 1).reshape(len(padded), -1, 8 // bits)
    return (parts << np.arange(0, 8, bits)).sum(axis=-1).astype(np.uint8), padded.shape[1]


def values(rng, type, size):
    low, high = {"u8": (0, 20), "u4": (0, 16), "s4": (-8, 8), "b1": (0, 2)}.get(type, (-9, 10))
    return rng.integers(low, high, size)


def run(rng, types, shape, target, orders, *, any_order=False, space="global", gap=0, operation=""):
    """The product that the machine computes, and A, B and C."""
    kinds = dict(zip("dabc", types.split("."), strict=True))
    m, n, k = dimensions(shape)
    given = {x: values(rng, kinds[x], extent) for x, extent in (("a", (m, k)), ("b", (k, n)), ("c", (m, n)))}
    order = dict(zip("abcd", orders, strict=True))
    gaps = {x: 128 if kinds[x] in ("b1", "s4", "u4") and gap else gap for x in "abcd"}
    placed = {x: laid_out(v, kinds[x], order[x], gaps[x]) for x, v in given.items()}
    out, stride = laid_out(np.zeros((m, n), np.int64), kinds["d"], order["d"], gaps["d"])
    arguments = [out, np.uint32(stride), np.uint32(ORDERS.index(order["d"]))]
    for x in "abc":
        arguments += [placed[x][0], np.uint32(placed[x][1]), np.uint32(ORDERS.index(order[x]))]
    kernel(types, shape, target, any_order, space, operation).launch(grid=1, block=32, args=arguments)
    got = out[:, : n if order["d"] == "row" else m]
    return (got if order["d"] == "row" else got.T), given


def orders_of(any_order):
    """The orders of A, B, C and D."""
    return list(itertools.product(ORDERS if any_order else ("row",), ORDERS if any_order else ("col",), ORDERS, ORDERS))


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("types", "shape", "target", "any_order"), [(t, s, a, o) for t, shapes, a, o in CASES for s in shapes])
def test_small_integers_are_exact_in_every_order(types, shape, target, any_order, rng):
    for n, orders in enumerate(orders_of(any_order)):
        got, given = run(rng, types, shape, target, orders, any_order=any_order, gap=16 * (n % 2))
        assert (got.astype(np.int64) == given["a"] @ given["b"] + given["c"]).all(), orders


@pytest.mark.parametrize("operation", ["xor", "and"])
def test_bits_are_counted(operation, rng):
    got, given = run(
        rng, "s32.b1.b1.s32", "m8n8k128", "sm_80", ("row", "col", "col", "row"), gap=128, operation=f".{operation}.popc"
    )  # fmt: skip
    left, right = given["a"][:, None], given["b"].T[None]
    assert (got == (left ^ right if operation == "xor" else left & right).sum(axis=-1) + given["c"]).all()


def test_a_stride_left_out_is_the_length_of_a_line(rng):
    """PTX 9.7.14.4.2: rows or columns adjoin."""
    a, b, c = (rng.integers(-9, 10, (16, 16)).astype(t) for t in (np.float16, np.float16, np.float32))
    out = np.zeros((16, 16), np.float32)
    eight = {x: vector(x, 8) for x in "abcd"}
    module = ptxvm.load(f"""
        .version 6.4
        .target sm_75
        .address_size 64
        .visible .entry gemm(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd)
        {{
        .reg .b64 %p; .reg .b32 %a<8>, %b<8>; .reg .f32 %c<8>, %d<8>;
        ld.param.u64 %p, [pa]; wmma.load.a.sync.aligned.row.m16n16k16.f16 {eight["a"]}, [%p];
        ld.param.u64 %p, [pb]; wmma.load.b.sync.aligned.row.m16n16k16.f16 {eight["b"]}, [%p];
        ld.param.u64 %p, [pc]; wmma.load.c.sync.aligned.row.m16n16k16.f32 {eight["c"]}, [%p];
        wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 {", ".join(eight[x] for x in "dabc")};
        ld.param.u64 %p, [pd]; wmma.store.d.sync.aligned.row.m16n16k16.f32 [%p], {eight["d"]};
        ret;
        }}""")
    module.kernel().launch(grid=1, block=32, args=[a, b, c, out])
    assert (out == a.astype(np.int64) @ b.astype(np.int64) + c).all()


SQUARED = """
    .version 6.4
    .target sm_70
    .address_size 64
    .visible .entry k(.param .u64 pa, .param .u64 pd)
    {
    .reg .b64 %p, %q; .reg .b32 %a<8>, %b<8>, %d<8>, %c;
    ld.param.u64 %p, [pa]; ld.param.u64 %q, [pd]; mov.b32 %c, 0;
    wmma.load.a.sync.aligned.row.m16n16k16.f16 {%a0,%a1,%a2,%a3,%a4,%a5,%a6,%a7}, [%p];
    wmma.load.b.sync.aligned.row.m16n16k16.f16 {%b0,%b1,%b2,%b3,%b4,%b5,%b6,%b7}, [%p];
    wmma.mma.sync.aligned.row.row.m16n16k16.f16.f16.satfinite {%d0,%d1,%d2,%d3},
        {%a0,%a1,%a2,%a3,%a4,%a5,%a6,%a7}, {%b0,%b1,%b2,%b3,%b4,%b5,%b6,%b7}, {%c,%c,%c,%c};
    wmma.store.d.sync.aligned.row.m16n16k16.f16 [%q], {%d0,%d1,%d2,%d3};
    ret;
    }
"""


def test_saturated_floats_are_finite():
    """PTX 6.4, 9.7.13.8: infinities become the largest finite number, NaN becomes zero."""
    a, out = np.eye(16, dtype=np.float16), np.zeros((16, 16), np.float16)
    a[0, 0], a[1, 1] = 60000, np.nan
    a[3, 3], a[3, 4] = 60000, -60000
    ptxvm.load(SQUARED).kernel().launch(grid=1, block=32, args=[a, out])
    assert (out[0, 0], out[1, 1], out[3, 3], out[3, 4], out[5, 5]) == (65504, 0, 65504, -65504, 1)


def test_a_warp_that_is_not_whole_faults():
    with pytest.raises(ptxvm.Fault) as caught:
        ptxvm.load(SQUARED).kernel().launch(grid=1, block=16, args=[np.zeros(256, np.float16) for _ in range(2)])
    assert caught.value.kind == "incomplete-warp"


def test_some_warps_multiply_while_others_do_not(rng):
    """Of four warps the second and the fourth take the branch to the product."""
    a = rng.integers(-9, 10, (4, 16, 16)).astype(np.float16)
    out = np.zeros((4, 16, 16), np.float16)
    text = SQUARED.replace(
        "mov.b32 %c, 0;",
        """mov.b32 %c, 0; .reg .u32 %w; .reg .b64 %o; .reg .pred %even; mov.u32 %w, %tid.x; shr.u32 %w, %w, 5;
        mul.wide.u32 %o, %w, 512; add.u64 %p, %p, %o; add.u64 %q, %q, %o; and.b32 %w, %w, 1; setp.eq.u32 %even, %w, 0;
        @%even bra end;""",
    ).replace("ret;", "end: ret;")
    ptxvm.load(text).kernel().launch(grid=1, block=128, args=[a, out])
    exact = a.astype(np.int64) @ a.astype(np.int64)
    assert (out[1::2] == exact[1::2]).all()
    assert not out[0::2].any()


# ── what nvcc makes of nvcuda::wmma ─────────────────────────────────────────────────────


@cache
def nvcc():
    if not CORPUS.is_file():
        pytest.skip("the reference data is missing")
    with tarfile.open(CORPUS) as archive:
        file = archive.extractfile(next(n for n in archive.getnames() if n.endswith("nvcc/wmma_sm_75.ptx")))
        assert file is not None
        return ptxvm.load(file.read().decode())


def test_nvcc_f16(rng):
    a, b = (rng.integers(-4, 5, (16, 64)).astype(np.float16) for _ in range(2))
    out = np.zeros((16, 64), np.float32)
    nvcc().kernel("wmma_f16").launch(grid=1, block=32, args=[a, b, out, np.uint32(64)])
    assert (out[:, :16] == 2 * (a.astype(int) @ b.astype(int).T)).all()


def test_nvcc_f16_accumulators(rng):
    """C lies in columns that are only 8 apart, as the kernel was written, so they overlap."""
    a, b = rng.integers(-4, 5, (32, 16)).astype(np.float16), rng.integers(-4, 5, (16, 8)).astype(np.float16)
    memory = rng.integers(-4, 5, (32, 8)).astype(np.float16)
    c = np.lib.stride_tricks.as_strided(memory, (32, 8), (2, 16)).astype(int)
    nvcc().kernel("wmma_f16acc").launch(grid=1, block=32, args=[np.asfortranarray(a), b, memory])
    assert (memory == a.astype(int) @ b.astype(int) + c).all()


def test_nvcc_s8(rng):
    a, b = (rng.integers(-128, 128, (16, 16)).astype(np.int8) for _ in range(2))
    out = np.zeros((16, 16), np.int32)
    nvcc().kernel("wmma_s8").launch(grid=1, block=32, args=[a, b, out])
    assert (out == a.astype(int) @ b.astype(int).T).all()


def test_nvcc_bits_and_nibbles(rng):
    a, b = (rng.integers(0, 256, 128, np.uint8) for _ in range(2))
    out = np.zeros((2, 8, 8), np.int32)
    nvcc().kernel("wmma_b1").launch(grid=1, block=32, args=[a, b, out])
    left, right = (np.unpackbits(x.reshape(8, 16), axis=1, bitorder="little").astype(int) for x in (a, b))
    assert (out[0] == (left[:, None] ^ right[None]).sum(axis=-1)).all()
    nibbles = [np.stack((x & 15, x >> 4), axis=-1).reshape(8, 32).astype(int) for x in (a, b)]
    signed = [np.where(x < 8, x, x - 16) for x in nibbles]
    product = signed[0] @ signed[1].T
    assert (out[1].T - product == 1).all()


def test_nvcc_ldmatrix_and_movmatrix(rng):
    """All lanes store to the same words, where the last one stays: lane 31, which has the end of the last row."""
    words = rng.integers(0, 1 << 32, 32, np.uint32)
    memory = words.copy()
    floats, integers_ = np.zeros(4, np.float32), np.zeros(2, np.int32)
    nvcc().kernel("mma_75").launch(grid=1, block=32, args=[memory, floats, integers_])
    transposed = words[27] >> 16 | words[31] >> 16 << 16
    assert memory[9:13].tolist() == [words[31], transposed, words[31], transposed]
