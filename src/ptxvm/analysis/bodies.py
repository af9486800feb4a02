"""Memoised validation: a function body whose statements are all known to be right is not kept.

One compiled expression takes the text of a body apart.  An instruction is right where an earlier one with the same head and
the same forms of operands was: that one was read, bound and checked in full.  Everything else (declarations, calls, forms that
are new) is read and bound as in `bind`, and dropped.  At the first doubt the whole body is read in full, so that every
diagnostic comes from there.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import chain

from ptxvm.algebra.float_environment import usual_arithmetic
from ptxvm.algebra.state_space import Space
from ptxvm.analysis import debugging, expressions, passing
from ptxvm.analysis.bind import Binder
from ptxvm.analysis.collector import NoCollection
from ptxvm.analysis.known_lines import (
    LONGEST_BLOCK,
    Known,
    ModuleNames,
    Stretch,
    TooLarge,
    names_in_sight,
    names_of,
    of_count,
    others,
    targets,
)
from ptxvm.analysis.memo import Key, Left, Memo, Spelling
from ptxvm.analysis.operand_forms import OTHER, OperandForms
from ptxvm.analysis.parameters import addressed, check_parameters
from ptxvm.analysis.program import Bound, Function, Program
from ptxvm.analysis.recognise import Recogniser, Recognition
from ptxvm.analysis.report import Report
from ptxvm.analysis.scope import NameScope
from ptxvm.analysis.shapes import names_in
from ptxvm.analysis.symbols import Label, Variable
from ptxvm.analysis.validate import check_instruction, recogniser
from ptxvm.syntax import tree
from ptxvm.syntax.cursor import DEEPEST
from ptxvm.syntax.outline import Outline
from ptxvm.syntax.statements import BLANKS, FAMILY, LABEL, STATEMENT, TARGETS, parted

OWN_VARIABLES = (1, 4)
"""The first version in which a `.param` variable in a kernel's body is no parameter of the kernel (PTX 7.1.1)."""

MOST_CHANGES = 8
"""A body whose registers are declared again and again has no known lines."""

_reading = threading.RLock()


class SyntaxInBody(Exception):  # noqa: N818 - the module is read anew, which reports it
    """A body has an error of syntax: the module has no outline."""


class Doubt(Exception):  # noqa: N818 - the body is read in full, which reports what is wrong with it
    """Something in a body is wrong, or not known to be right."""


def recogniser_of(program: Program) -> Recogniser:
    """The recogniser for a program's version and target."""
    return recogniser(program.version, program.target, program.target_options)


class Bodies:
    """Checks the unread bodies of a module; gives those that need a report in full."""

    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        self.inlines = "inlined_at" in outline.plain.text
        self.declarations: set[tuple[bool, Spelling]] = set()
        self.module_names = ModuleNames()

    def __call__(self, binder: Binder, function: Function, body: tree.Unread) -> tree.Block | tree.Unread:
        """The body in full, or as it is where its function can do without until it runs."""
        if (lazy := self.lazy(binder, function, body)) is not None:
            function.lazy = lazy
            return body
        found = self.outline.body(body)
        if found is None:
            raise SyntaxInBody
        return found

    def lazy(self, binder: Binder, function: Function, body: tree.Unread) -> Lazy | None:
        """The place of a body that is right; None for one that may not be."""
        if binder.program.version < OWN_VARIABLES:
            return None
        check = BodyCheck(self, binder, function, body)
        try:
            check.run()
        except Doubt:
            return None
        binder.lines |= check.binder.lines
        return Lazy(self.outline, function, body, check)


class Lazy:
    """A checked body that is read from the text when it is first asked for."""

    __slots__ = ("body", "calls", "function", "labels", "outline", "statics", "unexecuted")

    def __init__(self, outline: Outline, function: Function, body: tree.Unread, check: BodyCheck) -> None:
        self.outline, self.function, self.body = outline, function, body
        self.calls, self.unexecuted, self.statics = check.calls, check.unexecuted, check.copy.statics
        self.labels = frozenset(check.copy.labels)
        for each in self.unexecuted:
            each.function = function

    def read(self) -> None:
        """Read and bind the body, and recognise its instructions."""
        function, program = self.function, self.function.program
        with _reading, usual_arithmetic(), NoCollection():
            if function.lazy is None or program is None:
                return
            block = self.outline.body(self.body)
            if block is None:
                raise SyntaxInBody
            binder = Binder(program, Report(self.outline.source))  # the report repeats nothing: the body was checked
            binder.made = {(v.node.start, v.name): v for v in self.statics if v.node is not None}
            copy = copy_of(function, function.scope)
            binder.block(block, function.scope, copy)
            binder.resolve_tables()
            known = recogniser_of(program)
            for bound in copy.instructions:
                bound.function = function
                check_instruction(bound, known, binder.checks.report)
            function.node.body = block
            function.take(copy.code)


def copy_of(function: Function, scope: NameScope) -> Function:
    """The same function without its code."""
    node, signature = function.node, function.signature
    found = Function(function.name, function.entry, node, signature, scope, function.linkage, program=function.program)
    found.defined = True
    found.variables.extend(s for s in (*signature.results, *signature.parameters) if isinstance(s, Variable))
    return found


class BlockCheck:
    """A block under check: the scope of its names, its labels, and whether an instruction stands above.

    `lines` are those that are right in this block; `hides`: in it, a name with `%` means something else than around it.
    `first` is the number of its first line, and `mentioned` what it mentions, where it can be known as a whole, else -1.
    Where it `passes` arguments it is known in its function alone: what that calls and loads is looked at together.
    """

    __slots__ = ("first", "forms", "hides", "labels", "lines", "mentioned", "passed", "passes", "scope")

    def __init__(self, scope: NameScope, forms: OperandForms, *, hides: bool = False, first: int = -1) -> None:
        self.scope, self.forms, self.hides, self.first = scope, forms, hides, first
        self.passed = self.passes = False
        self.mentioned: set[str] = set()
        self.labels: set[str] = set()
        self.lines: set[str] = set()

    def forget(self) -> None:
        """Forget what names mean, as others may be declared by now."""
        self.forms.forget()
        self.lines.clear()


class BodyCheck:
    """One walk over the text of a body; `Doubt` ends it where something may be wrong."""

    def __init__(self, bodies: Bodies, binder: Binder, function: Function, body: tree.Unread) -> None:
        self.outline, self.inlines, self.body = bodies.outline, bodies.inlines, body
        self.memo = Memo.of(recogniser_of(binder.program))
        self.report = Report(bodies.outline.source)
        self.binder = Binder(binder.program, self.report)
        self.lines_above = binder.lines
        above = function.scope
        scope = NameScope(above.outer, dict(above.names), dict(above.families), [], dict(above.places), above.seen)
        self.copy = copy_of(function, scope)
        self.calls: list[Bound] = []
        self.unexecuted: list[Bound] = []
        self.returned: set[int] = set()
        self.loaded: list[Variable] = []
        self.declarations = bodies.declarations
        self.labels = frozenset(LABEL.findall(bodies.outline.plain.text, body.start, body.end))
        self.module_names = bodies.module_names
        self.frames = [BlockCheck(scope, self.forms(scope))]
        self.lists = frozenset(TARGETS.findall(bodies.outline.plain.text, body.start, body.end))
        self.labels -= self.lists
        mentioned = targets(bodies.outline.plain.text, body.start, body.end) - self.lists
        self.unifies_labels = mentioned <= self.labels
        if self.unifies_labels:
            self.frames[0].forms.wanted |= mentioned
        self.known: Known | None = None
        self.stretch: Stretch | None = None
        self.changes = 0

    def forms(self, scope: NameScope) -> OperandForms:
        """The forms of operands in a scope."""
        return OperandForms(scope, self.copy, self.memo.forms, self.labels)

    def run(self) -> None:
        """Check all statements, then what needs all of them."""
        text, at, end, number = self.outline.plain.text, self.body.start + 1, self.body.end - 1, -1
        while found := STATEMENT.match(text, at, end):
            at = found.end()
            if found[2] is not None:
                self.head(found, number)
            elif not self.statement(found, number):
                number = -1
                continue
            at, number = self.skip(at)
        if text[at:end].strip(BLANKS) or len(self.frames) != 1:
            raise Doubt
        self.finish()

    def head(self, found: re.Match[str], number: int) -> None:
        """An instruction in the usual spelling; `number` is that of its line, -1 where that may hold more."""
        guard, head, operands = found.group(1, 2, 3)
        forms = (frame := self.frames[-1]).forms
        if guard is not None and forms[guard] != self.memo.forms.predicate:
            raise Doubt
        parts = parted(operands) if operands else []
        key = (head, *[forms[part] for part in parts])
        left = self.memo.cleared.get(key)
        if left is not Left.NOTHING:
            left = self.instruction_at(*found.span(), key, parts, left or self.memo.left(key))
        frame.passed = True
        if left is None:
            frame.first = -1
        elif number >= 0 or frame.first >= 0:
            named = others(f"{guard or ''} {operands or ''}", labels=self.unifies_labels)
            self.remember(number, found.end(), named, left, key)

    def statement(self, found: re.Match[str], number: int) -> bool:
        """Any other statement; can known lines follow?"""
        label, brace, place, inlined = found.group(4, 5, 6, 7)
        frame = self.frames[-1]
        if place is not None:
            frame.first = -1
            self.location(place, inlined)
            if number >= 0 and self.stretch is not None and not self.inlines:
                frame.lines.add(self.stretch.plain[number])
        elif label is not None:
            frame.first = -1
            self.label(label)
        elif brace == "{":
            self.enter(number)
            return False
        elif brace == "}":
            self.leave(found.end())
        else:
            self.piece(*found.span())
            return False
        return True

    # ── lines ───────────────────────────────────────────────────────────────────────────

    def skip(self, at: int) -> tuple[int, int]:
        """The place behind the known lines from here on, and the number of the line there; -1 where there is none."""
        text, end, frame = self.outline.plain.text, self.body.end - 1, self.frames[-1]
        stop = text.find("\n", at, end)
        if stop < 0 or frame.hides or text[at:stop].strip(BLANKS):
            return at, -1
        while (start := stop + 1) < end:
            if self.stretch is None or start >= self.stretch.starts[-1]:
                self.stretch = self.stretch_from(start)
                for each in self.frames:
                    each.first = -1
            if self.stretch is None or self.known is None:
                return at, -1
            number = self.stretch.number(start)
            first = self.stretch.first_unknown(number, self.known, frame.lines)
            frame.passed = frame.passed or first > number
            at = self.stretch.starts[first]
            if first < len(self.stretch.plain):
                return at, first
            stop = at - 1
        return at, -1

    def stretch_from(self, start: int) -> Stretch | None:
        """The lines from a place on; None where the names of the body are such that no line of another is right here."""
        scope = self.frames[0].scope
        if self.known is None and self.changes < MOST_CHANGES:
            self.changes += 1
            usual = scope.outer is not None and self.module_names.are_usual(scope.outer)
            names = names_in_sight(scope, entry=self.copy.entry, labels=self.unifies_labels) if usual else None
            self.known = self.memo.lines.of(names) if names is not None else None
        if self.known is not None:
            with suppress(TooLarge):
                return Stretch(
                    self.outline.plain.text, start, self.body.end - 1, scope.families.values(), labels=self.unifies_labels,
                    lists=self.lists,
                )  # fmt: skip
        self.known, self.changes = None, MOST_CHANGES
        return None

    def remember(self, number: int, at: int, named: list[str], left: Left, key: Key) -> None:
        """Remember the line of an instruction that is right, where it has a line for itself."""
        frame, stretch, known = self.frames[-1], self.stretch, self.known
        if left is Left.CONSTANTS:
            frame.first = -1
        else:
            frame.mentioned.update(named)
            frame.passes = frame.passes or left is Left.PARAMETER
        if number < 0 or stretch is None or known is None:
            return
        if at > stretch.starts[number + 1] or self.outline.plain.text[at : stretch.starts[number + 1]].strip(BLANKS):
            return
        if left is Left.CONSTANTS:
            if not named:
                known.add(known.exact, stretch.lines[number])
        elif named or left is Left.PARAMETER:
            frame.lines.add(stretch.plain[number])
        else:
            line = stretch.plain[number].rstrip(BLANKS)
            known.add(known.plain, line)
            if (shared := self.memo.shared.get(key)) is not None:
                known.share(line, shared[1])

    def remember_block(self, block: BlockCheck, at: int) -> None:
        """Remember a block that is right and leaves no trace around it, where it has its lines for itself."""
        around, stretch, known = self.frames[-1], self.stretch, self.known
        if around.hides or stretch is None or known is None or at > stretch.starts[-1]:
            return
        last = stretch.number(at - 1)
        if last - block.first < LONGEST_BLOCK and not self.outline.plain.text[at : stretch.starts[last + 1]].strip(BLANKS):
            own = not block.passes and all(name in block.scope.names or block.scope.family_of(name) for name in block.mentioned)
            (known.plain if own else around.lines).add(stretch.block(block.first, last))

    # ── instructions ────────────────────────────────────────────────────────────────────

    def instruction_at(
        self, start: int, end: int, key: tuple[object, ...], parts: Sequence[str], left: Left | None
    ) -> Left | None:
        """An instruction that is not known to be right as it stands; what is left to check of others like it."""
        forms = self.frames[-1].forms
        by_value = left is Left.CONSTANTS
        if by_value:
            key = (key, *[part.strip(BLANKS) for part in parts if forms[part] in self.memo.forms.constants])
            left = self.memo.left(key)
        if left is None:
            statements = self.outline.statements(start, end)
            if statements is None or len(statements) != 1 or not isinstance(statements[0], tree.Instruction):
                raise Doubt
            verdict = self.instruction(statements[0])
            if OTHER not in key and verdict.decoded is not None and verdict.decoded.of.executes:
                left = self.enter_key(key, verdict)
        elif left is Left.PARAMETER and (symbol := forms.parameters.get(parts[-1].strip(BLANKS))) is not None:
            self.loaded.append(symbol)
        return Left.CONSTANTS if by_value and left is Left.NOTHING else None if by_value else left

    def enter_key(self, key: tuple[object, ...], verdict: Recognition) -> Left:
        """Remember that instructions like this one are right."""
        left = Left.PARAMETER if verdict.decoded is not None and passing.loads_parameter(verdict.decoded) else Left.NOTHING
        if verdict.asks_for_value and not isinstance(key[0], tuple):
            left = Left.CONSTANTS
        self.memo.enter(key, left, verdict.needs)
        return left

    def instruction(self, node: tree.Instruction) -> Recognition:
        """Bind and check an instruction in full; it leaves no trace in the scope."""
        frame = self.frames[-1]
        scope = frame.scope.inner()
        scope.registers = []
        for name in {each.text for operand in node.operands for each in names_in(operand)} & frame.forms.wanted:
            if scope.declared(name) is None:
                scope.names[name] = Label(name)
        bound = Bound(node, scope, function=self.copy)
        expressions.operands(self.binder.checks, node, scope)
        verdict = check_instruction(bound, self.memo.known, self.report)
        check_parameters(self.copy, [bound], self.report)
        if self.report.diagnostics or bound.decoded is None:
            raise Doubt
        if not bound.decoded.of.executes:
            self.unexecuted.append(bound)
        if bound.calls:
            self.calls.append(Bound(node, frame.scope.inner(), bound.decoded, bound.places, function=self.copy))
            self.returned.update(id(each) for each in bound.results())
        elif passing.loads_parameter(bound.decoded) and isinstance(symbol := addressed(bound), Variable):
            self.loaded.append(symbol)
        frame.passed = True
        return verdict

    # ── other statements ────────────────────────────────────────────────────────────────

    def piece(self, start: int, end: int) -> None:
        """What is read and bound as in `bind`."""
        text = self.outline.plain.text[start:end].strip(BLANKS)
        family = FAMILY.fullmatch(text)
        spelling = family.group(1, 3) if family else (text,)
        statements = self.memo.declarations.get(spelling)
        if statements is None:
            statements = self.outline.statements(start, end)
            if statements is None:
                raise Doubt
            self.memo.keep(spelling, statements)
        elif family is not None:
            statements = [of_count(each, int(family[2])) for each in statements if isinstance(each, tree.Variable)]
        if (self.copy.entry, spelling) in self.declarations:
            self.declare(statements)
        else:
            self.other(spelling, statements)
        if self.report.diagnostics:
            raise Doubt

    def declare(self, statements: Iterable[tree.Statement]) -> None:
        """Declarations that are right in this module, but for their names."""
        for each in statements:
            if isinstance(each, tree.Variable):
                self.binder.checked_variables(each, self.scope_of_declaration(), self.copy)
                self.declared(names_of(each))
                self.note(each)

    def other(self, spelling: Spelling, statements: Iterable[tree.Statement]) -> None:
        """Statements that are checked in full."""
        for statement in statements:
            if isinstance(statement, tree.Instruction):
                self.instruction(statement)
            elif isinstance(statement, tree.Variable | tree.Prototype):
                self.binder.statement(statement, self.scope_of_declaration(), self.copy)
                self.declared(names_of(statement))
            elif isinstance(statement, tree.Targets) and statement.kind == "branchtargets":
                self.branch_targets(statement)
            elif isinstance(statement, tree.Directive) and statement.name == "pragma":
                self.binder.statement(statement, self.frames[-1].scope, self.copy)
            else:
                raise Doubt
            self.note(statement)
        if spelling in self.memo.declarations:
            self.declarations.add((self.copy.entry, spelling))

    def branch_targets(self, node: tree.Targets) -> None:
        """A list of labels; no known line mentions its name (`lists`), so that it hides nothing."""
        self.binder.statement(node, self.scope_of_declaration(), self.copy)
        self.binder.pending.clear()
        forms = self.frames[-1].forms
        if any(forms[name.text] != self.memo.forms.label for name in node.names):
            raise Doubt

    def note(self, statement: tree.Statement) -> None:
        """Note what a statement that is no usual instruction means for its block: can that still be known as a whole?"""
        frame = self.frames[-1]
        if isinstance(statement, tree.Variable):
            frame.passes = frame.passes or statement.space != Space.REG
            known = statement.space in (Space.REG, Space.PARAM)
        else:
            frame.passes = True
            known = isinstance(statement, tree.Instruction) and self.passes_names(statement)
        if not known:
            frame.first = -1

    def passes_names(self, node: tree.Instruction) -> bool:
        """Is the instruction, which was checked last, a call whose verdict does not depend on the values of constants?"""
        operands = (each.items if isinstance(each, tree.Group) else (each,) for each in node.operands)
        is_call = bool(self.calls) and self.calls[-1].node is node
        return is_call and all(isinstance(each, tree.Name) for each in chain.from_iterable(operands))

    def declared(self, names: Iterable[str]) -> None:
        """Other names are declared by now."""
        frame = self.frames[-1]
        frame.forget()
        if any(name.startswith(("%", "$")) for name in names):
            frame.hides = len(self.frames) > 1
            if not frame.hides:
                self.known = self.stretch = None

    def scope_of_declaration(self) -> NameScope:
        """The scope for names that only the code below sees (PTX 5.4.1)."""
        frame = self.frames[-1]
        if frame.passed:
            frame.forms.scope = frame.scope = frame.scope.split()
            frame.passed = False
        return frame.scope

    def location(self, place: str, inlined: str | None) -> None:
        """`.loc`: code can be inlined at a place that a `.loc` above names."""
        if self.inlines:
            lines = self.binder.lines
            if inlined is not None and (at := line(inlined)) not in lines and at not in self.lines_above:
                raise Doubt
            lines.add(line(place))

    def label(self, name: str) -> None:
        """A label whose name has no other meaning."""
        frame = self.frames[-1]
        if name == "WARP_SZ" or name.startswith("%") or frame.scope.declared(name) is not None:
            raise Doubt
        self.copy.labels[name] = frame.scope.declare(Label(name, 0))
        frame.labels.add(name)

    def enter(self, number: int) -> None:
        """The begin of a block."""
        if len(self.frames) == DEEPEST - 1:
            raise Doubt
        around = self.frames[-1]
        around.first = -1
        scope = around.scope.inner()
        self.frames.append(BlockCheck(scope, self.forms(scope), hides=around.hides, first=number))

    def leave(self, at: int) -> None:
        """The end of a block; labels that it wants and lacks are those of the block around it."""
        frame = self.frames.pop()
        if not self.frames:
            raise Doubt
        around = self.frames[-1]
        around.forms.wanted |= frame.forms.wanted - frame.labels
        around.passed = True
        if frame.first >= 0:
            self.remember_block(frame, at)

    def finish(self) -> None:
        """Are all labels there, and has every parameter that is loaded a value?"""
        frame, function = self.frames[0], self.copy
        if frame.forms.wanted - frame.labels:
            raise Doubt
        local = passing.own_parameters(function)
        results = {id(formal) for formal in function.signature.results}
        if local and any(id(each) in results or (id(each) in local and id(each) not in self.returned) for each in self.loaded):
            raise Doubt


def line(text: str) -> debugging.Line:
    """`1 20 5`"""
    file, number, column = map(int, text.split())
    return file, number, column
