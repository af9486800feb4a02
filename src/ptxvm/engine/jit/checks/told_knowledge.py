"""The words in which `checks.told_order` says what threads know: tables of times, and what fences and strong writes tell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import field

from ptxvm.dataclass import dataclass
from ptxvm.isa.special_registers import WARP
from ptxvm.named_tuple import NamedTuple

Thread = tuple[int, int]  # a CTA, in the order in which they run, and the thread within it; of all its threads EVERY
Times = dict[Thread, int]  # the time up to which accesses are known
Steps = dict[tuple[int, int], dict[int, int]]  # of each warp of a CTA the last fence, by the lanes that executed it
Readers = dict[int, int]  # of each CTA that has read a cell the time of its last read
EVERY = -1
NO_STEPS: Steps = {}


class Table:
    """The times up to which accesses are known: of threads, and of the lanes of warps up to their fences.

    It is made when it is first asked, and does not change.  It may be what a write and all `before` it in its chain have told.
    """

    __slots__ = ("_make", "_parts", "last")

    def __init__(self, make: Callable[[], tuple[Times, Steps]] | None, last: Published | None = None) -> None:
        self._make, self.last = make, last
        self._parts: tuple[Times, Steps] | None = None

    @classmethod
    def of(cls, times: Times, steps: Steps | None = None) -> Table:
        """A table of known parts."""
        made = cls(None)
        made._parts = times, steps or NO_STEPS
        return made

    @property
    def made(self) -> bool:
        """Has it been asked?"""
        return self._parts is not None

    @property
    def parts(self) -> tuple[Times, Steps]:
        """The times of threads, and the fences of warps."""
        if self._parts is None and self._make is not None:
            self._parts, self._make = self._make(), None
        return self._parts or ({}, {})

    def time(self, cta: int, number: int) -> int:
        """Up to which time the accesses of a thread are known, or of all threads of a CTA."""
        times, steps = self.parts
        known = times.get((cta, EVERY), 0)
        if number < 0:
            return known
        fences = steps.get((cta, number // WARP), {})
        lane = max((time for lanes, time in fences.items() if lanes >> number % WARP & 1), default=0)
        return max(known, times.get((cta, number), 0), lane)


Layers = tuple[Table, ...]  # the latest of some tables
Heads = dict[tuple[Thread, int, bool], Layers]  # by the thread and the scope of its fence or release; is it a fence.sc?


def merge(times: Times, steps: Steps, table: Table) -> int:
    """Enter the latest times of a table in parts; returns how many it has."""
    more, fences = table.parts
    for key, time in more.items():
        if times.get(key, 0) < time:
            times[key] = time
    for warp, lanes_of in fences.items():
        own = steps.setdefault(warp, {})
        for lanes, time in lanes_of.items():
            if own.get(lanes, 0) < time:
                own[lanes] = time
    return len(more) + len(fences)


def shortened(times: Times, steps: Steps, warps: Sequence[int]) -> tuple[Times, Steps]:
    """The parts, with what is known of all threads of a CTA in place of what is known of each; `warps` are their lanes."""
    for cta in {cta for cta, _ in steps}:
        time = min(steps.get((cta, warp), {}).get(lanes, 0) for warp, lanes in enumerate(warps))
        if times.get((cta, EVERY), 0) < time:
            times[cta, EVERY] = time
    every = {cta: time for (cta, number), time in times.items() if number == EVERY}
    left = {key: time for key, time in times.items() if key[1] == EVERY or time > every.get(key[0], 0)}
    later: Steps = {}
    for warp, fences in steps.items():
        known = every.get(warp[0], 0)
        if found := {lanes: time for lanes, time in fences.items() if time > known}:
            later[warp] = found
    return left, later


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
    Writes that have observed each other are a chain, in which each has a place; `table` is what fence.sc learn of it.
    """

    thread: Thread
    heads: Heads
    before: Published | None = None
    covers: bool = False
    fenced: Sequence[Fence] = ()
    chain: object = None
    place: int = 0
    table: Table | None = None

    @classmethod
    def after(
        cls, before: Published | None, thread: Thread, heads: Heads, fenced: Sequence[Fence], *, covers: bool
    ) -> Published:
        """What a write has published that has observed another one, or none."""
        chain, place = (object(), 0) if before is None else (before.chain, before.place + 1)
        return cls(thread, heads, before, covers, fenced, chain, place)


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
    """What a thread of the CTA knows beside what all know, what it has observed since they met, and what it has to tell."""

    known: Layers = ()
    observing: list[Published] = field(default_factory=list)
    heads: Heads = field(default_factory=dict)
    released: dict[int, Heads] = field(default_factory=dict)  # by the address of the word
    pending: list[Published] = field(default_factory=list)
    pending_at: dict[int, list[Published]] = field(default_factory=dict)
    taken: dict[Published, int] = field(default_factory=dict)  # what it has learned, and at which note
    spoke: int = -1  # the note of its last fence or release
    fences: int = 0  # the next of the fences of its warp


@dataclass(eq=False, slots=True)
class ToldCta:
    """What the threads of a CTA know, by its number in the order in which CTAs begin; `met` is when they met last.

    `apart` says that some of them may know since then what others do not.

    All of them know `known`, and have `observed` what fence.sc learn `offered` from, which is None before one asks; some are
    `observing` more since they met, and fence.sc have told some of them what they have `learned`.  The fence.sc of the CTA are
    `fenced` until it met last, and `fencing` since then.  `told` is the stamp of what is in the table, by the tables that it is
    from, which must stay.
    """

    number: int
    met: int = 0
    apart: bool = False
    known: Layers = ()
    observed: list[Published] = field(default_factory=list)
    offered: Layers | None = ()
    observing: list[Published] = field(default_factory=list)
    learned: Layers = ()
    fenced: list[Fence] = field(default_factory=list)
    fencing: list[Fence] = field(default_factory=list)
    minds: dict[int, Mind] = field(default_factory=lambda: defaultdict(Mind))
    fences: dict[int, list[Fence]] = field(default_factory=lambda: defaultdict(list))
    told: dict[tuple[int, ...], tuple[int, Layers]] = field(default_factory=dict)
    of_warps: dict[int, Layers] = field(default_factory=dict)  # what a fence.sc has told all lanes of a warp
