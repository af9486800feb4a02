"""Reductions and conversions of elements in memory, for asynchronous transfers (PTX 9.7.9.25.4.2, 9.7.9.25.5.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.isa.transfers import Transfer
from ptxvm.machine.per_lane import Array

if TYPE_CHECKING:
    import numpy.typing as npt

Rows = "npt.NDArray[np.uint8]"

HELD: dict[str, type] = {
    "b32": np.uint32, "u32": np.uint32, "s32": np.int32, "b64": np.uint64, "u64": np.uint64, "s64": np.int64,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f32.ftz": np.float32, "f64": np.float64,
}  # fmt: skip
NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF, "f64": 0x7FF8 << 48}
QUIET = 1 << 22  # of f32


def _inc(old: Array, b: Array) -> Array:
    return np.where(old >= b, 0, old + old.dtype.type(1))


def _dec(old: Array, b: Array) -> Array:
    return np.where((old == 0) | (old > b), b, old - old.dtype.type(1))


OPERATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "inc": _inc, "dec": _dec,
    "min": np.fmin, "max": np.fmax,
}  # fmt: skip


def combined(operation: str, element: str, old: npt.NDArray[np.uint8], new: npt.NDArray[np.uint8], *, flushes: bool) -> Array:
    """Rows of bytes: what is there, combined with what comes, element by element; `flushes` subnormal f32 values."""
    held = np.dtype(HELD[element])
    a, b = (np.ascontiguousarray(rows).view(held) for rows in (old, new))
    if flushes:
        a, b = _flushed(a), _flushed(b)
    with np.errstate(all="ignore"):
        made = OPERATIONS[operation](a, b).astype(held)
    if flushes:
        made = _flushed(made)
    name = element.partition(".")[0]
    if name in NAN:
        made = _canonical(made, held, NAN[name])
    return np.ascontiguousarray(made).view(np.uint8).reshape(old.shape)


def combine_each(operation: str, element: str, there: Array, to: Array, rows: Array) -> None:
    """Combine integers with those at some positions of memory, one after the other where these are the same."""
    held, apply = np.dtype(HELD[element]), OPERATIONS[operation]
    cells, values = there.view(held), rows.view(held).ravel()
    if isinstance(apply, np.ufunc):
        apply.at(cells, to, values)
        return
    left = np.arange(len(to))
    while len(left):
        first = np.unique(to[left], return_index=True)[1]
        now = left[first]
        cells[to[now]] = apply(cells[to[now]], values[now])
        left = np.delete(left, first)


def _canonical(values: Array, held: np.dtype[np.generic], nan: int) -> Array:
    bits = np.ascontiguousarray(values).view(f"u{held.itemsize}")
    return np.where(np.isnan(values), bits.dtype.type(nan), bits).view(held)


def _flushed(values: Array) -> Array:
    """Subnormal values of f32 as zeros of their sign."""
    return np.where(np.abs(values) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), values), values)


def moved(kind: Transfer, element: str, rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Rows of bytes from the source of a transfer, as they go to its target."""
    if kind.operation:
        return rows
    return _packed(element, rows) if kind.to is Space.GLOBAL else _converted(element, rows)


def _packed(element: str, rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Elements without the upper two bits of their bytes, where six bits are an element (`.b6p2x16`, PTX 5.5.1.1)."""
    if element != "b6x16_p32":
        return rows
    bits = np.unpackbits(rows.reshape(-1, 1), axis=1, count=6, bitorder="little")
    return np.packbits(bits, bitorder="little").reshape(-1, rows.shape[1])


def _converted(element: str, rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Elements as a tensor map stores them in shared memory: of tf32 with 10 bits of fraction, and one NaN.

    Subnormal numbers stay, also of the `.ftz` types (an H200).
    """
    if element.partition(".")[0] != "tf32":
        return rows
    values = np.ascontiguousarray(rows).view(np.float32)
    bits: Array = np.ascontiguousarray(values).view(np.uint32)
    rounded = bits + np.uint32(0xFFF) + (bits >> np.uint32(13) & np.uint32(1))
    special = np.where(np.isnan(values), np.uint32(0x7FFFFFFF), bits)
    bits = np.where(np.isfinite(values), rounded, special).astype(np.uint32) & ~np.uint32(0x1FFF)
    return np.ascontiguousarray(bits).view(np.uint8).reshape(rows.shape)
