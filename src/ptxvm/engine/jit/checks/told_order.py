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

from functools import partial

import numpy as np

from ptxvm.algebra.memory_order import Scope
from ptxvm.engine.jit.checks import spare_memory
from ptxvm.engine.jit.checks.cell_tags import Suspicious
from ptxvm.engine.jit.checks.told_knowledge import (
    EVERY,
    Fence,
    Layers,
    Mind,
    Published,
    Readers,
    Steps,
    Table,
    Thread,
    Times,
    ToldCta,
    Word,
    Write,
    merge,
    shortened,
)
from ptxvm.engine.jit.checks.told_table import FULL, SHIFT, ToldTable
from ptxvm.engine.jit.memory.tags import CROWD, EPOCH, LAST, MANY
from ptxvm.engine.jit.memory.told_order import (
    ACQUIRES,
    BARRIER,
    CTA,
    FENCE,
    HEADER,
    LANES,
    MOST,
    MOST_READERS,
    NOTE,
    RANK,
    READS,
    RELEASES,
    RESUMES,
    SC,
    SIZE,
    TIMES,
    UPDATES,
    WRITES,
)
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.backing import Bytes
from ptxvm.machine.per_lane import Array

NOTES = np.dtype([("address", "u8"), ("time", "u4"), ("thread", "u4"), ("what", "u4"), ("met", "u4")])
ACCESS = 3  # the bits of what happened that are none of an access
RANKS = 15
NARROW, WIDE = Scope.CTA.rank, Scope.GPU.rank
MOST_LAYERS = 16
JOINED = MOST_READERS + TIMES  # words with what becomes of a tag when this CTA joins: by number, and of times
WORD = 32  # bits
MOST_FENCES = 64  # of a CTA that are remembered for its later writes
MOST_WORK = 1 << 22  # steps from one write to the one that it observed, and entries of tables that are joined


class ToldOrder:
    """The notes of a launch, and what they tell."""

    def __init__(self, grid: int, threads: int, *, beside: bool = False) -> None:
        """Nothing has been noted; `grid` is the time at which the grid begins, whose CTAs have so many threads.

        Are CTAs resident `beside` each other?
        """
        self.room: Bytes = spare_memory.COPIES.take(HEADER + NOTE * MOST + 4 * TIMES + 8 * JOINED)
        self._notes = self.room[HEADER : HEADER + NOTE * MOST].view(NOTES)
        self.table = ToldTable(self.room, grid)
        self._grid = grid
        self._warps = [(1 << min(threads - first, WARP)) - 1 for first in range(0, threads, WARP)]  # the lanes of each
        self._read = 0
        self._work = 0
        self._cta = ToldCta(-1)  # the one that runs
        self._slots: dict[int, ToldCta] = {}  # those that are resident, where some wait for others
        self._words: dict[int, Word] = {}
        self._readers: list[Readers] = []  # those that a tag of reads by several CTAs may stand for, by its number
        self._numbers_of_readers: dict[frozenset[tuple[int, int]], int] = {}
        self._joined_now = self.room[-8 * JOINED :].view(np.uint64)
        if beside:
            self._joined_now[:] = 0

    @property
    def address(self) -> int:
        """The address of the notes."""
        return self.room.ctypes.data

    @property
    def last_tag(self) -> int:
        """The last tag that stands for several CTAs; that of the grid if there is none."""
        return self._grid + (len(self._readers) << SHIFT)

    def meet(self, time: int) -> None:
        """The threads have met last at a time."""
        self._cta.met = time

    def tell(self, warp: int) -> None:
        """Enter in the table what all lanes of a warp know, for its next questions."""
        more = self._cta.of_warps.get(warp, ())
        known = self._joined(self._cta.known, more)
        own = min(self._cta.met, self.table.since) - EPOCH  # what it did before others ran, and its threads have met
        key = own, *map(id, known)
        if key not in self._cta.told:
            self._cta.told[key] = self.table.enter(known, own), known
        self.table.stamp(warp if more else slice(None), self._cta.told[key][0])

    def leave(self) -> None:
        """Leave the memory to later launches."""
        spare_memory.COPIES.give(self.room)

    # ── questions ───────────────────────────────────────────────────────────────────────

    def unordered(self, tag: int, mine: int, warp: int, address: int | None, *, writes: bool) -> bool:
        """Does the access that left a tag perhaps not come before one of a thread, to a word at an address?

        The thread of `mine` may be several of a warp.  The new access reads, or `writes`.
        """
        low, own = tag & EPOCH - 1, mine & EPOCH - 1
        if (own == MANY or low == CROWD) and not self._is_unordered(tag & -EPOCH, low, EVERY, address, writes=writes):
            return False
        threads = [own] if own < MANY else range(warp * WARP, (warp + 1) * WARP)
        return any(self._is_unordered(tag & -EPOCH, low, thread, address, writes=writes) for thread in threads)

    def _is_unordered(self, time: int, low: int, thread: int, address: int | None, *, writes: bool) -> bool:
        if low == CROWD:
            number = self.table.place(time)
            readers = self._readers[number] if number < len(self._readers) else {}
            return not readers or not all(self._knows(thread, (cta, EVERY), last) for cta, last in readers.items())
        if low <= MANY:
            return not self._knows(thread, (self.table.ran_at(time), low if low < MANY else EVERY), time)
        word = self._words.get(address) if address is not None else None
        return word is None or word.mixed or self._strong_unordered(word, thread, writes=writes)

    def join(self, tag: int, mine: int, warp: int) -> int:
        """The new tag of the reads of a cell, which a thread of `mine` reads, after those that have left a tag.

        It is 0 if the thread comes after them; that of several threads of this CTA; or it stands for the CTAs that have read
        it, where CTAs wait for each other: each may read what another writes later, and all have to tell it.
        """
        time, low, now = tag & -EPOCH, tag & EPOCH - 1, mine & -EPOCH
        place = self.table.place(time) if low == CROWD else self.table.place(time) + MOST_READERS
        if self.apart and not self.unordered(tag, mine, warp, None, writes=False):
            return 0
        if not self.apart and not self._is_unordered(time, low, EVERY, None, writes=False):
            made = 0
        elif low == CROWD:
            made = self._tag_of({**self._readers[place], self._cta.number: now}, now)
        elif time >= self.table.since:
            return now | MANY
        else:
            made = self._tag_of({self.table.ran_at(time): time, self._cta.number: now}, now)
        if place < JOINED and (made or low >= MANY):  # what is known of all readers then
            self._joined_now[place] = now << WORD | made
        return made

    def several(self, tags: Array) -> Array:
        """Which tags are of threads of this CTA since it runs, and its threads met, of which no other thread has learned?"""
        recent = tags >= np.uint32(max(self._cta.met, self.table.since))
        return recent & (tags & np.uint32(EPOCH - 1) < MANY) & (not self.apart)

    @property
    def apart(self) -> bool:
        """Has a thread of the CTA observed what others have told, or a lane met others, since all threads met?"""
        return self._cta.apart

    def _tag_of(self, readers: Readers, now: int) -> int:
        """The tag that stands for some readers, to which this CTA belongs now."""
        key = frozenset(readers.items())
        number = self._numbers_of_readers.setdefault(key, len(self._readers))
        made = (self._grid + (number << SHIFT)) | CROWD
        if made > LAST or number >= MOST_READERS:
            raise Suspicious("too many CTAs read what others write")
        if number == len(self._readers):
            self._readers.append(readers)
            self._joined_now[number] = now << WORD | made
        return made

    def _strong_unordered(self, word: Word, thread: int, *, writes: bool) -> bool:
        """Is a weak access to a word not ordered after the strong ones?"""
        if writes and any(not self._knows(thread, other, time) for other, time in word.reads.items()):
            return True
        return any(not self._knows(thread, write.thread, write.time) and not self._seen(write, thread) for write in word.writes)

    def _seen(self, write: Write, thread: int) -> bool:
        """Has a thread that this one knows observed the write?"""
        return any(self._knows(thread, other, time) for other, time in write.observed.items())

    def _knows(self, thread: int, other: Thread, time: int) -> bool:
        """Does an access of another thread at some time come before what a thread of this CTA, or each, does now?"""
        cta, number = other
        if cta == self._cta.number and (number == thread or time < self._cta.met):
            return True
        layers = self._cta.known if thread == EVERY else self._mind(thread).known + self._cta.known
        return any(time <= layer.time(cta, number) for layer in layers)

    # ── notes ───────────────────────────────────────────────────────────────────────────

    def read(self) -> None:
        """Read the notes that are new."""
        count = int(self.room[:8].view(np.uint64)[0])
        for address, time, number, what, met in self._notes[self._read : count].tolist():
            self._read += 1
            if what == CTA:
                self._begin(time)
            elif what == RESUMES:
                self._resume(address, time)
            self._cta.met = met
            if what & ACCESS == FENCE:
                self._fence(number, address, time, what)
            elif what & (READS | WRITES):
                self._access(number, address, time, what)
            elif what == LANES:
                self._lanes([number * WARP + lane for lane in range(WARP) if address >> lane & 1], time)
            elif what == BARRIER:
                self._meet()

    def _begin(self, time: int) -> None:
        """A CTA begins."""
        self._cta = ToldCta(self.table.begin(time))

    def _resume(self, slot: int, time: int) -> None:
        """The CTA in a slot has just begun, or goes on after others."""
        if self.table.since == time:
            self._slots[slot] = self._cta
            return
        self._cta = self._slots[slot]
        self._cta.told.clear()  # others have entered in the table what they know
        self.table.run(time, self._cta.number)

    def _meet(self) -> None:
        """The threads of the CTA have met: each knows what all know, and have observed."""
        cta = self._cta
        for thread, mind in cta.minds.items():
            self._mind(thread)
            cta.known, mind.known, mind.observing = self._joined(cta.known, mind.known), (), []
        cta.known, cta.learned, cta.apart = self._joined(cta.known, cta.learned), (), False
        if cta.fencing:
            cta.fenced, cta.fencing = (cta.fenced + cta.fencing)[-MOST_FENCES:], []
        if cta.observing:
            cta.observed += cta.observing
            cta.observing = []
            cta.offered = None

    def _lanes(self, threads: list[int], time: int) -> None:
        """Lanes have met: each knows the others, and what they know."""
        self._cta.apart = True
        together: Layers = (Table.of({(self._cta.number, thread): time for thread in threads}),)
        minds = [self._mind(thread) for thread in threads]
        for mind in minds:
            together = self._joined(together, mind.known)
        for mind in minds:
            mind.known = together

    def _fence(self, warp: int, lanes: int, time: int, what: int) -> None:
        """Lanes execute a fence; what all threads have observed, those of a whole warp learn together."""
        wide, cta = bool(what & SC) and what >> RANK & RANKS >= WIDE, self._cta
        if wide and cta.offered is None:
            cta.offered = self._told_by(cta.observed)
        offered = cta.offered or () if wide else ()
        fence = Fence(self._read, (cta.number, warp), lanes, time, what, cta.met, cta.known, offered)
        cta.fences[warp].append(fence)
        if wide:
            cta.learned = self._joined(cta.learned, fence.offered)
            cta.fencing.append(fence)
            if lanes == FULL:
                cta.of_warps[warp] = self._joined(cta.of_warps.get(warp, ()), fence.offered)

    def _told_by(self, observed: list[Published]) -> Layers:
        """What the fence.sc of the grid before some writes know; the list keeps the last write of each chain."""
        observed[:] = {each.chain: each for each in sorted(observed, key=lambda each: each.place)}.values()
        for each in observed:
            if each.table is None:
                each.table = Table(partial(self._of_fences, each), each)
        return tuple(each.table for each in observed if each.table is not None)

    def _of_fences(self, last: Published) -> tuple[Times, Steps]:
        """What the fence.sc of the grid before a write, and those before it in its chain, know."""
        path, node = [last], last.before
        while node is not None and (node.table is None or not node.table.made):
            path.append(node)
            node = node.before
        times: Times = {}
        steps: Steps = {}
        if node is not None and node.table is not None:
            self._step(merge(times, steps, node.table))
        seen: set[int] = set()
        for each in reversed(path):
            self._step()
            known = [layer for (_, scope, is_sc), layers in each.heads.items() if is_sc and scope >= WIDE for layer in layers]
            for fence in each.fenced:
                own = steps.setdefault(fence.warp, {})
                own[fence.lanes] = max(own.get(fence.lanes, 0), fence.time)
                known += fence.known
            for layer in known:
                if id(layer) not in seen:
                    seen.add(id(layer))
                    self._step(merge(times, steps, layer))
        return shortened(times, steps, self._warps)

    def _mind(self, thread: int) -> Mind:
        """What a thread knows now, with the fences of its warp."""
        mind, fences = self._cta.minds[thread], self._cta.fences[thread // WARP]
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
            if fence.what & SC and rank >= WIDE and mind.observing:
                mind.known, mind.observing = self._joined(mind.known, self._told_by(mind.observing)), []
        if fence.what & RELEASES:
            me = self._cta.number, thread
            mine = Table.of({me: fence.time, (self._cta.number, EVERY): fence.met - EPOCH})
            mind.heads[me, rank, bool(fence.what & SC)] = self._joined(self._joined(fence.known, mind.known), (mine,))
            mind.spoke = fence.note

    def _access(self, thread: int, address: int, time: int, what: int) -> None:
        """A strong access of one element."""
        rank, size, me = what >> RANK & RANKS, what >> SIZE, (self._cta.number, thread)
        word = self._words.get(address)
        if word is None:
            word = self._words[address] = Word(size)
        word.mixed |= word.size != size
        last = word.writes[-1] if word.writes else None
        near = last is not None and not word.mixed and min(last.rank, rank) >= self._needed(last.thread)
        observed = word.published if near else None
        mind = self._mind(thread)
        if observed is not None:
            self._cta.observing.append(observed)
            mind.observing.append(observed)
            self._cta.apart = True
        if what & READS and last is not None and near:
            last.observed.setdefault(me, time)
            if observed is not None:
                self._collect(thread, mind, address, observed, rank if what & ACQUIRES else 0)
        if not what & WRITES:
            word.reads[me] = time
            return
        if what & RELEASES:
            mine = Table.of({me: time, (self._cta.number, EVERY): self._cta.met - EPOCH})
            known = self._joined(self._joined(self._cta.known, mind.known), (mine,))
            mind.released.setdefault(address, {})[me, rank, False] = known
            mind.spoke = self._read
        heads = mind.heads | mind.released.get(address, {})
        updates = bool(what & UPDATES)
        before = observed if updates else None
        word.published = None
        if heads or before is not None or self._cta.fenced:
            covers = self._covers(mind, me, before)
            word.published = Published.after(before, me, heads, self._cta.fenced if rank >= WIDE else (), covers=covers)
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
        left, cta, learned = [], self._cta.number, {id(each): each for each in mind.known}
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
        return NARROW if other[0] == self._cta.number else WIDE

    def _joined(self, one: Layers, other: Layers) -> Layers:
        """What two know together."""
        if not one or not other:
            return one or other
        found = tuple({id(each): each for each in one + other}.values())
        latest: dict[object, int] = {}
        for each in found:
            if each.last is not None:
                latest[each.last.chain] = max(latest.get(each.last.chain, 0), each.last.place)
        if latest:  # a table has all of those of earlier writes in its chain
            found = tuple(each for each in found if each.last is None or each.last.place == latest[each.last.chain])
        return found if len(found) <= MOST_LAYERS else self._few(found)

    def _few(self, found: Layers) -> Layers:
        """Some tables as few: all but the largest become one, so that no entry is joined often."""
        if len(found) <= MOST_LAYERS:
            return found
        found = tuple(sorted(found, key=lambda each: (each.last is not None, each.made and len(each.parts[0]))))
        times: Times = {}
        steps: Steps = {}
        small = len(found) - MOST_LAYERS // 2
        for layer in found[:small]:
            self._step(merge(times, steps, layer))
        return (Table.of(*shortened(times, steps, self._warps)), *found[small:])

    def _step(self, steps: int = 1) -> None:
        self._work += steps
        if self._work > MOST_WORK:
            raise Suspicious("threads tell each other more than there is room for")
