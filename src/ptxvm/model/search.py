"""Depth-first search by generators, without a call for each level."""

from __future__ import annotations

from collections.abc import Iterator
from types import GeneratorType
from typing import Any, TypeVar

T = TypeVar("T")


def flattened(steps: Iterator[T | Iterator[Any]]) -> Iterator[T]:
    """What a search finds: its steps give results, and generators of the steps below them, which are gone through first."""
    work: list[Iterator[Any]] = [steps]
    while work:
        for each in work[-1]:
            if isinstance(each, GeneratorType):
                work.append(each)
                break
            yield each
        else:
            work.pop()
