"""No PTX ends the process: mutants of the conformance kernels run on the JIT, in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import numpy as np
import pytest

import ptxvm
from ptxvm.campaign.fuzz.kernels import mutated

MUTANTS = int(os.environ.get("PTXVM_MUTANTS", "20"))
BATCH = 20
CONFORMANCE = Path(__file__).parents[1] / "conformance"
# What runs a file of mutants: one after the other, each named before it runs; of kernels those that changed, of which the
# file beside it has the names, and all where a function changed.
RUNNER = """
import sys
from pathlib import Path
from ptxvm.campaign.fuzz.kernels import run_all
for path in sorted(Path(sys.argv[1]).glob("*.ptx")):
    print(path.name, flush=True)
    run_all(path.read_text(), path.with_suffix(".names").read_text().split())
print("all", flush=True)
"""


def kernels() -> list[str]:
    """The conformance files that run something."""
    return [
        p.read_text() for p in sorted(CONFORMANCE.rglob("*.ptx")) if "//: run" in p.read_text() and p.stat().st_size < 20_000
    ]


@pytest.mark.parametrize("batch", range(-(-MUTANTS // BATCH)))
def test_a_mutant_never_ends_the_process(batch: int, tmp_path: Path, rng: np.random.Generator) -> None:
    texts = kernels()
    written = 0
    while written < BATCH:
        text, names = mutated(texts[rng.integers(len(texts))], Random(int(rng.integers(1 << 62))))
        if any(d.severity == "error" for d in ptxvm.check(text)):
            continue
        (tmp_path / f"{written:03}.ptx").write_text(text)
        (tmp_path / f"{written:03}.names").write_text(" ".join(names))
        written += 1
    done = subprocess.run([sys.executable, "-c", RUNNER, str(tmp_path)], capture_output=True, text=True, check=False)
    last = done.stdout.split()[-1] if done.stdout.split() else ""
    if done.returncode or last != "all":
        text = (tmp_path / last).read_text() if last.endswith(".ptx") else ""
        pytest.fail(f"exit status {done.returncode} at {last}\n{done.stderr[-3000:]}\n{text}")
