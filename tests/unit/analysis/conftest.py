"""What the checks of declarations and directives find, for the tests of the analysis."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ptxvm.analysis.check import analyse
from ptxvm.analysis.program import Program
from ptxvm.diagnostics import Diagnostic
from ptxvm.syntax.source import Source

HEAD = ".version 9.5\n.target sm_100a\n.address_size 64\n"


def whole(text: str) -> str:
    """A module: the text, with a head if it has none."""
    return text if ".version" in text else HEAD + text


@pytest.fixture
def errors() -> Callable[[str], list[tuple[str, str]]]:
    """The errors of a module, each as its code and the text that it points at."""

    def of(text: str) -> list[tuple[str, str]]:
        source = Source(whole(text))
        _, report = analyse(source)
        found = [d for d in report.diagnostics if d.severity == "error"]
        return [(d.code, source.text[d.span.start : d.span.end]) for d in found]

    return of


@pytest.fixture
def ptxas_words() -> Callable[[str], list[str]]:
    """The errors of a module as ptxas words them."""

    def of(text: str) -> list[str]:
        _, report = analyse(Source(whole(text)))
        return [d.ptxas for d in report.diagnostics if d.severity == "error"]

    return of


@pytest.fixture
def program() -> Callable[[str], Program]:
    """The bound program of a module that has no errors."""

    def of(text: str) -> Program:
        found, report = analyse(Source(whole(text)))
        assert not report.has_errors, report.diagnostics
        return found

    return of


@pytest.fixture
def in_full(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[Diagnostic]]:
    """The diagnostics of a text that is read statement by statement, whatever lines are known."""

    def of(text: str) -> list[Diagnostic]:
        with monkeypatch.context() as patched:
            patched.setattr("ptxvm.analysis.check.outline", lambda _: None)
            _, report = analyse(Source(text))
        return report.diagnostics

    return of
