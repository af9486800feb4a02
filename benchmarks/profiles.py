"""What a profile costs: the kernels of `shared/kernels` and `kernels/wild` with one, against the same without, on one core.

    python benchmarks/profiles.py [KERNEL…] [--small] [--runs N]

Times are processor time of this process, medians of runs that are interleaved, without checks.  The last line has the median of
all ratios and the greatest one.
"""

from __future__ import annotations

import argparse
import importlib
import re
import statistics
import sys
from collections.abc import Callable, Iterator
from functools import partial

from checks import KERNELS, Run, measured, workload

import ptxvm

GOAL = 3.0  # times the time of the JIT
Prepare = Callable[[bool], tuple[Run, Run]]  # of a launch, with a profile or without: it, and what comes before it
VARIANTS = {"none": False, "profile": True}


def main() -> None:
    """Print a line for each kernel, and one for all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="*")
    parser.add_argument("--small", action="store_true", help="the small sizes, of the kernels that have them")
    parser.add_argument("--runs", type=int, default=5)
    chosen = parser.parse_args()
    sys.argv[1:] = []  # a script of `kernels/wild` reads its own arguments
    ratios: list[float] = []
    for name, prepare in [*usual(small=chosen.small), *wild()]:
        if chosen.kernels and name not in chosen.kernels:
            continue
        made = {key: prepare(profile) for key, profile in VARIANTS.items()}
        runs, resets = ({key: each[n] for key, each in made.items()} for n in range(2))
        medians = measured(runs, chosen.runs, resets)
        ratios.append(medians["profile"] / medians["none"])
        print(f"{name:14}{1000 * medians['none']:10.2f} ms{ratios[-1]:8.2f}", flush=True)
    print(f"median {statistics.median(ratios):.2f}, greatest {max(ratios):.2f} (goal {GOAL})")


def usual(*, small: bool) -> Iterator[tuple[str, Prepare]]:
    """The kernels of `shared/kernels`."""
    text = (KERNELS / "kernels.ptx").read_text()
    module = ptxvm.load(text)
    for name in re.findall(r"\.entry (\w+)", text):
        yield name, partial(usual_launch, module.kernel(name), small)


def usual_launch(kernel: ptxvm.Kernel, small: bool, profile: bool) -> tuple[Run, Run]:  # noqa: FBT001
    """A launch of one of them."""
    work = workload(kernel.name, small=small)
    return partial(kernel.launch, work["grid"], work["bd"], work["args"], check=(), profile=profile), work.get(
        "reset", lambda: None
    )


def wild() -> Iterator[tuple[str, Prepare]]:
    """The kernels of `kernels/wild`."""
    sys.path.insert(0, str(KERNELS / "wild"))
    for name in importlib.import_module("work").W:
        yield name, partial(wild_launch, name)


def wild_launch(name: str, profile: bool) -> tuple[Run, Run]:  # noqa: FBT001
    """The launches of one of them."""
    _, _, launch, _, reset, _ = importlib.import_module("speed").prepare(name, [], check=(), profile=profile)
    return launch, reset


if __name__ == "__main__":
    main()
