"""Arguments and results of calls as words: registers, elements of vectors, pieces of `.param` variables (PTX 7.1)."""

from __future__ import annotations

import struct
from typing import TypeAlias

from ptxvm.algebra.types import Type, b64
from ptxvm.analysis import constants
from ptxvm.analysis.program import Bound
from ptxvm.analysis.symbols import Register, Variable
from ptxvm.machine.initialise import float_bits
from ptxvm.syntax import tree

Formal: TypeAlias = Register | Variable
"""A parameter or a result of a function."""

Argument: TypeAlias = Register | Variable | tree.Operand
"""What a call passes: a register or `.param` variable, or the expression of a constant."""


def constant(node: tree.Operand, formal: Register | Variable, bound: Bound) -> tuple[Type, int] | None:
    """A constant argument as (type, bits); a vector takes 64 bits (ptxas 13.5).  None for an argument that is no constant."""
    vector = formal.count > 1 if isinstance(formal, Register) else formal.vector > 1
    type = b64 if vector else formal.type.as_bits
    if isinstance(node, tree.Float):
        return type, float_bits(node, type)
    if not isinstance(node, tree.Integer | tree.Unary | tree.Binary | tree.Cast | tree.Conditional):
        return None
    found = constants.evaluate(node, bound.scope.find)
    if isinstance(found, float):
        form = {16: "e", 32: "f", 64: "d"}[type.bits]
        return type, int.from_bytes(struct.pack(f"<{form}", found), "little")
    return (type, found) if isinstance(found, int) else None


def partition(sources: list[int], targets: list[int]) -> list[list[tuple[int, int, int]]]:
    """The source bytes of each target, in order, as (source, first byte, count)."""
    found: list[list[tuple[int, int, int]]] = []
    number = at = 0
    for target in targets:
        parts, wanted = [], target
        while wanted and number < len(sources):
            count = min(wanted, sources[number] - at)
            parts.append((number, at, count))
            wanted, at = wanted - count, at + count
            if at == sources[number]:
                number, at = number + 1, 0
        found.append(parts)
    return found
