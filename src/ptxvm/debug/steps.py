"""Steps of the thread in focus, forwards and backwards: by instruction, source line, warp, barrier, function and divergence.

A step runs the warp in focus, whose lanes that are least far run first, until the thread in focus has done its step; the
rest of the grid stays, unless the warp must wait for it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection

from ptxvm.debug.execution import Execution
from ptxvm.debug.focus import NotThere
from ptxvm.debug.lanes import Status
from ptxvm.debug.stops import Reason, Stop
from ptxvm.engine.interp.ports import Wait
from ptxvm.engine.interp.stepping import warps_of
from ptxvm.engine.interp.stepping_schedule import Issue
from ptxvm.named_tuple import NamedTuple


class Step(enum.Enum):
    """How far a step goes."""

    INSTRUCTION = "an instruction of the thread in focus"
    NEXT_INSTRUCTION = "an instruction, or a call as a whole"
    LINE = "a source line"
    NEXT_LINE = "a source line, with the functions that it calls"
    FINISH = "to the end of the function"
    WARP = "an instruction of the warp, whichever of its lanes execute it"
    BARRIER = "to the end of the next barrier of the CTA or the cluster"
    CONVERGE = "until the lanes of the warp have met again"


AT_BARRIER = (Status.BARRIER, Status.CLUSTER)
WAITING = (Status.WARP, Status.COLUMNS, *AT_BARRIER)


class Spot(NamedTuple):
    """Where a thread is: the depth of its calls, its function, its source line, or the line of the PTX without one."""

    depth: int
    function: str
    file: int
    line: int


class NoStep(NotThere):
    """There is nothing to step; the message says why."""


def step(execution: Execution, kind: Step) -> Stop:
    """Go one step; a breakpoint may end it earlier."""
    if kind is Step.WARP:
        return execution.run(lambda _: True, warp=True)
    if kind is Step.CONVERGE:
        return converge(execution)
    here = spot(execution)
    if here is None:
        others = ": choose another one, such as `thread` or `block` name" if execution.grid.running else ""
        raise NoStep(f"the thread in focus {ended(execution)}{others}")
    match kind:
        case Step.INSTRUCTION:
            return execution.run(gone_on(execution), warp=True)
        case Step.BARRIER:
            return past_barrier(execution)
        case Step.FINISH:
            if not here.depth:
                raise NoStep("the thread is in the kernel itself, which nothing has called")
            return execution.run(lambda _: is_left(execution, here.depth), warp=True)
    return execution.run(arrival(execution, here, kind), warp=True)


def arrival(execution: Execution, here: Spot, kind: Step) -> Callable[[Issue], bool]:
    """Is the thread at another line, or behind its instruction; functions that it calls count or are passed over."""
    deep, on = kind is Step.LINE, gone_on(execution)

    def arrived(issue: Issue) -> bool:
        if not on(issue):
            return False
        now = spot(execution)
        if now is None:
            return True
        if now.depth > here.depth and not deep:
            return False
        return kind is Step.NEXT_INSTRUCTION or now != here

    return arrived


def gone_on(execution: Execution) -> Callable[[Issue], bool]:
    """Has the thread in focus executed an instruction, and does not wait in it for others?"""
    executed = False

    def done(issue: Issue) -> bool:
        nonlocal executed
        executed = executed or execution.has_focus(issue)
        return executed and not is_waiting(execution)

    return done


def is_waiting(execution: Execution, states: Collection[Status] = WAITING) -> bool:
    """Does the thread in focus wait for others, in one of some states?"""
    if execution.grid.awaits:
        return True  # for grids that were launched
    places, schedule = execution.places(), execution.schedule
    if places is None or schedule is None:
        return False
    return places.status_of(execution.lane(schedule)) in states


def spot(execution: Execution) -> Spot | None:
    """Where the thread in focus is; None where it has ended."""
    places, schedule = execution.places(), execution.schedule
    frame = places.frame(execution.lane(schedule)) if places is not None and schedule is not None else None
    if frame is None:
        return None
    location = frame.location
    line = (0, frame.bound.line) if location is None else (location.file, location.line)
    return Spot(frame.depth, frame.routine.function.name, *line)


def is_left(execution: Execution, depth: int) -> bool:
    """Has the thread in focus left the function at a depth of calls?"""
    now = spot(execution)
    return now is None or now.depth < depth


def ended(execution: Execution) -> str:
    """Why the thread in focus cannot go on."""
    if execution.schedule is not None:
        return "has ended"
    if not execution.grid.running:
        return "has ended, as the kernel has: go back a step, and its values are there"
    begun = execution.focus.cta < execution.grid.opened.clusters.begun
    return "has ended, as its block has" if begun else "has not begun, as its block has not"


def past_barrier(execution: Execution) -> Stop:
    """Run until the thread in focus has passed a barrier of its CTA or its cluster."""
    arrived = is_waiting(execution, AT_BARRIER)

    def passed(issue: Issue) -> bool:
        nonlocal arrived
        if execution.has_focus(issue) and is_barrier(issue):
            arrived = True
        return not is_waiting(execution) if arrived else spot(execution) is None

    return execution.run(passed)


def is_barrier(issue: Issue) -> bool:
    """May a thread wait for others of its CTA, or of its cluster, at the instruction?"""
    request = issue.routine.compiled(issue.key[2], whole=issue.lanes is None).request
    return request is not None and request.wait in (Wait.CTA, Wait.CLUSTER)


def converge(execution: Execution) -> Stop:
    """Run the warp until its lanes are at one place."""
    if execution.groups() < 2:
        raise NoStep("the lanes of the warp in focus are at one place")
    return execution.run(lambda _: execution.groups() < 2, warp=True)


# ── backwards ───────────────────────────────────────────────────────────────────────────


def back(execution: Execution, kind: Step) -> Stop:
    """Go one step back."""
    here = spot(execution)
    match kind:
        case Step.INSTRUCTION:
            return execution.back(execution.has_focus)
        case Step.WARP:
            warp = tuple(execution.choice[:2])
            return execution.back(lambda issue: warp in warps_of(issue))
        case Step.BARRIER:
            return execution.back(lambda issue: execution.has_focus(issue) and is_barrier(issue))
        case Step.CONVERGE:
            return back_to_one_place(execution)
        case Step.FINISH:
            if here is None or not here.depth:
                raise NoStep("the thread is in the kernel itself, which nothing has called")
            return execution.back(lambda issue: execution.has_focus(issue) and -issue.key[0] < here.depth)
        case Step.NEXT_INSTRUCTION:
            depth = here.depth if here is not None else 0
            return execution.back(lambda issue: execution.has_focus(issue) and -issue.key[0] <= depth)
    return back_a_line(execution, here, kind)


def back_to_one_place(execution: Execution) -> Stop:
    """Go back to where the lanes of the warp were at one place."""
    if execution.groups() < 2:
        raise NoStep("the lanes of the warp in focus are at one place")
    warp = tuple(execution.choice[:2])
    return execution.back(lambda issue: warp in warps_of(issue) and execution.groups() < 2)


def back_a_line(execution: Execution, here: Spot | None, kind: Step) -> Stop:
    """Go back to the beginning of the line before, or of this line where the thread is in its midst."""
    depth = here.depth if here is not None else 0
    stop = back_in(execution, depth, kind)
    line_there = spot(execution)
    while stop.reason is Reason.STEP:
        time = execution.timeline.now
        stop = back_in(execution, depth, kind)
        if stop.reason is Reason.STEP and spot(execution) == line_there:
            continue
        execution.timeline.go_to(time)
        return Stop(Reason.STEP)
    return stop


def back_in(execution: Execution, depth: int, kind: Step) -> Stop:
    """Go back to the last instruction of the thread in focus, of functions that it called only where these count."""
    return execution.back(lambda issue: execution.has_focus(issue) and (kind is Step.LINE or -issue.key[0] <= depth))


__all__ = ["NoStep", "Spot", "Step", "back", "spot", "step"]
