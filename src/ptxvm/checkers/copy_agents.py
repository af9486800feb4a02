"""Asynchronous work as accesses with an order of its own (PTX 8.9.1.1, 9.7.9.25.3).

Work comes after earlier operations of its thread.  It precedes nothing until the thread waits for its group, or until an
mbarrier signals its end.  So the accesses of a copy are those of an *agent*: no thread knows the accesses of an agent, not
even the thread that it works for.  Once a thread has waited for a group, they count as its own accesses, made at that time.

A wait orders what it waits for and nothing else, so a thread has several agents.  Each kind of work that ends in the order in
which it began, or in groups, has one, whose clock goes on with each group and with each arrival that follows the work.
Transfers that mbarriers count end in any order.  Those of a thread that one mbarrier counts in one phase are a *batch*, and one
agent does them.  It does another batch only after the thread knows the end of this one; until then further batches take further
agents.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from functools import reduce

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.asynchronous import AsyncKind
from ptxvm.checkers.clocks import Clocks, Knowledge, joined
from ptxvm.checkers.mbarrier_phases import Batch, Location, Phases
from ptxvm.checkers.shadow import AllocationShadow, Records
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.machine.events import Access, Offsets, Threads

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
GROUPED = frozenset({AsyncKind.COPY, AsyncKind.BULK, AsyncKind.PRODUCT})
"""The kinds of work whose groups a thread waits for."""
IN_ORDER = (*sorted(GROUPED), AsyncKind.TENSOR)
"""The kinds of work for which a thread has one agent each."""


@dataclass(slots=True)
class PendingCopies:
    """The accesses of copies under way; the arrays have an element for each thread."""

    shadow: AllocationShadow
    access: Access
    site: int
    writes: bool
    threads: Threads
    offsets: Offsets
    records: Records
    group: Ints
    kind: AsyncKind

    def of(self, some: Mask) -> PendingCopies:
        """The accesses of some threads."""
        return PendingCopies(
            self.shadow, self.access, self.site, self.writes, self.threads[some], self.offsets[some], self.records[some],
            self.group[some], self.kind,
        )  # fmt: skip


class Agents:
    """The agents of the threads of a launch."""

    def __init__(self, clocks: Clocks, phases: Phases) -> None:
        self.clocks, self.grids, self.phases = clocks, clocks.grids, phases
        self.begun: list[PendingCopies] = []
        self.groups = {kind: np.zeros(0, np.int64) for kind in AsyncKind}
        self._lines = [np.zeros(0, np.int64) for _ in IN_ORDER]  # in each of them the agent of each thread; 0 is none
        self._now = np.zeros(0, np.int64)  # the clock of each agent; 0 has done nothing
        self._posted: dict[tuple[int, AsyncKind], deque[tuple[int, Knowledge]]] = defaultdict(deque)
        self._batches: dict[tuple[int, Location], deque[Batch]] = defaultdict(deque)
        self._current: dict[int, Batch] = {}  # by thread: the batch of its last transfer
        self.grow()

    def grow(self) -> None:
        """Make room for the threads of new grids."""
        more = np.zeros(self.grids.threads - len(self.groups[AsyncKind.COPY]), np.int64)
        self.groups = {kind: np.concatenate([column, more]) for kind, column in self.groups.items()}
        self._lines = [np.concatenate([agents, more]) for agents in self._lines]

    # ── agents and their clocks ─────────────────────────────────────────────────────────

    def of(self, threads: Threads, kind: AsyncKind) -> Threads:
        """The agents that do work of a kind for some threads; of transfers that mbarriers count, the last of one thread."""
        if kind is AsyncKind.MBARRIER:
            return np.full(len(threads), self._current[int(threads[0])].agent)
        return self._in_line(threads, IN_ORDER.index(kind))

    def now(self, agents: Threads) -> Ints:
        """The clocks of agents."""
        return self._now[agents - self.grids.agents]

    def _in_line(self, threads: Threads, line: int) -> Threads:
        """The agents of some threads in a line, which has one for each thread."""
        if line == len(self._lines):
            self._lines.append(np.zeros(self.grids.threads, np.int64))
        found = self._lines[line][threads]
        if not found.all():
            for cta in np.unique(self.clocks.home(threads[found == 0])).tolist():
                self._add_to_line(line, cta)
            found = self._lines[line][threads]
        return found

    def _add_to_line(self, line: int, cta: int) -> None:
        """Number agents for the threads of a CTA, of which this is the first."""
        first, size = self.grids.add_agents(cta), self.grids.size(cta)
        if first is None:
            raise Unsupported("the check 'race' of so much asynchronous work under way at once in so large a grid")
        self._lines[line][cta : cta + size] = np.arange(first, first + size)
        at = first - self.grids.agents
        if at + size > len(self._now):
            self._now = np.concatenate([self._now, np.zeros(max(size, len(self._now)), np.int64)])
        self._now[at : at + size] = line < len(IN_ORDER)

    def _tick(self, agents: Threads) -> None:
        self._now[agents - self.grids.agents] += 1

    # ── groups ──────────────────────────────────────────────────────────────────────────

    def begin(self, pending: PendingCopies) -> None:
        """Work begins whose end a wait for its group makes known."""
        self.begun.append(pending)

    def grouped(self, threads: Threads, kind: AsyncKind) -> None:
        """Threads have completed groups."""
        self.groups[kind][threads] += 1
        if kind in GROUPED:
            self._tick(self.of(threads, kind))  # so that the records of two groups differ

    def awaited(
        self, threads: Threads, left: int, kind: AsyncKind, settle: Callable[[PendingCopies], None], *, reading: bool
    ) -> None:
        """Threads have waited for all but their last `left` groups: settle these copies, or only their reads."""
        waits = np.zeros(self.grids.threads, np.bool_)
        waits[threads] = True
        remaining = []
        for each in self.begun:
            done = waits[each.threads] & (each.group < self.groups[kind][each.threads] - left)
            if each.kind is kind and done.any() and not (reading and each.writes):
                settle(each.of(done))
                each = each.of(~done)  # noqa: PLW2901 - the rest of it
            if len(each.threads):
                remaining.append(each)
        self.begun = remaining

    # ── arrivals behind work, and transfers that mbarriers count ────────────────────────

    def posted(self, threads: Threads, kind: AsyncKind) -> None:
        """An mbarrier will be told the end of all work of a kind so far, and of what the threads know to have ended."""
        agents = self.of(threads, kind)
        for thread, stamp in zip(threads.tolist(), self.now(agents).tolist(), strict=True):
            self._posted[thread, kind].append((stamp, self._ended(thread)))
        self._tick(agents)

    def counted(self, thread: int, mbarrier: Location) -> None:
        """A thread starts a transfer that an mbarrier counts."""
        batches, phase = self._batches[thread, mbarrier], self.phases.number(mbarrier)
        if not batches or batches[-1].phase != phase:
            while batches and not batches[0].under_way:
                batches.popleft()
            agent = self._free(thread)
            self._tick(agent)
            batches.append(Batch(int(agent[0]), phase, self.clocks.row(agent, self.now(agent))))
        batch = self._current[thread] = batches[-1]
        batch.under_way += 1
        if batch.thread_knew != (number := self.clocks.number(thread)):
            batch.thread_knew, batch.knowledge = number, joined(batch.knowledge, self._ended(thread))

    def _free(self, thread: int) -> Threads:
        """The first agent of a thread whose last batch the thread knows to have ended."""
        line = len(IN_ORDER)
        while True:
            agent = self._in_line(np.array([thread], np.int64), line)
            last = int(self.now(agent)[0])
            if not last or self.clocks.knows(thread, int(agent[0]), last):
                return agent
            line += 1

    def _ended(self, thread: int) -> Knowledge:
        """The knowledge that a thread has of agents: work that it starts now comes after theirs."""
        known = self.clocks.further(np.array([thread], np.int64)) or {}
        return {key: row for key, row in known.items() if isinstance(key, int) and key >= self.grids.agents}

    def signalled(self, threads: Threads, kind: AsyncKind, mbarrier: Location) -> Knowledge | None:
        """An mbarrier is told the end of work: of a transfer of each thread, or of all work before its oldest arrival.

        Returns what that makes known at once; what batches make known the phase learns at its end.
        """
        if kind is AsyncKind.MBARRIER:
            for thread in threads.tolist():
                batch = next(each for each in self._batches[thread, mbarrier] if each.under_way)
                batch.under_way -= 1
                self.phases.counts(mbarrier, batch)
            return None
        posts = [self._posted[thread, kind].popleft() for thread in threads.tolist()]
        own = self.clocks.row(self.of(threads, kind), np.array([stamp for stamp, _ in posts], np.int64))
        return reduce(joined, (before for _, before in posts), own)
