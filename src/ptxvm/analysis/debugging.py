"""Debugging directives: `.file`, `.loc` and sections (PTX 11.5)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from ptxvm.analysis import codes
from ptxvm.analysis.checks import Checks
from ptxvm.syntax import tree
from ptxvm.syntax.lexer import integer

OVERFLOW = 1 << 32
Line = tuple[int, int, int]
"""File, line and column of a source."""

WIDTHS = {".b8": 8, ".b16": 16, ".b32": 32, ".b64": 64}
HOLDS_LABELS = (".b32", ".b64")
DIGITS = frozenset("-0123456789")


def file(checks: Checks, node: tree.Directive) -> None:
    """`.file 1 "a.cu", 1700000000, 4096`"""
    index, name = node.arguments[:2]
    if not isinstance(index, tree.Integer) or not isinstance(name, tree.String):
        return
    files = checks.program.files
    if len(node.arguments) > len((index, name)):
        checks.needs("file times", node)
    if overflows(checks, index.value, codes.BAD_FILE, "the index of a file", index):
        return
    if index.value in files:
        checks.error(
            codes.BAD_FILE,
            f'the index {index.value} is that of "{files[index.value]}" already',
            index,
            ptxas=f"Duplicate file index #{index.value}",
        )
    else:
        files[index.value] = name.text


def overflows(checks: Checks, value: int, code: str, what: str, place: tree.Node) -> bool:
    """Report a number that does not fit into 32 bits; is it one?"""
    if value < OVERFLOW:
        return False
    checks.error(code, f"{value} is too large for {what}", place, ptxas="Constant overflow")
    return True


def location(checks: Checks, node: tree.Location, known: set[Line]) -> None:
    """`.loc 1 20 5, function_name $L, inlined_at 1 30 2`: `known` are the places of those above."""
    here = node.file, node.line, node.column
    overflows(checks, max(here), codes.BAD_LOCATION, "a .loc", node)
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


def intermediate_location(checks: Checks, node: tree.Directive) -> None:
    """`.loc_intermediate 2 15 4`; the file need not be declared."""
    checks.needs(".loc_intermediate", node)
    largest = max(each.value for each in node.arguments if isinstance(each, tree.Integer))
    overflows(checks, largest, codes.BAD_LOCATION, "a .loc_intermediate", node)


def intermediate_sources(checks: Checks, node: tree.IntermediateSources) -> None:
    """`.nv_intermediate_source_section {…}`: the files of its texts are declared above."""
    checks.needs(".nv_intermediate_source_section", checks.word(node, ".nv_intermediate_source_section"))
    for block in node.blocks:
        index = block.file.value
        if overflows(checks, index, codes.BAD_FILE, "the index of a file", block.file):
            continue
        if index not in checks.program.files:
            checks.error(
                codes.BAD_FILE,
                f"no .file above has the index {index}",
                block.file,
                help=f'declare the file above: `.file {index} "name"`',
                ptxas=f"Undefined file index #{index}",
            )


# ── sections (PTX 11.5.1, 11.5.2) ───────────────────────────────────────────────────────


def section(checks: Checks, node: tree.Section, labels: set[str]) -> None:
    """`.section .debug_info {…}`, or lines of `@@DWARF`; `labels` are those of all sections above."""
    if node.name == "@@DWARF":
        checks.needs("@@DWARF", checks.word(node, "@@DWARF"))
        return
    used = {".section": ".section"}  # what the section needs, and the first line that does
    right = set[str]()  # most lines of a section are single bytes: each is looked at once
    for text in node.lines:
        if text in right:
            continue
        type, _, rest = text.partition(" ")
        for feature in features(type, rest):
            used.setdefault(feature, text)
        if text.endswith(":"):
            label(checks, node, text, labels)
        elif wrong := wrong_data(type, rest):
            said, ptxas = wrong
            checks.error(codes.BAD_SECTION, said, checks.word(node, text), ptxas=ptxas)
        else:
            right.add(text)
    for feature, text in used.items():
        checks.needs(feature, checks.word(node, text))


def label(checks: Checks, node: tree.Section, text: str, labels: set[str]) -> None:
    """`name:` within a section."""
    name = text[:-1]
    if name in labels:
        place, ptxas = checks.word(node, text), f"Duplicate definition of label '{name}'"
        checks.error(codes.DUPLICATE, f"the label '{name}' is declared already", place, ptxas=ptxas)
    labels.add(name)


def features(type: str, rest: str) -> Iterator[str]:
    """The features of a line of a section that are younger than sections, by their names in `isa.directives`."""
    if type.endswith(":"):
        yield "section label"
    elif rest[:1] in DIGITS:
        if "-" in rest:
            yield "section negative"
    elif "+" in rest:
        yield "section offset"
    elif "-" in rest:
        yield "section difference"


BYTES = frozenset(map(str, range(256)))
"""Most of what sections hold; it fits into any type."""


@lru_cache(maxsize=1 << 12)  # most lines of a section are single bytes
def wrong_data(type: str, rest: str) -> tuple[str, str] | None:
    """What is wrong with `.b8 1, 2` or `.b32 label` or `.b64 .debug_abbrev+4`: in our words, and in those of ptxas."""
    bits = WIDTHS.get(type, 0)
    symbolic = rest[:1] not in DIGITS
    if not bits or (symbolic and type not in HOLDS_LABELS):
        said = "labels and sections are .b32 or .b64" if bits else f"a section holds no {type}"
        return said, "Illegal type for dwarf data"
    words = [] if symbolic else rest.replace(" ", "").split(",")
    if BYTES.issuperset(words):
        return None
    for word in words:
        literal = integer(word.lstrip("-"))
        value = literal[0] * (-1 if word.startswith("-") else 1) if literal else 0
        # Of .b64 ptxas asks nothing; numbers without a sign it takes modulo 2^32.
        too_small, too_large = value < -(1 << bits - 1), value > 0 and value % (1 << 32) >= 1 << bits
        if (too_small and bits < 64) or too_large:
            return f"{word} does not fit into {bits} bits", f"Value out of range for type {type} {word}"
    return None
