"""The command that explains the others."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from ptxvm.debug.commands.command import COMMANDS, Command, Debugger, Line, Style, command

GROUP = "Help"
COLUMNS = 80


@command("help", "h", usage="[COMMAND]", group=GROUP)
def help_(debugger: Debugger, text: str) -> Iterator[Line]:  # noqa: ARG001 - an Action
    """List the commands, or explain one.  The beginning of a name is enough where it means only one.

    `help info` lists the commands that begin with that word.
    """
    within = COMMANDS.within(text.split())
    if within:
        yield from listed(within)
    elif text:
        yield from explained(COMMANDS.find(text)[0])
    else:
        for group in dict.fromkeys(each.group for each in COMMANDS.all.values()):
            yield Line(group, Style.HEADING)
            yield from listed(each for each in COMMANDS.all.values() if each.group == group)


def listed(commands: Iterable[Command]) -> Iterator[Line]:
    """A line for each command."""
    for each in commands:
        head = f"  {each.name:<19} "
        yield Line(head + short(each.summary, COLUMNS - len(head)))


def short(summary: str, columns: int) -> str:
    """What stands in the list: the first clause of a sentence."""
    first = summary.partition(". ")[0].partition(";")[0].partition(":")[0].rstrip(".")
    return textwrap.shorten(first, columns, placeholder=" …")


def explained(found: Command) -> Iterator[Line]:
    """The help of one command."""
    yield Line(f"{found.name} {found.usage}".rstrip(), Style.HEADING)
    if found.aliases:
        yield Line(f"  also: {', '.join(found.aliases)}")
    for paragraph in found.help.split("\n\n"):
        yield from (Line(line) for line in textwrap.wrap(paragraph, COLUMNS))


__all__: list[str] = []
