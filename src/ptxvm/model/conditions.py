r"""Questions about a final state: `P0:r0 == 1 /\ ~(x != 2)`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, TypeAlias

from ptxvm.dataclass import dataclass
from ptxvm.model.values import COMPARISONS

State = Mapping[str, int]
"""Final values: registers by names such as `P0:r0`, memory by the names of variables."""

TOKEN = re.compile(r"\s*(/\\|\\/|&&|\|\||==|!=|>=|<=|[=<>()~\[\]]|P?\d+\s*:\s*%?\w+|-?\w+(?:@\d+)?(?:\[\d+\])?)")
SYNONYMS = {"&&": "/\\", "||": "\\/", "=": "==", "not": "~"}
REGISTER = re.compile(r"P?(\d+)\s*:\s*(%?\w+)")


class NotALitmusTest(ValueError):  # noqa: N818 - the name says what is wrong
    """The text is no litmus test; the message says where."""


def place_of(wrong: NotALitmusTest, text: str) -> str:
    """`7: `, the first line with a text that the message quotes, the rarest such text; empty if no line has one."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    found = []
    for quoted in re.findall(r"`([^`]+)`", str(wrong)):
        whole = re.compile(rf"(?<!\w){re.escape(' '.join(quoted.split()))}(?!\w)")
        found.append([n for n, line in enumerate(lines, 1) if whole.search(line)])
    return f"{min(filter(None, found), key=len)[0]}: " if any(found) else ""


class CannotSolve(Exception):  # noqa: N818 - the name says what is in the way
    """z3 is requested, but this test cannot be expressed for z3."""


@dataclass(frozen=True)
class Condition:
    """A predicate over final states, and its text."""

    text: str
    holds: Callable[[State], bool]
    names: frozenset[str]
    """The registers and variables that it names."""
    numbers: frozenset[int] = frozenset()
    """The values that it names."""

    def __str__(self) -> str:
        return self.text


Truth: TypeAlias = Any
"""True, False, or a formula of z3, which has no types."""


def condition(text: str) -> Condition:
    """Read a condition: disjunctions of conjunctions of comparisons, `~` and parentheses."""
    reader = _Reader(text)
    steps = reader.steps()
    if reader.tokens:
        raise NotALitmusTest(f"`{reader.tokens[-1]}` cannot follow in the condition `{text}`")
    return Condition(text, partial(_holds, steps), frozenset(reader.names), frozenset(reader.numbers))


def both(truths: Iterable[Truth]) -> Truth:
    """The conjunction; a truth may be a formula of z3, which also has `&`, `|` and `~`."""
    open_ones = []
    for truth in truths:
        if truth is False:
            return False
        if truth is not True:
            open_ones.append(truth)
    return reduce(operator.and_, open_ones) if open_ones else True


def either(truths: Iterable[Truth]) -> Truth:
    """The disjunction."""
    return negated(both(negated(truth) for truth in truths))


def negated(truth: Truth) -> Truth:
    """The negation."""
    return not truth if isinstance(truth, bool) else ~truth


Comparison = Callable[[State], Truth]
Step = Comparison | tuple[str, int]
"""A comparison, or an operator and the number of its operands."""


def _holds(steps: Sequence[Step], state: State) -> Truth:
    """Evaluate a condition in postfix order."""
    truths: list[Truth] = []
    for step in steps:
        if not isinstance(step, tuple):
            truths.append(step(state))
            continue
        operator, count = step
        taken = truths[-count:]
        del truths[-count:]
        truths.append(negated(taken[0]) if operator == "~" else both(taken) if operator == "/\\" else either(taken))
    return truths[0]


PRECEDENCE = {"\\/": 1, "/\\": 2, "~": 3}


class _Reader:
    """Reads a condition by the precedence of its operators; the unread tokens are in reverse order."""

    def __init__(self, text: str) -> None:
        self.text, self.names, self.numbers = text, set[str](), set[int]()
        self.tokens: list[str] = []
        at = 0
        while at < len(text.rstrip()):
            if not (match := TOKEN.match(text, at)):
                raise NotALitmusTest(f"`{text[at:].strip()}` cannot be read in the condition `{text}`")
            self.tokens.append(SYNONYMS.get(match[1], match[1]))
            at = match.end()
        self.tokens.reverse()

    def next(self) -> str:
        if not self.tokens:
            raise NotALitmusTest(f"the condition `{self.text}` ends too early")
        return self.tokens.pop()

    def take(self, *tokens: str) -> str:
        """Consume the next token if it is one of these; returns the token, or an empty string."""
        return self.tokens.pop() if self.tokens and self.tokens[-1] in tokens else ""

    def steps(self) -> list[Step]:
        """Read a condition into postfix order, up to a token that cannot follow."""
        steps: list[Step] = []
        waiting: list[tuple[str, int]] = []  # operators with their numbers of operands; a parenthesis has none
        while True:
            while token := self.take("~", "("):
                waiting.append((token, 1))
            steps.append(self.comparison())
            self._settle(steps, waiting, PRECEDENCE["~"])
            while any(each[0] == "(" for each in waiting) and self.take(")"):
                self._settle(steps, waiting, 0)
                waiting.pop()
                self._settle(steps, waiting, PRECEDENCE["~"])
            token = self.take("/\\", "\\/")
            if not token:
                break
            self._settle(steps, waiting, PRECEDENCE[token] + 1)
            if waiting and waiting[-1][0] == token:
                waiting[-1] = token, waiting[-1][1] + 1
            else:
                waiting.append((token, 2))
        self._settle(steps, waiting, 0)
        if waiting:
            raise NotALitmusTest(f"a `)` is missing in the condition `{self.text}`")
        return steps

    def _settle(self, steps: list[Step], waiting: list[tuple[str, int]], least: int) -> None:
        """Write the operators of at least this precedence, back to the last parenthesis."""
        while waiting and PRECEDENCE.get(waiting[-1][0], -1) >= least:
            token, count = waiting.pop()
            steps.append((token, count))

    def comparison(self) -> Callable[[State], bool]:
        left, sign, right = self.value(), self.next(), self.value()
        if sign not in COMPARISONS:
            raise NotALitmusTest(f"`{sign}` is no comparison, in the condition `{self.text}`")
        compare = COMPARISONS[sign]
        return lambda state: compare(left(state), right(state))

    def value(self) -> Callable[[State], int]:
        word = self.next()
        if word == "[":
            word = self.next()
            self.take("]")
        if re.fullmatch(r"-?\d\w*", word):
            number = int(word, 0)
            self.numbers.add(number)
            return lambda _: number
        name = f"P{match[1]}:{match[2]}" if (match := REGISTER.fullmatch(word)) else word
        self.names.add(name)
        return lambda state: state.get(name, 0)
