"""Words: neighbouring small elements of a lane are gathered and scattered as one element of 4 or 8 bytes.

A gather takes a time for each element, whatever its size.
"""

from __future__ import annotations

from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.ir.builder import Code

LARGEST, SMALLEST = 8, 4  # bytes that the processor gathers


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a size in bytes, and how many elements it has."""

    size: int
    parts: int

    @property
    def llvm(self) -> str:
        """Its LLVM type."""
        return f"i{8 * self.size}"


def of(size: int, count: int) -> Word | None:
    """The largest word for vectors of `count` elements of a size; None if it has one element only."""
    whole = min(size * count, LARGEST)
    return Word(whole, whole // size) if whole >= SMALLEST and whole > size else None


def split(code: Code, llvm: str, word: Word, whole: str) -> list[str]:
    """The elements of words: a vector for each place in the word."""
    width, total = code.width, code.width * word.parts
    elements = code.bitcast(f"<{width} x {word.llvm}>", whole, f"<{total} x {llvm}>")
    return [code.shuffle(llvm, total, elements, "poison", list(range(n, total, word.parts))) for n in range(word.parts)]


def joined(code: Code, llvm: str, word: Word, vectors: list[str]) -> list[str]:
    """The words of elements, the inverse of `split`."""
    width, total = code.width, code.width * word.parts
    found = []
    for first in range(0, len(vectors), word.parts):
        rows = code.concatenate(llvm, vectors[first : first + word.parts], width)
        order = [n + width * k for n in range(width) for k in range(word.parts)]
        elements = code.shuffle(llvm, total, rows, "poison", order)
        found.append(code.bitcast(f"<{total} x {llvm}>", elements, f"<{width} x {word.llvm}>"))
    return found
