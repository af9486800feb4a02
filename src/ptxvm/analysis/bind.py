"""Name binding: every name of a module to its declaration, and the checks of both (PTX 4.4, 5.4, 7, 11)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Protocol

from ptxvm.algebra.float_environment import usual_arithmetic
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.analysis import codes, debugging, expressions, linkage, signatures, tuning
from ptxvm.analysis.checks import Checks, Place, name_of
from ptxvm.analysis.declarations import count_of, declaration
from ptxvm.analysis.header import compile_for, header, is_binary, target_in_body
from ptxvm.analysis.initialisers import initialiser
from ptxvm.analysis.program import Bound, Function, Program
from ptxvm.analysis.report import Report
from ptxvm.analysis.scope import Family, NameScope
from ptxvm.analysis.spaces import DeclarationContext, bank_of, size_of
from ptxvm.analysis.symbols import Label, Prototype, Register, Signature, Symbol, Table, Variable
from ptxvm.diagnostics import did_you_mean
from ptxvm.isa.directives import OPAQUE, SYSTEM_FUNCTIONS
from ptxvm.isa.operand_types import Shape
from ptxvm.isa.targets import device_target
from ptxvm.syntax import tree
from ptxvm.syntax.source import Source

MOST_SPELLED = 1 << 16  # the most variables that `a<n>` declares

READING = threading.RLock()
"""Held while a part of a module is read that was left unread."""


class UnreadParts(Protocol):
    """The parts of a module that are not read."""

    def __call__(self, binder: Binder, function: Function, body: tree.Unread) -> tree.Block | tree.Unread:
        """The body of a function, or its place if it is checked and left unread."""
        ...

    def statement(self, node: tree.Alike) -> tree.Variable | tree.Function:
        """A statement that is like another."""
        ...

    def has_right_head(self, binder: Binder, node: tree.Alike) -> bool:
        """Is a statement right, but for its body, that is like others which are right?"""
        ...

    def knows(self, binder: Binder, node: tree.Alike) -> bool:
        """Is the body of a function right, as its head is, and can both stay unread?"""
        ...

    def leave(self, function: Function, body: tree.Unread) -> None:
        """Leave the body of a function that is known unread until its code is asked for."""
        ...


def bind(
    module: tree.Module, source: Source, report: Report, target: str | None = None, unread: UnreadParts | None = None
) -> Program:
    """The program of a module; what is wrong with its declarations goes to the report.

    `target` takes the place of that of the module; `unread` is needed where the module has unread parts.
    """
    program = Program(source, module)
    Binder(program, report, target, unread).module()
    return program


class WholeModule(Exception):  # noqa: N818 - the module is read as a whole, which reports what is wrong
    """A name that was something else above is a function: what was not read may be wrong."""


class Binder:
    """Walks a module in order, keeping the scope."""

    def __init__(self, program: Program, report: Report, target: str | None = None, unread: UnreadParts | None = None) -> None:
        self.program, self.checks, self.target = program, Checks(program, report), target
        self._unread = unread
        self.right_models: set[int] = set()
        self.models: dict[str, int] = {}  # of names that are made, which model their declarations are like
        self.made: dict[tuple[int, str], Variable] = {}
        self.pending: list[tuple[Table, tree.Targets, NameScope]] = []
        self.lines: set[debugging.Line] = set()
        self.section_labels: set[str] = set()

    def module(self) -> None:
        """Bind all directives and declarations of a module."""
        header(self.checks)
        if is_binary(self.checks):
            return
        if self.target is not None:
            compile_for(self.checks, device_target(self.target))
        for statement in self.program.tree.statements:
            match statement:
                case tree.Alike():
                    self.alike(statement)
                case tree.Variable() | tree.Function():
                    self.model(statement)
                case tree.Section():
                    debugging.section(self.checks, statement, self.section_labels)
                case tree.IntermediateSources():
                    debugging.intermediate_sources(self.checks, statement)
                case tree.Directive():
                    self.directive(statement)
        linkage.finish(self.checks)
        self.resolve_tables()

    def directive(self, node: tree.Directive, where: str = "") -> None:
        """`.alias`, `.file` or `.pragma`, at module level or in the body of an `entry` or `func`."""
        match node.name:
            case "alias":
                linkage.alias(self.checks, node)
            case "pragma" if where:
                tuning.pragma(self.checks, node, where)
            case "pragma":
                tuning.module_pragma(self.checks, node)
            case "target" if where:
                target_in_body(self.checks, node)
            case "file" if where:
                self.checks.error(
                    codes.BAD_FILE,
                    "'.file' stands at module level",
                    node,
                    ptxas="Parsing error near '.file': syntax error",
                )
            case "file":
                debugging.file(self.checks, node)
            case "loc_intermediate":
                debugging.intermediate_location(self.checks, node)

    # ── statements that are like others ─────────────────────────────────────────────────

    def model(self, node: tree.Variable | tree.Function) -> None:
        """A variable or function; those that are like one that is right, and declares a new name, are right, too.

        Constants and shared variables are no models, as together they must fit into their space, and neither are functions
        that must be defined below.
        """
        if isinstance(node, tree.Variable):
            may_be = node.space == Space.GLOBAL and all(self.is_new(each.name) for each in node.declarators)
        else:
            may_be = (node.body is not None or node.linkage is tree.Linkage.EXTERN) and self.is_new(node.name)
        before = len(self.checks.report.diagnostics)
        self.declared(node)
        if may_be and len(self.checks.report.diagnostics) == before:
            self.right_models.add(id(node))
            names = (each.name for each in node.declarators) if isinstance(node, tree.Variable) else (node.name,)
            self.models.update(dict.fromkeys(names, id(node)))

    def model_of(self, name: str) -> int | None:
        """Which model the declaration of a name of the module is like: those of one model mean the same in code."""
        symbol = self.program.scope.names[name]
        return id(symbol.model) if isinstance(symbol, tree.Alike) and not symbol.others else self.models.get(name)

    def declared(self, node: tree.Variable | tree.Function) -> None:
        """A variable or function of the module."""
        if isinstance(node, tree.Variable):
            self.module_variables(node)
        else:
            self.function(node)

    def is_new(self, name: str) -> bool:
        """Is a name of the module neither known above nor reserved?"""
        scope = self.program.scope
        return name not in scope.places and not scope.families and name not in SYSTEM_FUNCTIONS

    def alike(self, node: tree.Alike) -> None:
        """A statement like one above: of what is right, too, the name is all that is entered."""
        program, scope = self.program, self.program.scope
        is_right = self.right_models.issuperset(map(id, (node.model, *node.others))) and self.is_new(node.name)
        if not is_right or not self.unread_parts.has_right_head(self, node):
            self.declared(self.unread_parts.statement(node))
            return
        scope.places[node.name] = len(scope.places)
        scope.names[node.name] = node
        scope.make = self.make
        program.unmade.append(node)
        if node.body_start >= 0 and not self.unread_parts.knows(self, node):
            self.body(self.make(node))

    def make(self, node: tree.Alike) -> Symbol:
        """What a name of the module stands for, from its declaration, which is right."""
        program = self.program
        with READING, usual_arithmetic():
            known = program.scope.names[node.name]
            if not isinstance(known, tree.Alike):
                return known  # another thread was first
            statement = self.unread_parts.statement(node)
            made: Variable | Function
            if isinstance(statement, tree.Variable):
                made = variable(statement, statement.declarators[0], "", node.name)
                program.made_variables[node.name] = made
            else:
                made = program.made_functions[node.name] = self.head(statement)
                if isinstance(statement.body, tree.Unread):
                    made.defined, made.scope.seen = True, program.scope.places[node.name] + 1
                    self.unread_parts.leave(made, statement.body)
            program.scope.names[node.name] = made
            if not node.others:
                self.models[node.name] = id(node.model)
            return made

    @property
    def unread_parts(self) -> UnreadParts:
        """The reader of the parts of the module that were left unread."""
        if self._unread is None:
            raise ValueError("the module has parts that are not read")
        return self._unread

    # ── variables ───────────────────────────────────────────────────────────────────────

    def module_variables(self, node: tree.Variable) -> None:
        """`.global`, `.const`, `.shared` … of the module."""
        scope = self.program.scope
        declaration(self.checks, node, DeclarationContext.MODULE)
        if node.space == Space.REG:
            self.program.make_all()
            for declarator in node.declarators:
                scope.places.setdefault(declarator.name, len(scope.places))
            self.declare(node, scope)
            return
        for declarator in node.declarators:
            for variable in self.variables(node, declarator):
                linkage.reserved(self.checks, variable.name, name_of(declarator))
                self.enter_module(variable, name_of(declarator))
                initialiser(self.checks, variable, scope)

    def enter_module(self, variable: Variable, place: Place) -> None:
        """Keep the definition of a variable that is declared several times."""
        name, scope = variable.name, self.program.scope
        known = scope.own(name)
        if isinstance(known, Variable):
            if not linkage.variable(self.checks, variable, known, place):
                return
        elif known is not None:
            linkage.two_kinds(self.checks, name, place)
            return
        self.declare_in_module(variable)
        self.program.made_variables[name] = variable

    def declare_in_module(self, symbol: Symbol) -> None:
        """Enter a symbol into the module; code below can see it."""
        scope = self.program.scope
        scope.places.setdefault(symbol.name, len(scope.places))
        scope.declare(symbol)
        self.models.pop(symbol.name, None)

    def declare(self, node: tree.Variable, scope: NameScope, function: str = "") -> list[Register | Variable]:
        """The symbols of a declaration, entered into a block; families of registers are made as they are named."""
        made: list[Register | Variable] = []
        for declarator in node.declarators:
            place = name_of(declarator)
            if node.space in (Space.REG, Space.SREG) and declarator.count is not None:
                self.family(node, declarator, scope)
                continue
            for symbol in self.symbols(node, declarator, scope, function):
                self.enter(symbol, scope, place)
                made.append(symbol)
        return made

    def symbols(
        self, node: tree.Variable, declarator: tree.Declarator, scope: NameScope, function: str
    ) -> Sequence[Register | Variable]:
        """The symbols for one name of a declaration."""
        if node.space in (Space.REG, Space.SREG):
            return [scope.new_register(declarator.name, type_of(node), node.vector or 1)]
        return list(self.variables(node, declarator, function))

    def enter(self, symbol: Symbol, scope: NameScope, place: Place) -> None:
        """Enter a symbol into a block if its name is free; a later label of this name is then the duplicate."""
        known = scope.names.get(symbol.name)
        if not is_ahead(known) and (known is not None or scope.family_of(symbol.name) is not None):
            self.duplicate(symbol.name, place, scope)
        scope.declare(symbol)

    def family(self, node: tree.Variable, declarator: tree.Declarator, scope: NameScope) -> None:
        """`%r<100>`: its names are free in the block."""
        family = Family(declarator.name, type_of(node), count_of(declarator), node.vector or 1)
        if (taken := scope.taken(family)) is not None:
            self.duplicate(taken, name_of(declarator), scope)
        scope.declare_family(family)

    def variables(self, node: tree.Variable, declarator: tree.Declarator, function: str = "") -> Iterable[Variable]:
        """`a` declares `a`, and `a<3>` `a0 a1 a2`."""
        names = [declarator.name]
        if declarator.count is not None:
            names = [f"{declarator.name}{n}" for n in range(min(count_of(declarator), MOST_SPELLED))]
        for name in names:
            yield self.made.get((declarator.start, name)) or variable(node, declarator, function, name)

    # ── functions ───────────────────────────────────────────────────────────────────────

    def function(self, node: tree.Function) -> None:
        """An `.entry` or `.func`, declared or defined."""
        signatures.function_head(self.checks, node)
        function = self.head(node)
        tuning.tuning(self.checks, node.directives)
        self.enter_function(function)
        if node.body is None:
            return
        if function.entry:
            signatures.parameter_bytes(self.checks, function)
        self.body(function)

    def body(self, function: Function) -> None:
        """The body of a function, which is read, or checked and left unread."""
        node, scope, signature = function.node, function.scope, function.signature
        function.defined, function.lazy = True, None
        scope.seen = len(self.program.scope.places)
        if isinstance(node.body, tree.Unread):
            node.body = self.unread_parts(self, function, node.body)
        if isinstance(node.body, tree.Block):
            function.variables.extend(s for s in (*signature.results, *signature.parameters) if isinstance(s, Variable))
            self.block(node.body, scope, function)

    def head(self, node: tree.Function) -> Function:
        """A function without its code."""
        scope = self.program.scope.inner()
        scope.registers = []
        signature = self.signature(node, scope, node.name, defined=node.body is not None)
        signature.noreturn = any(d.name == "noreturn" for d in node.directives)
        function = Function(node.name, node.kind == "entry", node, signature, scope, node.linkage, program=self.program)
        function.directives = {d.name: d for d in node.directives}
        return function

    def enter_function(self, function: Function) -> None:
        """Keep the definition of a function that is also declared."""
        name, program = function.name, self.program
        linkage.reserved(self.checks, name, signatures.name_of(function.node))
        before = len(self.checks.report.diagnostics)
        if isinstance(program.scope.own(name), Variable):
            linkage.two_kinds(self.checks, name, signatures.name_of(function.node))
        known = program.made_function(name)
        if known is not None:
            signatures.redeclaration(self.checks, function, known)
            function.linkage = function.linkage or known.linkage
        if known is None or not known.defined:
            if self._unread is not None and len(self.checks.report.diagnostics) > before:
                raise WholeModule
            program.made_functions[name] = function
            self.declare_in_module(function)

    def signature(self, node: tree.Function | tree.Prototype, scope: NameScope, function: str, *, defined: bool) -> Signature:
        """The results and parameters; those of a definition are entered into the scope of its body."""
        results, parameters = (
            [symbol for formal in group for symbol in self.formal(formal, scope, function, defined=defined)]
            for group in (node.results, node.parameters)
        )
        variadic = bool(parameters) and isinstance(parameters[-1], Variable) and parameters[-1].is_unsized
        return Signature(tuple(results), tuple(parameters), variadic)

    def formal(self, node: tree.Variable, scope: NameScope, function: str, *, defined: bool) -> Sequence[Register | Variable]:
        """A parameter or result; a declaration without a body may repeat a name."""
        declarator = node.declarators[0]
        found = self.symbols(node, declarator, scope, function)
        for symbol in found:
            if defined:
                self.enter(symbol, scope, name_of(declarator))
        return found

    # ── bodies ──────────────────────────────────────────────────────────────────────────

    def block(
        self, block: tree.Block, scope: NameScope, function: Function, location: tree.Location | None = None
    ) -> tree.Location | None:
        """Bind the statements of a scope; its labels are known from the start.

        `location` is the last `.loc` above, which holds until there is another, whatever braces are between (PTX 11.5.4); the
        answer is the last one of all.
        """
        self.labels_ahead(block, scope)
        passed = False  # can an instruction above use a name that is declared here?
        used: int | None = None
        for statement in block.statements:
            if isinstance(statement, tree.Instruction):
                expressions.operands(self.checks, statement, scope)
                function.instructions.append(Bound(statement, scope, location=location, function=function, used_bytes=used))
                passed, used = True, None
            elif isinstance(statement, tree.Location):
                debugging.location(self.checks, statement, self.lines)
                location = statement
            elif isinstance(statement, tree.Label):
                scope = self.label(statement, scope, function)
            elif isinstance(statement, tree.Block):
                location = self.block(statement, scope.inner(), function, location)
                passed = True
            else:
                if passed and isinstance(statement, tree.Variable | tree.Prototype | tree.Targets):
                    scope, passed = scope.split(), False
                self.statement(statement, scope, function)
                used = tuning.used_bytes(statement) if isinstance(statement, tree.Directive) else used
        return location

    def statement(self, statement: tree.Statement, scope: NameScope, function: Function) -> None:
        """A declaration or directive in a body."""
        match statement:
            case tree.Variable():
                self.local_variables(statement, scope, function)
            case tree.Prototype():
                signatures.prototype(self.checks, statement)
                signature = self.signature(statement, NameScope(), statement.label, defined=False)
                signature.noreturn = any(d.name == "noreturn" for d in statement.directives)
                tuning.tuning(self.checks, statement.directives)
                self.labelled(Prototype(statement.label, signature), statement, scope)
            case tree.Targets():
                self.checks.needs(f".{statement.kind}", self.checks.word(statement, f".{statement.kind}"))
                table = Table(statement.label, statement.kind, tuple(n.text for n in statement.names))
                table.shape = Shape("table", detail=statement.kind)
                self.labelled(table, statement, scope)
                self.pending.append((table, statement, scope))
            case tree.Function():
                self.function(statement)
                scope.see(len(self.program.scope.places))
            case tree.Directive():
                self.directive(statement, "entry" if function.entry else "func")

    def labels_ahead(self, block: tree.Block, scope: NameScope) -> None:
        """Enter the labels of a block before its code, except names that have another meaning until then."""
        for node in block.statements:
            if isinstance(node, tree.Label) and (node.name in scope.names or not stands_already(scope, node.name)):
                if isinstance(scope.names.get(node.name), Label):
                    self.duplicate(node.name, node, scope)
                scope.names.setdefault(node.name, Label(node.name))

    def label(self, node: tree.Label, scope: NameScope, function: Function) -> NameScope:
        """Pass a label; one that hides an outer name is declared only now."""
        symbol = scope.names.get(node.name)
        if symbol is None:
            scope = scope.split()
            symbol = scope.declare(Label(node.name))
        if isinstance(symbol, Label):
            symbol.index = len(function.instructions)
            function.labels[node.name] = symbol
        else:
            self.duplicate(node.name, node, scope)
        return scope

    def labelled(self, symbol: Symbol, node: tree.Prototype | tree.Targets, scope: NameScope) -> None:
        """A list of targets or a prototype: its name is also a label."""
        if symbol.name in scope.names and not is_ahead(scope.names[symbol.name]):
            self.duplicate(symbol.name, node, scope)
        scope.declare(symbol)

    def local_variables(self, node: tree.Variable, scope: NameScope, function: Function) -> None:
        """Registers and variables of a function."""
        declaration(self.checks, node, DeclarationContext.BODY, in_kernel=function.entry)
        self.checked_variables(node, scope, function)

    def checked_variables(self, node: tree.Variable, scope: NameScope, function: Function) -> None:
        """The same, of a declaration that is known to be right but for its names."""
        made = [s for s in self.declare(node, scope, function.name) if isinstance(s, Variable)]
        for symbol in made:
            initialiser(self.checks, symbol, scope)
        function.variables.extend(made)
        if node.space == Space.PARAM and function.entry and self.program.version < (1, 4):  # PTX 7.1.1
            function.signature.parameters += tuple(made)
        elif node.space == Space.PARAM:  # passes arguments of calls: its address, unlike a parameter's, is not taken
            for symbol in made:
                symbol.shape = symbol.shape._replace(space=Space.PARAM_LOCAL)

    def resolve_tables(self) -> None:
        """Branch and call tables may name what comes after them."""
        for table, node, scope in self.pending:
            wanted: Callable[[Symbol], bool] = is_label if table.kind == "branchtargets" else is_function
            for name in node.names:
                symbol = scope.find(name.text)
                if symbol is not None and wanted(symbol):
                    table.targets.append(symbol)
                else:
                    self.no_target(name, table.kind, symbol, scope)

    def no_target(self, name: tree.Name, kind: str, symbol: Symbol, scope: NameScope) -> None:
        """Report a name in a table that is not one of its targets."""
        noun = "label" if kind == "branchtargets" else "function"
        if symbol is None:
            self.checks.error(
                codes.UNDECLARED,
                f"'{name.text}' is not declared",
                name,
                help=did_you_mean(name.text, scope.spellings()),
                ptxas=f"Unknown symbol '{name.text}'",
            )
            return
        ptxas = "branch target, label" if noun == "label" else "call target, device function"
        self.checks.error(codes.NO_TARGET, f"'{name.text}' is no {noun}", name, ptxas=f"Illegal {ptxas} expected")

    def duplicate(self, name: str, place: Place, scope: NameScope) -> None:
        """Report a second declaration."""
        is_label = isinstance(place, tree.Label | tree.Targets | tree.Prototype)
        node = getattr(scope.names.get(name), "node", None)
        family = scope.families.get(name[:-1]) if name.endswith("<") else scope.family_of(name)
        help = f"`{family.prefix}<{family.count}>` declares it already" if family is not None else ""
        if isinstance(node, tree.Node):
            help = f"the first declaration is on line {self.checks.line(node)}"
        self.checks.error(
            codes.DUPLICATE,
            f"'{name}n>' is declared twice" if name.endswith("<") else f"'{name}' is declared twice",
            place,
            help=help,
            ptxas=f"Duplicate definition of {'label' if is_label else 'variable'} '{name}'",
        )


def stands_already(scope: NameScope, name: str) -> bool:
    """Does the name have a meaning where a block begins, other than a label further down?"""
    symbol = scope.outer.peek(name) if scope.outer else None
    return symbol is not None and not is_ahead(symbol)


def is_ahead(symbol: object) -> bool:
    """Is it a label further down?"""
    return isinstance(symbol, Label) and symbol.index < 0


def is_label(symbol: object) -> bool:
    """Is it a label?"""
    return isinstance(symbol, Label)


def is_function(symbol: object) -> bool:
    """Is it a `.func`, or a kernel, which ptxas lets stand in a list?"""
    return isinstance(symbol, Function)


def type_of(node: tree.Variable) -> Type:
    """The type of an element; a texture, sampler or surface is 64 bits."""
    return Type.named["b64" if node.type in OPAQUE else node.type]


@cache
def space_of(written: str) -> Space:
    """The state space of a declaration; only a parameter is without one."""
    return Space(written.partition("[")[0] or Space.PARAM)


def variable(node: tree.Variable, declarator: tree.Declarator, function: str, name: str) -> Variable:
    """One variable in a state space."""
    type = type_of(node)
    opaque = node.type if node.type in OPAQUE else "texref" if node.space == Space.TEX else ""  # PTX 5.1.8
    space = space_of(node.space)
    dimensions = tuple([None if d is None else size_of(d) for d in declarator.dimensions])
    if dimensions and not dimensions[0]:
        sized = isinstance(declarator.initial, tree.Vector) and len(declarator.initial.items)
        dimensions = (sized or None, *dimensions[1:])
    vector = node.vector or 1
    return Variable(
        name=name,
        space=space.window,
        type=type,
        vector=vector,
        dimensions=dimensions,
        alignment=size_of(node.alignment) or type.bytes * vector,
        linkage=node.linkage,
        initial=declarator.initial,
        function=function,
        node=declarator,
        opaque=opaque,
        pointer=node.pointer,
        attributes=tuple([a.name for a in node.attributes]),
        bank=bank_of(node.space) if node.space[-1:] == "]" else 0,
        shape=Shape("variable", type, space=space, detail=node.type if node.type in OPAQUE else None),
    )
