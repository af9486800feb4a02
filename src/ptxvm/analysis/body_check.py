"""The check of one function body: a walk over its text, in which statements that are known to be right are passed over.

One compiled expression takes the text of a body apart.  An instruction is right where an earlier one with the same head and
the same forms of operands was: that one was read, bound and checked in full.  Everything else (declarations, calls, forms that
are new) is read and bound as in `bind`, and dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from itertools import chain
from typing import Protocol

from ptxvm.algebra.state_space import Space
from ptxvm.analysis import debugging, expressions, passing
from ptxvm.analysis.bind import Binder, type_of
from ptxvm.analysis.body_lines import BlockCheck, BodyLines
from ptxvm.analysis.known_lines import ModuleNames, Normalisation, has_constants, names_of, of_count
from ptxvm.analysis.memo import Key, Left, Memo, Spelling
from ptxvm.analysis.names_ahead import ODD_STRING, Declared, labels_ahead
from ptxvm.analysis.operand_forms import OTHER, OperandForms
from ptxvm.analysis.parameters import addressed, check_parameters
from ptxvm.analysis.program import Bound, Function, Program
from ptxvm.analysis.recognise import Recognition
from ptxvm.analysis.report import Report
from ptxvm.analysis.scope import Family, NameScope
from ptxvm.analysis.shapes import names_in
from ptxvm.analysis.symbols import Label, Register, Variable
from ptxvm.analysis.validate import check_instruction
from ptxvm.isa.summary import calls
from ptxvm.syntax import tree
from ptxvm.syntax.cursor import DEEPEST
from ptxvm.syntax.outline import Outline
from ptxvm.syntax.statements import BLANKS, BLOCK_BEGIN, CODE_LABEL, FAMILY, FAMILY_STATEMENT, STATEMENT, find_labels, parted

FEW_NAMES = 64
"""The names around a block that are compared with those of its families."""

NO_LABELS: frozenset[str] = frozenset()
"""The labels of most small bodies, as one object."""


class Doubt(Exception):  # noqa: N818 - the body is read in full, which reports what is wrong with it
    """Something in a body is wrong, or not known to be right."""


def copy_of(function: Function, scope: NameScope) -> Function:
    """The same function without its code."""
    node, signature = function.node, function.signature
    found = Function(function.name, function.entry, node, signature, scope, function.linkage, program=function.program)
    found.defined = True
    found.variables.extend(s for s in (*signature.results, *signature.parameters) if isinstance(s, Variable))
    return found


def labels_in(text: str, body: tree.Unread) -> frozenset[str]:
    """The names of the labels of a body."""
    found = list_of_labels(text, body)
    return frozenset(found) if found else NO_LABELS


def list_of_labels(text: str, body: tree.Unread) -> Sequence[str]:
    """The labels of a body, in their order."""
    return [label[1] for label in find_labels(CODE_LABEL, text, body.start, body.end)]


class ModuleMemory(Protocol):
    """The knowledge of a module that checks of its bodies share (`bodies`)."""

    outline: Outline
    inlines: bool
    has_marks: bool
    declarations: set[tuple[bool, Spelling]]
    module_names: ModuleNames
    normalisation: Normalisation

    def memo(self, program: Program) -> Memo:
        """What is known for the version and target of the module."""

    def variable(self, function: Function, scope: NameScope, declared: Declared) -> Register | Variable | None:
        """What a declaration like this one declares in the body of a function, if it is right."""


class BodyCheck:
    """One walk over the text of a body; `Doubt` ends it where something may be wrong.

    `enters_families`: those with which it begins need not be looked at one by one.  `numbers_names`: nor need blocks that
    differ in the names that they declare.
    """

    enters_families = True
    numbers_names = True

    def __init__(self, bodies: ModuleMemory, binder: Binder, function: Function, body: tree.Unread) -> None:
        self.outline, self.inlines, self.body = bodies.outline, bodies.inlines, body
        self.memo = bodies.memo(binder.program)
        self.function, self.lines_above = function, binder.lines
        above = function.scope
        self.scope = scope = NameScope(above.outer, dict(above.names), dict(above.families), seen=above.seen)
        self.places: set[debugging.Line] = set()
        self.calls: list[Bound] = []
        self.unexecuted: list[Bound] = []
        self.returned: set[int] = set()
        self.loaded: list[Variable] = []
        self.declarations = bodies.declarations
        self.depends_on_constants = False
        text = bodies.outline.plain.text
        labels = list_of_labels(text, body)
        self.labels = frozenset(labels) if labels else NO_LABELS
        self.frames = [BlockCheck(scope, self.forms(scope))]
        usual = (
            not bodies.has_marks
            and bodies.module_names.are_usual(binder.program.scope)
            and not (text.find('"', body.start, body.end) >= 0 and ODD_STRING.search(text, body.start, body.end))
        )
        self.lines = BodyLines(
            text,
            body.inner_end,
            self.memo,
            self.frames,
            self.labels,
            function,
            variable=partial(bodies.variable, function, scope),
            normalisation=bodies.normalisation,
            usual=usual,
            numbers=self.numbers_names,
        )
        if labels and usual:
            self.see_labels(labels_ahead(text, body.start, body.end, labels))

    @cached_property
    def copy(self) -> Function:
        """The function for the names that its body declares."""
        return copy_of(self.function, self.scope)

    @cached_property
    def report(self) -> Report:
        """The report of what is wrong."""
        return Report(self.outline.source)

    @cached_property
    def binder(self) -> Binder:
        """Binds what is read in full."""
        program = self.function.program
        if program is None:
            raise ValueError(f"'{self.function.name}' has no program")
        return Binder(program, self.report)

    @property
    def statics(self) -> list[Variable]:
        """The variables that the body declares outside of the stack."""
        found = [*self.lines.statics, *(self.copy.statics if "copy" in self.__dict__ else ())]
        return sorted(found, key=lambda each: each.node.start if each.node is not None else 0)

    def see_labels(self, labels: Sequence[str]) -> None:
        """Enter the labels of the outermost block: no other name hides them."""
        frame = self.frames[0]
        new = frame.scope.undeclared(labels)
        found = [name for name in labels if name in new and can_be_label(name)]
        label = Label("", 0)
        self.lines.labels_ahead.update(found)
        self.copy.labels.update(dict.fromkeys(found, label))
        frame.scope.names.update(dict.fromkeys(found, label))
        self.expect_labels(frame)

    def expect_labels(self, frame: BlockCheck) -> None:
        """The labels ahead are there, as all statements are checked: their text cannot stand anywhere else."""
        frame.labels |= self.lines.labels_ahead

    def forms(self, scope: NameScope) -> OperandForms:
        """The forms of operands in a scope."""
        return OperandForms(scope, self.function, self.memo.forms, self.labels)

    def run(self) -> None:
        """Check all statements, then what needs all of them."""
        text, end, number = self.outline.plain.text, self.body.inner_end, -1
        at = self.first_families(self.body.start + 1) if self.enters_families else self.body.start + 1
        while found := STATEMENT.match(text, at, end):
            at = found.end()
            if found[2] is not None:
                self.head(found, number)
            elif not (self.statement(found, number) or BLOCK_BEGIN.match(text, at, end)):
                number = -1
                continue
            at, number = self.skip(at)
        if text[at:end].strip(BLANKS) or len(self.frames) != 1:
            raise Doubt
        self.finish()

    def first_families(self, at: int) -> int:
        """Enter the families with which a body begins and whose declarations are right in this module; where they end."""
        scope, text, entry = self.frames[0].scope, self.outline.plain.text, self.function.entry
        while found := FAMILY_STATEMENT.match(text, at, self.body.inner_end):
            spelling = found.group(1, 3)
            known = self.memo.declarations.get(spelling) if (entry, spelling) in self.declarations else None
            if known is None or not isinstance(node := known[0], tree.Variable):
                break
            family = Family(node.declarators[0].name, type_of(node), int(found[2]), node.vector or 1)
            if scope.taken(family) is not None:
                break
            scope.declare_family(family)
            at = found.end()
        return at

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
        if left is None or left is Left.CONSTANTS:
            self.depends_on_constants = self.depends_on_constants or has_constants(operands or "")
        if left is None:
            frame.first = -1
        elif number >= 0 or frame.first >= 0:
            self.remember(number, found, left, key)

    def statement(self, found: re.Match[str], number: int) -> bool:
        """Any other statement; can known lines follow?"""
        label, brace, place, inlined = found.group(4, 5, 6, 7)
        frame = self.frames[-1]
        if place is not None:
            frame.first = -1
            self.location(place, inlined)
            if not self.inlines:
                self.lines.remember_here(number, found.end())
        elif label is not None:
            if not self.lines.is_inner(label):
                frame.first = -1
            self.label(label)
            if label in self.lines.labels_ahead:
                self.lines.remember_declaring(number, found.end())
        elif brace == "{":
            self.enter(number)
            return False
        elif brace == "}":
            self.leave(found.end())
        else:
            return self.piece(*found.span(), number)
        return True

    # ── lines ───────────────────────────────────────────────────────────────────────────

    def skip(self, at: int) -> tuple[int, int]:
        """The place behind the known lines from here on, and the number of the line there; -1 where there is none."""
        return self.lines.skip(at, skips_declarations=True)

    def remember(self, number: int, found: re.Match[str], left: Left, key: Key) -> None:
        """Remember an instruction that is right."""
        self.lines.remember(number, found, left, key)

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
            if verdict.decoded is None or not verdict.decoded.of.executes or calls(statements[0].opcode):
                left = None
            elif OTHER not in key:
                left = self.enter_key(key, verdict, forms.parameters.get(parts[-1].strip(BLANKS)) if parts else None)
            elif not passing.loads_parameter(verdict.decoded):
                left = Left.CONSTANTS  # of which others may be wrong in operands of an unusual form
        elif left is Left.PARAMETER and (symbol := forms.parameters.get(parts[-1].strip(BLANKS))) is not None:
            self.loaded.append(symbol)
        return Left.CONSTANTS if by_value and left is Left.NOTHING else None if by_value else left

    def enter_key(self, key: tuple[object, ...], verdict: Recognition, last: Variable | None) -> Left:
        """Remember that instructions like this one are right; `last` is the `.param` variable that its last operand names."""
        loads = verdict.decoded is not None and passing.loads_parameter(verdict.decoded)
        is_own = any(last is each for each in self.function.signature.parameters)  # which has a value
        left = Left.PARAMETER if loads and not is_own else Left.NOTHING
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

    def piece(self, start: int, end: int, number: int) -> bool:
        """What is read and bound as in `bind`; can known lines follow?"""
        text = self.outline.plain.text[start:end].strip(BLANKS)
        family = FAMILY.fullmatch(text)
        spelling = family.group(1, 3) if family else (text,)
        statements = self.memo.declarations.get(spelling)
        if family and statements and (self.function.entry, spelling) in self.declarations:
            self.family(statements[0], int(family[2]))
            return False
        if statements is None:
            statements = self.outline.statements(start, end)
            if statements is None:
                raise Doubt
            self.memo.keep(spelling, statements)
        elif family is not None:
            statements = [of_count(each, int(family[2])) for each in statements if isinstance(each, tree.Variable)]
        is_ahead = len(self.frames) == 1 and len(statements) == 1 and self.is_ahead(statements[0])
        if is_ahead:
            self.reach(statements[0])
        elif (self.function.entry, spelling) in self.declarations:
            self.declare(statements)
        else:
            self.other(spelling, statements)
        if "report" in self.__dict__ and self.report.diagnostics:
            raise Doubt
        if is_ahead:
            self.lines.remember_declaring(number, end)
        return is_ahead or self.remember_pieces(statements, number, end)

    def remember_pieces(self, statements: Sequence[tree.Statement], number: int, end: int) -> bool:
        """Remember pragmas, or a call that passes names; can known lines follow?"""
        if statements and all(isinstance(each, tree.Directive) for each in statements):
            self.lines.remember_pragma(number, end)
            return True
        if len(statements) == 1 and isinstance(call := statements[0], tree.Instruction) and self.passes_names(call):
            self.lines.remember_here(number, end)
            return True
        return False

    def family(self, node: tree.Statement, count: int) -> None:
        """A family of registers whose declaration is right in this module, but for its name, with another count."""
        if isinstance(node, tree.Variable):
            family = Family(node.declarators[0].name, type_of(node), count, node.vector or 1)
            scope = self.scope_of_declaration()
            taken = scope.taken(family)
            scope.declare_family(family)
            self.declared(node)
            if taken is not None:
                raise Doubt

    def is_ahead(self, statement: tree.Statement) -> bool:
        """Does a statement declare names that are entered already?"""
        if self.lines.stretch is None or not isinstance(statement, tree.Variable | tree.Targets):
            return False
        return bool(names := names_of(statement)) and self.lines.stretch.ahead.issuperset(names)

    def reach(self, statement: tree.Statement) -> None:
        """Check a declaration whose names are entered already."""
        known = len(self.copy.variables)
        self.binder.statement(statement, self.frames[-1].scope.inner(), self.copy)
        del self.copy.variables[known:]
        if isinstance(statement, tree.Targets):
            self.all_labels(statement)
        self.note(statement)

    def declare(self, statements: Iterable[tree.Statement]) -> None:
        """Declarations that are right in this module, but for their names."""
        for each in statements:
            if isinstance(each, tree.Variable):
                self.binder.checked_variables(each, self.scope_of_declaration(), self.copy)
                self.declared(each)
                self.note(each)

    def other(self, spelling: Spelling, statements: Iterable[tree.Statement]) -> None:
        """Statements that are checked in full."""
        for statement in statements:
            if isinstance(statement, tree.Instruction):
                self.instruction(statement)
                self.depends_on_constants = self.depends_on_constants or not self.passes_names(statement)
            elif isinstance(statement, tree.Variable | tree.Prototype):
                self.binder.statement(statement, self.scope_of_declaration(), self.copy)
                self.declared(statement)
            elif isinstance(statement, tree.Targets) and statement.kind == "branchtargets":
                self.branch_targets(statement)
            elif isinstance(statement, tree.Directive) and statement.name == "pragma":
                self.binder.statement(statement, self.frames[-1].scope, self.copy)
            else:
                raise Doubt
            self.note(statement)
        if spelling in self.memo.declarations:
            self.declarations.add((self.function.entry, spelling))

    def branch_targets(self, node: tree.Targets) -> None:
        """A list of labels."""
        self.binder.statement(node, self.scope_of_declaration(), self.copy)
        self.all_labels(node)
        self.declared(node)

    def all_labels(self, node: tree.Targets) -> None:
        """Are all names of a list labels?"""
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
            is_call = isinstance(statement, tree.Instruction) and self.passes_names(statement)
            known = is_call or isinstance(statement, tree.Prototype)
        if not known:
            frame.first = -1

    def passes_names(self, node: tree.Instruction) -> bool:
        """Is the instruction, which was checked last, a call whose verdict does not depend on the values of constants?"""
        operands = (each.items if isinstance(each, tree.Group) else (each,) for each in node.operands)
        is_call = bool(self.calls) and self.calls[-1].node is node
        return is_call and all(isinstance(each, tree.Name) for each in chain.from_iterable(operands))

    def declared(self, node: tree.Variable | tree.Prototype | tree.Targets) -> None:
        """Other names are declared by now."""
        frame, names = self.frames[-1], names_of(node)
        frame.forget()
        if not frame.mentioned.isdisjoint(names):
            frame.first = -1  # above, they mean something else
        families = isinstance(node, tree.Variable) and any(each.count is not None for each in node.declarators)
        if len(self.frames) == 1:
            self.lines.declared(names, families=families)
        elif not frame.hides:
            frame.hides = not all(self.lines.is_own(name) for name in names) or (families and self.may_hide(names))

    def may_hide(self, prefixes: Sequence[str]) -> bool:
        """Can registers of families have another meaning in lines?"""
        scopes = [frame.scope for frame in self.frames[:-1]]
        if sum(len(each.names) + len(each.families) for each in scopes) > FEW_NAMES:
            return True
        around = [name for each in scopes for name in (*each.families, *each.names)]
        return any(prefix[0] == "%" or any(name.startswith(prefix) for name in around) for prefix in prefixes)

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
            lines = self.places
            if inlined is not None and (at := line(inlined)) not in lines and at not in self.lines_above:
                raise Doubt
            lines.add(line(place))

    def label(self, name: str) -> None:
        """A label whose name has no other meaning."""
        frame = self.frames[-1]
        if name in self.lines.labels_ahead and len(self.frames) == 1:
            frame.labels.add(name)
            return
        if not can_be_label(name) or frame.scope.declared(name) is not None:
            raise Doubt
        self.copy.labels[name] = frame.scope.declare(Label(name, 0))
        frame.labels.add(name)

    def enter(self, number: int) -> None:
        """The begin of a block."""
        if len(self.frames) == DEEPEST - 1:
            raise Doubt
        around = self.frames[-1]
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
            self.lines.remember_block(frame, at)
        else:
            around.first = -1

    def constants_matter(self) -> bool:
        """May a body with other constants be wrong?"""
        return self.depends_on_constants or self.lines.constants_matter()

    def finish(self) -> None:
        """Are all labels there, and has every parameter that is loaded a value?"""
        frame = self.frames[0]
        if frame.forms.wanted - frame.labels:
            raise Doubt
        if not self.loaded:
            return
        local = passing.own_parameters(self.copy)
        results = {id(formal) for formal in self.function.signature.results}
        if local and any(id(each) in results or (id(each) in local and id(each) not in self.returned) for each in self.loaded):
            raise Doubt


def can_be_label(name: str) -> bool:
    """May a label have the name, if that has no other meaning there?"""
    return name != "WARP_SZ" and name[0] != "%"


def line(text: str) -> debugging.Line:
    """`1 20 5`"""
    file, number, column = map(int, text.split())
    return file, number, column
