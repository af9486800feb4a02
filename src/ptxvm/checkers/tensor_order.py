"""Races on tensor memory: accesses of blocks of cells that nothing orders (PTX 9.7.16.6).

Products, copies and shifts are accesses of the agent of their thread, which a commit and its mbarrier make known to others.
Those of one thread follow each other, but products with different accumulators do not: the manual lists fewer pairs, and what
compilers write relies on more.  Before `tcgen05.wait` no thread knows a load or store, not even its own thread.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import field

import numpy as np

from ptxvm.algebra.asynchronous import AsyncKind
from ptxvm.analysis.program import Bound
from ptxvm.checkers.clocks import TENSOR_MEMORY, Ints
from ptxvm.checkers.copy_agents import Agents
from ptxvm.checkers.patterns import Patterns
from ptxvm.checkers.race_pair import HAZARDS
from ptxvm.dataclass import dataclass
from ptxvm.isa.effects import Verb
from ptxvm.machine.events import Threads
from ptxvm.machine.tensor_blocks import CellBlock
from ptxvm.named_tuple import NamedTuple

MOVES = (AsyncKind.TENSOR_LOAD, AsyncKind.TENSOR_STORE)
HOPS = 4  # accesses between two that order them


@dataclass(eq=False, slots=True)
class BlockUse:
    """An access to a block by threads: a whole warp, or one thread whose agent does it.

    `stamps` are the clocks of the threads when it ended, or that of the agent; None before its wait.  `issued` is the clock
    of the thread that asked the agent.  `after` are accesses that it comes after.
    """

    bound: Bound
    kind: AsyncKind | None
    threads: Threads
    block: CellBlock
    stamps: Ints | None
    issued: int = 0
    after: list[BlockUse] = field(default_factory=list)

    @property
    def operation(self) -> str:
        """The access in words."""
        if self.kind not in MOVES:
            return "asynchronous access" if self.block.reads and self.block.writes else f"asynchronous {self.verb}"
        return f"{self.verb} that has not been waited for" if self.stamps is None else self.verb

    @property
    def verb(self) -> str:
        """`read` or `write`."""
        return Verb.WRITE if self.block.writes else Verb.READ


class TensorRace(NamedTuple):
    """Two accesses of cells that nothing orders, the earlier one first."""

    earlier: BlockUse
    later: BlockUse
    collected: bool  # would a fence make the earlier one known?

    @property
    def hazard(self) -> str:
        """RAW, WAR or WAW."""
        later = self.later.block
        return HAZARDS[self.earlier.block.writes, later.writes and not (later.reads and self.earlier.block.writes)]

    @property
    def missing(self) -> str:
        """The synchronisation that would order them."""
        if self.collected:
            return "tcgen05.fence::after_thread_sync behind the wait, which is relaxed"
        if self.earlier.kind in MOVES:
            wait = f"tcgen05.wait::{'ld' if self.earlier.kind is AsyncKind.TENSOR_LOAD else 'st'}"
            if self.earlier.stamps is None:
                return f"{wait} after the {self.earlier.verb}, before the threads synchronise"
            return "a barrier, or an mbarrier, between the two"
        return "tcgen05.commit after the first, and waiting for its mbarrier before the second"


class TensorOrder:
    """The accesses to the tensor memory of each CTA, which its first thread names."""

    def __init__(self, patterns: Patterns, agents: Callable[[], Agents], report: Callable[[TensorRace], None]) -> None:
        self.patterns, self.clocks, self.agents, self.report = patterns, patterns.clocks, agents, report
        self._uses: dict[int, list[BlockUse]] = defaultdict(list)

    def started(self, bound: Bound, kind: AsyncKind | None, cta: int, threads: Threads, blocks: Sequence[CellBlock]) -> None:
        """Threads have started work on tensor memory."""
        agents = self.agents()
        of_agents = kind is AsyncKind.TENSOR
        stamps = agents.now(agents.of(threads, AsyncKind.TENSOR)) if of_agents else self.clocks.now[threads].copy()
        issued = int(self.clocks.now[threads[0]])
        fresh = [BlockUse(bound, kind, threads, block, None if kind in MOVES else stamps, issued) for block in blocks]
        uses = self._uses[cta]
        for use in fresh:
            uses[:] = [each for each in uses if not self._supersedes(use, each, uses)]
        uses += fresh
        if kind is None:
            uses[:] = [each for each in uses if not each.block.overlaps(blocks[0])]

    def _supersedes(self, use: BlockUse, earlier: BlockUse, uses: Sequence[BlockUse]) -> bool:
        """Compare an access with an earlier one; returns whether the earlier one can be dropped."""
        if not use.block.overlaps(earlier.block):
            return False
        if not self.precedes(earlier, use, uses):
            if use.block.conflicts(earlier.block):
                self.report(TensorRace(earlier, use, self._collected(earlier, use.threads)))
            return False
        if use.block.covers(earlier.block) and (use.block.writes or not earlier.block.writes):
            return use.block.writes or use.kind is earlier.kind
        use.after.append(earlier)
        return False

    def precedes(self, earlier: BlockUse, later: BlockUse, uses: Sequence[BlockUse], hops: int = HOPS) -> bool:
        """Is an access ordered before another, perhaps by others among `uses`?"""
        if self._pipelined(earlier, later) or self._known(earlier, later.threads):
            return True
        if not hops:
            return False
        return any(earlier in each.after and self.precedes(each, later, uses, hops - 1) for each in uses)

    def _pipelined(self, earlier: BlockUse, later: BlockUse) -> bool:
        """Are both done by the agent of a thread, or of threads in order, one after the other?"""
        if {earlier.kind, later.kind} != {AsyncKind.TENSOR}:
            return False
        one, other = earlier.block, later.block
        if one.accumulates != other.accumulates and earlier.bound.i.of.name == later.bound.i.of.name:
            return False
        (first,), (second,) = earlier.threads.tolist(), later.threads.tolist()
        return first == second or self.clocks.knows_of_kind(TENSOR_MEMORY, second, first, earlier.issued)

    def _known(self, earlier: BlockUse, threads: Threads) -> bool:
        """Does one of some threads, which execute an instruction together, know an access?"""
        if earlier.stamps is None:
            return False
        others = self._actors(earlier)
        mine, theirs = threads.repeat(len(others)), np.tile(others, len(threads))
        unknown = self.clocks.unknown(mine, theirs, np.tile(earlier.stamps, len(threads))) & (mine != theirs)
        return not unknown.all() or any(
            self.clocks.knows_of_kind(TENSOR_MEMORY, thread, other, stamp)
            for thread in threads.tolist()
            if self.clocks.part(thread, TENSOR_MEMORY)
            for other, stamp in zip(others.tolist(), earlier.stamps.tolist(), strict=True)
        )

    def _collected(self, earlier: BlockUse, threads: Threads) -> bool:
        """Has one of some threads collected an access, which its next fence makes known?"""
        if earlier.stamps is None:
            return False
        others = self._actors(earlier)
        homes = self.clocks.home(others)
        for thread in threads.tolist():
            collected = self.patterns.collected(thread)
            for other, home, stamp in zip(others.tolist(), homes.tolist(), earlier.stamps.tolist(), strict=True):
                rows = [collected[key] for key in (home, (TENSOR_MEMORY, 0, home)) if key in collected]
                if any(stamp <= row[other - home] for row in rows):
                    return True
        return False

    def _actors(self, use: BlockUse) -> Threads:
        """The threads whose clocks an access has: those that executed it, or the agent of one."""
        return self.agents().of(use.threads, AsyncKind.TENSOR) if use.kind is AsyncKind.TENSOR else use.threads

    def awaited(self, threads: Threads, kind: AsyncKind) -> None:
        """Threads have waited for their loads or stores."""
        waiting = set(threads.tolist())
        for uses in self._uses.values():
            for use in uses:
                if use.kind is kind and use.stamps is None and int(use.threads[0]) in waiting:
                    use.stamps = self.clocks.now[use.threads].copy()
