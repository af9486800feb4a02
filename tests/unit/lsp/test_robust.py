"""Whatever a text is while it is written: no question makes the server fail, and every place in an answer is in the text."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("lsprotocol", reason="the language server needs the extra 'lsp'")

from lsprotocol.converters import get_converter
from lsprotocol.types import Position, Range, TextDocumentContentChangePartial

from ptxvm.analysis.incremental import IncrementalChecker
from ptxvm.lsp import actions, completion, formatting, hints, hover, lenses, navigation, semantic, signature, symbols
from ptxvm.lsp.diagnostics import findings, shown
from ptxvm.lsp.document import Document
from ptxvm.lsp.text import DocumentText

TEXT = """\
.version 8.0
.target sm_90
.address_size 64
.global .align 4 .u32 table[4] = {1, 2, 3, 4};
.visible .entry k(.param .u64 out) // a comment: \u00e9 \U0001f600
{
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>; /* \U0001f600 */ .reg .pred %p<2>;
    ld.param.u64 %rd1, [out];
L:
    mov.u32 %r1, %tid.x;
    { .reg .b32 t; mov.b32 t, table; }
    @%p1 bra L;
    st.global.v2.u32 [%rd1+8], {%r1, %r2};
    ret;
}
"""
PIECES = [
    "{", "}", "(", ")", "[", "]", ";", ":", ",", ".", "%", "@", '"', "//", "/*", "*/", "\n", "\r", "\r\n", "\0", "\t", " ",
    "\u00e9", "\U0001f600", "\u2028", "%r99", "add.", "ld.global", ".entry", ".reg .b32 ", "bra ", "<", ">", "0x", "x" * 9000,
]  # fmt: skip


def questions(document, position):
    """Every answer about a place."""
    yield hover.hover(document, position)
    yield completion.completion(document, position)
    yield signature.signature_help(document, position)
    yield navigation.definition(document, position)
    yield navigation.references(document, position, declaration=True)
    yield navigation.highlights(document, position)
    yield navigation.renameable(document, position)
    yield symbols.Symbols().of(document)
    yield symbols.folding(document)
    yield semantic.joined(document, semantic.Tokens().of(document))
    yield formatting.formatting(document)
    yield lenses.lenses(document)
    found = findings(document, IncrementalChecker())
    yield [shown(document, each) for each in found]
    yield actions.actions(document, Range(Position(0, 0), Position(99, 0)), found)
    yield hints.Hints(IncrementalChecker()).inlay(document, Range(Position(0, 0), Position(99, 0)))


def ranges(answer):
    """Every range in an answer, as the editor gets it."""
    work = [answer]
    while work:
        each = work.pop()
        if isinstance(each, dict) and {"start", "end"} <= each.keys() and isinstance(each["start"], dict):
            yield each
        work += each.values() if isinstance(each, dict) else each if isinstance(each, list) else []


@pytest.mark.parametrize("session", range(6))
def test_no_text_makes_a_question_fail(session, rng):
    random_edits = random.Random(int(rng.integers(2**32)) + session)
    converter = get_converter()
    document = Document("file:///a.ptx", DocumentText(TEXT))
    for _ in range(6):
        at, last = (document.text.position(random_edits.randrange(len(document.text.text) + 1)) for _ in range(2))
        end = last if random_edits.random() < 0.1 and (at.line, at.character) < (last.line, last.character) else at
        change = TextDocumentContentChangePartial(Range(at, end), random_edits.choice(PIECES))
        document = document.edited([change], 1)
        lines = len(document.text.line_starts)
        for answer in questions(document, at):
            for found in ranges(converter.unstructure(answer)):
                start, end = ((found[side]["line"], found[side]["character"]) for side in ("start", "end"))
                assert (0, 0) <= start <= end
                assert end[0] < lines
                line = document.text.line_span(end[0])
                assert end[1] <= document.text.units(*line) + (end[0] < lines - 1) * 2


@pytest.mark.parametrize("offset", range(0, len(TEXT), 7))
def test_every_prefix_of_a_module_can_be_asked(offset):
    """A text that ends anywhere, as it does when it is typed from top to bottom."""
    document = Document("file:///a.ptx", DocumentText(TEXT[:offset]))
    assert list(questions(document, document.text.position(offset)))
