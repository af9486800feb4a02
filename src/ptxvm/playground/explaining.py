"""Explains the instruction under the cursor: its parts in words, what it computes in the lanes of a warp, and pictures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ptxvm.playground.requests import ExplainRequest
from ptxvm.reference.directive_words import DIRECTIVES
from ptxvm.reference.instruction_parts import modifiers_of, operands_of, requirements
from ptxvm.reference.page import Page
from ptxvm.reference.reading import NotUnderstood, Reading, read

LABEL = re.compile(r"\s*[\w$]+\s*:(?!:)")
COMMENT = re.compile(r"//.*|/\*.*?\*/", re.DOTALL)
DIRECTIVE = re.compile(r"\s*(\.[a-z_0-9]+)")


def explain(request: ExplainRequest) -> dict[str, object]:
    """What a line of PTX is; `found` is empty where it has no instruction and no directive."""
    text = LABEL.sub("", COMMENT.sub(" ", request.text)).strip()
    if (directive := DIRECTIVE.match(text)) is not None:
        return of_directive(directive[1])
    try:
        reading = read(text) if text.strip("{} \t\n;") else None
    except NotUnderstood as refused:
        return {"found": "wrong", "title": text, "summary": "; ".join(d.message for d in refused.diagnostics)}
    if reading is None:
        return {"found": ""}
    return of_instruction(reading, named(request.values))


def of_directive(word: str) -> dict[str, object]:
    """A directive, with the section that describes it."""
    if word not in DIRECTIVES:
        return {"found": ""}
    section, said = DIRECTIVES[word]
    return {"found": "directive", "title": word, "summary": f"{said}.", "section": f"PTX ISA {section}"}


def named(values: Sequence[str]) -> dict[str, str]:
    """The values of registers, of texts NAME=VALUE."""
    pairs = [each.partition("=") for each in values]
    return {name.strip(): value.strip() for name, _, value in pairs if value.strip()}


def of_instruction(reading: Reading, given: Mapping[str, str]) -> dict[str, object]:
    """An instruction: its parts, and what it does with values."""
    from ptxvm.playground.computing import computed  # noqa: PLC0415 - directives need no NumPy
    from ptxvm.reference.evaluation import constants_of  # noqa: PLC0415

    page, i = Page(reading.decoded.of), reading.decoded
    return {
        "found": "instruction",
        "title": reading.text,
        "summary": page.summary,
        "section": page.section,
        "form": f"{i.form.text};",
        "needs": requirements(i),
        "modifiers": modifiers_of(i),
        "operands": operands_of(reading.bound, constants_of(reading)),
        "effects": page.effects,
        **computed(reading, given),
    }


__all__ = ["explain"]
