"""Warp collectives as functions of their operands: what each lane gets of what the lanes that have come together gave.

They need no node, so that collectives of one form share a piece of code (`values.shared_meanings`) as arithmetic does.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import cache
from typing import Any, cast

from ptxvm.algebra.types import Type, pred, u32
from ptxvm.algebra.value import Value
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.lane_values import Affine, Raw, Varying, from_lanes, scalar_type
from ptxvm.engine.jit.values.algebra import LlvmAlgebra
from ptxvm.engine.operands import OperandValue
from ptxvm.isa.model import Decoded
from ptxvm.isa.special_registers import WARP


class Exchange:
    """The lanes of a collective; the member mask may differ between lanes."""

    def __init__(self, alg: LlvmAlgebra, members: Raw, payload: tuple[Value, ...]) -> None:
        self.alg, self.code, self.width = alg, alg.code, alg.width
        self.mask, self.payload = members, payload

    @property
    def members(self) -> Value:
        """The lanes that take part, as a mask."""
        return Value(self.alg, u32, self.mask)

    def ballot(self, payload: int = 0) -> Value:
        """The bits of a predicate."""
        self.code.one_warp()
        bits = self.code.mask_bits(self.alg.vector(pred, self.payload[payload].raw))
        return Value(self.alg, u32, self.alg.integer("and", u32, Affine(bits), self.mask))

    def at(self, lane: Value, payload: int = 0, *, meant: bool = False) -> Value:
        """The operand of another lane; the own operand where that lane takes no part."""
        value = self.payload[payload]
        if isinstance(value.raw, Affine) and not value.raw.terms:
            return value
        found = self._permuted(value.type, value.raw, lane.raw)
        return Value(self.alg, value.type, self.or_own(value.type, lane.raw, found, value.raw))

    def or_own(self, type: Type, lane: Raw, theirs: Raw, own: Raw) -> Raw:
        """The value of another lane, or the lane's own where that one takes no part."""
        if self.alg.known(u32, self.mask) == (0xFFFF_FFFF,) * self.width:
            return theirs
        bit = self.alg.integer("and", u32, self.alg.integer("shr", u32, self.mask, lane), Affine(1))
        return self.alg.select(type, self.alg.compare("ne", u32, bit, Affine(0)), theirs, own)

    def _permuted(self, type: Type, raw: Raw, lane: Raw) -> Raw:
        llvm, vector = scalar_type(type), self.alg.vector(type, raw)
        known = self.alg.known(u32, lane)
        if known is not None and (self.width > WARP or len({*known}) > 1):
            order = [n - n % WARP + (other & WARP - 1) for n, other in enumerate(known)]
            return Varying(self.code.shuffle(llvm, self.width, vector, "poison", order), loose=raw.loose)
        self.code.one_warp()
        if isinstance(lane, Affine) and not lane.terms:
            index = str(lane.base & 31) if isinstance(lane.base, int) else self.code.emit(f"and i32 {lane.base}, 31")
            return Affine(self.code.emit(f"extractelement {self.alg.vector_type(type)} {vector}, i32 {index}"), loose=raw.loose)
        index = self.alg.vector(u32, lane)
        if llvm == "i32" and cpu.has("avx512f"):
            return Varying(self._vpermi2(vector, index), loose=raw.loose)
        buffer = self.alg.buffer(self.alg.vector_type(type), 0)
        self.code.run(f"store {self.alg.vector_type(type)} {vector}, ptr {buffer}, align 64")
        offsets = self.code.emit(f"and <{self.width} x i32> {index}, splat (i32 31)")
        pointers = self.code.emit(f"getelementptr {llvm}, ptr {buffer}, <{self.width} x i32> {offsets}")
        return Varying(self.code.masked_gather(llvm, pointers, "splat (i1 true)"), loose=raw.loose)

    def _vpermi2(self, vector: str, index: str) -> str:
        """Any permutation of 32 words by two instructions."""
        half, name = "<16 x i32>", "llvm.x86.avx512.vpermi2var.d.512"
        self.code.unit.declare(name, half, half, half, half)
        low, high = (self.code.shuffle("i32", self.width, vector, "poison", list(range(n, n + 16))) for n in (0, 16))
        parts = []
        for first in (0, 16):
            chosen = self.code.shuffle("i32", self.width, index, "poison", list(range(first, first + 16)))
            parts.append(self.code.call(half, name, (half, low), (half, chosen), (half, high)))
        return self.code.concatenate("i32", parts, 16)


@cache
def lane_numbers(width: int) -> Raw:
    """The numbers of the lanes, each in its warp."""
    return from_lanes(u32, tuple(n % WARP for n in range(width)))


class Lanes:
    """The port `warp` for an instruction whose lanes have come together."""

    def __init__(self, alg: LlvmAlgebra) -> None:
        self.alg = alg

    @property
    def lane(self) -> Value:
        """The number of the lane."""
        return Value(self.alg, u32, lane_numbers(self.alg.width))

    def converge(self, members: Value, *payload: Value) -> object:
        """They have waited."""


def exchanged(i: Decoded, payload: int, members: Value, *values: Value) -> OperandValue:
    """The result of a collective, from its members, the values that they gave, and its operands."""
    alg, operands = cast("LlvmAlgebra", members.alg), iter(values[payload:])
    meaning = i.of.meaning(i, *(Lanes(alg) if name == "warp" else next(operands) for name in i.of.parameters))
    next(meaning)
    found: OperandValue = resumed(meaning, Exchange(alg, members.raw, values[:payload]))
    return found


def resumed(meaning: Generator[object, object, OperandValue], outcome: object) -> Any:  # noqa: ANN401 - results, as `meaning` gives them
    """The result of a meaning that waits once, when it is resumed with the outcome."""
    try:
        meaning.send(outcome)
    except StopIteration as end:
        return end.value
    raise Unsupported("an instruction that waits twice in the JIT")
