"""C's printf, as CUDA's `vprintf` has it (C17 7.21.6.1; CUDA C++ Programming Guide, Formatted Output).

The device leaves the formatting to the host's printf, so this follows the GNU C library in what C leaves open.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterator

from ptxvm.dataclass import dataclass

SPECIFIER = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|-?\d*))?"
    r"(?P<length>hh|h|ll|l|q|j|z|t|L)?(?P<conversion>.)",
    re.DOTALL,
)
BITS = {"hh": 8, "h": 16, "": 32, "l": 64, "ll": 64, "q": 64, "j": 64, "z": 64, "t": 64, "L": 64}
MOST = 1 << 16  # characters of a conversion; C asks for 4095 at least (C17 7.21.6.1)
INTEGERS, FLOATS, WORDS = "diuoxXc", "eEfFgGaA", "sp"

ReadString = Callable[[int], str]


@dataclass(frozen=True, slots=True)
class FormatPart:
    """A part of a format: literal text, or a conversion."""

    text: str
    conversion: str = ""
    flags: str = ""
    width: str = ""
    precision: str | None = None
    length: str = ""

    @property
    def sizes(self) -> list[int]:
        """The bytes of its arguments: 4 for each `*` and `int`, 8 for the others."""
        if not self.conversion:
            return []
        stars = [4] * (self.width == "*") + [4] * (self.precision == "*")
        wide = self.conversion not in INTEGERS or (self.conversion != "c" and BITS[self.length] == 64)
        return [*stars, 8 if wide else 4]


def parse(text: str) -> list[FormatPart]:
    """The pieces of a format; an invalid conversion stays as text."""
    pieces: list[FormatPart] = []
    at = 0
    for found in SPECIFIER.finditer(text):
        pieces.append(FormatPart(text[at : found.start()]))
        at = found.end()
        if found["conversion"] in INTEGERS + FLOATS + WORDS:
            width, length = found["width"] or "", found["length"] or ""
            pieces.append(FormatPart(found[0], found["conversion"], found["flags"], width, found["precision"], length))
        else:
            pieces.append(FormatPart("%" if found[0] == "%%" else found[0]))
    return [*pieces, FormatPart(text[at:])]


def layout(pieces: list[FormatPart]) -> list[tuple[int, int]]:
    """Offset and size of every argument in the buffer: 4 or 8 bytes, at a multiple of its size."""
    slots, at = [], 0
    for size in (size for piece in pieces for size in piece.sizes):
        at = -(-at // size) * size
        slots.append((at, size))
        at += size
    return slots


def render(pieces: list[FormatPart], arguments: Iterator[int], read_string: ReadString) -> str:
    """The text, from the bits of the arguments."""
    return "".join(_convert(piece, arguments, read_string) if piece.conversion else piece.text for piece in pieces)


def _convert(piece: FormatPart, arguments: Iterator[int], read_string: ReadString) -> str:
    """A conversion as text; a conversion that would be too long stays as it is written."""
    flags = piece.flags
    width = _number(piece.width, arguments)
    if width < 0:  # as a `-` flag
        flags, width = flags + "-", -width
    precision = _precision(piece.precision, arguments)
    value, kind = next(arguments), piece.conversion
    if width > MOST or (kind not in "csp" and precision is not None and precision > MOST):
        return piece.text
    zeros = "0" in flags and "-" not in flags
    if kind in FLOATS:
        sign, body = _float(value, kind, precision, "#" in flags)
        zeros = zeros and body[:1].isdigit()
    elif kind in "cs":
        sign, body, zeros = "", _text(value, kind, precision, read_string), False
    elif kind == "p":
        sign, body, zeros = "", hex(value) if value else "(nil)", zeros and bool(value)
    else:
        sign, body = _integer(value, kind, BITS[piece.length], precision, "#" in flags)
        zeros = zeros and precision is None
    if not sign and kind in "di" + FLOATS:
        sign = "+" if "+" in flags else " " if " " in flags else ""
    return _pad(sign, body, width, zeros=zeros, left="-" in flags)


def _precision(written: str | None, arguments: Iterator[int]) -> int | None:
    """A precision; a negative one counts as none."""
    if written is None:
        return None
    precision = _number(written, arguments)
    return precision if precision >= 0 else None


def _number(written: str, arguments: Iterator[int]) -> int:
    """A width or precision; `*` is the next argument, and a number with too many digits is more than `MOST`."""
    if written == "*":
        return _signed(next(arguments), 32)
    digits = written.lstrip("-0") or "0"
    size = int(digits) if len(digits) <= len(str(MOST)) else MOST + 1
    return -size if written.startswith("-") else size


def _pad(sign: str, body: str, width: int, *, zeros: bool, left: bool) -> str:
    """Fill to the width: zeros go between the sign (or 0x) and the digits."""
    if left:
        return (sign + body).ljust(width)
    if not zeros:
        return (sign + body).rjust(width)
    if body[:2] in ("0x", "0X"):
        sign, body = sign + body[:2], body[2:]
    return sign + body.rjust(width - len(sign), "0")


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


def _text(value: int, kind: str, precision: int | None, read_string: ReadString) -> str:
    if kind == "c":
        return chr(value & 0xFF)
    return (read_string(value) if value else "(null)")[:precision]


def _integer(value: int, kind: str, bits: int, precision: int | None, alternate: bool) -> tuple[str, str]:  # noqa: FBT001
    """Sign and digits; at least `precision` digits, none for a 0 of precision 0."""
    value = _signed(value, bits) if kind in "di" else value & (1 << bits) - 1
    sign, size = "-" if value < 0 else "", abs(value)
    digits = format(size, {"o": "o", "x": "x", "X": "X"}.get(kind, "d")) if size or precision != 0 else ""
    digits = digits.rjust(precision or 0, "0")
    if alternate and kind == "o" and not digits.startswith("0"):
        digits = "0" + digits
    if alternate and kind in "xX" and size:
        digits = f"0{kind}{digits}"
    return sign, digits


def _float(bits: int, kind: str, precision: int | None, alternate: bool) -> tuple[str, str]:  # noqa: FBT001
    """Sign and digits of a double."""
    (number,) = struct.unpack("<d", struct.pack("<Q", bits))
    sign, size = "-" if bits >> 63 else "", math.fabs(number)
    if math.isinf(size) or math.isnan(size):
        body = "inf" if math.isinf(size) else "nan"
    elif kind in "aA":
        body = _hexadecimal(size, precision, alternate)
    else:
        body = "%{}.{}{}".format("#" if alternate else "", 6 if precision is None else precision, kind.lower()) % size
    return sign, body.upper() if kind.isupper() else body


def _hexadecimal(size: float, precision: int | None, alternate: bool) -> str:  # noqa: FBT001
    """`0x1.8p+1`: as many digits as it needs, or rounded to `precision`, ties to even."""
    bits = struct.unpack("<Q", struct.pack("<d", size))[0]
    exponent, fraction = (bits >> 52) - 1023, bits & (1 << 52) - 1
    leading = 1
    if exponent == -1023:
        leading, exponent = 0, -1022 if fraction else 0
    mantissa = leading << 52 | fraction
    if precision is not None and precision < 13:
        dropped = 52 - 4 * precision
        kept, rest = mantissa >> dropped, mantissa & (1 << dropped) - 1
        half = 1 << dropped - 1
        kept += rest > half or (rest == half and kept & 1)
        mantissa = kept << dropped
    digits = format(mantissa & (1 << 52) - 1, "013x")
    digits = digits.rstrip("0") if precision is None else digits[:precision].ljust(precision, "0")
    point = "." if digits or alternate else ""
    return f"0x{mantissa >> 52}{point}{digits}p{exponent:+d}"
