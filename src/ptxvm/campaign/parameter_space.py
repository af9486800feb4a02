"""The parameter space of a campaign: a Cartesian product, or a random sample of it.

A case is a number; its parameters are computed from it, so that a space of millions takes no memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, partial
from json import JSONEncoder
from math import prod

import numpy as np

from ptxvm.dataclass import dataclass
from ptxvm.machine.per_lane import Array

Position = tuple[int, ...]
"""Of a case: for each parameter the index of its value."""
ROUNDS = 4  # of the Feistel network
FEW = 1000  # values of a parameter, of which the texts are kept
JSON = JSONEncoder(default=str)
MOST = (1 << 63) - 1  # of which NumPy computes


@dataclass(frozen=True)
class ParameterSpace:
    """Parameters, each with its values, the simplest first; `sample` of the combinations are cases, or all where it is 0."""

    axes: Mapping[str, Sequence[object]]
    sample: int = 0
    seed: int = 0

    @property
    def combinations(self) -> int:
        """How many there are."""
        return prod(len(values) for values in self.axes.values())

    @property
    def cases(self) -> int:
        """How many are run."""
        return min(self.sample, self.combinations) if self.sample else self.combinations

    @property
    def is_sampled(self) -> bool:
        """Are there fewer cases than combinations?"""
        return 0 < self.sample < self.combinations

    def position(self, number: int) -> Position:
        """The position of a case: the last parameter is the fastest; a sample has them in a random order, by the seed."""
        if self.is_sampled:
            number = permuted(number, self.combinations, self.seed)
        return tuple(number // step % size for step, size in self._steps)

    def positions(self, numbers: Array) -> list[Array]:
        """The positions of many cases: for each parameter the indices of its values."""
        if self.is_sampled or self.combinations > MOST:
            return list(np.array([self.position(each) for each in numbers.tolist()], np.int64).T)
        return [numbers // step % size for step, size in self._steps]

    @cached_property
    def _steps(self) -> list[tuple[int, int]]:
        """Of each parameter: how many cases have a value in a row, and how many values there are."""
        sizes = [len(values) for values in self.axes.values()]
        return [(prod(sizes[n + 1 :]), size) for n, size in enumerate(sizes)]

    def parameters(self, position: Position) -> dict[str, object]:
        """The values at a position."""
        return {name: values[index] for (name, values), index in zip(self.axes.items(), position, strict=True)}

    def json(self, position: Position) -> str:
        """The values at a position as JSON, as an encoder writes `parameters`."""
        found = [each(index) for each, index in zip(self._encoders, position, strict=True)]
        return f"{{{', '.join(found)}}}"

    @cached_property
    def _encoders(self) -> list[Callable[[int], str]]:
        """For each parameter: the JSON of its name and of a value by its number; of few values it is kept."""
        found: list[Callable[[int], str]] = []
        for name, values in self.axes.items():
            each = partial(encoded, f"{JSON.encode(name)}: ", values)
            found.append(cache(each) if len(values) <= FEW else each)
        return found


def encoded(name: str, values: Sequence[object], index: int) -> str:
    """The JSON of a name, which ends in a colon, and of one of some values."""
    value = values[index]
    return f"{name}{value}" if type(value) is int else f"{name}{JSON.encode(value)}"


def permuted(number: int, count: int, seed: int) -> int:
    """Where a random permutation of `range(count)` takes a number: a Feistel network, walked until it is within the range."""
    half = (count - 1).bit_length() + 1 >> 1
    while True:
        left, right = number >> half, number & (1 << half) - 1
        for turn in range(ROUNDS):
            digest = hashlib.shake_128(f"{seed} {turn} {right}".encode()).digest(half + 7 >> 3)
            left, right = right, left ^ int.from_bytes(digest, "little") & (1 << half) - 1
        number = left << half | right
        if number < count:
            return number


def axes(table: Mapping[str, object]) -> dict[str, Sequence[object]]:
    """The values of each parameter of a table; ValueError where there are none."""
    found = {}
    for name, value in table.items():
        if not name.isidentifier():
            raise ValueError(f"[parameters] {name}: the name of a parameter is an identifier")
        values = _range(name, value["range"]) if isinstance(value, Mapping) and set(value) == {"range"} else value
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise ValueError(f"[parameters] {name} is a list of values, or {{ range = [START, STOP, STEP] }}, not {value!r}")  # noqa: TRY004 - of a file
        if not values:
            raise ValueError(f"[parameters] {name} has no values")
        found[name] = values
    return found


def _range(name: str, bounds: object) -> range:
    if isinstance(bounds, list) and 1 <= len(bounds) <= 3 and all(type(each) is int for each in bounds) and bounds[2:] != [0]:
        return range(*bounds)
    raise ValueError(f"[parameters] {name}: a range is one to three integers, the last not 0, not {bounds!r}")


__all__ = ["JSON", "ParameterSpace", "Position", "axes"]
