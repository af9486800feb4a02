"""The server, end to end: `ptxvm lsp` and the client of pytest-lsp, which holds every message against the protocol."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import warnings
from collections.abc import Awaitable, Callable, Sequence

import pytest

pytest.importorskip("pytest_lsp", reason="the client of language servers is not installed")

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pytest_lsp import LanguageClient, LspSpecificationWarning, client_capabilities, make_test_lsp_client

from ptxvm.debug.dap.framing import Decoder, encode

URI = "file:///kernel.ptx"
TEXT = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<4>;
    // \U0001f600 a smile has two code units
    mov.u32 %r1, %tid.x; /* \U0001f600 */ mov.u32 %r2, %r1;
    ret;
}
"""

SECOND = {"utf-8": 36, "utf-16": 34, "utf-32": 33}
"""The column of the second `mov` in the line with the smile, by encoding: counted by hand."""

Session = Callable[[LanguageClient], Awaitable[None]]

HANGS = 600
"""Seconds after which a session has no end; a busy machine takes none of them for long."""


class Published(dict[str, Sequence[types.Diagnostic]]):
    """The newest diagnostics of each document, as the client keeps them, and all that were published, one after the other.

    Waiting for the next notification misses those that come together with the one before.
    """

    def __init__(self) -> None:
        super().__init__()
        self._every: asyncio.Queue[tuple[str, Sequence[types.Diagnostic]]] = asyncio.Queue()

    def __setitem__(self, uri: str, found: Sequence[types.Diagnostic]) -> None:
        super().__setitem__(uri, found)
        self._every.put_nowait((uri, found))

    async def with_code(self, code: str, wanted: str = URI) -> Sequence[types.Diagnostic]:
        """The next that are published for a document in which a code stands; without one, the next of all."""
        while True:
            uri, found = await self._every.get()
            if uri == wanted and (not code or code in {each.code for each in found}):
                return found


def drive(session: Session, client: str = "visual-studio-code") -> None:
    """Run a session of an editor with a server that has the document open."""

    async def run() -> None:
        editor = make_test_lsp_client()
        editor.diagnostics = Published()
        await editor.start_io(sys.executable, "-m", "ptxvm", "lsp")
        editor.result = await editor.initialize_session(
            types.InitializeParams(capabilities=client_capabilities(client), root_uri="file:///")
        )
        editor.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(URI, "ptx", 1, TEXT)))
        await editor.diagnostics.with_code("")
        await session(editor)
        await editor.shutdown_session()
        await editor.stop()
        assert editor.error is None
        assert editor._server.returncode == 0

    with warnings.catch_warnings():
        warnings.simplefilter("error", LspSpecificationWarning)
        asyncio.run(asyncio.wait_for(run(), HANGS))


def place(line: int, character: int) -> dict[str, object]:
    return {"text_document": types.TextDocumentIdentifier(URI), "position": types.Position(line, character)}


def edit(line: int, first: int, last: int, text: str) -> types.TextDocumentContentChangePartial:
    return types.TextDocumentContentChangePartial(types.Range(types.Position(line, first), types.Position(line, last)), text)


def test_diagnostics_of_a_large_module_come_slice_by_slice():
    """Another target changes every body: the editor has an answer before all of them are looked at."""
    kernels = [
        f".visible .entry k{n}(.param .u64 a)\n{{\n    .reg .b32 %r<9>;\n"
        + "    add.u32 %r1, %r2, 3;\n" * 30
        + "    redux.sync.add.u32 %r1, %r2, -1;\n    ret;\n}\n"
        for n in range(200)
    ]
    text = ".version 8.0\n.target sm_80\n.address_size 64\n" + "".join(kernels)

    async def session(editor):
        item = types.TextDocumentItem("file:///large.ptx", "ptx", 1, text)
        editor.text_document_did_open(types.DidOpenTextDocumentParams(item))
        document = types.VersionedTextDocumentIdentifier(2, item.uri)
        change = types.DidChangeTextDocumentParams(document, [edit(1, 11, 13, "75")])
        editor.text_document_did_change(change)
        counts = [len(await editor.diagnostics.with_code("", item.uri))]
        while counts[-1] < len(kernels):
            counts.append(len(await editor.diagnostics.with_code("", item.uri)))
        assert counts == sorted(counts)
        assert any(0 < count < len(kernels) for count in counts)

    drive(session)


def test_diagnostics_follow_the_edits():
    async def session(editor):
        assert editor.diagnostics[URI] == ()
        document = types.VersionedTextDocumentIdentifier(2, URI)
        change = edit(7, 34, 37, "mvo")
        editor.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))
        (wrong,) = await editor.diagnostics.with_code("P0301")
        assert (wrong.code, wrong.range) == ("P0301", types.Range(types.Position(7, 34), types.Position(7, 37)))
        assert "did you mean `mov`?" in wrong.message
        editor.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(URI)))
        assert await editor.diagnostics.with_code("") == ()

    drive(session)


@pytest.mark.parametrize("client", ["visual-studio-code", "neovim", "emacs"])
def test_questions_are_answered(client):
    async def session(editor):
        mov = SECOND[editor.result.capabilities.position_encoding]
        hover = await editor.text_document_hover_async(types.HoverParams(**place(7, mov + 1)))
        assert "mov.type d, {!}a;" in hover.contents.value
        assert hover.range.start == types.Position(7, mov)
        (found,) = await editor.text_document_definition_async(types.DefinitionParams(**place(7, mov + 13)))
        assert found.range.start.line == 5
        items = await editor.text_document_completion_async(types.CompletionParams(**place(7, mov + 4)))
        assert "u32" in {item.label for item in items.items}
        symbols = await editor.text_document_document_symbol_async(
            types.DocumentSymbolParams(types.TextDocumentIdentifier(URI))
        )
        assert [each.name for each in symbols] == ["k"]
        help = await editor.text_document_signature_help_async(types.SignatureHelpParams(**place(7, mov + 9)))
        assert help.active_parameter == 0
        context = types.ReferenceContext(include_declaration=True)
        references = await editor.text_document_references_async(types.ReferenceParams(**place(7, 13), context=context))
        assert len(references) == 2
        assert len(await editor.text_document_document_highlight_async(types.DocumentHighlightParams(**place(7, 13)))) == 2
        assert await editor.text_document_folding_range_async(types.FoldingRangeParams(types.TextDocumentIdentifier(URI)))
        assert (await editor.workspace_symbol_async(types.WorkspaceSymbolParams("k")))[0].name == "k"

    drive(session, client)


def test_a_name_is_changed_or_refused():
    async def session(editor):
        edit = await editor.text_document_rename_async(types.RenameParams(**place(3, 16), new_name="kernel"))
        assert edit.changes[URI][0].new_text == "kernel"
        with pytest.raises(JsonRpcInvalidParams, match="no identifier"):
            await editor.text_document_rename_async(types.RenameParams(**place(3, 16), new_name="4"))

    drive(session)


def test_tokens_fixes_formatting_and_lenses():
    async def session(editor):
        document = types.TextDocumentIdentifier(URI)
        found = await editor.text_document_semantic_tokens_full_async(types.SemanticTokensParams(document))
        assert len(found.data) % 5 == 0
        versioned = types.VersionedTextDocumentIdentifier(2, URI)
        editor.text_document_did_change(types.DidChangeTextDocumentParams(versioned, [edit(7, 34, 37, "mvo")]))
        (wrong,) = await editor.diagnostics.with_code("P0301")
        difference = await editor.text_document_semantic_tokens_full_delta_async(
            types.SemanticTokensDeltaParams(document, found.result_id)
        )
        assert len(difference.edits) == 1
        (fix,) = await editor.text_document_code_action_async(
            types.CodeActionParams(document, wrong.range, types.CodeActionContext([wrong]))
        )
        assert fix.title == "Change to `mov`"
        options = types.FormattingOptions(2, insert_spaces=True)
        edits = await editor.text_document_formatting_async(types.DocumentFormattingParams(document, options))
        assert edits[0].new_text == "  .reg .b32 %r<4>;"
        assert [each.command.title for each in await editor.text_document_code_lens_async(types.CodeLensParams(document))] == [
            "Run", "Profile", "Debug",
        ]  # fmt: skip

    drive(session)


KERNELS = 500  # of different texts, whose tokens take many times as long as an answer of the other kind


def test_others_are_answered_while_tokens_of_a_large_module_are_looked_for():
    """And after an edit they are those of the new text."""
    text = ".version 8.0\n.target sm_90\n.address_size 64\n" + "".join(
        f".visible .entry k{n}()\n{{\n    .reg .b32 %r<9>;\n" + f"    add.u32 %r1, %r2, {n};\n" * 20 + "    ret;\n}\n"
        for n in range(KERNELS)
    )

    async def session(editor):
        item = types.TextDocumentItem("file:///large.ptx", "ptx", 1, text)
        editor.text_document_did_open(types.DidOpenTextDocumentParams(item))
        wanted = types.SemanticTokensParams(types.TextDocumentIdentifier(item.uri))
        for version in range(2, 20):  # until an edit has come before the tokens: this process may stand still meanwhile
            asked, answered = [], []
            for name, question in (
                ("tokens", editor.text_document_semantic_tokens_full_async(wanted)),
                ("hover", editor.text_document_hover_async(types.HoverParams(**place(7, 35)))),
            ):
                asked.append(asyncio.ensure_future(question))
                asked[-1].add_done_callback(lambda _, name=name, answered=answered: answered.append(name))
            await asyncio.sleep(0)  # both are sent
            document = types.VersionedTextDocumentIdentifier(version, item.uri)
            other = edit(1, 11, 13, f"{70 + version % 2 * 5}")
            editor.text_document_did_change(types.DidChangeTextDocumentParams(document, [other]))
            found, _ = await asyncio.gather(*asked)
            if found.result_id == str(version):
                break
        assert answered == ["hover", "tokens"]
        assert found.result_id == str(version)
        assert len(found.data) == 5 * (5 + KERNELS * (8 + 20 * 5))
        document = types.VersionedTextDocumentIdentifier(version + 1, item.uri)
        editor.text_document_did_change(types.DidChangeTextDocumentParams(document, [edit(0, 9, 12, "8.00")]))
        before = types.SemanticTokensDeltaParams(wanted.text_document, found.result_id)
        (change,) = (await editor.text_document_semantic_tokens_full_delta_async(before)).edits
        assert (change.start, change.delete_count, *change.data) == (7, 1, 4)

    drive(session)


def test_ptx_in_another_language_is_checked_and_explained():
    async def session(editor):
        uri, text = "file:///kernel.cu", 'int f(int a) { asm("adds.s32 %0, %1, 1;" : "=r"(a) : "r"(a)); return a; }'
        editor.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "cuda-cpp", 1, text)))
        (wrong,) = await editor.diagnostics.with_code("P0301", uri)
        assert wrong.code == "P0301"
        there = {"text_document": types.TextDocumentIdentifier(uri), "position": types.Position(0, text.index("%0") + 1)}
        assert "a register" in (await editor.text_document_hover_async(types.HoverParams(**there))).contents.value
        assert await editor.text_document_definition_async(types.DefinitionParams(**there)) is None

    drive(session)


def test_lints_and_inlay_hints_follow():
    async def session(editor):
        assert {each.code for each in await editor.diagnostics.with_code("P0702")} == {"P0702"}
        everything = types.Range(types.Position(0, 0), types.Position(20, 0))
        hints = await editor.text_document_inlay_hint_async(
            types.InlayHintParams(types.TextDocumentIdentifier(URI), everything)
        )
        assert [hint.label for hint in hints] == [".u32 affine +1", ".u32 affine +1"]

    drive(session)


@pytest.mark.parametrize("params", [{}, {"textDocument": {"uri": URI}, "position": {"line": -1, "character": 0}}, [1]])
def test_a_request_with_wrong_parameters_has_an_answer(params):
    """Error -32602 is for invalid parameters (JSON-RPC 2.0, 5.1); the client of the other tests cannot send any."""
    asked = [("initialize", {"capabilities": {}}), ("textDocument/hover", params), ("shutdown", None)]
    sent = [{"jsonrpc": "2.0", "id": n, "method": name, "params": value} for n, (name, value) in enumerate(asked)]
    sent.append({"jsonrpc": "2.0", "method": "exit"})
    command = [sys.executable, "-m", "ptxvm", "lsp"]
    done = subprocess.run(command, input=b"".join(map(encode, sent)), capture_output=True, check=True, timeout=60)
    answers = [each for each in Decoder().feed(done.stdout) if "method" not in each]
    assert [each["id"] for each in answers] == [0, 1, 2]
    assert answers[1]["error"]["code"] == -32602
