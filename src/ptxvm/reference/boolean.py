"""The shortest expression of a logical function of three bits, which lop3 has as a truth table (PTX 9.7.8.6)."""

from __future__ import annotations

from functools import cache
from itertools import count, permutations

from ptxvm.dataclass import dataclass

A, B, C = 0xF0, 0xCC, 0xAA
"""The truth tables of the variables themselves: bit `4a + 2b + c` is the value where they are a, b and c."""

ALL = 0xFF
VARIABLES = {"a": A, "b": B, "c": C}
MAJORITY = A & B | A & C | B & C
PARITY = A ^ B ^ C

# What an expression costs: a reader takes AND and OR more easily than XOR, and a negated variable nearly as a variable.
NOT_VARIABLE, NOT = 1, 2
BINARY = {"&": 3, "|": 3, "^": 4}


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression and what it costs; `operator` is the outermost one, empty for a variable or constant."""

    text: str
    cost: int
    operator: str = ""

    def inside(self, operator: str) -> str:
        """The text as an operand: in parentheses unless the operator is the same, which is associative."""
        return self.text if self.operator in ("", "~", operator) else f"({self.text})"

    @property
    def rank(self) -> tuple[int, int, str]:
        """The best of several is the cheapest, then the shortest, then the first in the order of the variables."""
        return self.cost, len(self.text), self.text.replace("(", "").replace("~", "")


def expression(table: int) -> str:
    """The shortest expression of a truth table: `a ^ b ^ c` for 0x96."""
    if table == MAJORITY:  # the usual form, though `(a & b) | (c & (a | b))` is shorter
        return "(a & b) | (a & c) | (b & c)"
    return _shortest()[table].text


def name(table: int) -> str:
    """What the function is called, where it has a name: `a ? b : c` for 0xCA; otherwise empty."""
    return _names().get(table, "")


@cache
def _names() -> dict[int, str]:
    """The functions that have a name."""
    choices = {
        x & y | ~x & z & ALL: f"{condition} ? {yes} : {no}"
        for (condition, x), (yes, y), (no, z) in permutations(VARIABLES.items(), 3)
    }
    return choices | {
        MAJORITY: "the majority of a, b and c",
        MAJORITY ^ ALL: "the minority of a, b and c",
        PARITY: "the parity of a, b and c",
        PARITY ^ ALL: "the opposite of the parity of a, b and c",
    }


@cache
def _shortest() -> dict[int, Expression]:
    """The best expression of each of the 256 tables: those of each cost are made of cheaper ones."""
    best = {0: Expression("0", 0), ALL: Expression("1", 0), **{t: Expression(v, 0) for v, t in VARIABLES.items()}}
    by_cost: list[list[int]] = [list(best)]
    for cost in count(1):
        if len(best) > ALL:
            break
        found: dict[int, Expression] = {}
        for table, made in _of_cost(cost, best, by_cost):
            if table not in best and (table not in found or made.rank < found[table].rank):
                found[table] = made
        best |= found
        by_cost.append(list(found))
    return best


def _of_cost(cost: int, best: dict[int, Expression], by_cost: list[list[int]]) -> list[tuple[int, Expression]]:
    """Every expression of exactly this cost whose parts are the best of their tables."""
    made = [(table ^ ALL, Expression(f"~{v}", cost, "~")) for v, table in VARIABLES.items() if cost == NOT_VARIABLE]
    cheaper = by_cost[cost - NOT] if cost >= NOT else []
    made += [(t ^ ALL, Expression(f"~({best[t].text})", cost, "~")) for t in cheaper if best[t].operator in BINARY]
    for operator, weight in BINARY.items():
        for left in range(cost - weight + 1):
            for f in by_cost[left]:
                for g in by_cost[cost - weight - left]:
                    text = f"{best[f].inside(operator)} {operator} {best[g].inside(operator)}"
                    made.append((_apply(operator, f, g), Expression(text, cost, operator)))
    return made


def _apply(operator: str, f: int, g: int) -> int:
    return {"&": f & g, "|": f | g, "^": f ^ g}[operator]
