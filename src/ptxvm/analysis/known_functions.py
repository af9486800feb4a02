"""Functions that differ in the names that they declare, and in constants, are known as one: only the first is walked.

They may name different symbols of the module, whose declarations are alike (`ptxvm.syntax.alike`).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ptxvm.analysis.known_lines import with_sizes, without_constants
from ptxvm.analysis.names_ahead import BLOCK_MARK, OWN_MARK, WORD, is_opcode, names_declared
from ptxvm.analysis.scope import NameScope
from ptxvm.syntax import tree
from ptxvm.syntax.alike import KEPT_NAMES, names_in_head
from ptxvm.syntax.statements import BLANKS, CODE_LABEL, DECLARATION, find_labels

LONGEST = 1 << 12
"""The characters of a function that is known as a whole."""

MOST = 1 << 10
"""The functions that are kept; they are forgotten where there are more."""

MOST_UNMET = 64
"""Functions in a row that are like none above: then those below are not compared."""

_FAMILY = re.compile(rf"(?<![\w$%])[$_A-Za-z][\w$]*[{BLANKS}]*<", re.ASCII)
"""A family whose registers look like other names."""


class Likeness:
    """A head, and the text of a body with numbers for the names that both declare, and models for those of the module.

    It is `exact`, or `plain` without constants.  `bare` are the words of a body that names nothing, None for others.
    """

    __slots__ = ("bare", "exact", "plain")

    def __init__(self, head: int, body: str, words: frozenset[str] | None) -> None:
        self.exact = head, body
        self.plain = head, without_constants(with_sizes(body))
        self.bare = words


class KnownFunctions:
    """The functions of a module whose bodies are right, and depend on nothing around them but what is declared alike."""

    def __init__(self) -> None:
        self._plain, self._exact = set[tuple[int, str]](), set[tuple[int, str]]()
        self._bare: dict[tuple[int, str], Likeness] = {}  # of bodies that name nothing, by the model of the head
        self._unmet = 0

    def likeness(
        self,
        text: str,
        node: tree.Function | tree.Alike,
        body: tree.Unread,
        module: NameScope,
        model_of: Callable[[str], int | None],
    ) -> Likeness | None:
        """What functions like this one have in common; None where it is not compared with others."""
        if self._unmet > MOST_UNMET or body.end - node.start > LONGEST:
            return None
        whole = id(node.model if isinstance(node, tree.Alike) else node), text[body.start : body.end]
        if (known := self._bare.get(whole)) is not None and is_bare(known, text, node, body, module):
            return known
        if text.find('"', node.start, body.end) >= 0:  # a string can hold what looks like a name
            return None
        if (own := own_names(text, node, body, module)) is None:
            return None
        pieces = WORD.split(whole[1])
        words = frozenset(pieces[1::2])
        for name in words.difference(own):
            if name not in module.names:
                continue
            if (meant := model_of(name)) is None:
                return None
            own[name] = f"{OWN_MARK}{meant}"
        pieces[1::2] = map(own.__getitem__, pieces[1::2])
        made = "".join(pieces)
        return Likeness(whole[0], made, words if made == whole[1] else None)

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
            self._bare.clear()
        if found.bare is not None:
            self._bare[found.exact] = found
        if whatever_constants:
            self._plain.add(found.plain)
        else:
            self._exact.add(found.exact)


def is_bare(known: Likeness, text: str, node: tree.Function | tree.Alike, body: tree.Unread, module: NameScope) -> bool:
    """Does a body that named nothing name nothing in a function without parameters either?"""
    words = known.bare or frozenset()
    alone = names_in_head(text, node.start, body.start) == [node.name] and text.find('"', node.start, body.start) < 0
    return alone and node.name not in words and module.names.keys().isdisjoint(words)


class OwnNames(dict[str, str]):
    """What stands for a word of a function: for a name that it declares the number of the name, for others the word."""

    def __missing__(self, word: str) -> str:
        name, dot, rest = word.partition(".")
        return f"{self[name]}.{rest}" if dot and name in self else word


def own_names(text: str, node: tree.Function | tree.Alike, body: tree.Unread, module: NameScope) -> OwnNames | None:
    """The names that a function declares, its own among them; None where one means something else, too."""
    names = names_in_head(text, node.start, body.start)
    for found in DECLARATION.finditer(text, body.start, body.end):
        if "<" in found[1] and _FAMILY.search(found[1]):
            return None
        names += names_declared(found[1])
    names += [label[1] for label in find_labels(CODE_LABEL, text, body.start, body.end)]
    own = OwnNames()
    for name in names:
        if name[0] != "%" and name not in KEPT_NAMES:
            own.setdefault(name, f"{BLOCK_MARK}{len(own)}")
    others = own.keys() - {node.name}
    return own if module.names.keys().isdisjoint(others) and not any(map(is_opcode, own)) else None
