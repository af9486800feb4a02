"""Pages of help: how a command is written, what it does, its options."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence

WIDEST = 100
"""The columns of a page on terminals that are wider."""

NARROWEST = 50
LONGEST_TERM = 30
"""The columns that what is explained may have on the line of its explanation."""

AS_IT_IS = "\b"
"""The line before a paragraph whose lines stay as they are."""


def page(usage: str, text: str, tables: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    """A page: the usage, paragraphs of text, and tables below their headings."""
    width = max(min(shutil.get_terminal_size().columns, WIDEST) - 2, NARROWEST)
    lines = [f"Usage: {usage}", ""]
    for paragraph in text.split("\n\n"):
        first, _, rest = paragraph.partition("\n")
        if first == AS_IT_IS:
            lines += [*textwrap.indent(rest, "  ").splitlines(), ""]
        else:
            lines += [*textwrap.wrap(paragraph, width, initial_indent="  ", subsequent_indent="  "), ""]
    for heading, rows in tables.items():
        lines += [f"{heading}:", *table(rows, width), ""]
    return "\n".join(lines[:-1]) + "\n"


def table(rows: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    """Terms, and beside them their explanations; below a term that is long."""
    column = min(max(len(term) for term, _ in rows), LONGEST_TERM) + 2
    for term, said in rows:
        first, *others = textwrap.wrap(said, width - column - 2) or [""]
        if len(term) > column - 2:
            yield f"  {term}"
            yield " " * (column + 2) + first
        else:
            yield f"  {term:<{column}}{first}".rstrip()
        for line in others:
            yield " " * (column + 2) + line
