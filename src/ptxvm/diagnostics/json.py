"""Findings as JSON: one list of objects, the same fields in each."""

from __future__ import annotations

import json

from ptxvm.diagnostics.diagnostic import Diagnostic, Span
from ptxvm.diagnostics.findings import Findings, Text


def render(findings: Findings) -> str:
    """The list, indented; lines and columns count from 1, offsets from 0, all of them in characters.

    What a checker found has its details as `finding`.
    """
    return json.dumps(objects(findings), indent=2) + "\n"


def objects(findings: Findings) -> list[dict[str, object]]:
    """The list, before it is text."""
    return [_object(diagnostic, source) for source, diagnostics in findings for diagnostic in diagnostics]


def _object(diagnostic: Diagnostic, source: Text) -> dict[str, object]:
    return {
        "file": source.name,
        "severity": str(diagnostic.severity),
        "code": diagnostic.code,
        "message": diagnostic.message,
        **_place(diagnostic.span, source),
        "label": diagnostic.label,
        "note": diagnostic.note,
        "help": diagnostic.help,
        "ptxas": diagnostic.ptxas,
        "related": [{"message": message, **_place(span, source)} for message, span in diagnostic.related],
        **({"finding": diagnostic.details} if diagnostic.details else {}),
    }


def _place(span: Span, source: Text) -> dict[str, int]:
    line, column = source.location(span.start)
    end_line, end_column = source.location(span.end)
    return {
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
        "start": span.start,
        "end": span.end,
    }
