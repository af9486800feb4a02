"""Findings as `ptxas` prints them, for tools that read its output.

ptxas saxpy.ptx, line 4; fatal   : Parsing error near '_': syntax error
ptxas fatal   : Ptx assembly aborted due to errors
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm.diagnostics.codes import explain
from ptxvm.diagnostics.diagnostic import Diagnostic, Severity
from ptxvm.diagnostics.findings import Findings, Text

SYMBOL = "Unknown symbol"
"""How the findings begin that ptxas prints when it has read the whole module; what names none it says at once."""

DISCARD = "Result discard mode is not allowed"
"""How an error of operands begins at which ptxas stops; it goes on behind all others."""

NO_VALUE = "Invalid initial value symbol"
"""How an error of a name that is not declared begins at which ptxas stops."""

NOT_IN_VERSION = "PTX .version"
"""How an error begins of a target that came later than the version: ptxas reads on, and says it last."""

NO_ARITHMETIC = "Cannot take address of"
"""How an error begins of a name with an offset that is no number: ptxas finds it where all else is right."""

NO_ASCII = "Unexpected non-ASCII character"
"""The finding that ptxas prints alone, with the line in its text and without a file."""

MISMATCH = "Arguments mismatch"
"""How the finding about the types of operands begins, which ptxas prints once of an instruction."""

LATER = "Function call sequence invalid"
"""How the findings begin for which ptxas looks only where it has found nothing else."""

UNSAID = "-"
"""Stands for the line of a finding that ptxas does not print beside another of the same instruction."""

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
    """The findings of a source, up to the first error at which ptxas stops; those about symbols and the target at the end."""
    if (first := next((each.line for each in diagnostics if each.ptxas == NO_ASCII), 0)) > 0:
        return [f"ptxas fatal   : {NO_ASCII} encountered on line {first}"]
    if any(each.severity is Severity.ERROR and not each.ptxas.startswith(LATER) for each in diagnostics):
        diagnostics = [each for each in diagnostics if not each.ptxas.startswith(LATER)]
    found, symbols, targets = list[str](), list[str](), list[str]()
    before: Diagnostic | None = None
    for line, diagnostic in sorted(((_line(each, source), each) for each in diagnostics), key=lambda pair: pair[0]):
        if diagnostic.ptxas == UNSAID or (before is not None and _repeats(diagnostic, before, source)):
            continue
        before = diagnostic
        fatal = stops(diagnostic)
        word = "fatal" if fatal else _WORDS[diagnostic.severity]
        head = f"ptxas{f' {source.name}, line {line};' if line else ''} {word:<8}: "
        for said in (diagnostic.ptxas or diagnostic.message, *diagnostic.consequences.splitlines()):
            at_end = symbols if said.startswith(SYMBOL) else targets if said.startswith(NOT_IN_VERSION) else found
            at_end.append(head + said)
        if fatal:
            return found
    return found + symbols + targets


def _repeats(diagnostic: Diagnostic, before: Diagnostic, source: Text) -> bool:
    """Whether it is of another operand of the same instruction, with the same line of ptxas."""
    if diagnostic.ptxas != before.ptxas or not diagnostic.ptxas.startswith(MISMATCH):
        return False
    return ";" not in source.text[before.span.end : diagnostic.span.start]


def stops(diagnostic: Diagnostic) -> bool:
    """Whether ptxas reads no further."""
    if diagnostic.severity is not Severity.ERROR or diagnostic.ptxas.startswith(NOT_IN_VERSION):
        return False
    code = explain(diagnostic.code)
    return (code is not None and code.stops_ptxas) or diagnostic.ptxas.startswith((DISCARD, NO_VALUE))


def _line(diagnostic: Diagnostic, source: Text) -> int:
    """Where ptxas notices an error of syntax: at the last of the related places, if there are any."""
    if diagnostic.related and stops(diagnostic):
        return source.location(diagnostic.related[-1][1].start)[0]
    return diagnostic.line
