"""Markdown (MyST): escaped prose, code, tables, lists of pages, and the names by which pages are sought."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

Files = dict[str, str]
"""Texts by their paths below the folder of the site."""

SPECIAL = re.compile(r"([\\*_\[\]<>#$~^{}|])")
BAR, ESCAPED_BAR = re.compile(r"(?<!\\)[|]"), r"\\|"


def escaped(text: str) -> str:
    """Prose with nothing in it that Markdown takes for its own, but for `code`."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(part if part.startswith("`") else SPECIAL.sub(r"\\\1", part) for part in parts)


def prose(text: str) -> str:
    """Paragraphs as they are; what is indented is code."""
    blocks = []
    for block in re.split(r"\n\s*\n", text):
        if block.startswith("    "):
            blocks.append("\n".join(["```{code-block} ptx", ":force:", "", *(x[4:] for x in block.splitlines()), "```"]))
        else:
            blocks.append(escaped(block))
    return "\n\n".join(blocks)


def code(text: str) -> str:
    """A text as it is written in a source; nothing for no text."""
    return f"`{text}`" if text else ""


def table(head: tuple[str, ...], rows: Collection[tuple[str, ...]]) -> list[str]:
    """A table; a bar in a cell is one of the cell's own."""
    lines = [head, tuple("---" for _ in head), *rows]
    return [f"| {' | '.join(BAR.sub(ESCAPED_BAR, cell) for cell in line)} |" for line in lines]


def toctree(names: Iterable[str]) -> list[str]:
    """The pages below a page, `path` or `title <path>`, which the sidebar lists."""
    return ["```{toctree}", ":hidden:", ":maxdepth: 1", "", *names, "```", ""]


def also_called(names: Iterable[str]) -> list[str]:
    """Common names of what a page is about: by these words the search of the site, which reads texts only, finds it."""
    said = ", ".join(names)
    return [f"*Also called: {escaped(said)}.*", ""] if said else []
