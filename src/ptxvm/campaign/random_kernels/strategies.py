"""Strategies: what draws random values, as generators of QuickCheck do.

The words are those of hypothesis, which draws a kernel in tens of milliseconds: it notes each choice, so as to make what fails
small.  Kernels are made small by their statements (`shrink`) and need none of that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")
P = ParamSpec("P")


class Strategy(Generic[T_co]):
    """Draws values, each from a source of random numbers."""

    def __init__(self, draw: Callable[[Random], T_co]) -> None:
        self.draw = draw

    def map(self, function: Callable[[T_co], U]) -> Strategy[U]:
        """What a function makes of its values."""
        return Strategy(lambda random: function(self.draw(random)))

    def filter(self, accepts: Callable[[T_co], object]) -> Strategy[T_co]:
        """Those of its values that a condition accepts, which must be many."""

        def draw(random: Random) -> T_co:
            while not accepts(found := self.draw(random)):
                pass
            return found

        return Strategy(draw)


class Draw:
    """Draws from strategies, with one source of random numbers."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def __call__(self, strategy: Strategy[T]) -> T:
        """What a strategy draws."""
        return strategy.draw(self.random)


def composite(function: Callable[Concatenate[Draw, P], T]) -> Callable[P, Strategy[T]]:
    """The strategy of a function that draws its parts."""

    def strategy(*args: P.args, **keywords: P.kwargs) -> Strategy[T]:
        return Strategy(lambda random: function(Draw(random), *args, **keywords))

    strategy.__doc__ = function.__doc__
    return strategy


def just(value: T) -> Strategy[T]:
    """Always this value."""
    return Strategy(lambda _: value)


def sampled_from(values: Sequence[T]) -> Strategy[T]:
    """One of some values."""
    return Strategy(lambda random: random.choice(values))


def one_of(*strategies: Strategy[T]) -> Strategy[T]:
    """What one of some strategies draws."""
    return Strategy(lambda random: random.choice(strategies).draw(random))


def integers(least: int, most: int) -> Strategy[int]:
    """An integer between two, which are drawn too."""
    return Strategy(lambda random: random.randint(least, most))


def booleans() -> Strategy[bool]:
    """False or True."""
    return sampled_from([False, True])


def lists(each: Strategy[T], least: int, most: int) -> Strategy[list[T]]:
    """Between two numbers of values."""
    return Strategy(lambda random: [each.draw(random) for _ in range(random.randint(least, most))])


def samples(values: Sequence[T], count: int) -> Strategy[list[T]]:
    """So many different ones of some values, in any order."""
    return Strategy(lambda random: random.sample(values, count))


def builds(function: Callable[..., T], *parts: Strategy[Any]) -> Strategy[T]:
    """What a function makes of drawn values."""
    return Strategy(lambda random: function(*(part.draw(random) for part in parts)))
