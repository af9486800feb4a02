"""Diagnostics: what `ptxvm check` finds, as an editor shows it."""

from __future__ import annotations

from lsprotocol import types

from ptxvm.analysis import lints
from ptxvm.analysis.incremental import IncrementalChecker
from ptxvm.diagnostics import Diagnostic, Severity, explain
from ptxvm.lsp import embedded
from ptxvm.lsp.document import Document

NAME = "ptxvm"

HOSTS = embedded.C_LANGUAGES | {embedded.PYTHON}
"""The languages in which PTX is embedded."""

SEVERITY = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Hint,
}

TAGS = {
    lints.UNREACHABLE: [types.DiagnosticTag.Unnecessary],
    lints.NEVER_READ: [types.DiagnosticTag.Unnecessary],
    lints.DEPRECATED: [types.DiagnosticTag.Deprecated],
}
"""How an editor shows a lint: greyed, or struck through."""


def findings(document: Document, checker: IncrementalChecker, *, slice: int | None = None) -> list[Diagnostic]:
    """Everything that is wrong with a document; the checker remembers what it found in earlier versions, and takes slices."""
    if document.language in HOSTS:
        return embedded.findings(document, checker)
    return checker.check(document.source, slice=slice)


def shown(document: Document, found: Diagnostic) -> types.Diagnostic:
    """A finding: its message with note and help, its code with the page in the manual, and related places."""
    page = explain(found.code)
    start, end = found.span.start, found.span.end
    said = [found.message, *(f"{label}: {text}" for label, text in (("note", found.note), ("help", found.help)) if text)]
    related = [
        types.DiagnosticRelatedInformation(types.Location(document.uri, document.text.range(span.start, span.end)), label)
        for label, span in found.related
    ]
    tags = TAGS.get(found.code)
    return types.Diagnostic(
        document.text.range(start, end),
        "\n".join(said),
        SEVERITY[found.severity],
        found.code,
        types.CodeDescription(page.link) if page is not None else None,
        NAME,
        tags=tags,
        related_information=related or None,
        data={"help": found.help} if found.help else None,
    )
