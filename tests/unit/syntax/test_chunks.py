"""Content-defined chunking: chunks are the text, and an edit leaves those that stand far from it."""

from __future__ import annotations

import pytest

from ptxvm.syntax.chunks import chunk_end, chunks

LINES = [f"add.s32 %r{n % 90}, %r{n * n % 97}, {n};\n" for n in range(9000)]


@pytest.mark.parametrize("text", ["", "ret;", "".join(LINES), "x" * 5000, "ret;" * 2000, "x" * 5000 + ";" + "y" * 9])
def test_chunks_are_the_text(text):
    found = list(chunks(text, 1000))
    assert "".join(found) == text
    assert all(found)


def test_a_chunk_ends_behind_a_line_or_else_a_statement():
    text = "".join(LINES)
    assert all(each.endswith("\n") and 250 <= len(each) <= 1100 for each in list(chunks(text, 1000))[:-1])
    assert chunk_end("ret;" * 1000, 0, 4000, 1000) == 1004
    assert chunk_end(text, 0, 900, 1000) == 900


@pytest.mark.parametrize("at", [0, 1, 4000, 8999])
@pytest.mark.parametrize("new", [["ret;\n"], LINES[100:200], []])
def test_an_edit_leaves_the_chunks_far_from_it(at, new):
    before, after = (set(chunks("".join(lines), 4000)) for lines in (LINES, LINES[:at] + new + LINES[at + 1 :]))
    assert len(after - before) <= len(new) / 25 + 5
