"""Findings as a JUnit report, which CI services list among test results: each source is a test case."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from ptxvm.diagnostics import terminal
from ptxvm.diagnostics.diagnostic import Diagnostic, Severity
from ptxvm.diagnostics.findings import Findings, Text


def render(findings: Findings) -> str:
    """The report: a source with errors has failed; its warnings are its output."""
    failed = sum(_worst(diagnostics) is Severity.ERROR for _, diagnostics in findings)
    counts = {"name": "ptxvm", "tests": str(len(findings)), "failures": str(failed), "errors": "0", "skipped": "0"}
    report = ET.Element("testsuites", counts)
    suite = ET.SubElement(report, "testsuite", counts)
    for source, diagnostics in findings:
        _case(suite, source, diagnostics)
    ET.indent(report)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(report, encoding="unicode")}\n'


def _case(suite: ET.Element, source: Text, diagnostics: Sequence[Diagnostic]) -> None:
    name = _printable(source.name)
    case = ET.SubElement(suite, "testcase", {"classname": "ptxvm", "name": name, "file": name})
    errors = [each for each in diagnostics if each.severity is Severity.ERROR]
    others = [each for each in diagnostics if each.severity is not Severity.ERROR]
    if errors:
        head = {"message": _printable(errors[0].message), "type": errors[0].code}
        ET.SubElement(case, "failure", head).text = _rendered(source, errors)
    if others:
        ET.SubElement(case, "system-out").text = _rendered(source, others)


def _rendered(source: Text, diagnostics: Sequence[Diagnostic]) -> str:
    return "\n".join(map(_printable, terminal.render([(source, diagnostics)], width=80, color=False).splitlines()))


def _printable(text: str) -> str:
    """A line without control characters, which XML has no way to write."""
    return "".join(character if character.isprintable() or character == "\t" else "?" for character in text)


def _worst(diagnostics: Sequence[Diagnostic]) -> Severity | None:
    return next((each for each in Severity if any(found.severity is each for found in diagnostics)), None)
