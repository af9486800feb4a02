"""The observer of a checked launch: passes events to the checks, and collects their findings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.asynchronous import AsyncKind
from ptxvm.algebra.memory_order import FenceKind, GridStep, Order, Scope
from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Bound
from ptxvm.analysis.unset import use
from ptxvm.checkers.aliased_races import AliasedRaces
from ptxvm.checkers.allow_comments import allowed_at
from ptxvm.checkers.barrier_misuse import BarrierCounts, absent, described, diverged, misnamed, needs_whole_warps, whole
from ptxvm.checkers.byte_lists import listed
from ptxvm.checkers.cta_ends import CtaEnd
from ptxvm.checkers.grid_waits import GridWaits
from ptxvm.checkers.initialised import InitialisedBytes
from ptxvm.checkers.initialised_cells import InitialisedCells
from ptxvm.checkers.launches import ByteAccesses, Footprint, LaunchRace, compare_with_others
from ptxvm.checkers.leaks import Leaks
from ptxvm.checkers.mbarrier_misuse import Mbarriers
from ptxvm.checkers.missed_phases import MissedPhase
from ptxvm.checkers.race import RaceDetector
from ptxvm.checkers.race_findings import both, column, launch_race, missed_phase, missing_fence, of_two, span, tensor_race
from ptxvm.checkers.race_pair import Cause, Race
from ptxvm.checkers.race_remedies import end_of, remedy
from ptxvm.checkers.strength import Site
from ptxvm.checkers.tensor_order import TensorRace
from ptxvm.diagnostics import Span
from ptxvm.diagnostics.errors import Fault
from ptxvm.isa.effects import Verb
from ptxvm.isa.special_registers import RESERVED_SHARED, RESERVED_SHARED_BYTES, WARP
from ptxvm.machine.aliases import MAPPED
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.events import (
    ENDED_BEFORE,
    UNDEFINED_LANE,
    UNORDERED_INVALIDATION,
    Access,
    BarrierKey,
    Bits,
    ClusterStep,
    Finding,
    Masks,
    Offsets,
    Origin,
    Party,
    Scene,
    Scenes,
    StoredValues,
    Threads,
    Words,
)
from ptxvm.machine.faults import plural
from ptxvm.machine.streams import StreamLaunch
from ptxvm.machine.tensor_blocks import CellBlock
from ptxvm.machine.window import stride

CHECKS = ("memory", "init", "sync", "race")
MILD = "mild"  # marks the pairs of instructions of which a race is reported that is a warning
NO_STAMPS = np.zeros(0, np.int64)
MOST_LINES = 4  # that a message lists
WRONG = dict.fromkeys(Cause, "are not ordered") | {
    Cause.INCOHERENT: "do not go through one coherent cache",
    Cause.EXECUTED: "are not ordered: the collective of the warp between them orders no memory operations",
}


class Checker:
    """Observes the runs of a launch, for some of `CHECKS`."""

    def __init__(
        self,
        checks: Collection[str],
        stream_launch: StreamLaunch | None = None,
        allowed: Collection[str] = (),
    ) -> None:
        """`stream_launch` is this launch among those that may run beside it, `allowed` the codes to suppress."""
        self.checks, self.allowed = frozenset(checks), frozenset(allowed)
        self.stream_launch = stream_launch
        self._footprint: Footprint | None = None
        self.findings: list[Finding] = []
        self._fresh: set[Allocation] = set()
        self._seen: set[tuple[object, ...]] = set()
        self._mild: dict[tuple[object, ...], Finding] = {}  # races that are warnings, by instructions and state space
        self._first: dict[object, Finding] = {}  # the finding of each cause of uninitialised reads
        self._race: RaceDetector | None = None
        self._init: InitialisedBytes | None = None
        self._cells: InitialisedCells | None = None
        self._unwritten: dict[Bound, tuple[str, Party]] = {}  # loads of what nothing has written: what is said of the first
        self._mbarriers: Mbarriers | None = None

    # ── what is observed ────────────────────────────────────────────────────────────────

    @property
    def follows_registers(self) -> bool:
        """The check `init` follows registers."""
        return "init" in self.checks

    @property
    def follows_values(self) -> bool:
        """The check `race` follows values: it distinguishes races of writes that store the same value."""
        return "race" in self.checks

    @property
    def follows_variables(self) -> bool:
        """The check `memory` follows the bounds of variables."""
        return "memory" in self.checks

    def unset(self, bound: Bound, threads: Threads, register: str, missing: Sequence[int], origin: Origin | None) -> None:
        """Threads observe a register, or another value, that is undefined."""
        thread = int(threads[0])
        subject = "a value" if not register else f"register {register}" if register[0] != "'" else f"the argument {register}"
        said = f"reading {subject}, " + undefined(register, missing, origin)
        parties: tuple[Party, ...] = (Party(Verb.READ, self.scenes.place(bound, thread), where=subject),)
        source = origin.bound if origin is not None else None
        if origin is not None and source is not None and source is not bound:
            parties = Party("skipped write" if origin.register else Verb.READ, self.scenes.place(source, thread)), *parties
            if not origin.register and source in self._unwritten:
                loaded, party = self._unwritten[source]
                said, parties = f"{loaded}: {said}", (party, *parties[1:])
        finding = Finding(
            "uninitialised-read", said, parties, missing=writes_of(origin), span=span(bound),
            related=span(source) if source is not None and len(parties) > 1 else Span(0, 0), column=column(bound),
        )  # fmt: skip
        self._join(cause_of(origin) or bound, finding, [bound] if source is None else [bound, source])

    def missing(self, allocation: Allocation, offsets: Offsets, size: int) -> Bits | None:
        """The bytes without a value."""
        return self._init.missing(allocation, offsets, size) if self._init is not None else None

    def lost(self, allocation: Allocation, offsets: Offsets, missing: Bits) -> None:
        """Some bytes receive a value, others lose theirs."""
        if self._init is not None:
            self._init.lost(allocation, offsets, missing)

    def handed_on(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets, missing: Bits) -> None:
        """Remember the first load of an instruction that has handed on what nothing has written."""
        if access.bound not in self._unwritten:
            lane = int(np.argmax(missing.any(0)))
            thread, offset = int(threads[lane]), int(offsets[lane])
            if not self._is_reserved(access.bound, thread, allocation, offset):
                which = np.flatnonzero(missing[:, lane]).tolist()
                self._unwritten[access.bound] = self._unwritten_bytes(access, thread, allocation, offset, which)

    def parameters_passed(self, source: Allocation, target: Allocation) -> None:
        """A grid takes its parameters from a buffer that its parent has filled."""
        if self._init is not None:
            self._init.parameters_passed(source, target)

    def launched(self, fresh: Collection[Allocation]) -> None:
        """The launch begins; `fresh` is memory without a value."""
        self._fresh = set(fresh)

    def begin(self, scene: Scene, schedule: int, seed: int | None) -> None:
        """A run of the grid begins."""
        self.scenes, self._running = Scenes(scene), [scene]
        self.schedule, self.seed = schedule, seed
        if "race" in self.checks:
            missed = self._missed if "sync" in self.checks else None
            detector = AliasedRaces if MAPPED.aliases else RaceDetector
            self._race = detector(scene, self._raced, self._tensor_raced, self._outlived, missed)
            if self.stream_launch is not None and self.stream_launch.followed and self._footprint is None:
                self._footprint = Footprint(self.stream_launch, self.scenes, report=self._freed_in_use, raced=self._clashed)
            if self._footprint is not None:
                self._race.communication.launches = self._footprint.follow(self._race.clocks)
                self._footprint.launch.footprint = self._footprint  # now that others may ask it
            if self._footprint is not None and self._footprint.launch.begins_after != self._footprint.launch.before:
                self._footprint.waits = GridWaits(self._race.clocks)
        if self._footprint is not None:
            self._footprint.scenes = self.scenes  # the scenes of the last run; all runs number grids alike
        if "init" in self.checks:
            self._init = InitialisedBytes(self._fresh, self._uninitialised)
            self._cells = InitialisedCells(self._uninitialised_cells)
        self._leaks = Leaks()
        if "sync" in self.checks:
            self._mbarriers = Mbarriers(self._misused)
            self._counts = BarrierCounts()

    def _stamps(self, threads: Threads) -> npt.NDArray[np.int64]:
        """The clocks of threads before an access: what it releases does not follow it."""
        return NO_STAMPS if self._race is None or self._footprint is None else self._race.clocks.now[threads]

    def read(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets) -> None:
        """Threads have read."""
        if self._mbarriers is not None:
            self._mbarriers.read(access, threads, allocation, offsets)
        if self._init is not None:
            self._init.read(access, threads, allocation, offsets)
        stamps = self._stamps(threads)
        if self._race is not None:
            self._race.read(access, threads, allocation, offsets)
        if self._footprint is not None:
            self._footprint.note(access, threads, allocation, offsets, Verb.READ, stamps)

    def wrote(
        self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets, left: StoredValues | None = None
    ) -> None:
        """Threads have written."""
        if self._mbarriers is not None:
            self._mbarriers.wrote(access, threads, allocation, offsets)
        if self._init is not None:
            self._init.wrote(access, allocation, offsets)
        stamps = self._stamps(threads)
        if self._race is not None:
            self._race.wrote(access, threads, allocation, offsets, left)
        if self._footprint is not None:
            self._footprint.note(access, threads, allocation, offsets, Verb.WRITE, stamps)

    def updated(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets) -> None:
        """Threads have read and written in one step."""
        if self._mbarriers is not None:
            self._mbarriers.updated(access, threads, allocation, offsets)
        if self._init is not None:
            self._init.read(access, threads, allocation, offsets)
            self._init.wrote(access, allocation, offsets)
        stamps = self._stamps(threads)
        if self._race is not None:
            self._race.updated(access, threads, allocation, offsets)
        if self._footprint is not None:
            self._footprint.note(access, threads, allocation, offsets, Verb.UPDATE, stamps)

    def signalled(
        self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets, words: tuple[Words, Words]
    ) -> None:
        """Threads have updated mbarriers."""
        if self._mbarriers is not None:
            self._mbarriers.signalled(access, threads, allocation, offsets, words)
        if self._init is not None:
            self._init.read(access, threads, allocation, offsets)
        if self._race is not None:
            self._race.signalled(access, threads, allocation, offsets, words)

    def phase_over(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets) -> None:
        """Threads have found a phase of an mbarrier over."""
        if self._mbarriers is not None:
            self._mbarriers.phase_over(allocation, offsets)
        if self._race is not None:
            self._race.phase_over(access, threads, allocation, offsets)

    def asked(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets, states: Words) -> None:
        """Threads test a phase of an mbarrier with the state that an arrival returned."""
        if self._mbarriers is not None:
            self._mbarriers.asked(access, threads, allocation, offsets, states)

    def copying(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets, verb: Verb) -> None:
        """Threads have started an asynchronous copy."""
        if self._mbarriers is not None:
            self._mbarriers.copying(access, threads, allocation, offsets, verb)
        if self._race is not None:
            self._race.copying(access, threads, allocation, offsets, verb)

    def mapped(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets) -> None:
        """Threads have started a copy by a tensor map that lies there."""
        if self._init is not None:
            self._init.read(access, threads, allocation, offsets)
        if self._race is not None:
            self._race.mapped(access, threads, allocation, offsets)

    def tensormap_fenced(self, threads: Threads, order: Order, addresses: Words | None) -> None:
        """Threads have executed a fence of the tensormap proxy."""
        if self._race is not None:
            self._race.tensormap_fenced(threads, order, addresses)

    def tensor_started(
        self, bound: Bound, kind: AsyncKind | None, cta: int, threads: Threads, blocks: Sequence[CellBlock]
    ) -> None:
        """A warp, or one thread, starts work on tensor memory."""
        if self._cells is not None:
            self._cells.started(bound, kind, cta, threads, blocks)
        if self._race is not None:
            self._race.tensor_order.started(bound, kind, cta, threads, blocks)

    def grouped(self, threads: Threads, kind: AsyncKind) -> None:
        """Threads have completed groups of copies."""
        if self._race is not None:
            self._race.grouped(threads, kind)

    def awaited(self, threads: Threads, left: int, kind: AsyncKind, *, reading: bool) -> None:
        """Threads have waited for copies."""
        if self._race is not None:
            self._race.awaited(threads, left, kind, reading=reading)

    def posted(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets) -> None:
        """An mbarrier will be told the end of work."""
        if self._race is not None:
            self._race.posted(access, threads, allocation, offsets)

    def fenced(self, threads: Threads, order: FenceKind, scope: Scope) -> None:
        """Threads have executed a fence."""
        if isinstance(order, GridStep):
            if self._footprint is not None:
                self._footprint.stepped(threads, order)
            return
        if self._race is not None:
            self._race.fenced(threads, order, scope)

    def ctas_synchronized(self, first: int, ctas: int) -> None:
        """All threads of some CTAs have met at a barrier."""
        if self._race is not None:
            self._race.ctas_synchronized(first, ctas)

    def cluster_barrier(self, step: ClusterStep, cluster: int, threads: Threads) -> None:
        """Threads take a step of the barrier of their cluster."""
        if self._race is not None:
            self._race.cluster_order.step(step, cluster, threads)

    def arrived(self, key: BarrierKey, threads: Threads) -> None:
        """Threads have arrived at a barrier."""
        if self._race is not None:
            self._race.arrived(key, threads)

    def opened(self, key: BarrierKey, groups: Sequence[tuple[Bound, Threads]]) -> None:
        """A barrier opens."""
        if self._race is not None:
            self._race.opened(key, groups)
        if "sync" in self.checks:
            scene = self.scenes.of(int(groups[0][1][0])) if groups else self._running[0]
            apart = list(diverged(groups, scene))
            for bound, thread, said in apart:
                self._add("barrier-divergence", said, bound, Party("barrier", scene.place(bound, thread)))
            said = self._counts.opened(key, scene.shape.threads)
            if said and groups and not apart:
                bound, threads = groups[0]
                self._add(ENDED_BEFORE, said, bound, Party("barrier", scene.place(bound, int(threads[0]))))

    def joined(self, key: BarrierKey, bound: Bound, threads: Threads, count: int | None) -> None:
        """Threads come to a barrier."""
        if "sync" in self.checks:
            scene = self.scenes.of(int(threads[0]))
            place = scene.place(bound, int(threads[0]))
            for kind, said in self._counts.joined(
                key, described(bound), place.line, threads - scene.first, count, scene.shape.threads
            ):
                self._add(kind, said, bound, Party("barrier", place))

    def named(self, bound: Bound, threads: Threads, masks: Masks, gone: Masks) -> None:
        """Lanes have come to a collective of their warp."""
        if "sync" in self.checks:
            scene = self.scenes.of(int(threads[0]))
            within = (threads - scene.first) % scene.shape.threads
            found = (
                whole(masks, within, gone, scene.shape.threads)
                if needs_whole_warps(bound)
                else misnamed(bound, masks, within % WARP, gone)
            )
            for kind, position, said in found:
                self._add(kind, said, bound, Party("collective", scene.place(bound, int(threads[position]))))

    def meant(self, bound: Bound, threads: Threads, lanes: Masks, members: Masks, gone: Masks) -> None:
        """Lanes have read from lanes that take no part in the collective."""
        if "sync" in self.checks:
            scene = self.scenes.of(int(threads[0]))
            said = absent((threads - scene.first) % scene.shape.threads, lanes, members, gone, scene.shape.threads)
            self._add(UNDEFINED_LANE, said, bound, Party("collective", scene.place(bound, int(threads[0]))))

    def disagreed(self, bound: Bound, thread: int, said: str) -> None:
        """Lanes at a collective gave different masks."""
        if "sync" in self.checks:
            self._add("invalid-mask", said, bound, Party("collective", self.scenes.place(bound, thread)))

    def out_of_turn(self, bound: Bound, thread: int, said: str) -> None:
        """A thread came to the barrier of its cluster out of turn."""
        if "sync" in self.checks:
            self._add("invalid-barrier", said, bound, Party("barrier", self.scenes.place(bound, thread)))

    def in_use(self, bound: Bound, thread: int, said: str, started: Bound) -> None:
        """A thread has used a register of work that it has not waited for."""
        if self._race is not None:
            finding = of_two("register-in-use", said, ("work", started), ("access", bound), thread, self.scenes)
            self._record(("register-in-use", id(bound)), finding, [bound])

    def unfenced(self, bound: Bound, thread: int, said: str, other: Bound | None) -> None:
        """A thread has started a product without a fence before it."""
        if self._race is not None:
            self._record(("missing-fence", id(bound)), missing_fence(bound, thread, said, other, self.scenes), [bound])

    def warps_synchronized(self, bound: Bound, groups: Sequence[Threads]) -> None:
        """Lanes of warps have met at a collective, in groups."""
        if self._race is not None:
            self._race.warps_synchronized(bound, groups)

    def all_warps_synchronized(self, bound: Bound, first: int, ctas: int) -> None:
        """All lanes of all warps of some CTAs have met at a collective."""
        if self._race is not None:
            self._race.all_warps_synchronized(bound, first, ctas)

    def ended(self, allocation: Allocation, first: int | None) -> None:
        """The shared or local memory of some CTAs has ended."""
        if self._race is not None:
            self._race.ended(allocation, first)
        if self._init is not None:
            self._init.ended(allocation)
        if self._mbarriers is not None:
            self._mbarriers.ended(allocation)

    # ── device-side launches ────────────────────────────────────────────────────────────

    def launches(self, grid: int, thread: int) -> None:
        """A thread has launched a grid."""
        if self._race is not None:
            self._race.launches(grid, thread)

    def child_begins(self, scene: Scene, after: Sequence[int]) -> None:
        """A launched grid begins."""
        self.scenes.add(scene)
        self._running.append(scene)
        if self._race is not None:
            self._race.child_begins(scene, after)

    def child_ends(self, grid: int) -> None:
        """A launched grid has ended."""
        self._running = [scene for scene in self._running if scene.grid != grid]
        if self._race is not None:
            self._race.child_ends(grid)

    def waited(self, threads: Threads, grids: Sequence[int]) -> None:
        """Threads have waited for launched grids."""
        if self._race is not None:
            self._race.waited(threads, grids)

    # ── the heap, and the end ───────────────────────────────────────────────────────────

    def allocated(self, bound: Bound, threads: Threads, blocks: Sequence[Allocation]) -> None:
        """Threads have allocated blocks of the heap."""
        self._leaks.allocated(bound, threads, blocks)
        if self._init is not None:
            self._init.allocated(blocks)

    def unlaunched(self, bound: Bound, threads: Threads, buffers: Sequence[Allocation]) -> None:
        """Parameter buffers of device-side launches were not used."""
        if "memory" in self.checks:
            count, size = len(buffers), sum(buffer.size for buffer in buffers)
            leaked = f"{plural(count, 'buffer')} for the parameters of a launch ({plural(size)} in all)"
            place = self.scenes.place(bound, int(threads[0]))
            party = Party("allocation", place, buffers[0].start, where="the heap")
            said = f"{leaked} from here {'is' if count == 1 else 'are'} not launched"
            self._add("leak", said, bound, party, Space.GLOBAL)

    def finished(self, allocations: Sequence[Allocation]) -> None:
        """The grid has ended: compare it with concurrent launches, and report heap blocks that are out of reach."""
        if self._footprint is not None:
            compare_with_others(self._footprint)
        if "memory" not in self.checks:
            return
        for lost in self._leaks.lost(allocations):
            count, size = len(lost.blocks), sum(block.size for block in lost.blocks)
            leaked = f"{plural(count, 'block')} of malloc ({plural(size)} in all)"
            one = count == 1
            said = f"{leaked} from here {'is' if one else 'are'} not freed, and no pointer to {'it' if one else 'them'} is left"
            place = self.scenes.place(lost.bound, lost.threads[0])
            party = Party("allocation", place, lost.blocks[0].start, where="the heap")
            self._add("leak", said, lost.bound, party, Space.GLOBAL)

    def refused(self, fault: Fault, bound: Bound | None, thread: int) -> bool:
        """Report a fault as a finding; execution continues where it can."""
        if bound is not None:
            party = Party("access", self.scenes.place(bound, thread), fault.address or 0)
            self._add(fault.kind, fault.message, bound, party, fault=fault)
        elif not any(each.kind == fault.kind and each.span == fault.place.span for each in self.findings):
            scene = self._running[-1]
            place = replace(fault.place, grid=scene.grid, launched=scene.launched)
            self._record((fault.kind, place.span), Finding(
                fault.kind, fault.message, (Party(fault.kind, place, fault.address or 0),), fault=fault, span=place.span,
            ))  # fmt: skip
        return True

    # ── findings ────────────────────────────────────────────────────────────────────────

    def _raced(self, race: Race) -> None:
        bounds = [site.bound for site in race.sites]
        key = ("race", *sorted(map(id, bounds)), race.allocation.space)
        if key in self._seen or (race.mild and (*key, MILD) in self._seen):
            return
        if self._is_reserved(bounds[1], race.threads[1], race.allocation, race.offsets[1]):
            return
        parties = [
            self._party(site, thread, race.allocation, offset)
            for site, thread, offset in zip(race.sites, race.threads, race.offsets, strict=True)
        ]
        earlier, later = parties
        sizes = " of different sizes" if race.mixed_size else ""
        said = f"{race.hazard} race{sizes} on .{race.allocation.space} memory: {both(later, earlier)} {WRONG[race.cause]}" + (
            ", and store the same value" if race.equal_values else ""
        )
        kind = UNORDERED_INVALIDATION if race.cause is Cause.EXECUTED else "race"
        finding = Finding(
            kind, said, (earlier, later), race.hazard, race.allocation.space, remedy(race, self.scenes), race.mixed_size,
            race.equal_values, span=span(bounds[1]), related=span(bounds[0]), column=column(bounds[1]),
        )  # fmt: skip
        if race.mild:
            self._mild[key] = finding
            key = (*key, MILD)
        elif (
            milder := self._mild.pop(key, None)
        ) is not None:  # in another step the values differ, or no collective is between
            self.findings = [each for each in self.findings if each.message != milder.message]
        self._record(key, finding, bounds)

    def _tensor_raced(self, race: TensorRace) -> None:
        bounds = [race.earlier.bound, race.later.bound]
        self._record(("tensor race", *sorted(map(id, bounds))), tensor_race(race, self.scenes), bounds)

    def _outlived(self, end: CtaEnd) -> None:
        scene, bound = self.scenes.of(end.thread), end.site.bound
        if any(key[0] == "race" and id(bound) in key for key in self._seen):
            return  # that it is not waited for has been said
        where, within = self._located(scene, end.allocation, end.byte)
        party = Party(
            end.site.described, scene.place(bound, end.thread), end.allocation.origin + end.byte, within, end.site.size, where,
            end.site.strength,
        )  # fmt: skip
        cta = scene.shape.ctaid((end.owner - scene.first) // scene.shape.threads)
        if scene.first + (end.thread - scene.first) // scene.shape.threads * scene.shape.threads == end.owner:
            said = f"{where} of CTA {cta}: the {end.site.described} may still be under way at the end of the CTA"
            missing = end_of(end.site)
        else:
            said = f"{where} of CTA {cta}: nothing orders the {end.site.described} by another CTA of the cluster before its end"
            missing = "barrier.cluster (arrive and wait) behind the access, in both CTAs"
        finding = Finding(
            "ended-cta", said, (party,), space=Space.SHARED, missing=missing, span=span(bound), column=column(bound)
        )
        self._record(("ended-cta", id(bound)), finding, [bound])

    def _missed(self, missed: MissedPhase) -> None:
        bounds = [missed.test.bound, missed.end.bound]
        self._record(("missed-phase", *map(id, bounds)), missed_phase(missed, self.scenes), bounds)

    def _freed_in_use(self, marks: ByteAccesses, site: Site, thread: int, address: int) -> None:
        """The host frees memory that the launch may still use."""
        place = self.scenes.place(site.bound, thread)
        offset = address - marks.allocation.start
        party = Party(site.described, place, address, offset, site.size, marks.where, site.strength)
        said = (
            f"freed while in use: the host frees {marks.where}, and has not waited for {self.stream_launch}, "
            "which may still use it; wait for the stream, or for an event behind the launch, before"
        )
        self._add("freed-in-use", said, site.bound, party, Space.GLOBAL)

    def _clashed(self, clash: LaunchRace) -> None:
        bounds = [site.bound for site in clash.sites]
        self._record(("launches", *map(id, bounds)), launch_race(clash), bounds)

    def _misused(self, access: Access, thread: int, said: str) -> None:
        place = self.scenes.place(access.bound, thread)
        self._add("invalid-mbarrier", said, access.bound, Party("mbarrier", place))

    def _uninitialised(self, access: Access, thread: int, allocation: Allocation, offset: int, missing: list[int]) -> None:
        if self._is_reserved(access.bound, thread, allocation, offset):
            return
        said, party = self._unwritten_bytes(access, thread, allocation, offset, missing)
        bound = access.bound
        finding = Finding("uninitialised-read", said, (party,), space=allocation.space, span=span(bound), column=column(bound))
        self._join(allocation if allocation.home is None else bound, finding, [bound])

    def _unwritten_bytes(
        self, access: Access, thread: int, allocation: Allocation, offset: int, missing: list[int]
    ) -> tuple[str, Party]:
        size = access.type.bytes * access.count
        scene = self.scenes.of(thread)
        where, within = self._located(scene, allocation, offset)
        which = "which nothing has written"
        if len(missing) < size:
            which = f"of which {listed([within + n for n in missing])} not been written"
        said = f"reading {plural(size)} at byte {within} of {where}, {which}"
        return said, Party(Verb.READ, scene.place(access.bound, thread), allocation.origin + offset, within, size, where)

    def _uninitialised_cells(self, bound: Bound, thread: int, columns: list[int]) -> None:
        which = f"column {columns[0]}" if len(columns) == 1 else f"columns {columns[0]} to {columns[-1]}"
        said = f"reading {which} of tensor memory, which nothing has written since the allocation"
        self._add("uninitialised-read", said, bound, Party(Verb.READ, self.scenes.place(bound, thread)), "tensor")

    def _add(self, kind: str, said: str, bound: Bound, party: Party, space: str = "", fault: Fault | None = None) -> None:
        finding = Finding(kind, said, (party,), space=space, fault=fault, span=span(bound), column=column(bound))
        self._record((kind, id(bound)), finding, [bound])

    def _join(self, cause: object, finding: Finding, bounds: Sequence[Bound]) -> None:
        """Keep one finding for a cause: the first, with the lines of the other instructions that show it."""
        if (first := self._first.get(cause)) is None:
            if (made := self._record((finding.kind, cause, bounds[0]), finding, bounds)) is not None:
                self._first[cause] = made
        elif finding.line not in (first.line, *first.also) and not self._is_allowed(finding, bounds):
            self._first[cause] = replace(first, also=(*first.also, finding.line))
            self.findings[self.findings.index(first)] = self._first[cause]

    def _is_allowed(self, finding: Finding, bounds: Sequence[Bound]) -> bool:
        """Does the caller, or a comment at an instruction, allow the code of a finding?"""
        return finding.code in self.allowed or any(finding.code in allowed_at(bound) for bound in bounds)

    def _record(self, key: tuple[object, ...], finding: Finding, bounds: Sequence[Bound] = ()) -> Finding | None:
        """Keep one finding for each key; drop it if its code is allowed, by the caller or by a comment at an instruction."""
        if key in self._seen:
            return None
        self._seen.add(key)
        if self._is_allowed(finding, bounds):
            return None
        number = self.stream_launch.number if self.stream_launch is not None else 0
        made = replace(finding, schedule=self.schedule, seed=self.seed, kernel=self._running[0].kernel, grid=number)
        self.findings.append(made)
        return made

    def _is_reserved(self, bound: Bound, thread: int, allocation: Allocation, offset: int) -> bool:
        """Is a byte in shared memory of CUDA's own code, which orders its accesses by more than PTX promises (PTX 10.29)?"""
        if allocation.space is not Space.SHARED or bound.program is None or RESERVED_SHARED not in bound.program.source.text:
            return False
        return self._located(self.scenes.of(thread), allocation, offset)[1] < RESERVED_SHARED_BYTES

    def _located(self, scene: Scene, allocation: Allocation, offset: int) -> tuple[str, int]:
        """The object that contains a byte, and the offset in it: a window of a CTA or thread, or the allocation."""
        if allocation.home is None:
            return str(allocation), offset - (allocation.start - allocation.origin)
        within = offset % stride(allocation.space, allocation.window)
        name = scene.variable(within) if allocation.space is Space.SHARED else ""
        return f"the {allocation.space} memory{name}", within

    def _party(self, site: Site, thread: int, allocation: Allocation, offset: int) -> Party:
        scene = self.scenes.of(thread)
        where, within = self._located(scene, allocation, offset)
        place = scene.place(site.bound, thread)
        return Party(site.described, place, allocation.origin + offset, within, site.size, where, site.strength)


def cause_of(origin: Origin | None) -> object:
    """What an undefined value comes from, None where that is not known: a register without a value, or a load."""
    if origin is None or not origin.register:
        return origin and origin.bound
    return origin.register, origin.function


def undefined(register: str, missing: Sequence[int], origin: Origin | None) -> str:
    """What is wrong with a value, and what it comes from."""
    if origin is None or not origin.register:
        return f"whose {listed(missing)} no value" if missing else "which comes from bytes that have no value"
    if origin.register == register:
        return f"whose {listed(missing)} no value" if missing else "to which this thread has given no value"
    comes = f"comes from register {origin.register}, to which this thread has given no value"
    return f"whose {listed(missing)} no value: it {comes}" if missing else f"which {comes}"


def writes_of(origin: Origin | None) -> str:
    """Where the register of an origin is written: the instructions that the thread has not run."""
    if origin is None or origin.function is None:
        return ""
    lines = [
        bound.line
        for bound in origin.function.instructions
        if any(register.name == origin.register for register in use(bound).writes)
    ]
    if not lines:
        return f"no instruction writes {origin.register}"
    where = f"line {lines[0]}" if len(lines) == 1 else f"lines {', '.join(map(str, lines[:MOST_LINES]))}"
    more = ", and others" if len(lines) > MOST_LINES else ""
    return f"{origin.register} is written at {where}{more}, which this thread has not run before"
