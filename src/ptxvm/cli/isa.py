"""`ptxvm isa`: the instructions, and the page of each."""

from __future__ import annotations

import re
import textwrap

from rich.text import Text

from ptxvm.cli.failures import FINDINGS, say
from ptxvm.cli.terminal import console, filled, labelled
from ptxvm.diagnostics import did_you_mean
from ptxvm.reference.page import Page, find, opcodes, pages
from ptxvm.reference.syntax_lines import hanging

NAME, SECTION = 18, 11
MOST = 36  # characters of a longer name that the list shows


def isa(opcode: str | None) -> int:
    """Print the list of all instructions, or the pages of one opcode."""
    if opcode is None:
        return print_list()
    found = find(opcode)
    if not found:
        return unknown("isa", opcode)
    for n, page in enumerate(found):
        if n:
            console().print()
        print_page(page)
    return 0


def unknown(command: str, opcode: str) -> int:
    """Say that there is no such instruction, and which was probably meant."""
    guess = did_you_mean(opcode.partition(".")[0], opcodes())
    return say(f"ptxvm {command}: no instruction is called '{opcode}'{f'; {guess}' if guess else ''}", FINDINGS)


def print_list() -> int:
    """All instructions, by the chapters of the manual."""
    out = console()
    families = pages()
    for chapter, of_family in families.items():
        out.print(Text(filled(chapter), style="bold"))
        for page in of_family:
            name = page.title if len(page.title) <= MOST else f"{page.title[: MOST - 1]}…"
            place = f"  {name:<{NAME}}  {page.of.section:<{SECTION}}  "
            out.print(Text(place + brief(page.headline, out.width - len(place))), soft_wrap=True)
        out.print()
    every = [page for of_family in families.values() for page in of_family]
    distinct = len({page.of.forms[0].opcode for page in every})
    out.print(Text(f"{distinct} opcodes, {len(every)} declarations; `ptxvm isa OPCODE` shows one."))
    return 0


def brief(sentence: str, columns: int) -> str:
    """The sentence on what is left of the line: its first clause, or as many words as fit."""
    if len(sentence) <= columns:
        return sentence
    clause = re.split(r"[;:] ", sentence)[0].strip()
    return clause if len(clause) <= columns else textwrap.shorten(sentence, max(columns, 20), placeholder=" …")


def print_page(page: Page) -> None:
    """One declaration."""
    out = console()
    out.print(Text.assemble((page.title, "bold"), f", {page.section}"))
    out.print(Text(f"\n{filled(page.summary)}\n"))
    for line in page.syntax:
        out.print(Text("\n".join(f"    {part}" for part in hanging(line, out.width - 4))))
    out.print()
    blocks: list[tuple[str, list[tuple[str, ...]]]] = [
        ("operands", list(page.operands)),
        ("needs", [(need, _needed_for(modifiers)) for modifiers, need in page.needs]),
        ("rules", list(page.rules)),
        ("effects", [(effect,) for effect in page.effects]),
        ("accuracy", list(page.of.exactness)),
    ]
    for label, rows in blocks:
        if rows:
            out.print(labelled(label, rows))
    if page.of.name == "prmt":
        print_modes()


def print_modes() -> None:
    """The bytes that each mode of prmt takes."""
    from ptxvm.isa.catalog.logic import PERMUTATIONS
    from ptxvm.reference.permutation import MODE_COLUMNS, mode_table  # which loads the catalog

    rows = [(f".{mode}" if row[0] == "0" else "", *row) for mode in PERMUTATIONS for row in mode_table(mode)]
    console().print(labelled("modes", [("", *MODE_COLUMNS), *rows]))


def _needed_for(modifiers: str) -> str:
    """`(always)`, the modifiers, or the condition."""
    return modifiers or "always"
