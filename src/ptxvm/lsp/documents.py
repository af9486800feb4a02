"""The documents that are open in the editor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lsprotocol.types import PositionEncodingKind, TextDocumentContentChangeEvent

from ptxvm.lsp.document import PTX, Document
from ptxvm.lsp.text import DocumentText


class Documents:
    """The open documents by URI; positions are in one encoding, which the editor and the server have agreed on."""

    def __init__(self) -> None:
        self.encoding = PositionEncodingKind.Utf16
        self._open: dict[str, Document] = {}

    def __iter__(self) -> Iterator[Document]:
        return iter(self._open.values())

    def open(self, uri: str, text: str, version: int | None, language: str = PTX) -> Document:
        """Open a document."""
        self._open[uri] = Document(uri, DocumentText(text, self.encoding), version, language)
        return self._open[uri]

    def edit(self, uri: str, changes: Sequence[TextDocumentContentChangeEvent], version: int | None) -> Document | None:
        """Edit a document; None where it is not open."""
        known = self._open.get(uri)
        if known is None:
            return None
        self._open[uri] = known.edited(changes, version)
        return self._open[uri]

    def close(self, uri: str) -> None:
        """Close a document."""
        self._open.pop(uri, None)

    def get(self, uri: str) -> Document | None:
        """The document of a URI; None where it is not open."""
        return self._open.get(uri)
