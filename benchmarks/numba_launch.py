"""The least seconds of a launch of 64 threads by Numba, and of one without a driver, whose function returns at once.

    python -m ptxvm exec -- python benchmarks/numba_launch.py

Both take turns, and the clock is the processor's.
"""

from __future__ import annotations

import json
import time
import warnings
from typing import Any

import numpy as np
from numba import cuda

from ptxvm.libcuda.library import install

TURNS, LAUNCHES, FIRST = 600, 12, 300
FUNCTION = "cuLaunchKernelEx"  # which Numba calls


@cuda.jit
def increment(values: Any, count: int) -> None:
    """Add one to each value."""
    at = cuda.grid(1)
    if at < count:
        values[at] += 1


def seconds() -> list[float]:
    """The seconds of a launch with a driver and without."""
    warnings.simplefilter("ignore")  # Numba warns of a grid of one block, which is what is wanted
    values, launch = cuda.to_device(np.zeros(64, np.int32)), increment[1, 64]
    for _ in range(FIRST):  # what comes later is compiled
        launch(values, 64)
    cuda.synchronize()
    library, least = install().cuda, [float("inf"), float("inf")]
    slot = list(library.functions).index(FUNCTION)
    driver = library.slots[slot]
    for _ in range(TURNS):
        for way, function in enumerate((driver, library.done)):
            library.slots[slot] = function
            begun = time.process_time()
            for _ in range(LAUNCHES):
                launch(values, 64)
            least[way] = min(least[way], (time.process_time() - begun) / LAUNCHES)
    library.slots[slot] = driver
    return least


if __name__ == "__main__":
    print(json.dumps(seconds()))
