"""Checks of calls: arguments and results against the signature of the callee (PTX 7.1, 9.7.12.5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.report import Report
from ptxvm.analysis.scope import special
from ptxvm.analysis.shapes import shape_of
from ptxvm.analysis.signatures import Formal
from ptxvm.analysis.symbols import Prototype, Register, Signature, Table, Variable
from ptxvm.diagnostics import codes
from ptxvm.isa.operand_types import holds
from ptxvm.named_tuple import NamedTuple
from ptxvm.syntax import tree

CALLED_A_KERNEL = codes.register(
    "P2005", "a kernel cannot be called", "call goes to a .func; an .entry is launched (PTX 9.7.12.5)."
)
WRONG_NUMBER = "Call has wrong number of parameters"
"""What ptxas says of the count of arguments or results."""
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
    The argument for a parameter is a register or constant of its type, or a .param variable of its type and alignment;
    for an array it is a .param array of the same size and alignment, for a vector anything of as many bits but an
    array.  `_` stands for a result that is not needed, and for no argument.  A parameter of the calling function is no
    argument: load it first (PTX 5.1.6.4).
    """,
)


def check_calls(instructions: Iterable[Bound], report: Report) -> None:
    """Every call among some instructions."""
    for bound in instructions:
        if bound.calls and bound.operands and bound.function is not None:
            check_call(bound, bound.function, report)


def check_call(bound: Bound, caller: Function, report: Report) -> None:
    """Check a call against the signature of its callee, or of each function in its list of targets."""
    callee = bound.scope.find(name.text) if isinstance(name := bound.operands.get("func"), tree.Name) else None
    if isinstance(callee, Function) and callee.entry:
        report.error(CALLED_A_KERNEL, f"'{callee.name}' is a kernel, which cannot be called", name,
                     ptxas="Illegal call target, device function expected",
                     consequences=WRONG_NUMBER if wrong_number(callee, bound) else "")  # fmt: skip
        return
    for signature in signatures(callee, bound):
        check_list("results", signature.results, bound.operands.get("ret"), bound, caller, report)
        check_list("arguments", signature.parameters, bound.operands.get("args"), bound, caller, report,
                   variadic=signature.variadic)  # fmt: skip


def signatures(callee: object, bound: Bound) -> list[Signature]:
    """The known signatures of the functions that may be called."""
    if isinstance(callee, Function):
        return [callee.signature]
    proto = bound.operands.get("proto")
    symbol = bound.scope.find(proto.text) if isinstance(proto, tree.Name) else None
    if isinstance(symbol, Prototype):
        return [symbol.signature]
    if isinstance(symbol, Table):
        return [t.signature for t in symbol.targets if isinstance(t, Function)]
    return []


def wrong_number(callee: Function, bound: Bound) -> bool:
    """Are there other arguments or results than those of the callee?"""
    wanted = {"ret": callee.signature.results, "args": callee.signature.parameters}
    groups = {role: bound.operands.get(role) for role in wanted}
    return any(len(formals) != (len(group.items) if isinstance(group := groups[role], tree.Group) else 0)
               for role, formals in wanted.items())  # fmt: skip


def check_list(
    noun: str,
    formals: Sequence[Formal],
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
        report.error(WRONG_COUNT, f"{len(actuals)} {noun} stand where {len(formals)} are expected", group or bound.node,
                     ptxas=WRONG_NUMBER)  # fmt: skip
        return
    for formal, actual in zip(formals, actuals, strict=False):
        for wrong in misfits(formal, actual, bound, caller, result=noun == "results", open=variadic and formal is formals[-1]):
            report.error(WRONG_ARGUMENT, f"{wrong.message}, for '{formal.name}'", actual, ptxas=wrong.ptxas)


def undeclared_arguments(bound: Bound) -> Iterator[str]:
    """What ptxas says of the results and arguments of a call that have undeclared names."""
    func = bound.operands.get("func")
    callee = bound.scope.find(func.text) if isinstance(func, tree.Name) else None
    for signature in signatures(callee, bound):
        for formals, role in ((signature.results, "ret"), (signature.parameters, "args")):
            group = bound.operands.get(role)
            actuals = group.items if isinstance(group, tree.Group) else []
            if len(actuals) == len(formals):
                for formal, actual in zip(formals, actuals, strict=True):
                    if isinstance(actual, tree.Name) and shape_of(actual, bound.scope).kind == "unknown":
                        yield f"Illegal argument for formal parameter '{formal.name}'"
                        yield f"Type of argument does not match formal parameter '{formal.name}'"
                        yield f"Alignment of argument does not match formal parameter '{formal.name}'"


class Misfit(NamedTuple):
    """The reason why an argument does not fit, in our words and in those of ptxas."""

    message: str
    ptxas: str


def misfits(
    formal: Formal, actual: tree.Operand, bound: Bound, caller: Function, *, result: bool, open: bool
) -> Iterator[Misfit]:
    """All problems of one argument; `open` is the parameter `name[]` of a variadic function."""
    if not isinstance(actual, tree.Name):
        if not constant_fits(actual, formal):
            no_match = f"Type of argument does not match formal parameter '{formal.name}'"
            yield Misfit(f"this constant is not {described(formal)}", no_match)
        return
    if actual.text == "_":
        if not result:
            yield Misfit("'_' is no argument", f"Illegal argument for formal parameter '{formal.name}'")
        return
    symbol = bound.scope.find(actual.text)
    if not isinstance(symbol, Register | Variable):
        if symbol is not None or special(actual.text, None) is not None:
            yield Misfit(f"'{actual.text}' is no argument", f"Call argument '{actual.text}' has illegal state space")
        return
    yield from mismatches(formal, symbol, caller, open=open)


def mismatches(formal: Formal, symbol: Formal, caller: Function, *, open: bool) -> Iterator[Misfit]:
    """The problems of a register or variable as an argument."""
    if isinstance(symbol, Variable) and (wrong := misplaced(symbol, caller)):
        yield wrong
    registers = isinstance(formal, Register) or isinstance(symbol, Register)
    if is_array(formal) != is_array(symbol) and registers and not open:
        yield Misfit(f"'{symbol.name}' is {said(symbol)}", f"Inconsistent state space for parameter '{symbol.name}'")
    if not same_type(formal, symbol, open=open):
        no_match = f"Type of argument does not match formal parameter '{formal.name}'"
        yield Misfit(f"{said(symbol, named=True)}, not {described(formal)}", no_match)
    if alignment_of(formal) != alignment_of(symbol):
        yield Misfit(
            f"'{symbol.name}' is aligned to {alignment_of(symbol)} bytes, not to {alignment_of(formal)}",
            f"Alignment of argument does not match formal parameter '{formal.name}'",
        )


def misplaced(actual: Variable, caller: Function) -> Misfit | None:
    """Is the variable in a space where arguments cannot be, or a parameter of the caller (PTX 5.1.6.4)?"""
    if actual.space is not Space.PARAM:
        wrong = f"Call argument '{actual.name}' has illegal state space"
        return Misfit(f"'{actual.name}' is in .{actual.space}, not in .param", wrong)
    if any(actual is own for own in caller.signature.parameters):
        wrong = f"Formal parameter '{actual.name}' declared in .param space cannot be used as argument to call"
        return Misfit(f"'{actual.name}' is a parameter of the caller, which must be loaded first", wrong)
    return None


def same_type(formal: Formal, actual: Formal, *, open: bool) -> bool:
    """Does an argument have the type of its parameter?

    A vector is bits, as many as its elements have, and so is an array; scalars mix as the operands of instructions do,
    but for packed ones, which are bits too.  An array of any length fits one without a size (PTX 11.2.2).
    """
    if isinstance(formal, Variable) and isinstance(actual, Variable) and is_array(formal) and len(actual.dimensions) == 1:
        if open:
            return actual.vector == 1 and (actual.type is formal.type or "b" in (actual.type.kind, formal.type.kind))
        return size_of(formal) == size_of(actual)
    if is_array(formal) or is_array(actual):
        return False
    if size_of(formal) != size_of(actual):
        return False
    if elements(formal) > 1 or elements(actual) > 1 or formal.type.is_packed or actual.type.is_packed:
        return True
    return holds(actual.type, formal.type)


def is_array(symbol: Formal) -> bool:
    """Is it an array in .param?"""
    return isinstance(symbol, Variable) and bool(symbol.dimensions)


def elements(symbol: Formal) -> int:
    """The elements of a vector; 1 of anything else."""
    return symbol.count if isinstance(symbol, Register) else symbol.vector


def size_of(symbol: Formal) -> int:
    """The size in bytes; 0 for an array without a size."""
    return symbol.size if isinstance(symbol, Variable) else symbol.type.bytes * symbol.count


def alignment_of(symbol: Formal) -> int:
    """The alignment in bytes, at least that of the type."""
    natural = symbol.type.bytes * elements(symbol)
    return max(symbol.alignment, natural) if isinstance(symbol, Variable) else natural


CONSTANT_BITS = 64  # the type of a constant, which a vector takes as bits


def constant_fits(node: tree.Operand, formal: Formal) -> bool:
    """May a constant be passed: integers as .s, .u, .b, floating-point numbers as .f, .b, any as a vector of 64 bits?"""
    while isinstance(node, tree.Unary | tree.Cast):
        node = node.operand
    if is_array(formal) or formal.type.is_packed:
        return False
    if elements(formal) > 1:
        return formal.type.bits * elements(formal) == CONSTANT_BITS
    return formal.type.is_float or formal.type.kind == "b" if isinstance(node, tree.Float) else formal.type.is_int


def said(symbol: Formal, *, named: bool = False) -> str:
    """`the register 'r' is of type .u32`, or the kind of the operand alone."""
    if isinstance(symbol, Register):
        return f"the register '{symbol.name}' is of type {described(symbol)}" if named else "a register"
    return f"'{symbol.name}' is {described(symbol)}" if named else "an array in .param"


def described(symbol: Formal) -> str:
    """`.v2 .u32` or `.b8[16]`"""
    dimensions = symbol.dimensions if isinstance(symbol, Variable) else ()
    vector = f".v{elements(symbol)} " if elements(symbol) > 1 else ""
    return f"{vector}{symbol.type}" + "".join(f"[{'' if d is None else d}]" for d in dimensions)
