"""The machine against what an H200 answered to the cases of `tools/hardware_cases` (recorded by `tools/record_cases.py`)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import ptxvm

HERE = Path(__file__).parent
RECORDS = HERE / "hardware" / "cases"


@pytest.fixture(scope="module")
def tools() -> Iterator[ModuleType]:
    sys.path.insert(0, str(HERE.parents[1] / "tools"))
    yield importlib.import_module("hardware_cases.recorded")
    sys.path.pop(0)


def tensor_map(map, tensor: np.ndarray) -> ptxvm.TensorMap:
    """The map of a case."""
    how = {
        "sizes": map.sizes, "strides": map.strides[: len(map.sizes) - 1], "element_strides": map.steps,
        "interleave": ptxvm.Interleave(map.interleave), "swizzle": ptxvm.Swizzle(map.swizzle), "fill": ptxvm.OobFill(map.fill),
    }  # fmt: skip
    type = ptxvm.TensorType(map.type)
    if map.box:
        return ptxvm.TensorMap.tiled(type, tensor, map.box, **how)
    return ptxvm.TensorMap.im2col(type, tensor, map.lower, map.upper, map.channels, map.pixels, **how)


def placed(array: np.ndarray) -> np.ndarray:
    """A copy at an address as a GPU's allocator gives it: a multiple of 256."""
    memory = np.zeros(array.nbytes + 256, np.uint8)
    start = -memory.ctypes.data % 256
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def answer(case, engine: str) -> bytes:
    """What the machine leaves in the kept arrays, as an H200."""
    arrays = {n: placed(each) for n, each in enumerate(case.arguments) if isinstance(each, np.ndarray)}
    given = [
        arrays[n] if n in arrays else tensor_map(each, arrays[each.tensor]) if hasattr(each, "tensor") else each
        for n, each in enumerate(case.arguments)
    ]
    kernel = ptxvm.load(case.text, "sm_90a").kernel(case.kernel)
    kernel.launch(case.grid, case.block, given, shared=case.shared, engine=engine)
    return b"".join(arrays[n].tobytes() for n in case.kept)


def wrong(tools: ModuleType, group: str, engine: str, cases) -> list[str]:
    """The names of the cases of which something else was recorded; cases that the GPU did not run are left out."""
    recorded = tools.load(RECORDS / f"{group}.npz")
    ran = [case for case in cases if isinstance(recorded.get(case.name), bytes)]
    assert ran
    return [case.name for case in ran if answer(case, engine) != recorded[case.name]]


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_warps(tools: ModuleType, engine: str) -> None:
    """What the lanes of a warp say to each other: shfl, vote, match, redux."""
    cases = importlib.import_module("hardware_cases.instructions").warps()
    assert not wrong(tools, "warps", engine, cases)
