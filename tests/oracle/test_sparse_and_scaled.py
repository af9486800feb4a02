"""`mma.sp` against exact sums, and `mma` with block scales against what silicon computed.

Source: shared/fidelity/dots_hopper_blackwell.npz (its README says what the keys mean).  Fragments, metadata and scales are
put together by the manual's own formulas (PTX 9.7.14.3, 9.7.14.5, 9.7.14.6): `g` is the number of the lane's group of four,
`t` that of the lane in it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import ptxvm

DOTS = Path(__file__).parents[3] / "shared" / "fidelity" / "dots_hopper_blackwell.npz"
EACH = 8  # dot products in a matrix product: those on the diagonal of D
DTYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "s8": np.int8, "u8": np.uint8,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip


@cache
def kernel(instruction: str, target: str, sizes: tuple[int, ...]) -> ptxvm.Kernel:
    """A kernel whose lanes load the registers of A, B, C and X, multiply, and store D."""
    names = dict(zip("abcxd", sizes, strict=True))
    vectors = {m: "{" + ", ".join(f"%{m}{n}" for n in range(size)) + "}" for m, size in names.items()}
    lines = ["mov.u32 %i, %ctaid.x; shl.b32 %i, %i, 5; mov.u32 %t, %tid.x; add.u32 %i, %i, %t;"]
    for m, size in names.items():
        lines.append(f"ld.param.u64 %p{m}, [p{m}]; mad.wide.u32 %p{m}, %i, {4 * size}, %p{m};")
        if m != "d":
            lines += [f"ld.global.b32 %{m}{n}, [%p{m}+{4 * n}];" for n in range(size)]
    lines.append(instruction.format(**vectors))
    lines += [f"st.global.b32 [%pd+{4 * n}], %d{n};" for n in range(sizes[-1])]
    body = "\n".join(lines)
    return ptxvm.load(f"""
        .version 9.1
        .target {target}
        .address_size 64
        .visible .entry k({", ".join(f".param .u64 p{m}" for m in names)})
        {{
        .reg .u32 %i, %t; {" ".join(f".reg .b64 %p{m}; .reg .b32 %{m}<{size}>;" for m, size in names.items())}
        {body}
        ret;
        }}""").kernel("k")


def run(instruction: str, target: str, parts: dict[str, np.ndarray], results: int, engine: str) -> np.ndarray:
    """The registers of D for registers `(warps, 32, count)` of A, B, C and X."""
    parts = {name: np.ascontiguousarray(part) for name, part in parts.items()}
    warps = len(parts["a"])
    out = np.zeros((warps, 32, results), np.uint32)
    sizes = (*(part.shape[2] for part in parts.values()), results)
    kernel(instruction, target, sizes).launch(grid=warps, block=32, args=[*parts.values(), out], engine=engine)
    return out


def registers(matrix: np.ndarray, bits: int, *, of_b: bool = False) -> np.ndarray:
    """The fragment of A `(n, 16, K)`, or of B transposed `(n, 8, K)`: runs of a row that fill a register (PTX 9.7.14.5)."""
    run_length, depth = 32 // bits, matrix.shape[2]
    tops = (0,) if of_b else (0, 8)
    found = []
    for left in range(0, depth, 4 * run_length):
        for top in tops:
            lanes = [matrix[:, top + (lane >> 2), left + lane % 4 * run_length :][:, :run_length] for lane in range(32)]
            found.append(np.stack(lanes, axis=1).astype(np.uint64) << np.arange(0, 32, bits, dtype=np.uint64))
    return np.stack([np.bitwise_or.reduce(each, axis=-1) for each in found], axis=-1).astype(np.uint32)


# ── sparse ──────────────────────────────────────────────────────────────────────────────

# The type and shape, the lanes of a group with metadata, and the chunk of K of which half is stored.
SPARSE = [
    ("f16", 16, 1, 4), ("f16", 32, 2, 4), ("bf16", 16, 1, 4), ("bf16", 32, 2, 4), ("tf32", 8, 1, 2), ("tf32", 16, 2, 2),
    ("s8", 32, 2, 4), ("u8", 64, 4, 4), ("s4", 64, 2, 8), ("u4", 128, 4, 8), ("e4m3", 64, 4, 4), ("e5m2", 64, 4, 4),
]  # fmt: skip
PAIRS = np.array([0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110])


def metadata_words(nibbles: np.ndarray, threads: int, selector: int, *, small: bool) -> np.ndarray:
    """The registers with four bits for each chunk of 16 rows (PTX 9.7.14.6.2); other lanes have rubbish."""
    words = np.full((len(nibbles), 32, 1), 0xDEAD_BEEF, np.uint64)
    shifts = 4 * np.arange(4, dtype=np.uint64)
    for g in range(8):
        for n in range(threads):
            if small:  # a row of eight chunks
                row, left = g + 8 * (n % 2), n // 2 * 8
                word = np.bitwise_or.reduce(nibbles[:, row, left : left + 8] << 4 * np.arange(8, dtype=np.uint64), axis=-1)
            else:  # two rows of four chunks
                upper, lower = (
                    np.bitwise_or.reduce(nibbles[:, row, 4 * n : 4 * n + 4] << shifts, axis=-1) for row in (g, g + 8)
                )
                word = upper | lower << np.uint64(16)
            words[:, 4 * g + selector * threads + n, 0] = word
    return words.astype(np.uint32)


def dense(stored: np.ndarray, nibbles: np.ndarray, chunk: int) -> np.ndarray:
    """The whole A (PTX 9.7.14.6.1)."""
    count, rows, half = stored.shape
    found = np.zeros((count, rows, half * 2), stored.dtype)
    each = chunk // 2
    for place in np.ndindex(count, rows, half * 2 // chunk):
        *row, at = place
        values, indices = stored[place[0], place[1], at * each : (at + 1) * each], (nibbles[place] & 3, nibbles[place] >> 2)
        if chunk == 2:
            found[(*row, 2 * at + (indices[0] >> 1))] = values[0]
        else:
            width = chunk // 4
            for n, index in enumerate(indices):
                first = chunk * at + width * index
                found[(*row, slice(first, first + width))] = values[n * width : (n + 1) * width]
    return found


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(("type", "depth", "threads", "chunk"), SPARSE)
def test_sparse_products_of_small_numbers_are_exact(type, depth, threads, chunk, engine, rng):
    count, bits = 2, 4 if type in ("s4", "u4") else np.dtype(DTYPES[type]).itemsize * 8
    low = 0 if type[0] == "u" else -4
    stored, b = rng.integers(low, 5, (count, 16, depth // 2)), rng.integers(low, 5, (count, 8, depth))
    nibbles = (rng.choice([0b0100, 0b1110], (count, 16, depth // 2)) if chunk == 2 else
               rng.choice(PAIRS, (count, 16, depth // chunk))).astype(np.uint64)  # fmt: skip
    c = rng.integers(-100, 100, (count, 16, 8))
    exact = dense(stored, nibbles.astype(np.int64), chunk) @ b.swapaxes(1, 2) + c

    def patterns(values):
        if bits == 4:
            return (values & 15).astype(np.uint64)
        return values.astype(DTYPES[type]).view(f"u{bits // 8}")

    selector = {1: 2, 2: 1, 4: 0}[threads]
    whole = type[0] in "su"
    held = np.int32 if whole else np.float32
    lanes = np.arange(32)
    g, t = lanes[:, None] >> 2, lanes[:, None] % 4
    n = np.arange(4)
    rows, columns = g + 8 * (n >= 2), t * 2 + n % 2
    parts = {
        "a": registers(patterns(stored), bits),
        "b": registers(patterns(b), bits, of_b=True),
        "c": c[:, rows, columns].astype(held).view(np.uint32),
        "x": metadata_words(nibbles, threads, selector, small=bits <= 8),
    }
    sums = "s32" if whole else "f32"
    name = f"m16n8k{depth}.row.col{'.satfinite' if whole else ''}.{sums}.{type}.{type}.{sums}"
    instruction = f"mma.sp::ordered_metadata.sync.aligned.{name} {{d}}, {{a}}, {{b}}, {{c}}, %x0, {selector};"
    got = run(instruction, "sm_90", parts, 4, engine).view(held)
    assert (got == exact[:, rows, columns]).all()


# ── scaled blocks ───────────────────────────────────────────────────────────────────────


def names(start: str, only: str = "") -> list[str]:
    """The recorded sets whose operation begins so."""
    if not DOTS.is_file():
        return []
    found = {key.rsplit("|", 2)[0] for key in np.load(DOTS).files}
    return sorted(name for name in found if name.startswith(start) and only in name)


def scale_words(scales: np.ndarray, lane: int, first: int) -> np.ndarray:
    """The registers with the scales of row or column `g` from byte `first` on, in lane `lane` of each group."""
    words = np.full((len(scales), 32), 0x7F7F_7F7F, np.uint32)
    bytes_ = words.view(np.uint8).reshape(len(scales), 32, 4)
    bytes_[:, lane::4, first : first + scales.shape[2]] = scales
    return words


def recorded_parts(name: str, *parts: str) -> list[np.ndarray]:
    """The parts of the recorded sets of all kinds of inputs."""
    file = np.load(DOTS)
    return [np.concatenate([file[f"{name}|{kind}|{part}"] for kind in ("normal", "wide", "bits")]) for part in parts]


def scaled(name: str, engine: str, number: int) -> int:
    """How many of the recorded dot products an instruction with scales gets wrong."""
    a, b, c, d, scales_a, scales_b = recorded_parts(name, "A", "B", "C", "D", "SA", "SB")
    _, a_type, b_type, scale_type = name.split("|")[2].split(".")
    depth, count, blocks, halved = a.shape[1], len(a) // EACH, scales_a.shape[1], "k64" in name
    kind = name.partition("|")[0].removeprefix("tcgen05.mma.block_scale").strip(".") or "mxf8f6f4"
    if not halved:
        a, b = a << 2 * (a_type == "e2m1"), b << 2 * (b_type == "e2m1")
    rows = np.zeros((count, 16, depth), np.uint8)
    rows[:, :EACH] = a.reshape(count, EACH, depth)
    added = np.zeros((count, 32, 4), np.uint32)
    g = np.arange(EACH)
    added[:, 4 * g + g // 2, g % 2] = c.reshape(count, EACH)
    byte_a, byte_b = {1: (number % 4, (number + 1) % 4), 2: (2, 0), 4: (0, 0)}[blocks]
    lane_a, lane_b = number % 2, number % 4
    words = [
        scale_words(scales.reshape(count, EACH, blocks), lane, byte)
        for scales, lane, byte in ((scales_a, 2 * lane_a, byte_a), (scales_b, lane_b, byte_b))
    ]
    bits = 4 if halved else 8
    parts = {"a": registers(rows, bits), "b": registers(b.reshape(count, EACH, depth), bits, of_b=True), "c": added,
             "x": np.stack(words, axis=-1)}  # fmt: skip
    instruction = (
        f"mma.sync.aligned.m16n8k{depth}.row.col.kind::{kind}.block_scale.scale_vec::{blocks}X.f32.{a_type}.{b_type}.f32."
        f"{scale_type} {{d}}, {{a}}, {{b}}, {{c}}, %x0, {{{{{byte_a}, {lane_a}}}}}, %x1, {{{{{byte_b}, {lane_b}}}}};"
    )
    got = run(instruction, "sm_120a", parts, 4, engine)
    return int((got[:, 4 * g + g // 2, g % 2] != d.reshape(count, EACH)).sum())


@pytest.mark.skipif(not DOTS.is_file(), reason="the reference data is missing")
@pytest.mark.parametrize(("engine", "only"), [("interp", ""), ("jit", "|k64"), ("jit", "e3m2.e4m3")])
def test_products_of_scaled_blocks_are_what_silicon_computes(engine, only):
    recorded = names("tcgen05.mma.block_scale", only)
    assert len(recorded) == {"": 29, "|k64": 4, "e3m2.e4m3": 1}[only]
    assert [name for number, name in enumerate(recorded) if scaled(name, engine, number)] == []


@pytest.mark.skipif(not DOTS.is_file(), reason="the reference data is missing")
@pytest.mark.parametrize("sums", ["f32", "f16"])
def test_products_of_small_floats_are_what_silicon_computes(sums):
    """kind::f8f6f4 on sm_120a: all pairs of five types."""
    recorded = names(f"mma|RTXBlackwell|{sums}")
    assert len(recorded) == 25
    assert [name for name in recorded if unscaled(name)] == []


def unscaled(name: str) -> int:
    """How many of the recorded dot products `kind::f8f6f4` gets wrong."""
    a, b, c, d = recorded_parts(name, *"ABCD")
    sums, a_type, b_type = name.split("|")[2].split(".")
    count, g = len(a) // EACH, np.arange(EACH)
    rows = np.zeros((count, 16, 32), np.uint8)
    rows[:, :EACH] = (a << 2 * (a_type == "e2m1")).reshape(count, EACH, 32)
    b = (b << 2 * (b_type == "e2m1")).reshape(count, EACH, 32)
    size = 4 if sums == "f32" else 2
    added = np.zeros((count, 32, 4 if sums == "f32" else 2), np.uint32)
    held = added if sums == "f32" else added.view(np.uint16)
    held[:, 4 * g + g // 2, g % 2] = c.reshape(count, EACH)
    parts = {"a": registers(rows, 8), "b": registers(b, 8, of_b=True), "c": added, "x": np.zeros((count, 32, 1), np.uint32)}
    types = f"{sums}.{a_type}.{b_type}.{sums}"
    instruction = f"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.{types} {{d}}, {{a}}, {{b}}, {{c}};"
    got = run(instruction, "sm_120a", parts, size, "interp")
    return int((got.view(held.dtype)[:, 4 * g + g // 2, g % 2] != d.reshape(count, EACH)).sum())
