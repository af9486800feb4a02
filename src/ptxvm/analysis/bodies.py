"""Memoised validation: a function body whose statements are all known to be right is not kept.

One compiled expression takes the text of a body apart.  An instruction is right where an earlier one with the same head and
the same forms of operands was: that one was read, bound and checked in full.  Everything else (declarations, calls, forms that
are new) is read and bound as in `bind`, and dropped.  At the first doubt the whole body is read in full, so that every
diagnostic comes from there.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Sequence
from functools import lru_cache

from ptxvm.algebra.float_environment import usual_arithmetic
from ptxvm.analysis import debugging, expressions, passing
from ptxvm.analysis.bind import Binder
from ptxvm.analysis.operand_forms import OTHER, Forms, OperandForms
from ptxvm.analysis.parameters import addressed, check_parameters
from ptxvm.analysis.program import Bound, Function, Program
from ptxvm.analysis.recognise import Recogniser, Verdict
from ptxvm.analysis.report import Report
from ptxvm.analysis.scope import Scope
from ptxvm.analysis.symbols import Label, Variable
from ptxvm.analysis.validate import MOST_TARGETS, check_instruction, recogniser
from ptxvm.syntax import tree
from ptxvm.syntax.cursor import DEEPEST
from ptxvm.syntax.outline import Outline
from ptxvm.syntax.statements import BLANKS, LABEL, STATEMENT, parted

OWN_VARIABLES = (1, 4)
"""The first version in which a `.param` variable in a kernel's body is no parameter of the kernel (PTX 7.1.1)."""

_reading = threading.RLock()


class SyntaxInBody(Exception):  # noqa: N818 - the module is read anew, which reports it
    """A body has an error of syntax: the module has no outline."""


class Doubt(Exception):  # noqa: N818 - the body is read in full, which reports what is wrong with it
    """Something in a body is wrong, or not known to be right."""


class Left(enum.IntEnum):
    """What is left to check of an instruction whose head and forms of operands are known to be right."""

    NOTHING = 1
    PARAMETER = 2
    """It loads a parameter: does a call give that a value (`passing`)?"""
    CONSTANTS = 3
    """The verdict depends on the values of its constants."""


class Memo:
    """What is known of the instructions of one version and target, for all modules of both."""

    def __init__(self, known: Recogniser) -> None:
        self.known, self.forms = known, Forms()
        self.cleared: dict[tuple[object, ...], Left] = {}

    @staticmethod
    @lru_cache(maxsize=MOST_TARGETS)
    def of(known: Recogniser) -> Memo:
        """The memo of a recogniser."""
        return Memo(known)


def recogniser_of(program: Program) -> Recogniser:
    """The recogniser for a program's version and target."""
    return recogniser(program.version, program.target, program.target_options)


class Bodies:
    """Checks the unread bodies of a module; gives those that need a report in full."""

    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        self.inlines = "inlined_at" in outline.plain.text
        self.declarations: dict[tuple[bool, str], list[tree.Variable]] = {}

    def __call__(self, binder: Binder, function: Function, body: tree.Unread) -> tree.Block | tree.Unread:
        """The body in full, or as it is where its function can do without until it runs."""
        if binder.program.version >= OWN_VARIABLES:
            check = BodyCheck(self, binder, function, body)
            try:
                check.run()
            except Doubt:
                pass
            else:
                binder.lines |= check.binder.lines
                function.lazy = Lazy(self.outline, function, body, check)
                return body
        found = self.outline.body(body)
        if found is None:
            raise SyntaxInBody
        return found


class Lazy:
    """A checked body that is read from the text when it is first asked for."""

    __slots__ = ("body", "calls", "function", "outline", "statics", "unexecuted")

    def __init__(self, outline: Outline, function: Function, body: tree.Unread, check: BodyCheck) -> None:
        self.outline, self.function, self.body = outline, function, body
        self.calls, self.unexecuted, self.statics = check.calls, check.unexecuted, check.copy.statics
        for each in self.unexecuted:
            each.function = function

    def read(self) -> None:
        """Read and bind the body, and recognise its instructions."""
        function, program = self.function, self.function.program
        with _reading, usual_arithmetic():
            if function.lazy is None or program is None:
                return
            block = self.outline.body(self.body)
            if block is None:
                raise SyntaxInBody
            binder = Binder(program, Report(self.outline.source))  # the report repeats nothing: the body was checked
            binder.made = {(v.node.start, v.name): v for v in self.statics if v.node is not None}
            copy = copy_of(function, function.scope)
            binder.block(block, function.scope, copy)
            known = recogniser_of(program)
            for bound in copy.instructions:
                bound.function = function
                check_instruction(bound, known, binder.checks.report)
            function.node.body = block
            function.take(copy.code)


def copy_of(function: Function, scope: Scope) -> Function:
    """The same function without its code."""
    node, signature = function.node, function.signature
    found = Function(function.name, function.entry, node, signature, scope, function.linkage, program=function.program)
    found.defined = True
    found.variables.extend(s for s in (*signature.results, *signature.parameters) if isinstance(s, Variable))
    return found


class Frame:
    """A block under check: the scope of its names, its labels, and whether an instruction stands above."""

    __slots__ = ("forms", "labels", "passed", "scope")

    def __init__(self, scope: Scope, forms: OperandForms) -> None:
        self.scope, self.forms, self.passed = scope, forms, False
        self.labels: set[str] = set()


class BodyCheck:
    """One walk over the text of a body; `Doubt` ends it where something may be wrong."""

    def __init__(self, bodies: Bodies, binder: Binder, function: Function, body: tree.Unread) -> None:
        self.outline, self.inlines, self.body = bodies.outline, bodies.inlines, body
        self.memo = Memo.of(recogniser_of(binder.program))
        self.report = Report(bodies.outline.source)
        self.binder = Binder(binder.program, self.report)
        self.lines_above = binder.lines
        above = function.scope
        scope = Scope(above.outer, dict(above.names), dict(above.families), [], dict(above.places), above.seen)
        self.copy = copy_of(function, scope)
        self.calls: list[Bound] = []
        self.unexecuted: list[Bound] = []
        self.returned: set[int] = set()
        self.loaded: list[Variable] = []
        self.declarations = bodies.declarations
        self.labels = frozenset(LABEL.findall(bodies.outline.plain.text, body.start, body.end))
        self.frames = [self.frame(scope)]

    def frame(self, scope: Scope) -> Frame:
        """A block whose names are in a scope."""
        return Frame(scope, OperandForms(scope, self.copy, self.memo.forms, self.labels))

    def run(self) -> None:
        """Check all statements, then what needs all of them."""
        text, at, end = self.outline.plain.text, self.body.start + 1, self.body.end - 1
        match, cleared, predicate = STATEMENT.match, self.memo.cleared, self.memo.forms.predicate
        frame = self.frames[0]
        forms = frame.forms
        while found := match(text, at, end):
            guard, head, operands, label, brace, place, inlined = found.groups()
            start, at = at, found.end()
            if head is not None:
                if guard is not None and forms[guard] != predicate:
                    raise Doubt
                parts = parted(operands) if operands else []
                key = (head, *[forms[part] for part in parts])
                left = cleared.get(key)
                if left is not Left.NOTHING:
                    self.instruction_at(start, at, key, parts, left)
                frame.passed = True
            elif place is not None:
                self.location(place, inlined)
            elif label is not None:
                self.label(label)
            else:
                if brace is None:
                    self.piece(start, at)
                elif brace == "{":
                    self.enter()
                else:
                    self.leave()
                frame = self.frames[-1]
                forms = frame.forms
        if text[at:end].strip(BLANKS) or len(self.frames) != 1:
            raise Doubt
        self.finish()

    # ── instructions ────────────────────────────────────────────────────────────────────

    def instruction_at(self, start: int, end: int, key: tuple[object, ...], parts: Sequence[str], left: Left | None) -> None:
        """An instruction that is not known to be right as it stands."""
        forms = self.frames[-1].forms
        if left is Left.CONSTANTS:
            key = (key, *[part.strip(BLANKS) for part in parts if forms[part] in self.memo.forms.integers])
            left = self.memo.cleared.get(key)
        if left is None:
            statements = self.outline.statements(start, end)
            if statements is None or len(statements) != 1 or not isinstance(statements[0], tree.Instruction):
                raise Doubt
            verdict = self.instruction(statements[0])
            if OTHER not in key and verdict.decoded is not None and verdict.decoded.of.executes:
                self.enter_key(key, verdict)
        elif left is Left.PARAMETER and (symbol := forms.parameters.get(parts[-1].strip(BLANKS))) is not None:
            self.loaded.append(symbol)

    def enter_key(self, key: tuple[object, ...], verdict: Verdict) -> None:
        """Remember that instructions like this one are right."""
        left = Left.PARAMETER if verdict.decoded is not None and passing.loads_parameter(verdict.decoded) else Left.NOTHING
        if verdict.asks_for_value and not isinstance(key[0], tuple):
            self.memo.cleared[key] = Left.CONSTANTS
        else:
            self.memo.cleared[key] = left

    def instruction(self, node: tree.Instruction) -> Verdict:
        """Bind and check an instruction in full; it leaves no trace in the scope."""
        frame = self.frames[-1]
        scope = frame.scope.inner()
        scope.registers = []
        for name in frame.forms.wanted:
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
        known = self.declarations.get((self.copy.entry, text))
        if known is not None:
            for each in known:
                self.binder.declare(each, self.scope_of_declaration(), self.copy.name)
            self.frames[-1].forms.forget()
        else:
            self.other(text, self.outline.statements(start, end))
        if self.report.diagnostics:
            raise Doubt

    def other(self, text: str, statements: list[tree.Statement] | None) -> None:
        """Statements that are read in full; those that declare registers are kept for their next occurrence."""
        if statements is None:
            raise Doubt
        for statement in statements:
            if isinstance(statement, tree.Instruction):
                self.instruction(statement)
            elif isinstance(statement, tree.Variable | tree.Prototype):
                self.binder.statement(statement, self.scope_of_declaration(), self.copy)
                self.frames[-1].forms.forget()
            elif isinstance(statement, tree.Directive) and statement.name == "pragma":
                self.binder.statement(statement, self.frames[-1].scope, self.copy)
            else:
                raise Doubt
        registers = [each for each in statements if isinstance(each, tree.Variable) and each.space == "reg"]
        if len(registers) == len(statements):
            self.declarations[self.copy.entry, text] = registers

    def scope_of_declaration(self) -> Scope:
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
        if name == "WARP_SZ" or frame.scope.declared(name) is not None:
            raise Doubt
        frame.scope.declare(Label(name, 0))
        frame.labels.add(name)

    def enter(self) -> None:
        """The begin of a block."""
        if len(self.frames) == DEEPEST - 1:
            raise Doubt
        self.frames.append(self.frame(self.frames[-1].scope.inner()))

    def leave(self) -> None:
        """The end of a block; labels that it wants and lacks are those of the block around it."""
        frame = self.frames.pop()
        if not self.frames:
            raise Doubt
        around = self.frames[-1]
        around.forms.wanted |= frame.forms.wanted - frame.labels
        around.passed = True

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
