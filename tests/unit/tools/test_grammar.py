"""The grammar of the VS Code extension: it is the one that the declarations make."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

from ptxvm.isa.catalog import load_catalog
from ptxvm.isa.model import ISA

TOOL = Path(__file__).parents[3] / "tools" / "grammar.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("grammar_tool", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_file_is_what_the_tool_writes(tool):
    assert tool.FILE.read_text() == tool.text(), "run: python tools/grammar.py"


def test_every_opcode_and_modifier_has_a_colour(tool):
    load_catalog()
    rules = {rule["name"]: rule.get("match", "") for rule in json.loads(tool.text())["patterns"]}
    for opcode in ISA.by_opcode:
        assert re.match(rules["keyword.mnemonic.ptx"], f"{opcode};")[0] == opcode
    dotted = [rules[name] for name in rules if name.startswith(("storage.type", "keyword.other.directive", "support.constant"))]
    for word in {word for i in ISA.instructions for form in i.forms for slot in form.slots for word in slot.choices}:
        assert any((found := re.match(rule, f".{word} ")) and found[0] == f".{word}" for rule in dotted), word
