"""Commands for breakpoints."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ptxvm.debug.breakpoints import Breakpoint, Catchpoint, CodeBreakpoint, Watchpoint
from ptxvm.debug.commands.command import BadCommand, Debugger, Line, command, number
from ptxvm.debug.commands.running import none
from ptxvm.debug.expressions import parse
from ptxvm.machine.faults import plural

GROUP = "Breakpoints"
CONDITION = re.compile(r"(?P<place>.*?)\s*(?<![\w$%.])if\b\s*(?P<condition>.*)", re.DOTALL)

LOGPOINT = re.compile(r'(?P<location>.+?)\s*"(?P<text>[^"]*)"(?:\s*if\b\s*(?P<condition>.+))?', re.DOTALL)


def parted(text: str) -> tuple[str, str]:
    """`LOCATION if CONDITION`."""
    found = CONDITION.fullmatch(text)
    if found is None:
        return text, ""
    if not found["condition"]:
        raise BadCommand("the condition behind `if` is missing")
    return found["place"], found["condition"]


@command("break", "b", usage="[LOCATION] [if CONDITION]", group=GROUP)
def break_(debugger: Debugger, text: str) -> Iterator[Line]:
    """Stop before the instructions at LOCATION are executed, by any warp.

    LOCATION is a line of the PTX (`42`), a line of a source that .loc names (`kernel.cu:10`), a function or a label, an
    instruction by its number in the function (`*12`, `*function+12`), or all of a kind (`opcode ld.global*`); none is where
    the thread in focus is.  CONDITION is an expression, which must not be 0 for a thread that stops: `%tid.x == 3`.
    """
    yield from breakpoint_at(debugger, text, temporary=False)


@command("tbreak", "tb", usage="[LOCATION] [if CONDITION]", group=GROUP)
def tbreak(debugger: Debugger, text: str) -> Iterator[Line]:
    """Stop at LOCATION once; see `help break`."""
    yield from breakpoint_at(debugger, text, temporary=True)


def breakpoint_at(debugger: Debugger, text: str, *, temporary: bool) -> Iterator[Line]:
    """Set a breakpoint in the code."""
    location, condition = parted(text)
    made = debugger.session.break_at(location or f"*{debugger.session.view().index}", condition, temporary=temporary)
    yield from pending(made)
    yield Line(f"{'Temporary breakpoint' if temporary else 'Breakpoint'} {made.number} at {places(debugger, made)}")


def pending(made: CodeBreakpoint) -> Iterator[Line]:
    """Why a breakpoint has no place yet."""
    if made.missing:
        yield Line(f"{made.missing}; the breakpoint waits for a launch that has it")


def places(debugger: Debugger, made: CodeBreakpoint) -> str:
    """`saxpy.ptx:42`, or how many instructions it has."""
    sites = sorted(made.sites)
    if not sites:
        return f"{made.location}, which no launch has had yet"
    bound = debugger.session.code.routines[sites[0][0]].function.instructions[sites[0][1]]
    first = f"{bound.program.source.name if bound.program is not None else ''}:{bound.line}"
    return first if len(sites) == 1 else f"{len(sites)} instructions, the first at {first}"


@command("watch", usage="EXPRESSION [if CONDITION]", group=GROUP)
def watch(debugger: Debugger, text: str) -> Iterator[Line]:
    """Stop after an instruction that changes what EXPRESSION names in memory, in any space.

    One that writes what is there already does not stop; `awatch` stops there too.
    `watch buf[3]`, `watch x[10]`, `watch .global.f32[%rd1]`; of .shared memory it is that of the block in focus, of .local
    memory that of the thread.
    """
    yield watchpoint(debugger, text, "write")


@command("rwatch", usage="EXPRESSION [if CONDITION]", group=GROUP)
def rwatch(debugger: Debugger, text: str) -> Iterator[Line]:
    """Stop after an instruction that reads what EXPRESSION names; see `help watch`."""
    yield watchpoint(debugger, text, "read")


@command("awatch", usage="EXPRESSION [if CONDITION]", group=GROUP)
def awatch(debugger: Debugger, text: str) -> Iterator[Line]:
    """Stop after an instruction that reads or writes what EXPRESSION names; see `help watch`."""
    yield watchpoint(debugger, text, "access")


def watchpoint(debugger: Debugger, text: str, accesses: str) -> Line:
    """Set a watchpoint."""
    expression, condition = parted(text)
    made = debugger.session.watch(expression, accesses, condition)
    return Line(f"Watchpoint {made.number}: {made.subject}")


@command("logpoint", usage='LOCATION "TEXT" [if CONDITION]', group=GROUP)
def logpoint(debugger: Debugger, text: str) -> Iterator[Line]:
    """Print TEXT where threads come to LOCATION, and go on: `logpoint 42 "x = {%f1} in {%tid.x}" if %f1 > 1`.

    Expressions stand in braces.  Lanes of a warp that say the same are one line.  LOCATION is that of `break`.
    """
    found = LOGPOINT.fullmatch(text)
    if found is None:
        raise BadCommand('a logpoint is LOCATION "TEXT", and a condition behind it')
    made = debugger.session.log_at(found["location"], found["text"], found["condition"] or "")
    yield from pending(made)
    yield Line(f"Logpoint {made.number} at {places(debugger, made)}")


@command("catch", usage="nan|memory|init|sync|race [if CONDITION]", group=GROUP)
def catch(debugger: Debugger, text: str) -> Iterator[Line]:
    """Stop where something is found: a NaN in a register that had none, or what a check finds.

    The checks are those of `ptxvm run`: memory, init (reads of what has no value), sync (misused barriers) and race.
    Checks follow a run from its beginning: `run` starts it again with them.  Faults stop a run always.
    """
    name, condition = parted(text)
    made = debugger.session.catch(name, condition)
    yield Line(f"Catchpoint {made.number} ({made.subject})")
    if made.caught.is_check and debugger.session.is_running:
        yield Line("The checks begin when the kernel is started again: `run`.")


@command("condition", usage="NUMBER [CONDITION]", group=GROUP)
def condition(debugger: Debugger, text: str) -> Iterator[Line]:
    """Let breakpoint NUMBER stop only where CONDITION holds; always, without one."""
    which, _, expression = text.partition(" ")
    made = debugger.session.breakpoints.get(number(which, "the breakpoint"))
    made.condition = parse(expression) if expression.strip() else None
    yield from ()


@command("ignore", usage="NUMBER COUNT", group=GROUP)
def ignore(debugger: Debugger, text: str) -> Iterator[Line]:
    """Let the next COUNT stops at breakpoint NUMBER pass, as so many `continue` would."""
    which, _, count = text.partition(" ")
    made = debugger.session.breakpoints.get(number(which, "the breakpoint"))
    made.ignore = max(number(count.strip(), "the count"), 0)
    verb = "passes" if made.ignore == 1 else "pass"
    yield Line(f"The next {plural(made.ignore, 'stop')} at breakpoint {made.number} {verb}.")


@command("delete", "d", usage="[NUMBER...]", group=GROUP)
def delete(debugger: Debugger, text: str) -> Iterator[Line]:
    """Delete breakpoints; all, without a number."""
    for each in text.split() or [""]:
        debugger.session.delete(number(each, "the breakpoint") if each else None)
    yield from ()


@command("enable", usage="[NUMBER...]", group=GROUP)
def enable(debugger: Debugger, text: str) -> Iterator[Line]:
    """Let breakpoints stop again; all, without a number."""
    for each in chosen(debugger, text):
        each.enabled = True
    yield from ()


@command("disable", usage="[NUMBER...]", group=GROUP)
def disable(debugger: Debugger, text: str) -> Iterator[Line]:
    """Let breakpoints stop no more, until they are enabled; all, without a number."""
    for each in chosen(debugger, text):
        each.enabled = False
    yield from ()


def chosen(debugger: Debugger, text: str) -> list[Breakpoint]:
    """The breakpoints of some numbers, or all."""
    known = debugger.session.breakpoints
    return [known.get(number(each, "the breakpoint")) for each in text.split()] or list(known.all.values())


@command("info breakpoints", "info b", usage="", group=GROUP)
def info_breakpoints(debugger: Debugger, text: str) -> Iterator[Line]:
    """List the breakpoints, their conditions, and how often each has stopped or was let pass."""
    none(text)
    if not debugger.session.breakpoints.all:
        raise BadCommand("there are no breakpoints")
    rows = []
    for each in debugger.session.breakpoints.all.values():
        said = each.subject
        said += f" if {each.condition.text}" if each.condition is not None else ""
        said += f' "{each.message.text}"' if isinstance(each, CodeBreakpoint) and each.message is not None else ""
        said += f" at {places(debugger, each)}" if isinstance(each, CodeBreakpoint) else ""
        said += f", hit {plural(each.hits, 'time')}" if each.hits else ""
        said += f", the next {each.ignore} pass" if each.ignore else ""
        rows.append((str(each.number), KINDS[type(each)], "del" if each.temporary else "keep", "ny"[each.enabled], said))
    yield from debugger.table(("Num", "Type", "Disp", "Enb", "What"), rows)


KINDS = {CodeBreakpoint: "breakpoint", Watchpoint: "watchpoint", Catchpoint: "catchpoint"}

__all__ = ["parted"]
