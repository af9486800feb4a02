"""Statements of a module that are alike: of those that differ in their names alone only the first is parsed with the module.

They are found by their usual spelling: a variable without a list of values, or the head of a kernel or function, behind the
end of another statement.  All of their names differ from each other.  Kernels whose parameters are each like one of a kernel
above are left, too, in whatever number and order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from operator import attrgetter

from ptxvm.named_tuple import NamedTuple
from ptxvm.syntax import tree
from ptxvm.syntax.statements import BLANKS

KEPT_NAMES = frozenset(("_", "$", "WARP_SZ"))
"""What is no name that is declared."""

_STATEMENT = re.compile(rf'[{BLANKS}]*(\.(?:visible|extern|weak|global|func|entry)(?![\w:])[^;{{}}"<]*)([;{{])', re.ASCII)
_NAME = re.compile(r"(?<![\w$.%:])([$_A-Za-z][\w$]*)", re.ASCII)
_NAME_MARK = "\0"
"""Stands for a name; no text holds it."""


Place = tuple[int, int]
"""Where a statement begins and ends."""


class LikeStatement(NamedTuple):
    """A statement that is like the one at `model`, and its name; `body_start` is -1 without a body.

    `others` are kernels with whose parameters a kernel is made up; without them its parameters are those of the model.
    """

    start: int
    end: int
    body_start: int
    name: str
    model: Place
    others: tuple[Place, ...] = ()


class WrongModel(Exception):  # noqa: N818 - the text is parsed whole then
    """What others are like is no statement by itself."""


def like_statements(text: str, bodies: Iterable[tuple[int, int]]) -> list[LikeStatement]:
    """The statements that are like one above."""
    found: list[LikeStatement] = []
    first: dict[str, Place] = {}
    above: dict[str, dict[str, Place]] = {}
    for start, end, body_start in _statements(text, bodies):
        pieces = _NAME.split(text[start : end if body_start < 0 else body_start])
        names = pieces[1::2]
        if not (names and len(set(names)) == len(names) and KEPT_NAMES.isdisjoint(names) and _declares_one(pieces)):
            continue
        key = _NAME_MARK.join(pieces[::2])
        if (model := first.get(key)) is not None:
            name = _declared_name(pieces) if "(" in pieces[0] else names[0]
            found.append(LikeStatement(start, end, body_start, name, model))
            continue
        if len(names) > 1 and body_start >= 0 and ".entry" in pieces[0]:
            around, forms = _parameter_forms(key)
            known = above.setdefault(around, {})
            new = [form for form in forms if form not in known]
            if not new:
                others = tuple(sorted({known[form] for form in forms}))
                found.append(LikeStatement(start, end, body_start, names[0], others[0], others))
                continue
            if all(form.count(_NAME_MARK) == 1 for form in new):
                known.update(dict.fromkeys(new, (start, end)))
        first[key] = start, end
    return found


def _parameter_forms(key: str) -> tuple[str, list[str]]:
    """The head of a kernel without names, taken apart: what stands around its parameters, and each of these."""
    before, _, behind = key.partition("(")
    listed, _, after = behind.rpartition(")")
    return f"{before}({after}", [form.strip(BLANKS) for form in listed.split(",")]


def forms_of_parameters(text: str, start: int) -> dict[str, str]:
    """The form of each parameter in the head of a kernel that begins at a place, by its name."""
    pieces = _NAME.split(text[start : text.index("{", start)])
    return dict(zip(pieces[3::2], _parameter_forms(_NAME_MARK.join(pieces[::2]))[1], strict=True))


def _declared_name(pieces: Sequence[str]) -> str:
    """The name that a statement declares, taken apart at its names: the first that stands in no brackets, as results do."""
    depths = accumulate(piece.count("(") - piece.count(")") for piece in pieces[::2])
    return next((name for depth, name in zip(depths, pieces[1::2], strict=False) if depth == 0), "")


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


def merged(text: str, parsed: Sequence[tree.Statement], like: list[LikeStatement]) -> list[tree.Statement]:
    """All statements in the order of the text; WrongModel where one is not what it was taken for.

    `like` is used up: both at once would take half as much memory again.
    """
    by_start = {each.start: each for each in parsed}
    models: dict[Place, tree.Variable | tree.Function] = {}
    made_up: dict[tuple[Place, ...], tuple[tree.Function, ...]] = {(): ()}
    found: list[tree.Statement] = [*parsed]
    like.reverse()
    while like:
        start, end, body_start, name, place, others = like.pop()
        if place not in models or others not in made_up:
            for each in (place, *others):
                models[each] = _model(text, by_start.get(each[0]), each[1])
            made_up[others] = tuple([kernel for each in others if isinstance(kernel := models[each], tree.Function)])
        found.append(tree.Alike(name, models[place], body_start, made_up[others], start=start, end=end))
    found.sort(key=attrgetter("start"))
    if any(one.end > other.start for one, other in pairwise(found)):
        raise WrongModel
    return found


def _model(text: str, statement: tree.Statement | None, end: int) -> tree.Variable | tree.Function:
    """What others are like."""
    if isinstance(statement, tree.Function) and statement.end == end:
        head_end = end if statement.body is None else statement.body.start
        if _declared_name(_NAME.split(text[statement.start : head_end])) == statement.name:
            return statement
    elif isinstance(statement, tree.Variable) and statement.end == end and len(statement.declarators) == 1:
        declarator = statement.declarators[0]
        if declarator.count is None and names_in_head(text, statement.start, end) == [declarator.name]:
            return statement
    raise WrongModel
