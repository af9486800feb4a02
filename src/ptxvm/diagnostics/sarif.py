"""Findings as SARIF 2.1.0, which code hosts and editors show beside the source."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib import metadata
from typing import Any
from urllib.parse import quote

from ptxvm.diagnostics.codes import explain
from ptxvm.diagnostics.diagnostic import Diagnostic, Severity, Span
from ptxvm.diagnostics.render import Findings, Text

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def render(findings: Findings) -> str:
    """A log with one run."""
    pairs = [(source, diagnostic) for source, diagnostics in findings for diagnostic in diagnostics]
    codes = sorted({diagnostic.code for _, diagnostic in pairs})
    driver = {"name": "ptxvm", "version": _version(), "rules": [_rule(code) for code in codes]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "artifacts": [{"location": {"uri": uri}} for uri in sorted({_uri(source) for source, _ in findings})],
        "results": [_result(diagnostic, source, codes) for source, diagnostic in pairs],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _version() -> str:
    try:
        return metadata.version("ptxvm")
    except metadata.PackageNotFoundError:
        return "0"


def _rule(code: str) -> dict[str, Any]:
    entry = explain(code)
    if entry is None:
        return {"id": code}
    return {
        "id": code,
        "shortDescription": {"text": entry.title},
        "fullDescription": {"text": entry.explanation},
        "help": {"text": entry.explanation},
    }


def _result(diagnostic: Diagnostic, source: Text, codes: list[str]) -> dict[str, Any]:
    remarks = _sentences([diagnostic.message, diagnostic.label, diagnostic.note, diagnostic.help])
    result: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": codes.index(diagnostic.code),
        "level": _LEVELS[diagnostic.severity],
        "message": {"text": remarks},
        "locations": [{"physicalLocation": _physical(diagnostic.span, source)}],
    }
    if diagnostic.related:
        result["relatedLocations"] = [
            {"id": number, "message": {"text": message}, "physicalLocation": _physical(span, source)}
            for number, (message, span) in enumerate(diagnostic.related, start=1)
        ]
    if diagnostic.details:
        result["properties"] = diagnostic.details
    return result


def _sentences(texts: Iterable[str]) -> str:
    return "; ".join(text for text in texts if text)


def _physical(span: Span, source: Text) -> dict[str, Any]:
    line, column = source.location(span.start)
    end_line, end_column = source.location(span.end)
    region = {
        "startLine": line,
        "startColumn": column,
        "endLine": end_line,
        "endColumn": end_column,
        "charOffset": span.start,
        "charLength": span.end - span.start,
    }
    return {"artifactLocation": {"uri": _uri(source)}, "region": region}


def _uri(source: Text) -> str:
    """The name of a source as a URI reference, in the characters that one may have."""
    return quote(source.name.replace("\\", "/"), safe="/:._-~")
