"""What the checks cost: the kernels of `shared/kernels` with each, against the same without any, on one core.

    python benchmarks/checks.py [KERNEL…] [--small] [--interp] [--runs N]

Times are processor time of this process; the runs of all variants are interleaved, and the table shows the ratios of
medians.  `usual` is a launch that asks for nothing: a wrong access is a fault; without any check (`check=()`) it is not
even noticed.  `--interp` measures the exact checker too, at the small sizes and against its usual launch, which takes
minutes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

os.environ.update(PTXVM_THREADS="1", PTXVM_CACHE="off", PTXVM_TIER="best")

import ptxvm

KERNELS = Path(__file__).parents[2] / "shared" / "kernels"
sys.path.insert(0, str(KERNELS))
CHECKS = ("memory", "race", "init", "sync")
GOALS = {"memory": 1.3, "race": 15.0}  # of the matrix product in tiles of shared memory, on the JIT
Run = Callable[[], None]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="*", default=["mmtiled"])
    parser.add_argument("--small", action="store_true", help="the small sizes")
    parser.add_argument("--interp", action="store_true", help="measure the interpreter too")
    parser.add_argument("--runs", type=int, default=7)
    chosen = parser.parse_args()
    print(f"{'kernel':10}{'engine':>8}{'ms':>10}" + "".join(f"{name:>9}" for name in ("usual", *CHECKS)))
    for name in chosen.kernels:
        print(row(name, "jit", small=chosen.small, runs=chosen.runs), flush=True)
        if chosen.interp:
            print(row(name, "interp", small=True, runs=max(1, chosen.runs // 3)), flush=True)
    print("goals of mmtiled on the JIT: " + ", ".join(f"{check} {goal}x" for check, goal in GOALS.items()))


def row(name: str, engine: str, *, small: bool, runs: int) -> str:
    """One engine on one kernel: milliseconds without checks, and the ratios to that."""
    found = workload(name, small=small)
    kernel = ptxvm.load(KERNELS / "kernels.ptx").kernel(name)
    wanted: dict[str, Collection[str] | None] = {"usual": None} | {check: (check,) for check in CHECKS}
    if engine == "jit":  # the interpreter always looks
        wanted["none"] = ()
    medians = measured({each: launched(kernel, found, engine, check) for each, check in wanted.items()}, runs)
    least = medians.get("none", medians["usual"])
    ratios = "".join(f"{medians[each] / least:9.2f}" for each in ("usual", *CHECKS))
    return f"{name:10}{engine:>8}{1000 * least:10.1f}{ratios}"


def measured(variants: dict[str, Run], runs: int) -> dict[str, float]:
    """The median seconds of each variant; a first run of each, which compiles, does not count."""
    for run in variants.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(runs):
        for name, run in variants.items():
            began = time.process_time()
            run()
            seconds[name].append(time.process_time() - began)
    return {name: statistics.median(each) for name, each in seconds.items()}


def workload(name: str, *, small: bool) -> dict[str, Any]:
    """The arguments of a kernel."""
    from workloads import work  # noqa: PLC0415 - it lies beside the kernels

    found: dict[str, Any] = work(name, small=small)
    return found


def launched(kernel: ptxvm.Kernel, work: dict[str, Any], engine: str, check: Collection[str] | None) -> Run:
    """One launch; it finds nothing, and its first result is checked."""
    reset, right = work.get("reset", lambda: None), [work["chk"] or (lambda: True)]

    def run() -> None:
        reset()
        found = kernel.launch(grid=work["grid"], block=work["bd"], args=work["args"], engine=engine, check=check).findings
        if found or (right and not right.pop()()):
            raise SystemExit(f"{kernel.name}: wrong result, or {found}")

    return run


if __name__ == "__main__":
    main()
