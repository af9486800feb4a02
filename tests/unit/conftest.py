"""Runs pytest with one of ptxvm's plugins, for the tests of these; takes modules away for a test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest


@dataclass(frozen=True)
class Run:
    """A run of pytest that has ended."""

    code: int
    out: str
    err: str

    @property
    def outcomes(self) -> dict[str, str]:
        """The outcome of each test by its name, from the summary."""
        found = re.findall(r"^(PASSED|FAILED|ERROR) test_them\.py::(\S+)", self.out, re.MULTILINE)
        return {name: outcome for outcome, name in found}


@pytest.fixture
def run_pytest(tmp_path: Path) -> Callable[..., Run]:
    """`run_pytest(plugin, tests, *options, **files)` runs tests in a process of their own, with no plugin but that."""

    def run(plugin: str, tests: str, *options: str, **files: str) -> Run:
        for name, text in {"test_them.py": tests, **files}.items():
            (tmp_path / name).write_text(text)
        command = [sys.executable, "-m", "pytest", "-p", plugin, "-rA", "-p", "no:cacheprovider", *options]
        environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        for name in ("PYTEST_ADDOPTS", "CI"):  # in continuous integration pytest writes messages in its summary again
            environment.pop(name, None)
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return Run(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def forget_modules(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """`forget_modules(prefix)`: modules whose names begin so are imported anew, until the test ends.

    An import sets the module as an attribute of its package, so that both have to be as before.
    """

    def forget(prefix: str) -> None:
        for name, module in [*sys.modules.items()]:
            if name.startswith(prefix):
                package, _, own = name.rpartition(".")
                if (parent := gone.get(package) or sys.modules.get(package)) is not None:
                    monkeypatch.setattr(parent, own, module, raising=False)
                gone[name] = module
                monkeypatch.delitem(sys.modules, name)

    gone: dict[str, ModuleType] = {}
    return forget
