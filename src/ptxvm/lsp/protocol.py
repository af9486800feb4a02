"""The protocol of the server.

Documents are our own: pygls's ends lines where Python does, which editors do not.  A request with wrong parameters has an
answer: pygls only logs it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.protocol import LanguageServerProtocol, lsp_method

Steps = Generator[Any, Any, None]  # pygls's own: handlers to call, with their arguments


class Protocol(LanguageServerProtocol):
    """Passes the notifications about documents on to the server, and keeps no text."""

    def structure_message(self, data: dict[str, Any]) -> Any:  # noqa: ANN401 - pygls's own signature
        """A message of what JSON has; a request that does not fit its method is answered with the error."""
        try:
            return super().structure_message(data)
        except JsonRpcException as wrong:
            if "id" in data and "method" in data:
                self._send_response(data["id"], None, wrong.to_response_error())
            raise

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> Steps:
        """A document was opened."""
        yield self.fm.features[types.TEXT_DOCUMENT_DID_OPEN], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> Steps:
        """A document was edited."""
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CHANGE], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> Steps:
        """A document was closed."""
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CLOSE], (params,), None
