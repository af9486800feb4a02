"""Prints findings in any of the formats of `ptxvm check --format`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from ptxvm.diagnostics.diagnostic import Diagnostic, Severity
from ptxvm.diagnostics.findings import Findings

FORMATS = ("text", "ptxas", "json", "sarif", "junit", "github")
"""The names of the formats."""


def render(findings: Findings, form: str = "text", *, width: int = 80, color: bool = False) -> str:
    """The findings of some sources in a format, ending with a line end; `width` and `color` are for `text`."""
    if form == "text":
        from ptxvm.diagnostics import terminal  # noqa: PLC0415 - each renderer is loaded when it is first used

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
