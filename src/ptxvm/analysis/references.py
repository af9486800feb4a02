"""References: the functions that the code and the initial values of a module name and the linker keeps."""

from __future__ import annotations

from collections.abc import Iterator

from ptxvm.analysis.program import Function, Program
from ptxvm.analysis.report import Place
from ptxvm.analysis.shapes import names_in
from ptxvm.analysis.symbols import Table, Variable
from ptxvm.syntax import tree


def references(program: Program, *, whole: bool = False) -> dict[str, Place]:
    """The functions that live code and initial values name, each with its first mention.

    Kernels, functions that other modules may call, and the functions that these name are live; ptxas drops the others, but
    where it compiles a `whole` program: there all code counts.
    """
    found: dict[str, Place] = {}
    work = [function for function in program.functions.values() if whole or function.entry or function.linkage]
    for variable in program.variables.values():
        work += _note(found, _named_by(variable, program))
    seen = set(work)
    while work:
        function = work.pop()
        for symbol in (*_note(found, _called(function)), *_listed(function)):
            if symbol not in seen:
                seen.add(symbol)
                work.append(symbol)
    return found


def _note(found: dict[str, Place], named: Iterator[tuple[tree.Name, Function]]) -> list[Function]:
    functions = []
    for name, function in named:
        found.setdefault(name.text, name)
        functions.append(function)
    return functions


def _called(function: Function) -> Iterator[tuple[tree.Name, Function]]:
    """The functions that operands of the code name."""
    for bound in function.instructions:
        for operand in bound.node.operands:
            for name in names_in(operand):
                symbol = bound.scope.find(name.text)
                if isinstance(symbol, Function):
                    yield name, symbol
    for variable in function.variables:
        if function.program is not None:
            yield from _named_by(variable, function.program)


def _listed(function: Function) -> Iterator[Function]:
    """The functions in the lists of targets that the code names."""
    for bound in function.instructions:
        node = bound.operands.get("proto")
        symbol = bound.scope.find(node.text) if isinstance(node, tree.Name) else None
        if isinstance(symbol, Table):
            yield from (each for each in symbol.targets if isinstance(each, Function))


def _named_by(variable: Variable, program: Program) -> Iterator[tuple[tree.Name, Function]]:
    """The functions that an initial value names."""
    if variable.initial is None or variable.opaque:
        return
    for name in names_in(variable.initial):
        symbol = program.scope.find(name.text)
        if isinstance(symbol, Function):
            yield name, symbol
