"""Debugging directives: `.file`, `.loc` and sections (PTX 11.5)."""

from __future__ import annotations

import re

from ptxvm.analysis import codes
from ptxvm.analysis.checks import Checks, Place
from ptxvm.syntax import tree
from ptxvm.syntax.lexer import integer

OVERFLOW = 1 << 32
Line = tuple[int, int, int]
"""File, line and column of a source."""

WIDTHS = {".b8": 8, ".b16": 16, ".b32": 32, ".b64": 64}
HOLDS_LABELS = (".b32", ".b64")


def file(checks: Checks, node: tree.Directive) -> None:
    """`.file 1 "a.cu", 1700000000, 4096`"""
    index, name = node.arguments[:2]
    if not isinstance(index, tree.Integer) or not isinstance(name, tree.String):
        return
    files = checks.program.files
    if len(node.arguments) > len((index, name)):
        checks.needs("file times", node)
    if index.value >= OVERFLOW:
        checks.error(
            codes.BAD_FILE, f"{index.value} is too large for the index of a file", index, ptxas="Constant overflow"
        )
    elif index.value in files:
        checks.error(
            codes.BAD_FILE,
            f'the index {index.value} is that of "{files[index.value]}" already',
            index,
            ptxas=f"Duplicate file index #{index.value}",
        )
    else:
        files[index.value] = name.text


def location(checks: Checks, node: tree.Location, known: set[Line]) -> None:
    """`.loc 1 20 5, function_name $L, inlined_at 1 30 2`: `known` are the places of those above."""
    here = node.file, node.line, node.column
    if max(here) >= OVERFLOW:
        checks.error(codes.BAD_LOCATION, f"{max(here)} is too large for a .loc", node, ptxas="Constant overflow")
    if node.inlined_at is not None and node.inlined_at not in known:
        at = " ".join(map(str, node.inlined_at))
        checks.error(
            codes.BAD_LOCATION,
            f"no .loc above is for {at}, where this code was inlined",
            node,
            help=f"put `.loc {at}` above",
            ptxas=f"Source location {at} used in inlined_at directive must be used in a preceding .loc directive",
        )
    known.add(here)


# ── sections (PTX 11.5.1, 11.5.2) ───────────────────────────────────────────────────────


def section(checks: Checks, node: tree.Section, labels: set[str]) -> None:
    """`.section .debug_info {…}`, or lines of `@@DWARF`; `labels` are those of all sections above."""
    place = checks.word(node, ".section", "@@DWARF")
    if node.name == "@@DWARF":
        checks.needs("@@DWARF", place)
        return
    checks.needs(".section", place)
    for text in node.lines:
        at = checks.word(node, text)
        if text.endswith(":"):
            label(checks, text[:-1], at, labels)
        else:
            data(checks, text, at)


def label(checks: Checks, name: str, place: Place, labels: set[str]) -> None:
    """`name:` within a section."""
    checks.needs("section label", place)
    if name in labels:
        checks.error(
            codes.DUPLICATE,
            f"the label '{name}' is declared already",
            place,
            ptxas=f"Duplicate definition of label '{name}'",
        )
    labels.add(name)


def data(checks: Checks, text: str, place: Place) -> None:
    """`.b8 1, 2` or `.b32 label` or `.b64 .debug_abbrev+4`"""
    type, _, rest = text.partition(" ")
    symbolic = not re.match(r"[\d-]", rest)
    if type not in WIDTHS or (symbolic and type not in HOLDS_LABELS):
        said = "labels and sections are .b32 or .b64" if type in WIDTHS else f"a section holds no {type}"
        checks.error(codes.BAD_SECTION, said, place, ptxas="Illegal type for dwarf data")
    elif symbolic:
        for sign, feature in (("+", "section offset"), ("-", "section difference")):
            if sign in rest:
                checks.needs(feature, place)
    else:
        numbers(checks, type, rest, place)


def numbers(checks: Checks, type: str, rest: str, place: Place) -> None:
    """Each number fits into its bits, signed or unsigned; of large ones ptxas asks .b8 and .b16 alone."""
    if "-" in rest:
        checks.needs("section negative", place)
    bits = WIDTHS[type]
    for word in rest.replace(" ", "").split(","):
        literal = integer(word.lstrip("-"))
        value = literal[0] * (-1 if word.startswith("-") else 1) if literal else 0
        too_small, too_large = value < -(1 << bits - 1), value >= 1 << bits
        if (too_small and type != ".b64") or (too_large and bits <= 16):
            checks.error(
                codes.BAD_SECTION,
                f"{word} does not fit into {bits} bits",
                place,
                ptxas=f"Value out of range for type {type} {word}",
            )
