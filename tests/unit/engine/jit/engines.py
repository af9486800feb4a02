"""A kernel on every engine, from the same arguments: what it leaves, or the fault that it has, must be the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest

import ptxvm
from ptxvm.machine.memory import default_memory

ENGINES: tuple[Literal["interp", "jit"], ...] = ("interp", "jit")
ADDRESS = re.compile(r"0x[0-9a-f]{6,}")  # of memory that each engine takes for itself


def same(kernel: ptxvm.Kernel, args: Sequence[Any], *, grid: Any = 1, block: Any = 1, **options: Any) -> list[np.ndarray]:
    """The arrays among the arguments, which stay as they are, as every engine leaves them."""
    found: list[list[np.ndarray]] = [arrays for _, arrays in each(kernel, args, grid, block, options)]
    for n, (one, other) in enumerate(zip(*found, strict=True)):
        wrong = np.argwhere(one.view(f"u{one.itemsize}") != other.view(f"u{one.itemsize}"))
        assert not len(wrong), f"array {n} differs at {wrong[:5].tolist()}: {found[0][n]}, {found[1][n]}"
    return found[0]


def same_fault(
    kernel: ptxvm.Kernel, args: Sequence[Any], *, grid: Any = 1, block: Any = 1, match: str | None = None, **options: Any
) -> ptxvm.Fault:
    """The fault that every engine raises, in the same words, of the same thread and instruction."""
    found = []
    for engine in ENGINES:
        with pytest.raises(ptxvm.Fault, match=match) as caught:
            kernel.launch(grid, block, [copied_alone(each) for each in args], engine=engine, **options)
        found.append(caught.value)
    one, other = [(fault.kind, ADDRESS.sub("0x…", str(fault)), fault.place) for fault in found]
    assert one == other, f"{one} by one engine, {other} by another"
    return found[0]


def each(kernel: ptxvm.Kernel, args: Sequence[Any], grid: Any, block: Any, options: dict[str, Any]) -> Any:
    """The result and the arrays of every engine."""
    for engine in ENGINES:
        given = [copied(each) for each in args]
        result = kernel.launch(grid, block, given, engine=engine, **options)
        yield result, [array for array in given if isinstance(array, np.ndarray)]


def copied(argument: Any) -> Any:
    """An array of its own."""
    return argument.copy() if isinstance(argument, np.ndarray) else argument


def copied_alone(argument: Any) -> Any:
    """An array of its own that is beside no other memory, for a kernel that goes astray."""
    if not isinstance(argument, np.ndarray):
        return argument
    copy = lone_array(argument.size, argument.dtype).reshape(argument.shape)
    copy[...] = argument
    return copy


def lone_array(count: int, dtype: npt.DTypeLike, room: int = 1 << 20) -> np.ndarray:
    """An array with `room` bytes on both sides that are no other memory, and never were an argument."""
    size = np.dtype(dtype).itemsize * count
    whole = np.zeros(2 * room + size, np.uint8)  # pages that nothing touches take no memory
    first, last = whole.ctypes.data, whole.ctypes.data + whole.nbytes
    freed = default_memory().table._freed
    for start, end in [extent for extent in freed if extent[0] < last and first < extent[1]]:
        del freed[start, end]
    return whole[room : room + size].view(dtype)
