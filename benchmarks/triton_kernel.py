"""A Triton kernel: the seconds from import to result, whether LLVM was loaded for ptxvm, and whether the result is right.

python -m ptxvm exec -- python benchmarks/triton_kernel.py
"""

from __future__ import annotations

import time

BEGUN = time.perf_counter()

import json  # noqa: E402 - the time of imports counts
import sys  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402


class Array:
    """An array as Triton takes it."""

    dtype = "i32"

    def __init__(self, array: Any) -> None:
        self.array = array

    def data_ptr(self) -> int:
        """Where its elements are."""
        return int(self.array.ctypes.data)


@triton.jit
def total(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 - Triton compiles these lines
    """The sum of some numbers."""
    at = tl.arange(0, BLOCK)
    tl.store(out, tl.sum(tl.load(x + at, at < n, other=0), 0))


if __name__ == "__main__":
    x, out = np.arange(1000, dtype=np.int32), np.zeros(1, np.int32)
    total[(1,)](Array(x), Array(out), 1000, BLOCK=1024)
    print(json.dumps([time.perf_counter() - BEGUN, "llvmlite" in sys.modules, bool(out[0] == x.sum())]))
