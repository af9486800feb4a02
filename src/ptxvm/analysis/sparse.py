"""Sparse reading: of a body with errors, only the statements are read in full that may be wrong, and those that these need.

The walk is that of `bodies`.  What it knows to be right has no place in the tree that comes out; declarations, labels, blocks,
calls and loads of parameters have, and everything that is doubtful.  So the tree has the errors of the whole body.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from ptxvm.analysis import passing
from ptxvm.analysis.bind import Binder
from ptxvm.analysis.bodies import OWN_VARIABLES, Bodies
from ptxvm.analysis.body_check import BodyCheck, Doubt
from ptxvm.analysis.body_lines import BlockCheck
from ptxvm.analysis.memo import Key, Left
from ptxvm.analysis.program import Function
from ptxvm.analysis.recognise import Recognition
from ptxvm.diagnostics import Diagnostic
from ptxvm.isa.summary import calls
from ptxvm.syntax import tree
from ptxvm.syntax.cursor import NAME_START
from ptxvm.syntax.statements import BLANKS, DECLARATION, DECLARATION_BEGIN

_NAME = re.compile(r"[$_A-Za-z%][\w$]*", re.ASCII)
_APART = re.compile(r"\S[^;]*?[\s,]\.\w", re.ASCII)
"""A word with a dot before it that does not begin a statement, as in declarations."""
_BEGINS = frozenset(".@/*\"'#!&|^~<>=?")
"""What else than a name belongs to nothing above it where it begins a line: the begins of statements, and of none."""


class WholeBody(Exception):  # noqa: N818 - the whole body is read then
    """An error of syntax may reach beyond its statement."""


def sparse(bodies: Bodies, binder: Binder, function: Function, body: tree.Unread) -> tuple[tree.Block, list[Diagnostic]] | None:
    """What has to be read of a body, and its errors of syntax; None where the whole body has to be."""
    if binder.program.version < OWN_VARIABLES:
        return None
    missing: frozenset[str] = frozenset()
    try:
        while True:
            walk = SparseWalk(bodies, binder, function, body, missing)
            walk.run()
            if walk.missing <= missing:
                return walk.blocks[0], walk.syntax
            missing |= walk.missing
    except (Doubt, WholeBody):
        return None


class SparseWalk(BodyCheck):
    """A walk over a body that keeps what is doubtful; `without` are labels that do not exist."""

    enters_families = False
    numbers_names = False

    def __init__(
        self, bodies: Bodies, binder: Binder, function: Function, body: tree.Unread, without: Collection[str] = ()
    ) -> None:
        super().__init__(bodies, binder, function, body)
        self.without = frozenset(without)
        self.missing: frozenset[str] = frozenset()
        self.blocks = [tree.Block([], start=body.start, end=body.end)]
        self.syntax: list[Diagnostic] = []
        self._has_kept = False
        self._doubtful: set[Key] = set()

    # ── statements ──────────────────────────────────────────────────────────────────────

    def head(self, found: re.Match[str], number: int) -> None:
        """An instruction, which is kept where it is not known to be right."""
        self._has_kept = False
        if self.without and not self.without.isdisjoint(_NAME.findall(found[3] or "")):
            self.keep(*found.span())
            return
        try:
            super().head(found, number)
        except Doubt:
            self.keep(*found.span())

    def instruction_at(
        self, start: int, end: int, key: tuple[object, ...], parts: Sequence[str], left: Left | None
    ) -> Left | None:
        """The same; loads of parameters are kept, for what they load may have no value.

        An instruction like a doubtful one is kept, too: to look at it here would be to read and check it twice.
        """
        if key in self._doubtful:
            raise Doubt
        try:
            left = super().instruction_at(start, end, key, parts, left)
        except Doubt:
            self._doubtful.add(key)
            raise
        if left is Left.PARAMETER and not self._has_kept:
            self.keep(start, end)
        return left

    def instruction(self, node: tree.Instruction) -> Recognition:
        """The same; calls and loads of parameters are kept."""
        verdict = super().instruction(node)
        if self._has_kept:
            return verdict
        if calls(node.opcode) or (verdict.decoded is not None and passing.loads_parameter(verdict.decoded)):
            self._add(node)
        return verdict

    def remember(self, number: int, found: re.Match[str], left: Left, key: Key) -> None:
        """The same; each load of a parameter is looked at."""
        if left is Left.PARAMETER:
            self.frames[-1].first = -1
        else:
            super().remember(number, found, left, key)

    def expect_labels(self, frame: BlockCheck) -> None:
        """The labels ahead have to be met: what looks like one can be a part of something wrong."""
        frame.forms.wanted |= self.lines.labels_ahead

    def statement(self, found: re.Match[str], number: int) -> bool:
        """Any other statement."""
        label, brace, place = found.group(4, 5, 6)
        self._has_kept = False
        if label is not None:
            self._add(tree.Label(label, start=found.start(4), end=found.end()))
        elif place is not None and self.inlines:
            self.keep(*found.span())
        try:
            return super().statement(found, number)
        except Doubt:
            if brace is not None or label is not None:  # which can hide a name in what is above it too
                raise
            self.report.diagnostics.clear()
            return False

    def piece(self, start: int, end: int, number: int) -> bool:
        """What is read and bound as in `bind`; instructions above tell which names its declarations have."""
        if self.frames[-1].passed:
            self._add(tree.Block([], start=start, end=start))
        self.keep(start, end)
        return super().piece(start, end, number)

    def remember_pieces(self, statements: Sequence[tree.Statement], number: int, end: int) -> bool:
        """The same; each call is looked at, for only later it is held against what it calls."""
        is_call = len(statements) == 1 and isinstance(statements[0], tree.Instruction)
        return is_call or super().remember_pieces(statements, number, end)

    def skip(self, at: int) -> tuple[int, int]:
        """The same; where labels are missing, known lines may mention them."""
        return (at, -1) if self.without else self.lines.skip(at, skips_declarations=False)

    def enter(self, number: int) -> None:
        """The begin of a block."""
        super().enter(number)
        block = tree.Block([])
        self._add(block)
        self.blocks.append(block)

    def leave(self, at: int) -> None:
        """The end of a block."""
        super().leave(at)
        self.blocks.pop()

    def finish(self) -> None:
        """Which labels are missing?"""
        frame = self.frames[0]
        self.missing = frozenset(frame.forms.wanted - frame.labels)

    # ── what is kept ────────────────────────────────────────────────────────────────────

    def keep(self, start: int, end: int) -> None:
        """Read a statement in full; WholeBody where its errors, or names, may reach beyond it."""
        self.report.diagnostics.clear()
        found = self.outline.wrong_statements(start, end)
        if found is None:
            raise WholeBody
        statements, wrong = found
        declares = any(isinstance(each, tree.Variable | tree.Prototype | tree.Targets) for each in statements)
        text = self.outline.plain.text
        would_declare = (
            DECLARATION_BEGIN.match(text, start, end) is not None or DECLARATION.search(text, start, end) is not None
        )
        # Words like those of a declaration would pass for it where names are looked for (`names_ahead`).
        looks_so = would_declare or _APART.match(text, first_character(text, start, end), end)
        if (looks_so and not declares) or (wrong and (declares or not self.has_own_lines(start, end))):
            raise WholeBody
        if any(span.start >= end for each in wrong for _, span in each.related):  # of a block that goes on below
            raise WholeBody
        self.syntax += wrong
        for each in statements:
            self._add(each)
            if isinstance(each, tree.Label):  # below an instruction without its `;`
                self.label_below(each.name)
            elif isinstance(each, tree.Instruction | tree.Block):
                self.frames[-1].passed = True
        self.frames[-1].first = -1

    def label_below(self, name: str) -> None:
        """A label in what was read with a statement above it; WholeBody where its name has another meaning."""
        try:
            self.label(name)
        except Doubt:
            raise WholeBody from None

    def has_own_lines(self, start: int, end: int) -> bool:
        """Has a statement its lines for itself?  Then the reader goes on behind it, whatever is wrong with it."""
        text = self.outline.plain.text
        first = first_character(text, start, end)
        line_start, line_end = text.rfind("\n", 0, first) + 1, text.find("\n", end)
        around = text[line_start:first] + text[end : line_end if line_end >= 0 else len(text)]
        return not around.strip(BLANKS) and (text[first] in NAME_START or text[first] in _BEGINS)

    def _add(self, statement: tree.Statement) -> None:
        self.blocks[-1].statements.append(statement)
        self._has_kept = True


def first_character(text: str, start: int, end: int) -> int:
    """Where a statement begins behind blanks."""
    return end - len(text[start:end].lstrip(BLANKS))
