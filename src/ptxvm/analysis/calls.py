"""Holds the arguments and results of calls against the functions that they call (PTX 7.1, 9.7.12.5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptxvm.algebra.types import Type
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.report import Report
from ptxvm.analysis.symbols import Prototype, Register, Signature, Table, Variable
from ptxvm.diagnostics import codes
from ptxvm.isa.operand_types import holds
from ptxvm.syntax import tree

CALLED_A_KERNEL = codes.register(
    "P2005", "a kernel cannot be called", "call goes to a .func; an .entry is launched (PTX 9.7.12.5)."
)
WRONG_COUNT = codes.register(
    "P2006",
    "wrong number of arguments or results",
    """
    A call has an argument for each parameter of the function, and a place for each result (PTX 9.7.12.5).  The array
    without a size of a variadic function may be left out, but not the list: `call f, ();` (PTX 11.2.2).
    """,
)
WRONG_ARGUMENT = codes.register(
    "P2007",
    "an argument does not fit its parameter",
    """
    The argument for a parameter is a register or constant of its type, or a .param variable of its type; for an array
    it is a .param array of the same type, size and alignment.  `_` stands for a result that nobody wants, and for no
    argument.  A parameter of the calling function is no argument: load it first (PTX 5.1.6.4).
    """,
)


def check_calls(function: Function, report: Report) -> None:
    """Every call of a function."""
    for bound in function.instructions:
        if bound.node.opcode == "call" and bound.operands:
            check_call(bound, function, report)


def check_call(bound: Bound, caller: Function, report: Report) -> None:
    """One call, against the signature of what it calls, or that of every function in the list of targets."""
    callee = bound.scope.find(name.text) if isinstance(name := bound.operands.get("func"), tree.Name) else None
    if isinstance(callee, Function) and callee.entry:
        report.error(CALLED_A_KERNEL, f"'{callee.name}' is a kernel, which cannot be called", name,
                     ptxas="Illegal call target, device function expected")  # fmt: skip
        return
    for signature in signatures(callee, bound):
        check_list("results", signature.results, bound.operands.get("ret"), bound, caller, report)
        check_list("arguments", signature.parameters, bound.operands.get("args"), bound, caller, report,
                   variadic=signature.variadic)  # fmt: skip


def signatures(callee: Any, bound: Bound) -> list[Signature]:
    """What is known of the functions that may be called."""
    if isinstance(callee, Function):
        return [callee.signature]
    proto = bound.operands.get("proto")
    symbol = bound.scope.find(proto.text) if isinstance(proto, tree.Name) else None
    if isinstance(symbol, Prototype):
        return [symbol.signature]
    if isinstance(symbol, Table):
        return [t.signature for t in symbol.targets if isinstance(t, Function)]
    return []


def check_list(
    what: str,
    formals: Sequence[Register | Variable],
    group: tree.Operand | None,
    bound: Bound,
    caller: Function,
    report: Report,
    *,
    variadic: bool = False,
) -> None:
    """The arguments, or the results."""
    actuals = group.items if isinstance(group, tree.Group) else []
    omitted = variadic and group is not None and len(actuals) == len(formals) - 1
    if len(actuals) != len(formals) and not omitted:
        report.error(WRONG_COUNT, f"{len(actuals)} {what} stand where {len(formals)} are expected", group or bound.node,
                     ptxas="Call has wrong number of parameters")  # fmt: skip
        return
    for formal, actual in zip(formals, actuals, strict=False):
        if variadic and formal is formals[-1]:
            wrong = open_misfit(formal, actual, bound, caller)
        else:
            wrong = misfit(formal, actual, bound, caller, result=what == "results")
        if wrong:
            report.error(WRONG_ARGUMENT, f"{wrong}, for '{formal.name}'", actual,
                         ptxas=f"Type of argument does not match formal parameter '{formal.name}'")  # fmt: skip


def misfit(formal: Register | Variable, actual: tree.Operand, bound: Bound, caller: Function, *, result: bool) -> str:
    """Why an argument does not fit; empty where it does."""
    array = isinstance(formal, Variable) and bool(formal.dimensions)
    if isinstance(actual, tree.Name):
        if actual.text == "_":
            return "" if result else "'_' is no argument"
        symbol = bound.scope.find(actual.text)
        if isinstance(symbol, Variable):
            return variable_misfit(formal, symbol, caller)
        if isinstance(symbol, Register):
            fits = not array and symbol.count == 1 and holds(symbol.type, formal.type)
            return "" if fits else f"the register '{symbol.name}' is of type {symbol.type}, not {described(formal)}"
        return "" if symbol is None else f"'{actual.text}' is no argument"
    fits = not array and constant_fits(actual, formal.type)
    return "" if fits else f"this constant is not {described(formal)}"


def variable_misfit(formal: Register | Variable, actual: Variable, caller: Function) -> str:
    """Why a variable does not fit."""
    if actual.space != "param":
        return f"'{actual.name}' is in .{actual.space}, not in .param"
    if any(actual is own for own in caller.signature.parameters):
        return f"'{actual.name}' is a parameter of the caller, which must be loaded first"
    dimensions = formal.dimensions if isinstance(formal, Variable) else ()
    if not holds(actual.type, formal.type) or actual.dimensions != dimensions:
        return f"'{actual.name}' is {described(actual)}, not {described(formal)}"
    if isinstance(formal, Variable) and dimensions and actual.alignment != formal.alignment:
        return f"'{actual.name}' is aligned to {actual.alignment} bytes, not to {formal.alignment}"
    return ""


def open_misfit(formal: Register | Variable, actual: tree.Operand, bound: Bound, caller: Function) -> str:
    """Why an argument is no array for a parameter `name[]`: any length will do, and bits hold any type (PTX 11.2.2)."""
    symbol = bound.scope.find(actual.text) if isinstance(actual, tree.Name) else None
    if not isinstance(symbol, Variable) or not isinstance(formal, Variable) or len(symbol.dimensions) != 1 or symbol.vector > 1:
        return f"only an array in .param is {described(formal)}"
    if symbol.space != "param" or any(symbol is own for own in caller.signature.parameters):
        return variable_misfit(formal, symbol, caller)
    if symbol.type is not formal.type and "b" not in (symbol.type.kind, formal.type.kind):
        return f"'{symbol.name}' is {described(symbol)}, not {described(formal)}"
    if symbol.alignment != formal.alignment:
        return f"'{symbol.name}' is aligned to {symbol.alignment} bytes, not to {formal.alignment}"
    return ""


def constant_fits(node: tree.Operand, type: Type) -> bool:
    """May a constant be passed as that type: integers as .s, .u, .b, floating-point numbers as .f, .b?"""
    while isinstance(node, tree.Unary | tree.Cast):
        node = node.operand
    return type.is_float or type.kind == "b" if isinstance(node, tree.Float) else type.is_int


def described(symbol: Register | Variable) -> str:
    """`.b8[16]`"""
    dimensions = symbol.dimensions if isinstance(symbol, Variable) else ()
    return f"{symbol.type}" + "".join(f"[{'' if d is None else d}]" for d in dimensions)
