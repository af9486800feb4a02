"""Events of a launch, which an engine reports to watchers, and the findings of watchers.

Threads are numbered through the whole grid: CTA by CTA, and by their linear number in the CTA.  The threads of a child grid
have the next free numbers.  A byte of memory is an allocation and an offset, counted from
`Allocation.origin`.
"""

from __future__ import annotations

import enum
from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.asynchronous import AsyncKind
from ptxvm.algebra.memory_order import FenceKind, Order, Scope
from ptxvm.algebra.ports import AccessAttributes
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.analysis.program import Bound, Function
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics import Diagnostic, Severity
from ptxvm.diagnostics.diagnostic import Span
from ptxvm.diagnostics.errors import MOST_LAUNCHES, Fault, Place
from ptxvm.diagnostics.kernel_names import displayed
from ptxvm.diagnostics.notebook import card
from ptxvm.isa.effects import Verb
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.launch import LaunchShape
from ptxvm.machine.per_lane import Array
from ptxvm.machine.tensor_blocks import CellBlock
from ptxvm.named_tuple import NamedTuple

Threads = npt.NDArray[np.int64]
Offsets = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Bits = npt.NDArray[np.bool_]
Masks = npt.NDArray[np.uint32]
Flags = npt.NDArray[np.bool_]
Positions: TypeAlias = "Array | slice"
BarrierKey = tuple[int, int]
"""Names a barrier of a CTA: the first thread of the CTA, and the number of the barrier."""

MOST_LINES = 8  # of other instructions that a text lists
EQUAL_VALUES = "race-of-equal-values"
"""The code of a race of writes that all store the same value."""
UNORDERED_INVALIDATION = "unordered-invalidation"
"""An mbarrier is invalidated after arrivals that only a collective of the warp stands between."""
ENDED_BEFORE = "ended-before-barrier"
UNDEFINED_LANE = "undefined-lane"
WARNINGS = frozenset({EQUAL_VALUES, UNORDERED_INVALIDATION, ENDED_BEFORE, UNDEFINED_LANE})
"""The codes of findings that may be meant."""


class ClusterStep(enum.Enum):
    """A step of the barrier of a cluster (PTX 9.7.13.3)."""

    ARRIVED = "threads have arrived, with .release"
    ARRIVED_RELAXED = "threads have arrived, with .relaxed"
    COMPLETE = "all threads have arrived"
    PASSED = "threads go on after their wait"


class StoredValues(NamedTuple):
    """The values in memory after a store: the bits of each element, a row for each thread, and whether they are that thread's.

    They are another thread's where several threads store to one address in one step.
    """

    bits: npt.NDArray[np.unsignedinteger]
    own: Flags

    def of(self, position: Positions) -> StoredValues:
        """The values of some of the threads."""
        return StoredValues(self.bits[position], self.own[position])


class Access(Protocol):
    """An instruction's access to memory: its elements, its order and scope."""

    bound: Bound
    space: Space
    type: Type
    count: int
    attributes: AccessAttributes


@dataclass(frozen=True, slots=True)
class Party:
    """One of the accesses of a finding."""

    operation: str  # read, write, skipped write or atomic
    place: Place
    address: int = 0
    offset: int = 0  # of its first byte in the object
    size: int = 0
    where: str = ""  # the object
    strength: str = "weak"
    grid: int = 0  # the number of the launch, where it is one of several

    @property
    def line(self) -> int:
        """The PTX line."""
        return self.place.line

    @property
    def source(self) -> str:
        """FILE:LINE of the high-level source, from `.loc`."""
        return self.place.source

    @property
    def cta(self) -> tuple[int, int, int] | None:
        """The CTA as (x, y, z)."""
        return self.place.cta

    @property
    def thread(self) -> tuple[int, int, int] | None:
        """The thread as (x, y, z)."""
        return self.place.thread

    @property
    def bytes(self) -> range:
        """The range of accessed bytes in the object."""
        return range(self.offset, self.offset + self.size)

    @property
    def details(self) -> dict[str, object]:
        """All fields, for tools."""
        place = self.place
        return {
            "operation": self.operation, "strength": self.strength, "kernel": place.kernel, "function": place.function,
            "file": place.file, "line": place.line, "text": place.text, "source": place.source, "grid": self.grid,
            "cta": place.cta, "thread": place.thread, "where": self.where, "offset": self.offset, "size": self.size,
            "address": self.address, "child": child(place),
        }  # fmt: skip

    def __str__(self) -> str:
        first, last = self.offset, self.offset + self.size - 1
        touched = f" of byte{'s' if self.size > 1 else ''} {first}" + (f" to {last}" if self.size > 1 else "")
        how = f"{self.strength} {self.operation}{touched} of {self.where}" if self.size else f"the {self.operation}"
        line = f"{how} at line {self.line} ({self.place.text}) by CTA {self.cta}, thread {self.thread}"
        if self.grid:
            line += f" of launch {self.grid} ('{displayed(self.place.kernel)}')"
        if self.place.launched is not None:
            line += f" of {self.place.lineage}"
        return f"{line}, from {self.source}" if self.source else line


def child(place: Place) -> dict[str, object] | None:
    """The grid of a place, where a kernel launched it: its number, and where that was, for tools; so for those before."""
    found: list[dict[str, object]] = []
    while place.launched is not None and len(found) < MOST_LAUNCHES:
        by = place.launched
        found.append({
            "grid": place.grid, "kernel": by.kernel, "file": by.file, "line": by.line, "text": by.text, "cta": by.cta,
            "thread": by.thread, "child": None,
        })  # fmt: skip
        place = by
    for inner, outer in pairwise(found):
        inner["child"] = outer
    return found[0] if found else None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong with a kernel.

    `kind` is `race`, `uninitialised-read`, `barrier-divergence`, `deadlock`, or that of a fault (`out-of-bounds`, …).  Of a
    race, `hazard` is RAW, WAR or WAW, `accesses` are the earlier and the later one of the run that showed it, `missing`
    says what would order them, `mixed_size` that they do not cover the same bytes (PTX 8.7.1), and `equal_values` that all
    of the writes store the same value, which makes it a warning.  `schedule` is the number of that run, and `seed` repeats
    its schedule; None is the usual schedule.  `also` are the lines of other instructions that read the same undefined value,
    or the same memory that nothing has written.
    """

    kind: str
    message: str
    accesses: tuple[Party, ...] = ()
    hazard: str = ""
    space: str = ""
    missing: str = ""
    mixed_size: bool = False
    equal_values: bool = False
    schedule: int = 0
    seed: int | None = None
    kernel: str = ""
    grid: int = 0  # the number of the launch
    fault: Fault | None = field(default=None, repr=False, compare=False)  # that ends the launch where nothing is checked
    span: Span = field(default=Span(0, 0), repr=False)
    related: Span = field(default=Span(0, 0), repr=False)
    column: int = 1
    also: tuple[int, ...] = ()

    @property
    def code(self) -> str:
        """The name for `--allow`: the kind, or another for a race that is a warning."""
        return EQUAL_VALUES if self.equal_values else self.kind

    @property
    def severity(self) -> Severity:
        """Error or warning."""
        return Severity.WARNING if self.code in WARNINGS else Severity.ERROR

    @property
    def line(self) -> int:
        """The PTX line of the last access."""
        return self.accesses[-1].line if self.accesses else 0

    def diagnostic(self) -> Diagnostic:
        """The finding for the renderers: text, JSON and SARIF."""
        last = self.accesses[-1] if self.accesses else None
        earlier = self.accesses[0] if len(self.accesses) > 1 else None
        notes = [*map(str, self.accesses), *self.others]
        if self.seed is not None:
            notes.append(f"the schedule of seed {self.seed} shows it")
        return Diagnostic(
            self.severity, self.code, self.message, self.span, last.line if last else 0, self.column,
            note="; ".join(notes), help=self.missing,
            related=((f"the earlier {earlier.operation}", self.related),) if earlier and self.related.end else (),
            details=self.details,
        )  # fmt: skip

    @property
    def details(self) -> dict[str, object]:
        """All fields, for tools."""
        return {
            "kind": self.kind, "hazard": self.hazard, "space": self.space, "mixed_size": self.mixed_size,
            "equal_values": self.equal_values,
            "missing": self.missing, "kernel": self.kernel, "grid": self.grid, "schedule": self.schedule, "seed": self.seed,
            "accesses": [each.details for each in self.accesses], "also": self.also,
        }  # fmt: skip

    @property
    def others(self) -> list[str]:
        """What is said of other instructions with the same cause, if there are some."""
        listed = ", ".join(map(str, self.also[:MOST_LINES]))
        more = f" and {len(self.also) - MOST_LINES} more" if len(self.also) > MOST_LINES else ""
        return [f"read too at line{'s' if len(self.also) > 1 else ''} {listed}{more}"] if self.also else []

    def __str__(self) -> str:
        lines = [f"{self.code}: {self.message}", *(f"  {each}" for each in (*self.accesses, *self.others))]
        return "\n".join([*lines, f"  missing: {self.missing}"] if self.missing else lines)

    def _repr_html_(self) -> str:
        """The finding for a notebook."""
        rows = [("kernel", self.kernel), *(("access", str(each)) for each in self.accesses), ("missing", self.missing)]
        return card(f"{self.severity}[{self.code}]: {self.message}", rows)


@dataclass(frozen=True, slots=True)
class Scene:
    """A watched grid: the grid of the launch, or a child grid with its number and first thread."""

    kernel: str
    shape: LaunchShape
    shared: tuple[tuple[int, int, str], ...] = ()  # the variables of shared memory: offset, size, name
    grid: int = 0
    first: int = 0
    launched: Place | None = None

    def variable(self, offset: int) -> str:
        """A byte of shared memory by its variable: ` ('tile' + 4)`."""
        found = next(((start, name) for start, size, name in self.shared if start <= offset < start + size), None)
        return f" ('{found[1]}' + {offset - found[0]})" if found else ""

    def place(self, bound: Bound, thread: int) -> Place:
        """The place of an instruction, and the thread that ran it."""
        cta, within = divmod(thread - self.first, self.shape.threads)
        program = bound.program
        name = bound.function.name if bound.function is not None else ""
        at = self.shape.ctaid(cta), unfold(within, self.shape.block)
        if program is None:
            return Place(self.kernel, 0, bound.node.head, *at, name, grid=self.grid, launched=self.launched)
        span, text = Span(bound.node.start, bound.node.end), bound.text.rstrip(";")
        return Place(
            self.kernel, bound.line, text, *at, name, program.source.name, bound.origin, span, self.grid, self.launched
        )


class Scenes:
    """The grids of a run, by the numbers of their threads."""

    def __init__(self, scene: Scene) -> None:
        self._all = [scene]

    def add(self, scene: Scene) -> None:
        """Add a grid."""
        self._all.append(scene)

    def of(self, thread: int) -> Scene:
        """The grid of a thread."""
        return self._all[bisect_right(self._all, thread, key=lambda scene: scene.first) - 1]

    def place(self, bound: Bound, thread: int) -> Place:
        """The place of an instruction, and the thread that ran it."""
        return self.of(thread).place(bound, thread)


def unfold(number: int, extent: tuple[int, int, int]) -> tuple[int, int, int]:
    """A linear number as (x, y, z)."""
    return number % extent[0], number // extent[0] % extent[1], number // (extent[0] * extent[1])


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an undefined value comes from.

    It is a register of a function that the thread has not written; `bound` is then the first write that its guard has kept
    the thread from, if there is one.  Without a register it is an instruction that loads bytes without a value.
    """

    register: str = ""
    bound: Bound | None = None
    function: Function | None = None


class Watcher(Protocol):
    """A watcher of a launch.  Each method is called after its event, for threads of one or more CTAs at once."""

    @property
    def findings(self) -> list[Finding]:
        """All findings so far."""
        ...

    @property
    def follows_registers(self) -> bool:
        """Does it check reads of unset registers?"""
        ...

    @property
    def follows_values(self) -> bool:
        """Does it need the values that stores leave in memory?"""
        ...

    @property
    def follows_variables(self) -> bool:
        """Does it refuse accesses outside the variable that their address comes from?"""
        ...

    def unset(self, bound: Bound, threads: Threads, register: str, missing: Sequence[int], origin: Origin | None) -> None:
        """An undefined register or other value of threads is observed: all of it is undefined, or the bytes in `missing`."""

    def missing(self, allocation: Allocation, offsets: Offsets, size: int) -> Bits | None:
        """Which of `size` bytes from some offsets on are unset: a row for each byte; None where all are set."""
        ...

    def handed_on(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets, missing: Bits) -> None:
        """Threads have loaded `missing` bytes, a row for each byte, that nothing has written."""

    def lost(self, allocation: Allocation, offsets: Offsets, missing: Bits) -> None:
        """Bytes from some offsets on become set or unset: a row for each byte says whether it is `missing`."""

    def parameters_passed(self, source: Allocation, target: Allocation) -> None:
        """A child grid starts with a copy of its parent's buffer as parameters."""

    def launched(self, fresh: Collection[Allocation]) -> None:
        """The launch begins; `fresh` is the memory that is unset."""

    def begin(self, scene: Scene, schedule: int, seed: int | None) -> None:
        """A run of the grid begins."""

    def read(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets) -> None:
        """Threads have read."""

    def wrote(
        self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets, left: StoredValues | None = None
    ) -> None:
        """Threads have written; `left` is the contents of memory now, where the watcher follows values."""

    def updated(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets) -> None:
        """Threads have read and written atomically, one after the other."""

    def signalled(
        self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets, words: tuple[Words, Words]
    ) -> None:
        """Threads have updated mbarriers, one after the other; `words` are the values before and after each update."""

    def phase_over(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets) -> None:
        """Threads have found that a phase of an mbarrier is over."""

    def asked(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets, states: Words) -> None:
        """Threads test the phase of an mbarrier by the state that an arrival returned."""

    def copying(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets, verb: Verb) -> None:
        """Threads have started an asynchronous copy, which will `read` or `write` these bytes.

        It is `atomic` where what it writes is combined with what is there.
        """

    def mapped(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets) -> None:
        """Threads have started a copy by a tensor map that lies there."""

    def tensormap_fenced(self, threads: Threads, order: Order, addresses: Words | None) -> None:
        """Threads have executed a fence of the tensormap proxy, which releases, acquires or does both.

        Where there are addresses, each thread acquires for the tensor map at its own.
        """

    def tensor_started(
        self, bound: Bound, kind: AsyncKind | None, cta: int, threads: Threads, blocks: Sequence[CellBlock]
    ) -> None:
        """A warp, or one thread, starts work on blocks of the tensor memory of a CTA, whose first thread is `cta`.

        The kind says what waits for it; None is for a deallocation, which is done at once.
        """

    def grouped(self, threads: Threads, kind: AsyncKind) -> None:
        """Threads have committed a group of their ungrouped copies of a kind."""

    def awaited(self, threads: Threads, left: int, kind: AsyncKind, *, reading: bool) -> None:
        """All groups of copies of some threads but the last `left` have ended, or have read their sources."""

    def posted(self, access: Access, threads: Threads, allocation: Allocation, offsets: Offsets) -> None:
        """Threads ask that an mbarrier be told the end of work of the kind in `access`.

        That is all work of the kind that they have started; or one transfer, which the events `copying` that follow are of.
        """

    def fenced(self, threads: Threads, order: FenceKind, scope: Scope) -> None:
        """Threads have executed a fence."""

    def ctas_synchronized(self, first: int, ctas: int) -> None:
        """All threads of `ctas` CTAs, from thread `first` on, have met at a barrier."""

    def cluster_barrier(self, step: ClusterStep, cluster: int, threads: Threads) -> None:
        """Threads take a step of the barrier of their cluster, whose first thread is `cluster`."""

    def arrived(self, key: BarrierKey, threads: Threads) -> None:
        """Threads have arrived at a barrier of their CTA without waiting; `key` names it."""

    def joined(self, key: BarrierKey, bound: Bound, threads: Threads, count: int | None) -> None:
        """Threads arrive at a barrier of their CTA, which expects `count` threads, or all."""

    def named(self, bound: Bound, threads: Threads, masks: Masks, gone: Masks) -> None:
        """Lanes arrive at a collective of their warp with masks; `gone` are the lanes of each warp that have ended."""

    def meant(self, bound: Bound, threads: Threads, lanes: Masks, members: Masks, gone: Masks) -> None:
        """Lanes read the values of `lanes`, which take no part: `members` do, and `gone` have ended."""

    def disagreed(self, bound: Bound, thread: int, said: str) -> None:
        """Lanes that meet at a collective have masks that disagree."""

    def out_of_turn(self, bound: Bound, thread: int, said: str) -> None:
        """A thread comes to the barrier of its cluster twice without a wait between, or waits there and has not come."""

    def in_use(self, bound: Bound, thread: int, said: str, started: Bound) -> None:
        """A thread uses a register of work that it has `started` and not waited for."""

    def unfenced(self, bound: Bound, thread: int, said: str, other: Bound | None) -> None:
        """A thread starts a product without a fence before it, perhaps after another instruction used its registers."""

    def opened(self, key: BarrierKey, groups: Sequence[tuple[Bound, Threads]]) -> None:
        """A barrier of a CTA releases its threads, grouped by the instruction at which they wait."""

    def warps_synchronized(self, bound: Bound, groups: Sequence[Threads]) -> None:
        """Lanes of warps have met at a collective, group by group."""

    def all_warps_synchronized(self, bound: Bound, first: int, ctas: int) -> None:
        """All lanes of `ctas` CTAs, from thread `first` on, have met at a collective, warp by warp."""

    def ended(self, allocation: Allocation, first: int | None) -> None:
        """The shared or local memory of some CTAs has been released.

        `first` is the first thread of the first of them; None if some threads have not come to their end.
        """

    def allocated(self, bound: Bound, threads: Threads, blocks: Sequence[Allocation]) -> None:
        """Threads have got blocks of the heap."""

    def unlaunched(self, bound: Bound, threads: Threads, buffers: Sequence[Allocation]) -> None:
        """Threads have allocated buffers for the parameters of launches, and launched nothing with them."""

    def finished(self, allocations: Sequence[Allocation]) -> None:
        """The run of the grid has ended, with these allocations live."""

    def launches(self, grid: int, thread: int) -> None:
        """A thread has launched a child grid with a number."""

    def child_begins(self, scene: Scene, after: Sequence[int]) -> None:
        """A child grid begins; the grids in `after` come before it."""

    def child_ends(self, grid: int) -> None:
        """A child grid has ended, and all that it launched."""

    def waited(self, threads: Threads, grids: Sequence[int]) -> None:
        """Threads have waited for grids, all of which have ended."""

    def refused(self, fault: Fault, bound: Bound | None, thread: int) -> bool:
        """Report a fault: false raises it; true goes on without the thread's access, if that is possible."""


__all__ = ["Access", "Finding", "Party", "Scene", "Scenes", "Watcher", "unfold"]
