"""Scopes and definitions: what a name at a place stands for, and where else it stands (PTX 4.4, 5.4).

Unlike `analysis.scope`, which binds a module that is right, this works on a module while it is written: a statement that
cannot be read is passed over, and a name may be declared below its use.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import field
from functools import lru_cache

from ptxvm.algebra.types import Type
from ptxvm.analysis import bind
from ptxvm.analysis.program import Function
from ptxvm.analysis.scope import DIGITS, LONGEST_NUMBER, NameScope, register_shape
from ptxvm.analysis.symbols import Label, Prototype, Register, Signature, Symbol, Table
from ptxvm.dataclass import dataclass
from ptxvm.isa.directives import OPAQUE
from ptxvm.isa.operand_types import Shape
from ptxvm.syntax import tree
from ptxvm.syntax.lexer import PlainText, Tokens
from ptxvm.syntax.parser import Parser
from ptxvm.syntax.source import Source
from ptxvm.syntax.statements import STATEMENT

MOST_BODIES = 4096
"""Bodies whose declarations are remembered: those of the documents that are open."""


class NameKind(enum.Enum):
    """What a definition defines, in words."""

    REGISTER = "register"
    VARIABLE = "variable"
    PARAMETER = "parameter"
    LABEL = "label"
    KERNEL = "kernel"
    FUNCTION = "function"
    TABLE = "list of targets"
    PROTOTYPE = "prototype"


@dataclass(frozen=True, eq=False)
class Definition:
    """A declared name: its span `start:end`, and the span of the code that can use it.

    `count` is the n of `%r<n>`, of which `name` is then the beginning of the names.  `declared_at` is the span of the whole
    declaration; `node` is its tree, whose own places mean nothing.
    """

    name: str
    kind: NameKind
    start: int
    end: int
    first: int
    last: int
    declared_at: tuple[int, int]
    node: tree.Node
    declarator: tree.Declarator | None = None
    count: int | None = None
    is_declaration: bool = False

    def has(self, name: str) -> bool:
        """Is it the definition of that name?"""
        if self.count is None:
            return name == self.name
        digits = name[len(self.name) :]
        numbered = name.startswith(self.name) and 0 < len(digits) <= LONGEST_NUMBER and digits.isdecimal()
        return numbered and name.rstrip(DIGITS) == self.name.rstrip(DIGITS) and int(digits) < self.count

    @property
    def type(self) -> Type | None:
        """The type of a register or of an element of a variable."""
        named = self.node.type if isinstance(self.node, tree.Variable) else ""
        return Type.named.get("b64" if named in OPAQUE else named)

    def symbol(self, name: str) -> Symbol:
        """What `analysis` binds the name to."""
        node = self.node
        match node:
            case tree.Variable() if self.kind is NameKind.REGISTER and self.type is not None:
                vector = node.vector or 1
                return Register(name, self.type, vector, shape=register_shape(self.type, vector))
            case tree.Variable() if self.declarator is not None and self.type is not None:
                return bind.variable(node, self.declarator, "", name)
            case tree.Label():
                return Label(name)
            case tree.Targets():
                return Table(name, node.kind, (), shape=Shape("table", detail=node.kind))
            case tree.Prototype():
                return Prototype(name, Signature())
            case tree.Function():
                return Function(name, node.kind == "entry", node, Signature(), NameScope())
        return None

    def moved(self, by: int) -> Definition:
        """The same, further down in the text."""
        first, last = self.declared_at
        return Definition(
            self.name, self.kind, self.start + by, self.end + by, self.first + by, self.last + by, (first + by, last + by),
            self.node, self.declarator, self.count, self.is_declaration,
        )  # fmt: skip


@dataclass
class NameTable:
    """The definitions of a function or of a module, by name, and those of families of registers."""

    every: list[Definition] = field(default_factory=list)
    by_name: dict[str, list[Definition]] = field(default_factory=dict)
    families: list[Definition] = field(default_factory=list)

    def add(self, definition: Definition) -> None:
        """Enter a definition."""
        self.every.append(definition)
        if definition.count is None:
            self.by_name.setdefault(definition.name, []).append(definition)
        else:
            self.families.append(definition)

    def candidates(self, name: str) -> Iterator[Definition]:
        """The definitions of a name, in any scope."""
        yield from self.by_name.get(name, ())
        if name[-1:] in DIGITS:
            yield from (family for family in self.families if family.has(name))

    def find(self, name: str, offset: int) -> Definition | None:
        """What a name stands for at a place: the definition in the innermost scope, and there the last one above."""
        seen = [each for each in self.candidates(name) if each.first <= offset < each.last or each.start <= offset <= each.end]
        return max(seen, key=lambda each: (each.first, -each.last), default=None)


# ── definitions of statements ───────────────────────────────────────────────────────────


def of_body(node: tree.Function, text: str, start: int) -> NameTable:
    """The definitions within a function: parameters, registers, variables, labels; `text` is that of its body at `start`."""
    found = NameTable()
    for each in of_parameters(node, start + len(text)):
        found.add(each)
    for each in of_text(text):
        found.add(each.moved(start))
    return found


def of_parameters(node: tree.Function, end: int) -> Iterator[Definition]:
    """The parameters of a function whose body ends at a place."""
    for formal in (*node.results, *node.parameters):
        kind = NameKind.REGISTER if formal.space == "reg" else NameKind.PARAMETER
        yield from of_variable(formal, kind, formal.start, end)


@lru_cache(maxsize=MOST_BODIES)
def of_text(text: str) -> tuple[Definition, ...]:
    """The definitions in the text of a body, with places in that text."""
    return tuple(_of_block(structure(text)))


def _of_block(block: tree.Block) -> Iterator[Definition]:
    work = [block]
    while work:
        block = work.pop()
        for statement in block.statements:
            if isinstance(statement, tree.Block):
                work.append(statement)
            else:
                yield from of_statement(statement, block.start, block.end)


def of_statement(statement: tree.Statement, first: int, last: int) -> Iterator[Definition]:
    """The definitions of a statement in a scope `first:last`; a label is known in all of it."""
    at = (statement.start, statement.end)
    match statement:
        case tree.Variable():
            kind = NameKind.REGISTER if statement.space in ("reg", "sreg") else NameKind.VARIABLE
            yield from of_variable(statement, kind, statement.end, last)
        case tree.Label():
            yield Definition(statement.name, NameKind.LABEL, at[0], at[0] + len(statement.name), first, last, at, statement)
        case tree.Prototype():
            name = statement.label
            yield Definition(name, NameKind.PROTOTYPE, at[0], at[0] + len(name), statement.end, last, at, statement)
        case tree.Targets():
            name = statement.label
            yield Definition(name, NameKind.TABLE, at[0], at[0] + len(name), statement.end, last, at, statement)
        case tree.Function() if statement.name:
            kind = NameKind.KERNEL if statement.kind == "entry" else NameKind.FUNCTION
            yield Definition(
                statement.name, kind, statement.name_start, statement.name_end, first, last, at, statement,
                is_declaration=statement.body is None,
            )  # fmt: skip


def of_variable(node: tree.Variable, kind: NameKind, first: int, last: int) -> Iterator[Definition]:
    """The definitions of a declaration that code in `first:last` can use."""
    for each in node.declarators:
        count = None
        if each.count is not None:
            count = each.count.value if isinstance(each.count, tree.Integer) else 0
        is_extern = node.linkage is tree.Linkage.EXTERN
        yield Definition(
            each.name, kind, each.start, each.start + len(each.name), first, last, (node.start, node.end), node, each, count,
            is_extern,
        )  # fmt: skip


# ── the structure of a body ─────────────────────────────────────────────────────────────


def structure(text: str) -> tree.Block:
    """The statements of a body but its instructions and places: declarations, labels, blocks.

    What cannot be read is passed over, by lines.
    """
    plain = PlainText(Source(text))
    text, source = plain.text, Source(text)
    open_blocks = [tree.Block([], start=0, end=len(text))]
    at, end = 1, max(1, len(text) - (1 if text.endswith("}") else 0))
    while at < end:
        found = STATEMENT.match(text, at, end)
        if found is None:
            line_end = text.find("\n", at, end)
            at = end if line_end < 0 else line_end + 1
            continue
        at = found.end()
        head, label, brace, place = found.group(2, 4, 5, 6)
        if label is not None:
            open_blocks[-1].statements.append(tree.Label(label, start=found.start(4), end=at))
        elif brace == "{":
            block = tree.Block([], start=found.start(5), end=len(text))
            open_blocks[-1].statements.append(block)
            open_blocks.append(block)
        elif brace == "}" and len(open_blocks) > 1:
            open_blocks.pop().end = at
        elif head is None and place is None and brace is None:
            parser = Parser(source, Tokens(source, plain, [found.span()]))
            open_blocks[-1].statements += [s for s in parser.statements() if not isinstance(s, tree.Instruction)]
    return open_blocks[0]
