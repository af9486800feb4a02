"""Static shared memory of a kernel: its own variables, and those of the code and functions that it names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from ptxvm.algebra.state_space import Space
from ptxvm.analysis import codes
from ptxvm.analysis.program import Function, Program
from ptxvm.analysis.report import Report
from ptxvm.analysis.scope import NameScope
from ptxvm.analysis.shapes import names_in
from ptxvm.analysis.signatures import name_of
from ptxvm.analysis.symbols import Table, Variable
from ptxvm.isa.directives import CHIP_SHARED_BYTES, STATIC_SHARED_BYTES

WORD = re.compile(r"[%$\w]+", re.ASCII)
"""A name, or a part of something else."""


def check_shared(program: Program, report: Report) -> None:
    """Refuse kernels for which ptxas generates no code."""
    if sum(variable.size for variable in declared(program)) > most_static(program):
        for kernel in program.kernels:
            if most_shared(kernel) > most_static(program):  # else its body need not be read
                check_kernel(kernel, static_shared(kernel), program, report)


def fits_shared(program: Program, mentioned: Callable[[Function], Iterable[str]]) -> bool:
    """Has every kernel certainly room for its static shared memory, by the names that bodies may mention?"""
    most = most_static(program)
    if sum(variable.size for variable in declared(program)) <= most:
        return True
    return all(most_shared(kernel, mentioned) <= most for kernel in program.kernels)


def check_kernel(kernel: Function, size: int, program: Program, report: Report) -> None:
    """Check the size of a kernel's static shared memory."""
    most = most_static(program)
    if size > most:
        report.error(
            codes.SHARED_SPACE,
            f"'{kernel.name}' declares {size:,} bytes of shared memory, and {program.target} has {most:,} for that",
            name_of(kernel.node),
            help="declare an `.extern .shared` array without a size, whose bytes the launch gives",
            ptxas=f"Entry function '{kernel.name}' uses too much shared data (0x{size:x} bytes, 0x{most:x} max)",
        )


def declared(program: Program) -> Iterator[Variable]:
    """All `.shared` variables, none of which is left unmade."""
    everywhere = (program.made_variables.values(), *(function.statics for function in program.made_functions.values()))
    return (variable for some in everywhere for variable in some if variable.space is Space.SHARED)


def most_static(program: Program) -> int:
    """Bytes of declared shared memory that ptxas allows.

    They are all that there are where code is for one chip or family, or with `--enable-extended-smem`.
    """
    return CHIP_SHARED_BYTES if program.target.suffix or program.extended_shared else STATIC_SHARED_BYTES


def itself(function: Function) -> Function:
    """The definition of a function, where no other modules are linked."""
    return function


def static_shared(kernel: Function, definition: Callable[[Function], Function] = itself) -> int:
    """Bytes of the `.shared` variables that a kernel and the functions that it names use: the module's lie first."""
    size = 0
    if next(shared_variables(kernel, definition, mentions), None) is None:  # as lazy bodies tell without being read
        return size
    for variable in sorted(dict.fromkeys(shared_variables(kernel, definition, uses)), key=lambda each: bool(each.function)):
        size = -(-size // variable.alignment) * variable.alignment + variable.size
    return size


def most_shared(kernel: Function, mentioned: Callable[[Function], Iterable[str]] | None = None) -> int:
    """The most bytes of its static shared memory, by the names that bodies mention: by default the words of lazy ones."""
    named = mentions if mentioned is None else lambda function: named_in(function, mentioned(function))
    return sum(variable.size + variable.alignment - 1 for variable in set(shared_variables(kernel, itself, named)))


def shared_variables(
    kernel: Function, definition: Callable[[Function], Function], uses: Callable[[Function], Iterator[Function | Variable]]
) -> Iterator[Variable]:
    """The shared variables that a kernel uses, those of the functions that it names where it names them."""
    seen, work = {kernel}, [uses(kernel)]
    while work:
        each = next(work[-1], None)
        if each is None:
            work.pop()
        elif isinstance(each, Variable):
            yield each
        elif (function := definition(each)) not in seen:
            seen.add(function)
            work.append(uses(function))


def uses(function: Function) -> Iterator[Function | Variable]:
    """The functions and shared variables that the code of one names, in its order, then the variables that it declares."""
    for bound in function.instructions:
        for operand in bound.node.operands:
            for name in names_in(operand):
                symbol = bound.scope.find(name.text)
                if isinstance(symbol, Variable) and symbol.space is Space.SHARED:
                    yield symbol
                for each in symbol.targets if isinstance(symbol, Table) else [symbol]:
                    if isinstance(each, Function):
                        yield each
    yield from (variable for variable in function.variables if variable.space is Space.SHARED)


def mentions(function: Function) -> Iterator[Function | Variable]:
    """The same and perhaps more, where a lazy body stays unread: a word of its text can be hidden, or stand in a comment."""
    program, body = function.program, function.node.body
    if function.lazy is None or program is None or body is None:
        yield from uses(function)
        return
    yield from named_in(function, dict.fromkeys(WORD.findall(program.source.text, body.start, body.end)))


def named_in(function: Function, words: Iterable[str]) -> Iterator[Function | Variable]:
    """The functions and shared variables that words of a body may name, then the variables that it declares."""
    scope = function.program.scope if function.program is not None else NameScope()
    for word in words:
        symbol = scope.own(word)
        if isinstance(symbol, Function) or (isinstance(symbol, Variable) and symbol.space is Space.SHARED):
            yield symbol
    yield from (variable for variable in function.statics if variable.space is Space.SHARED)
