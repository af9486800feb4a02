"""Depth-first search by generators, without a call for each level."""

from __future__ import annotations

from collections.abc import Iterator
from types import GeneratorType
from typing import Any, TypeVar

T = TypeVar("T")


def flattened(steps: Iterator[T | Iterator[Any]]) -> Iterator[T]:
    """The results of a search: a step yields results, and generators of deeper steps, which run first."""
    work: list[Iterator[Any]] = [steps]
    while work:
        for each in work[-1]:
            if isinstance(each, GeneratorType):
                work.append(each)
                break
            yield each
        else:
            work.pop()
