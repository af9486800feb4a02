import importlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import ptxvm
from ptxvm.campaign.outcome import Verdict
from ptxvm.campaign.session import Campaign, campaign

Run = Callable[..., Campaign]


def test_a_function_is_called_with_each_combination(tmp_path: Path, subjects: Path) -> None:
    found = ptxvm.campaign(f"{write(tmp_path, subjects, 'odd_fails')}", folder=tmp_path / "found", workers=1, shrink=False)
    assert found.counts == {Verdict.PASSED: 5, Verdict.ERROR: 5}
    assert found.reasons[0].count == 5
    assert found.reasons[0].first.outcome.message == "AssertionError: 1 is odd"


def test_parameters_may_stand_behind_a_function(tmp_path: Path, subjects: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the page on campaigns writes them."""
    monkeypatch.syspath_prepend(subjects.parent)
    case = importlib.import_module(subjects.stem).odd_fails
    found = ptxvm.campaign(case, {"n": [2, 3]}, folder=tmp_path / "found", workers=1, shrink=False)
    assert [each.parameters for each in found.failures()] == [{"n": 3}]


def test_a_function_has_limits(tmp_path: Path, subjects: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A case that takes longer, or allocates more, fails by name, and the others go on."""
    monkeypatch.syspath_prepend(subjects.parent)
    case = importlib.import_module(subjects.stem)
    limits = {"seconds": 5, "memory": 64}
    found = ptxvm.campaign(case.allocates, {"n": [1, 200]}, limits=limits, folder=tmp_path / "memory", workers=1, shrink=False)
    assert [(each.parameters, each.outcome.verdict) for each in found.failures()] == [({"n": 200}, Verdict.MEMORY)]
    limits = {"seconds": 0.5}
    found = ptxvm.campaign(case.sleeps, {"n": [0, 1]}, limits=limits, folder=tmp_path / "time", workers=1, shrink=False)
    assert [(each.parameters, each.outcome.verdict) for each in found.failures()] == [({"n": 1}, Verdict.TIMEOUT)]


@pytest.mark.parametrize("more", [{"parameters": {"n": [1]}}, {"limits": {"seconds": 5}}])
def test_what_is_declared_has_its_parameters_and_limits_there(more: dict[str, dict[str, object]]) -> None:
    with pytest.raises(TypeError, match="parameters and limits are those of a function"):
        campaign({"campaign": {"function": "json:dumps"}}, **more)  # type: ignore[arg-type]


def write(where: Path, subjects: Path, function: str, **parameters: object) -> Path:
    file = where / "campaign.toml"
    extra = "".join(f"{name} = {json.dumps(value)}\n" for name, value in parameters.items())
    file.write_text(f'[campaign]\nfunction = "{subjects}:{function}"\n[parameters]\nn = {{ range = [10] }}\n{extra}')
    return file


def test_a_campaign_whose_process_is_killed_goes_on_without_losing_or_repeating_a_case(tmp_path: Path, subjects: Path) -> None:
    """The files count the runs: cases with a row when the process was killed run no more."""
    runs = tmp_path / "runs"
    runs.mkdir()
    file = write(tmp_path, subjects, "noted", folder=[str(runs)])
    text = file.read_text().replace("[10]", "[60]")
    file.write_text(text)
    code = f"import ptxvm; ptxvm.campaign({str(file)!r}, folder={str(tmp_path / 'found')!r}, workers=2)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment)
    while len(list(runs.iterdir())) < 20:
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with closing(sqlite3.connect(tmp_path / "found" / "results.sqlite")) as connection:
        ended = {number for (number,) in connection.execute("SELECT number FROM cases")}
    assert 10 < len(ended) < 60
    found = campaign(file, folder=tmp_path / "found", workers=2)
    assert found.counts == {Verdict.PASSED: 60}
    counted = {int(each.name): each.stat().st_size for each in runs.iterdir()}
    assert sorted(counted) == list(range(60))
    assert all(counted[number] == 1 for number in ended)


def test_the_results_of_another_campaign_are_left_alone(run: Run) -> None:
    run("passes", {"n": [1]})
    with pytest.raises(ValueError, match="has the results of another campaign"):
        run("passes", {"n": [1, 2]})


def test_progress_is_told(run: Run) -> None:
    told: list[tuple[int, int, int]] = []
    run("odd_fails", {"n": {"range": [20]}}, progress=lambda *counts: told.append(counts))
    assert (told[0], told[-1]) == ((0, 0, 20), (20, 10, 20))
    assert told == sorted(told)


@pytest.mark.parametrize(
    ("what", "error", "said"),
    [
        (5, TypeError, "a campaign is a TOML file, its tables or a function, not 5"),
        (lambda n: None, ValueError, "stands at the top of a file"),
        (print, ValueError, "stands at the top of a file"),
    ],
)
def test_what_is_no_campaign(what: object, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        campaign(what)


def test_the_number_of_processes_is_checked() -> None:
    with pytest.raises(ValueError, match="a campaign is run by 1 or more processes, not 0"):
        campaign({"campaign": {"function": "json:dumps"}}, workers=0)
