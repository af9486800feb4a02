"""The public surface."""

from __future__ import annotations

from ptxvm.analysis.check import analyse
from ptxvm.diagnostics import Diagnostic
from ptxvm.syntax.source import Source


def check(source: str | bytes, target: str | None = None) -> list[Diagnostic]:
    """Every diagnostic of a PTX text, in the order of the text."""
    _, report = analyse(Source(source), target)
    return report.diagnostics
