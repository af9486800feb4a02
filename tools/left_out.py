"""Counts the tests that are made from the reference data in `shared`, by function; tests/left_out.json has them.

Without that folder they cannot be collected, so a run without it prints this count.  `python tools/left_out.py` writes the
file anew; it needs the folder beside the repository.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILE = ROOT / "tests" / "left_out.json"
COPIED = (
    "tests",
    "src",
    "docs",
    "examples",
    "benchmarks",
    "tools",
    "README.md",
    "CONTRIBUTING.md",
    "pyproject.toml",
    "Makefile",
)


def main() -> None:
    """Write the file."""
    if not (ROOT.parent / "shared").is_dir():
        sys.exit("the reference data is missing: the count needs the folder `shared` beside the repository")
    found = left_out()
    FILE.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(f"{sum(found.values()):,} tests of {len(found)} functions need the reference data")


def left_out() -> dict[str, int]:
    """How many tests more each function has where the reference data is there."""
    with tempfile.TemporaryDirectory() as folder:
        alone = Path(folder) / "repository"
        alone.mkdir()
        for name in COPIED:
            copy(ROOT / name, alone / name)
        here, there = collected(ROOT), collected(alone)
    return {name: count - there[name] for name, count in sorted(here.items()) if count > there[name]}


def copy(source: Path, target: Path) -> None:
    """A file or a folder, without bytecode."""
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def collected(root: Path) -> Counter[str]:
    """The tests that a run in a folder would make, counted by function."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "--collect-only", "-p", "no:cacheprovider"]
    same = {**os.environ, "PTXVM_SEED": "0"}  # the seed chooses the instances of sampled tests
    done = subprocess.run(command, cwd=root, env=same, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
    if done.returncode:
        sys.exit(f"the tests in {root} cannot be collected:\n{done.stdout[-2000:]}{done.stderr}")
    lines = (line for line in done.stdout.splitlines() if "::" in line)
    return Counter(line.partition("[")[0] for line in lines)


if __name__ == "__main__":
    main()
