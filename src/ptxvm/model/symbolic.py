"""Relations whose pairs hold under conditions: what the axioms say of all executions at once, for z3 to solve.

They have the operators of `Relation`, so the properties of `axioms_6_4` and `axioms_9_1` work on them as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import z3

from ptxvm.model.relations import Events, Relation

Truth: TypeAlias = Any
"""True, False, or a formula of z3, which has no types."""
"""True, or a formula; what is false is left out."""


def conjunction(a: Truth, b: Truth) -> Truth:
    """Both."""
    if a is True:
        return b
    return a if b is True else z3.And(a, b)


def disjunction(a: Truth, b: Truth) -> Truth:
    """One of them."""
    return True if a is True or b is True else z3.Or(a, b)


class Symbolic:
    """Which events precede which, and when."""

    def __init__(self, rows: Mapping[int, Mapping[int, Truth]], count: int) -> None:
        self.rows_of, self.count = {a: dict(row) for a, row in rows.items() if row}, count

    @classmethod
    def of(cls, relation: Relation | Symbolic) -> Symbolic:
        """A relation that holds in all executions."""
        if isinstance(relation, Symbolic):
            return relation
        rows: dict[int, dict[int, Truth]] = {}
        for a, b in relation:
            rows.setdefault(a, {})[b] = True
        return cls(rows, len(relation.rows))

    def items(self) -> Iterator[tuple[int, int, Truth]]:
        """All pairs that may hold, with their conditions."""
        return ((a, b, truth) for a, row in self.rows_of.items() for b, truth in row.items())

    def holds(self, a: int, b: int) -> Truth:
        """The condition of a pair; False where it never holds."""
        return self.rows_of.get(a, {}).get(b, False)

    def __bool__(self) -> bool:
        """May any pair hold?"""
        return bool(self.rows_of)

    def __or__(self, other: Relation | Symbolic) -> Symbolic:
        rows = {a: dict(row) for a, row in self.rows_of.items()}
        for a, b, truth in Symbolic.of(other).items():
            row = rows.setdefault(a, {})
            row[b] = disjunction(row[b], truth) if b in row else truth
        return Symbolic(rows, self.count)

    __ror__ = __or__

    def __and__(self, other: Relation | Symbolic) -> Symbolic:
        other = Symbolic.of(other)
        return self._each(lambda a, b, truth: conjunction(truth, there) if (there := other.holds(a, b)) is not False else False)

    __rand__ = __and__

    def __sub__(self, other: Relation | Symbolic) -> Symbolic:
        other = Symbolic.of(other)

        def without(a: int, b: int, truth: Truth) -> Truth:
            there = other.holds(a, b)
            if there is False:
                return truth
            return False if there is True else conjunction(truth, z3.Not(there))

        return self._each(without)

    def __rsub__(self, other: Relation) -> Symbolic:
        return Symbolic.of(other) - self

    def _each(self, change: Callable[[int, int, Truth], Truth]) -> Symbolic:
        rows: dict[int, dict[int, Truth]] = {}
        for a, b, truth in self.items():
            changed = change(a, b, truth)
            if changed is not False:
                rows.setdefault(a, {})[b] = changed
        return Symbolic(rows, self.count)

    def then(self, other: Relation | Symbolic) -> Symbolic:
        """The composition."""
        rows: dict[int, dict[int, Truth]] = {}
        others = Symbolic.of(other).rows_of
        for a, middle, truth in self.items():
            row = rows.setdefault(a, {})
            for b, there in others.get(middle, {}).items():
                if row.get(b) is not True:
                    way = conjunction(truth, there)
                    row[b] = disjunction(row[b], way) if b in row else way
        return Symbolic(rows, self.count)

    @property
    def inverse(self) -> Symbolic:
        """Each pair the other way round."""
        rows: dict[int, dict[int, Truth]] = {}
        for a, b, truth in self.items():
            rows.setdefault(b, {})[a] = truth
        return Symbolic(rows, self.count)

    @property
    def or_same(self) -> Symbolic:
        """This, or the same event."""
        return self | Relation.identity(~0, self.count)

    @property
    def transitive(self) -> Symbolic:
        """The transitive closure (Warshall)."""
        rows = {a: dict(row) for a, row in self.rows_of.items()}
        for middle in range(self.count):
            onward = dict(rows.get(middle, {}))
            for row in [row for a, row in rows.items() if middle in row]:
                to_middle = row[middle]
                for b, truth in onward.items():
                    if row.get(b) is not True:
                        way = conjunction(to_middle, truth)
                        row[b] = disjunction(row[b], way) if b in row else way
        return Symbolic(rows, self.count)

    def between(self, first: Events, second: Events) -> Symbolic:
        """The pairs that lead from one set to another."""
        return self._each(lambda a, b, truth: truth if first >> a & 1 and second >> b & 1 else False)
