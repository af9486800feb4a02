"""From a text to a bound and checked program."""

from __future__ import annotations

from contextlib import suppress

from ptxvm.algebra.float_environment import usual_arithmetic
from ptxvm.analysis.bind import UnreadParts, WholeModule, bind
from ptxvm.analysis.bodies import Bodies, SyntaxInBody
from ptxvm.analysis.collector import NoCollection
from ptxvm.analysis.program import Program
from ptxvm.analysis.repairs import near_opcodes
from ptxvm.analysis.report import Report
from ptxvm.analysis.shared import check_shared
from ptxvm.analysis.validate import validate
from ptxvm.diagnostics import Diagnostic
from ptxvm.syntax import tree
from ptxvm.syntax.outline import outline
from ptxvm.syntax.parser import parse
from ptxvm.syntax.source import Source


def analyse(source: Source, target: str | None = None, *, extended_shared: bool = False) -> tuple[Program, Report]:
    """Parse, bind and validate; `target` overrides that of the module, as `ptxas -arch` does.

    `extended_shared` lets kernels declare more than 48 KB of shared memory, as `ptxas --enable-extended-smem` does.
    """
    with usual_arithmetic(), NoCollection():
        return _analyse(source, target, extended_shared=extended_shared)


def _analyse(source: Source, target: str | None, *, extended_shared: bool) -> tuple[Program, Report]:
    found = outline(source)
    if found is not None:
        with suppress(SyntaxInBody, WholeModule):
            return _checked(source, found.module, [], target, Bodies(found), extended_shared=extended_shared)
    return _checked(source, *parse(source), target, extended_shared=extended_shared)


def check_tree(source: Source, module: tree.Module, syntax: list[Diagnostic]) -> Report:
    """What `analyse` finds in a text that has been read as a whole, with the errors of syntax that were found meanwhile."""
    with usual_arithmetic(), NoCollection():
        return _checked(source, module, syntax, None)[1]


def _checked(
    source: Source, module: tree.Module, syntax: list[Diagnostic], target: str | None, unread: UnreadParts | None = None,
    *, extended_shared: bool = False,
) -> tuple[Program, Report]:  # fmt: skip
    report = Report(source, near_opcodes(syntax))
    program = bind(module, source, report, target, unread)
    program.extended_shared = extended_shared
    validate(program, report)
    check_shared(program, report)
    report.diagnostics.sort(key=lambda d: d.span.start)
    return program, report
