"""The server: the methods of the Language Server Protocol, each answered by a function of a document."""

from __future__ import annotations

import asyncio
import gc
import inspect
import logging
import os
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from ptxvm.analysis.incremental import SLICE, IncrementalChecker
from ptxvm.diagnostics import Diagnostic, Severity
from ptxvm.isa.catalog import load_catalog
from ptxvm.lsp import actions, completion, embedded, formatting, hover, lenses, navigation, semantic, signature, symbols
from ptxvm.lsp.diagnostics import HOSTS, findings, shown
from ptxvm.lsp.document import Document
from ptxvm.lsp.documents import Documents
from ptxvm.lsp.hints import Hints, lints
from ptxvm.lsp.protocol import Protocol

PAUSE = 0.02
"""Seconds without an edit after which a document is checked: a burst of edits is checked once."""

LINT_PAUSE = 0.4
"""Seconds without an edit after which the lints of a document are looked for."""

LARGEST_SLICE = 4 * SLICE
"""The characters that are checked without a pause; the first slice is short, and each next one twice as long."""

Answer = TypeVar("Answer")


class Server(LanguageServer):
    """A language server, its documents, and the checks that are due."""

    def __init__(self, version: str) -> None:
        super().__init__("ptxvm", version, protocol_cls=Protocol)
        self.documents = Documents()
        self.checker = IncrementalChecker()
        self.hints = Hints(self.checker)
        self._slice = SLICE
        self._found: tuple[Document, list[Diagnostic]] | None = None
        self.tokens = semantic.Tokens()
        self.symbols = symbols.Symbols()
        self._told: dict[str, types.SemanticTokens] = {}  # the tokens that the editor has, by URI
        self._due: dict[str, asyncio.TimerHandle | asyncio.Task[None]] = {}
        self._answering = asyncio.Lock()  # is held by a request that is answered bit by bit
        for method, handler, options in HANDLERS:
            self.feature(method, options)(_bound(self, handler))

    # ── documents ───────────────────────────────────────────────────────────────────────

    def opened(self, params: types.DidOpenTextDocumentParams) -> None:
        """Keep a document, and check it."""
        self.documents.encoding = types.PositionEncodingKind(self.workspace.position_encoding)
        given = params.text_document
        self.check(self.documents.open(given.uri, given.text, given.version, given.language_id))

    def changed(self, params: types.DidChangeTextDocumentParams) -> None:
        """Apply edits, and check the document when no more come."""
        uri = params.text_document.uri
        document = self.documents.edit(uri, params.content_changes, params.text_document.version)
        if document is None:
            return
        self._later(PAUSE, self.check_now, uri)

    def closed(self, params: types.DidCloseTextDocumentParams) -> None:
        """Forget a document, and what was found in it."""
        uri = params.text_document.uri
        if (due := self._due.pop(uri, None)) is not None:
            due.cancel()
        self._told.pop(uri, None)
        if self._found is not None and self._found[0].uri == uri:
            self._found = None
        self.documents.close(uri)
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    def _later(self, pause: float, work: Callable[[str], None], uri: str) -> None:
        """Do something about a document when no edit comes for some time."""
        if (due := self._due.pop(uri, None)) is not None:
            due.cancel()
        self._due[uri] = asyncio.get_running_loop().call_later(pause, work, uri)

    def check_now(self, uri: str) -> None:
        """Check the newest version of a document."""
        document = self.documents.get(uri)
        if document is not None:
            self.check(document)

    def check(self, document: Document) -> None:
        """Tell the editor what is wrong with a document, a slice of it after the other; requests and edits come between two.

        Its lints follow when no edit comes.  Garbage is collected then too: a collection looks at all that is known of a large
        module, for a tenth of a second.
        """
        goes_on = self._found is not None and self._found[0] is document
        self._slice = min(2 * self._slice, LARGEST_SLICE) if goes_on else SLICE
        gc.disable()
        try:
            found = findings(document, self.checker, slice=self._slice)
            self._publish(document, found)
        finally:
            gc.enable()
        self._found = document, found
        if self.checker.waiting:
            self._later(PAUSE, self.check_now, document.uri)  # time enough to take in an edit
            return
        has_lints = document.language not in HOSTS and not any(each.severity is Severity.ERROR for each in found)
        self._later(LINT_PAUSE, self.lint_now if has_lints else self.tidy, document.uri)

    def tidy(self, _: str) -> None:
        """Collect garbage, as no edit comes; what stays is not looked at until then again."""
        gc.unfreeze()
        gc.collect()
        gc.freeze()

    def lint_now(self, uri: str) -> None:
        """Look for the lints of a document."""
        self.tidy(uri)
        document = self.documents.get(uri)
        if document is not None:
            self._due[uri] = asyncio.get_running_loop().create_task(self.lint(document))

    async def lint(self, document: Document) -> None:
        """Tell the editor the lints of a document: requests and edits come between two steps, and an edit ends it."""
        found: list[Diagnostic] = []
        for step in self.hints.steps(document):
            found += lints(document, *step) if step is not None else ()
            await asyncio.sleep(0)
            async with self._answering:  # once no request waits for its tokens
                pass
        if found:
            self._publish(document, [*self.found(document), *found])

    def found(self, document: Document) -> list[Diagnostic]:
        """What the editor was told of a document; one that was edited since is checked, a slice of it."""
        known, found = self._found or (None, [])
        return found if known is document else findings(document, self.checker, slice=SLICE)

    def _publish(self, document: Document, found: list[Diagnostic]) -> None:
        shown_there = [shown(document, each) for each in found]
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(document.uri, shown_there, document.version))

    def asked(self, params: Any, answer: Callable[[Document], Answer]) -> Answer | None:  # noqa: ANN401 - of any method
        """The answer of a function about the document that a request names; None where it is not open, or no PTX."""
        document = self.documents.get(params.text_document.uri)
        return answer(document) if document is not None and document.language not in HOSTS else None

    def hover(self, params: types.HoverParams) -> types.Hover | None:
        """What stands at a position, also in PTX within another language."""
        document = self.documents.get(params.text_document.uri)
        if document is None:
            return None
        return (embedded.hover if document.language in HOSTS else hover.hover)(document, params.position)

    async def inlay(self, params: types.InlayHintParams) -> list[types.InlayHint] | None:
        """The inlay hints of a range, once the document is checked; None where it is edited before."""
        uri = params.text_document.uri
        document = self.documents.get(uri)
        while document is not None and document.language not in HOSTS and document is self.documents.get(uri):
            if self._is_checked(document):
                for _ in self.hints.steps(document, *document.text.span(params.range)):
                    await asyncio.sleep(0)
                return self.hints.inlay(document, params.range)
            await asyncio.sleep(PAUSE)
        return None

    def _is_checked(self, document: Document) -> bool:
        return self._found is not None and self._found[0] is document and not self.checker.waiting

    async def all_tokens(self, params: types.SemanticTokensParams) -> types.SemanticTokens | None:
        """The semantic tokens, which are kept for the next difference."""
        now = await self._all_tokens(params)
        if now is not None:
            self._told[params.text_document.uri] = now
        return now

    async def tokens_delta(
        self, params: types.SemanticTokensDeltaParams
    ) -> types.SemanticTokens | types.SemanticTokensDelta | None:
        """What has changed of the semantic tokens since the version that the editor names; all where that is not known."""
        now = await self._all_tokens(params)
        if now is None:
            return None
        uri = params.text_document.uri
        before, self._told[uri] = self._told.get(uri), now
        return semantic.delta(before, now) if before is not None and before.result_id == params.previous_result_id else now

    async def _all_tokens(
        self, params: types.SemanticTokensParams | types.SemanticTokensDeltaParams
    ) -> types.SemanticTokens | None:
        """The semantic tokens of the newest version: requests and edits come between two pieces."""
        async with self._answering:
            return await self._tokens_of_newest(params)

    async def _tokens_of_newest(
        self, params: types.SemanticTokensParams | types.SemanticTokensDeltaParams
    ) -> types.SemanticTokens | None:
        while (document := self.asked(params, lambda document: document)) is not None:
            pieces = []
            for each in self.tokens.of(document):
                pieces.append(each)
                await asyncio.sleep(0)
                if self.documents.get(document.uri) is not document:
                    break
            else:
                return semantic.joined(document, pieces)
        return None

    def actions(self, params: types.CodeActionParams) -> list[types.CodeAction] | None:
        """The quick fixes of a range."""
        return self.asked(params, lambda d: actions.actions(d, params.range, self.found(d)))

    def rename(self, params: types.RenameParams) -> types.WorkspaceEdit | None:
        """Rename; a name that cannot be is an error that the editor shows."""
        try:
            return self.asked(params, lambda d: navigation.rename(d, params.position, params.new_name))
        except navigation.BadName as wrong:
            raise JsonRpcInvalidParams(str(wrong)) from None


def _bound(server: Server, handler: Callable[[Server, Any], object]) -> Callable[[Any], object]:
    async def handle_later(params: Any) -> object:  # noqa: ANN401 - of any method
        return await cast("Awaitable[object]", handler(server, params))

    def handle(params: Any) -> object:  # noqa: ANN401 - of any method
        return handler(server, params)

    return handle_later if inspect.iscoroutinefunction(handler) else handle


HANDLERS: tuple[tuple[str, Callable[[Server, Any], object], Any], ...] = (
    (types.TEXT_DOCUMENT_DID_OPEN, Server.opened, None),
    (types.TEXT_DOCUMENT_DID_CHANGE, Server.changed, None),
    (types.TEXT_DOCUMENT_DID_CLOSE, Server.closed, None),
    (types.TEXT_DOCUMENT_HOVER, Server.hover, None),
    (
        types.TEXT_DOCUMENT_COMPLETION,
        lambda s, p: s.asked(p, lambda d: types.CompletionList(False, completion.completion(d, p.position))),  # noqa: FBT003 - lsprotocol's own order
        types.CompletionOptions(trigger_characters=[".", "%", "@", "[", "{"]),
    ),
    (
        types.TEXT_DOCUMENT_SIGNATURE_HELP,
        lambda s, p: s.asked(p, lambda d: signature.signature_help(d, p.position)),
        types.SignatureHelpOptions(trigger_characters=[" ", ","], retrigger_characters=["[", "{", "("]),
    ),
    (types.TEXT_DOCUMENT_DEFINITION, lambda s, p: s.asked(p, lambda d: navigation.definition(d, p.position)), None),
    (
        types.TEXT_DOCUMENT_REFERENCES,
        lambda s, p: s.asked(p, lambda d: navigation.references(d, p.position, declaration=p.context.include_declaration)),
        None,
    ),
    (types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT, lambda s, p: s.asked(p, lambda d: navigation.highlights(d, p.position)), None),
    (
        types.TEXT_DOCUMENT_PREPARE_RENAME,
        lambda s, p: s.asked(p, lambda d: navigation.renameable(d, p.position)),
        None,
    ),
    (types.TEXT_DOCUMENT_RENAME, Server.rename, types.RenameOptions(prepare_provider=True)),
    (types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, lambda s, p: s.asked(p, s.symbols.of), None),
    (
        types.WORKSPACE_SYMBOL,
        lambda s, p: symbols.workspace_symbols([d for d in s.documents if d.language not in HOSTS], p.query),
        None,
    ),
    (types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, Server.all_tokens, semantic.LEGEND),
    (types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL_DELTA, Server.tokens_delta, semantic.LEGEND),
    (
        types.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE,
        lambda s, p: s.asked(p, lambda d: s.tokens.in_range(d, p.range)),
        semantic.LEGEND,
    ),
    (
        types.TEXT_DOCUMENT_CODE_ACTION,
        Server.actions,
        types.CodeActionOptions([types.CodeActionKind.QuickFix]),
    ),
    (
        types.TEXT_DOCUMENT_FORMATTING,
        lambda s, p: s.asked(p, lambda d: formatting.formatting(d, formatting.unit(p.options))),
        None,
    ),
    (
        types.TEXT_DOCUMENT_RANGE_FORMATTING,
        lambda s, p: s.asked(p, lambda d: formatting.range_formatting(d, p.range, formatting.unit(p.options))),
        None,
    ),
    (types.TEXT_DOCUMENT_INLAY_HINT, Server.inlay, None),
    (types.TEXT_DOCUMENT_CODE_LENS, lambda s, p: s.asked(p, lenses.lenses), None),
    (types.TEXT_DOCUMENT_FOLDING_RANGE, lambda s, p: s.asked(p, symbols.folding), None),
)
"""Each method with its handler and the options that the server tells the editor."""


def serve(version: str, host: str, port: int | None) -> None:
    """Serve an editor: over the standard streams, or the first that connects to a port."""
    server = Server(version)
    load_catalog()
    gc.freeze()  # the declarations stay: what collects garbage between two edits need not look at them
    if port is not None:
        logging.getLogger("asyncio").addFilter(_is_no_exit)
        server.start_tcp(host, port)
        return
    # What examples print must not get between the messages: the standard output becomes the standard error.
    with os.fdopen(os.dup(0), "rb") as requests, os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
        server.start_io(requests, answers)


def _is_no_exit(record: logging.LogRecord) -> bool:
    """Is a line of the log something else than the end of the process, which asyncio takes for an error?"""
    return record.exc_info is None or record.exc_info[0] is not SystemExit
