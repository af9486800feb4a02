"""The 14 kernels of `shared/kernels` on both engines and in plain C, one core: times in milliseconds, and ratios.

    python benchmarks/engines.py [KERNEL…] [--interp] [--runs N]

The C is `kernels.c` by `gcc -O3 -march=native`; runs are interleaved and the table shows medians.  The first launch, which
compiles, is timed apart.  Both engines start from the same data, and the result of the JIT is checked.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import ptxvm

KERNELS = Path(__file__).parents[2] / "shared" / "kernels"
sys.path.insert(0, str(KERNELS))
TIMES = 7
OTHER = {"mandel": "mandel_v"}  # which is blocked by hand, since no compiler vectorises the plain loop


def c_library() -> ctypes.CDLL:
    """`kernels.c`, compiled."""
    made = Path(tempfile.mkdtemp()) / "kernels.so"
    source = KERNELS / "kernels.c"
    command = [
        "gcc",
        "-O3",
        "-march=native",
        "-ffast-math",
        "-fopenmp",
        "-shared",
        "-fPIC",
        "-o",
        str(made),
        str(source),
        "-lm",
    ]
    subprocess.run(command, check=True)  # noqa: S603
    library = ctypes.CDLL(str(made))
    library.set_threads(1)
    return library


def in_c(library: ctypes.CDLL, name: str, work: dict[str, Any]) -> Callable[[], None]:
    """The same work in C, where that takes the same arguments."""
    function = getattr(library, OTHER.get(name, name))

    def argument(a: Any) -> Any:
        if isinstance(a, np.ndarray):
            return ctypes.c_void_p(a.ctypes.data)
        return ctypes.c_float(a) if isinstance(a, float) else ctypes.c_int(a)

    given = [argument(a) for a in work["args"]]
    if name == "bitonic":
        given.append(ctypes.c_int(work["grid"][0]))
    function.restype = None
    return lambda: function(*given)


def timed(function: Callable[[], Any], reset: Callable[[], Any]) -> float:
    """Milliseconds of one run."""
    reset()
    began = time.perf_counter()
    function()
    return 1000 * (time.perf_counter() - began)


def main() -> None:
    """Print the table."""
    from workloads import NAMES, work  # noqa: PLC0415 - it lies beside the kernels

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="*", default=NAMES)
    parser.add_argument("--interp", action="store_true", help="time the interpreter too, which takes minutes")
    parser.add_argument("--runs", type=int, default=TIMES)
    chosen = parser.parse_args()
    module, library = ptxvm.load(KERNELS / "kernels.ptx"), c_library()
    print(f"{'kernel':10}{'first':>9}{'jit':>9}{'C':>9}{'C/jit':>7}{'interp':>10}{'x':>7}  check")
    for name in chosen.kernels:
        print(row(module, library, name, work(name), chosen), flush=True)


def row(module: ptxvm.Module, library: ctypes.CDLL, name: str, w: dict[str, Any], chosen: argparse.Namespace) -> str:
    """One kernel."""
    kernel, reset = module.kernel(name), w.get("reset", lambda: None)

    def run(engine: str) -> None:
        kernel.launch(grid=w["grid"], block=w["bd"], args=w["args"], engine=engine)

    first = timed(lambda: run("jit"), reset)
    check = "ok" if w["chk"] is None or w["chk"]() else "WRONG"
    c = in_c(library, name, w)
    jit, plain = [], []
    for _ in range(chosen.runs):
        jit.append(timed(lambda: run("jit"), reset))
        plain.append(timed(c, reset))
    mine, theirs = statistics.median(jit), statistics.median(plain)
    slow = timed(lambda: run("interp"), reset) if chosen.interp else float("nan")
    return f"{name:10}{first:9.1f}{mine:9.2f}{theirs:9.2f}{theirs / mine:7.2f}{slow:10.1f}{slow / mine:7.0f}  {check}"


if __name__ == "__main__":
    main()
