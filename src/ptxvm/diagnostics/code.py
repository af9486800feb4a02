"""A kind of finding, as `ptxvm explain P0101` prints it."""

from __future__ import annotations

import inspect

from ptxvm.dataclass import dataclass

_MANUAL = "https://docs.nvidia.com/cuda/parallel-thread-execution/index.html"
_CHAPTERS = {"P01": "syntax", "P02": "syntax", "P03": "instruction-set", "P05": "directives", "P": "instruction-set"}


@dataclass(frozen=True, slots=True)
class DiagnosticCode:
    """A kind of finding: its number, its name in a few words, and the page that explains it.

    `stops_ptxas` tells that ptxas gives up at such an error, whatever follows in the module; `anchor` is the place in the
    manual of PTX.
    """

    code: str
    title: str
    explanation: str
    stops_ptxas: bool = False
    anchor: str = ""

    @classmethod
    def of(cls, code: str, title: str, text: str, anchor: str) -> DiagnosticCode:
        """One whose explanation is an indented text."""
        return cls(code, title, inspect.cleandoc(text), anchor=anchor)

    @property
    def link(self) -> str:
        """Where the manual of PTX says more: the chapter."""
        anchor = self.anchor or _CHAPTERS.get(self.code[:3]) or _CHAPTERS.get(self.code[:1], "")
        return f"{_MANUAL}#{anchor}" if anchor else _MANUAL

    def __str__(self) -> str:
        return f"{self.code}: {self.title}\n\n{self.explanation}\n"
