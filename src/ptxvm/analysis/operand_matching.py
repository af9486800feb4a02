"""Operand matching: the name that each operand has in the syntax line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from ptxvm.algebra.types import pred
from ptxvm.dataclass import dataclass
from ptxvm.isa.model import Problem
from ptxvm.isa.notation import Form, Operand
from ptxvm.isa.operand_types import Shape, in_words


@dataclass(slots=True)
class OperandMatch:
    """The shape and the path of each named operand, and the modifiers that operands stand for.

    A path is the operand's number, then the number within a pair or address; `marks` binds slots that belong to operands:
    the part in `a.b0`, the sign in `-a`.
    """

    named: dict[str, Shape] = field(default_factory=dict)
    at: dict[str, tuple[int, ...]] = field(default_factory=dict)
    marks: dict[str, str] = field(default_factory=dict)

    def take(self, operand: Operand, shape: Shape, path: tuple[int, ...]) -> None:
        """Bind an operand that fits."""
        if shape.kind == "pair":
            for k, (name, item) in enumerate(zip((operand.name, operand.second), shape.items, strict=True)):
                self.bind(name, item, (*path, k))
        elif operand.items:
            for k, (inner, item) in enumerate(zip(present(operand, len(shape.items)), shape.items, strict=True)):
                self.bind(inner.name, item, (*path, k))
        elif shape.kind in ("negative", "component"):
            slot = operand.minus if shape.kind == "negative" else operand.selector
            self.marks[slot] = shape.detail or "-"
            self.take(operand, shape.items[0], path)
        else:
            self.bind(operand.name, shape, path)

    def bind(self, name: str, shape: Shape, path: tuple[int, ...]) -> None:
        """Bind one name to a shape and a path."""
        self.named[name], self.at[name] = shape, path


def match_operands(form: Form, opcode: str, shapes: Sequence[Shape], line: Callable[[], str]) -> OperandMatch | Problem:
    """Give each operand its name; optional operands are filled from the left.

    `opcode` has the words that belong to it, as `mul.wide`; `line` makes the form that a help shows.
    """
    shapes, outside = texture_inside(form, shapes)
    needed, most = form.counts
    if not needed <= len(shapes) <= most:
        said = count_message(form, len(shapes))
        ptxas = f"Arguments mismatch for instruction '{opcode}'"
        return Problem("P0302", said, help=f"the form is `{line()}`", ptxas=ptxas)
    match = OperandMatch()
    ptxas = f"Arguments mismatch for instruction '{opcode}'"
    for n, (operand, shape) in enumerate(zip(chosen(form.operands, len(shapes)), shapes, strict=True)):
        if operand.address and stands_without_brackets(operand, shape):
            shape = Shape("address", items=(shape,), detail="bare")  # noqa: PLW2901 - the brackets are implied
        if said := misplaced(operand, shape):
            help = brackets_help(form, operand, shape, line())
            first, besides = refusal(shape, n, opcode) or (ptxas, "")
            return Problem("P0303", said, operand=operand.name, help=help, ptxas=first, consequence=besides, number=n)
        match.take(operand, shape, (n if outside is None or n <= outside else n + 1,))
        if n == outside:
            parts = [each.name for each in operand.items]
            match.at.update(zip(parts, ((n,), *((n + 1, k) for k in range(len(parts) - 1))), strict=True))
    return match


def texture_inside(form: Form, shapes: Sequence[Shape]) -> tuple[Sequence[Shape], int | None]:
    """The shapes with a texture in the brackets that stands before them, as ptxas takes it: `a, [b, c]`; and its number."""
    for n, (operand, shape, behind) in enumerate(zip(form.operands, shapes, shapes[1:], strict=False)):
        if len(operand.items) == len(behind.items) + 1 and operand.items[1].optional and shape.kind in TEXTURES:
            return [*shapes[:n], Shape("address", items=(shape, *behind.items)), *shapes[n + 2 :]], n
    return shapes, None


def stands_without_brackets(operand: Operand, shape: Shape) -> bool:
    """Is it an address although it has no brackets: `a[2]`, or what ptxas takes where the form says so?"""
    if shape.kind == "not" and shape.items[0].type is not pred:
        return False
    return (shape.kind == "variable" and shape.detail == "element") or (operand.bare and shape.kind in BARE)


def chosen(operands: Sequence[Operand], count: int) -> list[Operand]:
    """The required operands and as many optional ones, from the left, as were given."""
    spare = count - sum(not o.optional for o in operands)
    return [o for o in operands if not o.optional or (spare := spare - 1) >= 0]


def present(operand: Operand, count: int) -> list[Operand]:
    """The given parts of `[a{, b}, c]`."""
    return chosen(operand.items, count)


def count_message(form: Form, found: int) -> str:
    """`add takes 3 operands, not 2`."""
    needed, most = form.counts
    wanted = str(needed) if needed == most else f"{needed} to {most}"
    return f"'{form.opcode}' takes {wanted} operand{'' if wanted == '1' else 's'} here, not {found}"


def misplaced(operand: Operand, shape: Shape) -> str:
    """The reason why an operand of this shape cannot stand there; empty if it can."""
    if shape.kind == "pair":
        if part := next((item for item in shape.items if item.kind == "component"), None):
            return _component(operand, part)
        return "" if operand.second else "a pair of destinations stands where one is expected"
    if operand.second and not operand.second_optional:
        return f"two destinations are expected: `{operand.name}|{operand.second}`"
    if operand.address and shape.kind != "address":
        return f"an address in brackets is expected, not {in_words(shape)}"
    if shape.kind == "address" and not operand.address:
        return "an address in brackets stands where none is expected"
    if operand.group != (shape.kind == "group"):
        return f"{in_words(shape)} stands where {'a list' if operand.group else 'none'} is expected"
    if operand.items:
        return parts_message(operand, shape)
    return UNFIT[shape.kind](operand, shape) if shape.kind in UNFIT else ""


def refusal(shape: Shape, number: int, opcode: str) -> tuple[str, str] | None:
    """What ptxas says of a sign, or of a part of a register, that an operand cannot have, and what besides."""
    if shape.kind == "negative":
        said = f"Operand negation not allowed for instruction '{opcode}'" if number else ONE_NEGATION
        return (said, "") if is_word(shape.items[0]) else ("Illegal argument to unary minus", said)
    if shape.kind == "not" and shape.items[0].type is not pred:
        return "Illegal argument to predicate negation", f"Arguments mismatch for instruction '{opcode}'"
    if shape.kind == "component":
        place = "source operand" if number else "destination"
        return f"Video selector is not allowed on {place} for instruction '{opcode}'", ""
    return None


def is_word(shape: Shape) -> bool:
    """Is it a register of 32 bits that may hold an integer?"""
    type = shape.type if shape.kind in ("register", "special") else None
    return type is not None and type.bits == WORD and not type.is_float


def brackets_help(form: Form, operand: Operand, shape: Shape, line: str) -> str | Callable[[str], str]:
    """The help for missing brackets, `[%rd1]`, or for brackets too many; otherwise the syntax line."""
    if operand.address and not operand.items and shape.kind in ADDRESSES:
        return "write `[{}]`".format
    if shape.kind == "address" and not any(each.address for each in form.operands):
        return f"'{form.opcode}' does not reach memory: `ld` loads a value into a register, `st` stores one"
    return f"the form is `{line}`"


def parts_message(operand: Operand, shape: Shape) -> str:
    """`[a, b]` with too few or too many parts."""
    needed = sum(not o.optional for o in operand.items)
    fits = needed <= len(shape.items) <= len(operand.items)
    return "" if fits else f"{len(shape.items)} parts stand where {needed} are expected"


def _negated(operand: Operand, _: Shape) -> str:
    return "" if operand.negatable == "!" else "this operand cannot be negated with '!'"


def _negative(operand: Operand, _: Shape) -> str:
    return "" if operand.minus else "this operand cannot be negated with '-'"


def _component(operand: Operand, shape: Shape) -> str:
    picked = f"'.{shape.detail}' picks a part of a register, which no part of this operand can be"
    return "" if operand.selector else picked


ADDRESSES = frozenset({"register", "special", "variable", "integer"})
"""What can stand in the brackets of an address."""

TEXTURES = frozenset({"register", "variable"})
"""What can be a texture before brackets."""

WORD = 32
ONE_NEGATION = "Operand negation limited to either (source A xor source B) or source C"
BARE = frozenset({"register", "variable", "integer", "float", "not"})
"""What ptxas takes for an address without brackets, where it does; the rules on addresses hold there too."""

UNFIT = {"not": _negated, "negative": _negative, "component": _component}
