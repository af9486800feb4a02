"""Operands that do not fit: the problems of their types, and what ptxas says of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, pred, u32, u64
from ptxvm.analysis import remedies
from ptxvm.analysis.operand_matching import match_operands
from ptxvm.analysis.ptxas_missing import lines_of
from ptxvm.diagnostics.ptxas import MISMATCH, NO_ARITHMETIC, UNSAID
from ptxvm.isa.access import base_of
from ptxvm.isa.model import Decoded, Problem
from ptxvm.isa.notation import Form
from ptxvm.isa.operand_types import Shape, is_vector_register, problem
from ptxvm.isa.special_registers import lookup
from ptxvm.isa.targets import Need

UNTOLD = frozenset({"bar", "barrier", "bfe", "bfi", "bmsk", "mov", "redux"})
"""Opcodes of which ptxas does not say that a vector is no operand."""
OF_NO_TYPE = frozenset({"nanosleep", "redux"})
"""Opcodes of which it does not say that an operand must be a register."""
ARITHMETIC = frozenset({"function", "label"})
"""Names that are no numbers."""
NO_RESULT = {"integer": "Result register required", "sink": "Result discard mode is not allowed"}
"""What ptxas says where nothing is wrong but what stands for the result."""
SYMBOL = "{symbol}"
"""Stands in what ptxas says for the name of an operand, which a shape does not have."""
READ_TYPES = frozenset({".bf16", ".bf16x2", ".tf32"})
"""Types whose target ptxas looks at while it reads."""
READ_SPECIAL = frozenset({"mov", "cvt"})
"""Opcodes whose sources may be special registers, so that ptxas says of a result that it is read-only."""
COMPARED = frozenset({"ld", "st"})
"""Accesses whose type ptxas compares with that of their variable."""
LOADS = COMPARED | {"ldu"}
"""Opcodes of which it says besides that a predicate is no operand."""


def operand_problems(decoded: Decoded, named: dict[str, Shape], at: Mapping[str, tuple[int, ...]]) -> list[Problem]:
    """The problems of the operands with their types; `at` has the place of each."""
    destinations = set(decoded.destinations()) - decoded.of.updates
    typed = [(name, shape, decoded.type_of(name)) for name, shape in named.items()]
    wrong = [
        (name, shape, type, said)
        for name, shape, type in typed
        if (said := problem(shape, type, decoded.operand_type(name), destination=name in destinations))
    ]
    of_types = [each for each in wrong if not is_special(each[1], each[2])]
    result = of_types[0][1] if len(wrong) == 1 and of_types and wrong[0][0] in destinations else None
    kind = "" if result is None else "integer" if is_no_result(result) else result.kind
    refusal = NO_RESULT.get(kind, "Arguments mismatch") if of_types else "Special register argument not allowed"
    ptxas, besides = f"{refusal} for instruction '{decoded.opcode}'", ""
    if not of_types and decoded.opcode in READ_SPECIAL and any(name in destinations for name, *_ in wrong):
        ptxas = "Read-only special register cannot be destination argument"
    if len(wrong) == 1:
        name, shape, type, _ = wrong[0]
        lines = of_one_operand(decoded, name, shape, type, at)
        ptxas, besides = (lines[0], "\n".join(lines[1:])) if lines else (ptxas, besides)
    return [
        Problem("P0304", said, operand=name, help=remedies.remedy(shape, type), ptxas=ptxas, consequence=besides)
        for name, shape, type, said in of_types or wrong
    ]


def is_no_result(shape: Shape) -> bool:
    """Is it a sum, or a vector with a number?"""
    if shape.kind == "vector":
        return any(each.kind in {"integer", "float"} for each in shape.items)
    return shape.kind == "register" and bool(shape.items)


def of_one_operand(
    decoded: Decoded, name: str, shape: Shape, type: Type | None, at: Mapping[str, tuple[int, ...]]
) -> list[str]:
    """What ptxas says where one operand alone is wrong, if it has words of its own for that."""
    opcode = decoded.opcode
    if shape.kind in ARITHMETIC and shape.detail == "offset" and opcode != "bra":
        return [f"{NO_ARITHMETIC} {shape.kind} '{SYMBOL}' in arithmetic expressions"]
    if opcode == "bra":
        return no_label(shape, at[name][0])
    if has_other_sizes(shape):
        return ["Incompatible elements of vector expression"]
    if is_vector_of(shape, type) and decoded.of.effects <= {"cc"} and opcode not in UNTOLD:
        return [f"Vector operand is not allowed for instruction '{opcode}'"]
    if opcode != "mov" and is_variable_of(shape, type) and is_of_its_type(decoded, name):
        return [not_a_register(at[name][0], opcode)]
    if (base := register_of_address(shape)) is not None:
        said = f"Illegal to use symbol '{SYMBOL}' of type {base} as address operand. Use integer or bit only."
        return [said, *[illegal_type(opcode)] * (base is pred and opcode in LOADS)]
    if opcode in LOADS and shape.kind == "address" and len(shape.items) == 1:
        said = f"Illegal to use symbol '{SYMBOL}' of type unexpected as address operand. Use integer or bit only."
        of_kinds = {"function": [said, illegal_type(opcode), illegal_type(opcode)], "label": [illegal_type(opcode)]}
        return of_kinds.get(base_of(shape).kind, [])
    return []


def is_compared(decoded: Decoded) -> bool:
    """Does ptxas compare the type of an access with that of its variable?"""
    return decoded.opcode in COMPARED


def illegal_type(opcode: str) -> str:
    """What ptxas says of an address that is none."""
    return f"Illegal operand type to instruction '{opcode}'"


def no_label(shape: Shape, at: int) -> list[str]:
    """What it says where a label must stand: it takes the operand for a number before it looks at what it is."""
    said = f"Label expected for argument {at} of instruction 'bra'"
    base = register_within(shape) if shape.kind == "address" and len(shape.items) == 1 else shape
    if base.kind in {"integer", "function", "table"}:
        return [said]
    is_number = base.kind == "variable" and base.type is not None and not base.type.is_float and not base.detail
    if base.kind == "label" or is_number:
        return [said, not_a_register(at, "bra")]
    is_word = base.kind == "register" and base.type is not None and base.type.kind in "bsu" and base.type.bits in {32, 64}
    return [said] if is_word and base.detail is None else []


def has_other_sizes(shape: Shape) -> bool:
    """Is it a vector of registers of several sizes?"""
    types = {each.type.bits for each in shape.items if each.kind == "register" and each.type is not None}
    return shape.kind == "vector" and len(types) > 1


def beside_operands(found: list[Problem], others: Sequence[Problem]) -> list[Problem]:
    """The problems of operands and all others: ptxas looks at the others where the operands have their types."""
    if is_mismatch(found):
        others = [replace(each, ptxas=UNSAID, consequence="") for each in others]
    return [*found, *others]


def beside_mismatch(found: Sequence[Problem], demands: Sequence[Problem]) -> list[Problem]:
    """What an instruction needs: where the operands have not its types, ptxas says that of types alone that it reads."""
    if not is_mismatch(found):
        return list(demands)
    return [each if each.word in READ_TYPES else replace(each, ptxas=UNSAID) for each in demands]


def is_mismatch(found: Sequence[Problem]) -> bool:
    """Is there an operand of another type?"""
    return any(each.ptxas.startswith(MISMATCH) for each in found)


def address_for_register(decoded: Decoded, shapes: Sequence[Shape], found: Problem) -> Problem:
    """The problem of an address where a register stands; ptxas says so where a register of the type in it would fit.

    Of what else is wrong then it names what is wrong with the modifiers.
    """
    at, opcode = found.number, decoded.opcode
    if at is None or found.code != "P0303" or shapes[at].kind != "address" or len(shapes[at].items) > 1:
        return found
    register = register_within(shapes[at])
    placed = match_operands(decoded.form, opcode, [*shapes[:at], register, *shapes[at + 1 :]], str)
    if isinstance(placed, Problem) or register.kind != "register":
        return found
    name = next(name for name, path in placed.at.items() if path[0] == at)
    judged = Decoded(decoded.of, decoded.form, {**decoded.bound, **placed.marks}, placed.named)
    if operand_problems(judged, placed.named, placed.at) or not is_of_its_type(judged, name):
        return found
    first, *more = [*(line for each in judged.problems() for line in lines_of(each)), not_a_register(at, opcode)]
    return replace(found, ptxas=first, consequence="\n".join(more))


def register_within(address: Shape) -> Shape:
    """What ptxas takes for an address where no address can stand: its register, a word, or for a number a long word."""
    base = base_of(address)
    words = {"variable": u32, "integer": u64}
    return Shape("register", words[base.kind]) if base.kind in words else base


def is_of_its_type(decoded: Decoded, operand: str) -> bool:
    """Has an operand the type that the head names, and not one that is always the same?"""
    type = decoded.operand_type(operand).type
    is_named = type == pred.name or type not in Type.named or any(set(slot.choices) == {type} for slot in decoded.form.slots)
    return is_named and decoded.form.opcode not in OF_NO_TYPE


def is_variable_of(shape: Shape, type: Type | None) -> bool:
    """Is it the name of a variable where a number of a type stands?  One of integers stands for no float."""
    if shape.kind != "variable" or shape.type is None or type is None or type is pred or shape.detail:
        return False
    return not (type.is_float and shape.type.kind in ("s", "u"))


def not_a_register(at: int, opcode: str) -> str:
    """What ptxas says of an operand that has the right type and is no register."""
    return f"Argument {at} of instruction '{opcode}': must be register"


def is_vector_of(shape: Shape, type: Type | None) -> bool:
    """Is it a vector of registers that would each fit a type that is no bits alone?"""
    items = (shape._replace(detail=None),) if is_vector_register(shape) else shape.items if shape.kind == "vector" else ()
    if type is None or type is pred or type.kind == "b":
        return False
    types = [each.type for each in items if each.kind == "register" and each.type is not None]
    fitting = [each for each in types if each.bits == type.bits and (each.kind == "b" or each.is_float == type.is_float)]
    return bool(items) and len(fitting) == len(items)


def register_of_address(shape: Shape) -> Type | None:
    """The type of the register that an address is relative to, where it is none of an address."""
    base = base_of(shape) if shape.kind == "address" and len(shape.items) == 1 else None
    if base is None or base.kind != "register" or base.type is None or base.detail:
        return None
    return base.type if base.type is pred or base.type.is_float else None


def is_special(shape: Shape, type: Type | None) -> bool:
    """Is it a special register of the size of a type?  ptxas refuses it where all operands have their types."""
    if shape.kind != "special" or shape.type is None or type is None:
        return False
    return shape.type.bits == type.bits


def needs_of_registers(named: dict[str, Shape]) -> list[tuple[str, Need]]:
    """What the special registers need: those that stand alone, and those within braces and brackets."""
    items = [item for shape in named.values() for item in ((shape,) if shape.kind == "special" else shape.items)]
    registers = [(item.detail, lookup(item.detail)) for item in items if item.kind == "special"]
    return [(f"%{name}", register.need) for name, register in registers if register is not None]


UNIFIED = (1,)
"""The path of the operand that may have `.unified`: what is loaded from stands behind the result."""


def misplaced_unified(decoded: Decoded, named: dict[str, Shape], at: dict[str, tuple[int, ...]]) -> Iterator[Problem]:
    """The problems of `[a].unified`: it is of an address in `.global` to load from, of a variable that has it (PTX 5.4.8).

    Such a variable is for modules that are compiled apart, and refused where it is declared.
    """
    for name in (name for name, shape in named.items() if shape.kind == "address" and shape.detail == "unified"):
        if (
            base_of(named[name]).kind in ("variable", "special")
            or at[name] != UNIFIED
            or not loads_from_global(decoded.form, decoded.bound)
        ):
            said = "'.unified' is for variables with this attribute, which instructions load from"
            ptxas = f"Illegal use of attribute '.unified' for instruction '{decoded.opcode}'"
            yield Problem("P0303", said, operand=name, help="leave `.unified` out", ptxas=ptxas)


def loads_from_global(form: Form, bound: Mapping[str, str]) -> bool:
    """Is the first space of the instruction `.global`, or none, and its first operand no address of several parts?"""
    spaces = (bound[slot.name] for slot in form.slots if slot.is_space and slot.name in bound)
    return next(spaces, Space.GLOBAL) == Space.GLOBAL and not form.operands[0].items
