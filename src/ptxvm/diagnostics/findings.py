"""Sources and what was found in them, as a renderer is given them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ptxvm.diagnostics.diagnostic import Diagnostic


class Text(Protocol):
    """What a renderer asks of a source; `ptxvm.syntax.Source` is one."""

    @property
    def name(self) -> str:
        """The file, as the user named it."""
        ...

    @property
    def text(self) -> str:
        """All of it."""
        ...

    def line(self, number: int) -> str:
        """A line without its end, counted from 1; empty past the last."""
        ...

    def location(self, offset: int) -> tuple[int, int]:
        """The line and column of a character, both from 1."""
        ...


Findings = Sequence[tuple[Text, Sequence[Diagnostic]]]
"""Sources, each with what was found in it."""
