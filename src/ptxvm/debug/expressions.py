"""Expressions over registers, special registers, variables and memory: for `print`, `set` and conditions.

They are C's, with the names of PTX: `%r1 > 5 && %tid.x == 3`, `buf[%r2 + 1]`, `.shared.f32[%r3 + 4]`, `&buf`; and those of
the source where the PTX has debugging information: `n`, `p[i]`, `s.x`, `q->next`, `p + 1`, `GREEN`.  Integers
are converted as C converts them, from 32 bits on; comparisons give 0 or 1.  `(float)x` converts a value, `(float*)x` gives
an address a type.  A shift by the width or more gives 0 or the sign,
and a division by 0 all ones, as on the machine.  What stands behind `&&` and `||` is evaluated only for the lanes that
need it.  Each expression is a list of steps over a stack, so brackets may be as deep as one likes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias, TypeGuard

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, f32, f64, pred, s32, s64, u32, u64
from ptxvm.dataclass import dataclass
from ptxvm.debug.source_types import ArrayOf, BitField, Number, Pointer, Structure
from ptxvm.debug.values import MemoryPlace, NoValue, Place, Values, View
from ptxvm.diagnostics import did_you_mean
from ptxvm.engine.interp import arrays
from ptxvm.machine.per_lane import Array
from ptxvm.syntax.expressions import PRECEDENCE
from ptxvm.syntax.lexer import float_bits, integer

TOKEN = re.compile(
    r"\s*(?:(?P<load>(?:\.[a-z]\w*(?:::\w+)?)+)\s*\["
    r"|(?P<number>0[fFdD][0-9a-fA-F]+|0[xX][0-9a-fA-F]+U?|\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d\w*)"
    r"|(?P<name>%?[A-Za-z_$][\w$]*(?:::[A-Za-z_]\w*)*)(?:\.(?P<component>[xyzwrgba])\b)?"
    r"|(?P<operator>\|\||&&|==|!=|<=|>=|<<|>>|[-+*/%&|^<>!~()\[\]]))"
)
CAST = re.compile(r"\s*\(\s*(?P<words>\.?[A-Za-z_]\w*(?:::\w+)*(?:\s+[A-Za-z_]\w*)*)\s*(?P<stars>(?:\*\s*)*)\)")
OPERATOR = re.compile(
    r"\s*(?:(?P<access>\.|->)\s*(?P<member>[A-Za-z_$][\w$]*)"
    r"|(?P<operator>\|\||&&|==|!=|<=|>=|<<|>>|[-+*/%&|^<>!~()\[\]]))"
)
LITERALS = {"true": 1, "false": 0}
UNARY = 100  # binds more strongly than any binary operator
MOST_GUARDS = 64  # `&&` and `||` within each other

Item: TypeAlias = Place | Values
Step: TypeAlias = Callable[[View, list[Item]], None]
"""Takes its operands from the end of the stack, and leaves its result there."""


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression, ready to be evaluated."""

    text: str
    steps: tuple[Step, ...]

    @property
    def target(self) -> Expression:
        """The part of `&a` that has the address, whose state space the address alone does not tell; else the whole."""
        return Expression(self.text, self.steps[:-1]) if self.steps[-1] is address else self

    def place(self, view: View) -> Item:
        """What it stands for: a place where it names one, else its values."""
        stack: list[Item] = []
        with np.errstate(all="ignore"):
            for step in self.steps:
                step(view, stack)
        return stack[-1]

    def values(self, view: View) -> Values:
        """Its value for each lane; NoValue where it has none."""
        return view.read(self.place(view))

    def holds(self, view: View) -> Array:
        """For which lanes is it not 0?"""
        values = self.values(view)
        if values.raw.dtype.names is not None:
            raise NoValue("a condition is a number")
        found: Array = values.raw != 0
        return found


def parse(text: str) -> Expression:
    """The expression that a text stands for; NoValue says what is wrong with it."""
    return Expression(text.strip(), tuple(_Parser(text).steps()))


# ── reading: operators wait on a stack until one that binds less strongly comes ─────────


@dataclass(frozen=True, slots=True)
class Waiting:
    """An operator or an open bracket whose last operand is being read; `binds` is 0 for a bracket.

    Of `&&` and `||` the steps of that operand begin at `right`, and are made one step with it.
    """

    binds: int
    step: Step | None
    closing: str = ""
    right: int = -1
    is_and: bool = False


class _Parser:
    """Reads one expression."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.made: list[Step] = []
        self.waiting: list[Waiting] = []

    def steps(self) -> list[Step]:
        """The steps of the whole text."""
        expects_operand = True
        while True:
            if expects_operand and self.cast():
                continue
            if (found := self.token(TOKEN if expects_operand else OPERATOR)) is None:
                break
            expects_operand = self.operand(found) if expects_operand else self.operator(found)
        if expects_operand:
            raise NoValue("an expression is missing" if not self.text.strip() else "the expression ends too early")
        self.reduce(1)
        if self.waiting:
            raise NoValue(f"'{self.waiting[-1].closing}' is missing")
        return self.made

    def cast(self) -> bool:
        """Read `(float)` or `(float*)`, if it comes next."""
        found = CAST.match(self.text, self.at)
        if found is None:
            return False
        words, stars = found["words"], found["stars"].count("*")
        type = type_called(words)
        if stars:
            step: Step = partial(pointing, words, stars)
        elif type is not None:
            step = partial(converted, type)
        else:
            return False
        self.at = found.end()
        self.waiting.append(Waiting(UNARY, step))
        return True

    def token(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The next token: of an operand, or of what may stand behind one."""
        if not self.text[self.at :].strip():
            return None
        found = pattern.match(self.text, self.at) or TOKEN.match(self.text, self.at)
        if found is None:
            raise NoValue(f"'{self.text[self.at :].strip()}' is not understood")
        self.at = found.end()
        return found

    def operand(self, token: re.Match[str]) -> bool:
        """Read a token where an operand is expected; is one still expected?"""
        if token["load"]:
            self.waiting.append(Waiting(0, partial(load, *space_and_type(token["load"])), "]"))
        elif token["number"]:
            self.made.append(partial(constant, literal(token["number"])))
            return False
        elif token["name"]:
            if token["name"] in LITERALS:
                self.made.append(partial(constant, (s32, LITERALS[token["name"]])))
            else:
                self.made.append(partial(name, token["name"], token["component"]))
            return False
        elif token["operator"] == "(":
            self.waiting.append(Waiting(0, None, ")"))
        elif token["operator"] in PREFIX:
            self.waiting.append(Waiting(UNARY, PREFIX[token["operator"]]))
        else:
            raise NoValue(f"a value is missing before '{token['operator']}'")
        return True

    def operator(self, token: re.Match[str]) -> bool:
        """Read a token behind an operand; is an operand expected next?"""
        if token.re is OPERATOR and token["access"]:
            self.made += [dereference] if token["access"] == "->" else []
            self.made.append(partial(member, token["member"]))
            return False
        word = token["operator"]
        if word in ("]", ")"):
            self.reduce(1)
            if not self.waiting or self.waiting[-1].closing != word:
                raise NoValue(f"'{word}' closes nothing")
            step = self.waiting.pop().step
            self.made += [step] if step is not None else []
            return False
        if word == "[":
            self.waiting.append(Waiting(0, index, "]"))
        elif word in ("&&", "||"):
            self.reduce(PRECEDENCE[word])
            if sum(each.right >= 0 for each in self.waiting) == MOST_GUARDS:
                raise NoValue(f"more than {MOST_GUARDS} `&&` and `||` stand within each other")
            self.waiting.append(Waiting(PRECEDENCE[word], None, right=len(self.made), is_and=word == "&&"))
        elif word in BINARY:
            self.reduce(PRECEDENCE[word])
            step = partial(in_address if self.is_in_address else binary, BINARY[word])
            self.waiting.append(Waiting(PRECEDENCE[word], step))
        else:
            raise NoValue(f"an operator is missing before '{token[0].strip()}'")
        return True

    @property
    def is_in_address(self) -> bool:
        """Is what is being read an address in `.shared.f32[…]`, and not an index or the operand of an operator of C?"""
        brackets = [each for each in self.waiting if each.closing]
        around = next((each for each in reversed(brackets) if each.closing == "]"), None)
        return around is not None and around.step is not index

    def reduce(self, binds: int) -> None:
        """End the operators that wait and bind at least so strongly."""
        while self.waiting and self.waiting[-1].binds >= binds:
            ended = self.waiting.pop()
            if ended.right >= 0:
                self.made[ended.right :] = [partial(guarded, tuple(self.made[ended.right :]), ended.is_and)]
            self.made += [ended.step] if ended.step is not None else []


C_TYPES = {
    "int": "s32", "bool": "u8", "char": "s8", "char unsigned": "u8", "short": "s16", "short unsigned": "u16",
    "unsigned": "u32", "long": "s64", "long unsigned": "u64", "long long": "s64", "long long unsigned": "u64",
    "size_t": "u64", "float": "f32", "double": "f64", "half": "f16", "__half": "f16", "__nv_bfloat16": "bf16",
    **{f"{sign}int{bits}_t": f"{sign or 's'}{bits}" for sign in ("u", "") for bits in (8, 16, 32, 64)},
}  # fmt: skip
"""Types of C by their words in the order of the alphabet, without those that change nothing, as `int` in `long int`."""


def type_called(words: str) -> Type | None:
    """The type of a name of PTX (`u32`, `.f16`) or of C (`unsigned int`)."""
    if words.removeprefix(".") in Type.named:
        return Type.named[words.removeprefix(".")]
    known = [word for word in words.split() if word not in {"const", "volatile"}]
    told = sorted(word for word in known if word not in {"int", "signed"}) or known[:1]
    found = C_TYPES.get(" ".join("int" if word == "signed" else word for word in told))
    return None if found is None else Type.named[found]


def space_and_type(text: str) -> tuple[Space, Type]:
    """`.shared.f32`: where memory is read, and as what; without a space the address is generic."""
    *spaces, word = text.removeprefix(".").split(".")
    type = Type.named.get(word)
    if type is None or type is pred:
        raise NoValue(f"there is no type '.{word}' in memory; {did_you_mean(word, Type.named) or 'write .shared.f32[…]'}")
    try:
        return (Space(spaces[0]) if spaces else Space.GENERIC), type
    except ValueError:
        others = did_you_mean(spaces[0], SPACES) or f"there are {' '.join(SPACES)}"
        raise NoValue(f"there is no state space '.{spaces[0]}'; {others}") from None


SPACES = ("global", "shared", "local", "const", "param", "shared::cluster")


def literal(text: str) -> tuple[Type, float]:
    """A number, and its type as in C: .s32 where it fits, then .s64 and .u64."""
    if text[:2].lower() in ("0f", "0d") and len(text) in (10, 18):
        bits, width = float_bits(text)
        held = f32 if width == 32 else f64
        return held, np.array([bits], f"u{width // 8}").view(arrays.dtype(held))[0]
    found = integer(text)
    if found is not None and found[0] >= 1 << 64:
        raise NoValue(f"'{text}' has more than 64 bits")
    if found is not None:
        value, unsigned = found
        return next(type for type in ((u32, u64) if unsigned else (s32, s64, u64)) if value <= type.range[1]), value
    try:
        return f64, float(text)
    except ValueError:
        raise NoValue(f"'{text}' is no number") from None


# ── steps ───────────────────────────────────────────────────────────────────────────────


def constant(value: tuple[Type, float], view: View, stack: list[Item]) -> None:
    """A literal."""
    type, number = value
    stack.append(Values(type, view.spread(arrays.const(type, number))))


def name(text: str, component: str | None, view: View, stack: list[Item]) -> None:
    """A register, a variable or a special register."""
    stack.append(view.named(text, component))


def load(space: Space, type: Type, view: View, stack: list[Item]) -> None:
    """`.shared.f32[address]`."""
    stack.append(MemoryPlace(space, address_of(view, stack.pop()), type))


def index(view: View, stack: list[Item]) -> None:
    """`a[n]`."""
    number = integers(view.read(stack.pop()))
    stack.append(view.indexed(stack.pop(), number.astype(np.int64)))


def address(view: View, stack: list[Item]) -> None:  # noqa: ARG001 - a Step
    """`&a`."""
    place = stack.pop()
    if not isinstance(place, MemoryPlace):
        raise NoValue("only memory has an address")
    if isinstance(place.source, BitField):
        raise NoValue("a bit field has no address")
    target = place.source if not place.dimensions or isinstance(place.source, ArrayOf | Structure) else None
    stack.append(Values(u64, place.address, Pointer(target, space=place.space)))


def dereference(view: View, stack: list[Item]) -> None:
    """`*p`: of a pointer, of an array, or of a parameter that points to an array."""
    place = stack.pop()
    points = isinstance(place.source, Pointer) or not isinstance(place, MemoryPlace)
    known = isinstance(place, MemoryPlace) and (place.dimensions or place.variable is not None)
    stack.append(view.indexed(place, view.spread(np.int64(0))) if known and not points else view.pointed(place))


def converted(type: Type, view: View, stack: list[Item]) -> None:
    """`(float)a`: the value, as C converts it."""
    values = view.read(stack.pop())
    if type.is_packed or type.bits > 64 or (type.is_float and type.bits < 16):
        raise NoValue(f"no value is converted to a .{type.name}: `*({type.name}*)…` shows bits in memory as one")
    stack.append(Values(type, promoted(values).raw.astype(arrays.dtype(type))))


def pointing(words: str, stars: int, view: View, stack: list[Item]) -> None:
    """`(float*)a`, `(Node*)a`: an address, in its space where it is one of a variable, else a generic one."""
    values, type = view.read(stack.pop()), type_called(words)
    target = view.type_called(words.removeprefix("struct ")) if type is None else Number(type)
    if target is None and words != "void":
        raise NoValue(f"there is no type '{words}' here; write a type of PTX, as f32, or of C, as float")
    for _ in range(stars - 1):
        target = Pointer(target)
    space = values.source.space if isinstance(values.source, Pointer) else Space.GENERIC
    stack.append(Values(u64, integers(values).astype(np.uint64), Pointer(target, space=space)))


def member(name: str, view: View, stack: list[Item]) -> None:
    """`s.m`."""
    stack.append(view.member(stack.pop(), name))


def address_of(view: View, item: Item) -> Array:
    """An address in brackets: a variable stands for its own, as in PTX."""
    if stands_for_address(item):
        return item.address
    return integers(view.read(item)).astype(np.uint64)


def stands_for_address(item: Item) -> TypeGuard[MemoryPlace]:
    """Is it a variable, which stands in brackets for its address?  A parameter stands for what it holds."""
    return isinstance(item, MemoryPlace) and item.variable is not None and item.space is not Space.PARAM


def integers(values: Values) -> Array:
    """The values, which are integers."""
    if values.type.is_float or values.type.bits > 64:
        raise NoValue(f"an integer is needed, not a .{values.type.name}")
    return values.raw


def minus(view: View, stack: list[Item]) -> None:
    """`-a`."""
    values = promoted(view.read(stack.pop()))
    stack.append(Values(values.type, np.zeros_like(values.raw) - values.raw))


def plus(view: View, stack: list[Item]) -> None:
    """`+a`."""
    stack.append(promoted(view.read(stack.pop())))


def complement(view: View, stack: list[Item]) -> None:
    """`~a`."""
    values = promoted(view.read(stack.pop()))
    integers(values)
    stack.append(Values(values.type, ~values.raw))


def negation(view: View, stack: list[Item]) -> None:
    """`!a`."""
    values = promoted(view.read(stack.pop()))
    stack.append(Values(s32, (values.raw == 0).astype(np.int32)))


def promoted(values: Values) -> Values:
    """An operand as C converts it: to 32 bits at least, floats to f64."""
    type = values.type
    if type.is_float and not type.is_packed and type.bits >= 16:
        return Values(f64, values.raw.astype(np.float64))
    if type.bits > 64:
        raise NoValue(f"a .{type.name} takes no part in arithmetic")
    if type is pred or type.bits < 32:
        return Values(s32, values.raw.astype(np.int32))
    wide = next(each for each in (s32, u32, s64, u64) if each.bits == type.bits and each.is_signed == type.is_signed)
    return Values(wide, values.raw.astype(arrays.dtype(wide)))


Operation: TypeAlias = tuple[Callable[[Array, Array], Array], bool, bool]
"""An operation over arrays of one dtype; does it take floats; is its result a truth value?"""


def in_address(operation: Operation, view: View, stack: list[Item]) -> None:
    """An operator in the brackets of `.shared.f32[buf + 8]`, where a variable stands for its address in bytes, as in PTX."""
    stack[-2:] = [Values(u64, item.address) if stands_for_address(item) else item for item in stack[-2:]]
    binary(operation, view, stack)


def binary(operation: Operation, view: View, stack: list[Item]) -> None:
    """An operator with two operands; an array is a pointer to its first element (C17 6.3.2.1)."""
    compute, takes_floats, is_truth = operation
    second, first = view.read(decayed(stack.pop())), view.read(decayed(stack.pop()))
    if not is_truth and (isinstance(first.source, Pointer) or isinstance(second.source, Pointer)):
        stack.append(moved(compute, first, second))
        return
    right, left = promoted(second), promoted(first)
    type = f64 if f64 in (left.type, right.type) else max(left.type, right.type, key=(s32, u32, s64, u64).index)
    if type is f64 and not takes_floats:
        raise NoValue("that operator takes integers")
    held = arrays.dtype(type)
    found = compute(left.raw.astype(held), right.raw.astype(held))
    stack.append(Values(s32, found.astype(np.int32)) if is_truth else Values(type, found))


def decayed(item: Item) -> Item:
    """An operand; of an array the address of its first element."""
    if not isinstance(item, MemoryPlace) or not item.dimensions or isinstance(item.source, Structure):
        return item
    element = item.element(np.zeros(len(item.address), np.int64))
    target = element.source if element.source is not None else Number(element.type)
    for count in () if isinstance(target, ArrayOf) else reversed(element.dimensions):
        target = ArrayOf(target, count)
    return Values(u64, item.address, Pointer(target, space=item.space))


def moved(compute: Callable[[Array, Array], Array], left: Values, right: Values) -> Values:
    """`p + n`, `n + p`, `p - n` and `p - q`, in elements of what the pointers point to; in bytes where that has no type."""
    if isinstance(right.source, Pointer) and compute is np.add:
        left, right = right, left
    if compute not in {np.add, np.subtract} or not isinstance(left.source, Pointer):
        raise NoValue("pointers take part in sums and differences alone")
    size = left.source.target.size if left.source.target is not None else 1
    start = left.raw.astype(np.int64)
    if isinstance(right.source, Pointer):
        if compute is np.add:
            raise NoValue("pointers cannot be added to each other")
        return Values(s64, arrays.div(start - right.raw.astype(np.int64), np.full_like(start, size or 1)))
    distance = integers(promoted(right)).astype(np.int64) * size
    return Values(left.type, compute(start, distance).astype(np.uint64), left.source)


def divided(a: Array, b: Array) -> Array:
    """The quotient."""
    return a / b if a.dtype.kind == "f" else arrays.div(a, b)


def guarded(right: Sequence[Step], is_and: bool, view: View, stack: list[Item]) -> None:  # noqa: FBT001 - a Step, by `partial`
    """`a && b`, `a || b`: the steps of b run for the lanes alone for which a does not decide."""
    found = promoted(view.read(stack.pop())).raw != 0
    open_ = found if is_and else ~found
    if open_.any():
        some, own = replace(view, lanes=view.lanes[open_]), list[Item]()
        for step in right:
            step(some, own)
        found = found.copy()
        found[open_] = promoted(some.read(own[-1])).raw != 0
    stack.append(Values(s32, found.astype(np.int32)))


PREFIX: dict[str, Step] = {
    "-": minus, "+": plus, "~": complement, "!": negation, "&": address, "*": dereference,
}  # fmt: skip
BINARY: dict[str, Operation] = {
    "|": (np.bitwise_or, False, False), "^": (np.bitwise_xor, False, False), "&": (np.bitwise_and, False, False),
    "==": (np.equal, True, True), "!=": (np.not_equal, True, True),
    "<": (np.less, True, True), "<=": (np.less_equal, True, True), ">": (np.greater, True, True),
    ">=": (np.greater_equal, True, True),
    "<<": (arrays.shl, False, False), ">>": (arrays.shr, False, False),
    "+": (np.add, True, False), "-": (np.subtract, True, False),
    "*": (np.multiply, True, False), "/": (divided, True, False), "%": (arrays.rem, False, False),
}  # fmt: skip


def assigned(place: Place, values: Values) -> Values:
    """Values as a place takes them: numbers by value, bits of another type where both have no numbers."""
    type = place.type
    if type is pred:
        return Values(pred, values.raw != 0)
    if type.is_float == values.type.is_float or not (type.kind == "b" and values.type.is_float):
        return Values(type, values.raw.astype(arrays.dtype(type)))
    held = arrays.dtype(Type.named[f"f{type.bits}"]) if type.bits in (32, 64) else None
    if held is None:
        raise NoValue(f"a .{type.name} takes an integer")
    return Values(type, values.raw.astype(held).view(arrays.dtype(type)))


__all__ = ["Expression", "address_of", "assigned", "parse"]
