"""What the checks cost: the kernels of `shared/kernels` with each, against the same without, on one core.

    python benchmarks/checks.py [KERNEL…] [--small] [--interp] [--runs N]

Times are processor time of this process; the runs of all variants are interleaved, and the table shows the ratios of
medians.  `bounds` is what faults for wrong accesses cost, which every launch has: against code that compares no access with
its allocation, made for this benchmark only.  `--interp` measures the exact checker too, at the small sizes, which takes
minutes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.update(PTXVM_THREADS="1", PTXVM_CACHE="off", PTXVM_TIER="best")

import ptxvm
from ptxvm.engine.jit.memory import Memory
from ptxvm.engine.jit.ranges import Ranges

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
    print(f"{'kernel':10}{'engine':>8}{'ms':>10}{'bounds':>9}" + "".join(f"{name:>9}" for name in CHECKS))
    for name in chosen.kernels:
        print(row(name, "jit", jit_variants(name, small=chosen.small), chosen.runs), flush=True)
        if chosen.interp:
            print(row(name, "interp", interp_variants(name), max(1, chosen.runs // 3)), flush=True)
    print("goals of mmtiled on the JIT: " + ", ".join(f"{check} {goal}x" for check, goal in GOALS.items()))


def row(name: str, engine: str, variants: dict[str, Run], runs: int) -> str:
    """One engine on one kernel: milliseconds as usual, and the ratios."""
    medians = measured(variants, runs)
    usual = medians["usual"]
    bounds = f"{usual / medians['nothing']:9.2f}" if "nothing" in medians else f"{'':9}"
    ratios = "".join(f"{medians[check] / usual:9.2f}" for check in CHECKS)
    return f"{name:10}{engine:>8}{1000 * usual:10.1f}{bounds}{ratios}"


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


def jit_variants(name: str, *, small: bool) -> dict[str, Run]:
    """On the JIT: without bounds, as usual, and with each check."""
    work = workload(name, small=small)
    kernel, trusting = (ptxvm.load(KERNELS / "kernels.ptx").kernel(name) for _ in range(2))
    with_bounds = Memory._compare, Ranges._compare  # noqa: SLF001 - to measure what they cost
    Memory._compare = Ranges._compare = lambda *_: None  # type: ignore[method-assign]  # noqa: SLF001
    try:
        launched(trusting, work, "jit", ())()
    finally:
        Memory._compare, Ranges._compare = with_bounds  # type: ignore[method-assign]  # noqa: SLF001
    found = {"nothing": launched(trusting, work, "jit", ()), "usual": launched(kernel, work, "jit", ())}
    return found | {check: launched(kernel, work, "jit", (check,)) for check in CHECKS}


def interp_variants(name: str) -> dict[str, Run]:
    """On the interpreter: as usual, and with each check."""
    work = workload(name, small=True)
    kernel = ptxvm.load(KERNELS / "kernels.ptx").kernel(name)
    found = {"usual": launched(kernel, work, "interp", ())}
    return found | {check: launched(kernel, work, "interp", (check,)) for check in CHECKS}


def workload(name: str, *, small: bool) -> dict[str, Any]:
    """The arguments of a kernel."""
    from workloads import work  # noqa: PLC0415 - it lies beside the kernels

    found: dict[str, Any] = work(name, small=small)
    return found


def launched(kernel: ptxvm.Kernel, work: dict[str, Any], engine: str, check: tuple[str, ...]) -> Run:
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
