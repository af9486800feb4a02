"""Runs the command line in this process, as on a terminal of 80 columns without colours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ptxvm.cli import main


@dataclass
class Done:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


@pytest.fixture
def ptxvm(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Done]:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("PTXVM_TRACEBACK", raising=False)
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Done:
        code = main(words)
        printed = capsys.readouterr()
        return Done(code, printed.out, printed.err)

    return run


@pytest.fixture
def module(tmp_path: Path) -> Callable[..., str]:
    """Writes the text of a module into a file of the working folder; gives its name."""

    def write(text: str, name: str = "m.ptx") -> str:
        (tmp_path / name).write_text(text)
        return name

    return write
