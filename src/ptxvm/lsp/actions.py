"""Quick fixes, from the help of diagnostics: what a help says to write becomes an edit."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lsprotocol import types

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.scope import LONGEST_NUMBER
from ptxvm.diagnostics import Diagnostic, codes
from ptxvm.lsp.diagnostics import shown
from ptxvm.lsp.document import Document

_QUOTED = re.compile(r"`([^`]+)`")
_INSTEAD = re.compile(r"^(?:did you mean|write|leave) ")
_COMMAS = re.compile(r"\w+ are divided by commas")
_DECLARE = re.compile(r"declare `(\.reg [^`]+;)` above")
_FAMILY = re.compile(r"`([^`<]+)<(\d+)>` declares ")
_INDENT = re.compile(r"[ \t]*\n([ \t]*)(?=\S)")
_HEADER = re.compile(r"\.(version|target|address_size)[ \t]+[^\s;/]+")


def actions(document: Document, wanted: types.Range, found: list[Diagnostic]) -> list[types.CodeAction]:
    """The fixes of what is wrong in a range."""
    start, end = document.text.span(wanted)
    made = []
    for each in found:
        if each.span.start <= end and start <= each.span.end:
            fixes = list(dict.fromkeys(_fixes(document, each)))
            made += [_action(document, each, *fix, is_only=len(fixes) == 1) for fix in fixes]
    return made


Fix = tuple[str, int, int, str]
"""The title of a fix, the span that it replaces, and the text in its place."""


def _action(
    document: Document, found: Diagnostic, title: str, start: int, end: int, text: str, *, is_only: bool
) -> types.CodeAction:
    edit = types.WorkspaceEdit({document.uri: [types.TextEdit(document.text.range(start, end), text)]})
    return types.CodeAction(
        title, types.CodeActionKind.QuickFix, [shown(document, found)], is_preferred=is_only or None, edit=edit
    )


def _fixes(document: Document, found: Diagnostic) -> Iterator[Fix]:
    """What a diagnostic offers: the semicolon, comma or declaration that is missing, or what its help quotes."""
    start, end = found.span.start, found.span.end
    if found.code == codes.MISSING_SEMICOLON:
        yield "Insert `;`", start, start, ";"
    elif _COMMAS.fullmatch(found.help):
        behind = len(document.module.plain[:start].rstrip())
        yield "Insert `,`", behind, behind, ","
    elif family := _FAMILY.match(found.help):
        yield from _count(document, found, family[1], family[2])
    elif declared := _DECLARE.search(found.help):
        yield from _declaration(document, found, declared[1])
    elif found.help.startswith("leave "):
        for word in _QUOTED.findall(found.help):
            yield f"Remove `{word}`", start, end, ""
    elif _INSTEAD.match(found.help):
        for word in _QUOTED.findall(found.help):
            yield from _replacement(document, found, word)


def _count(document: Document, found: Diagnostic, prefix: str, count: str) -> Iterator[Fix]:
    """A family of registers that has the register too which is not declared."""
    number = document.source.text[found.span.start : found.span.end].removeprefix(prefix)
    declared = re.compile(rf"(?<![\w$%]){re.escape(prefix)}\s*<\s*{count}\s*>")
    places = list(declared.finditer(document.module.plain, 0, found.span.start))
    if places and number.isdecimal() and len(number) <= LONGEST_NUMBER and int(number) >= int(count):
        word = f"{prefix}<{int(number) + 1}>"
        yield f"Change to `{word}`", *places[-1].span(), word


def _declaration(document: Document, found: Diagnostic, text: str) -> Iterator[Fix]:
    """A declaration at the begin of the body, in a line of its own where the first statement has one."""
    function = document.module.function_at(found.span.start)
    if function is not None:
        at = function.start + 1
        indent = _INDENT.match(document.source.text, at)
        yield f"Declare `{text}`", at, at, f"\n{indent[1]}{text}" if indent is not None else f" {text}"


def _replacement(document: Document, found: Diagnostic, word: str) -> Iterator[Fix]:
    """A word in the place of what is wrong: a directive of the header, a modifier, a head, or a name."""
    source = document.source.text
    start, end = found.span.start, found.span.end
    there = source[start:end]
    if header := _HEADER.fullmatch(word):
        for line in re.finditer(rf"^[ \t]*(\.{header[1]}[ \t]+[^\s,/]+)", source, re.MULTILINE):
            yield f"Change to `{word}`", line.start(1), line.end(1), word
            return
    elif "…" in word or "\n" in there:
        return
    elif found.help.endswith(" in the instruction") and (space := _space(document, start)) is not None:
        yield f"Change to `{word}`", *space, word
    elif word == f"[{there}]" or (
        word.startswith(".") == there.startswith(".") and not re.search(r"[\s,\[]", f"{there}{word}")
    ):
        yield f"Change to `{word}`", start, end, word


def _space(document: Document, offset: int) -> tuple[int, int] | None:
    """The span of the state space that the instruction at a place names."""
    node = document.module.instruction_at(offset + 1)
    if node is None:
        return None
    head = document.source.text[node.head_start : node.head_end]
    for word in re.finditer(r"\.[\w:]+", head):
        if word[0][1:].partition("::")[0] in frozenset(Space):
            return node.head_start + word.start(), node.head_start + word.end()
    return None
