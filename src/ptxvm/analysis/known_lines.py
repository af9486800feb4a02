"""Lines of bodies that are known to be right: a set of them answers for most of the text of a body.

In a line the form of what a name means takes the place of the name where that is certain, and all constants of a kind are one:
`add.s32 %r7, %r6, 16;` and `add.s32 %r9, %r7, 4;` are one line.  A line is known where its statement was found right, and so
is a block that declares registers of its own.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence, Set as AbstractSet
from dataclasses import replace
from functools import cache, lru_cache
from itertools import accumulate, islice
from typing import ClassVar

from ptxvm.analysis.names_ahead import BLOCK_MARK, FAMILY_MARK, OWN_MARK, WORD
from ptxvm.analysis.operand_forms import Forms
from ptxvm.analysis.scope import DIGITS, LONGEST_NUMBER, NameScope
from ptxvm.dataclass import dataclass
from ptxvm.isa.model import ISA
from ptxvm.isa.targets import Need
from ptxvm.named_tuple import NamedTuple
from ptxvm.syntax import tree
from ptxvm.syntax.statements import BLANKS

Needs = tuple[Need, ...]
"""What a version and target must give for something to be right."""

SharedLines = list[tuple[Needs, str]]
"""Lines that are right for many versions and targets, each with what it needs, in the order in which they were found."""

LONGEST_BLOCK = 64
"""The lines of a block, or of a statement, that is known as a whole."""

STRETCH = 1 << 16
"""The characters of a body whose lines are looked at together: what they take in memory is some times that."""

MOST_STRETCHES = 96
"""The stretches that are remembered from one check to the next, where they are: twice those of a text of 50,000 lines."""

MOST_LINES = 1 << 13
"""The lines of a kind that are kept; they are forgotten where there are more."""

MOST_SHARED = 1 << 15
"""The lines that are shared."""

CONSTANTS = {
    mark: (re.compile(pattern, re.ASCII).sub, common)
    for mark, pattern, common in (
        ("", r"\d(?<=[ \t,+\-*(&|^~!=?:>]\d)(?:(?<!0)\d{1,8})?(?![\w.$])", "0"),
        ("0x", r"0x(?<![\w$%]0x)[0-9a-fA-F]{1,16}(?!\w)", "0x0"),
        ("0f", r"0f(?<![\w$%]0f)[0-9a-fA-F]{8}(?!\w)", "0f00000000"),
        ("0d", r"0d(?<![\w$%]0d)[0-9a-fA-F]{16}(?!\w)", "0d0000000000000000"),
    )
}
"""What stands in a text with constants of a kind; how they are found, and what they become.

Expressions here begin with what is rare and look behind it: the other way they take twenty times as long.
"""

_ALIGNMENT = re.compile(rf"(\.align)[{BLANKS}]+(?=\d)").sub
_SIZE = re.compile(rf"([<\[])[{BLANKS}]+(?=\d)").sub
"""An alignment, and the size of an array or a family: they are no constants, as declarations differ that differ in them."""

_HAS_DECIMAL = re.compile(r"\.(?<=\d\.)\d").search
_DECIMAL = re.compile(r"\d(?<=[ \t,-]\d)\d{0,14}\.\d{1,15}(?![\w.])", re.ASCII).sub

_CONSTANT = re.compile(r"(?<![\w$%.])\d", re.ASCII)

_DIVIDES = re.compile(r"/|%(?![\w$])", re.ASCII).search

_OWN_NAME = re.compile(rf"{OWN_MARK}([%$_A-Za-z][\w$]*)|(?<![\w$%.:{OWN_MARK}])([$_A-Za-z][\w$]*)", re.ASCII)


class Known:
    """Lines that are right in each kernel, or function: whatever their small integers are, or exactly as they stand.

    `declaring` are those that declare what is known ahead.
    """

    __slots__ = ("declaring", "exact", "plain", "shared", "taken")

    def __init__(self, shared: SharedLines) -> None:
        self.plain, self.exact, self.declaring, self.shared = {""}, set[str](), set[str](), shared
        self.taken = 0

    def share(self, line: str, needs: Needs) -> None:
        """Let a line be known for all versions and targets that give what it needs."""
        if len(self.shared) < MOST_SHARED:
            self.shared.append((needs, line))

    def take(self, gives: Callable[[Needs], bool]) -> None:
        """Take what is shared since, as far as the version and target give what it needs."""
        if self.taken < len(self.shared):
            self.plain.update([line for needs, line in self.shared[self.taken :] if gives(needs)])
            self.taken = len(self.shared)

    def add(self, lines: set[str], line: str) -> None:
        """Remember a line in one of the sets."""
        if len(lines) > MOST_LINES:
            lines.clear()
        lines.add(line)


class KnownLines:
    """The known lines of one version and target: those of kernels, and those of functions."""

    shared: ClassVar[dict[bool, SharedLines]] = {}

    def __init__(self, gives: Callable[[Needs], bool]) -> None:
        self._known: dict[bool, Known] = {}
        self._gives = gives

    def of(self, *, entry: bool) -> Known:
        """The lines that are right in a kernel, or else in a function."""
        known = self._known.get(entry)
        if known is None:
            known = self._known[entry] = Known(self.shared.setdefault(entry, []))
        known.take(self._gives)
        return known


class ModuleNames:
    """The names of a module, of which none may begin with `%` where lines are known."""

    def __init__(self) -> None:
        self._seen, self._usual = 0, True

    def are_usual(self, module: NameScope) -> bool:
        """Does no name of the module begin with `%`?  Each is looked at once."""
        new = len(module.names) - self._seen
        self._usual = self._usual and not any(name[0] == "%" for name in islice(reversed(module.names), new))
        self._seen += new
        return self._usual and not module.families


class UnifiedFamily(NamedTuple):
    """A family of registers: what divides a text at them, how many there are, and what stands for each."""

    split: Callable[[str], list[str]]
    size: int
    token: str


def unified_families(scope: NameScope, forms: Forms) -> list[UnifiedFamily] | None:
    """The families of a block; None where a name, or a head, can be taken for a register of one."""
    prefixes = scope.families
    if any(map(is_begin_of_opcode, prefixes)):
        return None
    for name in scope.names:
        if name[-1] in DIGITS and name.rstrip(DIGITS) in prefixes:
            return None
    return [
        UnifiedFamily(numbers_of(prefix), each.count, f"{FAMILY_MARK}{forms.register(each.type, each.vector)}")
        for prefix, each in prefixes.items()
    ]


@lru_cache(maxsize=256)
def is_begin_of_opcode(prefix: str) -> bool:
    """Can the prefix with a number begin an instruction, as `ex` does in `ex2`; or is where it ends unclear?"""
    return prefix[-1] in DIGITS or prefix in numbered()


@cache
def numbered() -> frozenset[str]:
    """What stands before the number with which some opcodes end."""
    return frozenset(name.rstrip(DIGITS) for name in ISA.by_opcode if name[-1] in DIGITS)


class Stretch:
    """Some lines of a body; behind the `;` of a statement another line begins where the text has several statements on a line.

    `starts` are the places of the lines, and the place behind the last; `lines` have the forms of names in their place, and
    `plain` those of constants too.  Of the names that are declared here, `ahead` are entered before that is reached, and `own`
    stand as themselves; `inner` are declared in blocks, and mean nothing around them.  `depends_on_constants`: a line that is
    known has the constants of one that is right.
    """

    __slots__ = ("ahead", "depends_on_constants", "inner", "lines", "own", "plain", "starts")

    def __init__(
        self,
        text: str,
        start: int,
        end: int,
        families: Sequence[UnifiedFamily],
        normalisation: Normalisation,
        look: Callable[[list[str]], list[str]] | None = None,
    ) -> None:
        self.ahead, self.own, self.inner = set[str](), set[str](), frozenset[str]()
        self.depends_on_constants = False
        stretch, lengths = normalisation.unified(text[start:end], tuple(families))
        self.starts = [*accumulate(lengths, initial=start)]
        self.starts[-1] = end
        if look is not None:
            pieces = [*normalisation.words(stretch)]
            pieces[1::2] = look(pieces[1::2])
            stretch = "".join(pieces)
        self.lines, self.plain = normalisation.lines(stretch)

    def number(self, place: int) -> int:
        """The number of the line with a place."""
        return bisect_right(self.starts, place) - 1

    def first_unknown(self, number: int, known: Known, own: AbstractSet[str], declaring: AbstractSet[str]) -> int:
        """The number of the first line from this one on that is not known: neither to all, nor to the block, nor ahead."""
        plain, behind = known.plain, number
        for line in islice(self.plain, number, None):
            if line not in plain and number >= behind:
                line = line.rstrip(BLANKS)  # noqa: PLW2901 - the same line
                if not (line in plain or line in own or line in declaring or self.is_known_exactly(number, known)):
                    if "{" in line or ";" not in line:
                        behind = self.behind(number, (plain, own, declaring))
                    if number >= behind:
                        break
            number += 1
        return number

    def is_known_exactly(self, number: int, known: Known) -> bool:
        """Is a line right with its constants?"""
        found = self.lines[number].rstrip(BLANKS) in known.exact
        self.depends_on_constants = self.depends_on_constants or found
        return found

    def behind(self, number: int, known: Sequence[AbstractSet[str]]) -> int:
        """The number of the line behind a block, or statement, that begins with a line and is known; else that of the line."""
        depth = 0
        for last in range(number, min(number + LONGEST_BLOCK, len(self.plain))):
            line = self.plain[last]
            depth += line.count("{") - line.count("}")
            if depth == 0 and (";" in line or "}" in line):
                text = self.text(number, last)
                is_known = is_in(text, known) or (bool(self.inner) and is_in(self.numbered(text), known))
                return last + 1 if is_known else number
        return number

    def text(self, first: int, last: int) -> str:
        """The text of some lines, without the blanks at their ends."""
        return "\n".join([line.rstrip(BLANKS) for line in self.plain[first : last + 1]])

    def numbered(self, text: str) -> str:
        """The text of a block with numbers for the names that blocks declare: two blocks can differ in these names only."""
        pieces, numbers, inner = _WORD.split(text), dict[str, str](), self.inner
        for at in range(1, len(pieces), 2):
            name = pieces[at].lstrip(OWN_MARK)
            if name in inner:
                pieces[at] = numbers.setdefault(name, f"{BLOCK_MARK}{len(numbers)}")
        return "".join(pieces)

    def is_exact(self, first: int, last: int) -> bool:
        """Are some lines in `plain` as they stand: have they no constants that others could take the place of?

        A divisor is none of these.
        """
        return not any(has_common_constants(line) or _DIVIDES(line) for line in self.lines[first : last + 1])


def is_in(text: str, known: Sequence[AbstractSet[str]]) -> bool:
    """Has one of some sets a text?"""
    return any([text in lines for lines in known])  # noqa: C419 - a generator takes longer, for three of them


def with_families(text: str, families: Iterable[UnifiedFamily]) -> tuple[str, Sequence[int]]:
    """A text with its statements on lines of their own and one spelling for the registers of a family; the lengths of lines."""
    text = _WITHIN.sub(" ", text)
    if text.count(";") > text.count("\n"):
        text = _BETWEEN.sub(";\n", text)
    lengths = [len(line) + 1 for line in text.split("\n")]
    text = with_sizes(text)
    for family in families:
        text = unified(text, family)
    return text, lengths


def in_words(text: str) -> list[str]:
    """A text divided at its words, which stand at the odd places."""
    return [sys.intern(piece) for piece in WORD.split(text)]


def in_lines(text: str) -> tuple[list[str], list[str]]:
    """The lines of a text, and the same with one constant of each kind."""
    return text.split("\n"), without_constants(text).split("\n")


@dataclass(frozen=True)
class Normalisation:
    """The steps from a text to the lines of a stretch, each of which tells by its text alone what it gives."""

    unified: Callable[[str, tuple[UnifiedFamily, ...]], tuple[str, Sequence[int]]] = with_families
    words: Callable[[str], list[str]] = WORD.split
    lines: Callable[[str], tuple[list[str], list[str]]] = in_lines

    @classmethod
    def remembered(cls) -> Normalisation:
        """Steps that remember the latest texts, for one who checks a text again after each edit."""
        remember = lru_cache(MOST_STRETCHES)
        return cls(remember(with_families), remember(in_words), remember(in_lines))


_WORD = re.compile(rf"(?<![\w$%.:{OWN_MARK}])({OWN_MARK}?[$_A-Za-z][\w$]*)", re.ASCII)

_BETWEEN = re.compile(r";[ \t](?=[ \t]*[^ \t\r\n])")

_WITHIN = re.compile(
    r"\n(?:(?<=[,(]\n)|(?<=[,(][ \t\r]\n)|(?=[ \t]*[%\[,;)(|\d-])|(?:(?<=[a-z]\d\n)|(?<=[a-z]\d\d\n))(?=[ \t]*\{))"
)
"""The end of a line within a statement: behind a comma, before an operand, or between a type and `{`."""


def with_sizes(text: str) -> str:
    """A text in which alignments and sizes are no constants."""
    if ".align" in text:
        text = _ALIGNMENT(r"\1", text)
    return _SIZE(r"\1", text)


def without_constants(text: str) -> str:
    """A text with one constant of each kind."""
    for mark, (unify, common) in CONSTANTS.items():
        if mark in text:
            text = unify(common, text)
    return _DECIMAL("0.0", text) if _HAS_DECIMAL(text) else text


def has_common_constants(text: str) -> bool:
    """Are there constants for which `without_constants` has a common one, which may be that one itself?"""
    found = any(mark in text and unify("", text) != text for mark, (unify, _) in CONSTANTS.items())
    return found or (_HAS_DECIMAL(text) is not None and _DECIMAL("", text) != text)


def has_constants(text: str) -> bool:
    """Are there constants among operands?"""
    return _CONSTANT.search(text) is not None


class TooLarge(Exception):  # noqa: N818 - the lines are looked at one by one, which reports it
    """The number of a register is none of its family."""


def unified(text: str, family: UnifiedFamily) -> str:
    """A text with one spelling for all registers of a family."""
    pieces = family.split(text)
    if len(pieces) == 1:
        return text
    if max(map(int, set(pieces[1::2]))) >= family.size:
        raise TooLarge
    return family.token.join(pieces[::2])


@lru_cache(maxsize=256)
def numbers_of(prefix: str) -> Callable[[str], list[str]]:
    """What divides a text at the registers of a family, and gives their numbers.

    Without `%`, what stands before and behind tells a name from parts of heads, modifiers and numbers.
    """
    name = re.escape(prefix)
    if prefix[0] == "%":
        return re.compile(rf"{name}(\d{{1,{LONGEST_NUMBER}}})(?![\w$])", re.ASCII).split
    return re.compile(rf"{name}(?<![\w$%.:]{name})(\d{{1,{LONGEST_NUMBER}}})(?![\w$.])", re.ASCII).split


def with_tokens(text: str, look: Callable[[list[str]], list[str]]) -> str:
    """A text with what stands for its words."""
    pieces = WORD.split(text)
    pieces[1::2] = look(pieces[1::2])
    return "".join(pieces)


def own_names(operands: str) -> list[str]:
    """The names in operands with their forms that mean something in one body only: variables, labels in blocks, functions."""
    return [marked or name for marked, name in _OWN_NAME.findall(operands)]


# ── declarations ────────────────────────────────────────────────────────────────────────


def names_of(node: tree.Variable | tree.Prototype | tree.Targets) -> list[str]:
    """The names, or their beginnings, that a statement declares."""
    return [each.name for each in node.declarators] if isinstance(node, tree.Variable) else [node.label]


def of_count(node: tree.Variable, count: int) -> tree.Variable:
    """The declaration of a family with another number of registers."""
    (family,) = node.declarators
    return replace(node, declarators=[replace(family, count=tree.Integer(count, start=family.start, end=family.end))])
