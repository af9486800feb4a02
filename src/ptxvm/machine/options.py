"""Validation of what a user passes: the options of a launch, with the same messages on every engine."""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, SupportsFloat, SupportsIndex, TypeAlias, TypeVar, get_args

from ptxvm.diagnostics import KINDS, did_you_mean
from ptxvm.named_tuple import NamedTuple

EngineName = Literal["auto", "interp", "jit"]
Numerics = Literal["exact", "fast"]
Check = Literal["memory", "init", "sync", "race"]
Dump = Literal["shapes", "llvm", "asm"]
Completion = Literal["early", "late", "random"]
Extent: TypeAlias = SupportsIndex | Sequence[SupportsIndex]

ENGINES: tuple[str, ...] = get_args(EngineName)
NUMERICS: tuple[str, ...] = get_args(Numerics)
CHECKS: tuple[Check, ...] = get_args(Check)
ALL = "all"
"""Asks for every check."""
DUMPS: tuple[str, ...] = get_args(Dump)
COMPLETIONS: tuple[str, ...] = get_args(Completion)

T = TypeVar("T")

NONE: frozenset[str] = frozenset()
LONGEST = 80  # characters of a value in a message


class Count(NamedTuple):
    """A number of something: the message for any other value, and the least number allowed."""

    said: str
    least: int | None


COUNTS = {
    "shared": Count("shared is how many bytes of dynamic shared memory a CTA gets", 0),
    "schedules": Count("a launch is run 1 or more times", 1),
    "steps": Count("steps is how many instructions the threads may execute", 1),
    "devices": Count("there are 1 or more devices", 1),
    "threads": Count("a kernel is run by 1 or more threads of the host", 1),
    "workers": Count("a campaign is run by 1 or more processes", 1),
    "seed": Count("seed is an integer, from which random schedules are made", None),
    "runs": Count("runs is how often a test is run", 0),
    "bound": Count("bound is how often a loop is followed", 0),
    "channels": Count("an element has 1, 2 or 4 channels", None),
    "samples": Count("samples is how many there are of each element of an image", 0),
}


def shown(value: object) -> str:
    """A value, short enough for a message of one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def index(value: object) -> int | None:
    """An integer of Python or NumPy; None for any other value: booleans are not numbers here."""
    if type(value) is int:
        return value
    try:
        return None if type(value).__name__ in ("bool", "bool_") else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def count(name: str, value: object) -> int:
    """A number for the option of a name."""
    said, least = COUNTS[name]
    found = index(value)
    if found is None:
        raise TypeError(f"{said}, not {shown(value)}")
    if least is not None and found < least:
        raise ValueError(f"{said}, not {found}")
    return found


def extent(name: str, value: object) -> int | tuple[int, ...]:
    """The sizes of a grid, a CTA or a cluster as plain integers, so that equal ones are the same."""
    if type(value) is int or (type(value) is tuple and {*map(type, value)} == {int}):
        return value
    several = isinstance(value, tuple | list)
    sizes = tuple(map(index, value if isinstance(value, tuple | list) else (value,)))
    if any(size is None for size in sizes):
        raise ValueError(f"{name} is an integer or up to three of them, not {shown(value)}")
    found = tuple(size for size in sizes if size is not None)
    return found if several else found[0]


def cluster(value: object) -> int | tuple[int, ...] | None:
    """The sizes of a cluster, or None where nothing is said of clusters."""
    if value is None:
        return None
    found = extent("cluster", value)
    sizes = found if isinstance(found, tuple) else (found,)
    if not 1 <= len(sizes) <= 3 or min(sizes) < 1:
        raise ValueError(f"cluster has one to three sizes of 1 or more, and {shown(value)} was given")
    return found


def one_of(name: str, value: T, allowed: Sequence[str], said: str = "") -> T:
    """One of some words."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is one of {', '.join(allowed)}, not {shown(value)}")
    if value not in allowed:
        raise ValueError(f"{said or f'there is no {name}'} '{value}'; there are {', '.join(allowed)}")
    return value


def count_or_none(name: str, value: object) -> int | None:
    """A number for the option of a name, or None."""
    return None if value is None else count(name, value)


def seconds_or_none(name: str, value: object) -> float | None:
    """A time above zero, or None."""
    if value is None:
        return None
    if isinstance(value, bool | str) or not isinstance(value, SupportsFloat):
        raise TypeError(f"{name} is a number of seconds, not {shown(value)}")
    seconds = float(value)
    if not seconds > 0:
        raise ValueError(f"{name} is a number of seconds above 0, not {shown(value)}")
    return seconds


def names(option: str, value: object, said: str) -> frozenset[str]:
    """Some words; a single word may stand alone."""
    if type(value) is tuple and not value:  # as a rule
        return NONE
    several: object = (value,) if isinstance(value, str) else value
    if (
        not isinstance(several, Collection)
        or isinstance(several, bytes | Mapping)
        or not all(isinstance(each, str) for each in several)
    ):
        raise TypeError(f"{option} is {said}, not {shown(value)}")
    return frozenset(several)


def checks(value: object) -> frozenset[Check] | None:
    """The checks that the caller asks for, if any."""
    if value is None:
        return None
    found = names("check", value, f"None, or names of checks ({', '.join(CHECKS)})")
    if found == {ALL}:
        return frozenset(CHECKS)
    for each in found:
        one_of("check", each, CHECKS)
    return frozenset(check for check in CHECKS if check in found)


def names_of_checks(text: str) -> Sequence[str]:
    """The names in a text such as `memory, race`, known or not; `all` stands for every check."""
    return CHECKS if text.strip() == ALL else [each.strip() for each in text.split(",")]


def checks_in(text: str) -> frozenset[Check] | None:
    """The checks in a text such as `memory, race`, None where it is empty; ValueError for an unknown one."""
    return checks(names_of_checks(text)) if text else None


def instance(name: str, value: T, kinds: type | tuple[type, ...], said: str) -> T:
    """An object of a class."""
    if not isinstance(value, kinds):
        raise TypeError(f"{name} is {said}, not {shown(value)}")
    return value


def arguments(args: object) -> Sequence[object]:
    """The arguments of a launch, in order."""
    if isinstance(args, list | tuple):
        return args
    if not isinstance(args, Sequence) or isinstance(args, str | bytes | bytearray | memoryview):
        raise TypeError(f"args is a list or tuple with one value for each parameter, not {type(args).__name__}")
    return args


def completion(asynchronous: object) -> str:
    """When asynchronous work ends, empty if the launch does not say."""
    if asynchronous is None:
        return ""
    return str(one_of("asynchronous", asynchronous, COMPLETIONS, "asynchronous work does not end"))


def allowed(codes: Collection[str]) -> frozenset[str]:
    """The codes of findings that are not reported; ValueError for an unknown code."""
    found = names("allow", codes, "the code of a finding, or several")
    for each in found:
        if each not in KINDS:
            raise ValueError(f"there is no finding '{each}'; {did_you_mean(each, KINDS) or 'there are ' + ', '.join(KINDS)}")
    return found


def allowed_in(text: str) -> frozenset[str]:
    """The same in a text such as `race,uninitialised`."""
    return allowed([each for each in text.split(",") if each])
