"""Numbers that decide something: those in the sources of the reader, what is next to them, and powers of two.

Other fuzzers take them from the comparisons of the program that they test; here its sources say them.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from random import Random

import ptxvm.syntax

PACKAGE = Path(ptxvm.syntax.__file__).parents[1]
ROOMS = ("syntax", "analysis", "isa")
LITERAL = re.compile(r"(?<![\w.])(?:0x[\da-fA-F_]+|[1-9][\d_]*|0)(?![\w.])")
WIDEST = 64  # bits
NEAR = 0.3  # how often a number is one near to what was there


@cache
def constants() -> tuple[int, ...]:
    """The numbers, in order."""
    found = {1 << bits for bits in range(WIDEST)}
    for room in ROOMS:
        for path in (PACKAGE / room).rglob("*.py"):
            found |= {int(each.replace("_", ""), 0) for each in LITERAL.findall(path.read_text(encoding="utf-8"))}
    return tuple(sorted({number + more for number in found for more in (-1, 0, 1) if number + more >= 0}))


def another(number: str, random: Random) -> str:
    """A literal in place of one: a number that decides something, or one near to what was there."""
    if number.isdecimal() and len(number) <= WIDEST and random.random() < NEAR:
        value = int(number)
        return str(random.choice([value + 1, max(value - 1, 0), 2 * value, value // 2, value + random.choice(constants())]))
    made = random.choice(constants())
    return random.choice([str(made), str(made), hex(made), f"-{made}"])


__all__ = ["another", "constants"]
