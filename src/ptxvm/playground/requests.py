"""What a page may ask: one dataclass for each kind of request, and how it is made of JSON."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, get_args, get_origin, get_type_hints

from ptxvm.dataclass import dataclass
from ptxvm.diagnostics import did_you_mean

MOST_TEXT = 1 << 20
"""Characters of a text in a request."""

WORDS = {str: "a text", int: "a whole number", bool: "true or false"}


class RequestError(ValueError):
    """The request is wrong; the message is one line for the user."""


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """A module to check: for `target`, or for its own."""

    source: str
    target: str | None = None


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """A kernel to launch, in the words of the command line.

    `arguments` are those of `ptxvm run`, but for files; `grid` and `block` are X, X,Y or X,Y,Z.
    """

    source: str
    arguments: tuple[str, ...] = ()
    grid: str = "1"
    block: str = "32"
    entry: str | None = None
    shared: int = 0
    target: str | None = None
    engine: str = "interp"
    checks: tuple[str, ...] = ()
    schedules: int = 1
    seed: int = 0


@dataclass(frozen=True, slots=True)
class StepRequest(LaunchRequest):
    """A launch to follow: all warps of one CTA, by its number."""

    cta: int = 0


@dataclass(frozen=True, slots=True)
class ExplainRequest:
    """A line of PTX to explain, with values of registers as NAME=VALUE."""

    text: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LitmusRequest:
    """A litmus test to judge by a version of chapter 8."""

    source: str
    model: str = "9.1"


@dataclass(frozen=True, slots=True)
class LessonRequest:
    """A kernel that is to solve a lesson."""

    lesson: str
    source: str


@dataclass(frozen=True, slots=True)
class Nothing:
    """A request that needs nothing."""


def decode(function: Callable[[Any], object], params: Mapping[str, object]) -> Any:  # noqa: ANN401 - what the function takes
    """The request that a function takes, of JSON; `RequestError` where a field is missing, unknown or of another type."""
    hints = get_type_hints(function)
    kind = next(hints[name] for name in hints if name != "return")
    known, types_of = fields(kind), get_type_hints(kind)
    for name in params:
        if name not in types_of:
            guess = did_you_mean(name, types_of) or f"there are {', '.join(types_of)}"
            raise RequestError(f"there is no parameter '{name}'; {guess}")
    for field in known:
        if field.default is MISSING and field.name not in params:
            raise RequestError(f"the parameter '{field.name}' is missing")
    return kind(**{name: converted(name, value, types_of[name]) for name, value in params.items()})


def converted(name: str, value: object, type: Any) -> object:  # noqa: ANN401 - a type, a union, or a generic alias
    """A value of JSON as a value of a type."""
    if isinstance(type, types.UnionType):
        (inner,) = (each for each in get_args(type) if each is not types.NoneType)
        return None if value is None else plain(name, value, inner)
    if get_origin(type) is tuple:
        if not isinstance(value, list):
            raise RequestError(f"{name} is a list")
        return tuple(plain(f"each of {name}", each, get_args(type)[0]) for each in value)
    return plain(name, value, type)


def plain(name: str, value: object, type: type) -> object:
    """A value, which is a text, a number or a truth value."""
    if not isinstance(value, type) or (type is int and isinstance(value, bool)):
        raise RequestError(f"{name} is {WORDS[type]}")
    if isinstance(value, str) and len(value) > MOST_TEXT:
        raise RequestError(f"{name} has {len(value):,} characters; the playground takes {MOST_TEXT:,}")
    return value


__all__ = [
    "CheckRequest",
    "ExplainRequest",
    "LaunchRequest",
    "LessonRequest",
    "LitmusRequest",
    "Nothing",
    "RequestError",
    "StepRequest",
    "decode",
]
