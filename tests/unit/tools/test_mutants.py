"""The mutation tester: what it changes, what it leaves alone, and that it sees a mutant die."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = Path(__file__).parents[3] / "tools"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutants_tool", TOOLS / "mutants.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("a + b", ["a - b"]),
        ("a < b", ["a <= b"]),
        ("a and b", ["a or b"]),
        ("~a", ["a"]),
        ("8", ["9", "7"]),
        ("True", ["False"]),
        ("'rm'", ["'rp'"]),
        ("a.eq(b)", ["a.ne(b)"]),
        ("flush_subnormal(a)", ["a"]),
        ("select(c, a, b)", ["select(c, b, a)"]),
        ("f(a)", []),
    ],
)
def test_changes(tool: ModuleType, text: str, after: list[str]) -> None:
    node = ast.parse(text, mode="eval").body
    assert [ast.unparse(ast.fix_missing_locations(make())) for _, make in tool.changes(node)] == after


def test_meanings_are_changed_and_rules_are_not(tool: ModuleType) -> None:
    lines = tool.path_of("integer").read_text().splitlines()
    changed = {m.line for m in tool.mutants("integer")}
    assert any("x.min(y)" in lines[n - 1] for n in changed)
    assert not any("Problem(" in lines[n - 1] or "alu(" in lines[n - 1] for n in changed)


def test_every_mutant_is_a_different_module(tool: ModuleType) -> None:
    found = tool.mutants("extended")
    texts = {m.text for m in found}
    assert len(texts) == len(found)
    assert ast.unparse(ast.parse(tool.path_of("extended").read_text())) not in texts


@pytest.mark.long
def test_nearly_all_mutants_of_the_carries_die() -> None:
    command = [sys.executable, TOOLS / "mutants.py", "extended", "--count", "10", "--at-least", "90"]
    assert subprocess.run(command, check=False, timeout=300).returncode == 0
