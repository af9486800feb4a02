"""Readers of pieces of PTX for the tests of the syntax."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ptxvm.diagnostics import Diagnostic
from ptxvm.syntax import parse, tree

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"


@pytest.fixture
def read() -> Callable[[str], list[tree.Statement]]:
    """Reads statements of a module that must be without errors."""

    def reader(text: str) -> list[tree.Statement]:
        module, found = parse(text)
        assert found == [], "\n".join(map(str, found))
        return module.statements

    return reader


@pytest.fixture
def read_body(read: Callable[[str], list[tree.Statement]]) -> Callable[[str], list[tree.Statement]]:
    """Reads statements of a body that must be without errors."""

    def reader(text: str) -> list[tree.Statement]:
        (function,) = read(f".entry k() {{\n{text}\n}}")
        assert isinstance(function, tree.Function)
        assert isinstance(function.body, tree.Block)
        return function.body.statements

    return reader


@pytest.fixture
def read_operands(read_body: Callable[[str], list[tree.Statement]]) -> Callable[[str], list[tree.Operand]]:
    """Reads the operands of one instruction that must be without errors."""

    def reader(text: str) -> list[tree.Operand]:
        (instruction,) = read_body(f"foo {text};")
        assert isinstance(instruction, tree.Instruction)
        return instruction.operands

    return reader


@pytest.fixture
def errors() -> Callable[[str], list[Diagnostic]]:
    """What is wrong with a module."""
    return lambda text: parse(text)[1]


@pytest.fixture
def body_errors(errors: Callable[[str], list[Diagnostic]]) -> Callable[[str], list[Diagnostic]]:
    """What is wrong with a body."""
    return lambda text: errors(f".entry k() {{\n{text}\n}}")
