"""`mma` through the public interface, with the fragments put together by the manual's own formulas (PTX 9.7.14.5).

`g` is the number of the lane's group of four, `t` that of the lane in it, `i` that of the element; each formula gives
the row and column of an element.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import ptxvm

TARGETS = {
    "Volta": "sm_70", "Turing": "sm_75", "Ampere": "sm_80", "AdaLovelace": "sm_89", "Hopper": "sm_90",
    "Blackwell": "sm_100", "RTXBlackwell": "sm_120",
}  # fmt: skip
BITS = {"f64": 64, "f32": 32, "tf32": 32, "s32": 32, "f16": 16, "bf16": 16, "b1": 1}
BITS |= dict.fromkeys(("e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "s8", "u8"), 8) | dict.fromkeys(("s4", "u4"), 4)

Formula = Callable[[int, int, int], tuple[int, int]]
A: dict[tuple[int, int, int], Formula] = {
    (8, 4, 64):     lambda g, t, i: (g, t),
    (8, 16, 8):     lambda g, t, i: (g, t * 4 + i),
    (8, 32, 4):     lambda g, t, i: (g, t * 8 + i),
    (8, 128, 1):    lambda g, t, i: (g, t * 32 + i),
    (16, 4, 32):    lambda g, t, i: (g + 8 * (i == 1), t),
    (16, 4, 64):    lambda g, t, i: (g + 8 * (i == 1), t),
    (16, 8, 16):    lambda g, t, i: (g + 8 * (i >= 2), t * 2 + (i & 1)),
    (16, 8, 32):    lambda g, t, i: (g + 8 * (i in (1, 3)), t + 4 * (i >= 2)),
    (16, 8, 64):    lambda g, t, i: (g + 8 * (i in (1, 3)), t + 4 * (i >= 2)),
    (16, 16, 16):   lambda g, t, i: (g + 8 * (not (i < 2 or 4 <= i < 6)), t * 2 + (i & 1) + 8 * (i >= 4)),
    (16, 16, 64):   lambda g, t, i: (g + 8 * (i % 2), i * 2 + t if i % 2 == 0 else i * 2 - 2 + t),
    (16, 16, 8):    lambda g, t, i: (g + 8 * (i >= 4), t * 4 + (i & 3)),
    (16, 32, 8):    lambda g, t, i: (g + 8 * (not (i < 4 or 8 <= i < 12)), t * 4 + (i & 3) + 16 * (i >= 8)),
    (16, 32, 4):    lambda g, t, i: (g + 8 * (i >= 8), t * 8 + (i & 7)),
    (16, 64, 4):    lambda g, t, i: (g + 8 * (not (i < 8 or 16 <= i < 24)), t * 8 + (i & 7) + 32 * (i >= 16)),
    (16, 128, 1):   lambda g, t, i: (g + 8 * (i >= 32), t * 32 + (i & 31)),
    (16, 256, 1):   lambda g, t, i: (g + 8 * (not (i < 32 or 64 <= i < 96)), t * 32 + (i & 31) + 128 * (i >= 64)),
}  # fmt: skip
B: dict[tuple[int, int], Formula] = {
    (4, 32):    lambda g, t, i: (t, g),
    (4, 64):    lambda g, t, i: (t, g),
    (8, 16):    lambda g, t, i: (t * 2 + i, g),
    (8, 32):    lambda g, t, i: (t + 4 * (i == 1), g),
    (8, 64):    lambda g, t, i: (t + 4 * (i == 1), g),
    (16, 16):   lambda g, t, i: (t * 2 + (i & 1) + 8 * (i >= 2), g),
    (16, 64):   lambda g, t, i: (t + i * 4, g),
    (16, 8):    lambda g, t, i: (t * 4 + i, g),
    (32, 8):    lambda g, t, i: (t * 4 + (i & 3) + 16 * (i >= 4), g),
    (32, 4):    lambda g, t, i: (t * 8 + i, g),
    (64, 4):    lambda g, t, i: (t * 8 + (i & 7) + 32 * (i >= 8), g),
    (128, 1):   lambda g, t, i: (t * 32 + i, g),
    (256, 1):   lambda g, t, i: (t * 32 + (i & 31) + 128 * (i >= 32), g),
}  # fmt: skip
C: dict[int, Formula] = {
    8:  lambda g, t, i: (g, t * 2 + i),
    16: lambda g, t, i: (g + 8 * (i >= 2), t * 2 + (i & 1)),
}  # fmt: skip


def places(matrix: str, shape: tuple[int, int, int], type: str, order: str) -> np.ndarray:
    """For each lane and element the matrix (of four, of m8n8k4), row and column: `(32, elements, 3)`."""
    m, n, k = shape
    extent = {"a": m * k, "b": k * n}.get(matrix, m * n)
    if shape == (8, 8, 4) and type in ("f16", "f32"):
        found = [[quarter(matrix, type, order, lane, i) for i in range(extent // 8)] for lane in range(32)]
        return np.array([[(lane // 4 % 4, *place) for place in row] for lane, row in enumerate(found)])
    formula = A[m, k, BITS[type]] if matrix == "a" else B[k, BITS[type]] if matrix == "b" else C[m]
    return np.array([[(0, *formula(lane >> 2, lane % 4, i)) for i in range(extent // 32)] for lane in range(32)])


def quarter(matrix: str, type: str, order: str, lane: int, i: int) -> tuple[int, int]:
    """m8n8k4 of f16 (PTX 9.7.14.5.1)."""
    high = 4 * (lane >= 16)
    match matrix, order, type:
        case "a", "row", _:
            return lane % 4 + high, i
        case "a", "col", _:
            return i % 4 + high, lane % 4
        case "b", "row", _:
            return lane % 4, i + high
        case "b", "col", _:
            return i, lane % 4 + high
        case _, _, "f16":
            return lane % 4 + high, i
    return (lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)


def pack(stack: np.ndarray, at: np.ndarray, bits: int) -> np.ndarray:
    """Matrices (of bits) to registers: `(warps, 32, registers)`."""
    warps = stack.reshape(-1, at[:, :, 0].max() + 1, *stack.shape[1:])
    elements = warps[:, at[..., 0], at[..., 1], at[..., 2]].astype(np.uint64)
    word = max(32, bits)
    elements = elements.reshape(*elements.shape[:2], -1, word // bits)
    shifted = elements << np.arange(0, word, bits, dtype=np.uint64)
    return np.ascontiguousarray(np.bitwise_or.reduce(shifted, axis=-1).astype(f"u{word // 8}"))


def unpack(registers: np.ndarray, at: np.ndarray, bits: int, shape: tuple[int, int]) -> np.ndarray:
    """Registers to matrices."""
    elements = np.ascontiguousarray(registers).view(f"u{bits // 8}")
    stack = np.zeros((len(registers), at[:, :, 0].max() + 1, *shape), elements.dtype)
    stack[:, at[..., 0], at[..., 1], at[..., 2]] = elements
    return stack.reshape(-1, *shape)


@cache
def kernel(instruction: str, target: str, sizes: tuple[int, ...], words: tuple[int, ...]) -> ptxvm.Kernel:
    """A kernel whose lanes load their registers, multiply, and store."""
    names = "dabc"
    vectors = {m: [f"%{m}{n}" for n in range(size)] for m, size in zip(names, sizes, strict=True)}
    lines = ["mov.u32 %i, %ctaid.x; shl.b32 %i, %i, 5; mov.u32 %t, %tid.x; add.u32 %i, %i, %t;"]
    for m, word in zip(names, words, strict=True):
        stride = len(vectors[m]) * word // 8
        lines.append(f"ld.param.u64 %p{m}, [p{m}]; mad.wide.u32 %p{m}, %i, {stride}, %p{m};")
        if m != "d":
            lines += [f"ld.global.b{word} {r}, [%p{m}+{n * word // 8}];" for n, r in enumerate(vectors[m])]
    lines.append(instruction + " " + ", ".join("{" + ", ".join(v) + "}" for v in vectors.values()) + ";")
    lines += [f"st.global.b{words[0]} [%pd+{n * words[0] // 8}], {r};" for n, r in enumerate(vectors["d"])]
    registers = " ".join(
        f".reg .b64 %p{m}; .reg .b{word} %{m}<{len(vectors[m])}>;" for m, word in zip(names, words, strict=True)
    )
    parameters = ", ".join(f".param .u64 p{m}" for m in names)
    body = "\n".join(lines)
    return ptxvm.load(f"""
        .version 9.1
        .target {target}
        .address_size 64
        .visible .entry k({parameters})
        {{
        .reg .u32 %i, %t; {registers}
        {body}
        ret;
        }}""").kernel("k")


def multiply(
    shape: tuple[int, int, int], types: str, a: np.ndarray, b: np.ndarray, c: np.ndarray,
    *, target: str, orders: tuple[str, str] = ("row", "col"), before: str = "", after: str = "", **how: Any,
) -> np.ndarray:  # fmt: skip
    """The bits of D for stacks of matrices of bits; `types` are those of D, A, B and C, `how` is of the launch."""
    kinds = dict(zip("dabc", types.split("."), strict=True))
    order = {"a": orders[0], "b": orders[1]}
    at = {m: places(m, shape, kinds[m], order.get(m, "")) for m in "dabc"}
    given = {m: pack(stack, at[m], BITS[kinds[m]]) for m, stack in zip("abc", (a, b, c), strict=True)}
    words = tuple(max(32, BITS[kinds[m]]) for m in "dabc")
    sizes = tuple(at[m].shape[1] * BITS[kinds[m]] // word for m, word in zip("dabc", words, strict=True))
    name = "m{}n{}k{}".format(*shape)
    instruction = f"mma.sync.aligned.{name}.{orders[0]}.{orders[1]}{before}.{types}{after}"
    warps = len(given["a"])
    out = np.zeros((warps, 32, sizes[0]), f"u{words[0] // 8}")
    kernel(instruction, target, sizes, words).launch(grid=warps, block=32, args=[out, *given.values()], **how)
    return unpack(out, at["d"], BITS[kinds["d"]], (shape[0], shape[1]))
