"""Names ahead: names of a body whose meaning is certain before its statements are checked one by one.

A label of the outermost block means the same in the whole body.  A register, or a list of labels, that a stretch of lines
declares in the outermost block means the same in the whole stretch, if no line above the declaration names it.  In lines of
such names (`known_lines`) the form of the meaning takes the place of the name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import field
from functools import lru_cache
from itertools import chain, repeat

from ptxvm.algebra.types import Type
from ptxvm.dataclass import dataclass
from ptxvm.isa.model import ISA
from ptxvm.named_tuple import NamedTuple
from ptxvm.syntax.statements import BLANKS, CODE_LABEL, DECLARATION, LABEL, LIST, NAMED_LIST, REGISTERS, VARIABLE, find_labels

FAMILY_MARK = "\x01"
"""Stands before the number of a form, for a register of a family: `%r7` of `%r<100>`."""

OWN_MARK = "\x02"
"""Stands before a name that means something in one body, or block, only."""

NAME_MARK = "\x03"
"""Stands before the number of a form, for a name that is declared by itself."""

PARAMETER_MARK = "\x04"
"""Stands before the number of a form, for a parameter or result of the function."""

BLOCK_MARK = "\x05"
"""Stands before the number of a name that a block declares, in the order of the block."""

MARKS = frozenset((FAMILY_MARK, OWN_MARK, NAME_MARK, PARAMETER_MARK, BLOCK_MARK))

WORD = re.compile(r"(?<![\w$%:])([.%$_A-Za-z][\w$.]*)", re.ASCII)
"""A name, a head or a modifier; of a number and of `::cta` no part is one."""

_NAME = re.compile(r"(?<![\w$.%:])[%$_A-Za-z][\w$]*", re.ASCII)
ODD_STRING = re.compile(r'"[^"\n]*[{}:;][^"\n]*"')
"""A string with what begins or ends statements elsewhere."""


class Tokens(dict[str, str]):
    """The stand-in of a word: a mark and the form of its meaning, a mark and the word, or the word itself.

    `are_needed`: lines are the same without them only where no word has a form, and none with `%` is marked.  `parameters` are
    the names that few lines mention.
    """

    def __init__(self) -> None:
        super().__init__()
        self.are_needed = False
        self.parameters: list[str] = []

    def enter(self, name: str, token: str) -> None:
        """Let a token stand for a name."""
        self[name] = token
        self.are_needed = self.are_needed or token[0] == NAME_MARK or name[0] == "%"
        if token[0] == PARAMETER_MARK:
            self.parameters.append(name)

    def enter_all(self, names: Collection[str], token: str) -> None:
        """Let a token stand for the names of labels."""
        self.update(dict.fromkeys(names, token))
        self.are_needed = self.are_needed or bool(names)

    def are_needed_in(self, text: str, start: int, end: int) -> bool:
        """The same, for the lines between two places."""
        return self.are_needed or any(text.find(name, start, end) >= 0 for name in self.parameters)

    def __missing__(self, word: str) -> str:
        name, dot, rest = word.partition(".")
        if dot and (name[:1] == "%" or self.get(name, name) != name):
            return f"{self[name]}.{rest}"  # a part of a register; not kept, as the name may be declared later
        self[word] = word
        return word

    def of(self, word: str, own: Collection[str]) -> str:
        """What stands for one word, where some names are the block's own."""
        name, dot, _ = word.partition(".")
        return f"{OWN_MARK}{word}" if name in own and (not dot or name[0] == "%") else self[word]

    def of_all(self, words: Sequence[str], own: Collection[str]) -> list[str]:
        """What stands for many words: each is a single step."""
        before = {name: self.get(name) for name in own}
        self.update({name: OWN_MARK + name for name in own})
        found = [self[word] for word in words]
        for name, token in before.items():
            if token is None:
                del self[name]
            else:
                self[name] = token
        return found


def is_opcode(name: str) -> bool:
    """Can the name begin an instruction?  Then it stands for itself in lines, whatever else it means."""
    return name in ISA.by_opcode


def labels_ahead(text: str, start: int, end: int, labels: Sequence[str]) -> Sequence[str]:
    """Those of all labels of a body that are declared once, in its outermost block; none where its text cannot tell that."""
    if text.find("?", start, end) >= 0:
        return []
    every = [label[1] for label in find_labels(LABEL, text, start, end)] if NAMED_LIST.search(text, start, end) else labels
    found = labels
    if has_braces(text, start + 1, end - 1):
        places = with_depth(find_labels(CODE_LABEL, text, start, end), text, start + 1, end - 1, 0)
        found = [label[1] for label, depth in places if depth == 0]
    if len(set(found)) == len(found) == len(every):
        return found
    times = Counter(every)
    return [name for name in found if times[name] == 1]


def has_braces(text: str, start: int, end: int) -> bool:
    """Stands a brace between two places?"""
    return text.find("{", start, end) >= 0 or text.find("}", start, end) >= 0


def with_depth(
    matches: Iterator[re.Match[str]], text: str, start: int, end: int, depth: int
) -> Iterator[tuple[re.Match[str], int]]:
    """Matches between two places, with how many blocks deep the first group of each lies; the start is so deep."""
    if not has_braces(text, start, end):
        yield from zip(matches, repeat(depth), strict=False)
        return
    for found in matches:
        at = found.start(1)
        depth += text.count("{", start, at) - text.count("}", start, at)
        start = at
        yield found, depth


Sort = tuple[str, str]
"""The declaration of a variable without its name: what stands before and behind that."""


class Declared(NamedTuple):
    """A declaration at a place: its names, and in the outermost block what they certainly are.

    That is the type of registers, the sort of a variable, or `list` for a list of labels.  `leads` are words right before
    the first name, or behind that of a list.  `is_inner`: it stands in a block.
    """

    names: Sequence[str]
    kind: str | Sort = ""
    leads: Sequence[str] = ()
    is_inner: bool = False
    start: int = -1
    end: int = -1


def declarations(text: str, start: int, end: int, depth: int) -> Iterator[Declared]:
    """What is declared from a place on that lies so many blocks deep."""
    for found, inner in with_depth(DECLARATION.finditer(text, start - 1, end), text, start, end, depth):
        if inner:
            yield Declared(names_declared(found[1]), is_inner=True)
        else:
            yield declared(found[1], *found.span(1))


def declared(text: str, start: int, end: int) -> Declared:
    """What a declaration of the outermost block declares, which stands at a place."""
    if text[0] != ".":
        if several := LIST.match(text):
            return Declared([several[1]], "list", [".branchtargets"], start=start, end=end)
    elif registers := REGISTERS.fullmatch(text):
        names = [name.strip(BLANKS) for name in registers[2].split(",")]
        return Declared(names, registers[1], [".reg", f".{registers[1]}"], start=start, end=end)
    elif variable := VARIABLE.fullmatch(text):
        before, name, behind = variable.groups()
        return Declared([name], (before, behind), last_word(before), start=start, end=end)
    return Declared(names_declared(text), start=start, end=end)


@lru_cache(maxsize=1024)
def last_word(text: str) -> Sequence[str]:
    """The last word of what stands before a name."""
    return WORD.findall(text)[-1:]


@lru_cache(maxsize=1024)
def names_declared(text: str) -> Sequence[str]:
    """The names in a declaration, which may be more than it declares."""
    return tuple(_NAME.findall(text))


@dataclass
class Ahead:
    """What a stretch of lines declares: names of a certain meaning with its kind; and all others, which are the block's own."""

    certain: dict[str, Declared] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)


def ahead(
    declared: Sequence[Declared],
    words: Sequence[str],
    new: Callable[[Collection[str]], AbstractSet[str]],
    is_right: Callable[[Declared], bool],
) -> Ahead:
    """Tell the names that are certain, by the words of a stretch, names that mean nothing yet, and variables that are right."""
    found = Ahead()
    if not declared:
        return found
    times = Counter(chain.from_iterable([each.names for each in declared]))
    alone = {name for name in new(times.keys()) if times[name] == 1 and not is_opcode(name)}
    first: Mapping[str, int] = dict(zip(reversed(words), range(len(words) - 1, -1, -1), strict=True))
    for each in declared:
        names, kind = each.names, each.kind
        at = first.get(names[0], -1) if kind and names else -1
        around = words[at + 1 : at + 2] if kind == "list" else words[max(at - len(each.leads), 0) : at]
        if (
            at >= 0
            and around == each.leads
            and alone.issuperset(names)
            and (len(names) == 1 or [first.get(name) for name in names] == [*range(at, at + len(names))])
            and (kind == "list" or kind in Type.named or is_right(each))
        ):
            found.certain.update(dict.fromkeys(names, each))
        else:
            found.own.update(names)
    return found
