"""The scheduler of a cohort: divergence, reconvergence, waiting and the end of lanes.

Lanes at the same segment are a group.  The group that is deepest in calls, and least far in the code, runs first, so that
diverged lanes reconverge.  A group that goes round a spin loop runs after all that do not, and at intervals the group that
has waited longest runs: a lane that spins cannot starve the lane that it waits for (PTX 3.1, sm_70 and later).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TypeAlias

import numpy as np

from ptxvm.analysis.program import Bound
from ptxvm.diagnostics.errors import Fault, Place
from ptxvm.engine import faults
from ptxvm.engine.interp import arrays
from ptxvm.engine.interp.barriers import CtaBarriers, Key, Waiting, WarpWaits, release_whole
from ptxvm.engine.interp.calls import Calls
from ptxvm.engine.interp.cluster_barriers import ClusterBarriers
from ptxvm.engine.interp.cohort import Cohort
from ptxvm.engine.interp.column_waits import ColumnWaits
from ptxvm.engine.interp.executable import Executable
from ptxvm.engine.interp.lanes import first
from ptxvm.engine.interp.ports import Action, Wait
from ptxvm.engine.interp.routine import Routine
from ptxvm.engine.interp.segment import TracedSegment
from ptxvm.engine.limits import Limits
from ptxvm.isa.effects import Jump
from ptxvm.machine.faults import AccessFault, PlacedFault
from ptxvm.machine.per_lane import Guard, Lanes, PerLane, RegisterFile

FAIR = 61  # every so many steps, the group that has waited longest runs

Completion: TypeAlias = "Callable[[Schedule], None]"
"""Ends asynchronous work between two steps of a schedule: what the machine chooses between start and wait."""


def at_intervals(schedule: Schedule) -> None:
    """End all work at intervals: late, but without a thread that waits for it."""
    if schedule.steps % FAIR == 0:
        schedule.end_copies()


class Schedule:
    """The scheduler of a cohort."""

    def __init__(self, cohort: Cohort, code: Executable, kernel: Routine) -> None:
        self.cohort, self.code, self.kernel = cohort, code, kernel
        self.ready: dict[Key, list[Lanes]] = {(0, kernel.number, 0): [None]} if kernel.end else {}
        self.since: dict[Key, int] = {}
        self.spinning: set[Key] = set()  # groups that go round a spin loop once more
        self.files: dict[tuple[int, int], RegisterFile] = {}
        cohort.own = code.module.fresh_file()
        self.warps = WarpWaits(cohort)
        self.barriers = CtaBarriers(cohort)
        self.cluster_barriers = ClusterBarriers(cohort)
        self.columns = ColumnWaits(cohort)
        self.calls = Calls(self)
        self.limits: Limits | None = None
        self.completion: Completion = at_intervals
        self.steps = 0
        self.instructions = 0
        self.thread_instructions = 0

    # ── turns ───────────────────────────────────────────────────────────────────────────

    def run(self, steps: int) -> bool:
        """Run for so many steps; true when all lanes have ended."""
        last = self.steps + steps
        cohort = self.cohort
        while self.ready or self.release_stuck():
            if self.steps >= last or cohort.yields:
                cohort.yields = False
                return False
            self.steps += 1
            if cohort.copies.under_way:
                self.completion(self)
            key = self.choose()
            lanes = self.take(key)
            self.step(key, lanes)
            if self.limits is not None:
                self.hold_to_limits(self.limits, key, lanes)
        self.end_copies()
        if self.warps or self.barriers or self.cluster_barriers or self.columns:
            raise self.deadlock()
        if (leak := self.cohort.tensor.leaked()) is not None:
            said, bound, lane = leak
            raise self.refuse("tensor-memory", said, bound, np.array([lane]))
        return True

    def hold_to_limits(self, limits: Limits, key: Key, lanes: Lanes) -> None:
        """After a segment: raise the overrun, at the first instruction beyond the limit, or the timeout."""
        routine, count = self.code.routines[key[1]], self.cohort.size if lanes is None else len(lanes)
        segment = routine.segments[key[2]]
        if limits.counts:
            length = routine.lengths[key[2]]
            left = limits.spend(length * count)
            if left < 0:
                at = min(segment.start + (length * count + left) // count, segment.end - 1)
                raise limits.overrun(self.place(routine.function.instructions[at], first(lanes)))
        if limits.late:
            raise limits.timed_out(self.place(routine.function.instructions[segment.start], first(lanes)))

    def release_stuck(self) -> bool:
        """No group can run: release lanes with different masks, which PTX leaves open.  Is any group ready now?"""
        if self.warps:
            self.resume(self.warps.settle_stuck())
        return bool(self.ready)

    def all_wait(self, polling: PerLane) -> bool:
        """Do all live lanes wait at barriers and collectives, or poll an mbarrier in vain?"""
        waits = polling | ~self.cohort.alive
        pools = [*self.warps.pools.values(), *(each.waiting for each in self.barriers.barriers.values())]
        pools += [self.cluster_barriers.waiting, self.columns.waiting]
        for waiting in (each for pool in pools for each in pool):
            waits[waiting.lanes] = True
        return bool(waits.all())

    def end_copies(self, share: Guard = None, most: int | None = None) -> None:
        """End the work of the lanes for which a predicate holds (None: of all); `most` pieces of it, where that is given."""
        try:
            self.cohort.copies.complete(share, most)
        except PlacedFault as fault:
            raise self.fault(fault) from None

    def choose(self) -> Key:
        """The group that runs next."""
        if len(self.ready) == 1:
            return next(iter(self.ready))
        others = [key for key in self.ready if key not in self.spinning] if self.spinning else self.ready
        if not others or self.steps % FAIR == 0:
            return min(self.ready, key=lambda k: self.since.get(k, 0))
        return min(others)

    @cached_property
    def spin_branches(self) -> frozenset[tuple[int, int]]:
        """The segments, as routine and number, that end with the branch of a spin loop."""
        return self.code.spin_branches(self.kernel.function)

    def take(self, key: Key) -> Lanes:
        """The lanes of a group, in order; None for all lanes of the cohort."""
        self.since[key] = self.steps
        self.spinning.discard(key)
        parts = self.ready.pop(key)
        if len(parts) == 1:
            return parts[0]
        lanes = np.concatenate([part for part in parts if part is not None])  # all lanes stand alone
        if len(lanes) == self.cohort.size:
            return None
        lanes.sort()
        return lanes

    def push(self, key: Key, lanes: Lanes) -> None:
        """Lanes continue at a segment; past the last one they return, and so may their callers."""
        work = [(key, lanes)]
        while work:
            key, lanes = work.pop()
            if lanes is not None and not len(lanes):
                continue
            if key[2] >= self.code.routines[key[1]].end:
                work += reversed(self.returned(key, lanes))
            elif key in self.ready:
                self.ready[key].append(lanes)
            else:
                self.ready[key] = [lanes]

    def step(self, key: Key, lanes: Lanes) -> None:
        """Run one segment for a group."""
        depth, routine = -key[0], self.code.routines[key[1]]
        compiled = routine.compiled(key[2], whole=lanes is None)
        cohort = self.cohort
        cohort.depth = depth
        length = routine.lengths[key[2]]
        self.instructions += length
        self.thread_instructions += length * (cohort.size if lanes is None else len(lanes))
        file = self.file(routine, depth)
        try:
            if cohort.copies.unwaited or cohort.follows_registers:
                segment = routine.segments[key[2]]
                cohort.stepping(routine.function.instructions[segment.start : segment.end], routine.slots, lanes, file)
            if compiled.arrive is not None:
                self.arrive(key, lanes, compiled, file)
                return
            guard, raws = compiled.run(file, lanes, cohort)
        except PlacedFault as fault:
            raise self.fault(fault) from None
        if cohort.arrivals or cohort.cluster_arrivals:
            self.count_arrivals()
        self.follow(compiled.action, key, lanes, guard, raws)

    def file(self, routine: Routine, depth: int) -> list[PerLane]:
        """The registers of a routine at a depth of calls."""
        found = self.files.get((routine.number, depth))
        if found is None:
            found = self.files[routine.number, depth] = routine.fresh_file()
        return found

    # ── where lanes go ──────────────────────────────────────────────────────────────────

    def follow(self, action: Action | None, key: Key, lanes: Lanes, guard: Guard, raws: PerLane) -> None:
        """Send the lanes to the segments that the action names."""
        onward = (key[0], key[1], key[2] + 1)
        if action is None or action.jump in (Jump.BREAKPOINT, Jump.EVENT):
            self.push(onward, lanes)
            return
        going, staying = self.split(lanes, guard)
        if staying is not None or going is not lanes:
            self.push(onward, staying)
        if going is not None and not len(going):
            return
        chosen = going if guard is not None and going is not lanes else None
        match action.jump:
            case Jump.GOTO:
                self.go(key, (key[0], key[1], self.code.routines[key[1]].segment_at(action.symbol.index)), going)
            case Jump.SWITCH:
                self.switch(action, key, going, self.pick(raws[0], lanes, chosen))
            case Jump.CALL:
                address = self.pick(raws[0], lanes, chosen) if raws else None
                self.calls.call(action, key, going, address, self.last(key))
            case Jump.LEAVE:
                self.leave(key, going)
            case Jump.EXIT:
                self.exit(going)
            case Jump.TRAP:
                raise self.refuse("trap", "the kernel executed trap", self.last(key), going)

    def go(self, key: Key, target: Key, lanes: Lanes) -> None:
        """Send lanes to the target of the branch at the end of a segment, which may be the one of a spin loop."""
        self.push(target, lanes)
        if key[1:] in self.spin_branches:
            self.spinning.add(target)

    def split(self, lanes: Lanes, guard: Guard) -> tuple[PerLane, PerLane]:
        """The lanes whose guard holds, and the others (None: there are no others)."""
        if guard is None:
            return lanes, None
        none = np.empty(0, np.int64)
        if not np.ndim(guard):
            return (lanes, None) if guard else (none, lanes if lanes is not None else self.cohort.layout.numbers)
        count = int(np.count_nonzero(guard))
        if count == len(guard):
            return lanes, None
        every = self.cohort.layout.numbers if lanes is None else lanes
        return (every[guard], every[~guard]) if count else (none, every)

    def pick(self, raw: PerLane, lanes: Lanes, chosen: PerLane) -> PerLane:
        """The elements of a per-lane value for the chosen lanes."""
        if not np.ndim(raw) or chosen is None:
            return raw
        return raw[np.searchsorted(lanes, chosen)] if lanes is not None else raw[chosen]

    def switch(self, action: Action, key: Key, lanes: Lanes, index: PerLane) -> None:
        """`brx.idx`: send each lane to its label."""
        routine, targets = self.code.routines[key[1]], action.symbol.targets
        for n in np.unique(index):
            some = self.where(lanes, index, n)
            if n >= len(targets):
                said = f"the index {n} is outside the list '{action.symbol.name}' of {len(targets)} targets"
                self.abandon("invalid-branch", said, self.last(key), some)
                continue
            self.push((key[0], key[1], routine.segment_at(targets[int(n)].index)), some)

    def where(self, lanes: Lanes, values: PerLane, value: PerLane) -> PerLane:
        """The lanes for which `values` equals a value."""
        if not np.ndim(values):
            return lanes
        return (self.cohort.layout.numbers if lanes is None else lanes)[values == value]

    def leave(self, key: Key, lanes: Lanes) -> None:
        """Return from a function; from the kernel, end the lanes."""
        for caller, some in self.returned(key, lanes):
            self.push(caller, some)

    def returned(self, key: Key, lanes: Lanes) -> list[tuple[Key, Lanes]]:
        """The segments at which returning lanes continue; lanes that return from the kernel end."""
        if key[0] != 0:
            return self.calls.leave(key, lanes)
        self.exit(lanes)
        return []

    def exit(self, lanes: Lanes) -> None:
        """End lanes, and release lanes that waited for them."""
        self.cohort.alive[slice(None) if lanes is None else lanes] = False
        if lanes is None:
            return
        for mnemonic in list(self.warps.pools):
            self.resume(self.warps.settle(mnemonic))
        if self.barriers.barriers:
            self.resume(self.barriers.settle_all())
        self.resume(self.cluster_barriers.settle())

    # ── waiting ─────────────────────────────────────────────────────────────────────────

    def arrive(self, key: Key, lanes: Lanes, compiled: TracedSegment, file: RegisterFile) -> None:
        """Lanes reach an instruction at which they may wait."""
        guard, raws = compiled.arrive(file, lanes, self.cohort)  # type: ignore[misc]
        going, staying = self.split(lanes, guard)
        if going is not lanes:
            self.pass_by(key, staying, going)
            if not len(going):
                return
            raws = [None if r is None else self.pick(r, lanes, going) for r in raws]
        request = compiled.request
        if request is not None and request.wait in (Wait.WARP, Wait.COLUMNS):
            self.arrive_warp(key, going, raws, request.warps)
        elif request is not None and request.wait is Wait.CLUSTER:
            waiting = Waiting(key, self.cohort.layout.every(going))
            self.resume(self.cluster_barriers.wait(waiting))
        else:
            self.arrive_cta(key, going, raws)

    def pass_by(self, key: Key, staying: Lanes, going: Lanes) -> None:
        """Lanes whose guard is false go on, while others of their group arrive."""
        self.push((key[0], key[1], key[2] + 1), staying)

    def arrive_warp(self, key: Key, lanes: Lanes, raws: PerLane, warps: int) -> None:
        """Lanes arrive at a collective of a warp, or of so many."""
        cohort = self.cohort
        cohort.collective(self.last(key), lanes, raws[0])
        for n, value in enumerate(raws[1:]):
            cohort.keep_payload(n, value.dtype, lanes, value)
        if lanes is None and not np.all(self.warps.agree(cohort.layout.numbers, raws[0])):
            lanes = cohort.layout.numbers
        if lanes is None:
            cohort.members = raws[0] & cohort.layout.warp_bits(cohort.alive, None)
            cohort.warps_synchronized(self.last(key).i.mnemonic, None)
            self.resume_one(key, None)
            return
        if not cohort.members.ndim:
            cohort.members = np.full(cohort.size, cohort.members)
        cohort.members[lanes] = raws[0]
        mnemonic = self.last(key).i.mnemonic
        self.resume(self.warps.arrive(mnemonic, Waiting(key, lanes), warps))

    def arrive_cta(self, key: Key, lanes: Lanes, raws: PerLane) -> None:
        """Lanes arrive at a barrier of a CTA."""
        number, threads, votes = raws
        if not np.size(number):
            return
        if np.max(number) >= 16:  # PTX 9.7.13.1
            wrong = self.where(lanes, np.asarray(number) >= 16, True)  # noqa: FBT003 - a value to look for
            said = f"there is no barrier {np.ravel(number)[np.ravel(number) >= 16][0]}: they are 0 to 15"
            self.abandon("invalid-barrier", said, self.last(key), wrong)
            if np.ndim(number):
                good = np.flatnonzero(number < 16)
                every = self.cohort.layout.numbers if lanes is None else lanes
                self.arrive_cta(key, every[good], [r[good] if np.ndim(r) else r for r in raws])
            return
        cohort = self.cohort
        enough = threads is None or (not np.ndim(threads) and -(-cohort.layout.threads // 32) * 32 == int(threads))
        if lanes is None and not np.ndim(number) and enough and not self.barriers.barriers:
            release_whole(cohort, votes)
            self.resume_one(key, None)
            return
        every = cohort.layout.numbers if lanes is None else lanes
        like = np.zeros(len(every), np.int64)
        numbers, counts, ayes = (None if r is None else like + r for r in (number, threads, votes))
        self.resume(self.barriers.arrive(every, numbers, counts, ayes, key, self.last(key)))

    def count_arrivals(self) -> None:
        """Count the arrivals at barriers of the CTA and of the cluster in the segment that just ran."""
        for lanes in self.cohort.cluster_arrivals:
            self.resume(self.cluster_barriers.arrive(lanes))
        self.cohort.cluster_arrivals.clear()
        arrivals, self.cohort.arrivals = self.cohort.arrivals, []
        for bound, lanes, numbers, threads in arrivals:
            self.resume(self.barriers.arrive(lanes, numbers.astype(np.int64), threads, None, None, bound))

    def resume(self, released: Iterable[Waiting]) -> None:
        """Finish the instruction at which lanes have waited, for each group of them, before any other group runs."""
        for waiting in list(released):
            self.resume_one(waiting.key, waiting.lanes)

    def resume_one(self, key: Key, lanes: Lanes) -> None:
        """Finish the instruction for one group; warps for which there are too few columns of tensor memory stay."""
        request = self.code.routines[key[1]].compiled(key[2], whole=lanes is None).request
        if request is None or request.wait is not Wait.COLUMNS:
            self.finish(key, lanes)
            return
        every, columns = self.cohort.layout.every(lanes), self.cohort.payload[0, arrays.dtype(request.types[0])]
        try:
            going = self.columns.arrive(key, every, columns)
        except AccessFault as fault:
            raise self.refuse(fault.kind, str(fault), self.last(key), np.array([fault.lane_index])) from None
        for waiting in going:
            self.finish(waiting.key, waiting.lanes)

    def finish(self, key: Key, lanes: Lanes) -> None:
        """Finish an instruction for one group, and that of warps for which it frees columns of tensor memory."""
        depth, routine = -key[0], self.code.routines[key[1]]
        before, self.cohort.depth = self.cohort.depth, depth
        try:
            routine.compiled(key[2], whole=lanes is None).run(self.file(routine, depth), lanes, self.cohort)
        except PlacedFault as fault:
            raise self.fault(fault) from None
        self.cohort.depth = before
        self.push((key[0], key[1], key[2] + 1), lanes)
        for waiting in self.columns.settle() if self.columns else ():
            self.finish(waiting.key, waiting.lanes)

    # ── faults ──────────────────────────────────────────────────────────────────────────

    def last(self, key: Key) -> Bound:
        """The last instruction of a segment."""
        routine = self.code.routines[key[1]]
        return routine.function.instructions[routine.segments[key[2]].end - 1]

    def fault(self, fault: PlacedFault) -> Fault:
        """The fault of a refused access, with its place."""
        place = self.place(fault.bound, fault.lane)
        return Fault(fault.kind, str(fault), address=fault.address, size=fault.size, place=place)

    def refuse(self, kind: str, message: str, bound: Bound, lanes: Lanes) -> Fault:
        """A fault of the first of some lanes."""
        return Fault(kind, message, place=self.place(bound, first(lanes)))

    def abandon(self, kind: str, message: str, bound: Bound, lanes: Lanes) -> None:
        """Lanes cannot go on: raise a fault or, in a watched launch, end these lanes only."""
        fault = self.refuse(kind, message, bound, lanes)
        if not self.cohort.abandoned(fault, bound, lanes):
            raise fault
        self.exit(lanes)

    def place(self, bound: Bound, lane: int) -> Place:
        """The place of an instruction, and the thread that ran it."""
        return faults.place(self.kernel.function.name, bound, *self.cohort.layout.coordinates(lane))

    def deadlock(self) -> Fault:
        """The fault when no group can run and some lanes have not ended."""
        pools = [w for pool in self.warps.pools.values() for w in pool]
        found = [*self.standing(pools, masks=True)]
        for (_, number), barrier in self.barriers.barriers.items():
            found += self.standing(barrier.waiting, masks=False, counts=self.barriers.count(number, barrier))
        found += self.standing(self.cluster_barriers.waiting + self.columns.waiting, masks=False)
        said, example = faults.deadlock(found)
        return self.refuse(
            "deadlock", said, example.bound, np.array([example.cta * self.cohort.layout.threads + min(example.threads)])
        )

    def standing(
        self, waits: list[Waiting], *, masks: bool, counts: dict[int, faults.Count] | None = None
    ) -> Iterator[faults.Waiting]:
        """The waiting threads of each CTA, their instruction, their masks, and the count of their barrier."""
        layout, members = self.cohort.layout, self.cohort.members
        for waiting in waits:
            bound = self.last(waiting.key)
            for cta in np.unique(layout.cta[waiting.lanes]):
                lanes = waiting.lanes[layout.cta[waiting.lanes] == cta]
                masks_of = members[lanes].tolist() if masks else []
                yield faults.Waiting(int(cta), bound, layout.thread[lanes].tolist(), masks_of, counts or {})
