"""Kernels for `record_cases.py`, whose results no oracle but a GPU knows.

A group is a function that yields cases.  A case has all that it reads with it: arrays are drawn from a seed that its name
gives, so that a record needs the results only.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[Any]


@dataclass(frozen=True)
class Map:
    """A tensor map of a tensor in the array that is the argument of number `tensor`: the arguments of cuTensorMapEncode*.

    `lower`, `upper`, `channels` and `pixels` are those of Im2col, and `box` is that of Tiled.
    """

    tensor: int
    type: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    steps: tuple[int, ...]
    box: tuple[int, ...] = ()
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()
    channels: int = 0
    pixels: int = 0
    interleave: int = 0
    swizzle: int = 0
    fill: int = 0


@dataclass(frozen=True)
class Case:
    """A launch; the arrays that are the arguments of the numbers `kept` hold what it computes."""

    name: str
    text: str
    kernel: str
    block: tuple[int, ...]
    arguments: tuple[Words | np.generic | Map, ...]
    kept: tuple[int, ...] = (0,)
    grid: tuple[int, ...] = (1,)
    shared: int = 0


def random(name: str) -> np.random.Generator:
    """The numbers of a case."""
    return np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))


Group = Callable[[], Iterable[Case]]
