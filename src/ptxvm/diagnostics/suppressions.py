"""Suppressions: findings that are known and meant, named in a file or in comments of the source.

A line of a file has a code, and where it is meant: `race kernels/histo*.ptx:22  # adds are atomic`.  A comment
`// ptxvm: allow race, P0901` is about its line, or, where it stands alone, about the line below.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import field
from fnmatch import fnmatchcase

from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.diagnostic import Diagnostic
from ptxvm.diagnostics.findings import Text
from ptxvm.diagnostics.kernel_names import displayed
from ptxvm.diagnostics.kinds import KINDS
from ptxvm.diagnostics.suggest import did_you_mean

ALLOW = re.compile(r"//\s*ptxvm:\s*allow\s+([\w-]+(?:\s*,\s*[\w-]+)*)")
RULE = re.compile(r"(?P<code>[\w-]+)(?:\s+(?P<pattern>\S+?)(?::(?P<line>\d+))?)?")


@dataclass(slots=True)
class Suppression:
    """A line of a file: a code, a pattern of file names (`*` any text, `?` a letter) and a line or 0 for all."""

    text: str
    number: int
    code: str
    pattern: str = "*"
    line: int = 0
    used: bool = False

    def matches(self, name: str, code: str, line: int) -> bool:
        """Is a finding meant, on a line of the source of that name?"""
        if self.code != code or self.line not in (0, line):
            return False
        return fnmatchcase(name, self.pattern) or fnmatchcase(displayed(name), self.pattern)


@dataclass(slots=True)
class Suppressions:
    """The rules of a file, and how many findings they and the comments of the sources have suppressed."""

    rules: list[Suppression] = field(default_factory=list)
    count: int = 0

    @classmethod
    def parse(cls, text: str, is_known: Callable[[str], bool]) -> Suppressions:
        """The rules of a text; ValueError for a line that is none, or a code that is not known.

        Rooms above enter codes of their own, so that a caller says which there are.
        """
        found = cls()
        for number, line in enumerate(text.splitlines(), 1):
            if rule := line.partition("#")[0].strip():
                found.rules.append(_rule(rule, number, is_known))
        return found

    def kept(self, source: Text, diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
        """The diagnostics of a source that nothing suppresses."""
        kept = [each for each in diagnostics if not self._suppresses(source, each)]
        self.count += len(diagnostics) - len(kept)
        return kept

    @property
    def unused(self) -> list[Suppression]:
        """The rules that have suppressed nothing."""
        return [rule for rule in self.rules if not rule.used]

    def _suppresses(self, source: Text, diagnostic: Diagnostic) -> bool:
        first, last = (source.location(place)[0] for place in (diagnostic.span.start, diagnostic.span.end))
        found = self.names(source.name, diagnostic.code, diagnostic.line or first)
        return found or diagnostic.code in in_comments(source, first, last)

    def names(self, name: str, code: str, line: int) -> bool:
        """Does a rule name a finding on a line of the source of that name, or of the kernel, where sources have no names?"""
        found = [rule for rule in self.rules if rule.matches(name, code, line)]
        for rule in found:
            rule.used = True
        return bool(found)


def _rule(text: str, number: int, is_known: Callable[[str], bool]) -> Suppression:
    match = RULE.fullmatch(text)
    if match is None:
        raise ValueError(f"line {number}: '{text}' is no suppression; write CODE FILE:LINE, such as race kernels/*.ptx:22")
    code = match["code"]
    if not is_known(code):
        raise ValueError(f"line {number}: no such code: '{code}'; {did_you_mean(code, KINDS) or 'a finding names its code'}")
    return Suppression(text, number, code, match["pattern"] or "*", int(match["line"] or 0))


def in_comments(source: Text, first: int, last: int) -> frozenset[str]:
    """The codes that comments name on the lines of something, or alone on the line above."""
    above = source.line(first - 1).strip() if first > 1 else ""
    lines = [above if above.startswith("//") else "", *(source.line(line) for line in range(first, last + 1))]
    return frozenset(word for line in lines for found in ALLOW.findall(line) for word in re.split(r"[,\s]+", found))
