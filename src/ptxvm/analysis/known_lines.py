"""Lines of bodies that are known to be right: a set of them answers for most of the text of a body.

Registers of a family, labels and constants of a kind are unified, so that `add.s32 %r7, %r6, 16;` and `add.s32 %r9, %r7, 4;`
are one line.  A line is known where its statement was found right, and so is a block that declares registers of its own.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Set as AbstractSet
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, islice
from typing import ClassVar

from ptxvm.analysis.scope import DIGITS, LONGEST_NUMBER, Family, NameScope, register_shape
from ptxvm.analysis.symbols import Label, Register, Table
from ptxvm.isa.operand_types import Shape
from ptxvm.isa.targets import Need
from ptxvm.syntax import tree
from ptxvm.syntax.statements import BLANKS

Names = tuple[bool, bool, tuple[tuple[str, Shape], ...], tuple[tuple[str, Shape], ...]]
"""What lines can mention: is it an entry; are names with `$` labels; families and other registers with `%`."""

Needs = tuple[Need, ...]
"""What a version and target must give for something to be right."""

LinesByNeeds = dict[Needs, list[str]]
"""Lines that are right for many versions and targets."""

LONGEST_BLOCK = 64
"""The lines of a block that is known as a whole."""

STRETCH = 1 << 16
"""The characters of a body whose lines are looked at together: what they take in memory is some times that."""

MOST_LINES = 1 << 13
"""The lines that are kept for one set of names; they are forgotten where there are more."""

MOST_NAMES = 64
"""The sets of names whose lines are kept."""

CONSTANTS = {
    mark: (re.compile(pattern, re.ASCII).sub, common)
    for mark, pattern, common in (
        ("", r"\d(?<=[ \t+-]\d)(?:(?<!0)\d{1,8})?(?![\w.$])", "0"),
        ("0x", r"0x[0-9a-fA-F]{1,16}(?!\w)", "0x0"),
        ("0f", r"0f[0-9a-fA-F]{8}(?!\w)", "0f00000000"),
        ("0d", r"0d[0-9a-fA-F]{16}(?!\w)", "0d0000000000000000"),
    )
}
"""What stands in a text with constants of a kind; how they are found, and what they become.

Expressions here begin with what is rare and look behind it: the other way they take twenty times as long.
"""

_LABEL = re.compile(r"\$(?<![\w$%]\$)[\w$]*", re.ASCII)
_TARGET = re.compile(r"\$(?<![\w$%]\$)[\w$]*+(?![ \t]*:)", re.ASCII)
_OTHER_NAME = re.compile(r"(?<![\w$%.])[$_A-Za-z][\w$]*", re.ASCII)


class Known:
    """Lines that are right where certain names are in sight: whatever their small integers are, or exactly as they stand."""

    __slots__ = ("exact", "plain", "shared", "taken")

    def __init__(self, shared: LinesByNeeds) -> None:
        self.plain, self.exact, self.shared = {""}, set[str](), shared
        self.taken: dict[Needs, int] = {}

    def share(self, line: str, needs: Needs) -> None:
        """Let a line be known for all versions and targets that give what it needs."""
        lines = self.shared.setdefault(needs, [])
        if len(lines) < MOST_LINES:
            lines.append(line)

    def take(self, gives: Callable[[Needs], bool]) -> None:
        """Take what is shared since, as far as the version and target give what it needs."""
        for needs, lines in self.shared.items():
            taken = self.taken.get(needs, 0)
            if len(lines) > taken and gives(needs):
                self.plain.update(lines[taken:])
                self.taken[needs] = len(lines)

    def add(self, lines: set[str], line: str) -> None:
        """Remember a line in one of the sets."""
        if len(lines) > MOST_LINES:
            lines.clear()
        lines.add(line)


class KnownLines:
    """The known lines of one version and target, by the names that they can mention."""

    shared: ClassVar[dict[Names, LinesByNeeds]] = {}

    def __init__(self, gives: Callable[[Needs], bool]) -> None:
        self._known: dict[Names, Known] = {}
        self._gives = gives

    def of(self, names: Names) -> Known:
        """The lines that are right where these names are in sight."""
        known = self._known.get(names)
        if known is None:
            for each in (self._known, self.shared):
                if len(each) > MOST_NAMES:
                    each.clear()
            known = self._known[names] = Known(self.shared.setdefault(names, {}))
        known.take(self._gives)
        return known


class ModuleNames:
    """The names of a module, of which none may begin with `%` where lines are known."""

    def __init__(self) -> None:
        self._seen, self._usual = 0, True

    def are_usual(self, module: NameScope) -> bool:
        """Does no name of the module begin with `%`?  Each is looked at once."""
        self._usual = self._usual and not any(name.startswith("%") for name in islice(module.names, self._seen, None))
        self._seen = len(module.names)
        return self._usual and not module.families


def names_in_sight(scope: NameScope, *, entry: bool, labels: bool) -> Names | None:
    """What lines of a body can mention; None where a name can hide a register of a family, or is none."""
    families = {f.prefix: register_shape(f.type, f.vector) for f in scope.families.values() if f.prefix.startswith("%")}
    others: dict[str, Shape] = {}
    if any(prefix[-1] in DIGITS for prefix in families):
        return None
    for name, symbol in scope.names.items():
        if name.startswith("%"):
            if not isinstance(symbol, Register) or name.rstrip(DIGITS) in families:
                return None
            others[name] = symbol.shape
        elif name.startswith("$") and labels and not isinstance(symbol, Label | Table):
            return None
    return entry, labels, tuple(families.items()), tuple(others.items())


def targets(text: str, start: int, end: int) -> set[str]:
    """The names with `$` that a body mentions."""
    return set(_TARGET.findall(text, start, end))


class Stretch:
    """Some lines of a body.

    `starts` are the places of the lines, and the place behind the last; `lines` have their registers and labels unified,
    but for the names of `lists` of labels, and `plain` their constants too.
    """

    __slots__ = ("lines", "plain", "starts")

    def __init__(
        self,
        text: str,
        start: int,
        end: int,
        families: Iterable[Family],
        *,
        labels: bool,
        lists: AbstractSet[str] = frozenset(),
    ) -> None:
        if end - start > STRETCH and (cut := text.find("\n", start + STRETCH, end)) >= 0:
            end = cut + 1
        stretch = text[start:end]
        self.starts = [*accumulate((len(line) + 1 for line in stretch.split("\n")), initial=start)]
        self.starts[-1] = end
        for family in families:
            if family.prefix.startswith("%"):
                stretch = unified(stretch, family)
        if labels and lists:
            stretch = _LABEL.sub(lambda found: found[0] if found[0] in lists else "$L", stretch)
        elif labels:
            stretch = "$L".join(_LABEL.split(stretch))
        self.lines = stretch.split("\n")
        for mark, (unify, common) in CONSTANTS.items():
            if mark in stretch:
                stretch = unify(common, stretch)
        self.plain = stretch.split("\n")

    def number(self, place: int) -> int:
        """The number of the line with a place."""
        return bisect_right(self.starts, place) - 1

    def first_unknown(self, number: int, known: Known, own: set[str]) -> int:
        """The number of the first line from this one on that is not known, neither to all nor to the block itself."""
        plain, exact, lines, behind = known.plain, known.exact, self.lines, number
        for line in islice(self.plain, number, None):
            if line not in plain and line not in own and line.rstrip(BLANKS) not in plain and lines[number] not in exact:
                if number >= behind and "{" in line:
                    behind = self.behind_block(number, known, own)
                if number >= behind:
                    break
            number += 1
        return number

    def behind_block(self, number: int, known: Known, own: set[str]) -> int:
        """The number of the line behind a block that begins with a line and is known; else that of the line."""
        depth = 0
        for last in range(number, min(number + LONGEST_BLOCK, len(self.plain))):
            line = self.plain[last]
            depth += line.count("{") - line.count("}")
            if depth == 0:
                block = self.block(number, last)
                return last + 1 if block in known.plain or block in own else number
        return number

    def block(self, first: int, last: int) -> str:
        """The text of some lines, without the blanks at their ends."""
        return "\n".join([line.rstrip(BLANKS) for line in self.plain[first : last + 1]])


class TooLarge(Exception):  # noqa: N818 - the lines are looked at one by one, which reports it
    """The number of a register is none of its family."""


def unified(text: str, family: Family) -> str:
    """A text with one number for all registers of a family."""
    pieces = numbers_of(family.prefix)(text)
    if len(pieces) == 1:
        return text
    if max(map(int, set(pieces[1::2]))) >= family.count:
        raise TooLarge
    return f"{family.prefix}0".join(pieces[::2])


@lru_cache(maxsize=256)
def numbers_of(prefix: str) -> Callable[[str], list[str]]:
    """What divides a text at the registers of a family, and gives their numbers."""
    return re.compile(rf"{re.escape(prefix)}(\d{{1,{LONGEST_NUMBER}}})(?![\w$])", re.ASCII).split


def others(operands: str, *, labels: bool) -> list[str]:
    """The names in operands that mean something in one body only: variables, labels, registers of PTX by hand."""
    found: list[str] = _OTHER_NAME.findall(operands)
    return [name for name in found if not (labels and name.startswith("$"))]


# ── declarations ────────────────────────────────────────────────────────────────────────


def names_of(node: tree.Variable | tree.Prototype) -> list[str]:
    """The names, or their beginnings, that a statement declares."""
    return [node.label] if isinstance(node, tree.Prototype) else [each.name for each in node.declarators]


def of_count(node: tree.Variable, count: int) -> tree.Variable:
    """The declaration of a family with another number of registers."""
    (family,) = node.declarators
    return replace(node, declarators=[replace(family, count=tree.Integer(count, start=family.start, end=family.end))])
