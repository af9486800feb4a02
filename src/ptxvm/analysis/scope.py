"""Scopes: the symbol that a name stands for (PTX 4.4, 7.1)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from dataclasses import field
from functools import cache

from ptxvm.algebra.types import Type
from ptxvm.analysis.symbols import Label, Register, SpecialRegister, Symbol
from ptxvm.dataclass import dataclass
from ptxvm.isa import special_registers
from ptxvm.isa.operand_types import Shape
from ptxvm.syntax import tree

DIGITS = "0123456789"
LONGEST_NUMBER = 18

NO_PLACES: dict[str, int] = {}
"""Only the names of a module have places: in all other scopes this stands for them."""


@dataclass(slots=True)
class Family:
    """`%r<100>`: the registers `%r0` to `%r99`, made when they are first named; `%r01` is `%r1`.

    `part` is that of the block in which it is declared.
    """

    prefix: str
    type: Type
    count: int
    vector: int = 1
    used: bool = False
    registers: dict[int, Register] = field(default_factory=dict)
    part: int = 0

    def has(self, digits: str) -> bool:
        """Does the family have a register of this number?"""
        return 0 < len(digits) <= LONGEST_NUMBER and digits.isdecimal() and int(digits) < self.count


@dataclass(slots=True)
class NameScope:
    """The names of a block, and the block around it.

    A block has parts: a declaration behind instructions begins a new one, and those above do not see it (PTX 5.4.1).  All parts
    share `names`, `families` and `parts`, which numbers the parts in which names are declared, other than the first.
    `registers` belongs to the whole function, or to the module: every register that is used, in the order of its first use.
    `places` numbers the names of a module by their first declaration.  `seen` is the number of these names above the function:
    later names of the module are out of sight.  `found` has what names were found to mean here.  In a module, `names` has
    declarations that are not read, too, and `make` makes their symbols.  A part `shares_names` with those above until it
    declares one again.
    """

    outer: NameScope | None = None
    names: dict[str, Symbol] = field(default_factory=dict)
    families: dict[str, Family] = field(default_factory=dict)
    registers: list[Register] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    seen: int = sys.maxsize
    of_module: bool = False
    part: int = 0
    parts: dict[str, int] = field(default_factory=dict)
    found: dict[str, Symbol] = field(default_factory=dict)
    make: Callable[[tree.Alike], Symbol] | None = None
    spelt: tuple[tuple[int, ...], frozenset[str]] | None = field(default=None, init=False, repr=False)
    shares_names: bool = False

    def inner(self) -> NameScope:
        """A block within this one."""
        return NameScope(self, registers=self.registers, places=NO_PLACES, seen=self.seen)

    def split(self) -> NameScope:
        """The next part of a block; the instructions before it do not see its declarations."""
        return NameScope(
            self.outer, self.names, self.families, self.registers, self.places, self.seen, part=self.part + 1, parts=self.parts,
            shares_names=True,
        )  # fmt: skip

    def see(self, places: int) -> None:
        """Let the rest of a function see its own declarations for the module: `.func f();` in a body."""
        scope: NameScope | None = self
        while scope is not None and scope.outer is not None:
            scope.seen = places
            scope = scope.outer

    def find(self, name: str) -> Symbol:
        """The symbol of a name; None if the name is not declared."""
        symbol = self.found.get(name)
        if symbol is None:
            symbol = self.peek(name)
            if symbol is not None:
                self.found[name] = symbol  # so that the next search is one step
        return symbol

    def peek(self, name: str) -> Symbol:
        """Like `find`, but without remembering the symbol: declarations may still follow."""
        scope, symbol = self._declaring(name)
        return scope.member(symbol, name) if isinstance(symbol, Family) else symbol

    def declared(self, name: str) -> Symbol | Family:
        """Like `peek`, but a register of a family that is not made yet stays so: the family stands for it."""
        symbol = self._declaring(name)[1]
        return symbol.registers.get(int(name[len(symbol.prefix) :]), symbol) if isinstance(symbol, Family) else symbol

    def undeclared(self, names: Collection[str]) -> set[str]:
        """Those of many names that mean nothing yet: all of `declared` is asked for few of them."""
        doubtful, prefixes = set[str](), set[str]()
        scope: NameScope | None = self
        while scope is not None:
            doubtful.update([name for name in names if name in scope.names])
            prefixes.update(scope.families)
            scope = scope.outer
        if prefixes:
            doubtful.update([name for name in names if name[-1] in DIGITS and name.rstrip(DIGITS) in prefixes])
        return {name for name in names if name not in doubtful or self.declared(name) is None}

    def _declaring(self, name: str) -> tuple[NameScope, Symbol | Family]:
        """What a name stands for, None where it is not declared, and the block that declares it."""
        stem = len(name.rstrip(DIGITS))
        scope = self
        while True:
            symbol = scope.own(name)
            if symbol is not None and (scope.outer is not None or scope.places.get(name, 0) < self.seen):
                return scope, symbol
            if stem < len(name) and scope.families and (family := scope.family_of(name, stem)) is not None:
                hidden = scope.outer is None and scope.places.get(family.prefix, 0) >= self.seen
                return scope, None if hidden else family
            if scope.outer is None:
                return scope, None
            scope = scope.outer

    def own(self, name: str) -> Symbol:
        """The symbol that this block declares, if it is in sight in this part."""
        symbol = self.names.get(name)
        if isinstance(symbol, tree.Alike) and self.make is not None:
            symbol = self.make(symbol)
        return None if self.parts and not self.sees(name) else symbol

    def sees(self, name: str) -> bool:
        """Would a name that this block declares be in sight in this part?"""
        return not self.parts or self.parts.get(name, 0) <= self.part

    def declares_later(self, name: str) -> bool:
        """Is a name that is out of sight declared further down in an enclosing block, or below the function?"""
        stem = len(name.rstrip(DIGITS))
        scope: NameScope | None = self
        while scope is not None:
            family = scope.families.get(name[:stem])
            if scope.parts.get(name, 0) > scope.part or (family and family.part > scope.part and family.has(name[stem:])):
                return True
            if scope.outer is None:
                return name in scope.names
            scope = scope.outer
        return False

    def family_of(self, name: str, stem: int | None = None) -> Family | None:
        """The family of this block to which a name belongs: all digits at its end are its number, as ptxas reads it."""
        cut = len(name.rstrip(DIGITS)) if stem is None else stem
        family = self.families.get(name[:cut])
        return family if family is not None and family.part <= self.part and family.has(name[cut:]) else None

    def member(self, family: Family, name: str) -> Register:
        """One register of a family."""
        family.used = True
        number = int(name[len(family.prefix) :])
        register = family.registers.get(number)
        if register is None:
            register = self.new_register(f"{family.prefix}{number}", family.type, family.vector)
            family.registers[number] = register
        return register

    def declare(self, symbol: Symbol) -> Symbol:
        """Enter a symbol into this block."""
        if self.part:
            if self.shares_names and self.own(symbol.name) is not None:  # a duplicate: the parts above keep theirs
                self.names, self.parts, self.shares_names = dict(self.names), dict(self.parts), False
            self.parts[symbol.name] = self.part
        self.names[symbol.name] = symbol
        self.found.pop(symbol.name, None)
        return symbol

    def taken(self, family: Family) -> str | None:
        """The first register of a family whose name this block has declared already; `%r<` of a family of that name."""
        prefix = family.prefix
        if prefix in self.families:
            return f"{prefix}<"
        for name, symbol in self.names.items():
            if (
                name.startswith(prefix)
                and family.has(digits := name[len(prefix) :])
                and str(int(digits)) == digits
                and not isinstance(symbol, Label)
            ):
                return name
        return None

    def declare_family(self, family: Family) -> None:
        """Enter a family into this block."""
        family.part = self.part
        if self.part and family.prefix in self.families:  # a duplicate: the parts above keep theirs
            self.families = dict(self.families)
        self.families[family.prefix] = family

    def new_register(self, name: str, type: Type, vector: int = 1) -> Register:
        """A new register of the function, or of the module."""
        register = Register(name, type, vector, len(self.registers), self.of_module, register_shape(type, vector))
        self.registers.append(register)
        return register

    def declares(self, name: str) -> bool:
        """Is the name declared here?  Unlike `find`, this makes no register."""
        scope: NameScope | None = self
        while scope is not None:
            if scope.own(name) is not None or scope.family_of(name) is not None:
                return True
            scope = scope.outer
        return False

    def family(self, prefix: str) -> Family | None:
        """The family `%r<100>` of that prefix that is in sight."""
        scope: NameScope | None = self
        while scope is not None:
            if (found := scope.families.get(prefix)) is not None and found.part <= scope.part:
                return found
            scope = scope.outer
        return None

    def spellings(self) -> frozenset[str]:
        """Every name in sight, for suggestions; of a family its first register, whichever are used."""
        extent = self.extent()
        if self.spelt is None or self.spelt[0] != extent:
            self.spelt = extent, self._spellings()
        return self.spelt[1]

    def extent(self) -> tuple[int, ...]:
        """How much is declared in sight, block by block."""
        return len(self.names), len(self.families), *(self.outer.extent() if self.outer else ())

    def _spellings(self) -> frozenset[str]:
        own = {name for name in self.names if self.sees(name) and not self.in_family(name)}
        own |= {f"{prefix}0" for prefix, family in self.families.items() if family.part <= self.part}
        return frozenset(own) | (self.outer.spellings() if self.outer else frozenset())

    def in_family(self, name: str) -> bool:
        """Is the name that of a register of a family in sight?"""
        scope: NameScope | None = self
        while scope is not None and scope.family_of(name) is None:
            scope = scope.outer
        return scope is not None


@cache
def register_shape(type: Type, vector: int) -> Shape:
    """The common shape of all registers of a declaration."""
    return Shape("register", type, detail=vector if vector > 1 else None)


def special(name: str, component: str | None) -> SpecialRegister | None:
    """The special register that a name such as `%tid` with component `x` stands for."""
    if not name.startswith("%"):
        return None
    declared = special_registers.lookup(name[1:], component)
    if declared is None:
        return None
    element = Shape("special", declared.type, detail=name[1:])
    shape = element._replace(items=(element,) * declared.count) if declared.count > 1 else element
    return SpecialRegister(name[1:], component, declared.type, shape)
