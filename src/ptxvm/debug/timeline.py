"""The timeline of a grid: forwards instruction by instruction, and backwards by checkpoints and execution anew.

Time counts the instructions that were issued.  All that a run depends on besides its inputs is recorded: which warp was
chosen at a time, and what was changed by hand.  From a checkpoint the same instructions lead to the same state, for clocks
count instructions, and random choices have their generators in the state.

A checkpoint copies what changes (`stepping_state`).  It is made where the time since the last one is `PATIENCE` times what a
copy takes, so that copies cost a twentieth of the run at most; where there are many, each second one is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter

import numpy as np

from ptxvm.algebra.float_environment import DefaultEnvironment
from ptxvm.debug.focus import NotThere
from ptxvm.engine.interp.stepping import SteppedGrid
from ptxvm.engine.interp.stepping_schedule import Issue
from ptxvm.engine.interp.stepping_state import GridState
from ptxvm.machine.warp_schedule import Choice

PATIENCE = 20
MOST_CHECKPOINTS = 64
MOST_BYTES = 1 << 30  # of all checkpoints
NEAR = 32  # instructions from a time that is gone to: less than a step costs much

Edit = Callable[[SteppedGrid], None]
"""A change by hand: of a register or of memory."""


Probe = Callable[[Issue], bool]
"""Does an instruction match, which is about to be issued, or was issued just now?"""


def never(issue: Issue) -> bool:  # noqa: ARG001 - a Probe
    """Nothing matches."""
    return False


class Interrupted(Exception):  # noqa: N818 - nothing is wrong
    """A run was stopped from outside; the time is where it was then."""


class Interrupt:
    """Says whether a run is to stop; another thread, or the handler of a signal, may set it."""

    def __init__(self) -> None:
        self.is_set = False

    def take(self) -> bool:
        """Is it set?  It is not afterwards."""
        was, self.is_set = self.is_set, False
        return was


class Timeline:
    """A grid at one time, `now`; what comes up to `end` has been run before."""

    def __init__(self, grid: SteppedGrid, interrupt: Interrupt) -> None:
        self.grid, self.interrupt = grid, interrupt
        self.now = self.end = 0
        self.choices: dict[int, Choice] = {}
        self.edits: dict[int, list[Edit]] = {}
        self.checkpoints: dict[int, GridState] = {}
        self.is_over = False
        self._since, self._cost = 0.0, 0.0
        self._keep()
        self._first = self.checkpoints[0]

    # ── forwards ────────────────────────────────────────────────────────────────────────

    def next(self, choice: Choice | None = None, *, chosen: bool = False) -> Issue | None:
        """The next instruction: what was recorded or what the schedule says, or of a warp where one is `chosen`.

        None where there is none: the grid has ended, or the warp cannot run.  NotThere where a recorded one cannot, as the
        schedule is that of another run.
        """
        wanted = choice if chosen else self.choices.get(self.now)
        with np.errstate(all="ignore"):
            issue = self.grid.decide(wanted)
        if issue is not None and chosen:
            self.record(wanted)
        elif issue is None and wanted is not None and not chosen:
            said = f"warp {wanted.warp} of block number {wanted.cta} run after {self.now} instructions, which cannot"
            raise NotThere(f"the schedule does not fit this run: it lets {said}; `run` starts without it")
        self.is_over = issue is None and wanted is None
        return issue

    def record(self, choice: Choice | None) -> None:
        """A warp is chosen now; another one than before ends what was recorded."""
        if self.choices.get(self.now) != choice:
            self.forget_future()
            if choice is not None:
                self.choices[self.now] = choice

    def advance(self, issue: Issue) -> None:
        """Execute an instruction, which is the next one; a Fault leaves the time as it is."""
        with np.errstate(all="ignore"), DefaultEnvironment():
            self.grid.issue(issue, chosen=self.now in self.choices)
        self.now += 1
        self.grid.observer.time = self.now
        self.end = max(self.end, self.now)
        for edit in self.edits.get(self.now, ()):
            edit(self.grid)
        if perf_counter() - self._since > PATIENCE * self._cost:
            self._keep()

    def change(self, edit: Edit) -> None:
        """Change something by hand now; what was recorded of later times ends."""
        self.forget_future()
        edit(self.grid)
        self.edits.setdefault(self.now, []).append(edit)
        self.checkpoints.pop(self.now, None)  # it has the state before the change
        self._keep()

    def forget_future(self) -> None:
        """Another future begins here."""
        self.end = self.now
        self.choices = {time: each for time, each in self.choices.items() if time < self.now}
        self.edits = {time: each for time, each in self.edits.items() if time <= self.now}
        self.checkpoints = {time: each for time, each in self.checkpoints.items() if time <= self.now}

    def restart(self) -> None:
        """The run begins anew: nothing has been chosen or changed."""
        self.choices, self.edits = {}, {}
        self.checkpoints = {0: self._first}
        self._restore(0)
        self.end = 0

    # ── backwards ───────────────────────────────────────────────────────────────────────

    def go_to(self, time: int) -> None:
        """Be at a time that has been: from the last checkpoint before it the instructions are executed anew."""
        if not 0 <= time <= self.end:
            raise ValueError(f"there is no time {time}: the run is known from 0 to {self.end}")
        if not self.now <= time < self.now + NEAR:
            self._restore(max(known for known in self.checkpoints if known <= time))
        with self.grid.code.library.silent():
            for issue in self._again(time):
                self.advance(issue)
                if (time - self.now) in DENSER and self.now not in self.checkpoints:
                    self._keep()

    def last(self, before: Probe, after: Probe = never) -> int | None:
        """The last time before now at which an instruction was issued that matches; time is there afterwards.

        `before` and `after` are asked before and after each instruction, in the order of time; either may match.  None, and
        the time stays, where nothing matches.
        """
        until = came_from = self.now
        for start in self._starts(until):
            found = None
            self._restore(start)
            with self.grid.code.library.silent():
                for issue in self._again(until):
                    time = self.now
                    matched = before(issue)
                    self.advance(issue)
                    if after(issue) or matched:
                        found = time
            if found is not None:
                self.go_to(found)
                return found
            until = start
        self.go_to(came_from)
        return None

    def _starts(self, until: int) -> Iterator[int]:
        """The checkpoints before a time, the last one first; executing what follows one may make and drop others."""
        while until > 0:
            until = max(known for known in self.checkpoints if known < until)
            yield until

    def _again(self, until: int) -> Iterator[Issue]:
        """The instructions up to a time, as they were."""
        while self.now < until:
            if self.interrupt.take():
                raise Interrupted
            issue = self.next()
            if issue is None:
                raise RuntimeError(f"the run ends at {self.now}, and ended later before")
            yield issue

    # ── checkpoints ─────────────────────────────────────────────────────────────────────

    def _keep(self) -> None:
        """Make a checkpoint of now."""
        began = perf_counter()
        before = self.checkpoints.get(max((time for time in self.checkpoints if time <= self.now), default=-1))
        self.checkpoints[self.now] = GridState(self.grid, before)
        self._since = perf_counter()
        self._cost = self._since - began
        while len(self.checkpoints) > MOST_CHECKPOINTS or (len(self.checkpoints) > 2 and self.kept_bytes > MOST_BYTES):
            for time in sorted(self.checkpoints)[1:-1:2]:
                del self.checkpoints[time]

    def _restore(self, time: int) -> None:
        """Be at a checkpoint."""
        self.checkpoints[time].put_back(self.grid)
        self.now = self.grid.observer.time = time
        self.is_over = False

    @property
    def kept_bytes(self) -> int:
        """The bytes of all checkpoints; a chunk that several have counts once."""
        chunks = {id(chunk): len(chunk) for state in self.checkpoints.values() for chunk in state.chunks}
        return sum(chunks.values()) + sum(len(state.bytes) for state in self.checkpoints.values())


DENSER = frozenset(1 << n for n in range(6, 40))
"""Instructions before a time that is gone to at which checkpoints are made: going back again is then short."""

__all__ = ["Edit", "Interrupt", "Interrupted", "Timeline"]
