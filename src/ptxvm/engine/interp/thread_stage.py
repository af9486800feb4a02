"""Single-thread execution on the interpreter: a script supplies the values that the thread reads."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np

from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Register, Variable
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.engine.argument_words import Argument, Formal
from ptxvm.engine.interp.barriers import Key
from ptxvm.engine.interp.calls import Calls
from ptxvm.engine.interp.engine import Interpreter
from ptxvm.engine.interp.executable import Executable
from ptxvm.engine.interp.lane_memory import CohortInputs
from ptxvm.engine.interp.lanes import at, first
from ptxvm.engine.interp.ports import Action
from ptxvm.engine.interp.routine import Routine
from ptxvm.engine.interp.schedule import Schedule
from ptxvm.engine.interp.scripted_cohort import ScriptedCohort, bits, members_of
from ptxvm.engine.limits import Limits
from ptxvm.engine.protocol import Counters
from ptxvm.engine.snapshot import Snapshot
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.builtins import Library
from ptxvm.machine.cluster_queue import ClusterQueue
from ptxvm.machine.environment import Environment
from ptxvm.machine.image import Image
from ptxvm.machine.launch import LaunchShape
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.per_lane import Lanes, PerLane, RegisterFile
from ptxvm.machine.single_thread import Holder, Meeting, Rendezvous, Script, Stage, StopThread

MOST_STEPS = 100_000  # steps of the schedule at a time


class SingleThreadEngine:
    """An engine whose launch hands a stage to `explore` instead of running the grid; memory is restored afterwards."""

    def __init__(self, interpreter: Interpreter, explore: Callable[[Stage], None]) -> None:
        self.interpreter, self.explore = interpreter, explore

    @property
    def image(self) -> Image:
        """The program in memory."""
        return self.interpreter.image

    @property
    def library(self) -> Library:
        """The functions of the device, and what they printed."""
        return self.interpreter.library

    def launch(
        self, kernel: Function, shape: LaunchShape, parameters: int, options: LaunchOptions, *, limits: Limits | None = None,
        allocations: Sequence[Allocation] = (),
    ) -> Counters:  # fmt: skip
        """Set the stage; `limits` and `payload` are for engines that run the grid."""
        memory = self.image.memory
        before = Snapshot(memory.table.items)
        code = Executable(self.image)
        routine = code.routine(kernel)
        if routine is None:
            raise ValueError(f"the kernel '{kernel.name}' has no body")
        stage = InterpretedStage(code, routine, shape, parameters, options.shared, self.interpreter.stack_size(routine))
        try:
            with np.errstate(all="ignore"):
                self.explore(stage)
        finally:
            stage.environment.release()
            before.restore()
        return Counters()


class InterpretedStage:
    """A stage on which the interpreter runs single threads of a grid."""

    def __init__(
        self, code: Executable, routine: Routine, shape: LaunchShape, parameters: int, shared: int, stack: int
    ) -> None:
        self.code, self.routine, self.kernel, self.shape = code, routine, routine.function, shape
        self.parameters, self.shared = parameters, code.image.shared_size(self.kernel, shared)
        self.stack = stack
        self.memory = code.image.memory
        self.environment = Environment(self.memory, shared, self.shared, 0, code.image.shared.reserved)
        for segment in routine.segments:
            segment.live_out = -1  # every register stays live, for its value is read at the end

    def run(self, thread: int, script: Script, keep: Sequence[str] = ()) -> Mapping[str, int] | None:
        """Run one thread, in a CTA of its own."""
        cta, lane = divmod(thread, self.shape.threads)
        inputs = CohortInputs(
            self.shape, range(cta, cta + 1), self.memory, self.parameters, self.shared, self.stack, self.environment,
            ClusterQueue(self.shape),
        )  # fmt: skip
        cohort = ScriptedCohort(inputs, script)
        wanted = [register for register in self.kernel.registers if register.name in keep and register.count == 1]
        schedule = ScriptedSchedule(cohort, self.code, self.routine, lane, script)
        schedule.requested = [self.routine.slots.of(register) for register in wanted]
        try:
            while not schedule.run(MOST_STEPS):
                pass
        except StopThread:
            return None
        finally:
            cohort.release()
        file, here = schedule.file(self.routine, 0), np.array([lane])
        return {register.name: bits(at(file[self.routine.slots.of(register)], here)) for register in wanted}


class ScriptedSchedule(Schedule):
    """The schedule of a single lane."""

    requested: Sequence[int] = ()
    """The registers of the kernel that are asked for in the end."""

    def __init__(self, cohort: ScriptedCohort, code: Executable, kernel: Routine, lane: int, script: Script) -> None:
        super().__init__(cohort, code, kernel)
        self.script, self.here, self.scripted = script, (0, 0, -1), cohort
        self.calls = ScriptedCalls(self)
        self.ready = {(0, kernel.number, 0): [np.array([lane])]} if kernel.end else {}

    def step(self, key: Key, lanes: Lanes) -> None:
        """Report the segment that begins."""
        routine = self.code.routines[key[1]]
        segment = routine.segments[key[2]]
        self.here = key
        here = self.standpoint(key, first(lanes))
        self.script.enters(routine.function.instructions[segment.start : segment.end], -key[0], lambda: here)
        super().step(key, lanes)

    def standpoint(self, key: Key, lane: int) -> Hashable:
        """All state that decides how the lane goes on: its live registers, the frames below, its local memory."""
        routine, depth, cohort = self.code.routines[key[1]], -key[0], self.scripted
        live = routine.segments[key[2]].live_in
        file, slots = self.file(routine, depth), routine.slots
        mine = [slots.of(r) + n for r in routine.function.registers if live >> r.index & 1 for n in range(r.count)]
        kept = [self.file(self.kernel, 0)[slot] for slot in self.requested]
        files = [cohort.own, kept, *(each for (_, at_depth), each in sorted(self.files.items()) if at_depth < depth)]
        frames = [each[: depth + 1] for each in (cohort.frames, cohort.ends, self.calls.sites)] + files
        mine_only = np.array([lane])
        dtypes = tuple(tuple(bits(at(value, mine_only)) for value in frame) for frame in frames)
        return key, tuple(bits(at(file[slot], mine_only)) for slot in (0, *mine)), dtypes, cohort.stack_of(lane, depth)

    def push(self, key: Key, lanes: Lanes) -> None:
        """Report a jump back."""
        if (lanes is None or len(lanes)) and key[:2] == self.here[:2] and key[2] <= self.here[2]:
            self.script.jumps_back()
        super().push(key, lanes)

    # ── meeting others ──────────────────────────────────────────────────────────────────

    def arrive_cta(self, key: Key, lanes: Lanes, raws: PerLane) -> None:
        """Report the barrier, and go on at once: the model decides what opens it."""
        number, threads, votes = raws
        if np.max(number) >= 16:
            super().arrive_cta(key, lanes, raws)  # raises the fault
        count, size = None if threads is None else int(np.ravel(threads)[0]), self.scripted.size
        meeting = Rendezvous(self.last(key), Meeting.CTA, int(np.ravel(number)[0]), count, tuple(range(size)))
        if votes is None:
            self.script.synchronizes(meeting)
        else:
            self.vote(meeting, int(np.ravel(votes)[0]))
        self.resume_one(key, lanes)

    def vote(self, meeting: Rendezvous, own: int) -> None:
        """Count the votes of all threads of the CTA."""
        if meeting.threads is not None and meeting.threads < self.scripted.size:
            raise Unsupported(f"'{meeting.bound.i.mnemonic}' for some threads of a CTA, in a litmus kernel")
        others = self.script.exchanges(meeting, (own,))
        for other in meeting.members:
            self.script.learns(other)
        self.scripted.votes_for[...] = own + sum(vote for (vote,) in others.values())
        self.scripted.voters[...] = 1 + len(others)

    def arrive_warp(self, key: Key, lanes: Lanes, raws: PerLane, warps: int) -> None:
        """Exchange values with the lanes of the warp that the mask names and the launch has."""
        cohort, bound, mask = self.scripted, self.last(key), int(np.ravel(raws[0])[0])
        lane_here = first(lanes)
        base = int(cohort.layout.warp_start[lane_here])
        members = [lane for lane in members_of(mask) if base + lane < cohort.size]
        has_result = bool(bound.i.destinations())
        kind = Meeting.EXCHANGE if has_result else Meeting.WARP
        meeting = Rendezvous(bound, kind, mask, None, tuple(base + lane for lane in members))
        if has_result:
            dtypes = [value.dtype for value in raws[1:]]
            own = tuple(bits(np.ravel(value)[0]) for value in raws[1:])
            payloads = {**self.script.exchanges(meeting, own), lane_here: own}
            for lane, payload in payloads.items():
                cohort.receive(lane, list(zip(dtypes, payload, strict=True)))
            cohort.members = np.full(cohort.size, sum(1 << lane - base for lane in payloads), np.uint32)
        else:
            self.script.synchronizes(meeting)
        self.resume_one(key, lanes)


class ScriptedCalls(Calls):
    """The calls of a lane; passed values are reported to the script."""

    passed: list[Holder | None]
    destination = 0

    def enter(self, function: Function, action: Action, key: Key, lanes: Lanes, bound: Bound) -> None:
        """Enter a function; its arguments are reported."""
        self.passed, self.destination = [], 1 - key[0]
        super().enter(function, action, key, lanes, bound)

    def actual(
        self, node: Argument, bound: Bound, formal: Formal, depth: int, routine: Routine, file: RegisterFile, lanes: Lanes
    ) -> PerLane:
        """Record the holder of an argument."""
        self.passed.append(self.holder(node, depth, routine, lanes))
        return super().actual(node, bound, formal, depth, routine, file, lanes)

    def pass_on(
        self, value: PerLane, formal: Formal, routine: Routine, file: RegisterFile, frame: PerLane, lanes: Lanes
    ) -> None:
        """Report the holders of a passed value."""
        target = self.holder(formal, self.destination, routine, lanes)
        if target is not None:
            self.scripted_cohort.script.passes(self.passed.pop(0), target)
        super().pass_on(value, formal, routine, file, frame, lanes)

    def return_results(self, routine: Routine, caller: Routine, segment: int, depth: int, lanes: Lanes) -> None:
        """Record the holders of the results that the call uses."""
        wanted = caller.function.instructions[caller.segments[segment].end - 1].results()
        both = zip(routine.function.signature.results, wanted, strict=False)
        self.passed = [self.holder(formal, depth, routine, lanes) for formal, target in both if target is not None]
        self.destination = depth - 1
        super().return_results(routine, caller, segment, depth, lanes)

    def library(
        self, function: Function, arguments: list[Argument], results: list[Argument], key: Key, lanes: Lanes, bound: Bound
    ) -> None:
        """Refuse functions of the device: the script runs the thread many times."""
        raise Unsupported(f"a call of '{function.name}' in a litmus kernel")

    @property
    def scripted_cohort(self) -> ScriptedCohort:
        """The cohort of the calls."""
        assert isinstance(self.cohort, ScriptedCohort)  # noqa: S101 - for mypy; `ScriptedSchedule` has no other
        return self.cohort

    def holder(self, symbol: Argument, depth: int, routine: Routine, lanes: Lanes) -> Holder | None:
        """The register or the bytes that hold a value; None for a constant."""
        if isinstance(symbol, Register):
            return Holder(symbol, depth)
        if isinstance(symbol, Variable):
            home = int(self.cohort.mem.local.home[first(lanes)])
            frame = int(np.ravel(at(self.cohort.frames[depth], lanes))[0])
            return Holder(None, depth, home + frame + self.offset(symbol, routine), symbol.size or symbol.element_size)
        return None


__all__ = ["InterpretedStage", "SingleThreadEngine"]
