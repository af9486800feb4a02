"""Checks of accesses to parameters of kernels, of functions and of calls (PTX 5.1.6)."""

from __future__ import annotations

from collections.abc import Iterable

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.report import Report
from ptxvm.analysis.symbols import Symbol, Variable
from ptxvm.diagnostics import codes
from ptxvm.isa.access import space_of
from ptxvm.isa.effects import Verb
from ptxvm.syntax import tree

WRITTEN_PARAMETER = codes.register(
    "P1828",
    "a parameter of the function is written",
    "The parameters of a function are only read; its results, and .param variables of a call, are written (PTX 5.1.6).",
)
OTHER_PARAMETER = codes.register(
    "P1829",
    "a parameter of another sort",
    ".param::entry is for the parameters of the kernel, .param::func for those of functions and calls (PTX 9.7.9.8).",
)

OPAQUE_ACCESS = codes.register(
    "P1830",
    "a load or store of a texture, sampler or surface",
    """
    What is in an opaque variable cannot be seen: `mov.u64` takes its handle, and `tex`, `suld` and the like its name or
    handle (PTX 5.3).
    """,
)


def check_parameters(function: Function, instructions: Iterable[Bound], report: Report) -> None:
    """Every load and store of a parameter, or of a texture, sampler or surface, among instructions of a function."""
    own = {id(p) for p in function.signature.parameters}
    named = set() if function.entry else {p.name for p in function.signature.parameters}
    for bound in instructions:
        i = bound.decoded
        if i is None or i.of.moves is None:
            continue
        symbol = addressed(bound)
        if is_opaque(symbol):
            report.error(OPAQUE_ACCESS, f"'{symbol.name}' is a .{symbol.opaque}, whose bytes no instruction moves",
                         bound.operands["a"], help=f"`mov.u64` gives the handle of '{symbol.name}'",
                         ptxas=f"Illegal operand type to instruction '{i.form.opcode}'")  # fmt: skip
        if isinstance(symbol, Variable) and space_of(i) is Space.PARAM:
            hides = i.of.moves is Verb.WRITE and symbol.name in named  # ptxas 13.5 takes it for the parameter
            check_parameter(symbol, bound, report, is_own=hides or id(symbol) in own, of_kernel=function.entry)


def is_opaque(symbol: object) -> bool:
    """Is it a texture, sampler or surface?  An array of them ptxas 13.5 lets be loaded and stored."""
    return isinstance(symbol, Variable) and bool(symbol.opaque) and not symbol.dimensions


def check_parameter(symbol: Variable, bound: Bound, report: Report, *, is_own: bool, of_kernel: bool) -> None:
    """One access to a parameter by its name."""
    i, place = bound.i, bound.operands["a"]
    if i.of.moves is Verb.WRITE and is_own:
        report.error(WRITTEN_PARAMETER, f"'{symbol.name}' is a parameter, which cannot be written", place,
                     ptxas=f"Illegal to write to function input parameter '{symbol.name}'")  # fmt: skip
    elif i.ss in wrong_sorts(is_own=is_own, of_kernel=of_kernel):
        sort = "a parameter of the kernel" if is_own and of_kernel else "no parameter of the kernel"
        report.error(OTHER_PARAMETER, f"'{symbol.name}' is {sort}", place,
                     ptxas=f"Illegal state space for address operand '{i.ss[5:]}' with instruction '{i.form.opcode}'",
                    )  # fmt: skip


def wrong_sorts(*, is_own: bool, of_kernel: bool) -> tuple[str, ...]:
    """The spaces in which a parameter is not; ptxas allows accesses to a function's parameter by either."""
    if not is_own:
        return ("param::entry",)
    return ("param::func",) if of_kernel else ()


def addressed(bound: Bound) -> Symbol:
    """The variable that an address names, if it names one."""
    node = bound.operands.get("a")
    if isinstance(node, tree.Address):
        node = node.items[0]
    if isinstance(node, tree.Binary):
        node = node.left
    if isinstance(node, tree.Index):
        node = node.name
    return bound.scope.find(node.text) if isinstance(node, tree.Name) else None
