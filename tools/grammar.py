"""Writes the TextMate grammar of the VS Code extension from the declarations: `python tools/grammar.py`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from ptxvm.algebra.types import Type
from ptxvm.isa.catalog import load_catalog
from ptxvm.isa.model import ISA
from ptxvm.isa.special_registers import SPECIAL
from ptxvm.reference.directive_words import DIRECTIVES

FILE = Path(__file__).parents[1] / "editors" / "vscode" / "syntaxes" / "ptx.tmLanguage.json"

NAME = r"[%$_A-Za-z][\w$]*"


def grammar() -> dict[str, object]:
    """The grammar: comments, strings, numbers, and every word that the declarations know."""
    load_catalog()
    words = {word for i in ISA.instructions for form in i.forms for slot in form.slots for word in slot.choices}
    directives = {name.removeprefix(".") for name in DIRECTIVES}
    special = sorted(register.name for register in SPECIAL.values() if register.value is None)
    return {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "information": "Made by tools/grammar.py from the declarations; do not edit.",
        "name": "PTX",
        "scopeName": "source.ptx",
        "patterns": [
            _rule("comment.line.double-slash.ptx", r"//.*$"),
            {"name": "comment.block.ptx", "begin": r"/\*", "end": r"\*/"},
            _rule("string.quoted.double.ptx", r'"[^"\n]*"'),
            _rule("entity.name.label.ptx", rf"(?<![\w$%.]){NAME}(?=\s*:(?!:))"),
            _head(),
            _rule("variable.language.ptx", rf"%(?:{_any(special)})\b(?:\.[xyzw]\b)?"),
            _rule("constant.language.ptx", r"\bWARP_SZ\b"),
            _rule("storage.type.ptx", rf"\.(?:{_any(Type.named.keys())})\b(?!::)"),
            _rule("keyword.other.directive.ptx", rf"\.(?:{_any(directives)})\b(?!::)"),
            _rule("support.constant.modifier.ptx", rf"\.(?:{_any(words - directives - Type.named.keys())})(?![\w:])"),
            _rule(
                "constant.numeric.float.ptx",
                r"(?<![\w$%.])(?:0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)(?!\w)",
            ),
            _rule("constant.numeric.integer.ptx", r"(?<![\w$%.])(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?(?!\w)"),
            _rule("variable.other.register.ptx", r"%[\w$]+"),
            _rule("keyword.operator.guard.ptx", r"@!?"),
        ],
    }


def _head() -> dict[str, object]:
    """The head of an instruction, whose modifiers are coloured by the rules above."""
    return _rule("keyword.mnemonic.ptx", rf"(?<![\w$%.])(?:{_any(ISA.by_opcode)})(?=[.\s;])(?!\s*:)")


def _rule(name: str, match: str) -> dict[str, object]:
    return {"name": name, "match": match}


def _any(words: Iterable[str]) -> str:
    """An expression for any of some words, the longest first."""
    return "|".join(re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word)))


def text() -> str:
    """The file."""
    return json.dumps(grammar(), indent=2) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
    print(FILE)
