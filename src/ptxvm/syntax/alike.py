"""Statements of a module that are alike: of those that differ in their names alone only the first is parsed with the module.

They are found by their usual spelling: a variable without a list of values, or the head of a kernel or function, behind the
end of another statement.  All of their names differ from each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from ptxvm.syntax import tree
from ptxvm.syntax.statements import BLANKS

KEPT_NAMES = frozenset(("_", "$", "WARP_SZ"))
"""What is no name that is declared."""

_STATEMENT = re.compile(rf'[{BLANKS}]*(\.(?:visible|extern|weak|global|func|entry)(?![\w:])[^;{{}}"<]*)([;{{])', re.ASCII)
_NAME = re.compile(r"(?<![\w$.%:])([$_A-Za-z][\w$]*)", re.ASCII)
_NAME_MARK = "\0"
"""Stands for a name; no text holds it."""


class LikeStatement(NamedTuple):
    """A statement that is like the one at `model`, with its names in their order; `body_start` is -1 without a body."""

    start: int
    end: int
    body_start: int
    names: Sequence[str]
    model: tuple[int, int]


class WrongModel(Exception):  # noqa: N818 - the text is parsed whole then
    """What others are like is no statement by itself."""


def like_statements(text: str, bodies: Iterable[tuple[int, int]]) -> list[LikeStatement]:
    """The statements that are like one above."""
    found: list[LikeStatement] = []
    first: dict[str, tuple[int, int]] = {}
    for start, end, body_start in _statements(text, bodies):
        pieces = _NAME.split(text[start : end if body_start < 0 else body_start])
        names = pieces[1::2]
        if names and len(set(names)) == len(names) and KEPT_NAMES.isdisjoint(names) and _declares_one(pieces):
            model = first.setdefault(_NAME_MARK.join(pieces[::2]), (start, end))
            if model[0] != start:
                found.append(LikeStatement(start, end, body_start, names, model))
    return found


def _declares_one(pieces: Sequence[str]) -> bool:
    """Does a statement, taken apart at its names, declare a function, or one variable by the only name that it has?"""
    return len(pieces) == 3 or ".func" in pieces[0] or ".entry" in pieces[0]


def _statements(text: str, bodies: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """The places of the statements in their usual spelling, and of their bodies: each begins behind the end of another."""
    at, is_end = 0, False
    for body, body_end in (*bodies, (len(text), len(text))):
        while at < body:
            found = _STATEMENT.match(text, at, body + 1) if is_end else None
            if found is None or (found[2] == "{" and found.end() <= body):
                at, is_end = text.find(";", at if found is None else found.end(), body) + 1, True
                if at == 0:
                    break
            elif found[2] == ";":
                yield found.start(1), found.end(), -1
                at = found.end()
            else:
                yield found.start(1), body_end, body
                break
        at, is_end = body_end, True


def names_in_head(text: str, start: int, end: int) -> list[str]:
    """The names that the head of a function declares, its own among them, where it is spelt as usual."""
    return _NAME.findall(text, start, end)


def covered(text: str, statements: Iterable[LikeStatement]) -> Iterator[tuple[int, int]]:
    """The places that statements cover, with those that follow each other as one."""
    first = last = -1
    for each in statements:
        if first < 0 or text[last : each.start].strip(BLANKS):
            if first >= 0:
                yield first, last
            first = each.start
        last = each.end
    if first >= 0:
        yield first, last


def merged(text: str, parsed: Sequence[tree.Statement], like: Iterable[LikeStatement]) -> list[tree.Statement]:
    """All statements in the order of the text; WrongModel where one is not what it was taken for."""
    by_start = {each.start: each for each in parsed}
    models: dict[tuple[int, int], tuple[tree.Variable | tree.Function, int]] = {}
    found: list[tree.Statement] = [*parsed]
    for start, end, body_start, names, place in like:
        known = models.get(place)
        if known is None:
            known = models[place] = _model(text, by_start.get(place[0]), place[1])
        found.append(tree.Alike(names[known[1]], known[0], body_start, start=start, end=end))
    found.sort(key=attrgetter("start"))
    if any(one.end > other.start for one, other in pairwise(found)):
        raise WrongModel
    return found


def _model(text: str, statement: tree.Statement | None, end: int) -> tuple[tree.Variable | tree.Function, int]:
    """What others are like, and which of its names it declares."""
    if isinstance(statement, tree.Function) and statement.end == end:
        head_end = end if statement.body is None else statement.body.start
        return statement, names_in_head(text, statement.start, head_end).index(statement.name)
    if isinstance(statement, tree.Variable) and statement.end == end and len(statement.declarators) == 1:
        declarator = statement.declarators[0]
        if declarator.count is None and names_in_head(text, statement.start, end) == [declarator.name]:
            return statement, 0
    raise WrongModel
