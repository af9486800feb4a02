"""Which byte of its sources each byte of a prmt result comes from (PTX 9.7.9.7)."""

from __future__ import annotations

from ptxvm.dataclass import dataclass
from ptxvm.isa.catalog.logic import PERMUTATIONS

MODE_COLUMNS = ("c", "d.b3", "d.b2", "d.b1", "d.b0")
"""The columns of `mode_table`."""


@dataclass(frozen=True, slots=True)
class ByteSelection:
    """One byte of the result: byte `byte` of operand `operand` (`a` or `b`), or eight times its sign."""

    operand: str
    byte: int
    sign: bool = False

    def written(self, operand: str) -> str:
        """`a.b2`, or `sign a.b2`, for an operand that is called so."""
        return f"{'sign ' if self.sign else ''}{operand}.b{self.byte}"

    def __str__(self) -> str:
        return self.written(self.operand)

    def of(self, a: int, b: int) -> int:
        """The byte, once the operands are known."""
        value = (a if self.operand == "a" else b) >> 8 * self.byte & 0xFF
        return value >> 7 and 0xFF if self.sign else value


def byte_selections(control: int, mode: str | None = None) -> tuple[ByteSelection, ByteSelection, ByteSelection, ByteSelection]:
    """The four bytes of the result, the lowest first, for the operand `c` and the mode."""
    if mode:
        control = PERMUTATIONS[mode][control & 3]
    first, second, third, fourth = (_pick(control >> 4 * n & 0xF) for n in range(4))
    return first, second, third, fourth


def mode_table(mode: str) -> list[tuple[str, ...]]:
    """The bytes of the result by the two bits of `c` that a mode takes, the highest byte first."""
    return [(str(control), *map(str, byte_selections(control, mode)[::-1])) for control in range(4)]


def _pick(selector: int) -> ByteSelection:
    """Four bits of the control word: a byte of `b` above `a`, and the sign bit."""
    return ByteSelection("ab"[selector >> 2 & 1], selector & 3, sign=bool(selector & 8))
