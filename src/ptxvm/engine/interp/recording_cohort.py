"""A cohort that records: it tells a trace what the chosen lanes do, with the values that they read and wrote."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, b8
from ptxvm.engine.interp.accesses import Access, CopyInstruction
from ptxvm.engine.interp.cohort import Cohort
from ptxvm.engine.interp.lane_memory import CohortInputs
from ptxvm.engine.interp.observed_memory import ObservedMemory, Values
from ptxvm.engine.interp.recording_tracer import Recorded
from ptxvm.isa.effects import Verb
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.per_lane import Guard, LaneNumbers, Lanes, PerLane
from ptxvm.profile.trace import Datum, Located, Step, Touched, Trace, WarpName

NOTHING = -1


class RecordingMemory(ObservedMemory):
    """Memory whose accesses are recorded with the instruction that waits for them."""

    cohort: RecordingCohort

    def observe(self, access: Access, verb: Verb, lanes: Lanes, address: PerLane, values: Values) -> None:
        """Record an access; those of asynchronous work come when no instruction waits for them."""
        if not access.attributes.get("asynchronous"):
            self.cohort.touched(access, verb, lanes, address, values)

    def place(self, address: int, lane: int) -> str:
        """NAME+OFFSET of a generic address; empty where there is no memory."""
        allocation = self.machine.table.find(address)
        if allocation is None:
            return ""
        return f"{name_of(allocation)}+{address - begin(allocation, allocation.start, lane)}"

    def located(self, space: Space, address: int, lane: int) -> Located:
        """The object at an address in a state space, and the offset there."""
        window = self.window(space)
        if window is not None:
            offset = int(window.offsets(np.uint64(address), np.array([lane])).ravel()[0])
            return Located(space.window, str(space.window), offset, offset)
        allocation = self.machine.table.find(address)
        if allocation is None:
            return Located(space, "", address, address)
        offset, distance = (address - begin(allocation, start, lane) for start in (allocation.start, allocation.origin))
        return Located(allocation.space, name_of(allocation), offset, distance)


def begin(allocation: Allocation, start: int, lane: int) -> int:
    """The address where what a lane has of an allocation begins, which itself begins at `start`."""
    return start if allocation.home is None else allocation.start + int(allocation.home[lane])


def name_of(allocation: Allocation) -> str:
    """The name of an allocation; that of its state space where each CTA or thread has one."""
    plain = allocation.home is not None or allocation.space is Space.PARAM
    return str(allocation.space) if plain else allocation.name.replace("`", "")


class RecordingCohort(Cohort):
    """A cohort whose instructions are recorded; only that of the launched grid `follows` lanes."""

    mem: RecordingMemory

    def __init__(self, inputs: CohortInputs, trace: Trace, *, follows: bool) -> None:
        super().__init__(inputs, RecordingMemory)
        self.trace, self.mem.cohort = trace, self
        layout = self.layout
        ctas = [inputs.shape.ctaid(int(cta)) for cta in layout.ctas]
        wanted = [np.isin(np.arange(layout.threads), trace.follows(cta) if follows else range(0)) for cta in ctas]
        self.followed = np.concatenate(wanted)
        self.follows = bool(self.followed.any())
        self.steps: list[Step] = []
        self.step_of = np.full(self.size, NOTHING)  # the step of each lane that is under way
        self.names = [WarpName(ctas[n // layout.warps_of_cta], n % layout.warps_of_cta) for n in range(layout.warps)]

    # ── what the code tells ─────────────────────────────────────────────────────────────

    def issued(self, recorded: Recorded, lanes: Lanes, guard: Guard, raws: Sequence[PerLane]) -> None:
        """Lanes begin an instruction, with the values that it reads."""
        self.trace.clock += 1
        if not self.follows:
            return
        every = self.layout.every(lanes)
        positions = np.flatnonzero(self.followed[every])
        warps = self.layout.warp[every[positions]]
        for warp in np.unique(warps).tolist():
            some = positions[warps == warp]
            step = self.begun(recorded, self.names[warp], every[some])
            if step is not None:
                held = np.broadcast_to(True if guard is None else guard, len(every))[some]
                step.off = frozenset(self.layout.lane[every[some[~held]]].tolist())
                step.reads = self.data(recorded, every[some[held]], some[held], raws)

    def begun(self, recorded: Recorded, warp: WarpName, lanes: LaneNumbers) -> Step | None:
        """A new step of lanes of a warp; None beyond the limit of the trace."""
        step = self.trace.issued(warp, recorded.bound, tuple(self.layout.lane[lanes].tolist()))
        self.step_of[lanes] = NOTHING if step is None else len(self.steps)
        if step is not None:
            self.steps.append(step)
        return step

    def retired(self, recorded: Recorded, lanes: Lanes, guard: Guard, raws: Sequence[PerLane]) -> None:
        """Lanes have executed an instruction, with the values that it wrote."""
        if not self.follows:
            return
        for step, those, positions in self.under_way(lanes, None):
            step.end = max(self.trace.clock, step.time + 1)
            held = np.isin(self.layout.lane[those], list(step.off), invert=True)
            for datum in self.data(recorded, those[held], positions[held], raws):
                merge(step.writes, datum)

    def touched(self, access: Access, verb: Verb, lanes: Lanes, address: PerLane, values: Values) -> None:
        """Lanes have accessed memory."""
        if not self.follows:
            return
        for step, those, positions in self.under_way(lanes, access):
            step.accesses.append(self.access(access, verb, those, at_positions(address, positions), positions, values()))

    def went(self, lanes: Lanes, lines: PerLane) -> None:
        """Lanes go on at lines after a branch."""
        if not self.follows:
            return
        for step, those, positions in self.under_way(lanes, None):
            step.targets = dict(zip(self.layout.lane[those].tolist(), lines[positions].tolist(), strict=True))

    def copy_started(
        self, copying: CopyInstruction, lanes: LaneNumbers, target: PerLane, source: PerLane, source_size: PerLane
    ) -> None:
        """Record what a copy will read and write."""
        for step, those, positions in self.under_way(lanes, None) if self.follows else ():
            for size in np.unique(source_size[positions]).tolist():
                some = source_size[positions] == size
                if size:
                    read = Access(copying.bound, copying.origin, b8, size)
                    step.accesses.append(self.access(read, Verb.READ, those[some], source[positions[some]], positions, []))
            step.accesses.append(self.access(copying.target, Verb.WRITE, those, target[positions], positions, []))

    # ── steps and values ────────────────────────────────────────────────────────────────

    def under_way(self, lanes: Lanes, access: Access | None) -> list[tuple[Step, LaneNumbers, LaneNumbers]]:
        """The steps of some lanes that are under way, with their lanes and the positions of these."""
        every = self.layout.every(lanes)
        numbers = self.step_of[every]
        found = []
        for number in np.unique(numbers[numbers != NOTHING]).tolist():
            step, positions = self.steps[number], np.flatnonzero(numbers == number)
            if access is None or step.bound is access.bound:
                found.append((step, every[positions], positions))
        return found

    def data(
        self, recorded: Recorded, lanes: LaneNumbers, positions: LaneNumbers, raws: Sequence[PerLane]
    ) -> list[Datum]:  # fmt: skip
        """The values of lanes at positions of arrays; none where there are no lanes."""
        if not len(lanes):
            return []
        return [
            self.datum(text, type, lanes, at_positions(raw, positions))
            for text, type, raw in zip(recorded.texts, recorded.types, raws, strict=True)
        ]

    def datum(self, text: str, type: Type, lanes: LaneNumbers, values: PerLane) -> Datum:
        """The value of each lane, and the places of addresses."""
        numbers = self.layout.lane[lanes].tolist()
        bits = dict(zip(numbers, bits_of(values, type), strict=True))
        address = type.bits == self.mem.machine.address_bits and not type.is_float and not type.is_packed
        named = zip(numbers, lanes.tolist(), strict=True) if address else ()
        places = {lane: place for lane, number in named if (place := self.mem.place(bits[lane], number))}
        return Datum(text, type, bits, places)

    def access(
        self, access: Access, verb: Verb, lanes: LaneNumbers, addresses: PerLane, positions: LaneNumbers,
        values: Sequence[PerLane],
    ) -> Touched:  # fmt: skip
        """An access of lanes, with the values at their positions."""
        numbers = self.layout.lane[lanes].tolist()
        found = {
            number: self.mem.located(access.space, address, lane)
            for number, address, lane in zip(numbers, addresses.tolist(), lanes.tolist(), strict=True)
        }
        columns = zip(*(bits_of(at_positions(value, positions), access.type) for value in values), strict=True)
        elements = dict(zip(numbers, columns, strict=len(values) > 0))  # of a copy, no values are known yet
        return Touched(verb, access.space, access.type, access.count, found, elements)


def merge(data: list[Datum], datum: Datum) -> None:
    """Add a value of some lanes to those of other lanes of the same instruction."""
    for known in data:
        if known.text == datum.text:
            known.bits.update(datum.bits)
            known.places.update(datum.places)
            return
    data.append(datum)


def at_positions(value: PerLane, positions: LaneNumbers) -> PerLane:
    """The elements of a per-lane value at some positions, as an array."""
    return value[positions] if np.ndim(value) else np.full(len(positions), value)


def bits_of(values: PerLane, type: Type) -> list[int]:
    """The bits of values of a type."""
    held, mask = np.ascontiguousarray(values), (1 << type.bits) - 1
    size, data = held.dtype.itemsize, held.tobytes()
    return [int.from_bytes(data[at : at + size], "little") & mask for at in range(0, len(data), size)]


__all__ = ["RecordingCohort"]
