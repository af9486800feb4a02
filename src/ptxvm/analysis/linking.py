"""Symbol resolution: which of the declarations in linked modules a name means (PTX 11.6)."""

from __future__ import annotations

from collections.abc import Iterable

from ptxvm.analysis.program import Function, Program
from ptxvm.analysis.symbols import Variable
from ptxvm.syntax.tree import Linkage

# the order in which declarations of a name prevail: .visible first, .extern last (PTX 11.6)
STRENGTH = {Linkage.VISIBLE: 4, Linkage.WEAK: 3, Linkage.COMMON: 2, None: 1, Linkage.EXTERN: 0}


def linked_variables(programs: Iterable[Program]) -> dict[str, Variable]:
    """The variable for each name: the first of equal declarations, the largest of `.common` ones."""
    found: dict[str, Variable] = {}
    for program in programs:
        for name, variable in program.variables.items():
            if name not in found or _prevails(variable, found[name]):
                found[name] = variable
    return found


def linked_functions(programs: Iterable[Program]) -> dict[str, Function]:
    """The function for each name: one with a body, the first of equals; an alias stands for its target."""
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
    """The definition of a declared variable; None if no module defines it."""
    if variable.linkage not in (Linkage.EXTERN, Linkage.WEAK, Linkage.COMMON):
        return variable
    found = linked[variable.name]
    return found if found.linkage in (Linkage.VISIBLE, Linkage.WEAK, Linkage.COMMON) else None


def linkage(symbol: Variable | Function) -> Linkage | None:
    """The linkage of a symbol; a `.common` variable with an initial value is a definition like a `.visible` one."""
    initialised = isinstance(symbol, Variable) and symbol.initial is not None
    return Linkage.VISIBLE if symbol.linkage is Linkage.COMMON and initialised else symbol.linkage


def _prevails(variable: Variable, other: Variable) -> bool:
    """Does a declaration replace one of an earlier module?"""
    if linkage(variable) is linkage(other) is Linkage.COMMON:
        return variable.size > other.size
    return STRENGTH[linkage(variable)] > STRENGTH[linkage(other)]
