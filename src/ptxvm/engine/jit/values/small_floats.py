"""Floats of eight bits as halves (f16), which hold them exactly (PTX 5.2.3)."""

from __future__ import annotations

from ptxvm.algebra.types import Type
from ptxvm.machine.tensor_core import FORMATS

BIAS = 15  # of f16
NAN = 0x7FFF
WIDENED = frozenset({"e4m3", "e5m2"})


def least_exponent(type: Type) -> int:
    """The exponent of the subnormal numbers of a small float, as f16 has it."""
    return FORMATS[type.name][1] + BIAS


def widened(type: str, value: str, count: int) -> list[str]:
    """LLVM lines that convert a vector of bytes; the bits of the halves are named `VALUE.halves`.

    e5m2 is the upper byte of a half.  A half with the bits of an e4m3 one place lower is too small by 2**8; its NaN, which
    is a number there, has another pattern.
    """
    bits = f"<{count} x i16>"
    lines = [f"  {value}.wide = zext <{count} x i8> {value} to {bits}"]
    if type == "e5m2":
        return [*lines, f"  {value}.halves = shl {bits} {value}.wide, splat (i16 8)"]
    halves = f"<{count} x half>"
    return [
        *lines,
        f"  {value}.size = and {bits} {value}.wide, splat (i16 127)",
        f"  {value}.moved = shl {bits} {value}.size, splat (i16 7)",
        f"  {value}.small = bitcast {bits} {value}.moved to {halves}",
        f"  {value}.float = fmul {halves} {value}.small, splat (half 0xH5C00)",
        f"  {value}.bits = bitcast {halves} {value}.float to {bits}",
        f"  {value}.none = icmp eq {bits} {value}.size, splat (i16 127)",
        f"  {value}.number = select <{count} x i1> {value}.none, {bits} splat (i16 {NAN}), {bits} {value}.bits",
        f"  {value}.above = and {bits} {value}.wide, splat (i16 128)",
        f"  {value}.sign = shl {bits} {value}.above, splat (i16 8)",
        f"  {value}.halves = or {bits} {value}.number, {value}.sign",
    ]


__all__ = ["WIDENED", "least_exponent", "widened"]
