"""Findings as workflow commands of GitHub Actions, which shows them beside the changed lines of a pull request."""

from __future__ import annotations

from ptxvm.diagnostics.diagnostic import Diagnostic, Severity
from ptxvm.diagnostics.findings import Findings, Text

_WORDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = _DATA | {":": "%3A", ",": "%2C"}


def render(findings: Findings) -> str:
    """A line for each finding: `::error file=a.ptx,line=7,col=8,title=P0305::...`."""
    return "".join(_line(source, each) for source, diagnostics in findings for each in diagnostics)


def _line(source: Text, found: Diagnostic) -> str:
    line, column = source.location(found.span.start)
    end_line, end_column = source.location(found.span.end)
    fields: dict[str, object] = {"file": source.name, "line": line, "endLine": end_line}
    if line == end_line:  # else GitHub ignores columns
        fields |= {"col": column, "endColumn": max(end_column - 1, column)}
    fields["title"] = found.code
    told = "\n".join(filter(None, (found.message, found.note, found.help and f"help: {found.help}")))
    properties = ",".join(f"{name}={_escaped(str(value), _PROPERTY)}" for name, value in fields.items())
    return f"::{_WORDS[found.severity]} {properties}::{_escaped(told, _DATA)}\n"


def _escaped(text: str, codes: dict[str, str]) -> str:
    return "".join(codes.get(character, character) for character in text)
