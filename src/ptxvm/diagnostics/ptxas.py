"""Findings as `ptxas` prints them, for tools that read its output.

ptxas saxpy.ptx, line 4; fatal   : Parsing error near '_': syntax error
ptxas fatal   : Ptx assembly aborted due to errors
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm.diagnostics.codes import explain
from ptxvm.diagnostics.diagnostic import Diagnostic, Severity
from ptxvm.diagnostics.findings import Findings, Text

ABORTED = "ptxas fatal   : Ptx assembly aborted due to errors"
_WORDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "info"}


def render(findings: Findings) -> str:
    """A line for each finding up to the first error at which ptxas stops, and the verdict."""
    found: list[str] = []
    for source, diagnostics in findings:
        found += lines(source, diagnostics)
        if any(diagnostic.severity is Severity.ERROR for diagnostic in diagnostics):
            found.append(ABORTED)
    return "".join(f"{line}\n" for line in found)


def lines(source: Text, diagnostics: Sequence[Diagnostic]) -> list[str]:
    """The findings of a source, up to the first error at which ptxas stops."""
    found = []
    for line, diagnostic in sorted(((_line(each, source), each) for each in diagnostics), key=lambda pair: pair[0]):
        fatal = stops(diagnostic)
        word = "fatal" if fatal else _WORDS[diagnostic.severity]
        place = f" {source.name}, line {line};" if line else ""
        found.append(f"ptxas{place} {word:<8}: {diagnostic.ptxas or diagnostic.message}")
        if fatal:
            break
    return found


def stops(diagnostic: Diagnostic) -> bool:
    """Whether ptxas reads no further."""
    code = explain(diagnostic.code)
    return code is not None and code.stops_ptxas and diagnostic.severity is Severity.ERROR


def _line(diagnostic: Diagnostic, source: Text) -> int:
    """Where ptxas notices an error of syntax: at the last of the related places, if there are any."""
    if diagnostic.related and stops(diagnostic):
        return source.location(diagnostic.related[-1][1].start)[0]
    return diagnostic.line
