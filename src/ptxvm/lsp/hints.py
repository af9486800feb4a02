"""Lints and inlay hints: what the analysis of a whole function tells, function by function.

Both need a module without errors.  What was found of a function is kept while its text, and the text around the bodies, stay.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from lsprotocol import types

from ptxvm.analysis.incremental import IncrementalChecker, around, moved, relative
from ptxvm.analysis.lane_shapes import LaneShape, Variation
from ptxvm.analysis.lints import LintedFunction, lint_function
from ptxvm.analysis.program import Function, Program
from ptxvm.analysis.report import Report
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics import Diagnostic
from ptxvm.lsp.document import Document
from ptxvm.syntax import tree

MOST_FUNCTIONS = 4096
"""The functions that are remembered; all are forgotten where there are more."""

MOST_STATEMENTS = 6000
"""The statements of a function that is looked at while one types; `ptxvm check --lint` takes any."""


@dataclass(frozen=True, slots=True)
class FunctionHints:
    """What is known of a function, with places counted from its begin: lints, and where results stand with their shapes."""

    lints: tuple[Diagnostic, ...] = ()
    shapes: tuple[tuple[int, str], ...] = ()


class Hints:
    """The hints of the functions that were looked at."""

    def __init__(self, checker: IncrementalChecker) -> None:
        self.checker = checker
        self._program: tuple[Document, Program | None] | None = None
        self._known: dict[tuple[str, str], FunctionHints] = {}

    def of(self, document: Document, first: int = 0, last: int | None = None) -> Iterator[tuple[int, FunctionHints]]:
        """The hints of each function in a span of a document without errors, with the place where it begins."""
        yield from filter(None, self.steps(document, first, last))

    def steps(self, document: Document, first: int = 0, last: int | None = None) -> Iterator[tuple[int, FunctionHints] | None]:
        """The same step by step, so that other work may come between: None is a step that has found no hints yet."""
        if self._program is None or self._program[0] is not document:
            self._program = document, self.checker.program(document.source)
        program = self._program[1]
        if program is None:
            return
        if len(self._known) > MOST_FUNCTIONS:
            self._known.clear()
        outside = around(document.module.outline)
        for function in program.functions.values():
            start, end = function.node.start, function.node.end
            if not function.defined or end < first or (last is not None and last < start):
                continue
            key = (document.source.text[start:end], outside)
            known = self._known.get(key)
            if known is None:
                is_long = document.module.plain.count(";", start, end) > MOST_STATEMENTS  # which is known before it is read
                known = FunctionHints() if is_long else (yield from hints_of(function))
                self._known[key] = known
            yield start, known

    def inlay(self, document: Document, wanted: types.Range) -> list[types.InlayHint]:
        """The shape of each result, and the type of its register, in a range of the text."""
        first, last = document.text.span(wanted)
        found = []
        for start, known in self.of(document, first, last):
            for offset, said in known.shapes:
                if first <= start + offset <= last:
                    position = document.text.position(start + offset)
                    found.append(types.InlayHint(position, said, types.InlayHintKind.Type, padding_left=True))
        return found


def lints(document: Document, start: int, known: FunctionHints) -> list[Diagnostic]:
    """The lints of a function that begins at `start`."""
    return [moved(each, start, document.source) for each in known.lints]


def hints_of(function: Function) -> Generator[None, None, FunctionHints]:
    """The hints of a function: it is read, then the shapes of its values are found, then its lints."""
    if function.program is None:
        return FunctionHints()
    report, start = Report(function.program.source), function.node.start
    function.read()
    yield
    known = LintedFunction(function)
    found = known.divergence
    yield
    lint_function(known, report)
    shapes = []
    for number, shape in found.results.items():
        bound = function.instructions[number]
        name = next((each for each in bound.i.destinations() if each in bound.operands), None)
        node = bound.operands.get(name or "")
        if isinstance(node, tree.Name) and name is not None:
            type = bound.i.type_of(name)
            shapes.append((node.end - start, f"{f'{type} ' if type is not None else ''}{in_words(shape)}"))
    noted = sorted(report.diagnostics, key=lambda each: each.span.start)
    return FunctionHints(tuple(relative(each, start) for each in noted), tuple(shapes))


def in_words(shape: LaneShape) -> str:
    """A shape in a word; an affine one with its stride."""
    if shape.variation is Variation.AFFINE and shape.stride is not None:
        return f"affine +{shape.stride}" if shape.stride >= 0 else f"affine {shape.stride}"
    if shape.is_uniform and shape.value is not None:
        return f"= {shape.value}"
    return "varying" if shape.variation is Variation.UNKNOWN else shape.variation.value
