"""Run numba-cuda's own tests, from its wheel, on ptxvm's driver, and compare the failures with numba_expected.toml.

    python tests/clients/numba_suite.py              # all of them
    python tests/clients/numba_suite.py cudapy/test_sm.py nrt

Each file of tests has a process of its own: a kernel that fails leaves its error to the context, and so to all later tests.
The exit status is 1 where a test fails that is not expected to, or passes though it is.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import distribution
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

import limited

HERE = Path(__file__).parent
EXPECTED = HERE / "numba_expected.toml"
LIMIT = 1200  # seconds of processor time of a file and all that it starts: a busy machine changes nothing
IDLE = 600  # seconds in which a file uses no processor: it waits for what does not come
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


class Outcome(NamedTuple):
    """What became of a test: its file, class and name, and the first line of its failure."""

    name: str
    outcome: str
    message: str = ""


def main(arguments: Sequence[str]) -> int:
    """Run files of tests, all of them by default."""
    parser = argparse.ArgumentParser(description="numba-cuda's tests on ptxvm's driver")
    parser.add_argument("parts", nargs="*", metavar="FOLDER|FILE", help="in numba.cuda.tests; all by default")
    parser.add_argument("-n", type=int, default=os.cpu_count(), help="processes at once")
    chosen = parser.parse_args(arguments)
    root = Path(str(distribution("numba-cuda").locate_file("numba_cuda/numba/cuda/tests")))
    files = sorted(root.rglob("test_*.py"), key=lambda path: -path.stat().st_size)  # long ones first
    files = [path for path in files if "benchmarks" not in path.parts and is_chosen(path.relative_to(root), chosen.parts)]
    if not files:
        parser.error(f"no tests are called {' '.join(chosen.parts)}")
    begun = time.perf_counter()
    outcomes: list[Outcome] = []
    with ThreadPoolExecutor(chosen.n) as pool:
        for found in pool.map(lambda path: run(path, root), files):
            outcomes += found
    return report(outcomes, time.perf_counter() - begun)


def is_chosen(path: Path, parts: Sequence[str]) -> bool:
    """Is a file one of those that the command names?"""
    return not parts or any(path.is_relative_to(part) for part in parts)


def run(path: Path, root: Path) -> list[Outcome]:
    """The outcomes of the tests in a file."""
    name = path.relative_to(root).as_posix()
    with tempfile.TemporaryDirectory(prefix="ptxvm-numba-") as folder:
        results = Path(folder, "results.xml")
        command = [
            *(sys.executable, "-m", "ptxvm", "exec", "--", sys.executable, "-m", "pytest"),
            *("-c", str(HERE / "pytest.ini"), "--rootdir", folder, "--confcutdir", str(path.parent)),
            *("-o", "consider_namespace_packages=true", "-p", "numba_plugin", "-q"),
            *(f"--timeout={IDLE}", f"--junitxml={results}", str(path)),
        ]
        paths = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH", "")])])
        environment = os.environ | {"PYTHONPATH": paths}
        pytest = limited.run(command, seconds=LIMIT, idle=IDLE, cwd=folder, env=environment)
        if pytest.limit:
            print(f"{name}: {pytest.limit}", flush=True)
            return [Outcome(name, FAILED, pytest.limit)]
        found = list(read(results, name)) if results.exists() else []
    nothing_collected = 5
    if pytest.status > 1 and pytest.status != nothing_collected:
        found.append(Outcome(name, FAILED, f"pytest ended with {pytest.status}: {pytest.errors[-500:]}"))
    counts = Counter(each.outcome for each in found)
    said = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
    print(f"{name}: {said}; {pytest.seconds:.0f} s of processor time", flush=True)
    return found


def read(results: Path, file: str) -> Iterator[Outcome]:
    """The outcomes in a report in the form of JUnit; a test with subtests fails if one of them does."""
    found: dict[str, Outcome] = {}
    for case in ET.parse(results).iter("testcase"):  # noqa: S314 - pytest wrote it
        name = f"{file}::{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        failure = next((each for kind in ("failure", "error") for each in case.findall(kind)), None)
        if failure is not None:
            found[name] = Outcome(name, FAILED, str(failure.get("message", "")).partition("\n")[0])
        elif name not in found or found[name].outcome != FAILED:
            skipped = case.find("skipped")
            is_skipped = skipped is not None and skipped.get("type") != "pytest.xfail"
            found[name] = Outcome(name, SKIPPED if is_skipped else PASSED)
    yield from found.values()


def report(outcomes: Sequence[Outcome], seconds: float) -> int:
    """Print what differs from what is expected; 1 where anything does."""
    groups = tomllib.loads(EXPECTED.read_text())["failures"]
    expected = {name: group["cause"] for group in groups for name in group["tests"]}
    failed = {each.name: each.message for each in outcomes if each.outcome == FAILED}
    passed = {each.name for each in outcomes if each.outcome == PASSED}
    unexpected, fixed = sorted(failed.keys() - expected.keys()), sorted(passed & expected.keys())
    for name in unexpected:
        print(f"FAILED {name}: {failed[name]}")
    for name in fixed:
        print(f"PASSED {name}, which is expected to fail: {expected[name]}")
    ran = len(failed) + len(passed)
    skipped = sum(each.outcome == SKIPPED for each in outcomes)
    print(f"{len(passed)} of {ran} tests passed ({len(passed) / max(ran, 1):.2%}), {skipped} were skipped: {seconds:.0f} s")
    print(f"{len(failed)} failed, {len(unexpected)} of them unexpectedly")
    return int(bool(unexpected or fixed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
