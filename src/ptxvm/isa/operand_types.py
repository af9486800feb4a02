"""Operand types: the shape of an operand against the type that the declaration gives (PTX 6.4, tables 23-25).

A shape is all that a check needs to know of an operand, so that equal shapes are checked once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, b32, f16, f16x2, f32, f32x2, f64, pred, u32
from ptxvm.isa.model import OperandType
from ptxvm.isa.special_registers import lookup
from ptxvm.named_tuple import NamedTuple

ShapeKind: TypeAlias = Literal[
    "register", "integer", "float", "variable", "special", "label", "function", "table", "prototype", "sink", "address",
    "vector", "group", "pair", "not", "negative", "component", "string", "offset", "unknown",
]  # fmt: skip
"""Operands as written: a `variable` is its address, `special` a register, `sink` is `_`, an `address` has brackets.

An `offset` is an address of two parts, and `unknown` a name that is not declared, which is reported elsewhere.
"""


class Shape(NamedTuple):
    """The shape of an operand as written.

    `type` is that of a register or variable; `items` the shapes inside, or what is added to a register; `value` an integer
    constant; `space` that of a variable; `detail` the width of a float literal, the component, the count of a vector
    register, `offset` for a variable with one, `bare` for an address that has no brackets, `unified` for one with that
    attribute.
    """

    kind: ShapeKind
    type: Type | None = None
    items: tuple[Shape, ...] = ()
    value: int | None = None
    space: Space = Space.GENERIC
    detail: Any = None  # its type follows from the kind


UNKNOWN = Shape("unknown")
SINK = Shape("sink")

IN_WORDS: dict[ShapeKind, str] = {
    "register": "a register",
    "integer": "an integer constant",
    "float": "a floating-point constant",
    "variable": "the address of a variable",
    "special": "a special register",
    "label": "a label",
    "function": "a function",
    "table": "a list of targets",
    "prototype": "a prototype",
    "sink": "'_'",
    "address": "an address in brackets",
    "vector": "a vector in braces",
    "group": "a list in parentheses",
    "pair": "a pair of destinations",
    "not": "a negated operand",
    "negative": "a negative operand",
    "component": "a part of a register",
    "string": "a string",
}


def in_words(shape: Shape) -> str:
    """How a message calls the operand."""
    if is_vector_register(shape):
        return f"a register of {shape.detail} elements"
    if shape.kind in ("register", "special") and shape.type is not None:
        return f"a {shape.type} register"
    return IN_WORDS.get(shape.kind, shape.kind)


def holds(register: Type, type: Type, *, wide: bool = False, bits: bool = False) -> bool:
    """May a register of one type hold a value of another?

    `.b` fits anything of its size, and a packed register any integers; packed values sit in nothing else; `.s` and `.u`
    mix, `.f` stays apart (PTX 9.2, table 24); `wide` lets the register be wider (table 25), `bits` ignores the sort.
    """
    if pred in (register, type):
        return register is type
    if register.bits != type.bits and not (wide and register.bits > type.bits):
        return False
    if bits or "b" in (register.kind, type.kind) or register is type:
        return True
    if type.is_packed or register.is_packed:
        return register.is_packed and not type.is_float
    return not (register.is_float or type.is_float)


def problem(shape: Shape, type: Type | None, spec: OperandType, *, destination: bool) -> str:
    """What is wrong with an operand of this shape where that type is expected; empty where nothing is."""
    own, type = type, judged(type, spec)
    if shape.kind == "function" and own is not type:
        return _mismatch(shape, own)
    check = CHECKS.get(shape.kind)
    if "plain" in spec.marks and not plain(shape, spec):
        subject = "a special register" if shape.kind == "special" else in_words(shape)
        return f"{subject} stands where one register or constant is needed"
    if check is None:
        return ""
    return check(shape, type, spec, destination)


def judged(type: Type | None, spec: OperandType) -> Type | None:
    """The type whose registers and constants may stand for the operand."""
    other = dict(spec.judged_as).get(type.name) if type else None
    return Type.named[other] if other else type


def plain(shape: Shape, spec: OperandType) -> bool:
    """Is it something that an arithmetic instruction takes as an operand?"""
    if shape.kind == "sink":
        return "sink" in spec.marks
    if shape.kind == "variable":
        return bool(shape.detail == "offset") and "numeric" not in spec.marks
    if shape.kind == "special":
        return "special" in spec.marks and not shape.items
    within_braces = shape.kind == "vector" or is_vector_register(shape)
    return not within_braces or "registers" in spec.marks


def is_vector_register(shape: Shape) -> bool:
    """Is it a vector register as a whole, which stands for its elements in braces (PTX 6.4.3)?"""
    return shape.kind == "register" and isinstance(shape.detail, int)


def _mismatch(shape: Shape, type: Type | None) -> str:
    wanted = "one of another kind" if type is None else f"a {type} operand"
    return f"{in_words(shape)} stands where {wanted} is needed"


def _register(shape: Shape, type: Type | None, spec: OperandType, destination: bool) -> str:
    marks = spec.marks
    if destination and shape.items:
        return "a sum cannot be a destination"
    if "any" in marks or ("loose" in marks and shape.type is not pred):
        return ""
    if type is None or "imm" in marks or shape.type is None:
        return _mismatch(shape, type) if "imm" not in marks else f"{in_words(shape)} stands where a constant is needed"
    if is_vector_register(shape):
        element = shape._replace(detail=None)
        return _vector(Shape("vector", items=(element,) * shape.detail), type, spec, destination)
    if shape.type.is_packed and type.kind != "b" and no_packed_ones(spec):
        return _mismatch(shape, type)
    if "untyped" in marks and shape.type is not type.as_bits:
        return _mismatch(shape, type.as_bits)
    if holds(shape.type, type, wide="wide" in marks, bits="bits" in marks):
        return ""
    return _mismatch(shape, type)


def no_packed_ones(spec: OperandType) -> bool:
    """Is the type of the operand always the same, and not that of the instruction, or does it exclude packed registers?"""
    return "scalar" in spec.marks or (spec.type in Type.named and "wide" not in spec.marks)


def _misplaced_constant(spec: OperandType, destination: bool) -> str:
    if destination:
        return "a constant cannot be a destination"
    return "a constant stands where a register is needed" if spec.marks & {"reg", "untyped"} else ""


def _integer(shape: Shape, type: Type | None, spec: OperandType, destination: bool) -> str:
    if misplaced := _misplaced_constant(spec, destination):
        return misplaced
    if "word" in spec.marks:
        return "an integer constant stands where a register is needed"
    if "any" in spec.marks:
        return ""
    if type is not None and not type.is_packed and (type.is_int or type is pred or "bits" in spec.marks):
        return ""
    return _mismatch(shape, type)


def _float(shape: Shape, type: Type | None, spec: OperandType, destination: bool) -> str:
    if misplaced := _misplaced_constant(spec, destination):
        return misplaced
    if "any" in spec.marks or (type is not None and type in (f32, f64)):
        return ""
    if type is not None and type.kind == "b" and type.bits == shape.detail:  # its bits
        return ""
    return _mismatch(shape, type)


def _variable(shape: Shape, type: Type | None, spec: OperandType, destination: bool) -> str:
    if destination or "reg" in spec.marks or "imm" in spec.marks:
        return _mismatch(shape, type)
    if "any" in spec.marks or (type is not None and type.is_int):
        return ""
    return _mismatch(shape, type)


def _special(shape: Shape, type: Type | None, spec: OperandType, destination: bool) -> str:
    if destination:
        return "a special register cannot be written"
    if "imm" in spec.marks:
        return f"{in_words(shape)} stands where a constant is needed"
    if "loose" in spec.marks or "coordinates" in spec.marks:
        return f"{in_words(shape)} stands where a register is needed"
    known = lookup(shape.detail)
    kinds = (shape.type, *known.legacy) if known else (shape.type,)
    wide = "wide" in spec.marks
    if "any" in spec.marks or (type is not None and any(t is not None and holds(t, type, wide=wide) for t in kinds)):
        return ""
    return _mismatch(shape, type)


def _named(kind: ShapeKind) -> Callable[[Shape, Type | None, OperandType, bool], str]:
    def check(shape: Shape, type: Type | None, spec: OperandType, destination: bool) -> str:
        return "" if {kind, "any"} & spec.marks and not destination else _mismatch(shape, type)

    return check


FLOATS = (f16, f16x2, f32, f64, f32x2)
"""The types of floats that are no alternate ones, which registers of bits hold."""

CONSTANTS = ("integer", "float")

NO_FUNCTION = frozenset({"reg", "imm", "word", "untyped", "loose", "registers", "mask"})
"""Marks of operands that are never the address of a function."""


def _function(shape: Shape, type: Type | None, spec: OperandType, destination: bool) -> str:
    """The address of a function may be an operand of the instruction's own type, whichever that is, as ptxas takes it."""
    if shape.detail == "offset":
        return "the address of a function has no offset"
    if destination or type is None or spec.marks & NO_FUNCTION:
        return _named("function")(shape, type, spec, destination)
    own = type.kind == "b" or not no_packed_ones(spec)
    return "" if own and (not type.is_float or type in FLOATS) else _named("function")(shape, type, spec, destination)


def _sink(shape: Shape, type: Type | None, spec: OperandType, destination: bool) -> str:
    return "" if destination or "sink" in spec.marks else "'_' is for results only"


def _vector(shape: Shape, type: Type | None, spec: OperandType, destination: bool) -> str:
    if type is None or "imm" in spec.marks:
        return _mismatch(shape, type)
    if any(item.kind == "function" for item in shape.items):
        return "a function stands within braces"
    if "split" in spec.marks:
        bits, rest = divmod(type.bits, len(shape.items))
        if rest or f"b{bits}" not in Type.named:
            return f"{len(shape.items)} elements do not make up a {type} operand"
        type = Type.named[f"b{bits}"]
    exact = "split" in spec.marks or not spec.marks & {"wide", "packed"}
    wrong = _part_within_braces(shape.items) or _special_within_braces(shape.items, type if exact else None)
    if wrong or "packed" in spec.marks:
        return wrong
    items = [item.items[0] if item.kind == "component" else item for item in shape.items]
    if misplaced := _misplaced_within_braces(items, type, spec):
        return misplaced
    indexed = "coordinates" in spec.marks and has_index(items, type)
    if wrong := disparity(items[indexed:]):
        return wrong
    if "coordinates" in spec.marks and are_bits(items, type):
        return ""
    items = items[indexed:]
    if not destination and (of_last_size(items, type) or ("numbers" in spec.marks and all(i.kind == "float" for i in items))):
        return ""
    as_bits = "strict" not in spec.marks and (any(sort_of(item) == BITS for item in items) or floats_of_several_types(items))
    floats = any(item.kind == "register" and is_float(item) and has_size(item, type.bits) for item in items)
    beside = partial(_element, type=type, spec=spec, destination=destination, as_bits=as_bits, beside_floats=floats)
    return next(filter(None, map(beside, items)), "")


def _element(item: Shape, type: Type, spec: OperandType, destination: bool, *, as_bits: bool, beside_floats: bool) -> str:
    """Within braces integers of the same size may hold floats, and beside bits all registers of their size are bits.

    A special register is bits there, and stands in results too; a predicate is a word, beside bits alone.  A floating-point
    constant beside a register of floats has that register's size.
    """
    of_integers = item.kind == "register" and item.type is not None and item.type.is_int and "strict" not in spec.marks
    constant = item.kind in CONSTANTS and not destination
    if constant and item.kind == "float" and beside_floats and "strict" not in spec.marks:
        return ""
    special = item.kind == "special" and item.type is not pred
    is_bits = special or (as_bits and (constant or item.kind in ("register", "special")))
    if has_size(item, type.bits) and (is_bits or (of_integers and type in (f16, f32, f64))):
        return ""
    return problem(item, type, spec, destination=destination and item.kind != "special")


def _part_within_braces(items: Sequence[Shape]) -> str:
    """What picks a part of a register there (`%r1.b0`), which ptxas ignores, picks it of a register of 32 bits."""
    parts = (item for item in items if item.kind == "component")
    wrong = next((part for part in parts if is_vector_register(part.items[0]) or not has_size(part.items[0], b32.bits)), None)
    return f"'.{wrong.detail}' picks a part of a register of 32 bits alone" if wrong else ""


def _special_within_braces(items: Sequence[Shape], exact: Type | None) -> str:
    """Special registers within braces are single ones, and of the `exact` type if there is one: no older type will do."""
    for item in items:
        if item.kind == "special" and item.items:
            return f"'%{item.detail}' is a vector: a component of it is needed"
        if item.kind == "special" and exact is not None and not has_size(item, exact.bits):
            return _mismatch(item, exact)
    return ""


def _misplaced_within_braces(items: Sequence[Shape], type: Type, spec: OperandType) -> str:
    if nested := next((item for item in items if is_vector_register(item)), None):
        return f"{in_words(nested)} stands within braces"
    if type.is_packed and type.is_float and items[0].kind in CONSTANTS:
        return _mismatch(items[0], type)
    if "registers" in spec.marks and all(item.kind == "integer" for item in items):
        return "integer constants alone stand where registers are needed"
    return ""


def of_last_size(items: Sequence[Shape], type: Type) -> bool:
    """Are all floating-point constants, the last of them of the type's size, where that one alone counts?

    ptxas takes them so where the operand is of bits, or where the constants have several sizes.
    """
    floats = all(item.kind == "float" for item in items)
    return floats and items[-1].detail == type.bits and (type.kind == "b" or len(types_of(items)) > 1)


def types_of(items: Sequence[Shape]) -> set[Type | None]:
    """The types of registers and floating-point constants in a vector."""
    return {Type.named[f"f{item.detail}"] if item.kind == "float" else item.type for item in items if item.kind in TYPED}


def floats_of_several_types(items: Sequence[Shape]) -> bool:
    """Are all floats, registers among them, and of several types?  ptxas looks only at the size of the registers then."""
    registers = any(item.kind == "register" for item in items)
    return registers and all(is_float(item) for item in items) and len(types_of(items)) > 1


TYPED = ("register", "float")
"""What has a type of its own as an element of a vector."""


def has_index(point: list[Shape], type: Type) -> bool:
    """Does a point begin with the index of a layer, which does not go with the coordinates behind it?"""
    return bool(disparity(point)) and has_size(point[0], type.bits) and not is_float(point[0])


def are_bits(point: list[Shape], type: Type) -> bool:
    """Are all elements of a point bits, as one of them is?"""
    return any(item.type is type.as_bits for item in point) and all(has_size(item, type.bits) for item in point)


def has_size(shape: Shape, bits: int) -> bool:
    """Is it a constant, or a register of that size?"""
    if shape.kind in ("register", "special"):
        return shape.type is not None and _size(shape.type) == bits
    return shape.kind in ("integer", "float")


def _size(type: Type) -> int:
    """The bits of an element in braces, where ptxas gives a predicate a word."""
    return b32.bits if type is pred else type.bits


def is_float(shape: Shape) -> bool:
    """Is it a floating-point constant or register?"""
    return shape.kind == "float" or (shape.type is not None and shape.type.is_float)


BITS = "bits"
"""The sort of an element that goes with those of all sorts."""


def sort_of(item: Shape) -> str:
    """What neighbours in a vector must have in common, unless one of them is bits."""
    if item.type is pred:
        return "predicates"
    if item.kind != "register" or item.type is None:
        return {"special": BITS, "integer": "integers", "float": "floats"}.get(item.kind, "")
    if item.type.is_packed:
        return str(item.type)
    return {"b": BITS, "f": "floats"}.get(item.type.kind, "integers")


def stand_apart(sorts: Sequence[str]) -> int:
    """How many neighbours in a vector have sorts that do not go together."""
    return sum(one != other and BITS not in (one, other) for one, other in pairwise(sorts))


def disparity(items: Sequence[Shape]) -> str:
    """Why elements cannot share a vector: they have one size, and no integers and floats stand side by side."""
    held = [item for item in items if item.kind in ("register", "special") and item.type is not None]
    if len({_size(item.type) for item in held if item.type is not None}) > 1:
        return "the elements of a vector have one size"
    apart = stand_apart([sort for item in items if (sort := sort_of(item))])
    return "the elements of a vector are integers or floats, not both" if apart else ""


def _address(shape: Shape, type: Type | None, spec: OperandType, destination: bool) -> str:
    """An address is a register of integers or bits, a variable, or a constant, and an offset (PTX 6.4.1).

    Where brackets may be left out, ptxas does not look at the type of the register.
    """
    if len(shape.items) > 1:
        return "an address of one part is needed"
    base = shape.items[0]
    if base.kind == "offset":
        base = base.items[0]
    if base.kind in ("register", "special"):
        if base.items:
            return f"'%{base.detail}' is a vector, and no address"
        fits = shape.detail == "bare" or is_address_register(base) or is_offset_register(base, type)
        return "" if fits else f"{in_words(base)} is not an address: integer or bit types only"
    if base.detail == "element" and "element" not in spec.marks:
        return "an address in brackets is needed"
    return "" if base.kind in ("variable", "integer") or shape.detail == "bare" else f"{in_words(base)} is not an address"


def is_address_register(shape: Shape) -> bool:
    """May the register hold an address?  It may have any width up to 64 bits."""
    return shape.type is not None and shape.type.kind in "bsu" and shape.type.bits <= 64 and not is_vector_register(shape)


def is_offset_register(shape: Shape, type: Type | None) -> bool:
    """May the register hold an address of 32 bits, which lies in no window of the generic space?"""
    return type is u32 and shape.type is f16x2


def _not(shape: Shape, type: Type | None, spec: OperandType, destination: bool) -> str:
    if shape.items[0].kind == "function":
        return "a function cannot be negated"
    return problem(shape.items[0], type, spec, destination=destination)


CHECKS: dict[str, Callable[[Shape, Type | None, OperandType, bool], str]] = {
    "register": _register,
    "integer": _integer,
    "float": _float,
    "variable": _variable,
    "special": _special,
    "label": _named("label"),
    "function": _function,
    "table": _named("table"),
    "prototype": _named("prototype"),
    "sink": _sink,
    "vector": _vector,
    "address": _address,
    "not": _not,
    "negative": _not,
}
