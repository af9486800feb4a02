"""What a command is, and how lines find theirs: whole names, aliases, and the beginnings that mean only one."""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeAlias

from ptxvm.dataclass import dataclass
from ptxvm.debug.session import Session
from ptxvm.debug.stops import Stop
from ptxvm.diagnostics import did_you_mean

GAP = "  "
"""Between the columns of a table."""
TAB = 4
"""The columns of a tab stop, and of what goes on in the next line."""


class Style(enum.Enum):
    """What a line of output is."""

    PLAIN = "plain"
    HEADING = "heading"
    STOP = "stop"
    CURRENT = "current"
    ERROR = "error"
    KERNEL = "kernel"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of output."""

    text: str
    style: Style = Style.PLAIN
    hang: int = 0
    """The column at which it goes on where a terminal is narrower."""


class BadCommand(ValueError):  # noqa: N818 - it says what happened
    """A command cannot be carried out as it was given; the message is one line."""


class Debugger(Protocol):
    """What commands act on."""

    session: Session
    is_done: bool
    columns: int | None
    """The columns of the terminal; None where a line may have any length."""
    breaks_on_launch: bool
    """Does each launch of a program stop before its first instruction?"""
    listed: int
    """The last line that `list` has shown; 0 where it begins around the thread in focus."""

    def stopped(self, stop: Stop) -> Iterator[Line]:
        """What is said about a stop."""
        ...

    def write(self, path: str, text: str) -> None:
        """Write a file, where there are files; BadCommand where it cannot be."""
        ...

    def read(self, path: str) -> str:
        """The text of a file; BadCommand where there is none."""
        ...

    def tell_focus(self) -> Iterator[Line]:
        """Name the thread in focus."""
        ...

    def where(self) -> Iterator[Line]:
        """Where the thread in focus is."""
        ...

    def table(self, headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[Line]:
        """A table with a line of headings; a row that begins with `*` is current."""
        ...


Action: TypeAlias = Callable[[Debugger, str], Iterator[Line]]
"""Carries a command out, with the text behind its name."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its name of one or several words, other names, what follows it, and what it does."""

    name: str
    aliases: tuple[str, ...]
    usage: str
    group: str
    action: Action

    @property
    def help(self) -> str:
        """What `help` says: the docstring of the action."""
        return inspect.cleandoc(self.action.__doc__ or "")

    @property
    def summary(self) -> str:
        """The first sentence of the help."""
        return self.help.partition("\n")[0]


class Commands:
    """All commands, in the order of their declaration."""

    def __init__(self) -> None:
        self.all: dict[str, Command] = {}

    def command(self, name: str, *aliases: str, usage: str = "", group: str) -> Callable[[Action], Action]:
        """Declare a command by its action."""

        def declare(action: Action) -> Action:
            self.all[name] = Command(name, aliases, usage, group, action)
            return action

        return declare

    def find(self, line: str) -> tuple[Command, str]:
        """The command of a line, and what follows it; BadCommand where none, or several, begin so."""
        line = SLASH.sub(r"\1 /", line, count=1)
        words = line.split()
        for count in range(min(len(words), 3), 0, -1):
            command = self.named(words[:count])
            if command is not None:
                return command, rest_after(line, count)
        for count in range(min(len(words), 2), 0, -1):
            if within := ", ".join(each.name for each in self.within(words[:count])):
                raise BadCommand(f"there is no command '{' '.join(words[: count + 1])}'; there are {within}")
        known = sorted({name.split()[0] for name in self.all})
        guess = did_you_mean(words[0], known) or "`help` lists the commands"
        raise BadCommand(f"there is no command '{words[0]}'; {guess}")

    def within(self, words: list[str]) -> list[Command]:
        """The commands that have more words than these, which begin them; none where these are a command."""
        known = self.all.values() if words and not self.is_named(words) else ()
        return [each for each in known if each.name.split()[: len(words)] == words]

    def is_named(self, words: list[str]) -> bool:
        """Are these words the whole name of a command, or another name of it?"""
        text = " ".join(words)
        return any(text == each.name or text in each.aliases for each in self.all.values())

    def named(self, words: list[str]) -> Command | None:
        """The command that words name: whole, by an alias, or by the beginning of each word."""
        text = " ".join(words)
        for each in self.all.values():
            if text == each.name or text in each.aliases:
                return each
        found = [each for each in self.all.values() if begins(each.name.split(), words)]
        if len(found) > 1:
            raise BadCommand(f"'{text}' is the beginning of {', '.join(each.name for each in found)}")
        return found[0] if found else None

    def begins_with(self, line: str) -> list[str]:
        """The names of commands that a line may become."""
        words = line.split() or [""]
        if line.endswith(" "):
            words.append("")
        return [name for name in self.all if len(name.split()) >= len(words) and begins(name.split()[: len(words)], words)]


SLASH = re.compile(r"^(\s*[a-z]+)/")
"""A format without a blank before it: `x/8xw`, `p/x`."""


def begins(name: list[str], words: list[str]) -> bool:
    """Does each word begin the word of a name?"""
    return len(name) == len(words) and all(whole.startswith(word) for whole, word in zip(name, words, strict=True))


def rest_after(line: str, count: int) -> str:
    """The text behind so many words."""
    parts = line.split(maxsplit=count)
    return parts[count].strip() if len(parts) > count else ""


COMMANDS = Commands()
command = COMMANDS.command


def number(text: str, what: str, default: int | None = None, *, least: int | None = None) -> int:
    """A number that a command takes; BadCommand where there is none, or one below the `least`."""
    if not text and default is not None:
        return default
    try:
        found = int(text, 0)
    except ValueError:
        raise BadCommand(f"{what} is a number, not '{text}'" if text else f"{what} is missing") from None
    if least is not None and found < least:
        raise BadCommand(f"{what} is {least} or more, not {found}")
    return found


__all__ = ["COMMANDS", "GAP", "TAB", "BadCommand", "Command", "Debugger", "Line", "Style", "command", "number"]
