"""Content-defined chunking: a long text is cut where the contents of a line say so; an edit moves no cut but those near it."""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

CHARACTERS = 128
"""For so many characters of the longest chunk there is one line that ends no chunk: lines that do are a fourth of it apart."""


def chunk_end(text: str, start: int, end: int, longest: int) -> int:
    """Where a chunk ends that begins at a place: behind a line, at a fourth of the longest length or further."""
    if end - start <= longest:
        return end
    at = text.find("\n", start + longest // 4, start + longest) + 1
    while at > 0 and (line_end := text.find("\n", at, start + longest)) >= 0:
        if crc32(text[at:line_end].encode(errors="surrogatepass")) % (longest // CHARACTERS) == 0:
            return line_end + 1
        at = line_end + 1
    return _line_end(text, start + longest, end, longest)


def _line_end(text: str, at: int, end: int, room: int) -> int:
    """The place behind the line at a place; behind its statement where the line is long."""
    cut = text.find("\n", at, min(at + room, end))
    cut = text.find(";", at, end) if cut < 0 else cut
    return cut + 1 if cut >= 0 else end


def chunks(text: str, longest: int) -> Iterator[str]:
    """The chunks of a text, one after the other."""
    start = 0
    while start < len(text):
        end = chunk_end(text, start, len(text), longest)
        yield text[start:end]
        start = end
