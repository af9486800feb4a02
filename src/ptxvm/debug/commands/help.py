"""The command that explains the others."""

from __future__ import annotations

from collections.abc import Iterator

from ptxvm.debug.commands.command import COMMANDS, Command, Debugger, Line, Style, command

GROUP = "Help"


@command("help", "h", usage="[COMMAND]", group=GROUP)
def help_(debugger: Debugger, text: str) -> Iterator[Line]:  # noqa: ARG001 - an Action
    """List the commands, or explain one.  The beginning of a name is enough where it means only one."""
    if text:
        yield from explained(COMMANDS.find(text)[0])
        return
    for group in dict.fromkeys(each.group for each in COMMANDS.all.values()):
        yield Line(group, Style.HEADING)
        for each in COMMANDS.all.values():
            if each.group == group:
                yield Line(f"  {each.name:<19} {each.summary.partition('.  ')[0].rstrip('.')}")


def explained(found: Command) -> Iterator[Line]:
    """The help of one command."""
    yield Line(f"{found.name} {found.usage}".rstrip(), Style.HEADING)
    if found.aliases:
        yield Line(f"  also: {', '.join(found.aliases)}")
    yield from (Line(line) for line in found.help.splitlines())


__all__: list[str] = []
