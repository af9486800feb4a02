"""What memoised validation remembers: what is right for one version and target, or for all that give what it needs."""

from __future__ import annotations

import enum
from functools import lru_cache
from typing import ClassVar

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.known_lines import KnownLines, Needs
from ptxvm.analysis.operand_forms import Forms
from ptxvm.analysis.recognise import Recogniser
from ptxvm.analysis.validate import MOST_TARGETS
from ptxvm.isa.targets import gives
from ptxvm.syntax import tree


class Left(enum.IntEnum):
    """What is left to check of an instruction whose head and forms of operands are known to be right."""

    NOTHING = 1
    PARAMETER = 2
    """It loads a parameter: does a call give that a value (`passing`)?"""
    CONSTANTS = 3
    """The verdict depends on the values of its constants."""


Key = tuple[object, ...]
"""A head and the forms of its operands; with the values of constants where the verdict depends on them."""

Spelling = tuple[str, ...]
"""A declaration; that of a family of registers without their number."""

MOST_DECLARATIONS = 1 << 12
"""The declarations that are kept."""

MOST_KEYS = 1 << 14
"""The instructions that are kept of a version and target, and of all together: their constants have any value."""


class Memo:
    """What is known of the instructions of one version and target, for all modules of both.

    `shared` is what holds for other versions and targets too, with what they need.
    """

    forms = Forms()
    shared: ClassVar[dict[Key, tuple[Left, Needs]]] = {}
    declarations: ClassVar[dict[Spelling, list[tree.Statement]]] = {}
    """The trees of declarations by their text, which are the same in all modules but for their places."""

    def __init__(self, known: Recogniser) -> None:
        self.known, self.lines = known, KnownLines(self.gives)
        self.cleared: dict[Key, Left] = {}
        self._gives: dict[Needs, bool] = {}

    def gives(self, needs: Needs) -> bool:
        """Have version and target what is needed?"""
        found = self._gives.get(needs)
        if found is None:
            version, target = self.known.version, self.known.target
            found = all(gives(version, need.version) and need.met_by(target) for need in needs)
            self._gives[needs] = found
        return found

    def left(self, key: Key) -> Left | None:
        """What is left to check of an instruction, if others like it are right here, or elsewhere and so here too."""
        left = self.cleared.get(key)
        if left is None and (shared := self.shared.get(key)) is not None and self.gives(shared[1]):
            left = shared[0]
            self.clear(key, left)
        return left

    def clear(self, key: Key, left: Left) -> None:
        """Remember that instructions like one are right here; too many are forgotten together."""
        if len(self.cleared) >= MOST_KEYS:
            self.cleared.clear()
        self.cleared[key] = left

    def enter(self, key: Key, left: Left, needs: Needs | None) -> None:
        """Remember that instructions like one are right; everywhere where `needs` are given, unless it is None."""
        self.clear(key, left)
        if needs is not None:
            if len(self.shared) >= MOST_KEYS:
                self.shared.clear()
            self.shared[key] = left, needs

    def keep(self, spelling: Spelling, statements: list[tree.Statement]) -> None:
        """Keep what was read, if it declares registers, or what calls pass."""
        if all(isinstance(each, tree.Variable) and each.space in (Space.REG, Space.PARAM) for each in statements):
            if len(self.declarations) > MOST_DECLARATIONS:
                self.declarations.clear()
            self.declarations[spelling] = statements

    @staticmethod
    @lru_cache(maxsize=MOST_TARGETS)
    def of(known: Recogniser) -> Memo:
        """The memo of a recogniser."""
        return Memo(known)
