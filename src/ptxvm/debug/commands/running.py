"""Commands that run: forwards, backwards, and in an order of one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from ptxvm.debug.commands.command import BadCommand, Debugger, Line, command, number
from ptxvm.debug.focus import Focus, moved
from ptxvm.debug.steps import Step
from ptxvm.debug.stops import Reason, Stop
from ptxvm.machine.warp_schedule import Choice, WarpSchedule

COORDINATES = ("block", "thread", "warp", "lane", "kernel", "grid", "device", "sm")
GROUP, BACKWARDS, ORDER = "Running", "Running backwards", "The order of warps"


@command("run", "r", group=GROUP)
def run(debugger: Debugger, text: str) -> Iterator[Line]:
    """Start the kernel, or start it again with its arguments as they were, and run to the first breakpoint."""
    none(text)
    debugger.session.start()
    yield from debugger.stopped(debugger.session.resume())


@command("start", group=GROUP)
def start(debugger: Debugger, text: str) -> Iterator[Line]:
    """Start the kernel, and stop before its first instruction."""
    none(text)
    yield from debugger.stopped(debugger.session.start())


@command("continue", "c", "fg", usage="[COUNT]", group=GROUP)
def continue_(debugger: Debugger, text: str) -> Iterator[Line]:
    """Run to the next breakpoint; with a COUNT, let the breakpoint at which it stands pass so often."""
    count, stop = number(text, "the count", 1, least=1), debugger.session.stop
    known = debugger.session.breakpoints.all
    for each in stop.numbers if stop is not None and count > 1 else ():
        if each in known:  # a temporary one is gone
            known[each].ignore = count - 1
    yield from debugger.stopped(debugger.session.resume())


STEPS = (
    (Step.LINE, ("step", "s"), ("reverse-step", "rs"),
     "to another source line (.loc), into functions; a line of the PTX where there is no .loc"),
    (Step.NEXT_LINE, ("next", "n"), ("reverse-next", "rn"), "to another source line, past the functions that it calls"),
    (Step.INSTRUCTION, ("stepi", "si"), ("reverse-stepi", "rsi"), "one instruction of the thread in focus"),
    (Step.NEXT_INSTRUCTION, ("nexti", "ni"), ("reverse-nexti", "rni"), "one instruction, past the function that it calls"),
    (Step.FINISH, ("finish", "fin"), ("reverse-finish",), "out of the function"),
    (Step.WARP, ("stepwarp", "sw"), ("reverse-stepwarp", "rsw"), "one instruction of the warp, whichever lanes execute it"),
    (Step.BARRIER, ("barrier",), ("reverse-barrier",), "past a barrier of the CTA or the cluster; all of it runs"),
    (Step.CONVERGE, ("converge",), ("reverse-converge",), "out of a divergent region: all lanes of the warp are together"),
)  # fmt: skip


def declare(run: Callable[[Debugger, int], Stop], names: tuple[str, ...], help: str, group: str) -> None:
    """Declare a command for a step."""

    def action(debugger: Debugger, text: str) -> Iterator[Line]:
        yield from debugger.stopped(run(debugger, number(text, "the count", 1, least=1)))

    action.__doc__ = help
    command(names[0], *names[1:], usage="[COUNT]", group=group)(action)


def forwards(kind: Step, debugger: Debugger, count: int) -> Stop:
    """Go COUNT steps."""
    return debugger.session.step(kind, count)


def backwards(kind: Step, debugger: Debugger, count: int) -> Stop:
    """Go COUNT steps back."""
    return debugger.session.reverse_step(kind, count)


for kind, names, _, goal in STEPS:
    declare(partial(forwards, kind), names, f"Go {goal}.", GROUP)
for kind, _, names, goal in STEPS:
    declare(partial(backwards, kind), names, f"Go back {goal}.", BACKWARDS)


@command("set cuda break_on_launch", usage="all|none", group=GROUP)
def set_break_on_launch(debugger: Debugger, text: str) -> Iterator[Line]:
    """Stop before the first instruction of each launch of a Python program, or let launches run to a breakpoint."""
    if text not in ("all", "none"):
        raise BadCommand(f"launches stop all, or none, not '{text}'")
    debugger.breaks_on_launch = text == "all"
    yield from ()


@command("until", "u", "advance", usage="LOCATION", group=GROUP)
def until(debugger: Debugger, text: str) -> Iterator[Line]:
    """Run until a thread comes to LOCATION, which `break` explains."""
    if not text:
        raise BadCommand("the location is missing")
    session = debugger.session
    session.breakpoints.sites(text, session.here)  # refuses what only a later launch may have
    aim = session.break_at(text, temporary=True)
    stop = session.resume()
    session.breakpoints.discard(aim.number)  # something else may have come first
    if stop.numbers == (aim.number,):
        yield from debugger.tell_focus()
        stop = Stop(Reason.STEP)
    yield from debugger.stopped(stop)


@command("kill", "k", group=GROUP)
def kill(debugger: Debugger, text: str) -> Iterator[Line]:
    """End the run; breakpoints stay."""
    none(text)
    debugger.session.close()
    yield Line("The kernel is not being run.")


@command("quit", "q", "exit", group=GROUP)
def quit_(debugger: Debugger, text: str) -> Iterator[Line]:
    """Leave the debugger."""
    none(text)
    debugger.is_done = True
    yield from ()


@command("reverse-continue", "rc", group=BACKWARDS)
def reverse_continue(debugger: Debugger, text: str) -> Iterator[Line]:
    """Go back to the last breakpoint, or to the beginning; conditions are heard, counts are not."""
    none(text)
    yield from debugger.stopped(debugger.session.reverse_resume())


@command("goto", usage="TIME", group=BACKWARDS)
def goto(debugger: Debugger, text: str) -> Iterator[Line]:
    """Be at a time that has been: the number of instructions that were issued, which `info time` tells."""
    yield from debugger.stopped(debugger.session.go_to(number(text, "the time")))


@command("issue", usage="[block B] [warp W] [lane L] [COUNT]", group=ORDER)
def issue(debugger: Debugger, text: str) -> Iterator[Line]:
    """Let a warp execute its next COUNT instructions before any other; with a lane, the group of that lane.

    Which lanes run first is a free choice of the hardware.  The choices are a part of the run: `save schedule` keeps them,
    and going back and forth repeats them.
    """
    words = text.split()
    count = number(words.pop(), "the count", least=1) if len(words) % 2 else 1
    focus = named_focus(debugger, words)
    lane = focus.lane if "lane" in words else None
    yield from debugger.stopped(debugger.session.issue(Choice(focus.cta, focus.warp, lane), count))


@command("save schedule", usage="FILE", group=ORDER)
def save_schedule(debugger: Debugger, text: str) -> Iterator[Line]:
    """Save the launch and the warps that were chosen up to now, for `kernel.replay(FILE, args)` in a test."""
    schedule = debugger.session.schedule
    if not text:
        raise BadCommand("the file is missing")
    debugger.write(text, schedule.text)
    yield Line(f"{len(schedule.choices)} choices are in {text}")


@command("load schedule", usage="FILE", group=ORDER)
def load_schedule(debugger: Debugger, text: str) -> Iterator[Line]:
    """Start the kernel again, and run it by a saved schedule from there on."""
    if not text:
        raise BadCommand("the file is missing")
    yield from debugger.stopped(debugger.session.follow(WarpSchedule.of_text(debugger.read(text))))


def named_focus(debugger: Debugger, words: list[str]) -> Focus:
    """The thread that pairs of words name, from the one in focus on: `block 1 warp 2 lane 3`, `thread (4,0,0)`."""
    chosen: dict[str, str] = {}
    for name, value in zip(words[::2], words[1::2], strict=False):
        if name not in COORDINATES:
            raise BadCommand(f"'{name}' is no coordinate: there are {', '.join(COORDINATES)}")
        chosen[name] = value
    for name, only in ones(debugger).items():
        if name in chosen and (asked := number(chosen[name], f"the {name}")) != only:
            raise BadCommand(f"{name} {asked} does not run: there is {name} {only}")
    block, thread = (place(chosen[name], name) if name in chosen else None for name in ("block", "thread"))
    warp, lane = (number(chosen[name], f"the {name}") if name in chosen else None for name in ("warp", "lane"))
    session = debugger.session
    return moved(session.execution.focus, session.shape, block=block, thread=thread, warp=warp, lane=lane)


def ones(debugger: Debugger) -> dict[str, int]:
    """The coordinates of which there is one at a time, by their numbers: one grid runs, on a device that is one SM."""
    number = debugger.session.launch[0]
    return {"device": 0, "sm": 0, "kernel": number, "grid": number + 1}


def place(text: str, what: str) -> tuple[int, int, int]:
    """`(1,0,0)`, `1,0` or `1`."""
    parts = text.strip("()").split(",")
    if len(parts) > len("xyz"):
        raise BadCommand(f"a {what} has up to three coordinates")
    x, y, z = (*(number(part.strip(), f"a coordinate of the {what}") for part in parts), 0, 0)[:3]
    return x, y, z


def none(text: str) -> None:
    """A command takes nothing more."""
    if text:
        raise BadCommand(f"the command takes no '{text}'")


__all__ = ["COORDINATES", "named_focus", "none", "ones"]
