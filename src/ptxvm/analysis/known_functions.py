"""Functions that differ in the names that they declare, and in constants, are known as one: only the first is walked."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from ptxvm.analysis.known_lines import KEPT_NAMES, with_sizes, without_constants
from ptxvm.analysis.names_ahead import BLOCK_MARK, WORD, is_opcode, names_declared
from ptxvm.analysis.program import Function
from ptxvm.analysis.scope import NameScope
from ptxvm.syntax import tree
from ptxvm.syntax.statements import BLANKS, CODE_LABEL, DECLARATION

LONGEST = 1 << 12
"""The characters of a function that is known as a whole."""

MOST = 1 << 10
"""The functions that are kept; they are forgotten where there are more."""

MOST_UNMET = 64
"""Functions in a row that are like none above: then those below are not compared."""

_FAMILY_OR_STRING = re.compile(rf'"|(?<![\w$%])[$_A-Za-z][\w$]*[{BLANKS}]*<', re.ASCII)
"""A family whose registers look like other names, or a string, which can hold what looks like a name."""


class Likeness:
    """The text of a function with numbers for the names that it declares: `exact`, or `plain` without constants."""

    __slots__ = ("exact", "plain")

    def __init__(self, head: str, body: str) -> None:
        self.exact = head + body
        self.plain = head + without_constants(with_sizes(body))


class KnownFunctions:
    """The functions of a module whose bodies are right, and depend on nothing around them."""

    def __init__(self) -> None:
        self._plain, self._exact = set[str](), set[str]()
        self._unmet = 0

    def likeness(self, text: str, function: Function, body: tree.Unread, module: NameScope) -> Likeness | None:
        """What functions like this one have in common; None where it is not compared with others."""
        start = function.node.start
        if (
            self._unmet > MOST_UNMET
            or body.end - start > LONGEST
            or _FAMILY_OR_STRING.search(text, start, body.end)
            or (own := own_names(text, function, body, module)) is None
        ):
            return None
        numbered = numbering(own)
        found = []
        for first, last in ((start, body.start), (body.start, body.end)):
            pieces = WORD.split(text[first:last])
            if not module.names.keys().isdisjoint(set(pieces[1::2]) - own):
                return None
            pieces[1::2] = map(numbered, pieces[1::2])
            found.append("".join(pieces))
        return Likeness(*found)

    def has(self, found: Likeness) -> bool:
        """Is a function like this one known?"""
        known = found.plain in self._plain or found.exact in self._exact
        self._unmet = 0 if known else self._unmet + 1
        return known

    def add(self, found: Likeness, *, whatever_constants: bool) -> None:
        """Remember a function that is right, whatever its constants are or as they stand."""
        if len(self._plain) + len(self._exact) > MOST:
            self._plain.clear()
            self._exact.clear()
        if whatever_constants:
            self._plain.add(found.plain)
        else:
            self._exact.add(found.exact)


def own_names(text: str, function: Function, body: tree.Unread, module: NameScope) -> set[str] | None:
    """The names that a function declares, its own among them; None where one means something else, too."""
    node = function.node
    own = {each.declarators[0].name for each in (*node.results, *node.parameters)}
    for found in DECLARATION.finditer(text, body.start, body.end):
        own.update(names_declared(found[1]))
    if text.find(":", body.start, body.end) >= 0:
        own.update(CODE_LABEL.findall(text, body.start, body.end))
    own = {name for name in own if name[0] != "%"} - KEPT_NAMES
    if not module.names.keys().isdisjoint(own):
        return None
    own.add(node.name)
    return None if any(map(is_opcode, own)) else own


def numbering(own: Collection[str]) -> Callable[[str], str]:
    """What stands for a word: of a name that is the function's own its number, in the order of the text."""
    numbers: dict[str, str] = {}

    def numbered(word: str) -> str:
        name, dot, rest = word.partition(".")
        return f"{numbers.setdefault(name, f'{BLOCK_MARK}{len(numbers)}')}{dot}{rest}" if name in own else word

    return numbered
