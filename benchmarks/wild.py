"""The kernels of many kinds in `shared/kernels/wild` beside C: the figures, and the table of docs/explanation/speed.md.

ptxvm bench wild                    # the figures
python benchmarks/wild.py           # the table, as Markdown
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SCRIPT = HERE.parents[1] / "shared" / "kernels" / "wild" / "speed.py"


def kernels(script: Path) -> list[str]:
    """The names of all kernels."""
    names: str = _run(script.parent, ["-c", "import work; print(*work.W)"])
    return names.split()


def speed(script: Path, kernel: str, rounds: int) -> dict[str, Any]:
    """The figures of one kernel: C's processor time over ptxvm's, in the best code, on one core and in turn."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "speed.json")
        # The script ends with 1 where a kernel is slower than it asks for.
        _run(script.parent, [str(script), "--need", "0", "--rounds", str(rounds), "--json", str(file), kernel])
        found: dict[str, Any] = json.loads(file.read_text())[kernel]
    return found


def _run(folder: Path, words: list[str]) -> str:
    """What a script of the folder prints."""
    first = min(os.sched_getaffinity(0))
    done = subprocess.run(  # noqa: S603 - our own statements
        [sys.executable, *words], cwd=folder, check=True, capture_output=True, text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {first}),
    )  # fmt: skip
    return done.stdout


def table(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    """The kernels from the slowest to the fastest, as Markdown; then their geometric mean."""
    yield "| kernel | C's time / ours | range | ms | C's ms |"
    yield "| --- | --- | --- | --- | --- |"
    for kernel, each in sorted(found.items(), key=lambda item: item[1]["cpu"]):
        low, high = each["spread"]
        yield f"| {kernel} | {each['cpu']:.2g} | {low:.2g} to {high:.2g} | {each['ms']:.3g} | {each['c_ms']:.3g} |"
    yield f"\nThe geometric mean is {statistics.geometric_mean(each['cpu'] for each in found.values()):.2f}."


if __name__ == "__main__":
    print(*table({kernel: speed(SCRIPT, kernel, 3) for kernel in kernels(SCRIPT)}), sep="\n")
