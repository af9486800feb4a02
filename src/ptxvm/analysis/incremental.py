"""Incremental checking: after an edit, only the bodies are checked that the edit can have changed.

What is wrong with a body depends on its own text and head, on the version and target, and on the names of the module that it
mentions; a body that has errors depends on all names, for its messages suggest some.  Diagnostics are kept with places
relative to the body, which may have moved.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from ptxvm.algebra.float_environment import usual_arithmetic
from ptxvm.analysis.bind import Binder, bind
from ptxvm.analysis.bodies import Bodies
from ptxvm.analysis.debugging import Line
from ptxvm.analysis.program import Bound, Function, Program
from ptxvm.analysis.report import Report
from ptxvm.analysis.shared import check_shared, fits_shared
from ptxvm.analysis.sparse import sparse
from ptxvm.analysis.symbols import Variable
from ptxvm.analysis.validate import validate
from ptxvm.diagnostics import Diagnostic, Span
from ptxvm.syntax import tree
from ptxvm.syntax.outline import Outline, sketch
from ptxvm.syntax.parser import parse
from ptxvm.syntax.source import Source

MOST_BODIES = 1 << 14
"""The bodies that are remembered; all are forgotten where there are more."""

ELSEWHERE = ("on line ", "label of '")
"""Parts of a help that name a line, which an edit moves, or that look into other bodies: such a body is checked each time."""

_WORD = re.compile(r"[%$]?[A-Za-z_$][\w$]*", re.ASCII)
_PLACE = re.compile(r"\.loc[ \t]+(\d+)[ \t]+(\d+)[ \t]+(\d+)[^\n]*?(?:inlined_at[ \t]+(\d+)[ \t]+(\d+)[ \t]+(\d+))?(?=\s*$)",
                    re.ASCII | re.MULTILINE)  # fmt: skip
_REACHES_OUT = re.compile(r"\.(?:func|target|file|alias|extern|visible|weak)\b", re.ASCII)

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class CheckedBody:
    """A body that was checked: its diagnostics, with places counted from its begin, and its variables outside of the stack.

    `around`, of a body with errors, is the text around all bodies.
    """

    around: str
    diagnostics: tuple[Diagnostic, ...]
    statics: tuple[Variable, ...]
    labels: frozenset[str]


@dataclass(slots=True)
class Unneeded:
    """The place of a body that was checked earlier, and is not read."""

    statics: list[Variable]
    labels: frozenset[str]
    calls: list[Bound] = field(default_factory=list)
    unexecuted: list[Bound] = field(default_factory=list)

    def read(self) -> None:
        """There is nothing to read: the program is not run."""
        raise ValueError("this program was checked only, and some bodies were not read")


class IncrementalChecker:
    """Checks versions of modules one after the other, and remembers the bodies."""

    def __init__(self) -> None:
        self.bodies: dict[Key, CheckedBody] = {}
        self.read = 0  # the bodies that the last check has looked at

    def check(self, source: Source, target: str | None = None) -> list[Diagnostic]:
        """Everything that is wrong with a module, in the order of the text: as `check.analyse` has it."""
        with usual_arithmetic():
            found = sketch(source)
            report = self._by_bodies(source, found, target) if found.is_whole else None
            if report is None:
                report = whole(source, target)
        return sorted(report.diagnostics, key=lambda each: each.span.start)

    def _by_bodies(self, source: Source, outline: Outline, target: str | None) -> Report | None:
        """The report of a module body by body; None where that cannot be."""
        if len(self.bodies) > MOST_BODIES:
            self.bodies.clear()
        unread = RememberedBodies(outline, self)
        report = Report(source)
        program = bind(outline.module, source, report, target, unread)
        if unread.is_entangled or not fits_shared(program, unread.mentioned):
            return None
        validate(program, report)
        report.diagnostics[:0] = unread.syntax
        unread.remember(report)
        report.diagnostics[:0] = outline.diagnostics  # one at the brace of a body belongs to what stands before it
        report.diagnostics += unread.known
        self.read = len(unread.looked_at)
        return report


def whole(source: Source, target: str | None = None) -> Report:
    """The report of a module that is read as a whole."""
    module, syntax = parse(source)
    report = Report(source, list(syntax))
    program = bind(module, source, report, target)
    validate(program, report)
    check_shared(program, report)
    return report


class RememberedBodies(Bodies):
    """Checks the bodies of a module that are not known from an earlier check."""

    def __init__(self, outline: Outline, checker: IncrementalChecker) -> None:
        super().__init__(outline)
        self.checker = checker
        self.syntax: list[Diagnostic] = []
        self.known: list[Diagnostic] = []
        self.looked_at: list[tuple[Key, Function, tree.Unread]] = []
        self.is_entangled = False

    @cached_property
    def around(self) -> str:
        """The text around the bodies."""
        return around(self.outline)

    @cached_property
    def declared_names(self) -> dict[str, tuple[str, ...]]:
        """The declarations of the names of the module."""
        return declarations(self.outline)

    def __call__(self, binder: Binder, function: Function, body: tree.Unread) -> tree.Block | tree.Unread:
        """What has to be read of the body; as it is where it was checked earlier."""
        text = self.outline.plain.text[body.start : body.end]
        if _REACHES_OUT.search(text):
            self.is_entangled = True
        places = places_of(text) if self.inlines else LocPlaces(frozenset(), frozenset())
        key = (text, self.outline.plain.text[function.node.start : body.start], *setting(binder.program),
               places.needed & binder.lines, self.meanings(binder.program, text))  # fmt: skip
        known = self.checker.bodies.get(key)
        if known is not None and (not known.diagnostics or known.around == self.around):
            binder.lines |= places.own
            self.known += [moved(each, body.start, self.outline.source) for each in known.diagnostics]
            function.lazy = Unneeded(list(known.statics), known.labels)
            return body
        self.looked_at.append((key, function, body))
        return self._checked(binder, function, body)

    def meanings(self, program: Program, text: str) -> Key:
        """The declarations of the names of the module that a body mentions; and do they stand above it?"""
        families = tuple(self.declared_names[prefix] for prefix in program.scope.families)
        named = words_of(text) & self.declared_names.keys()
        return (families, *((name, name in program.scope.names, *self.declared_names[name]) for name in sorted(named)))

    def mentioned(self, function: Function) -> Iterable[str]:
        """The names that the body of a function may mention, read or not."""
        body = function.node.body
        return words_of(self.outline.plain.text[body.start : body.end]) if body is not None else ()

    def _checked(self, binder: Binder, function: Function, body: tree.Unread) -> tree.Block:
        """What has to be read of the body; its errors of syntax are those of the body alone."""
        found = sparse(self, binder, function, body) or self.outline.wrong_body(body)
        if found is None:
            self.is_entangled = True
            return tree.Block([], start=body.start, end=body.end)
        self.syntax += found[1]
        return found[0]

    def remember(self, report: Report) -> None:
        """Keep what was found in the bodies that were looked at."""
        for key, function, body in self.looked_at:
            own = [each for each in report.diagnostics if body.start <= each.span.start < body.end]
            if any(mark in each.help for each in own for mark in ELSEWHERE):
                continue
            shifted = tuple(relative(each, body.start) for each in own)
            known = CheckedBody(self.around if own else "", shifted, tuple(function.statics), frozenset(function.label_names))
            self.checker.bodies[key] = known


# ── what a body depends on ──────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class LocPlaces:
    """The places that the `.loc` of a body name, and those of inlined code that must be named above it."""

    own: frozenset[Line]
    needed: frozenset[Line]


@lru_cache(maxsize=MOST_BODIES)
def places_of(text: str) -> LocPlaces:
    """The places of a body, in order: `.loc` passes on what it names."""
    own, needed = set[Line](), set[Line]()
    for found in _PLACE.finditer(text):
        numbers = [int(number) for number in found.groups(default="-1")]
        inlined = (numbers[3], numbers[4], numbers[5])
        if numbers[3] >= 0 and inlined not in own:
            needed.add(inlined)
        own.add((numbers[0], numbers[1], numbers[2]))
    return LocPlaces(frozenset(own), frozenset(needed))


@lru_cache(maxsize=MOST_BODIES)
def words_of(text: str) -> frozenset[str]:
    """The names that a body may mention."""
    return frozenset(_WORD.findall(text))


def around(outline: Outline) -> str:
    """The text around the bodies, whatever its blanks are."""
    pieces, at = [], 0
    for statement in outline.module.statements:
        if isinstance(statement, tree.Function) and statement.body is not None:
            pieces.append(outline.plain.text[at : statement.body.start])
            at = statement.body.end
    return "\0".join(" ".join(piece.split()) for piece in (*pieces, outline.plain.text[at:]))


def setting(program: Program) -> Key:
    """The version, target and address size of a module."""
    return program.version, program.target, program.target_options, program.address_size


def declarations(outline: Outline) -> dict[str, tuple[str, ...]]:
    """The declarations of each name of a module, without initial values and bodies; of families by the begin of the names."""
    found: dict[str, tuple[str, ...]] = {}
    text = outline.plain.text
    for statement in outline.module.statements:
        match statement:
            case tree.Function():
                end = statement.end if statement.body is None else statement.body.start
                found[statement.name] = (*found.get(statement.name, ()), text[statement.start : end])
            case tree.Variable():
                kind = text[statement.start : statement.declarators[0].start] if statement.declarators else ""
                for each in statement.declarators:
                    end = each.end if each.initial is None else each.initial.start
                    found[each.name] = (*found.get(each.name, ()), kind + text[each.start : end])
    return found


# ── places ──────────────────────────────────────────────────────────────────────────────


def relative(found: Diagnostic, start: int) -> Diagnostic:
    """A diagnostic with places counted from the begin of its body."""
    related = tuple((said, Span(span.start - start, span.end - start)) for said, span in found.related)
    return replace(found, span=Span(found.span.start - start, found.span.end - start), related=related)


def moved(found: Diagnostic, start: int, source: Source) -> Diagnostic:
    """The diagnostic of a body that now begins at `start`."""
    there = relative(found, -start)
    line, column = source.location(there.span.start)
    return replace(there, line=line, column=column)
