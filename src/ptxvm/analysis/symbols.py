"""Symbols: what names stand for once they are bound to their declarations."""

from __future__ import annotations

from dataclasses import field
from math import prod
from typing import Any, TypeAlias

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.dataclass import dataclass
from ptxvm.isa.operand_types import Shape
from ptxvm.syntax import tree

Symbol: TypeAlias = Any
"""A register, variable, label, table, prototype, signature or function; users test for the class."""

LONGEST = 48  # the most characters of a name in a message


@dataclass(eq=False, slots=True)
class Register:
    """A register variable of a function, or of a module; vectors have `count` elements of `type`."""

    name: str
    type: Type
    count: int = 1
    index: int = -1  # its place in the register file of the function or module
    of_module: bool = False
    shape: Shape = Shape("register")

    def renamed(self, name: str) -> Register:
        """One that is declared alike."""
        return Register(name, self.type, self.count, self.index, self.of_module, self.shape)


@dataclass(eq=False, slots=True)
class Variable:
    """A variable in an addressable state space, of the module or of a function.

    `dimensions` has None for an unsized first one; `initial` is the initialiser's tree; `function` is the function that
    declares it, or empty; `bank` that of the old `.const[n]`.
    """

    name: str
    space: Space  # global const shared local param tex
    type: Type
    vector: int = 1
    dimensions: tuple[int | None, ...] = ()
    alignment: int = 1
    linkage: tree.Linkage | None = None
    initial: tree.Operand | None = None
    function: str = ""
    node: tree.Node | None = None
    opaque: str = ""  # texref samplerref surfref
    pointer: tree.Pointer | None = None
    attributes: tuple[str, ...] = ()
    bank: int = 0
    shape: Shape = Shape("variable")

    @property
    def element_size(self) -> int:
        """The size of one element in bytes, vectors included."""
        return self.type.bytes * self.vector

    @property
    def size(self) -> int:
        """The size in bytes; 0 if the first dimension is open."""
        return self.element_size * prod(d or 0 for d in self.dimensions)

    @property
    def is_unsized(self) -> bool:
        """Is it `name[]`, sized by an initialiser, by another module, or at launch?"""
        return None in self.dimensions

    def renamed(self, name: str, *, function: str | None = None, node: tree.Node | None = None) -> Variable:
        """One that is declared alike, maybe in another function; `replace` would take ten times as long."""
        return Variable(
            name, self.space, self.type, self.vector, self.dimensions, self.alignment, self.linkage, self.initial,
            self.function if function is None else function, node or self.node, self.opaque, self.pointer, self.attributes,
            self.bank, self.shape,
        )  # fmt: skip


@dataclass(eq=False, slots=True)
class Label:
    """A place in the code of a function; `index` counts the function's instructions."""

    name: str
    index: int = -1
    shape: Shape = Shape("label")


@dataclass(eq=False, slots=True)
class Table:
    """A `.branchtargets` or `.calltargets` list."""

    name: str
    kind: str
    names: tuple[str, ...]
    targets: list[Symbol] = field(default_factory=list)  # Labels, or Functions
    shape: Shape = Shape("table")


@dataclass(eq=False, slots=True)
class Signature:
    """Results and parameters of a function or of a `.callprototype`; each is a Register or a `.param` Variable."""

    results: tuple[Register | Variable, ...] = ()
    parameters: tuple[Register | Variable, ...] = ()
    variadic: bool = False
    noreturn: bool = False


@dataclass(eq=False, slots=True)
class Prototype:
    """A `.callprototype`."""

    name: str
    signature: Signature
    shape: Shape = Shape("prototype")


@dataclass(eq=False, slots=True)
class SpecialRegister:
    """A predefined read-only register as used: `%tid.x`, `%laneid`."""

    name: str
    component: str | None
    type: Type
    shape: Shape = Shape("special")


def spelling(declared: Register | Variable) -> str:
    """How a declaration says the type: `.u32`, `.b8[16]`, `.v4.f32`; of an opaque variable `.texref`."""
    if isinstance(declared, Register):
        return f"{declared.type}"
    vector = f".v{declared.vector}" if declared.vector > 1 else ""
    held = f".{declared.opaque}" if declared.opaque else f"{declared.type}"
    return f"{vector}{held}" + "".join(f"[{size if size is not None else ''}]" for size in declared.dimensions)


def short(name: str) -> str:
    """The name of a parameter, without the mangled name of its kernel in front."""
    stem, mark, number = name.rpartition("_param_")
    return f"{mark[1:]}{number}" if mark and len(stem) > LONGEST else name
