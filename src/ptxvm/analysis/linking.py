"""Symbol resolution: which of the declarations in linked modules a name means (PTX 11.6)."""

from __future__ import annotations

from collections.abc import Iterable

from ptxvm.analysis.program import Function, Program
from ptxvm.analysis.symbols import Variable

# Which of several declarations of a name is meant: .visible first, .extern last (PTX 11.6).
STRENGTH = {"visible": 4, "weak": 3, "common": 2, None: 1, "extern": 0}


def linked_variables(programs: Iterable[Program]) -> dict[str, Variable]:
    """For every name the variable that is meant: of equals the first, of `.common` ones the largest."""
    found: dict[str, Variable] = {}
    for program in programs:
        for name, variable in program.variables.items():
            if name not in found or _prevails(variable, found[name]):
                found[name] = variable
    return found


def linked_functions(programs: Iterable[Program]) -> dict[str, Function]:
    """For every name the function that is meant: one with a body, of equals the first; an alias means its target."""
    found: dict[str, Function] = {}
    strength: dict[str, tuple[bool, int]] = {}
    for program in programs:
        for name, declared in program.functions.items():
            function = program.function(name) or declared
            rank = function.defined, STRENGTH[declared.linkage]
            if name not in found or rank > strength[name]:
                found[name], strength[name] = function, rank
    return found


def definition(variable: Variable, linked: dict[str, Variable]) -> Variable | None:
    """The variable that a declaration means; None where no module defines it."""
    if variable.linkage not in ("extern", "weak", "common"):
        return variable
    found = linked[variable.name]
    return found if found.linkage in ("visible", "weak", "common") else None


def linkage(symbol: Variable | Function) -> str | None:
    """The linkage of a symbol: a `.common` variable with an initial value is a definition like a `.visible` one."""
    initialised = isinstance(symbol, Variable) and symbol.initial is not None
    return "visible" if symbol.linkage == "common" and initialised else symbol.linkage


def _prevails(variable: Variable, other: Variable) -> bool:
    """Does a declaration take the place of one of an earlier module?"""
    if linkage(variable) == linkage(other) == "common":
        return variable.size > other.size
    return STRENGTH[linkage(variable)] > STRENGTH[linkage(other)]
