"""Scopes: from a name to the symbol that it stands for (PTX 4.4, 7.1)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from ptxvm.algebra.types import Type
from ptxvm.analysis.symbols import Register, SpecialRegister
from ptxvm.isa import special_registers
from ptxvm.isa.operand_types import Shape

NUMBERED = re.compile(r"(.*?)(0|[1-9][0-9]*)$", re.DOTALL)


@dataclass(slots=True)
class Family:
    """`%r<100>`: the registers `%r0` to `%r99`, made when they are first named."""

    prefix: str
    type: Type
    count: int
    vector: int = 1
    used: bool = False


@dataclass(slots=True)
class Scope:
    """The names of a block, and the block around it.

    `registers` belongs to the whole function: every register that is used, in the order of its first use.
    """

    outer: Scope | None = None
    names: dict[str, Any] = field(default_factory=dict)
    families: dict[str, Family] = field(default_factory=dict)
    registers: list[Register] = field(default_factory=list)

    def inner(self) -> Scope:
        """A block within this one."""
        return Scope(self, registers=self.registers)

    def find(self, name: str) -> Any:
        """The symbol, or None where nothing of that name is declared."""
        symbol = self.names.get(name)
        if symbol is None:
            symbol = self._find(name)
            if symbol is not None:
                self.names[name] = symbol  # so that the next look is one step
        return symbol

    def _find(self, name: str) -> Any:
        numbered = NUMBERED.match(name)
        scope: Scope | None = self
        while scope is not None:
            if (symbol := scope.names.get(name)) is not None:
                return symbol
            if numbered and (family := scope.families.get(numbered[1])) and int(numbered[2]) < family.count:
                family.used = True
                return scope.declare(self.new_register(name, family.type, family.vector))
            scope = scope.outer
        return None

    def declare(self, symbol: Any) -> Any:
        """Enter a symbol into this block."""
        self.names[symbol.name] = symbol
        return symbol

    def new_register(self, name: str, type: Type, vector: int = 1) -> Register:
        """A register of the function."""
        shape = Shape("register", type, detail=vector if vector > 1 else None)
        register = Register(name, type, vector, len(self.registers), shape)
        self.registers.append(register)
        return register

    def spellings(self) -> set[str]:
        """Every name in sight, for suggestions."""
        own = set(self.names) | {f"{p}0" for p in self.families}
        return own | (self.outer.spellings() if self.outer else set())


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
