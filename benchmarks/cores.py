"""Two cores over one, beside C with OpenMP: ten of the kernels of `shared/kernels` at full size.

    python benchmarks/cores.py [KERNEL…] [--seconds S]      (on a machine where nothing else runs)

Figures are times on the clock of one core divided by those of two: of the launches that come first in a process, while better
code is compiled on the second core, of the fastest one after some seconds, and of C (gcc or clang, the same functions with
`omp parallel for`).  Each is a process of its own with nothing kept from others.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import engines

import ptxvm

sys.path.insert(0, str(engines.KERNELS))
import workloads

KERNELS = ("vadd", "mmtiled", "nbody", "mandel", "stencil", "bs", "sha", "bitonic", "transpose", "reduce")
EARLY = 5


def main() -> None:
    """Print the table, or be one of its processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="*", default=KERNELS)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--alone", choices=("jit", "c"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.alone:
        print(*(jit if chosen.alone == "jit" else in_c)(chosen.kernels[0], chosen.seconds))
        return
    print(f"{'kernel':12}{'first':>8}{'next':>8}{'best':>8}{'C':>8}{'ms':>10}{'C, ms':>10}")
    for kernel in chosen.kernels:
        (one, two), (c_one, c_two) = ([times(kernel, who, n, chosen.seconds) for n in (1, 2)] for who in ("jit", "c"))
        ratios = [a / b for a, b in zip(one, two, strict=True)]
        print(
            f"{kernel:12}" + "".join(f"{each:8.2f}" for each in (*ratios, c_one[0] / c_two[0]))
            + f"{1000 * two[-1]:10.2f}{1000 * c_two[0]:10.2f}", flush=True,
        )  # fmt: skip


def times(kernel: str, who: str, threads: int, seconds: float) -> list[float]:
    """The seconds that a process of its own finds."""
    own = {"PTXVM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads), "PTXVM_CACHE": "off", "PTXVM_TIER": "auto"}
    command = [sys.executable, __file__, kernel, "--alone", who, "--seconds", str(seconds)]
    done = subprocess.run(command, env=os.environ | own, capture_output=True, text=True, check=True)  # noqa: S603 - our own
    return [float(each) for each in done.stdout.split()]


def jit(name: str, seconds: float) -> list[float]:
    """The first launch, the mean of the next ones, and the fastest."""
    work, kernel = workloads.work(name), ptxvm.load(engines.KERNELS / "kernels.ptx").kernel(name)

    def once() -> float:
        work.get("reset", lambda: None)()
        began = time.perf_counter()
        kernel.launch(grid=work["grid"], block=work["bd"], args=work["args"], engine="jit")
        return time.perf_counter() - began

    first, end, later = once(), time.perf_counter() + seconds, list[float]()
    while time.perf_counter() < end or len(later) <= EARLY:
        later.append(once())
    return [first, sum(later[:EARLY]) / EARLY, min(later[len(later) // 2 :])]


def in_c(name: str, seconds: float) -> list[float]:
    """The fastest run of the fastest function and compiler."""
    work, best = workloads.work(name), float("inf")
    with tempfile.TemporaryDirectory() as folder:
        libraries = engines.c_libraries(Path(folder))
        for library in libraries.values():
            library.set_threads(int(os.environ["OMP_NUM_THREADS"]))
        runs = [
            engines.in_c(library, function, name, work)
            for library in libraries.values() for function in engines.FUNCTIONS.get(name, (name,))
        ]  # fmt: skip
        for run in runs:
            end = time.perf_counter() + seconds / len(runs)
            while time.perf_counter() < end:
                work.get("reset", lambda: None)()
                began = time.perf_counter()
                run()
                best = min(best, time.perf_counter() - began)
    return [best]


if __name__ == "__main__":
    main()
