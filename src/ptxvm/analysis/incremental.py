"""Incremental checking: after an edit, only the bodies are checked that the edit can have changed.

What is wrong with a body depends on its own text and head, on the version and target, and on the names of the module that it
mentions; a body that has errors depends on all names, for its messages suggest some.  Diagnostics are kept with places
relative to the body, which may have moved.

Another version or target changes what is right in every body.  A check of a slice looks at some bodies and leaves the others
for the next one, so that an editor has its first answer soon.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property, lru_cache

from ptxvm.algebra.float_environment import usual_arithmetic
from ptxvm.analysis.bind import Binder, WholeModule, bind
from ptxvm.analysis.bodies import Bodies, Lazy
from ptxvm.analysis.body_check import labels_in
from ptxvm.analysis.check import analyse
from ptxvm.analysis.collector import NoCollection
from ptxvm.analysis.debugging import Line
from ptxvm.analysis.known_lines import STRETCH, Normalisation
from ptxvm.analysis.program import Function, Program
from ptxvm.analysis.repairs import near_opcodes
from ptxvm.analysis.report import Report
from ptxvm.analysis.shared import check_shared, fits_shared
from ptxvm.analysis.sparse import sparse
from ptxvm.analysis.symbols import Variable
from ptxvm.analysis.validate import validate
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics import Diagnostic, Severity, Span
from ptxvm.syntax import tree
from ptxvm.syntax.chunks import chunks
from ptxvm.syntax.outline import Outline, sketch
from ptxvm.syntax.parser import parse
from ptxvm.syntax.source import Source

MOST_BODIES = 1 << 14
"""The bodies that are remembered; all are forgotten where there are more."""

ELSEWHERE = ("on line ", "label of '")
"""Parts of a help that name a line, which an edit moves, or that look into other bodies: such a body is checked each time."""

SLICE = 1 << 16
"""The characters of bodies that a check of a slice looks at: some 50 to 100 milliseconds."""

_WORD = re.compile(r"[%$]?[A-Za-z_$][\w$]*", re.ASCII)
_PLACE = re.compile(r"\.loc[ \t]+(\d+)[ \t]+(\d+)[ \t]+(\d+)[^\n]*?(?:inlined_at[ \t]+(\d+)[ \t]+(\d+)[ \t]+(\d+))?(?=\s*$)",
                    re.ASCII | re.MULTILINE)  # fmt: skip
_FUNCTION = re.compile(r"\.func\s*+(?:\([^(){};]*+\)\s*+)?([A-Za-z_$%][\w$]*+)(?P<dot>\.)?", re.ASCII)
_LINKAGE = re.compile(
    r"\.(?:extern|visible|weak)\s+(?=\.func\b|\.(?:f|fu|fun)?(?![\w$])|[^.\s/])", re.ASCII
)  # `.func` is typed
_REACHES_OUT = re.compile(r"\.(?:func|alias|extern|visible|weak)\b", re.ASCII)

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class CheckedBody:
    """A body that was checked: its diagnostics, with places counted from its begin, and its variables outside of the stack.

    `around`, of a body with errors, is the text around all bodies.  What `is_fleeting` has to be found again each time.
    """

    around: str
    diagnostics: tuple[Diagnostic, ...]
    statics: tuple[Variable, ...]
    labels: frozenset[str]
    is_fleeting: bool


class Unneeded(Lazy):
    """The place of a body that was checked earlier, or that waits; it is read where its function is asked for its code."""

    def __init__(
        self, outline: Outline, function: Function, body: tree.Unread, statics: Iterable[Variable], labels: frozenset[str]
    ) -> None:
        self.outline, self.function, self.body = outline, function, body
        self.calls, self.unexecuted, self.statics, self.labels = [], [], list(statics), labels

    def read(self) -> None:
        """Read and bind the body; the variables are made anew, as the known ones stand in an earlier text."""
        self.statics = []
        super().read()


class IncrementalChecker:
    """Checks versions of modules one after the other, and remembers the bodies."""

    def __init__(self) -> None:
        self.bodies: dict[Key, CheckedBody] = {}
        self.latest: dict[str, CheckedBody] = {}  # by their text alone
        self.mentions: dict[str, frozenset[str]] = {}  # the names that bodies mention, by their text
        self.labels: dict[str, frozenset[str]] = {}  # those of the labels of bodies that were found right
        self.normalisation = Normalisation.remembered()
        self.read = 0  # the bodies that the last check has looked at
        self.waiting = 0  # those that it has left to the next one
        self._bound: Program | None = None

    def check(self, source: Source, target: str | None = None, *, slice: int | None = None) -> list[Diagnostic]:
        """Everything that is wrong with a module, in the order of the text: as `check.analyse` has it.

        With a `slice` of so many characters, other bodies wait that are to be looked at: those of a new text come first, and of
        the others is told what was found in the same text last.  The next check goes on with what waits.
        """
        self._bound, self.waiting = None, 0
        with usual_arithmetic(), NoCollection():
            found = sketch(source)
            report = self._by_bodies(source, found, target, slice)
            if report is None and found.has_open:
                report = self._by_bodies(source, sketch(source, reads_open=True), target, slice)
            if report is None:
                self.waiting = 0
                report = whole(source, target)
        return sorted(report.diagnostics, key=lambda each: each.span.start)

    def program(self, source: Source) -> Program | None:
        """The bound module, of which bodies are read when they are asked for; None where it has errors."""
        for _ in range(2):  # bodies that are looked at are read in part: the second time, all are known
            if any(each.severity is Severity.ERROR for each in self.check(source)):
                return None
            if self._bound is not None and self.read == 0:
                return self._bound
        return analyse(source)[0]

    def _by_bodies(self, source: Source, outline: Outline, target: str | None, slice: int | None) -> Report | None:
        """The report of a module body by body; None where that cannot be."""
        if not outline.is_whole or "\0" in source.text:  # then it may be a binary file
            return None
        self.waiting = 0
        if max(len(self.bodies), len(self.mentions)) > MOST_BODIES:
            for known in (self.bodies, self.latest, self.mentions, self.labels):
                known.clear()
        unread = RememberedBodies(outline, self, slice)
        report = Report(source)
        try:
            program = bind(outline.module, source, report, target, unread)
        except WholeModule:
            return None
        if unread.is_entangled or not unread.is_alone or not fits_shared(program, unread.mentioned):
            return None
        validate(program, report)
        report.diagnostics[:0] = near_opcodes(unread.syntax)
        unread.remember(report)
        # One at the brace of a body belongs to what stands before it.
        report.diagnostics[:0] = near_opcodes(outline.diagnostics)
        report.diagnostics += unread.known
        self.read, self._bound = len(unread.looked_at), program
        return report


def whole(source: Source, target: str | None = None) -> Report:
    """The report of a module that is read as a whole."""
    module, syntax = parse(source)
    report = Report(source, near_opcodes(syntax))
    program = bind(module, source, report, target)
    validate(program, report)
    check_shared(program, report)
    return report


class RememberedBodies(Bodies):
    """Checks the bodies of a module that are not known from an earlier check."""

    def __init__(self, outline: Outline, checker: IncrementalChecker, slice: int | None) -> None:
        super().__init__(outline)
        self.checker, self.normalisation = checker, checker.normalisation
        self.syntax: list[Diagnostic] = []
        self.known: list[Diagnostic] = []
        self.looked_at: list[tuple[Key, Function, tree.Unread]] = []
        self.is_entangled = False
        self.reaching: dict[int, frozenset[str]] = {}  # the names of functions that bodies declare, by the begin of the body
        self._last: tuple[int, Key, LocPlaces] | None = None  # the last key, by the place of its function
        self.room = None if slice is None else Room(slice, self.new_characters())

    def new_characters(self) -> int:
        """The characters of the bodies whose text was never checked."""
        bodies = bodies_of(self.outline, (tree.Unread,))
        text, latest = self.outline.plain.text, self.checker.latest
        return sum(end - start for start, end in bodies if text[start:end] not in latest)

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
        key, places = self.key(binder, function.node.start, body)
        text = str(key[0])
        reached = reached_by(text)
        if reached is None:
            self.is_entangled = True
        elif reached:
            self.reaching[body.start] = reached
        known = self.checker.bodies.get(key)
        if known is None or (known.diagnostics and known.around != self.around):
            known = self.checker.latest.get(text)
            if (
                self.room is None
                or (known is not None and known.is_fleeting)
                or self.room.takes(len(text), is_new=known is None)
            ):
                self.looked_at.append((key, function, body))
                return self._checked(binder, function, body)
            self.checker.waiting += 1
        labels = labels_in(self.outline.plain.text, body) if known is None else known.labels
        binder.lines |= places.own
        self.known += [
            moved(each, body.start, self.outline.source) for each in (known.diagnostics if known is not None else ())
        ]
        function.lazy = Unneeded(self.outline, function, body, known.statics if known is not None else (), labels)
        return body

    def key(self, binder: Binder, start: int, body: tree.Unread) -> tuple[Key, LocPlaces]:
        """The key of the findings in the body of a function that begins at a place, and the `.loc` places that it names."""
        if self._last is None or self._last[0] != start:
            text, program = self.outline.plain.text, binder.program
            own = text[body.start : body.end]
            places = places_of(own) if self.inlines else LocPlaces(frozenset(), frozenset())
            key = (own, text[start : body.start], *setting(program), places.needed & binder.lines, self.meanings(program, own))
            self._last = start, key, places
        return self._last[1:]

    def knows(self, binder: Binder, node: tree.Alike) -> bool:
        """Was a body found right earlier, which declares nothing outside of the stack?"""
        key, places = self.key(binder, node.start, tree.Unread(start=node.body_start, end=node.end))
        known = self.checker.bodies.get(key)
        if known is None or known.diagnostics or known.statics or _REACHES_OUT.search(str(key[0])):
            return False
        binder.lines |= places.own
        return True

    def leave(self, function: Function, body: tree.Unread) -> None:
        """Leave a body unread that was checked earlier."""
        text, known = self.outline.plain.text, self.checker.labels
        own = text[body.start : body.end]
        if own not in known:
            known[own] = labels_in(text, body)
        function.lazy = Unneeded(self.outline, function, body, (), known[own])

    def meanings(self, program: Program, text: str) -> Key:
        """The declarations of the names of the module that a body mentions; and do they stand above it?"""
        families = tuple(self.declared_names[prefix] for prefix in program.scope.families)
        named = self.names_in(text) & self.declared_names.keys()
        return (families, *((name, name in program.scope.names, *self.declared_names[name]) for name in sorted(named)))

    @property
    def is_alone(self) -> bool:
        """Are the names that bodies declare outside of themselves mentioned nowhere else?"""
        names = frozenset[str]().union(*self.reaching.values())
        if len(names) < sum(map(len, self.reaching.values())) or not names.isdisjoint(self.declared_names):
            return False
        text, nothing = self.outline.plain.text, frozenset[str]()
        return not names or all(
            self.names_in(text[start:end]) & names == self.reaching.get(start, nothing)
            for start, end in bodies_of(self.outline)
        )

    def mentioned(self, function: Function) -> Iterable[str]:
        """The names of the module that the body of a function may mention, read or not."""
        body = function.node.body
        if body is None:
            return ()
        return self.names_in(self.outline.plain.text[body.start : body.end]) & self.declared_names.keys()

    def names_in(self, text: str) -> frozenset[str]:
        """The names that a body may mention."""
        known = self.checker.mentions
        if text not in known:
            known[text] = frozenset[str]().union(*map(words_of, chunks(text, STRETCH)))
        return known[text]

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
            # Instructions of a second definition are not validated.
            is_second = function.program is None or function.program.made_functions.get(function.name) is not function
            helps_elsewhere = any(mark in each.help for each in own for mark in ELSEWHERE)
            is_fleeting = is_second or helps_elsewhere or body.start in self.reaching
            shifted = tuple(relative(each, body.start) for each in own)
            labels = frozenset(function.label_names)
            known = CheckedBody(self.around if own else "", shifted, tuple(function.statics), labels, is_fleeting)
            self.checker.latest[str(key[0])] = known
            if not is_fleeting:
                self.checker.bodies[key] = known


class Room:
    """The characters that a slice has room for, apart for bodies of a new text and for others."""

    def __init__(self, characters: int, new: int) -> None:
        self._new, self._others = characters, characters - new

    def takes(self, characters: int, *, is_new: bool) -> bool:
        """Is there room for a body?  The last one may be longer."""
        before = self._new if is_new else self._others
        if is_new:
            self._new -= characters
        else:
            self._others -= characters
        return before > 0


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


def reached_by(text: str) -> frozenset[str] | None:
    """The functions that a body declares, as where one is typed above others; None where it may reach out otherwise.

    They belong to the module.  Each is mentioned there only: what else the body does, it does without them.
    """
    names = set[str]()
    for found in _REACHES_OUT.finditer(text):
        function = _FUNCTION.match(text, found.start())
        if function is None:
            if found[0] == ".func" or not _LINKAGE.match(text, found.start()):
                return None
        elif function["dot"] is None:  # a name with a dot declares nothing
            if is_repeated(function[1], text):
                return None
            names.add(function[1])
    return frozenset(names)


def is_repeated(name: str, text: str) -> bool:
    """Is a name mentioned more than once?"""
    return len(re.findall(rf"(?<![\w$%]){re.escape(name)}(?![\w$])", text)) > 1


@lru_cache(maxsize=MOST_BODIES)
def words_of(text: str) -> frozenset[str]:
    """The names that a chunk of a body may mention."""
    return frozenset(_WORD.findall(text))


def around(outline: Outline) -> str:
    """The text around the bodies, whatever its blanks are."""
    pieces, at = [], 0
    for start, end in bodies_of(outline):
        pieces.append(outline.plain.text[at:start])
        at = end
    return "\0".join(" ".join(piece.split()) for piece in (*pieces, outline.plain.text[at:]))


def bodies_of(outline: Outline, kinds: tuple[type[tree.Node], ...] = (tree.Block, tree.Unread)) -> Iterator[tuple[int, int]]:
    """The places of the bodies of a module, read or not."""
    for statement in outline.module.statements:
        if isinstance(statement, tree.Function) and isinstance(statement.body, kinds):
            yield statement.body.start, statement.body.end
        elif isinstance(statement, tree.Alike) and statement.body_start >= 0:
            yield statement.body_start, statement.end


def setting(program: Program) -> Key:
    """The version, target and address size of a module."""
    return program.version, program.target, program.target_options, program.address_size


def declarations(outline: Outline) -> dict[str, tuple[str, ...]]:
    """The declarations of each name of a module, without initial values and bodies; of families by the begin of the names."""
    found: dict[str, tuple[str, ...]] = {}
    text = outline.plain.text
    for statement in outline.module.statements:
        match statement:
            case tree.Alike():
                found[statement.name] = (*found.get(statement.name, ()), outline.declaration(statement))
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
