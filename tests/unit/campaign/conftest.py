"""Campaigns of the functions in `subjects.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from this_process import InThisProcess

from ptxvm.campaign import spread, worker_process
from ptxvm.campaign.case import DeclaredWorkload
from ptxvm.campaign.declaration import declared
from ptxvm.campaign.session import Campaign, campaign

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def new_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are new processes, however many threads the process of the tests has."""
    monkeypatch.setattr(worker_process, "may_fork", lambda: False)


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "runner", InThisProcess)


@pytest.fixture
def subjects() -> Path:
    """The file of the functions."""
    return HERE / "subjects.py"


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Campaign]:
    """Runs a campaign of a function on one process, or as its tables say, in a folder of the test."""

    def run(function: str, parameters: dict[str, object], **more: Any) -> Campaign:  # those of `campaign`, and its limits
        tables: dict[str, dict[str, object]] = {
            "campaign": {"function": f"{HERE / 'subjects.py'}:{function}"},
            "parameters": parameters,
        }
        tables["limits"] = more.pop("limits", {})
        return campaign(tables, **{"folder": tmp_path / "found", "workers": 1, "shrink": False, **more})

    return run


@pytest.fixture
def sleepers(subjects: Path) -> DeclaredWorkload:
    """Three cases, of which case 1 takes very long."""
    return DeclaredWorkload(declared({"campaign": {"function": f"{subjects}:sleeps"}, "parameters": {"n": [0, 1, 2]}}))
