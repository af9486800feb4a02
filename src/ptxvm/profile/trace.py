"""The trace of a launch: what chosen threads did, instruction by instruction, with the values that they read and wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from math import prod
from typing import TypeAlias

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.isa.effects import Verb
from ptxvm.isa.special_registers import WARP
from ptxvm.named_tuple import NamedTuple

Extent = tuple[int, int, int]

Which: TypeAlias = int | Sequence[int]
"""A CTA of a grid, or a thread of a CTA: its number, x first, or its coordinates."""

LIMIT = 1000


@dataclass(frozen=True, slots=True)
class Datum:
    """A value that an instruction read or wrote, for each lane of the warp that had it.

    `text` is the operand as it stands in the code.  `bits` has the value by lane; `places` has NAME+OFFSET of those that are
    addresses of memory.
    """

    text: str
    type: Type
    bits: dict[int, int]
    places: dict[int, str]


class Located(NamedTuple):
    """Where an access is: the space and the name of the memory, and the offset in bytes.

    `distance` is the same from a place that is a multiple of 256 bytes on a GPU, or bank 0.
    """

    space: Space
    name: str
    offset: int
    distance: int

    def __str__(self) -> str:
        return f"{self.name}+{self.offset}" if self.name else hex(self.offset)


@dataclass(frozen=True, slots=True)
class Touched:
    """An access to memory: where it is, by lane of the warp, and the bits of its elements.

    `values` has those that were read or written; of an atomic the value before and the one after it, and its
    operands.
    """

    verb: Verb
    space: Space
    type: Type
    count: int
    located: dict[int, Located]
    values: dict[int, tuple[int, ...]]

    @property
    def places(self) -> dict[int, str]:
        """NAME+OFFSET by lane of the warp."""
        return {lane: str(located) for lane, located in self.located.items()}

    @property
    def size(self) -> int:
        """Bytes of the access of a lane."""
        return self.type.bytes * self.count


class WarpName(NamedTuple):
    """A warp: the coordinates of its CTA, and its number there."""

    cta: Extent
    warp: int


@dataclass(slots=True)
class Step:
    """An instruction that lanes of a warp executed together, in the order of the schedule.

    `time` counts the instructions that the schedule issued before it, in all warps, and `end` those before it was over:
    an instruction that waits ends later than it begins.  `lanes` are its active lanes, `off` those of them whose guard did
    not hold.  `targets` are the lines at which lanes go on after a branch: 0 is the end of the code.
    """

    warp: WarpName
    time: int
    bound: Bound
    lanes: tuple[int, ...]
    off: frozenset[int] = frozenset()
    end: int = 0
    reads: list[Datum] = field(default_factory=list)
    writes: list[Datum] = field(default_factory=list)
    accesses: list[Touched] = field(default_factory=list)
    targets: dict[int, int] = field(default_factory=dict)

    @property
    def line(self) -> int:
        """The line of PTX."""
        return self.bound.line

    @property
    def text(self) -> str:
        """The instruction as it stands there."""
        return self.bound.text

    @property
    def function(self) -> str:
        """The function that it is in."""
        return self.bound.function.name if self.bound.function is not None else ""

    @property
    def on(self) -> list[int]:
        """The lanes that have done what the instruction says."""
        return [lane for lane in self.lanes if lane not in self.off]


class Trace:
    """What to record of a launch, `launch(..., trace=trace)`, and what was recorded, also where the launch had a fault.

    A thread of a CTA, a warp of a CTA (by its number), all warps of a CTA, or those of the grid.  `limit` is how many
    instructions of each warp are recorded; None records all.  `steps` has them, in the order of the schedule; `executed`
    counts those of each warp.  Grids that threads launch are not recorded.
    """

    def __init__(
        self, cta: Which | None = None, *, thread: Which | None = None, warp: int | None = None, limit: int | None = LIMIT
    ) -> None:
        if cta is None and (thread is not None or warp is not None):
            raise ValueError("a trace of a thread or warp names its CTA")
        if thread is not None and warp is not None:
            raise ValueError("a trace is of a thread or of a warp, not both")
        self.cta, self.thread, self.warp, self.limit = cta, thread, warp, limit
        self.thread_at: Extent | None = None  # the coordinates of the thread, when a launch has begun
        self.clear()

    def __repr__(self) -> str:
        return f"<Trace: {len(self.steps):,} of {sum(self.executed.values()):,} instructions of warps>"

    def clear(self) -> None:
        """Forget what was recorded."""
        self.clock = 0
        self.steps: list[Step] = []
        self.executed: dict[WarpName, int] = {}

    def begin(self, grid: Extent, block: Extent) -> None:
        """A launch begins; ValueError where it has no such CTA, thread or warp."""
        self.clear()
        self._cta = coordinates("CTA", self.cta, "grid", grid) if self.cta is not None else None
        self.thread_at = coordinates("thread", self.thread, "block", block) if self.thread is not None else None
        warps = -(-prod(block) // WARP)
        if self.warp is not None and not 0 <= self.warp < warps:
            raise ValueError(f"there is no warp {self.warp}: a block {block} has {warps}")
        self._block = block

    def follows(self, cta: Extent) -> range:
        """The threads of a CTA that are recorded, by number."""
        if self._cta not in (None, cta):
            return range(0)
        if self.thread_at is not None:
            x, y, z = self.thread_at
            number = x + self._block[0] * (y + self._block[1] * z)
            return range(number, number + 1)
        threads = range(prod(self._block))
        return threads if self.warp is None else threads[WARP * self.warp : WARP * (self.warp + 1)]

    def issued(self, warp: WarpName, bound: Bound, lanes: tuple[int, ...]) -> Step | None:
        """Lanes of a warp begin an instruction; None beyond the limit."""
        count = self.executed[warp] = self.executed.get(warp, 0) + 1
        if self.limit is not None and count > self.limit:
            return None
        self.steps.append(Step(warp, self.clock - 1, bound, lanes, end=self.clock))
        return self.steps[-1]

    def ended(self) -> None:
        """The CTAs that ran together with a recorded one have ended; what is raised here ends the launch."""


def coordinates(name: str, which: Which, of: str, extent: Extent) -> Extent:
    """A CTA of a grid, or a thread of a block; ValueError where there is none."""
    if isinstance(which, int):
        x, y, z = which % extent[0], which // extent[0] % extent[1], which // (extent[0] * extent[1])
    else:
        x, y, z = (*which, *(0,) * (3 - len(which)))
    if not all(0 <= n < size for n, size in zip((x, y, z), extent, strict=True)):
        raise ValueError(f"there is no {name} {which}: the {of} is {extent}")
    return x, y, z


__all__ = ["Datum", "Located", "Step", "Touched", "Trace", "WarpName", "Which"]
