"""Floats of eight bits and less as halves (f16), which hold them exactly (PTX 5.2.3)."""

from __future__ import annotations

from ptxvm.algebra.types import Type
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.tensor_core import FORMATS, SHIFT

BIAS = 15  # of f16
NAN = 0x7FFF
FRACTIONS = {"e4m3": 3, "e5m2": 2, "e3m2": 2, "e2m3": 3, "e2m1": 1}  # bits of the fraction, by the type
WIDENED = frozenset(FRACTIONS)


def least_exponent(type: Type) -> int:
    """The exponent of the subnormal numbers of a small float, as f16 has it."""
    return FORMATS[type.name][1] + BIAS


def widened(type: str, value: str, count: int) -> list[str]:
    """LLVM lines that convert a vector of bytes; the bits of the halves are named `VALUE.halves`.

    e5m2 is the upper byte of a half.  A half with the exponent and the fraction of another type in their places is too small by
    the difference of the biases.  The NaN of e4m3, which is a number there, has another pattern.
    """
    bits, halves = f"<{count} x i16>", f"<{count} x half>"
    lines = [f"  {value}.wide = zext <{count} x i8> {value} to {bits}"]
    if type == "e5m2":
        return [*lines, f"  {value}.halves = shl {bits} {value}.wide, splat (i16 8)"]
    exponent, fraction = int(type[1]), FRACTIONS[type]
    low, size = SHIFT.get(type, 0), exponent + fraction
    factor = 2 * BIAS - (1 << exponent - 1) + 1 << 10  # 2 to the difference of the biases, in the bits of a half
    lines += [
        f"  {value}.down = lshr {bits} {value}.wide, splat (i16 {low})",
        f"  {value}.size = and {bits} {value}.down, splat (i16 {(1 << size) - 1})",
        f"  {value}.moved = shl {bits} {value}.size, splat (i16 {10 - fraction})",
        f"  {value}.small = bitcast {bits} {value}.moved to {halves}",
        f"  {value}.float = fmul {halves} {value}.small, splat (half 0xH{factor:04X})",
        f"  {value}.bits = bitcast {halves} {value}.float to {bits}",
        f"  {value}.none = icmp eq {bits} {value}.size, splat (i16 {127 if type == 'e4m3' else -1})",
        f"  {value}.number = select <{count} x i1> {value}.none, {bits} splat (i16 {NAN}), {bits} {value}.bits",
        f"  {value}.above = shl {bits} {value}.down, splat (i16 {15 - size})",
        f"  {value}.sign = and {bits} {value}.above, splat (i16 -32768)",
        f"  {value}.halves = or {bits} {value}.number, {value}.sign",
    ]
    return lines


def register_widened(key: str, type: str, source: tuple[str, int], target: tuple[str, int, int]) -> list[str]:
    """LLVM lines that convert the bytes of a register: the lower and the upper two of each lane are two registers of halves.

    `source` is where it stands, a pointer and the distance from it, and `target` where the others go; `key` names the values.
    """
    key, vector, both = f"%wide.{key}", f"<{2 * WARP} x i16>", f"<{4 * WARP} x i16>"
    lines = [
        f"  {key}.at = getelementptr i8, ptr {source[0]}, i64 {source[1]}",
        f"  {key} = load <{4 * WARP} x i8>, ptr {key}.at, align 64",
        *widened(type, key, 4 * WARP),
    ]
    for name, first, place in (("low", 0, target[1]), ("high", 2, target[2])):
        order = ", ".join(f"i32 {n // 2 * 4 + n % 2 + first}" for n in range(2 * WARP))
        lines += [
            f"  {key}.{name} = shufflevector {both} {key}.halves, {both} poison, <{2 * WARP} x i32> <{order}>",
            f"  {key}.{name}.to = getelementptr i8, ptr {target[0]}, i64 {place}",
            f"  store {vector} {key}.{name}, ptr {key}.{name}.to, align 64",
        ]
    return lines


def least_exponents(a: Type, b: Type, room: str, first: int, step: int) -> list[str]:
    """LLVM lines that put the least exponents of A and B behind C, where the function of small numbers looks for them."""
    lines = []
    for n, least in enumerate(map(least_exponent, (a, a, b))):
        lines += [
            f"  %least.{n} = getelementptr i8, ptr {room}, i64 {first + step * n}",
            f"  store <{2 * WARP} x i16> splat (i16 {least}), ptr %least.{n}, align 64",
        ]
    return lines


__all__ = ["WIDENED", "least_exponent", "least_exponents", "register_widened", "widened"]
