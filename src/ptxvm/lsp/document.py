"""A document of the editor: its text in one version, and what was found out about it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from lsprotocol.types import TextDocumentContentChangeEvent

from ptxvm.dataclass import dataclass
from ptxvm.lsp.module import ModuleView
from ptxvm.lsp.text import DocumentText
from ptxvm.syntax.source import Source

PTX = "ptx"
"""The language of PTX, as editors call it."""

MARK = "\ufeff"
"""The byte order mark, which stands in front of a text and is no part of it."""


@dataclass(frozen=True, eq=False)
class Document:
    """One version of a document; an edit makes another."""

    uri: str
    text: DocumentText
    version: int | None = None
    language: str = PTX

    @cached_property
    def source(self) -> Source:
        """The text for the reader of PTX, character by character the same."""
        text = self.text.text
        return Source(f" {text[1:]}" if text.startswith(MARK) else text, self.uri, self.text.line_starts)

    @cached_property
    def module(self) -> ModuleView:
        """The module, as far as it can be read."""
        return ModuleView(self.source)

    def edited(self, changes: Sequence[TextDocumentContentChangeEvent], version: int | None) -> Document:
        """The document after an edit."""
        return Document(self.uri, self.text.changed(changes), version, self.language)
