"""Checks of the `.param` variables of calls, and of the results of a function (PTX 5.1.6.4, 7.1)."""

from __future__ import annotations

from ptxvm.analysis import codes
from ptxvm.analysis.checks import Checks
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Variable
from ptxvm.syntax import tree


def passing(checks: Checks, function: Function) -> None:
    """Every ld.param of a .param variable by its name."""
    local = own_parameters(function)
    if not local:
        return
    results = {id(formal) for formal in function.signature.results}
    returned = {id(v) for bound in function.instructions for v in bound.results()}
    for bound in function.instructions:
        node = bound.node
        if loads_parameter(node):
            symbol = base(bound, node.operands[-1]) if node.operands else None
            if symbol is not None and id(symbol) in results:
                read_result(checks, symbol, node.operands[-1])
            elif symbol is not None and id(symbol) in local and id(symbol) not in returned:
                no_call(checks, symbol, node.operands[-1])


def own_parameters(function: Function) -> set[int]:
    """The `.param` variables of a function that are not its parameters: its results, and those that pass arguments of calls."""
    local = {id(v) for v in function.variables if v.space == "param"}
    return local - {id(formal) for formal in function.signature.parameters}


def loads_parameter(node: tree.Instruction) -> bool:
    """Is it an ld.param?"""
    return node.opcode == "ld" and any(word.startswith("param") for word in node.words)


def base(bound: Bound, node: tree.Operand) -> Variable | None:
    """The variable that an address or a bare name refers to."""
    if isinstance(node, tree.Address):
        node = node.items[0]
    if isinstance(node, tree.Binary):
        node = node.left
    symbol = bound.scope.find(node.text) if isinstance(node, tree.Name) else None
    return symbol if isinstance(symbol, Variable) else None


def read_result(checks: Checks, symbol: Variable, place: tree.Node) -> None:
    """Report a function that reads its own result."""
    checks.error(
        codes.BAD_PARAMETER_USE,
        f"'{symbol.name}' is the result, which the function cannot read",
        place,
        help="keep the value in a register",
        ptxas=f"Illegal to read function return parameter '{symbol.name}'",
    )


def no_call(checks: Checks, symbol: Variable, place: tree.Node) -> None:
    """Report a load of a variable that no call returns."""
    checks.error(
        codes.BAD_PARAMETER_USE,
        f"no call gives '{symbol.name}' a value",
        place,
        help="memory that a function reads and writes is .local",
        ptxas=f"Function call sequence invalid: 'ld.param' of '{symbol.name}' without corresponding call",
    )
