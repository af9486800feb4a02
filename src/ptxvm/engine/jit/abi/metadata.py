"""Metadata of compiled code: all that Python needs to run a kernel without translating it.

A cached kernel imports this when it starts, so these are named tuples, which Python creates faster than data classes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.analysis.program import Bound
from ptxvm.isa.effects import Verb
from ptxvm.machine.image import Image
from ptxvm.named_tuple import NamedTuple

if TYPE_CHECKING:
    from ptxvm.engine.jit.abi.host import HostCall

IN_ORDER = {"vprintf", "malloc", "free"}  # their effects show the order in which threads call them
LAUNCHING = ("cuda", "__cudaCDP2")  # prefixes of the functions of dynamic parallelism
SITE_SIZE = 32  # bytes of the record of an access site: four words
MOST_WALKS = 8  # walks along rows, whose records come after those of the access sites


class Site(NamedTuple):
    """An access site: an instruction by its number, the space, bytes, the span of its lanes, and whether it writes."""

    instruction: int
    space: Space
    size: int
    span: int
    writing: bool


class HostCallSite(NamedTuple):
    """A host call at an instruction, with the types of its operands and results.

    `host_call` is None where the cache entry could not hold it: translating the kernel again finds it.
    """

    instruction: int
    host_call: HostCall | None
    inputs: Sequence[Type]
    outputs: Sequence[Type]


class Weight(NamedTuple):
    """One count of a word of profiled code adds `factor` to a metric of an instruction, which is given by its number."""

    word: int
    instruction: int
    metric: str
    factor: int


class Batch(NamedTuple):
    """Requests that profiled code counts together: the word that says how many are kept, their first key, their row.

    They are accesses of `size` bytes a lane to a space.
    """

    kept: int
    keys: int
    row: int
    space: Space
    verb: Verb
    size: int


class SuspendedLayout(NamedTuple):
    """The layout of the records that say where suspended lanes wait.

    `waits` maps each node at which lanes wait to its instruction, and says whether that is a barrier.  `masks` is the
    offset, in the record of a warp, of the member masks of collectives.  At most `most_resident` CTAs run at once; each
    has a spill stack of `saved` bytes.  `states` is the offset of the states of warps from the number of the CTA, which
    comes after the records of its warps; 0 where only one CTA runs.  CTAs that need not be resident together may run grid-
    stride loops in step, `most_in_step` of them.
    """

    threads: int
    states: int
    cta_size: int
    most_resident: int
    saved: int
    most_in_step: int
    masks: int
    waits: dict[int, tuple[int, bool]]

    def resident(self, ctas: int) -> int:
        """How many CTAs of a grid are resident at once."""
        return min(ctas, max(self.most_resident, self.most_in_step))


class Facts(NamedTuple):
    """Metadata of one version of a kernel.

    Its sites and host calls come after those of the versions from which warps come to it.  `rows` is the block, whose rows
    may be padded with lanes that have no thread (`cfg.thread_rows`).  `frames` are the functions that it consists of: the
    number of each in the image, and its count of instructions; the number of an instruction counts through all frames.  All
    versions have at most `most_sites` sites.  `pointers` are the offsets in the bank of the parameters that may be pointers,
    `streamed` those with a bit in `cached_outputs`.  `stack` is 0 where no thread has
    local memory; `device_functions` are the functions of the device that the kernel calls.  With `cancels` threads may cancel
    clusters that have not begun, with `asks_spaces` they ask in which windows addresses lie.  `weights` say what the
    `counter_words` stand for, in which profiled code counts; `batches` are the requests that it counts together.  The threads
    of a `scalar` one may run one after the other, and that may be faster.
    """

    name: str
    function: int
    rows: tuple[int, int, int]
    warps: int
    record_size: int
    shared_size: int
    stack: int
    device_functions: frozenset[str]
    constants: dict[str, int]
    frames: Sequence[tuple[int, int]]
    most_sites: int
    pointers: Sequence[int]
    streamed: Sequence[int]
    sites: Sequence[Site]
    host_calls: Sequence[HostCallSite]
    suspended: SuspendedLayout
    cancels: bool
    asks_spaces: bool
    weights: Sequence[Weight] = ()
    counter_words: int = 0
    batches: Sequence[Batch] = ()
    scalar: bool = False

    @property
    def side_by_side(self) -> bool:
        """Do its CTAs run interleaved, since they may wait for each other?"""
        return self.suspended.most_resident > 1

    @property
    def in_order(self) -> bool:
        """Must its CTAs run in order?  Otherwise printed text and heap blocks would depend on the schedule."""
        if self.side_by_side or self.cancels or not IN_ORDER.isdisjoint(self.device_functions) or self.launches:
            return True
        return any(getattr(each.host_call, "in_order", False) for each in self.host_calls)

    @property
    def launches(self) -> bool:
        """Can it launch grids?"""
        return any(name.startswith(LAUNCHING) for name in self.device_functions)

    def bound(self, image: Image, number: int) -> Bound:
        """An instruction by its number."""
        ends = list(accumulate(count for _, count in self.frames))
        at = bisect_right(ends, number)
        function, count = self.frames[at]
        return image.function_numbered(function).instructions[number - (ends[at] - count)]
