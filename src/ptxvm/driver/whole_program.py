"""Whole-program compilation: a module that is loaded without a link, as ptxas compiles it.

A function that its code names and that it does not define is an error.  A variable is defined here although it is `.extern`:
ptxas warns, and ignores the word.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm import api
from ptxvm.analysis.link_checks import unresolved
from ptxvm.analysis.program import Function, Program
from ptxvm.analysis.symbols import Variable
from ptxvm.driver.programs import load
from ptxvm.driver.results import DriverError, Result
from ptxvm.syntax.source import Source
from ptxvm.syntax.tree import Linkage

EXTERN = ".extern"


def whole_program(text: bytes, module: api.Module) -> tuple[api.Module, list[str]]:
    """The module of a text that no other is linked with, and the warnings of ptxas; DriverError where it refuses the text."""
    program = module.programs[0]
    if not has_open_names(program):
        return module, []
    missing = unresolved([program], whole=True)
    for each in missing:
        if isinstance(each, Function) or each.is_unsized:
            kind = "function" if isinstance(each, Function) else "variable"
            raise DriverError(Result.INVALID_PTX, f"Unresolved extern {kind} '{each.name}': link the module that defines it")
    variables = [each for each in missing if isinstance(each, Variable)]
    said = "Unresolved extern variable '{}' in whole program compilation, ignoring extern qualifier"
    warnings = [said.format(each.name) for each in variables]
    if not variables:
        return module, []
    return load(type(text)(without_extern(program.source, variables))), warnings


def has_open_names(program: Program) -> bool:
    """Does a program declare a name that it may not define?  Most do not, and need no search for what is used."""
    return any(not each.defined for each in program.functions.values()) or any(
        each.linkage is Linkage.EXTERN for each in program.variables.values()
    )


def without_extern(source: Source, variables: Sequence[Variable]) -> bytes:
    """The text in which some variables are not `.extern`; all else stays where it was."""
    text = source.text
    starts = [each.node.start for each in variables if each.node is not None]
    for at in {text.rindex(EXTERN, 0, start) for start in starts}:  # `.extern .global .u32 a, b` has one for both
        text = text[:at] + " " * len(EXTERN) + text[at + len(EXTERN) :]
    return text.encode()


__all__ = ["whole_program"]
