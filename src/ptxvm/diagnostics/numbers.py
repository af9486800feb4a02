"""How a number of another language is written in PTX (PTX 4.5): the help of a message about a malformed one."""

from __future__ import annotations

import re
import struct

_FLOAT = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?(f|F|l|L|h|hf|bf)", re.ASCII)
_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)([uUlLzZ]+)", re.ASCII)
_HEX_TAIL = re.compile(r"(?:0[xX])?([0-9a-fA-F]+)[hH]", re.ASCII)
_HEX_FLOAT = re.compile(r"0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?\d+[fF]?", re.ASCII)
_OCTAL = re.compile(r"0[oO]([0-7]+)", re.ASCII)


def help_for(number: str) -> str:
    """How a malformed number is written right; empty where that cannot be told."""
    prefix = number[:2].lower()
    if found := _HEX_TAIL.fullmatch(number):
        return f"a hexadecimal number has a prefix: `0x{found[1]}`"
    if prefix in {"0f", "0d"}:
        digits = 8 if prefix == "0f" else 16
        return f"`{prefix}` takes exactly {digits} hexadecimal digits"
    if _HEX_FLOAT.fullmatch(number):
        return f"a float is decimal, or exact bits: {exact(float.fromhex(number.rstrip('fF')))}"
    if found := _FLOAT.fullmatch(number):
        return f"a float has no suffix: `{decimal(found[1] + (found[2] or ''))}`"
    if found := _INTEGER.fullmatch(number):
        unsigned = "U" if "u" in found[2].lower() else ""
        only = "the suffix of an unsigned integer is a capital `U`" if unsigned else "an integer has no suffix but `U`"
        return f"{only}: `{found[1]}{unsigned}`"
    if found := _OCTAL.fullmatch(number):
        return f"a leading 0 alone means octal: `0{found[1]}`"
    if prefix == "0b":
        return "`0b` takes the digits 0 and 1"
    if "_" in number and number.replace("_", "").isalnum():
        return f"nothing divides the digits of a number: `{number.replace('_', '')}`"
    if number[0] == "0" and number.isdigit():
        return "a leading 0 means octal, with digits up to 7"
    return ""


def decimal(number: str) -> str:
    """A decimal number as a float: with a point or an exponent."""
    whole = f"{number}0" if number.endswith(".") else number
    return whole if "." in whole or "e" in whole.lower() else f"{whole}.0"


def exact(value: float) -> str:
    """`12.0`, and the bits as f32 where they hold the value, else as f64."""
    if float32_holds(value):
        return f"`{value!r}` or `0f{int.from_bytes(struct.pack('>f', value)):08X}`"
    return f"`{value!r}` or `0d{int.from_bytes(struct.pack('>d', value)):016X}`"


def float32_holds(value: float) -> bool:
    """Is the value one of f32?"""
    try:
        (held,) = struct.unpack(">f", struct.pack(">f", value))
    except OverflowError:
        return False
    return bool(held == value)


def as_float(text: str, bits: int) -> str:
    """An integer constant, as it is written, as a float of 16, 32 or 64 bits: `1.0`, or `0f3F800000` for `0x3f800000`."""
    digits = text.removeprefix("-").removesuffix("U")
    if digits[:2].lower() == "0x" and len(digits) - 2 <= bits // 4 and bits in {32, 64} and not text.startswith("-"):
        return f"0{'f' if bits == 32 else 'd'}{digits[2:].upper().zfill(bits // 4)}"
    return f"{text}.0" if (digits.isdecimal() and not digits.startswith("0")) or digits == "0" else ""
