"""Long syntax lines and words as several lines that fit."""

from __future__ import annotations

import re
import textwrap

FURTHER = " " * 8
"""Before what goes on of a syntax line."""

PIECE = re.compile(r"\{[^}]*\}|\.?[^.{]+|.")
"""A modifier of a syntax line, with its braces."""


def hanging(line: str, columns: int) -> list[str]:
    """A syntax line, or the choices of a slot: what is too long goes on under the first choice, or behind the opcode."""
    if " = {" not in line:
        return syntax_lines(line, columns)
    return textwrap.wrap(line, columns, subsequent_indent=" " * (line.find("{ ") + 2), break_on_hyphens=False)


def wrapped(text: str, columns: int) -> list[str]:
    """A text as lines that fit: broken at blanks, and within a word too long for a line before a modifier."""
    lines = textwrap.wrap(text, columns, break_on_hyphens=False, break_long_words=False) or [""]
    return [part for line in lines for part in _broken(line, columns)]


def syntax_lines(form: str, columns: int) -> list[str]:
    """A syntax line as lines that fit: broken before modifiers and operands, those after the first further in."""
    head, _, operands = form.partition(" ")
    first, *others = _broken(head, columns, FURTHER)
    if not operands:
        return [first, *others]
    if len(last := f"{[first, *others][-1]} {operands}") <= columns:
        return [*[first, *others][:-1], last]
    return [first, *others, *(FURTHER + line for line in wrapped(operands, columns - len(FURTHER)))]


def _broken(word: str, columns: int, indent: str = "") -> list[str]:
    """A line without blanks, or one that fits, broken before modifiers; a modifier that is too long is cut."""
    lines = [""]
    for piece in PIECE.findall(word) if len(word) > columns else [word]:
        if lines[-1].strip() and len(lines[-1]) + len(piece) > columns:
            lines.append(indent)
        lines[-1] += piece
    return [line[n : n + columns] for line in lines for n in range(0, len(line) or 1, columns)]
