"""Conversions between f16 and f32 by integer operations, for processors without F16C (x86 before 2012)."""

from __future__ import annotations

import platform

from ptxvm.algebra.types import b16, b32, f32, u32
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.lane_values import Raw
from ptxvm.engine.jit.values.vector_algebra import VectorAlgebra

SIGN, INFINITY, LEAST = 0x8000, 0x7C00, 0x0400  # of f16: LEAST is the least normal number
BIAS = 112 << 23  # from the exponents of f16 to those of f32
QUIET = 1 << 22  # of a NaN of f32
UNIT, MAGIC = 103 << 23, 126 << 23  # 2**-24, what f16 counts subnormal numbers in; and 0.5, whose last bit is that


def native() -> bool:
    """Has the processor instructions for it?"""
    machine = platform.machine()
    return cpu.has("f16c") if machine in ("x86_64", "AMD64") else machine in ("aarch64", "arm64")


def widened(alg: VectorAlgebra, a: Raw) -> Raw:
    """An f16 as f32; a NaN is quiet and keeps its other bits."""
    on = WordOperations(alg)
    bits = alg.cast("resize", b16, b32, a, "rn")
    size = on.op("and", bits, SIGN - 1)
    moved = on.op("shl", size, 13)
    special = on.choose("gt", size, INFINITY, on.op("or", moved, 0x7F80_0000 | QUIET), on.op("or", moved, 0x7F80_0000))
    # a subnormal one is a small integer times a power of two
    counted = alg.floating("mul", f32, "rn", alg.cast("itof", u32, f32, size, "rn"), on.float(alg.const(u32, UNIT)))
    made = on.choose("lt", size, LEAST, on.bits(counted), on.op("add", moved, BIAS))
    made = on.choose("ge", size, INFINITY, special, made)
    return on.float(on.op("or", made, on.op("shl", on.op("and", bits, SIGN), 16)))


def narrowed(alg: VectorAlgebra, a: Raw) -> Raw:
    """An f32 as the nearest f16, ties to even."""
    on = WordOperations(alg)
    bits = on.bits(a)
    size = on.op("and", bits, 0x7FFF_FFFF)
    odd = on.op("and", on.op("shr", size, 13), 1)
    made = on.op("shr", on.op("sub", on.op("add", size, on.op("add", odd, 0xFFF)), BIAS), 13)
    # what is added to 0.5 is rounded as a subnormal f16 is
    counted = alg.floating("add", f32, "rn", on.float(size), on.float(alg.const(u32, MAGIC)))
    made = on.choose("lt", size, BIAS + (1 << 23), on.op("sub", on.bits(counted), MAGIC), made)
    made = on.choose("ge", size, 0x477F_F000, alg.const(u32, INFINITY), made)  # 65520 is as near to 65536 as to 65504
    rest = on.op("and", on.op("shr", size, 13), 0x3FF)
    made = on.choose("gt", size, 0x7F80_0000, on.op("or", rest, INFINITY | LEAST >> 1), made)
    return alg.cast("resize", b32, b16, on.op("or", made, on.op("and", on.op("shr", bits, 16), SIGN)), "rn")


class WordOperations:
    """Operations on words of 32 bits."""

    def __init__(self, alg: VectorAlgebra) -> None:
        self.alg = alg

    def op(self, name: str, x: Raw, y: Raw | int) -> Raw:
        """An operation on integers."""
        return self.alg.integer(name, u32, x, self.alg.const(u32, y) if isinstance(y, int) else y)

    def choose(self, how: str, x: Raw, y: int, one: Raw, other: Raw) -> Raw:
        """Select by a comparison."""
        return self.alg.select(u32, self.alg.compare(how, u32, x, self.alg.const(u32, y)), one, other)

    def float(self, bits: Raw) -> Raw:
        """Bits as an f32."""
        return self.alg.cast("view", b32, f32, bits, "rn")

    def bits(self, a: Raw) -> Raw:
        """The bits of an f32."""
        return self.alg.cast("view", f32, b32, a, "rn")
