"""What the checks cost: the kernels of `shared/kernels` with each, against the same without any, on one core.

    python benchmarks/checks.py [KERNEL…] [--small] [--interp] [--wild] [--runs N]

Times are processor time of this process; the runs of all variants are interleaved, and the table shows the ratios of
medians.  `usual` is a launch that asks for nothing: a wrong access is a fault; without any check (`check=()`) it is not
even noticed.  `--interp` measures the exact checker too, at the small sizes and against its usual launch, which takes
minutes.  `--wild` measures the kernels of `shared/kernels/wild`, all unless some are named, and ends with their medians; what
compiled code leaves to the exact checker is marked, and not waited for.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import statistics
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
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
    parser.add_argument("--wild", action="store_true", help="the kernels of kernels/wild")
    parser.add_argument("--runs", type=int, default=7)
    chosen = parser.parse_args()
    if chosen.wild:
        return wild(chosen.kernels if chosen.kernels != ["mmtiled"] else [], chosen.runs)
    print(f"{'kernel':10}{'engine':>8}{'ms':>10}" + "".join(f"{name:>9}" for name in ("usual", *CHECKS)))
    for name in chosen.kernels:
        print(row(name, "jit", small=chosen.small, runs=chosen.runs), flush=True)
        if chosen.interp:
            print(row(name, "interp", small=True, runs=max(1, chosen.runs // 3)), flush=True)
    print("goals of mmtiled on the JIT: " + ", ".join(f"{check} {goal}x" for check, goal in GOALS.items()))
    return None


def wild(names: Sequence[str], runs: int) -> None:
    """The table of the kernels of `kernels/wild`."""
    sys.path.insert(0, str(KERNELS / "wild"))
    sys.argv[1:] = []  # the script there reads its own arguments
    work, speed = importlib.import_module("work"), importlib.import_module("speed")
    log = logging.getLogger("ptxvm.jit")
    log.addHandler(LeftAlone(logging.INFO))
    log.setLevel(logging.INFO)
    ratios: dict[str, list[float]] = {check: [] for check in CHECKS}
    print(f"{'kernel':14}{'ms':>8}" + "".join(f"{name:>9}" for name in CHECKS), flush=True)
    for name in names or work.W:
        variants: dict[str, Run] = {}
        resets: dict[str, Run] = {}
        for check in ("none", *CHECKS):
            _, _, launch, _, reset, _ = speed.prepare(name, [], check=() if check == "none" else (check,))
            if compiled(launch):
                variants[check], resets[check] = launch, reset
        medians = measured(variants, runs, resets)
        shown = ""
        for check in CHECKS:
            ratio = medians[check] / medians["none"] if check in medians else float("inf")
            ratios[check].append(ratio)
            shown += f"{ratio:9.2f}" if check in medians else f"{'interp':>9}"
        print(f"{name:14}{1000 * medians['none']:8.1f}{shown}", flush=True)
    print(f"{'median':22}" + "".join(f"{statistics.median(each):9.2f}" for each in ratios.values()))


class ExactChecker(Exception):  # noqa: N818 - it says what would run
    """Compiled code leaves a launch to the exact checker."""


class LeftAlone(logging.Handler):
    """Ends a launch where the exact checker would begin."""

    def emit(self, record: logging.LogRecord) -> None:
        """Raise for the message of the prefilter."""
        if record.msg.startswith("the exact checker runs"):
            raise ExactChecker


def compiled(launch: Run) -> bool:
    """Does compiled code judge it?"""
    try:
        launch()
    except ExactChecker:
        return False
    return True


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


def measured(variants: dict[str, Run], runs: int, resets: Mapping[str, Run] = MappingProxyType({})) -> dict[str, float]:
    """The median seconds of each variant; a first run of each, which compiles, does not count, nor do `resets` before a run."""
    for name, run in variants.items():
        resets.get(name, lambda: None)()
        run()
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(runs):
        for name, run in variants.items():
            resets.get(name, lambda: None)()
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
