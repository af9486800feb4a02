"""Prints findings in any of the formats of `ptxvm check --format`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Protocol

from ptxvm.diagnostics.diagnostic import Diagnostic, Severity

FORMATS = ("text", "ptxas", "json", "sarif")
"""The names of the formats."""


class Text(Protocol):
    """What a renderer asks of a source; `ptxvm.syntax.Source` is one."""

    @property
    def name(self) -> str:
        """The file, as the user named it."""
        ...

    @property
    def text(self) -> str:
        """All of it."""
        ...

    def line(self, number: int) -> str:
        """A line without its end, counted from 1; empty past the last."""
        ...

    def location(self, offset: int) -> tuple[int, int]:
        """The line and column of a character, both from 1."""
        ...


Findings = Sequence[tuple[Text, Sequence[Diagnostic]]]
"""Sources, each with what was found in it."""


def render(findings: Findings, form: str = "text", *, width: int = 80, color: bool = False) -> str:
    """The findings of some sources in a format, ending with a line end; `width` and `color` are for `text`."""
    if form == "text":
        from ptxvm.diagnostics import terminal  # noqa: PLC0415 - each renderer is loaded when somebody wants it

        return terminal.render(findings, width=width, color=color)
    if form not in FORMATS:
        message = f"no such format: {form!r}; there are {', '.join(FORMATS)}"
        raise ValueError(message)
    renderer = importlib.import_module(f"ptxvm.diagnostics.{form}")
    text: str = renderer.render(findings)
    return text


def summary(diagnostics: Sequence[Diagnostic]) -> str:
    """How many there are of each severity: `2 errors, 1 warning`; empty if there is nothing to count."""
    counts = [(severity, sum(found.severity is severity for found in diagnostics)) for severity in Severity]
    return ", ".join(f"{count} {severity}{'s' if count > 1 else ''}" for severity, count in counts if count)
