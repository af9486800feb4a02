"""From a text to a bound and checked program."""

from __future__ import annotations

from ptxvm.algebra.float_environment import usual_arithmetic
from ptxvm.analysis.bind import bind
from ptxvm.analysis.program import Program
from ptxvm.analysis.report import Report
from ptxvm.analysis.shared import check_shared
from ptxvm.analysis.validate import validate
from ptxvm.syntax.parser import parse
from ptxvm.syntax.source import Source


def analyse(source: Source, target: str | None = None) -> tuple[Program, Report]:
    """Parse, bind and validate; `target` overrides that of the module, as `ptxas -arch` does."""
    with usual_arithmetic():
        return _analyse(source, target)


def _analyse(source: Source, target: str | None) -> tuple[Program, Report]:
    module, found = parse(source)
    report = Report(source, list(found))
    program = bind(module, source, report, target)
    validate(program, report)
    check_shared(program, report)
    report.diagnostics.sort(key=lambda d: d.span.start)
    return program, report
