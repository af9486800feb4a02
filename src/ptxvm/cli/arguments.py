"""Arguments of kernels on the command line: their texts, and arrays as people read them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ptxvm.cli.failures import WrongCall
from ptxvm.machine import argument_texts
from ptxvm.machine.argument_texts import DTYPES, Argument, Random
from ptxvm.machine.per_lane import Array


def parse(word: str, random: Random) -> Argument:
    """The argument that a word stands for; raises `WrongCall` where it stands for none."""
    if word.startswith("--"):
        raise WrongCall(f"no such option: {word.partition('=')[0]}; see --help")
    try:
        return argument_texts.parse(word, random)
    except ValueError as wrong:
        raise WrongCall(str(wrong)) from None


def save(path: str, values: Array) -> None:
    """Write an array to a file of NumPy; bf16, which such files do not know, as its bits."""
    try:
        with Path(path).open("wb") as file:
            np.save(file, values.view(np.uint16) if values.dtype == DTYPES["bf16"] else values)
    except OSError as wrong:
        raise WrongCall(f"cannot write '{path}': {wrong.strerror}") from None


# ── arrays as people read them ──────────────────────────────────────────────────────────


def described(values: Array) -> str:
    """`f32[64,64]`."""
    names = {element: name for name, element in reversed(DTYPES.items()) if not name.startswith("b") or name == "bf16"}
    return f"{names.get(values.dtype, values.dtype.name)}[{','.join(map(str, values.shape))}]"


def preview(values: Array, columns: int = 24) -> str:
    """The first values and the last one, as many as fit."""
    flat = values.reshape(-1)
    every = [text(x) for x in (flat if flat.size <= 8 else [*flat[:6], flat[-1]])]
    if flat.size <= 8 and len(" ".join(every)) <= columns:
        return " ".join(every)
    *first, last = every
    while first and len(" ".join([*first, "…", last])) > columns:
        first.pop()
    return " ".join([*first, "…", last])


def text(value: np.generic) -> str:
    """A value in few characters."""
    return f"{float(value):.4g}" if value.dtype.kind not in "iub" else str(value)


def statistics(values: Array) -> tuple[str, str, str]:
    """The least, the greatest, and the sum."""
    if not values.size:
        return "", "", ""
    if values.dtype.kind in "iu":
        # In two halves, so that no sum of up to 2^32 values overflows.
        low, high = values.astype(np.uint64) & np.uint64(0xFFFF_FFFF), values.astype(np.int64) >> 32
        if values.dtype.kind == "u":
            high = (values.astype(np.uint64) >> np.uint64(32)).view(np.int64)
        total = int(low.sum(dtype=np.uint64)) + (int(high.sum(dtype=np.int64)) << 32)
        return str(values.min()), str(values.max()), str(total)
    numbers = values.astype(np.float64)
    with np.errstate(all="ignore"):
        return text(numbers.min()), text(numbers.max()), f"{float(numbers.sum()):.6g}"
