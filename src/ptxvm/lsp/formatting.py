"""Formatting by the printer of the syntax: one statement a line, indented by its block.  Comments stay where they stand.

A statement that cannot be read, or that has a comment or the end of a line inside, keeps its text; so nothing is lost.  A line
with braces keeps its statements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lsprotocol import types

from ptxvm.lsp.document import Document
from ptxvm.syntax import tree
from ptxvm.syntax.lexer import END, Tokens
from ptxvm.syntax.parser import Parser
from ptxvm.syntax.printer import print_statement
from ptxvm.syntax.source import Source

_LINE_END = re.compile(r"\r\n?|\n")
_LABEL = re.compile(r"[%$_A-Za-z][\w$]*:(?:  //|$)", re.ASCII)
_COMMENT = re.compile(r"/\*.*?\*/|\"[^\"\n]*\"|(?P<comment>//[^\n]*$)", re.DOTALL)
"""What can have `//` in it, and the comment that it begins: the two slashes of `*///` are none."""


def formatting(document: Document, indent: str = "    ") -> list[types.TextEdit]:
    """The edits that format a document: one for each line that changes."""
    return list(_edits(document, 0, len(document.text.line_starts) - 1, indent))


def range_formatting(document: Document, range: types.Range, indent: str = "    ") -> list[types.TextEdit]:
    """The edits that format the lines of a range."""
    last = range.end.line - (range.end.character == 0 and range.end.line > range.start.line)
    return list(_edits(document, range.start.line, last, indent))


def unit(options: types.FormattingOptions) -> str:
    """What one level of indentation is."""
    return " " * options.tab_size if options.insert_spaces else "\t"


def _edits(document: Document, first: int, last: int, indent: str) -> Iterator[types.TextEdit]:
    text = document.text
    for line, depth, inside in _lines(document):
        if not first <= line <= last or inside:
            continue
        start, end = text.line_span(line)
        now = text.text[start:end]
        if (wanted := formatted(document, start, end, depth, indent)) != now:
            yield types.TextEdit(text.range(start, end), wanted)


def _lines(document: Document) -> Iterator[tuple[int, int, bool]]:
    """Each line with the depth of its blocks, and whether it begins within a comment or a statement."""
    plain, source = document.module.plain, document.source.text
    depth, is_open, comment = 0, False, -1
    for line in range(len(document.text.line_starts)):
        start, end = document.text.line_span(line)
        text = plain[start:end].strip()
        yield line, max(0, depth - text.startswith("}")), is_open or comment >= 0
        comment = _comment_behind(source, plain, start, end, comment)
        depth += text.count("{") - text.count("}")
        if text:
            is_open = text[-1] not in ";{}:" and not (text[0] in ".#@" and _is_whole(text))


def _comment_behind(source: str, plain: str, start: int, end: int, comment: int) -> int:
    """Where the comment begins that goes on behind the end of a line; -1 where none does.

    `comment` is the same of the line before: a line is searched once, so that a long text takes no more than its length.
    """
    opened = max(comment, source.rfind("/*", start, end))
    is_comment = (
        opened >= 0
        and not plain[opened : opened + 2].strip()
        and source.find("*/", max(opened + 2, start), end) < 0
        and "//" not in source[source.rfind("\n", 0, opened) + 1 : opened]
    )
    return opened if is_comment else -1


def _is_whole(line: str) -> bool:
    """Is it a directive that ends with its line?"""
    return line.startswith((".version", ".target", ".address_size", ".file", ".loc", "#"))


def formatted(document: Document, start: int, end: int, depth: int, indent: str) -> str:
    """A line as it should be, several statements on lines of their own: a label at the edge of its block, all else one in."""
    line = document.source.text[start:end]
    code, comment = line.strip(), ""
    at = next((found.start() for found in _COMMENT.finditer(line) if found["comment"] is not None), -1)
    if at >= 0 and not document.module.plain[start + at : end].strip():
        code, comment = line[:at].strip(), line[at:].strip()
    codes = _printed(code) if code and "/*" not in code and "*/" not in code else [code]
    if len(codes) > 1 and document.module.function_at(start) is None:
        codes = [code]  # where the head of a function is wrong, it is read line by line
    codes[-1] = f"{codes[-1]}  {comment}" if codes[-1] and comment else codes[-1] or comment
    line_end = "\r\n" if document.source.text.startswith("\r\n", end) else "\n"
    return line_end.join(_indented(each, depth, indent) for each in codes)


def _indented(text: str, depth: int, indent: str) -> str:
    """A line with what stands in front of it."""
    is_label = _LABEL.match(text) is not None
    return indent * (max(0, depth - 1) if is_label else depth) + text if text else ""


def _printed(code: str) -> list[str]:
    """Statements as the printer writes them; as they stand where not all is statements."""
    source = Source(code)
    if code[-1:] not in ";:" or '"' in code:
        return [code]
    parser = Parser(source, Tokens(source))
    found = parser.statements()
    is_all = parser.texts[parser.at] == END and not parser.diagnostics  # a `}` too many ends the statements
    if not is_all or not found or not all(isinstance(each, tree.Instruction | tree.Variable | tree.Label) for each in found):
        return [code]
    printed = [print_statement(each) for each in found]
    return [code] if any(map(_LINE_END.search, printed)) else printed
