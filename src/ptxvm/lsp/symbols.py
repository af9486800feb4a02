"""Symbols of a document, as an outline shows them, and folding."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from attrs import validators
from lsprotocol import types

from ptxvm.lsp.document import Document
from ptxvm.lsp.hover import declaration
from ptxvm.lsp.module import FunctionView
from ptxvm.lsp.names import Definition, NameKind
from ptxvm.lsp.text import DocumentText
from ptxvm.syntax.lexer import places

SYMBOLS = {
    NameKind.KERNEL: types.SymbolKind.Function,
    NameKind.FUNCTION: types.SymbolKind.Function,
    NameKind.VARIABLE: types.SymbolKind.Variable,
    NameKind.PARAMETER: types.SymbolKind.Field,
    NameKind.REGISTER: types.SymbolKind.Array,
    NameKind.LABEL: types.SymbolKind.Key,
    NameKind.TABLE: types.SymbolKind.Array,
    NameKind.PROTOTYPE: types.SymbolKind.Interface,
}

RUNS = ("//", ".reg", ".b8", ".file")
"""What lines begin with that are folded together."""

_FOLDED = re.compile(r"//[^\n]*|/\*.*?\*/|\"[^\"\n]*\"|[{}]", re.DOTALL)


MOST_FUNCTIONS = 4096
"""The functions whose symbols are remembered; all are forgotten where there are more."""


class Symbols:
    """The symbols within functions, which are kept while the lines of a function stay."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, list[types.DocumentSymbol]]] = {}  # with the line where the function began

    def of(self, document: Document) -> list[types.DocumentSymbol]:
        """The variables and functions of a module; within functions their parameters, variables and labels."""
        if len(self._known) > MOST_FUNCTIONS:
            self._known.clear()
        module = document.module
        bodies = {function.node.name_start: function for function in module.functions}
        with validators.disabled():  # which are for what an editor sends, and take as long as all else here
            found = [_symbol(document, each) for each in module.names.every]
            for each, symbol in zip(module.names.every, found, strict=True):
                if (function := bodies.get(each.start)) is not None:
                    symbol.children = self._inside(document, function)
        return found

    def _inside(self, document: Document, function: FunctionView) -> list[types.DocumentSymbol]:
        """The symbols within a function; those of the same text elsewhere are moved."""
        text = document.text
        line = text.line(function.node.start)
        lines = text.text[text.line_starts[line] : function.end]
        earlier, symbols = self._known.get(lines, (line, None))
        if symbols is None:
            symbols = [_symbol(document, inner) for inner in function.names.every]
        elif line != earlier:
            symbols = [_moved(symbol, line - earlier) for symbol in symbols]
        self._known[lines] = line, symbols
        return symbols


def _moved(symbol: types.DocumentSymbol, by: int) -> types.DocumentSymbol:
    """A symbol without children, so many lines further down."""
    whole, name = (
        types.Range(
            types.Position(span.start.line + by, span.start.character), types.Position(span.end.line + by, span.end.character)
        )
        for span in (symbol.range, symbol.selection_range)
    )
    return types.DocumentSymbol(symbol.name, symbol.kind, whole, name, detail=symbol.detail)


def _symbol(document: Document, found: Definition) -> types.DocumentSymbol:
    text = document.text
    first, last = found.declared_at
    name = f"{found.name}<{found.count}>" if found.count is not None else found.name
    return types.DocumentSymbol(
        name or "?",
        SYMBOLS[found.kind],
        text.range(min(first, found.start), max(last, found.end)),
        text.range(found.start, found.end),
        detail=_detail(document, found),
    )


def _detail(document: Document, found: Definition) -> str:
    """The kind of a function; the declaration of anything else, without its value."""
    if found.kind in (NameKind.KERNEL, NameKind.FUNCTION, NameKind.LABEL):
        return str(found.kind.value)
    return declaration(document.module, found).partition("=")[0].rstrip(" ;")[:80]


def workspace_symbols(documents: list[Document], query: str) -> list[types.WorkspaceSymbol]:
    """The kernels, functions and variables of all open documents whose names have the letters of a query, in their order."""
    letters = re.compile(".*?".join(map(re.escape, query.lower())), re.DOTALL)
    return [
        types.WorkspaceSymbol(
            types.Location(document.uri, document.text.range(each.start, each.end)), each.name, SYMBOLS[each.kind]
        )
        for document in documents
        for each in document.module.names.every
        if letters.search(each.name.lower())
    ]


# ── folding ─────────────────────────────────────────────────────────────────────────────


def folding(document: Document) -> list[types.FoldingRange]:
    """Blocks, comments over several lines, and runs of lines that are comments or places."""
    return [*_blocks(document), *_runs(document)]


def _blocks(document: Document) -> Iterator[types.FoldingRange]:
    text, open_lines = document.text, list[int]()
    for found in _FOLDED.finditer(document.source.text):
        if found[0] == "{":
            open_lines.append(text.line(found.start()))
        elif found[0] == "}" and open_lines:
            first, last = open_lines.pop(), text.line(found.start())
            if last > first + 1:
                yield types.FoldingRange(first, last - 1)
        elif found[0].startswith("/*") and "\n" in found[0]:
            yield types.FoldingRange(text.line(found.start()), text.line(found.end()), kind=types.FoldingRangeKind.Comment)


def _runs(document: Document) -> Iterator[types.FoldingRange]:
    """Runs of at least two lines that begin alike: with `//`, `.reg`, or the data of a section."""
    begins = sorted((line, mark) for mark in RUNS for line in _lines_that_begin(document.text, mark))
    run = list[int]()
    for (line, mark), (after, mark_after) in pairwise([*begins, (-1, "")]):
        run.append(line)
        if after == line + 1 and mark_after == mark:
            continue
        if len(run) > 1:
            yield types.FoldingRange(run[0], line, kind=types.FoldingRangeKind.Comment if mark == "//" else None)
        run.clear()


def _lines_that_begin(text: DocumentText, mark: str) -> Iterator[int]:
    """The lines that begin with a mark, behind blanks."""
    last = -1
    for at in places(text.text, mark):
        line = text.line(at)
        if line != last and not text.text[text.line_starts[line] : at].strip():
            yield line
        last = line
