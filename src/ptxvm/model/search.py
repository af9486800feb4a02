"""Depth-first search by generators, without a call for each level."""

from __future__ import annotations

from collections.abc import Iterator
from types import GeneratorType
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
Steps: TypeAlias = Iterator[T | Iterator[Any]]
"""Results, and generators of deeper steps with results of the same kind, which no type can say."""


def flattened(steps: Steps[T]) -> Iterator[T]:
    """The results of a search: a step yields results, and generators of deeper steps, which run first."""
    work: list[Iterator[Any]] = [steps]  # of results and generators: see `Steps`
    while work:
        for each in work[-1]:
            if isinstance(each, GeneratorType):
                work.append(each)
                break
            yield each
        else:
            work.pop()
