"""What a reader of PTX has to say about a source: one record, whatever prints it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field

from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.notebook import card


class Severity(enum.StrEnum):
    """How bad it is."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range `start:end` of characters of a source."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, repr=False)
class Diagnostic:
    """One finding.

    `code` is `Pnnnn`; `message` one line; `span` where, `line` and `column` (from 1) the same
    place for people; `label` stands under the carets; `note` and `help` follow; `ptxas` is the
    line that ptxas prints for this, where it has other words than `message`, and `consequences` are those that it prints
    of the same place besides; `details` are for tools, of what a checker
    found in a running kernel.
    """

    severity: Severity
    code: str
    message: str
    span: Span = Span(0, 0)
    line: int = 0
    column: int = 0
    label: str = ""
    note: str = ""
    help: str = ""
    ptxas: str = ""
    related: tuple[tuple[str, Span], ...] = field(default=())
    consequences: str = field(default="", compare=False)
    details: Mapping[str, object] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.severity}[{self.code}]: {self.message}"

    def __repr__(self) -> str:
        return f"<Diagnostic {self}>"

    def _repr_html_(self) -> str:
        """The finding for a notebook."""
        rows = [("at", self.label), ("note", self.note), ("help", self.help), *(("related", said) for said, _ in self.related)]
        return card(str(self), rows)
