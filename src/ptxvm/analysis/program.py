"""The bound program: what the engines run and the checkers read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field
from typing import Protocol

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.scope import NameScope
from ptxvm.analysis.symbols import Label, Register, Signature, Symbol, Variable
from ptxvm.dataclass import dataclass
from ptxvm.isa.effects import COMPUTES, Summary
from ptxvm.isa.model import Decoded
from ptxvm.isa.operand_types import Shape
from ptxvm.isa.special_registers import SpecialRegister
from ptxvm.isa.summary import calls, summary
from ptxvm.isa.targets import Target, Version
from ptxvm.syntax import tree
from ptxvm.syntax.source import Source
from ptxvm.syntax.tree import Alike

STACK = frozenset({Space.LOCAL, Space.PARAM})
"""The state spaces of variables on the stack of a thread."""


@dataclass(eq=False, slots=True)
class Bound:
    """One instruction of a function: its form, the places of its operands, and the scope of their names.

    `places` gives for each name of the syntax line the path to its node: the operand's number, then the number within a
    pair or address.  `used_bytes` is the mask of the pragma before it; only a load uses it (PTX 12.2).
    """

    node: tree.Instruction
    scope: NameScope
    decoded: Decoded | None = None
    places: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    location: tree.Location | None = None
    function: Function | None = None
    used_bytes: int | None = None
    reads_and_writes: tuple[int, int] | None = None  # from `flow`
    named: tuple[int, int] | None = None  # from `flow`
    special_registers: tuple[SpecialRegister, ...] | None = None  # from `flow`
    _operands: dict[str, tree.Operand] | None = None

    @property
    def operands(self) -> dict[str, tree.Operand]:
        """The operands by their names."""
        if self._operands is None:
            self._operands = {name: follow(self.node.operands, path) for name, path in self.places.items()}
        return self._operands

    @property
    def i(self) -> Decoded:
        """The decoded instruction, of a program without errors."""
        if self.decoded is None:
            raise ValueError(f"'{self.node.head}' was not recognised")
        return self.decoded

    @property
    def program(self) -> Program | None:
        """The program of its function."""
        return self.function.program if self.function is not None else None

    @property
    def line(self) -> int:
        """The line of the source; 0 where there is none."""
        program = self.program
        return 0 if program is None else program.source.location(self.node.start)[0]

    @property
    def text(self) -> str:
        """The instruction as it stands in the source, on one line; its head where there is none."""
        program = self.program
        return self.node.head if program is None else " ".join(program.source.text[self.node.start : self.node.end].split())

    @property
    def origin(self) -> str:
        """FILE:LINE of what it was compiled from, as `.loc` says; empty without one, and at line 0 (DWARF 4 6.2.2)."""
        program, location = self.program, self.location
        if program is None or location is None or not location.line:
            return ""
        return f"{program.files.get(location.file, '?')}:{location.line}"

    @property
    def summary(self) -> Summary:
        """The effects of the instruction besides computing its results; empty for an unrecognised one."""
        return COMPUTES if self.decoded is None else summary(self.decoded)

    @property
    def calls(self) -> bool:
        """Does it call a function?"""
        return calls(self.node.opcode)

    @property
    def written(self) -> frozenset[str]:
        """The names of the operands that it writes: its destinations, and those that take the results of a call."""
        names = self.i.destinations()
        return frozenset((*names, "ret")) if self.calls else frozenset(names)

    def guard(self) -> tuple[Register, bool] | None:
        """The guard predicate and whether it is negated."""
        guard = self.node.guard
        return None if guard is None else (self.scope.find(guard.name.text), guard.negated)

    def callee(self) -> Function | None:
        """The function that a call names; None for an indirect call, and for other instructions."""
        node = self.operands.get("func")
        symbol = self.scope.find(node.text) if isinstance(node, tree.Name) else None
        return symbol if isinstance(symbol, Function) else None

    def results(self) -> list[Symbol]:
        """The destinations of a call's results: registers or `.param` variables, None for `_` (PTX 9.7.12.5)."""
        operands = self.node.operands
        if not self.calls or not operands or not isinstance(operands[0], tree.Group):
            return []
        return [self.scope.find(item.text) for item in operands[0].items if isinstance(item, tree.Name)]


def follow(operands: list[tree.Operand], path: tuple[int, ...]) -> tree.Operand:
    """The node at a path: an operand, or one within a pair or address."""
    node = operands[path[0]]
    if len(path) > 1:
        if isinstance(node, tree.Pair):
            return (node.first, node.second)[path[1]]
        return node.items[path[1]]  # type: ignore[union-attr]
    return node


class LazyBody(Protocol):
    """A body that was checked and not kept."""

    statics: list[Variable]
    """The variables that it declares outside of the stack."""

    calls: list[Bound]
    """Its calls, which are checked against the signatures of all functions of the module."""

    unexecuted: list[Bound]
    """Its instructions that are checked and not executed."""

    labels: frozenset[str]
    """The names of its labels."""

    def read(self) -> None:
        """Give its function the body."""
        ...


@dataclass(eq=False, slots=True)
class Body:
    """The declarations and instructions of the body of a function."""

    instructions: list[Bound] = field(default_factory=list)
    labels: dict[str, Label] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Function:
    """An `.entry` or `.func`; without a body `instructions` is empty and `defined` is false.

    A `lazy` body is read from the text when it is first asked for.
    """

    name: str
    entry: bool
    node: tree.Function
    signature: Signature
    scope: NameScope
    linkage: tree.Linkage | None = None
    defined: bool = False
    directives: dict[str, tree.Directive] = field(default_factory=dict)
    shape: Shape = Shape("function")
    program: Program | None = None
    lazy: LazyBody | None = None
    _code: Body | None = None

    @property
    def code(self) -> Body:
        """The code; a lazy body is read."""
        self.read()
        if self._code is None:
            self._code = Body()
        return self._code

    def read(self) -> None:
        """Read a lazy body."""
        if self.lazy is not None:
            self.lazy.read()

    def take(self, code: Body) -> None:
        """Have the code of the lazy body."""
        self._code, self.lazy = code, None

    @property
    def instructions(self) -> list[Bound]:
        """The instructions in their order."""
        return self.code.instructions

    @property
    def labels(self) -> dict[str, Label]:
        """The labels by name."""
        return self.code.labels

    @property
    def label_names(self) -> Collection[str]:
        """The names of the labels; a lazy body stays unread."""
        return self.labels.keys() if self.lazy is None else self.lazy.labels

    @property
    def variables(self) -> list[Variable]:
        """The parameters, results and variables in memory."""
        return self.code.variables

    @property
    def statics(self) -> list[Variable]:
        """The variables in memory outside of the stack; a lazy body stays unread."""
        if self.lazy is not None:
            return self.lazy.statics
        return [variable for variable in self.variables if variable.space not in STACK]

    @property
    def body(self) -> tree.Block | None:
        """The statements; a lazy body is read."""
        self.read()
        body = self.node.body
        return body if isinstance(body, tree.Block) else None

    @property
    def registers(self) -> list[Register]:
        """The registers that the code names, each at its index."""
        self.read()
        return self.scope.registers


@dataclass(eq=False, slots=True)
class Program:
    """A bound module.

    `made_variables` and `made_functions` are those that are read, by name; `unmade` has declarations that are right and read
    when they are asked for.  `aliases` maps an alias to the name of its function; `files` the numbers of `.file` to names;
    `unexecuted` has the instructions that are checked and not executed; `right_declarations` the sorts of declarations that
    are right.  `extended_shared` says that kernels may declare all the shared memory that their device has.
    """

    source: Source
    tree: tree.Module
    version: Version = (1, 0)
    target: Target = Target(0)
    target_options: tuple[str, ...] = ()
    address_size: int = 32
    made_variables: dict[str, Variable] = field(default_factory=dict)
    made_functions: dict[str, Function] = field(default_factory=dict)
    unmade: list[Alike] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    files: dict[int, str] = field(default_factory=dict)
    scope: NameScope = field(default_factory=lambda: NameScope(of_module=True))
    unexecuted: list[Bound] = field(default_factory=list)
    extended_shared: bool = False
    right_declarations: set[tuple[object, ...]] = field(default_factory=set)  # from `declarations`

    @property
    def variables(self) -> dict[str, Variable]:
        """The variables of the module by name, in the order of their declarations."""
        self.make_all()
        return self.made_variables

    @property
    def functions(self) -> dict[str, Function]:
        """The functions of the module by name, in the order of their declarations."""
        self.make_all()
        return self.made_functions

    def make_all(self) -> None:
        """Make all symbols of the module."""
        if self.unmade:
            for each in self.unmade:
                self.scope.own(each.name)
            place = self.scope.places.__getitem__
            self.made_variables = {name: self.made_variables[name] for name in sorted(self.made_variables, key=place)}
            self.made_functions = {name: self.made_functions[name] for name in sorted(self.made_functions, key=place)}
            self.unmade = []

    def made_function(self, name: str) -> Function | None:
        """The function of that name, if there is one; it is made."""
        self.scope.own(name)
        return self.made_functions.get(name)

    @property
    def kernels(self) -> list[Function]:
        """The entries that have a body."""
        return [f for f in self.functions.values() if f.entry and f.defined]

    def function(self, name: str) -> Function | None:
        """The function of that name; an alias gives its target."""
        return self.made_function(self.aliases.get(name, name))
