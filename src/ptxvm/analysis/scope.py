"""Scopes: the symbol that a name stands for (PTX 4.4, 7.1)."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import cache

from ptxvm.algebra.types import Type
from ptxvm.analysis.symbols import Register, SpecialRegister, Symbol
from ptxvm.isa import special_registers
from ptxvm.isa.operand_types import Shape

DIGITS = "0123456789"
LONGEST_NUMBER = 18


@dataclass(slots=True)
class Family:
    """`%r<100>`: the registers `%r0` to `%r99`, made when they are first named; `%r01` is `%r1`."""

    prefix: str
    type: Type
    count: int
    vector: int = 1
    used: bool = False
    registers: dict[int, Register] = field(default_factory=dict)

    def has(self, digits: str) -> bool:
        """Does the family have a register of this number?"""
        return 0 < len(digits) <= LONGEST_NUMBER and digits.isdecimal() and int(digits) < self.count


@dataclass(slots=True)
class NameScope:
    """The names of a block, and the block around it.

    `registers` belongs to the whole function, or to the module: every register that is used, in the order of its first use.
    `places` numbers the names of a module by their first declaration.  `seen` is the number of these names above the function:
    later names of the module are out of sight.  `rest` is the block behind late declarations.
    """

    outer: NameScope | None = None
    names: dict[str, Symbol] = field(default_factory=dict)
    families: dict[str, Family] = field(default_factory=dict)
    registers: list[Register] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    seen: int = sys.maxsize
    rest: NameScope | None = None
    of_module: bool = False

    def inner(self) -> NameScope:
        """A block within this one."""
        return NameScope(self, registers=self.registers, seen=self.seen)

    def split(self) -> NameScope:
        """The rest of a block; the instructions before it do not see its declarations (PTX 5.4.1)."""
        self.rest = NameScope(self.outer, dict(self.names), dict(self.families), self.registers, dict(self.places), self.seen)
        return self.rest

    def see(self, places: int) -> None:
        """Let the rest of a function see its own declarations for the module: `.func f();` in a body."""
        scope: NameScope | None = self
        while scope is not None and scope.outer is not None:
            scope.seen = places
            scope = scope.outer

    def find(self, name: str) -> Symbol:
        """The symbol of a name; None if the name is not declared."""
        symbol = self.names.get(name)
        if symbol is None:
            symbol = self.peek(name)
            if symbol is not None:
                self.names[name] = symbol  # so that the next search is one step
        return symbol

    def peek(self, name: str) -> Symbol:
        """Like `find`, but without entering the symbol into this block: declarations may still follow."""
        stem = len(name.rstrip(DIGITS))
        numbered = stem < len(name)
        scope: NameScope | None = self
        while scope is not None:
            symbol = scope.names.get(name)
            if symbol is not None and (scope.outer is not None or scope.places.get(name, 0) < self.seen):
                return symbol
            if numbered and scope.families and (family := scope.family_of(name, stem)) is not None:
                if scope.outer is None and scope.places.get(family.prefix, 0) >= self.seen:
                    return None
                return scope.member(family, name)
            scope = scope.outer
        return None

    def declared(self, name: str) -> Symbol | Family:
        """Like `look`, but a register of a family that is not made yet stays so: the family stands for it."""
        stem = len(name.rstrip(DIGITS))
        scope: NameScope | None = self
        while scope is not None:
            symbol = scope.names.get(name)
            if symbol is not None and (scope.outer is not None or scope.places.get(name, 0) < self.seen):
                return symbol
            if stem < len(name) and scope.families and (family := scope.family_of(name, stem)) is not None:
                hidden = scope.outer is None and scope.places.get(family.prefix, 0) >= self.seen
                return None if hidden else family
            scope = scope.outer
        return None

    def declares_later(self, name: str) -> bool:
        """Is a name that is out of sight declared further down in an enclosing block, or below the function?"""
        scope: NameScope | None = self
        while scope is not None:
            rest = scope.rest
            while rest is not None:
                if name in rest.names or rest.family_of(name) is not None:
                    return True
                rest = rest.rest
            if scope.outer is None:
                return name in scope.names
            scope = scope.outer
        return False

    def family_of(self, name: str, stem: int | None = None) -> Family | None:
        """The family of this block to which a name belongs: all digits at its end are its number, as ptxas reads it."""
        cut = len(name.rstrip(DIGITS)) if stem is None else stem
        family = self.families.get(name[:cut])
        return family if family is not None and family.has(name[cut:]) else None

    def member(self, family: Family, name: str) -> Register:
        """One register of a family."""
        family.used = True
        number = int(name[len(family.prefix) :])
        register = family.registers.get(number)
        if register is None:
            register = self.new_register(f"{family.prefix}{number}", family.type, family.vector)
            family.registers[number] = register
        self.names[name] = register
        return register

    def declare(self, symbol: Symbol) -> Symbol:
        """Enter a symbol into this block."""
        self.names[symbol.name] = symbol
        return symbol

    def new_register(self, name: str, type: Type, vector: int = 1) -> Register:
        """A new register of the function, or of the module."""
        register = Register(name, type, vector, len(self.registers), self.of_module, register_shape(type, vector))
        self.registers.append(register)
        return register

    def declares(self, name: str) -> bool:
        """Is the name declared here?  Unlike `find`, this makes no register."""
        scope: NameScope | None = self
        while scope is not None:
            if name in scope.names or scope.family_of(name) is not None:
                return True
            scope = scope.outer
        return False

    def family(self, prefix: str) -> Family | None:
        """The family `%r<100>` of that prefix that is in sight."""
        scope: NameScope | None = self
        while scope is not None:
            if prefix in scope.families:
                return scope.families[prefix]
            scope = scope.outer
        return None

    def spellings(self) -> set[str]:
        """Every name in sight, for suggestions; of a family its first register, whichever are used."""
        own = {name for name in self.names if not self.in_family(name)} | {f"{p}0" for p in self.families}
        return own | (self.outer.spellings() if self.outer else set())

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
