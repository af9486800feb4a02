"""What a run of the tests prints: failures when they happen, and what is left out without the reference data."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
SOME = """
import time, pathlib
def test_that_fails():
    assert 1 == 2, "no"
def test_that_waits():
    assert True
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs two tests in a copy of the settings, without a folder `shared` beside it."""
    root = tmp_path_factory.mktemp("alone") / "repository"
    (root / "tests").mkdir(parents=True)
    shutil.copy(TESTS.parent / "pyproject.toml", root)
    for name in ("conftest.py", "left_out.json"):
        shutil.copy(TESTS / name, root / "tests")
    (root / "tests" / "test_some.py").write_text(SOME)
    ours = ("PYTEST_", "COV_", "CI", "PTXVM_SHARED")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    command = [sys.executable, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider"]

    def done(**more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=root, env=environment | more, capture_output=True, text=True, check=False, timeout=600
        )

    return done


@pytest.fixture(scope="module")
def printed(run):
    done = run()
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("expected", [{"CI": "true"}, {"PTXVM_SHARED": "expected"}], ids=str)
def test_where_the_reference_data_is_expected_there_is_no_run_without_it(run, expected):
    done = run(**expected)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "the reference data is missing: " in done.stderr
    assert "passed" not in done.stdout


def test_a_failure_is_named_before_the_end(printed):
    named = re.search(r"^FAILED tests/test_some.py::test_that_fails: AssertionError: no", printed, re.MULTILINE)
    assert named is not None
    assert named.start() < printed.index("= FAILURES =")


def test_the_count_of_what_is_left_out_is_printed(printed):
    left = sum(json.loads((TESTS / "left_out.json").read_text()).values())
    assert f"{left:,} tests of the whole suite are left out: " in printed
    assert left > 500


def test_every_function_that_is_counted_is_there():
    for name in json.loads((TESTS / "left_out.json").read_text()):
        file, _, function = name.partition("::")
        assert f"def {function}(" in (TESTS.parent / file).read_text(encoding="utf-8"), name


@pytest.mark.long
def test_the_count_is_up_to_date(shared):
    sys.path.insert(0, str(TESTS.parent / "tools"))
    try:
        from left_out import left_out
    finally:
        sys.path.pop(0)
    assert left_out() == json.loads((TESTS / "left_out.json").read_text()), "python tools/left_out.py writes it anew"
