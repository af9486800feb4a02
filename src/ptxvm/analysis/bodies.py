"""Memoised validation: a function body whose statements are all known to be right is not kept.

`body_check` walks over the text of a body.  At the first doubt the whole body is read in full, so that every diagnostic comes
from there.
"""

from __future__ import annotations

from ptxvm.algebra.float_environment import usual_arithmetic
from ptxvm.analysis.bind import READING, Binder
from ptxvm.analysis.body_check import BodyCheck, Doubt, copy_of, labels_in
from ptxvm.analysis.collector import NoCollection
from ptxvm.analysis.known_functions import KnownFunctions, Likeness
from ptxvm.analysis.known_lines import ModuleNames, Normalisation
from ptxvm.analysis.memo import Memo, Spelling
from ptxvm.analysis.names_ahead import MARKS, Declared
from ptxvm.analysis.program import Bound, Function, Program
from ptxvm.analysis.recognise import Recogniser
from ptxvm.analysis.report import Report
from ptxvm.analysis.scope import NameScope
from ptxvm.analysis.signatures import most_parameter_bytes
from ptxvm.analysis.symbols import Register, Signature, Variable
from ptxvm.analysis.validate import check_instruction, has_wrong_calls, recogniser
from ptxvm.isa.directives import PARAMETER_BYTES
from ptxvm.syntax import tree
from ptxvm.syntax.alike import forms_of_parameters, names_in_head
from ptxvm.syntax.outline import Outline

OWN_VARIABLES = (1, 4)
"""The first version in which a `.param` variable in a kernel's body is no parameter of the kernel (PTX 7.1.1)."""


class SyntaxInBody(Exception):  # noqa: N818 - the module is read anew, which reports it
    """A body has an error of syntax: the module has no outline."""


def recogniser_of(program: Program) -> Recogniser:
    """The recogniser for a program's version and target."""
    return recogniser(program.version, program.target, program.target_options)


class Bodies:
    """Checks the unread bodies of a module; gives those that need a report in full."""

    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        self.inlines = "inlined_at" in outline.plain.text
        self.declarations: set[tuple[bool, Spelling]] = set()
        self.variables: dict[tuple[bool, object], Register | Variable | None] = {}  # of a sort, in a kernel or function
        self.module_names = ModuleNames()
        self.has_marks = any(mark in outline.plain.text for mark in MARKS)
        self.functions = KnownFunctions()
        self.normalisation = Normalisation()
        self._memo: Memo | None = None
        self._asked: tuple[int, Likeness | None] = (-1, None)  # the function that was asked for last, by its place
        self._doubtful = -1  # the place of the function whose body was doubtful last
        self._heads: dict[int, list[str]] = {}  # the names in the heads of models
        self._parameters: dict[str, Variable] = {}  # of kernels like which others have some, by their form
        self._taken_apart: set[int] = set()  # these kernels
        self._made_up: tuple[int, list[tuple[Variable, str]]] = (-1, [])  # the latest answer, by the place of its kernel

    def __call__(self, binder: Binder, function: Function, body: tree.Unread) -> tree.Block | tree.Unread:
        """The body in full, or as it is where its function can do without until it runs."""
        if (lazy := self.lazy(binder, function, body)) is not None:
            function.lazy = lazy
            return body
        found = self.outline.body(body)
        if found is None:
            raise SyntaxInBody
        return found

    def statement(self, node: tree.Alike) -> tree.Variable | tree.Function:
        """A statement that is like another."""
        return self.outline.statement(node)

    def has_right_head(self, binder: Binder, node: tree.Alike) -> bool:
        """Is a statement right, but for its body, that is like others which are right: do its parameters take few bytes?"""
        for other in node.others:
            if id(other) not in self._taken_apart:
                self._taken_apart.add(id(other))
                self._parameters |= self.parameters_of(binder.program.made_functions[other.name])
        if not node.others:
            return True
        bound = sum([each.size + each.alignment for each, _ in self.parameters(node)])
        return bound <= min(most_parameter_bytes(binder.program.version), PARAMETER_BYTES[-1][1])

    def parameters_of(self, kernel: Function) -> dict[str, Variable]:
        """The parameters of a kernel that was parsed, by their form."""
        forms = forms_of_parameters(self.outline.plain.text, kernel.node.start)
        return {forms[each.name]: each for each in kernel.signature.parameters if isinstance(each, Variable)}

    def parameters(self, node: tree.Alike) -> list[tuple[Variable, str]]:
        """What the parameters of a kernel are like, and their names, where they are like those of several others."""
        start, found = self._made_up
        if start != node.start:
            forms, known = forms_of_parameters(self.outline.plain.text, node.start), self._parameters
            found = [(known[form], name) for name, form in forms.items()]
            self._made_up = node.start, found
        return found

    def knows(self, binder: Binder, node: tree.Alike) -> bool:
        """Is the body of a function right, as that of one with a head like its own is, or by itself?"""
        if binder.program.version < OWN_VARIABLES:
            return False
        body = tree.Unread(start=node.body_start, end=node.end)
        found = self.likeness(binder, node, body)
        self._asked = node.start, found
        return (found is not None and self.functions.has(found)) or self.is_right(binder, node, body)

    def is_right(self, binder: Binder, node: tree.Alike, body: tree.Unread) -> bool:
        """Is the body of a function right that is like one above but for names, and calls and declares nothing for others?"""
        function = None if self.outline.plain.text.find("call", body.start, body.end) >= 0 else self.stand_in(binder, node)
        if function is None:
            return False
        check = BodyCheck(self, binder, function, body)
        try:
            check.run()
        except Doubt:
            self._doubtful = node.start
            return False
        if check.calls or check.unexecuted or check.statics:
            return False
        self.keep_right(binder, check, self._asked[1])
        return True

    def stand_in(self, binder: Binder, node: tree.Alike) -> Function | None:
        """The function that a statement declares, by the head of its model with other names; None where that has registers."""
        program, model, text = binder.program, node.model, self.outline.plain.text
        function = program.function(model.name) if isinstance(model, tree.Function) else None
        groups = () if function is None else (function.signature.results, function.signature.parameters)
        if function is None or not all(isinstance(each, Variable) for group in groups for each in group):
            return None
        results: tuple[Variable, ...] = ()
        if node.others:
            parameters = tuple([each.renamed(name, function=node.name) for each, name in self.parameters(node)])
        else:
            names = self._heads.get(id(model))
            if names is None:
                head_end = model.end if function.node.body is None else function.node.body.start
                names = self._heads[id(model)] = names_in_head(text, model.start, head_end)
            own = dict(zip(names, names_in_head(text, node.start, node.body_start), strict=True))
            results, parameters = (
                tuple([each.renamed(own[each.name], function=node.name) for each in group if isinstance(each, Variable)])
                for group in groups
            )
        scope = program.scope.inner()
        scope.registers, scope.seen = [], program.scope.places[node.name] + 1
        for each in (*results, *parameters):
            scope.declare(each)
        signature = Signature(results, parameters, function.signature.variadic, function.signature.noreturn)
        return Function(
            node.name, function.entry, function.node, signature, scope, function.linkage,
            defined=True, directives=function.directives, program=program,
        )  # fmt: skip

    def leave(self, function: Function, body: tree.Unread) -> None:
        """Leave a body unread that is known to be right."""
        function.lazy = Lazy(self.outline, function, body, labels_in(self.outline.plain.text, body))

    def variable(self, function: Function, scope: NameScope, declared: Declared) -> Register | Variable | None:
        """What a declaration like this one declares in the body of a function, if it is right."""
        sort = function.entry, declared.kind
        if sort not in self.variables:
            self.variables[sort] = self._variable(function, scope.inner(), declared)
        return self.variables[sort]

    def _variable(self, function: Function, scope: NameScope, declared: Declared) -> Register | Variable | None:
        statements = self.outline.statements(declared.start, declared.end + 1)
        if statements is None or len(statements) != 1 or not isinstance(node := statements[0], tree.Variable):
            return None
        if (program := function.program) is None:
            return None
        scope.registers = []
        report = Report(self.outline.source)
        Binder(program, report).local_variables(node, scope, copy_of(function, scope))
        return None if report.diagnostics else scope.names[node.declarators[0].name]

    def memo(self, program: Program) -> Memo:
        """What is known for the version and target of the module."""
        if self._memo is None:
            self._memo = Memo.of(recogniser_of(program))
        return self._memo

    def lazy(self, binder: Binder, function: Function, body: tree.Unread) -> Lazy | None:
        """The place of a body that is right; None for one that may not be."""
        if binder.program.version < OWN_VARIABLES:
            return None
        node = function.node
        if self._doubtful == node.start:
            return None
        likeness = self._asked[1] if self._asked[0] == node.start else self.likeness(binder, node, body)
        check = BodyCheck(self, binder, function, body)
        try:
            check.run()
        except Doubt:
            return None
        self.keep_right(binder, check, likeness)
        return Lazy(self.outline, function, body, check.labels, check)

    def keep_right(self, binder: Binder, check: BodyCheck, likeness: Likeness | None) -> None:
        """Remember a body that is right."""
        binder.lines |= check.places
        if likeness is not None and not (check.unexecuted or check.statics or has_wrong_calls(check.calls, check.report)):
            self.functions.add(likeness, whatever_constants=not check.constants_matter())

    def likeness(self, binder: Binder, node: tree.Function | tree.Alike, body: tree.Unread) -> Likeness | None:
        """What a function has in common with those like it; None where more than its text counts."""
        module = binder.program.scope
        if self.inlines or self.has_marks or not self.module_names.are_usual(module):
            return None
        if isinstance(node, tree.Alike) and node.others:  # such heads differ in more than names
            return None
        return self.functions.likeness(self.outline.plain.text, node, body, module, binder.model_of)


class Lazy:
    """A checked body that is read from the text when it is first asked for."""

    __slots__ = ("body", "calls", "function", "labels", "outline", "statics", "unexecuted")

    def __init__(
        self, outline: Outline, function: Function, body: tree.Unread, labels: frozenset[str], check: BodyCheck | None = None
    ) -> None:
        self.outline, self.function, self.body, self.labels = outline, function, body, labels
        self.calls: list[Bound] = check.calls if check else []
        self.unexecuted: list[Bound] = check.unexecuted if check else []
        self.statics: list[Variable] = check.statics if check else []
        for each in self.unexecuted:
            each.function = function

    def read(self) -> None:
        """Read and bind the body, and recognise its instructions."""
        function, program = self.function, self.function.program
        with READING, usual_arithmetic(), NoCollection():
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
