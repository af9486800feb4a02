"""Binds the names of a module to their declarations, and checks the declarations (PTX 4.4, 5.4, 7, 11)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ptxvm.algebra.types import Type, pred
from ptxvm.analysis import directives
from ptxvm.analysis.program import Bound, Function, Program
from ptxvm.analysis.report import Report
from ptxvm.analysis.scope import NUMBERED, Family, Scope
from ptxvm.analysis.symbols import Label, Prototype, Register, Signature, Table, Variable
from ptxvm.isa.operand_types import Shape
from ptxvm.syntax import tree
from ptxvm.syntax.source import Source

OPAQUE = {"texref", "samplerref", "surfref"}
WARP_SIZE = 32


def bind(module: tree.Module, source: Source, report: Report) -> Program:
    """The program of a module; what is wrong with its declarations goes to the report."""
    program = Program(source, module)
    Binder(program, report).module()
    return program


class Binder:
    """Walks a module in order, keeping the scope."""

    def __init__(self, program: Program, report: Report) -> None:
        self.program, self.report = program, report
        self.pending: list[tuple[Table, Scope, Function]] = []

    def module(self) -> None:
        """Everything at module level."""
        directives.header(self.program, self.report)
        for statement in self.program.tree.statements:
            match statement:
                case tree.Variable():
                    self.declare_module_variables(statement)
                case tree.Function():
                    self.function(statement)
                case tree.Directive(name="alias"):
                    directives.alias(self.program, statement, self.report)
                case tree.Directive(name="file"):
                    directives.file(self.program, statement)
                case _:
                    directives.module_level(self.program, statement, self.report)
        directives.finish(self.program, self.report)

    # ── variables ───────────────────────────────────────────────────────────────────────

    def declare_module_variables(self, node: tree.Variable) -> None:
        """`.global`, `.const`, `.shared` … of the module."""
        directives.module_variable(self.program, node, self.report)
        for variable in self.symbols(node, self.program.scope):
            if isinstance(variable, Variable):
                self.enter_module_variable(variable)

    def enter_module_variable(self, variable: Variable) -> None:
        """Keep the definition of what may be declared several times."""
        known = self.program.scope.names.get(variable.name)
        if known is None or (isinstance(known, Variable) and known.linkage == "extern"):
            self.program.scope.declare(variable)
            self.program.variables[variable.name] = variable
        elif not (isinstance(known, Variable) and variable.linkage in ("extern", "weak", "common")):
            self.duplicate(variable.name, variable.node)

    def symbols(self, node: tree.Variable, scope: Scope, function: str = "") -> list[Register | Variable]:
        """The symbols of a declaration; a numbered family of registers is entered into the scope."""
        if node.space in ("reg", "sreg"):
            return self.registers(node, scope)
        return [self.variable(node, d, function, n) for d in node.declarators for n in self.spellings(d)]

    def registers(self, node: tree.Variable, scope: Scope) -> list[Register | Variable]:
        """`.reg .b32 %r<8>, %x;`"""
        type = Type.named[node.type]
        made: list[Register | Variable] = []
        for d in node.declarators:
            vector = node.vector or 1
            if d.count is not None:
                self.family(Family(d.name, type, size_of(d.count) or 0, vector), scope, d)
                continue
            if d.name in scope.names and not isinstance(scope.names[d.name], Label):
                self.duplicate(d.name, d)
            made.append(scope.declare(scope.new_register(d.name, type, vector)))
        return made

    def family(self, family: Family, scope: Scope, node: tree.Node) -> None:
        """`%r<100>`: two families of one prefix would share names."""
        if family.prefix in scope.families:
            self.duplicate(f"{family.prefix}0", node)
        scope.families[family.prefix] = family

    def spellings(self, d: tree.Declarator) -> Iterable[str]:
        """`a<3>` declares `a0 a1 a2`."""
        if d.count is None:
            return (d.name,)
        return (f"{d.name}{n}" for n in range(min(size_of(d.count) or 0, 1 << 16)))

    def variable(self, node: tree.Variable, d: tree.Declarator, function: str, name: str) -> Variable:
        """One variable in a state space."""
        opaque = node.type if node.type in OPAQUE else ""
        type = Type.named["b64" if opaque else node.type]
        space, _, bank = node.space.partition("[")
        dimensions = tuple(None if x is None else size_of(x) for x in d.dimensions)
        if dimensions and dimensions[0] is None and isinstance(d.initial, tree.Vector):
            dimensions = (len(d.initial.items), *dimensions[1:])
        vector = node.vector or 1
        alignment = size_of(node.alignment) if node.alignment is not None else None
        return Variable(
            name=name,
            space=space.partition("::")[0],
            type=type,
            vector=vector,
            dimensions=dimensions,
            alignment=alignment or type.bytes * vector,
            linkage=node.linkage,
            initial=d.initial,
            function=function,
            node=d,
            opaque=opaque,
            pointer=node.pointer,
            attributes=tuple(a.name for a in node.attributes),
            bank=int(bank.rstrip("]") or 0) if bank else 0,
            shape=Shape("variable", type, space=space, detail=opaque or None),
        )

    # ── functions ───────────────────────────────────────────────────────────────────────

    def function(self, node: tree.Function) -> None:
        """An `.entry` or `.func`, declared or defined."""
        scope = self.program.scope.inner()
        scope.registers = []
        known = self.program.functions.get(node.name)
        signature = self.signature(node.results, node.parameters, scope, node.name)
        signature.noreturn = any(d.name == "noreturn" for d in node.directives)
        function = Function(
            node.name, node.kind == "entry", node, signature, scope, node.linkage, program=self.program
        )  # fmt: skip
        function.directives = {d.name: d for d in node.directives}
        directives.function(self.program, function, known, self.report)
        if known is None or not known.defined:
            self.program.functions[node.name] = function
            self.program.scope.declare(function)
        if node.body is None:
            return
        function.defined = True
        for symbol in (*signature.results, *signature.parameters):
            if isinstance(symbol, Variable):
                function.variables.append(symbol)
        self.block(node.body, scope, function)
        self.resolve_tables()

    def signature(
        self, results: list[tree.Variable], parameters: list[tree.Variable], scope: Scope, name: str
    ) -> Signature:
        """The results and parameters, entered into the scope of the body."""
        made = [self.formals(group, scope, name) for group in (results, parameters)]
        variadic = bool(made[1]) and isinstance(made[1][-1], Variable) and made[1][-1].is_unsized
        return Signature(tuple(made[0]), tuple(made[1]), variadic)

    def formals(self, group: list[tree.Variable], scope: Scope, name: str) -> list[Register | Variable]:
        """One list of parameters."""
        found = []
        for node in group:
            for symbol in self.symbols(node, scope, name):
                if isinstance(symbol, Variable) and symbol.name != "_":
                    if symbol.name in scope.names:
                        self.duplicate(symbol.name, node)
                    scope.declare(symbol)
                found.append(symbol)
        return found

    def block(self, block: tree.Block, scope: Scope, function: Function) -> None:
        """The statements of a scope; labels are known before they are passed."""
        for statement in block.statements:
            if isinstance(statement, tree.Label):
                self.label(statement, scope, function)
        location: tree.Location | None = None
        for statement in block.statements:
            if isinstance(statement, tree.Instruction):
                function.instructions.append(Bound(statement, scope, location=location, function=function))
            elif isinstance(statement, tree.Location):
                location = statement
            else:
                self.statement(statement, scope, function)

    def statement(self, statement: tree.Statement, scope: Scope, function: Function) -> None:
        """Anything in a body but instructions."""
        match statement:
            case tree.Label():
                scope.names[statement.name].index = len(function.instructions)
            case tree.Variable():
                self.local_variables(statement, scope, function)
            case tree.Block():
                self.block(statement, scope.inner(), function)
            case tree.Prototype():
                inner = Scope(registers=[])
                signature = self.signature(statement.results, statement.parameters, inner, statement.label)
                signature.noreturn = any(d.name == "noreturn" for d in statement.directives)
                scope.declare(Prototype(statement.label, signature))
            case tree.Targets():
                table = Table(statement.label, statement.kind, tuple(n.text for n in statement.names))
                table.shape = Shape("table", detail=statement.kind)
                scope.declare(table)
                self.pending.append((table, scope, function))
            case _:
                directives.in_body(self.program, function, statement, self.report)

    def label(self, node: tree.Label, scope: Scope, function: Function) -> None:
        """Enter a label ahead of the code of its block."""
        if node.name in scope.names:
            self.duplicate(node.name, node)
        symbol = Label(node.name)
        scope.declare(symbol)
        function.labels[node.name] = symbol

    def local_variables(self, node: tree.Variable, scope: Scope, function: Function) -> None:
        """Registers and variables of a function."""
        directives.function_variable(self.program, function, node, self.report)
        for symbol in self.symbols(node, scope, function.name):
            if isinstance(symbol, Variable):
                if symbol.name in scope.names:
                    self.duplicate(symbol.name, node)
                if symbol.space == "param":  # an argument of a call, unlike the parameters of this function
                    symbol.shape = symbol.shape._replace(space="param::local")
                scope.declare(symbol)
                function.variables.append(symbol)

    def resolve_tables(self) -> None:
        """Branch and call tables may name what comes after them."""
        for table, scope, _ in self.pending:
            wanted: Callable[[Any], bool] = (
                (lambda s: isinstance(s, Label)) if table.kind == "branchtargets" else (lambda s: isinstance(s, Function))
            )
            for name in table.names:
                symbol = scope.find(name)
                if symbol is None or not wanted(symbol):
                    node = next(n for n in self.table_names(table.name, name))
                    self.report.error("P0201", f"'{name}' is not declared", node)
                else:
                    table.targets.append(symbol)
        self.pending.clear()

    def table_names(self, table: str, name: str) -> Iterable[tree.Node]:
        """Where a table names something."""
        for node in walk(self.program.tree.statements):
            if isinstance(node, tree.Targets) and node.label == table:
                yield from (n for n in node.names if n.text == name)

    def duplicate(self, name: str, node: tree.Node | None) -> None:
        """Report a second declaration."""
        self.report.error("P0202", f"'{name}' is declared twice", node, ptxas=f"Duplicate definition of variable '{name}'")


def walk(statements: Iterable[tree.Statement]) -> Iterable[tree.Statement]:
    """Every statement, those of inner blocks too."""
    for statement in statements:
        yield statement
        if isinstance(statement, tree.Block):
            yield from walk(statement.statements)
        elif isinstance(statement, tree.Function) and statement.body:
            yield from walk(statement.body.statements)


def size_of(node: tree.Operand | None) -> int | None:
    """A literal size, or WARP_SZ."""
    if isinstance(node, tree.Integer):
        return node.value
    return WARP_SIZE if isinstance(node, tree.Name) and node.text == "WARP_SZ" else None


__all__ = ["NUMBERED", "bind", "pred"]
