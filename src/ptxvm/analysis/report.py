"""The report of a module: its diagnostics."""

from __future__ import annotations

from dataclasses import field

from ptxvm.dataclass import dataclass
from ptxvm.diagnostics import Diagnostic, Severity, Span
from ptxvm.syntax import tree
from ptxvm.syntax.source import Source

Place = tree.Node | Span | None


@dataclass(slots=True)
class Report:
    """The diagnostics of a source, in the order in which they were found."""

    source: Source
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def error(self, code: str, message: str, place: Place = None, **more: str) -> None:
        """Something that makes the module invalid; `more` are label, note, help, ptxas and consequences."""
        self.add(Severity.ERROR, code, message, place, **more)

    def warning(self, code: str, message: str, place: Place = None, **more: str) -> None:
        """Something that is legal and doubtful."""
        self.add(Severity.WARNING, code, message, place, **more)

    def add(
        self,
        severity: Severity,
        code: str,
        message: str,
        place: Place,
        *,
        label: str = "",
        note: str = "",
        help: str = "",
        ptxas: str = "",
        consequences: str = "",
    ) -> None:
        """Any finding; without a place it is about the whole source."""
        span = Span(place.start, place.end) if isinstance(place, tree.Node) else place or Span(0, 0)
        line, column = self.source.location(span.start)
        self.diagnostics.append(
            Diagnostic(severity, code, message, span, line, column, label, note, help, ptxas, consequences=consequences)
        )

    @property
    def has_errors(self) -> bool:
        """Is the module invalid?"""
        return any(d.severity is Severity.ERROR for d in self.diagnostics)
