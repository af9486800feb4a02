"""What a diagnostic code means: the page of the registry, or the rule of the instructions that declare it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ptxvm.diagnostics import all_codes, explain
from ptxvm.isa.catalog import load_catalog
from ptxvm.isa.model import ISA, Instruction


@dataclass(frozen=True, slots=True)
class CodePage:
    """A code, its name in a line, the text that explains it, and the instructions that have it as a rule."""

    code: str
    title: str
    explanation: str = ""
    instructions: tuple[Instruction, ...] = ()


def page_of(code: str) -> CodePage | None:
    """The page of a code, in either case of its letter; None where there is none."""
    code = code.upper()
    entry = explain(code)
    if entry is not None:
        return CodePage(code, entry.title, entry.explanation)
    found = [(instruction, sentence) for each, instruction, sentence in _rules() if each == code]
    if not found:
        return None
    sentences = list(dict.fromkeys(sentence for _, sentence in found))
    title, *rest = sentences
    return CodePage(code, title, "\n".join(rest), tuple(dict.fromkeys(instruction for instruction, _ in found)))


def every_code() -> list[str]:
    """All codes that have a page, in order."""
    return sorted({*(entry.code for entry in all_codes()), *(code for code, _, _ in _rules())})


def _rules() -> Iterator[tuple[str, Instruction, str]]:
    """Each rule of each instruction: its code and its sentence."""
    load_catalog()
    for instruction in ISA.instructions:
        for rule in instruction.rules:
            yield rule.code, instruction, rule.sentence
