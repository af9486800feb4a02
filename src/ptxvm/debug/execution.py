"""An execution: the timeline of a grid, stopped at breakpoints, with a thread in focus."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from ptxvm.dataclass import dataclass
from ptxvm.debug.breakpoints import Breakpoint, Breakpoints, Catchpoint, Caught, Watchpoint, numbers, troubles
from ptxvm.debug.expressions import parse
from ptxvm.debug.focus import Focus, number_of, shown
from ptxvm.debug.lanes import LanePlaces, Status
from ptxvm.debug.log_messages import LogMessage, lane_text, said_by_warps
from ptxvm.debug.nans import has_nan
from ptxvm.debug.stops import Change, Reason, Stop
from ptxvm.debug.timeline import Interrupt, Interrupted, Timeline
from ptxvm.debug.values import NoValue, Pointees, View
from ptxvm.debug.watched_accesses import Observing, WatchedAccesses, start_of
from ptxvm.diagnostics.errors import Fault, Place
from ptxvm.engine.interp.stepping import SteppedGrid, lanes_of
from ptxvm.engine.interp.stepping_schedule import Issue, SteppingSchedule
from ptxvm.isa.effects import Jump
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.events import Finding
from ptxvm.machine.per_lane import Array, LaneNumbers
from ptxvm.machine.warp_schedule import Choice
from ptxvm.named_tuple import NamedTuple

NONE: LaneNumbers = np.zeros(0, np.intp)


@dataclass(frozen=True, slots=True)
class Passed:
    """Lanes for which a breakpoint has stopped, and which have not gone on."""

    cta: int
    key: tuple[int, int, int]
    lanes: frozenset[int]

    def is_at(self, issue: Issue) -> bool:
        """Is that the place of an instruction?"""
        return self.key == issue.key and self.cta == int(issue.schedule.cohort.layout.ctas[0])


def passed_by(issue: Issue) -> Passed:
    """The lanes of an instruction, before it."""
    return Passed(int(issue.schedule.cohort.layout.ctas[0]), issue.key, frozenset(issue.numbers.tolist()))


class Execution:
    """Runs a grid forwards and backwards; `interrupt` is set from outside, to stop it."""

    def __init__(
        self, grid: SteppedGrid, breakpoints: Breakpoints, accesses: WatchedAccesses, pointees: Pointees, interrupt: Interrupt,
        logged: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.grid, self.breakpoints, self.accesses = grid, breakpoints, accesses
        self._pointees = pointees  # of the kernel, and not of those that it launches
        self.timeline, self.interrupt = Timeline(grid, interrupt), interrupt
        self.logged = logged
        self._focus: dict[int, Focus] = {}  # by the number of the grid
        self.passed: Passed | None = None
        self.came_before: Before | None = None  # what stops a run that goes back to before an instruction

    # ── the thread in focus ─────────────────────────────────────────────────────────────

    @property
    def focus(self) -> Focus:
        """The thread in focus; the first one of a grid that was launched, when that begins."""
        return self._focus.get(self.grid.launch.number, Focus())

    @focus.setter
    def focus(self, focus: Focus) -> None:
        self._focus[self.grid.launch.number] = focus

    @property
    def pointees(self) -> Pointees:
        """What the pointers point to that are parameters of the kernel that runs."""
        return {} if self.grid.launch.number else self._pointees

    @property
    def schedule(self) -> SteppingSchedule | None:
        """The schedule of the CTA in focus; None where it has not begun, or has ended."""
        return self.grid.schedule_of(self.focus.cta)

    def lane(self, schedule: SteppingSchedule) -> int:
        """The number of the thread in focus in its cohort."""
        layout = schedule.cohort.layout
        return int(np.flatnonzero(layout.ctas == self.focus.cta)[0]) * layout.threads + self.focus.thread

    def has_focus(self, issue: Issue) -> bool:
        """Does the thread in focus execute an instruction?"""
        if issue.schedule is not self.schedule:
            return False
        return issue.lanes is None or self.lane(issue.schedule) in issue.lanes

    def places(self) -> LanePlaces | None:
        """Where the lanes of the cohort in focus are."""
        schedule = self.schedule
        return None if schedule is None else LanePlaces(schedule)

    def look_at(self, issue: Issue, lane: int) -> None:
        """Let a thread have the focus, which executes an instruction."""
        layout = issue.schedule.cohort.layout
        self.focus = Focus(int(layout.ctas[layout.cta[lane]]), int(layout.thread[lane]) // WARP, int(layout.lane[lane]))

    def keep_focus(self, issue: Issue) -> None:
        """Let the focus be in an instruction's lanes: where it is, in its warp, or at the first of them."""
        if self.has_focus(issue):
            return
        mine = self.choice.cta in issue.schedule.cohort.layout.ctas
        lanes = np.intersect1d(lanes_of(issue.schedule, self.choice), issue.numbers) if mine else issue.numbers[:0]
        self.look_at(issue, int(lanes[0] if len(lanes) else issue.numbers[0]))

    @property
    def choice(self) -> Choice:
        """The warp in focus."""
        return Choice(self.focus.cta, self.focus.warp)

    # ── forwards ────────────────────────────────────────────────────────────────────────

    def run(
        self, done: Callable[[Issue], bool], *, warp: bool = False, choice: Choice | None = None, stops: bool = True
    ) -> Stop:  # fmt: skip
        """Run until a breakpoint `stops` it, or `done` is true of the instruction that was executed last.

        Of the `warp` in focus alone, while it can run: where it must wait, others run until it can go on.  Or of what is
        chosen.  The grids for which its grid waits run without being `done`.
        """
        number = self.grid.launch.number
        with self.observing():
            while True:
                if self.interrupt.take():
                    return Stop(Reason.INTERRUPT)
                try:
                    warp_of = choice or self.choice if (warp or choice) and not self.grid.is_suspended(number) else None
                    issue = self.next(warp_of)
                    if issue is None:
                        return Stop(Reason.ENDED)
                    if stops and (stop := self.before(issue)) is not None:
                        return stop
                    stop = self.execute(issue)
                except Fault as fault:
                    return self.faulted(fault)
                if stops and stop is not None:
                    return stop
                if not self.is_away(number) and done(issue):
                    return Stop(Reason.STEP)

    def is_away(self, number: int) -> bool:
        """Does a grid wait for others, after the instruction that was executed last?"""
        if not any(each.number == number for each in self.grid.suspended):
            return False  # also before the others begin: what was executed is then an instruction of the grid
        with suppress(Fault):  # of a deadlock, which comes with the next step
            self.timeline.next()  # where the others have ended the grid goes on
        return self.grid.is_suspended(number)

    def next(self, choice: Choice | None) -> Issue | None:
        """The next instruction: of a warp that is chosen, or else of any."""
        if choice is not None and (issue := self.timeline.next(choice, chosen=True)) is not None:
            return issue
        return self.timeline.next()

    def execute(self, issue: Issue) -> Stop | None:
        """Execute an instruction; the stop where it did what a breakpoint is for."""
        nans = self.nans(issue)
        self.pass_on(issue)
        known = len(self.findings)
        self.timeline.advance(issue)
        return self.watched(issue) or self.caught(issue, nans) or self.found(issue, known)

    def pass_on(self, issue: Issue) -> None:
        """Lanes execute an instruction: where they come back to it, a breakpoint stops them again."""
        passed = self.passed
        if passed is not None and passed.is_at(issue):
            self.passed = replace(passed, lanes=passed.lanes.difference(issue.numbers.tolist()))

    def observing(self) -> Observing:
        """Within it accesses are followed, where there are watchpoints: from what their bytes are now."""
        for watch in self.breakpoints.watchpoints:
            watch.value = self.bytes_now(watch)
        return Observing(self.accesses)

    def faulted(self, fault: Fault) -> Stop:
        """The stop for a fault; the thread that it names has the focus."""
        self.focus_on_place(fault.place)
        return Stop(Reason.FAULT, fault=fault, message=str(fault))

    def focus_on_place(self, place: Place | None) -> None:
        """Let the thread have the focus that a fault or a finding names."""
        if place is not None and place.cta is not None and place.thread is not None:
            shape = self.grid.shape
            number = number_of(place.thread, shape.block, "thread")
            ctas = (each for schedule in self.grid.running for each in schedule.cohort.layout.ctas.tolist())
            cta = next((each for each in ctas if shape.ctaid(each) == place.cta), self.focus.cta)
            self.focus = Focus(cta, number // WARP, number % WARP)

    # ── breakpoints ─────────────────────────────────────────────────────────────────────

    def before(self, issue: Issue) -> Stop | None:
        """The stop before an instruction, where a breakpoint is there; its first thread has the focus."""
        found, lanes = [], issue.numbers[:0]
        for each in self.breakpoints.at(issue.key[1:]) if self.breakpoints.all else ():
            hit = self.hit(each, issue)
            if not len(hit) or not each.counted():
                continue
            if each.message is not None and not each.trouble:
                self.log(each.message, self.view(issue, hit))
            else:
                found.append(each)
                lanes = hit if not len(lanes) else lanes
        if not found and not len(lanes := self.asking(issue)):
            return None
        self.passed = passed_by(issue)
        self.focus_on(issue, lanes)
        for each in found:
            if each.temporary:
                self.breakpoints.delete(each.number)
        return Stop(Reason.BREAKPOINT, numbers(found), troubles(found) or ("" if found else asked(issue)))

    def asking(self, issue: Issue) -> LaneNumbers:
        """The lanes that ask for a stop now, by `brkpt` (PTX 9.7.19.1) and a guard that holds."""
        if issue.bound.summary.jump is not Jump.BREAKPOINT:
            return NONE
        lanes, guard = self.coming(issue), issue.bound.node.guard
        if guard is None or not len(lanes):
            return lanes
        found: LaneNumbers = lanes[parse(f"{'!' * guard.negated}{guard.name.text}").holds(self.view(issue, lanes))]
        return found

    def coming(self, issue: Issue) -> LaneNumbers:
        """The lanes of an instruction for which nothing has stopped there."""
        lanes, passed = issue.numbers, self.passed
        return lanes[~np.isin(lanes, list(passed.lanes))] if passed is not None and passed.is_at(issue) else lanes

    def log(self, message: LogMessage, view: View) -> None:
        """Say what lanes have to say at a logpoint."""
        shape = self.grid.shape
        for cta, warp, lanes, text in said_by_warps(message, view):
            self.logged(f"[block {shown(shape.ctaid(cta))}, warp {warp}, {lane_text(lanes)}] {text}")

    def arrive(self, stop: Stop, *, stops: bool) -> Stop:
        """The stop at the end of a step: that of a breakpoint, where one `stops` there; none of there stops again at once."""
        focus = self.focus
        issue = self.grid.decide(Choice(focus.cta, focus.warp, focus.lane))
        if issue is None:
            return stop
        found = self.before(issue) if stops else None
        self.passed = passed_by(issue)
        return found or stop

    def focus_on(self, issue: Issue, lanes: LaneNumbers) -> None:
        """Let the focus be in some lanes of an instruction."""
        if not (self.has_focus(issue) and self.lane(issue.schedule) in lanes):
            self.look_at(issue, int(lanes[0]))

    def hit(self, each: Breakpoint, issue: Issue) -> LaneNumbers:
        """The lanes of an instruction at which a breakpoint stops now, whatever its count."""
        lanes = self.coming(issue)
        if not each.enabled or not len(lanes):
            return lanes[:0]
        return self.holding(each, issue, lanes)

    def holding(self, each: Breakpoint, issue: Issue, lanes: LaneNumbers) -> LaneNumbers:
        """The lanes for which the condition of a breakpoint holds; all where it has no value, which is then its trouble."""
        each.trouble = ""
        if each.condition is None:
            return lanes
        try:
            found: LaneNumbers = lanes[each.condition.holds(self.view(issue, lanes))]
        except NoValue as wrong:
            each.trouble = f"whose condition `{each.condition.text}` has no value: {wrong}"
            return lanes
        return found

    def view(self, issue: Issue, lanes: LaneNumbers) -> View:
        """The values of some lanes that execute an instruction."""
        return View(issue.schedule, issue.routine, -issue.key[0], issue.key[2], lanes, self.pointees)

    def watched(self, issue: Issue) -> Stop | None:
        """The stop after an instruction that has accessed bytes for which there is a watchpoint."""
        found, changes, seen = [], [], set[int]()
        for watch, every in self.accesses.take():
            lanes = self.holding(watch, issue, np.intersect1d(every, issue.numbers)) if watch.condition else every
            old, new = watch.value, self.bytes_at(watch, issue.schedule)
            watch.value = new
            if watch.number in seen or not watch.stops_at(old, new) or not len(lanes):
                continue
            seen.add(watch.number)
            if watch.counted():
                found.append(watch)
                values = watch.text(old, new), watch.text(new, old)
                changes.append(Change(watch.number, watch.subject, issue.bound.line, *values))
                mine = np.intersect1d(lanes, issue.numbers)
                self.focus_on(issue, mine if len(mine) else issue.numbers)  # others, where asynchronous work did it
        return Stop(Reason.WATCHPOINT, numbers(found), troubles(found), tuple(changes)) if found else None

    def bytes_now(self, watch: Watchpoint) -> bytes | None:
        """What is at a watchpoint before the next instruction; None where there is no such memory."""
        schedule = self.grid.schedule_of(watch.bytes.cta) or next(iter(self.grid.running), None)
        return self.bytes_at(watch, schedule) if schedule is not None else None

    def bytes_at(self, watch: Watchpoint, schedule: SteppingSchedule) -> bytes | None:
        """What is at a watchpoint; None where there is no such memory now."""
        wanted, memory = watch.bytes, schedule.cohort.mem
        start = start_of(memory, wanted)
        if start is None:
            return None
        window = memory.window(wanted.space)
        held = window.allocation if window is not None else memory.machine.table.find(start)
        if held is None:
            return None
        first = start if window is not None else start - held.start
        found: bytes = held.bytes[first : first + wanted.size].tobytes()
        return found

    # ── what is found ───────────────────────────────────────────────────────────────────

    def nans(self, issue: Issue) -> Array | None:
        """The lanes of an instruction that have a NaN where it writes, before it; None where none is to be caught."""
        wanted = any(each.caught is Caught.NAN for each in self.breakpoints.catchpoints)
        return has_nan(self.view(issue, issue.numbers)) if wanted else None

    def caught(self, issue: Issue, before: Array | None) -> Stop | None:
        """The stop after an instruction that has made a NaN where none was; a lane that has one has the focus."""
        found = {each: lanes for each, lanes in self.nan_catches(issue, before).items() if each.counted()}
        if not found:
            return None
        self.focus_on(issue, next(iter(found.values())))
        said = troubles(found) or nan_text(issue)
        return Stop(Reason.CATCHPOINT, numbers(found), said, finding=Caught.NAN)

    @property
    def findings(self) -> Sequence[Finding]:
        """What the checks have found up to now."""
        watching = self.grid.watching
        return watching.watcher.findings if watching is not None else ()

    def found(self, issue: Issue, known: int) -> Stop | None:
        """The stop after an instruction in which a check has found something."""
        fresh = self.findings[known:]
        if not fresh:
            return None
        kinds = {Caught.by(each.kind) for each in fresh}
        wanted = [each for each in self.breakpoints.catchpoints if each.caught in kinds]
        if not wanted and Caught.MEMORY not in kinds:
            return None  # its catchpoint is off
        focus = self.focus
        self.keep_focus(issue)
        self.focus_on_finding(fresh)
        stopping = [each for each in wanted if len(self.holding(each, issue, self.focused(issue))) and each.counted()]
        if wanted and not stopping:
            self.focus = focus
            return None
        said = troubles(stopping) or "; ".join(f"{each.kind}: {each.message}" for each in fresh)
        return Stop(Reason.CATCHPOINT, numbers(stopping), said, finding=fresh[0].kind)

    def focus_on_finding(self, fresh: Sequence[Finding]) -> None:
        """Let the thread have the focus that the first of some findings names."""
        self.focus_on_place(fresh[0].accesses[-1].place if fresh[0].accesses else None)

    def finding_lanes(self, issue: Issue, fresh: Sequence[Finding]) -> LaneNumbers:
        """The lane of an instruction that the first of some findings names, where it is one of its lanes; else all of them."""
        focus = self.focus
        self.focus_on_finding(fresh)
        lanes = self.focused(issue)
        self.focus = focus
        return lanes

    def focused(self, issue: Issue) -> LaneNumbers:
        """The lane in focus, where it is one of an instruction; else those of the instruction."""
        return np.array([self.lane(issue.schedule)]) if self.has_focus(issue) else issue.numbers

    # ── backwards ───────────────────────────────────────────────────────────────────────

    def back(self, matches: Callable[[Issue], bool], *, stops: bool = False) -> Stop:
        """Go back to the last instruction that matches, or before which or after which a breakpoint `stops`."""
        known, nans, self.came_before = 0, None, None
        number = self.grid.launch.number

        def before(issue: Issue) -> bool:
            nonlocal known, nans
            matched = not self.grid.is_suspended(number) and matches(issue)
            if not stops:
                return matched
            known, nans = len(self.findings), self.nans(issue)
            for watch in self.breakpoints.watchpoints:
                watch.value = self.bytes_now(watch)
            hit = any(len(self.hit(each, issue)) for each in self.breakpoints.stopping_at(issue.key[1:]))
            return hit or len(self.asking(issue)) > 0 or matched

        def after(issue: Issue) -> bool:
            found = self.comes_before(issue, known, nans) if stops else None
            self.came_before = found or self.came_before
            return found is not None

        self.passed = None
        try:
            with self.observing():
                time = self.timeline.last(before, after)
        except Interrupted:
            return Stop(Reason.INTERRUPT)
        if time is None:
            self.timeline.go_to(0)
            return Stop(Reason.BEGIN)
        return self.arrived(stops=stops)

    def arrived(self, *, stops: bool) -> Stop:
        """The stop at a time that was gone back to."""
        issue = self.timeline.next()
        self.accesses.take()
        if not stops or issue is None:
            return Stop(Reason.STEP)
        found, lanes = [], issue.numbers
        for each in self.breakpoints.stopping_at(issue.key[1:]):
            hit = self.hit(each, issue)
            if len(hit):
                found.append(each)
                lanes = hit
        asking = self.asking(issue)
        if not found:
            lanes = asking if len(asking) else self.came_before.lanes if self.came_before is not None else lanes
        self.focus_on(issue, lanes)
        self.passed = passed_by(issue)
        if not found and len(asking):
            return Stop(Reason.BREAKPOINT, message=asked(issue))
        if not found:
            return self.came_before.stop if self.came_before is not None else Stop(Reason.STEP)
        return Stop(Reason.BREAKPOINT, numbers(found), troubles(found))

    def comes_before(self, issue: Issue, known: int, nans: Array | None) -> Before | None:
        """The stop before an instruction, which was executed just now, for what it has accessed, made or shown.

        `known` are the findings, and `nans` the NaNs of its lanes, that there were before it.
        """
        taken = [
            each for each in self.accesses.take() if each[0].stops_at(each[0].value, self.bytes_at(each[0], issue.schedule))
        ]
        accesses = [(watch, np.intersect1d(lanes, issue.numbers)) for watch, lanes in taken]
        if watches := {watch: held for watch, lanes in accesses if len(held := self.holding(watch, issue, lanes))}:
            said = troubles(watches) or "before the access"
            return Before(Stop(Reason.WATCHPOINT, numbers(watches), said), next(iter(watches.values())))
        fresh = self.findings[known:]
        kinds = {Caught.by(each.kind) for each in fresh}
        wanted = [each for each in self.breakpoints.catchpoints if each.caught in kinds]
        lanes = self.finding_lanes(issue, fresh) if fresh else issue.numbers
        catches = [each for each in wanted if len(self.holding(each, issue, lanes))]
        if catches or (Caught.MEMORY in kinds and not wanted):
            said = troubles(catches) or f"before it is found: {fresh[-1].message}"
            return Before(Stop(Reason.CATCHPOINT, numbers(catches), said, finding=fresh[-1].kind), lanes)
        if made := self.nan_catches(issue, nans):
            said = troubles(made) or f"before {nan_text(issue)}"
            return Before(Stop(Reason.CATCHPOINT, numbers(made), said, finding=Caught.NAN), next(iter(made.values())))
        return None

    def nan_catches(self, issue: Issue, before: Array | None) -> dict[Catchpoint, LaneNumbers]:
        """The catchpoints for NaNs that an instruction has made in lanes that had none `before`, with their lanes."""
        if before is None:
            return {}
        lanes = issue.numbers[has_nan(self.view(issue, issue.numbers)) & ~before]
        known = [each for each in self.breakpoints.catchpoints if each.caught is Caught.NAN and len(lanes)]
        return {each: held for each in known if len(held := self.holding(each, issue, lanes))}

    # ── where the warp in focus is ──────────────────────────────────────────────────────

    def groups(self) -> int:
        """At how many places the live lanes of the warp in focus are."""
        places, schedule = self.places(), self.schedule
        if places is None or schedule is None:
            return 0
        lanes = lanes_of(schedule, self.choice)
        alive = [lane for lane in lanes.tolist() if places.status_of(lane) is not Status.ENDED]
        return len({(int(places.depth[n]), int(places.routine[n]), int(places.index[n]), int(places.status[n])) for n in alive})


def asked(issue: Issue) -> str:
    """What is said where the code asks for a stop."""
    return f"for which line {issue.bound.line} asks: {issue.bound.text}"


def nan_text(issue: Issue) -> str:
    """What is said of an instruction that has made a NaN."""
    return f"line {issue.bound.line} made a NaN: {issue.bound.text}"


class Before(NamedTuple):
    """A stop before an instruction for what it is about to do, and the lanes that do it."""

    stop: Stop
    lanes: LaneNumbers


__all__ = ["Execution"]
