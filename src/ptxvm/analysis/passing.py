"""Checks of the `.param` variables of calls, and of the results of a function (PTX 5.1.6.4, 7.1)."""

from __future__ import annotations

from ptxvm.algebra.state_space import Space
from ptxvm.analysis import codes
from ptxvm.analysis.parameters import addressed
from ptxvm.analysis.program import Function
from ptxvm.analysis.report import Report
from ptxvm.isa.access import space_of
from ptxvm.isa.effects import Verb
from ptxvm.isa.model import Decoded
from ptxvm.syntax import tree


def check_passing(function: Function, report: Report) -> None:
    """Every ld.param of a .param variable by its name."""
    local = own_parameters(function)
    if not local:
        return
    results = {id(formal) for formal in function.signature.results}
    returned = {id(v) for bound in function.instructions for v in bound.results()}
    for bound in function.instructions:
        if bound.decoded is not None and loads_parameter(bound.decoded):
            symbol, place = addressed(bound), bound.operands.get("a", bound.node)
            if id(symbol) in results:
                read_result(report, symbol.name, place)
            elif id(symbol) in local and id(symbol) not in returned:
                no_call(report, symbol.name, place)


def own_parameters(function: Function) -> set[int]:
    """The `.param` variables of a function that are not its parameters: its results, and those that pass arguments of calls."""
    local = {id(v) for v in function.variables if v.space is Space.PARAM}
    return local - {id(formal) for formal in function.signature.parameters}


def loads_parameter(i: Decoded) -> bool:
    """Is it an ld.param?"""
    return i.of.moves is Verb.READ and space_of(i) is Space.PARAM


def read_result(report: Report, name: str, place: tree.Node) -> None:
    """Report a function that reads its own result."""
    report.error(
        codes.BAD_PARAMETER_USE,
        f"'{name}' is the result, which the function cannot read",
        place,
        help="keep the value in a register",
        ptxas=f"Illegal to read function return parameter '{name}'",
    )


def no_call(report: Report, name: str, place: tree.Node) -> None:
    """Report a load of a variable that no call returns."""
    report.error(
        codes.BAD_PARAMETER_USE,
        f"no call gives '{name}' a value",
        place,
        help="memory that a function reads and writes is .local",
        ptxas=f"Function call sequence invalid: 'ld.param' of '{name}' without corresponding call",
    )
