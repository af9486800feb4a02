"""Traits of the warp-level matrix instructions: fragments as operands, tables of shapes (PTX 9.7.14).

Their forms name the slots alike: `.mnk` the shape, `.dtype`, `.atype`, `.btype` and `.ctype` the types of the matrices,
`.alayout` and `.blayout` the order of A and B.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Unpack

from ptxvm.algebra.ports import Peers, Warp
from ptxvm.algebra.types import Type, b32, b64, bf16, bf16x2, f16, f16x2, f32, f64, tf32, u32
from ptxvm.algebra.value import Value
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.isa.access import elements
from ptxvm.isa.fragments import Arithmetic, Fragment, Product
from ptxvm.isa.model import Condition, Declaration, Decoded, Instruction, Meaning, OperandType, Problem, instruction
from ptxvm.isa.operand_types import has_size, of_last_size, problem, types_of

Shapes = Mapping[str, Mapping[str, str]]
"""Types (`s8 u8`), then shapes (`m8n32k16 m32n8k16`), with what they need."""

Fragments = Callable[[Decoded], Mapping[str, Fragment]]
"""The fragments that the operands of an instruction are, by name."""


def all_lanes(warp: Warp) -> Value:
    """The mask of a whole warp."""
    return warp.lane.lift(0xFFFF_FFFF)


def one_word(value: Value | list[Value]) -> Value:
    """Metadata, or the scales of a lane: a register, which may stand in braces; ptxas takes more, and PTX says not what for."""
    if not isinstance(value, list):
        return value
    if len(value) > 1:
        raise Unsupported("metadata and scales in several registers", "PTX 9.7.14 has one")
    return value[0]


def selected(peers: Peers, payload: int, lane: Value, number: Value, threads: int) -> Value:
    """The word of one of `threads` lanes, or of as many lanes, that a number selects of each group of four."""
    found: Value = peers.at((lane & ~3 & 31) + number.to(u32) * threads + (lane & (threads - 1)), payload)
    return found


def of_matrices(
    syntax: str,
    *,
    slots: str,
    shapes: Shapes,
    type_of: Callable[[Decoded], Type],
    fragments: Fragments,
    loose: str = "",
    **declaration: Unpack[Declaration],
) -> Callable[[Meaning], Instruction]:
    """Declare an instruction on fragments: its own lines, and the `slots` that all of its kind have."""

    def declare(meaning: Meaning) -> Instruction:
        declared = instruction(syntax + slots, **declaration)(meaning)
        return of_shapes(shapes, type_of)(of_fragments(fragments, loose=loose)(declared))

    return declare


def product_of(parts: Mapping[str, Fragment], **how: Unpack[Arithmetic]) -> Product:
    """What an instruction on four fragments computes."""
    return Product(parts["a"], parts["b"], parts["c"], parts["d"], **how)


# ── shapes ──────────────────────────────────────────────────────────────────────────────


def shapes_of(table: Shapes, type: Type) -> dict[str, str]:
    """The shapes that a type has, with what they need."""
    return {
        shape: need
        for types, shapes in table.items()
        if type.name in types.split()
        for names, need in shapes.items()
        for shape in names.split()
    }


def of_shapes(table: Shapes, type_of: Callable[[Decoded], Type]) -> Callable[[Instruction], Instruction]:
    """The shape is one that the table has for the type, and needs what the table says."""

    def give(instruction: Instruction) -> Instruction:
        def shape_without_type(i: Decoded) -> Problem | None:
            """The shape is one of those that the type of the matrix has."""
            known = shapes_of(table, type_of(i))
            if i.mnk in known:
                return None
            wrong = f"there is no '.{i.mnk}' of {type_of(i)} here"
            others = f"{type_of(i)} has the shapes {', '.join(known)}" if known else ""
            said = f"Incorrect instruction type specified for {i.opcode} with shape '.{i.mnk}'"
            return Problem("P2701", wrong, word=i.mnk, help=others, ptxas=said)

        instruction.rule("P2701")(shape_without_type)
        for types, shapes in table.items():
            for names, need in shapes.items():
                for shape in names.split():
                    instruction.needs_when(need)(condition(types.split(), shape, type_of))
        return instruction

    return give


TOGETHER = frozenset("P2701 P2704 P2706 P2711 P2720 P2721 P2722 P2725 P2741 P2744 P3306".split())
"""The rules about matrices, types, shapes and orders that go together; the others are about operands, or warn."""


def variants_of_matrices(instruction: Instruction) -> Iterator[Decoded]:
    """The variants of a declaration whose matrix, types, shape and orders go together."""
    return filter(go_together, instruction.variants())


def go_together(i: Decoded) -> bool:
    """Is the shape of an instruction on matrices one that its types have, and do its types and orders go together?"""
    return not any(rule.check(i) for rule in i.of.rules if rule.code in TOGETHER)


def condition(types: list[str], shape: str, type_of: Callable[[Decoded], Type]) -> Condition:
    """Is it one of the types in the shape?"""

    def holds(i: Decoded) -> bool:
        return type_of(i).name in types and bool(i.mnk == shape)

    holds.__name__ = f".{shape} of {' or '.join(f'.{t}' for t in types)}"
    return holds


# ── fragments as operands ───────────────────────────────────────────────────────────────

HOLDERS = {f16: f16x2, bf16: bf16x2, tf32: tf32, f32: f32, f64: f64}
"""What a register has to hold, for fragments of floats."""


CONSTANTS = {"integer", "float"}
ALONE = {u32: {"integer"}, f32: {"float"}, f64: {"float"}, b64: CONSTANTS}
"""Which constants may be the whole of a vector, by what its registers hold; beside a register any may stand."""
NEVER_CONSTANT = ("s8", "u8", "b1")
"""Of these types no fragment is of constants alone, as ptxas 13.0 takes it."""


def of_fragments(fragments: Fragments, *, loose: str = "") -> Callable[[Instruction], Instruction]:
    """The operands are vectors of the registers of fragments; any sort of register holds a `loose` type."""

    def give(instruction: Instruction) -> Instruction:
        def number_of_registers(i: Decoded) -> Problem | None:
            """A fragment is a vector of as many registers as its type and shape need."""
            return first(i, fragments, wrong_number)

        def sort_of_registers(i: Decoded) -> Problem | None:
            """The registers of a fragment hold what its type needs."""

            def check(i: Decoded, operand: str, fragment: Fragment) -> Problem | None:
                held = holder(fragment, loose.split())
                return wrong_sort(i, operand, held, constant=fragment.type.name not in NEVER_CONSTANT)

            return first(i, fragments, check)

        instruction.rule("P2702")(number_of_registers)
        instruction.rule("P2703")(sort_of_registers)
        return instruction

    return give


def first(i: Decoded, fragments: Fragments, check: Callable[[Decoded, str, Fragment], Problem | None]) -> Problem | None:
    """The first problem of an operand, where the fragments are known at all."""
    found = (rule.check(i) for rule in i.of.rules if rule.code == "P2701")
    if any(isinstance(each, Problem) and each.code == "P2701" for each in found):
        return None
    return next((p for operand, fragment in fragments(i).items() if (p := check(i, operand, fragment))), None)


def wrong_number(i: Decoded, operand: str, fragment: Fragment) -> Problem | None:
    """Has the vector as many registers as the fragment?"""
    shape = i.shape(operand)
    vector = shape.kind == "vector" or (shape.kind == "register" and shape.detail)
    if vector and elements(shape) == fragment.registers:
        return None
    found = f"not {elements(shape)}" if vector else "in braces"
    said = f"the fragment of {fragment.type} is a vector of {fragment.registers} registers, {found}"
    expected = "Argument vector size mismatch" if vector else "Arguments mismatch"
    return Problem("P2702", said, operand=operand, ptxas=f"{expected} for instruction '{i.opcode}'")


def wrong_sort(i: Decoded, operand: str, type: Type, *, constant: bool = True) -> Problem | None:
    """Can each register hold the type, and if there is none, may all be `constant`?"""
    items = i.shape(operand).items or (i.shape(operand),)
    said = f"Arguments mismatch for instruction '{i.opcode}'"
    kinds = {item.kind for item in items}
    if type is f32 and kinds == {"float"} and "numbers" in i.operand_type(operand).marks:
        return None
    if kinds <= CONSTANTS and not of_last_size(items, type) and not (constant and kinds <= ALONE.get(type, set())):
        wrong = f"{items[0].kind} constants alone stand where {type} registers are needed"
        return Problem("P2703", wrong, operand=operand, ptxas=said)
    spec = OperandType(type.name if type.is_int else "")
    mixed = "register" in kinds and len(types_of(items)) > 1
    for item in items:
        if item.kind == "component" and operand not in i.destinations():
            wrong = "a part of a register stands where a whole one is needed"
            return Problem("P2703", wrong, operand=operand, ptxas=said)
        if mixed and has_size(item, type.bits):  # ptxas looks only at the size of registers of several types
            continue
        if item.kind == "register" and (wrong := problem(item, type, spec, destination=False)):
            return Problem("P2703", wrong, operand=operand, ptxas=said)
    return None


def double_moved(i: Decoded, operand: str, moved: str) -> Problem | None:
    """A constant of 64 bits (`1.5`, `0d…`) is no element of 32 bits, where ptxas makes an instruction `moved` of each."""
    if all(item.kind != "float" or item.detail == b32.bits for item in i.shape(operand).items):
        return None
    said = "a constant of 64 bits stands where one of 32 bits is needed, such as 0f3F800000"
    return Problem("P2703", said, operand=operand, ptxas=f"Arguments mismatch for instruction '{moved}'")


def holder(fragment: Fragment, loose: list[str]) -> Type:
    """What a register of the fragment has to hold."""
    return Type.named[f"b{fragment.register}"] if fragment.type.name in loose else HOLDERS.get(fragment.type, u32)
