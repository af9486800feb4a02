"""What a diagnostic code means: the page of the registry, or the rule of the instructions that declare it."""

from __future__ import annotations

from collections.abc import Iterator

from ptxvm.analysis.known_codes import code_entry
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics import all_codes
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
    code = code.upper() if code[1:].isdigit() else code
    entry = code_entry(code)
    if entry is None:
        return None
    instructions = dict.fromkeys(instruction for each, instruction, _ in _rules() if each == code)
    return CodePage(entry.code, entry.title, "" if entry.explanation == entry.title else entry.explanation, tuple(instructions))


def every_code() -> list[str]:
    """All codes that have a page, in order."""
    return sorted({*(entry.code for entry in all_codes()), *(code for code, _, _ in _rules())})


def _rules() -> Iterator[tuple[str, Instruction, str]]:
    """Each rule of each instruction: its code and its sentence."""
    load_catalog()
    for instruction in ISA.instructions:
        for rule in instruction.rules:
            yield rule.code, instruction, rule.sentence
