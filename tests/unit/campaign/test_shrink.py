import math
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ptxvm.campaign import shrink
from ptxvm.campaign.reproduction import CaseFailed, repeat
from ptxvm.campaign.session import Campaign, campaign
from ptxvm.campaign.shrink import fewest, simplest, statement_extents

SAXPY = Path(__file__).parents[3] / "examples" / "saxpy.ptx"


def test_each_parameter_becomes_as_simple_as_it_can() -> None:
    """The first is needed from 7 on, of the others none: an oracle of two lines."""
    tried = []

    def fails(position: tuple[int, ...]) -> bool:
        tried.append(position)
        return position[0] >= 7

    assert simplest((900, 3, 12), fails) == (7, 0, 0)
    assert len(tried) < 60


def test_statements_that_the_failure_does_not_need_go() -> None:
    """What is left has the two statements that are needed, at their lines."""
    lines = [".version 8.0", ".target sm_80", ".visible .entry k() {", *(f"add.u32 %r{n}, 1, 2;" for n in range(40)), "}"]
    text = "\n".join(lines)
    left = fewest(text, statement_extents(text), lambda text: "%r7," in text and "%r31," in text and ".entry" in text)
    assert [line for line in left.splitlines() if line.strip()] == [lines[2], lines[10], lines[34], "}"]
    assert left.splitlines()[10] == lines[10]


@pytest.fixture
def short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Campaign:
    """A campaign in which the last array is too short, for some sizes; its failures become small however long it takes."""
    monkeypatch.setattr(shrink, "PATIENCE", math.inf)
    tables = {
        "campaign": {"kernel": str(SAXPY), "name": "short"},
        "parameters": {"n": [1, 31, 32, 500, 1000], "block": [32, 64], "engine": ["interp"]},
        "launch": {"grid": "{cdiv(n, block)}", "args": ["{n}", "2.0", "f32[{n}]", "f32[{min(n, 400)}]"]},
    }
    return campaign(tables, folder=tmp_path / "found", workers=1)


def test_a_failure_becomes_small_and_its_test_fails_for_the_same_reason(short: Campaign) -> None:
    """The simplest size that fails is 500; the branch around the access, for one, is not needed."""
    (test,) = short.tests
    text, ptx = test.read_text(), test.with_suffix(".ptx").read_text()
    assert "PARAMETERS = {'n': 500, 'block': 32, 'engine': 'interp'}" in text
    assert "ld.global.f32" in ptx
    assert "bra" not in ptx
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", str(test)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "fault out-of-bounds" in done.stdout


def test_what_was_made_small_fails_alike_where_the_test_is_run_as_a_script(short: Campaign) -> None:
    done = subprocess.run([sys.executable, str(short.tests[0])], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "CaseFailed: fault out-of-bounds at <saxpy>" in done.stderr


def test_the_test_of_a_kernel_passes_when_that_is_mended(tmp_path: Path) -> None:
    """It runs the kernel of the campaign, and no copy of it."""
    right, kernel = SAXPY.read_text(), tmp_path / "saxpy.ptx"
    kernel.write_text(right.replace("@%p1 bra", "// @%p1 bra"))
    tables = {
        "campaign": {"kernel": str(kernel), "name": "unguarded"},
        "parameters": {"n": [32, 33]},
        "launch": {"grid": "{cdiv(n, 32)}", "block": 32, "args": ["{n}", "2.0", "f32[{n}]", "f32[{n}]"]},
    }
    (test,) = campaign(tables, folder=tmp_path / "found", workers=1).tests
    assert test.with_suffix(".ptx").is_file()
    repeats = runpy.run_path(str(test))[test.stem]
    with pytest.raises(CaseFailed, match="fault out-of-bounds"):
        repeats()
    kernel.write_text(right)
    repeats()


def test_repeating_a_case_raises_as_it_failed(tmp_path: Path, subjects: Path) -> None:
    tables = {"campaign": {"function": f"{subjects}:odd_fails"}}
    repeat(tables, {"n": 2}, tmp_path)
    with pytest.raises(CaseFailed, match="AssertionError: 3 is odd"):
        repeat(tables, {"n": 3}, tmp_path)


def test_the_test_of_a_function_has_the_simplest_parameters(run: Callable[..., Campaign]) -> None:
    found = run("fails_from", {"n": {"range": [40]}, "m": {"range": [3]}}, shrink=True)
    assert "PARAMETERS = {'n': 7, 'm': 0}" in found.tests[0].read_text()
