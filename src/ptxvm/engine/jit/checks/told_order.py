"""What threads know of each other by fences and strong accesses, from the notes of instrumented code (PTX 8.8).

The rules are those of the exact checker (`checkers.patterns`): a strong write publishes what its thread knew at its earlier
fences, or at a release on that word; an atomic update passes on what it observes; a strong read collects what the write that
it observes has published, and a fence, or an acquire on that word, learns it.  A fence.sc also learns from the fence.sc before
such a write, if it comes after an access that observed it, by whatever thread of its CTA (`checkers.fence_order`).

The notes are read when a question comes, in the order in which things happened; fences wait in a list of their warp until a
thread of it matters.  What a thread knows is the time up to which the accesses of others come before its own: those of a
thread, or of all threads of a CTA, which barriers bring together.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property, partial

import numpy as np

from ptxvm.algebra.memory_order import Scope
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.checks import spare_memory
from ptxvm.engine.jit.checks.cell_tags import Suspicious
from ptxvm.engine.jit.memory.tags import CROWD, EPOCH, MANY
from ptxvm.engine.jit.memory.told_order import (
    ACQUIRES,
    ALL,
    CTA,
    FENCE,
    HEADER,
    LANES,
    MOST,
    NOTE,
    RANK,
    READS,
    RELEASES,
    SC,
    SIZE,
    STAMPS,
    TIMES,
    UPDATES,
    WRITES,
)
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.backing import Bytes
from ptxvm.machine.per_lane import Array
from ptxvm.named_tuple import NamedTuple

Thread = tuple[int, int]  # a CTA, in the order in which they run, and the thread within it; of all its threads EVERY
Table = Mapping[Thread, int]  # the time up to which accesses are known
Layers = tuple[Table, ...]  # the latest of some tables, which do not change
Heads = dict[tuple[Thread, int, bool], Layers]  # by the thread and the scope of its fence or release; is it a fence.sc?
EVERY = -1
NOTES = np.dtype([("address", "u8"), ("time", "u4"), ("thread", "u4"), ("what", "u4"), ("met", "u4")])
ACCESS = 3  # the bits of what happened that are none of an access
RANKS = 15
FULL = (1 << WARP) - 1
SHIFT = EPOCH.bit_length() - 1
MOST_STAMPS = (1 << 32) - 2 * EPOCH
NARROW, WIDE = Scope.CTA.rank, Scope.GPU.rank
MOST_LAYERS = 16
MOST_FENCES = 64  # of a CTA that are remembered for its later writes
MOST_WORK = 1 << 22  # steps from one write to the one that it observed, and entries of tables that are joined


Steps = dict[tuple[int, int], list[tuple[int, int]]]
"""The fences of each warp of a CTA: the lanes, and the time."""


class LateTable(Mapping[Thread, int]):
    """A table of threads, and of the fences of warps, that is made when it is first asked."""

    def __init__(self, make: Callable[[], tuple[dict[Thread, int], Steps]]) -> None:
        self._make = make

    @cached_property
    def parts(self) -> tuple[dict[Thread, int], Steps]:
        """The times of threads, and the fences."""
        return self._make()

    @cached_property
    def _whole(self) -> dict[Thread, int]:
        table, steps = dict(self.parts[0]), self.parts[1]
        for (cta, warp), fences in steps.items():
            for lane in range(WARP):
                thread = cta, warp * WARP + lane
                if time := _last(fences, lane):
                    table[thread] = max(table.get(thread, 0), time)
        return table

    def __getitem__(self, thread: Thread) -> int:
        return self._whole[thread]

    def __iter__(self) -> Iterator[Thread]:
        return iter(self._whole)

    def __len__(self) -> int:
        return len(self._whole)

    def get(self, thread: Thread, default: int = 0) -> int:  # type: ignore[override]
        """The time of a thread."""
        table, steps = self.parts
        cta, number = thread
        fences = steps.get((cta, number // WARP), ()) if number >= 0 else ()
        return max(table.get(thread, default), _last(fences, number % WARP))


def _last(fences: Sequence[tuple[int, int]], lane: int) -> int:
    """The time of the last fence of a lane; 0 if there is none."""
    return max((time for lanes, time in fences if lanes >> lane & 1), default=0)


class Fence(NamedTuple):
    """A fence of some lanes, with what all threads of the CTA knew, and had observed, when it was executed."""

    note: int
    warp: tuple[int, int]
    lanes: int
    time: int
    what: int
    met: int
    known: Layers
    offered: Layers


@dataclass(eq=False, slots=True)
class Published:
    """What a strong write has published: the heads of its thread, and those of the write that it observed, if it updates.

    `covers` says that the heads include all of `before`; `fenced` are the fence.sc of all threads before the CTA met last.
    """

    thread: Thread
    heads: Heads
    before: Published | None = None
    covers: bool = False
    fenced: Sequence[Fence] = ()


@dataclass(eq=False, slots=True)
class Write:
    """A strong write of a word, and the reads that observed it."""

    thread: Thread
    time: int
    rank: int
    observed: dict[Thread, int] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Word:
    """What strong accesses have done to a word.

    `writes` are those that none stands for: the last one, and those before a store that is no update.  `reads` has of each
    thread the time of the last one; `mixed` words are accessed in several sizes.
    """

    size: int
    writes: list[Write] = field(default_factory=list)
    reads: dict[Thread, int] = field(default_factory=dict)
    published: Published | None = None
    mixed: bool = False


@dataclass(eq=False, slots=True)
class Mind:
    """What a thread of the CTA knows beside what all know, and what it has to tell."""

    known: Layers = ()
    heads: Heads = field(default_factory=dict)
    released: dict[int, Heads] = field(default_factory=dict)  # by the address of the word
    pending: list[Published] = field(default_factory=list)
    pending_at: dict[int, list[Published]] = field(default_factory=dict)
    taken: dict[Published, int] = field(default_factory=dict)  # what it has learned, and at which note
    spoke: int = -1  # the note of its last fence or release
    fences: int = 0  # the next of the fences of its warp


class ToldOrder:
    """The notes of a launch, and what they tell."""

    def __init__(self, grid: int) -> None:
        """Nothing has been noted; `grid` is the time at which the grid begins."""
        self.room: Bytes = spare_memory.COPIES.take(HEADER + NOTE * MOST + 4 * TIMES)
        self._notes = self.room[HEADER : HEADER + NOTE * MOST].view(NOTES)
        self._stamps = self.room[STAMPS:HEADER].view(np.uint32)
        self._table = self.room[HEADER + NOTE * MOST :].view(np.uint32)
        self.room[:HEADER], self._table[:] = 0, 0
        self._grid = grid
        self._stamp = 0
        # The stamp of what is in the table, by the tables that it is from, which must stay.
        self._told: dict[tuple[int, ...], tuple[int, Layers]] = {}
        self._of_warps: dict[int, Layers] = {}  # what a fence.sc has told all lanes of a warp
        self._read = 0
        self._work = 0
        self._begins: list[int] = []  # the time at which each CTA began
        self._cta = -1  # the last of them
        self._words: dict[int, Word] = {}
        self._met = 0  # the time at which the threads of the last CTA met
        self._all: Layers = ()  # what all of them know ...
        self._observed: list[Published] = []  # ... what they have observed, of which a fence.sc learns ...
        self._offered: Layers = ()  # ... this
        self._observing: list[Published] = []  # what some of them have observed since then
        self._learned: Layers = ()  # what a fence.sc has told some of them
        self._fenced: list[Fence] = []  # those of the grid, before the threads met ...
        self._fencing: list[Fence] = []  # ... and since then
        self._minds: dict[int, Mind] = defaultdict(Mind)
        self._fences: dict[int, list[Fence]] = defaultdict(list)

    @property
    def address(self) -> int:
        """The address of the notes."""
        return self.room.ctypes.data

    def meet(self, time: int) -> None:
        """The threads have met last at a time."""
        self._met = time

    def tell(self, warp: int) -> None:
        """Enter in the table what all lanes of a warp know, for its next questions."""
        more = self._of_warps.get(warp, ())
        known = self._joined(self._all, more)
        key = tuple(map(id, known))
        if key not in self._told:
            self._told[key] = self._enter_in_table(known), known
        self._stamps[warp if more else slice(None)] = self._told[key][0]

    def _enter_in_table(self, known: Layers) -> int:
        """Enter whose accesses at which times some tables tell of; returns the stamp."""
        self._stamp += EPOCH
        if self._stamp > MOST_STAMPS:
            raise Suspicious("threads tell each other too often")
        for layer in known:
            times, steps = layer.parts if isinstance(layer, LateTable) else (layer, {})
            for (_, warp_of_cta), fences in steps.items():
                for lanes, time in fences:
                    if lanes == FULL and (place := time - self._grid >> SHIFT) < TIMES:
                        self._table[place] = self._stamp | warp_of_cta
            for (cta, number), time in times.items():
                if number == EVERY:
                    first, last = (each - self._grid >> SHIFT for each in (self._begins[cta], time))
                    self._table[first : last + 1] = self._stamp | ALL
        return self._stamp

    def unknown(self, tags: Array, found: Array, warp: int) -> Array:
        """Which of the accesses that are `found` are not in the table for a warp?"""
        places, low = (tags - np.uint32(self._grid)) >> np.uint32(SHIFT), tags & np.uint32(EPOCH - 1)
        apart = self._table[np.minimum(places, TIMES - 1)] ^ self._stamps[warp]
        told = (places < TIMES) & (low < MANY) & ((apart == ALL) | (apart == low // WARP))
        return np.flatnonzero((found != 0) & ~(told & bool(self._stamps[warp])))

    def leave(self) -> None:
        """Leave the memory to later launches."""
        spare_memory.COPIES.give(self.room)

    # ── questions ───────────────────────────────────────────────────────────────────────

    def unordered(self, tag: int, mine: int, warp: int, address: int | None, *, writes: bool) -> bool:
        """Does the access that left a tag perhaps not come before one of a thread, to a word at an address?

        The thread of `mine` may be several of a warp.  The new access reads, or `writes`.
        """
        low, own = tag & EPOCH - 1, mine & EPOCH - 1
        threads = [own] if own < MANY else range(warp * WARP, (warp + 1) * WARP)
        return any(self._is_unordered(tag & -EPOCH, low, thread, address, writes=writes) for thread in threads)

    def _is_unordered(self, time: int, low: int, thread: int, address: int | None, *, writes: bool) -> bool:
        if low == CROWD:
            return True
        if low <= MANY:
            other = bisect_right(self._begins, time) - 1, low if low < MANY else EVERY
            return not self._knows(thread, other, time)
        word = self._words.get(address) if address is not None else None
        return word is None or word.mixed or self._strong_unordered(word, thread, writes=writes)

    def _strong_unordered(self, word: Word, thread: int, *, writes: bool) -> bool:
        """Is a weak access to a word not ordered after the strong ones?"""
        if writes and any(not self._knows(thread, other, time) for other, time in word.reads.items()):
            return True
        return any(not self._knows(thread, write.thread, write.time) and not self._seen(write, thread) for write in word.writes)

    def _seen(self, write: Write, thread: int) -> bool:
        """Has a thread that this one knows observed the write?"""
        return any(self._knows(thread, other, time) for other, time in write.observed.items())

    def _knows(self, thread: int, other: Thread, time: int) -> bool:
        """Does an access of another thread at some time come before what a thread of this CTA does now?"""
        cta, number = other
        if cta == self._cta and (number == thread or time < self._met):
            return True
        layers = self._mind(thread).known + self._all
        return any(time <= layer.get(key, 0) for layer in layers for key in (other, (cta, EVERY)))

    # ── notes ───────────────────────────────────────────────────────────────────────────

    def read(self) -> None:
        """Read the notes that are new."""
        count = int(self.room[:8].view(np.uint64)[0])
        for address, time, number, what, met in self._notes[self._read : count].tolist():
            self._read += 1
            self._met = met
            if what & ACCESS == FENCE:
                self._fence(number, address, time, what)
            elif what & (READS | WRITES):
                self._access(number, address, time, what)
            elif what == LANES:
                self._lanes([number * WARP + lane for lane in range(WARP) if address >> lane & 1], time)
            else:
                self._meet(time, begins=what == CTA)

    def _meet(self, time: int, *, begins: bool) -> None:
        """A CTA begins, or its threads have met: each knows what all know, and have observed."""
        if begins:
            self._begins.append(time)
            self._cta += 1
            self._all = self._learned = self._offered = ()
            self._observed, self._observing, self._fenced, self._fencing = [], [], [], []
            for table in (self._told, self._of_warps, self._minds, self._fences):
                table.clear()
        else:
            for thread, mind in self._minds.items():
                self._mind(thread)
                self._all, mind.known = self._joined(self._all, mind.known), ()
            self._all, self._learned = self._joined(self._all, self._learned), ()
            if self._fencing:
                self._fenced, self._fencing = (self._fenced + self._fencing)[-MOST_FENCES:], []
            if self._observing:
                self._observed += self._observing
                self._observing = []
                self._offered = (LateTable(partial(self._of_fences, tuple(self._observed))),)

    def _lanes(self, threads: list[int], time: int) -> None:
        """Lanes have met: each knows the others, and what they know."""
        together: Layers = ({(self._cta, thread): time for thread in threads},)
        minds = [self._mind(thread) for thread in threads]
        for mind in minds:
            together = self._joined(together, mind.known)
        for mind in minds:
            mind.known = together

    def _fence(self, warp: int, lanes: int, time: int, what: int) -> None:
        """Lanes execute a fence; what all threads have observed, those of a whole warp learn together."""
        wide = bool(what & SC) and what >> RANK & RANKS >= WIDE
        fence = Fence(self._read, (self._cta, warp), lanes, time, what, self._met, self._all, self._offered if wide else ())
        self._fences[warp].append(fence)
        if wide:
            self._learned = self._joined(self._learned, fence.offered)
            self._fencing.append(fence)
            if lanes == FULL:
                self._of_warps[warp] = self._joined(self._of_warps.get(warp, ()), fence.offered)

    def _of_fences(self, observed: Sequence[Published]) -> tuple[dict[Thread, int], Steps]:
        """What the fence.sc of the grid before some writes know."""
        table: dict[Thread, int] = {}
        steps: Steps = defaultdict(list)
        seen: set[Published] = set()
        for each in observed:
            node: Published | None = each
            while node is not None and node not in seen:
                self._step()
                seen.add(node)
                for (_, scope, is_sc), known in node.heads.items():
                    if is_sc and scope >= WIDE:
                        self._enter(table, known)
                for fence in node.fenced:
                    steps[fence.warp].append((fence.lanes, fence.time))
                    self._enter(table, fence.known)
                node = node.before
        return table, steps

    def _mind(self, thread: int) -> Mind:
        """What a thread knows now, with the fences of its warp."""
        mind, fences = self._minds[thread], self._fences[thread // WARP]
        if mind.fences < len(fences):
            for fence in fences[mind.fences :]:
                if fence.lanes >> thread % WARP & 1:
                    self._execute(thread, mind, fence)
            mind.fences = len(fences)
        return mind

    def _execute(self, thread: int, mind: Mind, fence: Fence) -> None:
        rank = fence.what >> RANK & RANKS
        if fence.what & ACQUIRES:
            mind.pending = self._take_in(thread, mind, rank, mind.pending, fence.note)
            mind.known = self._joined(mind.known, fence.offered)
        if fence.what & RELEASES:
            me = self._cta, thread
            mine = {me: fence.time, (self._cta, EVERY): fence.met - EPOCH}
            mind.heads[me, rank, bool(fence.what & SC)] = self._joined(self._joined(fence.known, mind.known), (mine,))
            mind.spoke = fence.note

    def _access(self, thread: int, address: int, time: int, what: int) -> None:
        """A strong access of one element."""
        rank, size, me = what >> RANK & RANKS, what >> SIZE, (self._cta, thread)
        word = self._words.get(address)
        if word is None:
            word = self._words[address] = Word(size)
        word.mixed |= word.size != size
        last = word.writes[-1] if word.writes else None
        near = last is not None and not word.mixed and min(last.rank, rank) >= self._needed(last.thread)
        observed = word.published if near else None
        mind = self._mind(thread)
        if observed is not None:
            self._observing.append(observed)
        if what & READS and last is not None and near:
            last.observed.setdefault(me, time)
            if observed is not None:
                self._collect(thread, mind, address, observed, rank if what & ACQUIRES else 0)
        if not what & WRITES:
            word.reads[me] = time
            return
        if what & RELEASES:
            mine = {me: time, (self._cta, EVERY): self._met - EPOCH}
            known = self._joined(self._joined(self._all, mind.known), (mine,))
            mind.released.setdefault(address, {})[me, rank, False] = known
            mind.spoke = self._read
        heads = mind.heads | mind.released.get(address, {})
        updates = bool(what & UPDATES)
        before = observed if updates else None
        word.published = None
        if heads or before is not None or self._fenced:
            covers = self._covers(mind, me, before)
            word.published = Published(me, heads, before, covers, self._fenced if rank >= WIDE else ())
        write = Write(me, time, rank)
        word.writes = [write] if updates and near and len(word.writes) == 1 else [*word.writes, write]

    def _collect(self, thread: int, mind: Mind, address: int, observed: Published, acquires: int) -> None:
        """A strong read observes what a write has published; `acquires` is the rank of the scope if it does."""
        here = mind.pending_at.setdefault(address, [])
        for pending in (mind.pending, here):
            if not pending or pending[-1] is not observed:
                pending.append(observed)
        if acquires:
            mind.pending_at[address] = self._take_in(thread, mind, acquires, here, self._read)

    def _covers(self, mind: Mind, me: Thread, before: Published | None) -> bool:
        """Do the fences and releases of a thread tell all that was published before?"""
        while before is not None and before.thread == me:
            before = before.before
        return before is None or mind.taken.get(before, self._read) < mind.spoke

    def _take_in(self, thread: int, mind: Mind, rank: int, pending: list[Published], now: int) -> list[Published]:
        """Learn what has been collected; returns what only a wider scope would learn."""
        left, cta, learned = [], self._cta, {id(each): each for each in mind.known}
        for each in pending:
            node: Published | None = each
            whole = True
            while node is not None and node not in mind.taken:
                self._work += 1
                for ((other, _), scope, _), known in node.heads.items():
                    if min(scope, rank) >= WIDE or (other == cta and min(scope, rank) >= NARROW):
                        for layer in known:
                            learned[id(layer)] = layer
                    else:
                        whole = False
                node = None if node.covers else node.before
            if whole:
                mind.taken[each] = now
            else:
                left.append(each)
        self._step()
        mind.known = self._few(tuple(learned.values()))
        return left

    def _needed(self, other: Thread) -> int:
        """The rank of the least scope that includes a thread and one of this CTA."""
        return NARROW if other[0] == self._cta else WIDE

    def _joined(self, one: Layers, other: Layers) -> Layers:
        """What two know together."""
        if not one or not other:
            return one or other
        found = tuple({id(each): each for each in one + other}.values())
        return found if len(found) <= MOST_LAYERS else self._few(found)

    def _few(self, found: Layers) -> Layers:
        """Some tables as few: all but the largest become one, so that no entry is joined often."""
        if len(found) <= MOST_LAYERS:
            return found
        found = tuple(sorted(found, key=lambda each: (isinstance(each, LateTable), isinstance(each, dict) and len(each))))
        table, small = dict[Thread, int](), len(found) - MOST_LAYERS // 2
        self._enter(table, found[:small])
        return (table, *found[small:])

    def _enter(self, table: dict[Thread, int], known: Layers) -> None:
        """Enter the latest times."""
        for layer in known:
            self._step(len(layer))
            for key, time in layer.items():
                if table.get(key, 0) < time:
                    table[key] = time

    def _step(self, steps: int = 1) -> None:
        self._work += steps
        if self._work > MOST_WORK:
            raise Suspicious("threads tell each other more than there is room for")
