"""An instruction is declared once: outside the catalog, no source asks for an opcode or a modifier's word.

A list of opcodes elsewhere fails silently when an instruction is added to the catalog.  What such a list would say is asked
of the declaration (`Decoded.of`) or of the summary that is derived from the meaning (`isa.summary`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import ptxvm

ROOT = Path(ptxvm.__file__).parent
HEADS = {"opcode", "words", "mnemonic"}  # attributes that hold the head of an instruction, and names for their values
KEYS = {"opcode", "words"}  # of these, what may be no key: instructions with one mnemonic may well be grouped
ASKING = {"isdisjoint", "issubset", "issuperset", "intersection", "startswith", "endswith", "index", "count"}
ALLOWED = {
    "isa": "the declarations, and what is derived from them",
    "syntax": "the parser makes opcodes and words of text",
    "analysis/recognise.py": "finds the declaration of an instruction by its opcode and words",
    "analysis/operand_problems.py": "has ptxas's words for wrong operands, which differ by opcode",
    "analysis/repairs.py": "suggests what was meant by an opcode or a word that no declaration has",
    "analysis/ptxas_missing.py": "has ptxas's words for an opcode whose modifiers no declaration has",
    "analysis/ptxas_modifiers.py": "has ptxas's words for a modifier that no declaration has",
    "analysis/validate.py": "marks the opcode and the words of a wrong instruction in a diagnostic",
    "analysis/naming.py": "recognises opcodes of PTX that stand where a name should",
    "reference": "lists the declarations by opcode",
    "cli/isa.py": "lists the declarations by opcode",
    "model/litmus_instructions.py": "another language: the instructions of litmus tests",
}


def allowed(path: Path) -> bool:
    name = path.relative_to(ROOT).as_posix()
    return any(name == each or name.startswith(f"{each}/") for each in ALLOWED)


def is_head(node: ast.AST, names: set[str] = HEADS) -> bool:
    """Is it the opcode or the words of an instruction, or a variable of that name?"""
    by_name = isinstance(node, ast.Name) and node.id in names - {"words"}
    return by_name or (isinstance(node, ast.Attribute) and node.attr in names)


def holds_head(node: ast.AST) -> bool:
    """Is a part of it the head of an instruction, which is no key of a group?"""
    keys = {id(each.slice) for each in ast.walk(node) if isinstance(each, ast.Subscript) and not is_head(each.slice, KEYS)}
    return any(is_head(each) and id(each) not in keys for each in ast.walk(node))


def questions(tree: ast.AST) -> Iterator[int]:
    """The lines that compare a head, look it up, take it apart, or go through its words."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare():
                asks = any(holds_head(side) for side in (node.left, *node.comparators))
            case ast.comprehension():
                asks = holds_head(node.iter)
            case ast.For():
                asks = is_head(node.iter)
            case ast.Match():
                asks = holds_head(node.subject)
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr() | ast.Sub() | ast.BitXor()):
                asks = is_head(node.left) or is_head(node.right)
            case ast.Call(func=ast.Attribute(attr=name)) if name in ASKING:
                asks = is_head(node.func.value) or any(is_head(each, KEYS) for each in node.args)
            case ast.Subscript():
                asks = is_head(node.slice, KEYS)
            case _:
                asks = False
        if asks:
            yield getattr(node, "lineno", None) or node.iter.lineno


SOURCES = sorted(path for path in ROOT.rglob("*.py") if not allowed(path))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_source_asks_for_an_opcode_or_a_word(path: Path) -> None:
    assert sorted(set(questions(ast.parse(path.read_text())))) == []


@pytest.mark.parametrize(
    "line",
    [
        'x = bound.node.opcode == "ld"',
        'x = bound.node.opcode in {"ld", "st"}',
        'x = opcode in ("ld", "st")',
        'x = (opcode, name) in (("sub", "a"),)',
        'x = "noComplete" in bound.node.words',
        'x = any(word.startswith("param") for word in bound.node.words)',
        "x = {word for word in node.words}",
        "x = PARAMETERS.isdisjoint(bound.node.words)",
        'x = i.mnemonic.startswith("bar")',
        'x = i.form.opcode != "cvt"',
        "x = TABLE[bound.node.opcode]",
        'match node.opcode:\n    case "ld":\n        pass',
        "x = SPACES & node.words",
    ],
)
def test_questions_are_found(line: str) -> None:
    assert list(questions(ast.parse(line))) != []


@pytest.mark.parametrize("line", ['x = f"{i.mnemonic} is refused"', "x = pools[key]", "x = find(node.opcode, node.words)"])
def test_what_only_names_an_instruction_is_none(line: str) -> None:
    assert list(questions(ast.parse(line))) == []


def test_every_exception_is_needed() -> None:
    for name in ALLOWED:
        place = ROOT / name
        files = [place] if place.is_file() else list(place.rglob("*.py"))
        assert any(list(questions(ast.parse(file.read_text()))) for file in files), name
