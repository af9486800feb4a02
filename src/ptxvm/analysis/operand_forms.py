"""The forms of operands: operands of one form and of instructions with one head are all right or all wrong.

A form is the spelling of an operand (a name, an address with an offset, a vector ...) with its shape, and where it names a
parameter whether that is one of the function itself.  Forms have numbers, from 1.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, pred
from ptxvm.analysis.expressions import BITS
from ptxvm.analysis.program import Function
from ptxvm.analysis.scope import DIGITS, LONGEST_NUMBER, Family, NameScope, register_shape, special
from ptxvm.analysis.symbols import Label, Register, Symbol, Variable
from ptxvm.isa.operand_types import SINK, Shape
from ptxvm.syntax.lexer import integer
from ptxvm.syntax.statements import BLANKS, EXPRESSION, LITERAL, OPERAND

MOST = 1 << 12
"""Operands that are remembered: those of SSA code are seldom used far from each other."""

OTHER = 0
"""No form: the instruction has to be read."""

INTEGER, LABEL = Shape("integer"), Shape("label")
FLOATS = {
    "single": Shape("float", detail=32),
    **dict.fromkeys(("double", "decimal", "negative"), Shape("float", detail=64)),
}


Families = dict[str, tuple[list[dict[str, Symbol]], int, int]]
"""The families `%r<100>` of a function: the names that come before them, the count, and the number of the form."""

Form: TypeAlias = tuple[object, ...]
"""What an operand is, whatever its name: its kind first."""


class Forms(dict[Form, int]):
    """The numbers of forms."""

    def __init__(self) -> None:
        super().__init__()
        self._registers: dict[tuple[Type, int], int] = {}
        self.predicate, self.label = self["name", register_shape(pred, 1)], self["name", LABEL]
        floats = (self[kind, shape] for kind, shape in FLOATS.items())
        self.constants = {self["integer", INTEGER], self["minus", INTEGER], *floats}

    def __missing__(self, form: Form) -> int:
        self[form] = number = len(self) + 1
        if form[0] == "expression":
            self.constants.add(number)
        return number

    def register(self, type: Type, vector: int) -> int:
        """The form of a register by its name."""
        number = self._registers.get((type, vector))
        if number is None:
            number = self._registers[type, vector] = self["name", register_shape(type, vector)]
        return number


class OperandForms(dict[str, int]):
    """The number of the form of every operand of a block, by its text."""

    def __init__(self, scope: NameScope, function: Function, forms: Forms, labels: frozenset[str]) -> None:
        super().__init__()
        self.scope, self.function, self.forms, self.labels = scope, function, forms, labels
        self.wanted: set[str] = set()
        self.parameters: dict[str, Variable] = {}
        """The `.param` variable that an operand names."""
        self._families: Families | None = None
        self._own: set[int] | None = None  # the parameters of the function, by identity

    def __missing__(self, part: str) -> int:
        if len(self) > MOST:
            self.forget()
        text = part.strip(BLANKS)
        stem = text.rstrip(DIGITS)
        if self._families is None:
            self._families = self._in_sight()
        if (family := self._families.get(stem)) is not None and (digits := text[len(stem) :]):
            above, count, number = family
            for names in above:
                if text in names:
                    break
            else:
                if len(digits) <= LONGEST_NUMBER and int(digits) < count:
                    self[part] = number
                    return number
        form = self._form(text, found) if (found := OPERAND.fullmatch(text)) else self._expression(text)
        self[part] = number = OTHER if form is None else self.forms[form]
        return number

    def forget(self) -> None:
        """Forget what names mean, as others may be declared by now."""
        self.clear()
        self.parameters.clear()
        self._families = None

    def _in_sight(self) -> Families:
        found: Families = {}
        above: list[dict[str, Symbol]] = []
        scope = self.scope
        while scope.outer is not None:
            above = [*above, scope.names]
            for prefix, family in scope.families.items():
                form = self.forms.register(family.type, family.vector)
                found.setdefault(prefix, (above, family.count, form))
            scope = scope.outer
        return found

    def _form(self, text: str, found: re.Match[str]) -> Form | None:
        kind = found.lastgroup or ""
        if kind == "name":
            return self._named("name", text, text)
        if kind in ("integer", "minus", "offset") and not fits(found[kind]):
            return None
        if kind in ("base", "offset"):
            return self._named(kind, found["base"], text)
        if kind in ("integer", "minus"):
            return kind, INTEGER
        if kind in FLOATS:
            return kind, FLOATS[kind]
        if kind == "component":
            return self._special(found["special"], found["component"])
        if kind == "vector":
            return self._several(kind, found[kind].split(","))
        if kind == "right":
            return self._several(kind, [found["left"], found["right"]])
        signed = self._register(found["signed"])
        return signed and (found["sign"], signed)

    def _expression(self, text: str) -> Form | None:
        """The form of an expression, or of an address with one: whatever its integers are, it has a value."""
        found = EXPRESSION.fullmatch(text)
        if found is None:
            return None
        written = LITERAL.sub("0", found[2] or found[3])
        return self._named(f"base+{written}", found[1], text) if found[1] else ("expression", written)

    def _special(self, name: str, component: str) -> Form | None:
        known = None if self.scope.declared(name) else special(name, component)
        return ("component", known.shape) if known else None

    def _several(self, kind: str, items: list[str]) -> Form | None:
        shapes = [self._element(item.strip(BLANKS)) for item in items]
        return None if None in shapes else (kind, *shapes)

    def _element(self, text: str) -> Shape | None:
        return SINK if text == "_" else self._register(text)

    def _register(self, name: str) -> Shape | None:
        symbol = self.scope.declared(name)
        if isinstance(symbol, Family):
            return register_shape(symbol.type, symbol.vector)
        return symbol.shape if isinstance(symbol, Register) else None

    def _named(self, kind: str, name: str, text: str) -> Form | None:
        symbol = self.scope.declared(name)
        if isinstance(symbol, Family):
            return kind, register_shape(symbol.type, symbol.vector)
        if isinstance(symbol, Register):
            return kind, symbol.shape
        if isinstance(symbol, Variable):
            return self.variable(kind, symbol, text)
        if isinstance(symbol, Label) or (symbol is None and kind == "name" and name in self.labels):
            self.wanted.add(name)
            return kind, LABEL
        if symbol is None and kind == "name" and (known := special(name, None)) is not None:
            return kind, known.shape
        return None

    def variable(self, kind: str, symbol: Variable, text: str) -> Form | None:
        """The form of an operand that names a variable; None for one that is opaque."""
        if symbol.opaque:
            return None
        if symbol.space is not Space.PARAM:
            return kind, symbol.shape
        self.parameters[text] = symbol
        parameters = self.function.signature.parameters
        if self._own is None:
            self._own = set(map(id, parameters))
        is_own = id(symbol) in self._own
        hides = not self.function.entry and any(symbol.name == each.name for each in parameters)
        return kind, symbol.shape, is_own, hides, self.function.entry


def fits(text: str) -> bool:
    """Is it an integer literal of 64 bits?"""
    literal = integer(text)
    return literal is not None and literal[0] <= BITS
