"""How much shared memory a kernel declares: its own variables, those that its code names, and those of functions it names."""

from __future__ import annotations

from collections.abc import Iterator

from ptxvm.analysis import codes
from ptxvm.analysis.program import Function, Program
from ptxvm.analysis.report import Report
from ptxvm.analysis.shapes import names_in
from ptxvm.analysis.signatures import name_of
from ptxvm.analysis.symbols import Table, Variable
from ptxvm.isa.directives import CHIP_SHARED_BYTES, STATIC_SHARED_BYTES
from ptxvm.isa.targets import Target


def check_shared(program: Program, report: Report) -> None:
    """Warn of kernels that ptxas makes no code for, unless the module is linked later (`ptxas -c`)."""
    most = most_static(program.target)
    if sum(variable.size for variable in declared(program)) <= most:
        return
    for kernel in program.kernels:
        size = static_shared(kernel)
        if size > most:
            report.warning(
                codes.SHARED_SPACE,
                f"'{kernel.name}' declares {size:,} bytes of shared memory, and {program.target} has {most:,} for that",
                name_of(kernel.node),
                help="declare an `.extern .shared` array without a size, whose bytes the launch gives",
                ptxas=f"Entry function '{kernel.name}' uses too much shared data (0x{size:x} bytes, 0x{most:x} max)",
            )


def declared(program: Program) -> Iterator[Variable]:
    """All `.shared` variables."""
    everywhere = (program.variables.values(), *(function.variables for function in program.functions.values()))
    return (variable for some in everywhere for variable in some if variable.space == "shared")


def most_static(target: Target) -> int:
    """Bytes of declared shared memory that ptxas allows: all that there are where code is for one chip or family."""
    return CHIP_SHARED_BYTES if target.suffix else STATIC_SHARED_BYTES


def static_shared(kernel: Function) -> int:
    """Bytes of the `.shared` variables that a kernel and the functions that it names use: the module's lie first."""
    size = 0
    for variable in sorted(dict.fromkeys(shared_variables(kernel, set())), key=lambda each: bool(each.function)):
        size = -(-size // variable.alignment) * variable.alignment + variable.size
    return size


def shared_variables(function: Function, seen: set[Function]) -> Iterator[Variable]:
    """The shared variables of the functions that the code of one names, and those that it declares or names itself."""
    seen.add(function)
    for bound in function.instructions:
        for operand in bound.node.operands:
            for name in names_in(operand):
                symbol = bound.scope.find(name.text)
                if isinstance(symbol, Variable) and symbol.space == "shared":
                    yield symbol
                for each in symbol.targets if isinstance(symbol, Table) else [symbol]:
                    if isinstance(each, Function) and each not in seen:
                        yield from shared_variables(each, seen)
    yield from (variable for variable in function.variables if variable.space == "shared")
