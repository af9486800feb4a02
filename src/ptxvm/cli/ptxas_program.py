"""Several modules as one program, in which ptxas declares each name once: it links nothing.

A function that one file declares `.extern` and another defines is an error, therefore; `ptxvm check A.ptx B.ptx` checks
files as a linker does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from itertools import chain

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.link_checks import unresolved
from ptxvm.analysis.linkage import undefined
from ptxvm.analysis.program import Function, Program
from ptxvm.analysis.report import Report
from ptxvm.analysis.signatures import name_of
from ptxvm.analysis.symbols import Variable
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics import Diagnostic, Span
from ptxvm.syntax.tree import Linkage, Name, Node


@dataclass(slots=True)
class Names:
    """The functions and variables that modules share."""

    functions: dict[str, Function] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)

    def add(self, program: Program) -> list[Diagnostic]:
        """Have the names of a further module, too; the errors about those that are known."""
        report = Report(program.source)
        for function in program.functions.values():
            if function.entry or function.linkage is not None:
                self.function(function, report)
        for variable in program.variables.values():
            if variable.linkage is not None and variable.node is not None:
                self.variable(variable, variable.node, report)
        return report.diagnostics

    def open_functions(self, programs: Sequence[Program], *, whole: bool) -> Iterator[str]:
        """The functions that are used, or declared without `.extern`, and that no module defines; first what kernels call."""
        declared = list(chain.from_iterable(map(undefined, programs)))
        local = [each.name for each in declared if each.linkage is None]  # which no other module can define
        used = [each.name for each in unresolved(programs, whole=whole) if isinstance(each, Function)]
        wanted = dict.fromkeys([*local, *used, *(each.name for each in declared)])
        called = [name for name in called_by_kernels(programs) if name in wanted] if len(wanted) > 1 else []
        for name in dict.fromkeys([*called, *wanted]):
            if name in local or name not in self.functions or not self.functions[name].defined:
                yield name

    def is_extern(self, name: str) -> bool:
        """Is a function declared `.extern`?"""
        return name in self.functions and self.functions[name].linkage is Linkage.EXTERN

    def open_variables(self) -> Iterator[Variable]:
        """The variables that are `.extern` where they are declared first, and that no launch sizes."""
        for variable in self.variables.values():
            if variable.linkage is Linkage.EXTERN and not (variable.space is Space.SHARED and variable.is_unsized):
                yield variable

    def function(self, function: Function, report: Report) -> None:
        """Compare a function with the one of an earlier module."""
        name, known = function.name, self.functions.get(function.name)
        if known is None or not known.defined:
            self.functions[name] = function
        if known is None:
            return
        if known.defined:
            _error(report, f"Duplicate definition of function '{name}'", name_of(function.node))
        if known.linkage is not function.linkage:
            _inconsistent(report, name, name_of(function.node))
            if function.defined and known.linkage is Linkage.EXTERN:
                end = function.node.end - 1
                said = f"Function definition conflicts with '.extern' declaration for function '{name}'"
                _error(report, said, Span(end, end + 1))

    def variable(self, variable: Variable, node: Node, report: Report) -> None:
        """Compare a variable with the one of an earlier module."""
        name = variable.name
        known = self.variables.setdefault(name, variable)
        if known is variable:
            return
        if not _agree(known, variable):
            _inconsistent(report, name, node)
        elif Linkage.EXTERN not in (known.linkage, variable.linkage):
            _error(report, f"Duplicate definition of variable '{name}'", node)
        elif known.is_unsized:
            self.variables[name] = replace(known, dimensions=variable.dimensions)


def called_by_kernels(programs: Sequence[Program]) -> Iterator[str]:
    """The names of the functions that kernels call themselves, in their order."""
    for kernel in chain.from_iterable(program.kernels for program in programs):
        for bound in kernel.instructions:
            if bound.calls and isinstance(callee := bound.operands.get("func"), Name):
                yield callee.text


def _agree(one: Variable, other: Variable) -> bool:
    """Are two declarations of one type?  One of them may leave out the first dimension."""
    open_size = one.is_unsized or other.is_unsized
    a, b = ((each.space, each.type, each.vector, each.dimensions[1 if open_size else 0 :]) for each in (one, other))
    return a == b


def _inconsistent(report: Report, name: str, place: Span | Node) -> None:
    _error(report, f"Inconsistent redefinition of variable '{name}'", place)


def _error(report: Report, said: str, place: Span | Node) -> None:
    report.error("", said, place)
