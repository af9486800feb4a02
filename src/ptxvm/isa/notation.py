"""The manual's syntax notation, read as data.

    ld{.weak}{.ss}{.cop}{.vec}.type  d, [a];
    .ss = { .const, .global, .local, .param, .shared };

A line is a form: an opcode, slots for modifiers, operands.  `{…}` is optional, `d{|p}` an optional
second destination, `{!}c` an operand that may be negated, `[a]` an address, `{[}a{]}` one that ptxas takes without
brackets too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import takewhile

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.dataclass import dataclass


@dataclass(frozen=True)
class ModifierSlot:
    """One place for a modifier: `.sat`, `{.sat}`, `.type`."""

    name: str
    choices: frozenset[str]
    optional: bool
    literal: bool  # stands for itself, rather than for one of a list
    order: tuple[str, ...] = ()  # the choices as written

    @cached_property
    def is_type(self) -> bool:
        """Are its choices types?  Those of a selector behind an operand are not listed."""
        return bool(self.choices) and all(c in Type.named for c in self.choices)

    @cached_property
    def order_of(self) -> str:
        """What its choices are, if several slots of an instruction have them and are told apart by their order."""
        if self.is_type:
            return "types"
        if self.is_space:
            return "spaces"
        return "layouts" if self.choices and self.choices <= LAYOUTS else ""

    @cached_property
    def is_space(self) -> bool:
        """Are its choices state spaces?"""
        return bool(self.choices) and all(c.partition("::")[0] in SPACES for c in self.choices)

    def __str__(self) -> str:
        return f"{{.{self.name}}}" if self.optional else f".{self.name}"


@dataclass(frozen=True)
class Operand:
    """One place for an operand.

    `second` is the name after `|`; `address` for `[a]`; `vector` for `{a, b}` written out; `group` for `(a)`.
    What is written at an operand but is known when the PTX is read, as modifiers are, has a slot of its own: the part
    that `a{.asel}` picks, and the sign of `{-}a`, a flag named `minus_a`.
    """

    name: str
    optional: bool = False
    negatable: str = ""  # "!" or "-"
    address: bool = False
    bare: bool = False  # an address that may stand without brackets
    second: str = ""
    second_optional: bool = False
    group: bool = False
    items: tuple[Operand, ...] = ()
    selector: str = ""  # the slot of a component: `a{.asel}`

    @property
    def names(self) -> tuple[str, ...]:
        """The names that it binds."""
        if self.items:
            return tuple(n for item in self.items for n in item.names)
        return (self.name, self.second) if self.second else (self.name,)

    @property
    def minus(self) -> str:
        """The flag that tells of a `-` before the operand; empty where none may stand."""
        return f"minus_{self.name}" if self.negatable == "-" else ""


@dataclass(frozen=True)
class Match:
    """How well some modifiers fit a form: what they bound, what is too much, what is missing."""

    bound: dict[str, str]
    extra: tuple[int, ...]  # indexes of words that fit no slot
    missing: tuple[ModifierSlot, ...]

    @property
    def fits(self) -> bool:
        """Is every word placed and every needed slot filled?"""
        return not self.extra and not self.missing


@dataclass(frozen=True)
class Form:
    """One syntax line of an instruction."""

    text: str
    opcode: str
    slots: tuple[ModifierSlot, ...]
    operands: tuple[Operand, ...]
    fixed: int = 0  # so many leading slots must come first and in this order (`mul.lo`)
    counts: tuple[int, int] = field(default=(0, 0))
    marks: tuple[ModifierSlot, ...] = ()  # what operands may bear: selectors and signs
    ignored: frozenset[str] = frozenset()  # modifiers that ptxas passes over

    @cached_property
    def by_name(self) -> dict[str, ModifierSlot]:
        """The slots and marks."""
        return {slot.name: slot for slot in (*self.marks, *reversed(self.slots))}

    @cached_property
    def words(self) -> frozenset[str]:
        """Every modifier that some slot takes, or that is passed over."""
        return self.ignored.union(word for slot in self.slots for word in slot.choices)

    def match(self, words: Sequence[str]) -> Match:
        """Place each word in the first free slot that takes it.

        ptxas takes modifiers in nearly any order; only types, state spaces and orders of matrices keep theirs, and the words
        of a long opcode.
        """
        bound: dict[str, str] = {}
        extra: list[int] = []
        last = {"types": -1, "spaces": -1, "layouts": -1}
        for n, word in enumerate(words):
            for at, slot in enumerate(self.slots):
                if slot.name not in bound and word in slot.choices and (at >= self.fixed or at == n):
                    if slot.order_of:
                        if at < last[slot.order_of]:
                            continue
                        last[slot.order_of] = at
                    bound[slot.name] = word
                    break
            else:
                if word not in self.ignored and (word not in REPEATABLE or word not in bound.values()):
                    extra.append(n)
        missing = tuple(s for s in self.slots if not s.optional and s.name not in bound)
        return Match(bound, tuple(extra), missing)


LAYOUTS = frozenset({"row", "col"})
SPACES = frozenset({Space.CONST, Space.GLOBAL, Space.LOCAL, Space.PARAM, Space.SHARED})

# Flags that ptxas lets one write twice.
REPEATABLE = frozenset({"NaN", "approx", "cc", "relu", "sat", "satfinite", "shiftamt", "sync", "uni"})

IGNORED = {
    "testp": "finite infinite number notanumber normal subnormal",
    "ldmatrix": "b8x16 b6x16_p32 b4x16_p64",
    "tensormap": "global_address rank box_dim global_dim global_stride element_stride elemtype fill_mode swizzle_atomicity",
}
"""Modifiers of an opcode that ptxas passes over in the instructions of all others."""

OPCODE = re.compile(r"(?:\A|;)(?:\s|//[^\n]*\n)*(\w+)")
"""The first word of a syntax line; a list of choices begins with a dot."""

TOKEN = re.compile(r"\s*([\w-]+(?:::\w+)*|[{}\[\](),|!.;])")


def parse_forms(text: str, fixed: int | str = 0, ignored: str = "") -> list[Form]:
    """Read syntax lines.

    `fixed` counts the leading modifiers whose place matters, or names them (`cta red`); `ignored` are passed over.
    """
    rules: dict[str, tuple[str, ...]] = {}
    heads: list[str] = []
    for statement in statements(text):
        if "=" in statement:
            *names, choices = statement.split("=")
            values = tuple(w.lstrip(".") for w in re.findall(r"\.[\w:]+", choices))
            rules |= {n.strip().lstrip("."): values for n in names}
        else:
            heads.append(" ".join(statement.split()))
    forms = [parse_form(head, rules, fixed) for head in heads]
    others = [words for opcode, words in IGNORED.items() if all(form.opcode != opcode for form in forms)]
    passed_over = frozenset(" ".join((*others, ignored)).split()).difference(*(form.words for form in forms))
    return [replace(form, ignored=passed_over) for form in forms]


def statements(text: str) -> Iterator[str]:
    """The syntax lines and the lists of choices, without comments."""
    return filter(None, (s.strip() for s in re.sub(r"//[^\n]*", "", text).split(";")))


def opcodes(text: str) -> dict[str, None]:
    """The opcodes of syntax lines, in their order."""
    return dict.fromkeys(OPCODE.findall(text))


def parse_form(head: str, rules: dict[str, tuple[str, ...]], fixed: int | str) -> Form:
    """One line: `add{.sat}.type d, a, b`."""
    m = re.match(r"(\w+)((?:\{?\.[\w:]+\}?)*)\s*(.*)$", head)
    if not m:
        raise SyntaxError(head)
    slots = [parse_slot(brace, word, rules) for brace, word in re.findall(r"(\{?)\.([\w:]+)", m[2])]
    types = [s for s in slots if s.literal and s.name in Type.named]
    if len(types) == 1 and not any(s.name == "type" for s in slots):  # `add.s32` is `add.type` with one choice
        at = slots.index(types[0])
        slots[at] = ModifierSlot("type", types[0].choices, types[0].optional, literal=False, order=types[0].order)
    if isinstance(fixed, str):
        words = fixed.split()
        fixed = len(list(takewhile(lambda s: s.name in words, slots)))
    reader = OperandReader(m[3])
    operands = tuple(reader.operands(""))
    needed = sum(not o.optional for o in operands)
    return Form(head, m[1], tuple(slots), operands, fixed, (needed, len(operands)), tuple(parse_marks(operands, rules)))


def parse_marks(operands: Sequence[Operand], rules: dict[str, tuple[str, ...]]) -> Iterator[ModifierSlot]:
    """The selectors and signs of a form's operands; a selector without a list of choices takes any word."""
    for operand in operands:
        if operand.selector:
            order = rules.get(operand.selector, ())
            yield ModifierSlot(operand.selector, frozenset(order), optional=True, literal=False, order=order)
        if operand.minus:
            yield ModifierSlot(operand.minus, frozenset("-"), optional=True, literal=True, order=("-",))


def parse_slot(brace: str, word: str, rules: dict[str, tuple[str, ...]]) -> ModifierSlot:
    """`.type` with its choices, or a word that stands for itself."""
    order = rules.get(word, (word,))
    return ModifierSlot(word.replace("::", "_"), frozenset(order), bool(brace), word not in rules, order)


class OperandReader:
    """Reads the operands of a form: `d{|p}, [a]{, b}, {!}c`."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.at = text, TOKEN.findall(text), 0

    def peek(self, ahead: int = 0) -> str:
        """The token so many places on, or nothing."""
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ""

    def take(self, *wanted: str) -> str:
        """The next token, which must be one of those wanted."""
        token = self.peek()
        if wanted and token not in wanted:
            raise SyntaxError(f"{self.text!r}: {token!r} where {wanted} was expected")
        self.at += 1
        return token

    def operands(self, stop: str) -> list[Operand]:
        """Operands up to the closing token."""
        found: list[Operand] = []
        while self.peek() != stop:
            if not self.peek():
                raise SyntaxError(f"{self.text!r}: no {stop!r}")
            if self.peek() == "{" and self.peek(1) == ",":  # {, b}
                self.take()
                self.take(",")
                found += [optional(o) for o in self.operands("}")]
                self.take("}")
            else:
                found.append(self.operand())
            if self.peek() == ",":
                self.take()
        return found

    def operand(self) -> Operand:
        """One operand with its marks."""
        negatable = ""
        if self.peek() == "{" and self.peek(1) in ("!", "-"):
            self.take()
            negatable = self.take()
            self.take("}")
        if (self.peek(), self.peek(1), self.peek(2)) == ("{", "[", "}"):
            return self.bare_address()
        if self.peek() in ("[", "{", "("):
            return self.bracket()
        name = self.take().replace("-", "_")
        second, second_optional, selector = "", False, ""
        if self.peek() == "|":
            self.take()
            second = self.take()
        elif self.peek() == "{" and self.peek(1) == "|":
            self.take()
            self.take()
            second, second_optional = self.take(), True
            self.take("}")
        elif self.peek() == "{" and self.peek(1) == ".":
            self.take()
            self.take()
            selector = self.take()
            self.take("}")
        return Operand(name, negatable=negatable, second=second, second_optional=second_optional, selector=selector)

    def bare_address(self) -> Operand:
        """`{[}a{]}`."""
        for token in "{[}":
            self.take(token)
        name = self.take()
        for token in "{]}":
            self.take(token)
        return Operand(name, address=True, bare=True)

    def bracket(self) -> Operand:
        """`[a]`, `{a, b}` or `(a)`."""
        opening = self.take()
        closing = {"[": "]", "{": "}", "(": ")"}[opening]
        items = self.operands(closing)
        self.take(closing)
        if opening == "[" and len(items) == 1 and not items[0].items:
            return Operand(items[0].name, address=True)
        if opening == "(":
            return Operand(items[0].name, group=True)
        return Operand(items[0].name, address=opening == "[", items=tuple(items))


def optional(o: Operand) -> Operand:
    """The same operand, but it may be left out."""
    return replace(o, optional=True)
