"""Findings as SARIF 2.1.0, which code hosts and editors show beside the source."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha256
from importlib import metadata
from urllib.parse import quote

from ptxvm.diagnostics.code import DiagnosticCode
from ptxvm.diagnostics.codes import explain
from ptxvm.diagnostics.diagnostic import Diagnostic, Severity, Span
from ptxvm.diagnostics.findings import Findings, Text

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}
_FINGERPRINT = "primaryLocationLineHash"
"""The fingerprint that code hosts know: of the text of a line, so that a finding is the same where lines move."""

Pairs = Sequence[tuple[Text, Diagnostic]]


def render(findings: Findings) -> str:
    """A log with one run."""
    pairs = [(source, diagnostic) for source, diagnostics in findings for diagnostic in diagnostics]
    codes = sorted({diagnostic.code for _, diagnostic in pairs})
    driver = {"name": "ptxvm", "version": _version(), "rules": [_rule(code, pairs) for code in codes]}
    prints = _fingerprints(pairs)
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "artifacts": [{"location": {"uri": uri}} for uri in sorted({_uri(source) for source, _ in findings})],
        "results": [_result(diagnostic, source, codes, mark) for (source, diagnostic), mark in zip(pairs, prints, strict=True)],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _version() -> str:
    try:
        return metadata.version("ptxvm")
    except metadata.PackageNotFoundError:
        return "0"


def _rule(code: str, pairs: Pairs) -> dict[str, object]:
    """The page of a code; of one that has none, what its first finding says."""
    first = next(diagnostic for _, diagnostic in pairs if diagnostic.code == code)
    entry = explain(code) or DiagnosticCode(code, code.replace("-", " "), first.message)
    text = f"{entry.explanation or entry.title}\n\n`ptxvm explain {code}` prints this page."
    rule: dict[str, object] = {
        "id": code,
        "shortDescription": {"text": entry.title},
        "fullDescription": {"text": entry.explanation or entry.title},
        "help": {"text": text, "markdown": text},
        "helpUri": entry.link,
        "defaultConfiguration": {"level": _LEVELS[first.severity]},
    }
    if not entry.title.endswith("."):  # the rules of instructions have sentences, which give no name
        rule["name"] = "".join(word.capitalize() for word in entry.title.split() if word.isalnum()) or code
    return rule


def _fingerprints(pairs: Pairs) -> list[str]:
    """A mark for each finding: of its code, its file and the text of its line, and its number among those of the same."""
    seen = Counter[str]()
    marks = []
    for source, diagnostic in pairs:
        line, _ = source.location(diagnostic.span.start)
        text = " ".join(source.line(line).split())
        mark = sha256("\0".join([diagnostic.code, _uri(source), text]).encode()).hexdigest()[:16]
        seen[mark] += 1
        marks.append(f"{mark}:{seen[mark]}")
    return marks


def _result(diagnostic: Diagnostic, source: Text, codes: list[str], mark: str) -> dict[str, object]:
    remarks = _sentences([diagnostic.message, diagnostic.label, diagnostic.note, diagnostic.help])
    result: dict[str, object] = {
        "ruleId": diagnostic.code,
        "ruleIndex": codes.index(diagnostic.code),
        "level": _LEVELS[diagnostic.severity],
        "message": {"text": remarks},
        "locations": [{"physicalLocation": _physical(diagnostic.span, source)}],
        "partialFingerprints": {_FINGERPRINT: mark},
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


def _physical(span: Span, source: Text) -> dict[str, object]:
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
    return quote(source.name.replace("\\", "/"), safe="/._-~")
