"""What Python must know of compiled code to run it, without its translation at hand.

This and what else a launch of a kept kernel needs is imported in its time: named tuples are made faster than data classes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from ptxvm.algebra.types import Type
from ptxvm.analysis.program import Bound
from ptxvm.machine.image import Image

if TYPE_CHECKING:
    from ptxvm.engine.jit.abi.host import HostCall

IN_ORDER = {"vprintf", "malloc", "free"}  # what they do shows the order in which threads come to them
LAUNCHING = ("cuda", "__cudaCDP2")  # how the functions begin by which kernels launch others


class Site(NamedTuple):
    """A place that accesses memory: an instruction, the space, bytes, how far the lanes are apart, and whether it writes."""

    instruction: int
    space: str
    size: int
    span: int
    writing: bool


class HostCallSite(NamedTuple):
    """Something that Python does at an instruction, and the types of what it takes and gives.

    `host_call` is None where it could not be kept with the code: it is then found by translating the kernel again.
    """

    instruction: int
    host_call: HostCall | None
    inputs: Sequence[Type]
    outputs: Sequence[Type]


class SuspendedLayout(NamedTuple):
    """Where the lanes of CTAs stand: in the records of warps, and where there are several CTAs or barriers, of CTAs.

    `waits` are the nodes at which lanes wait, with their instructions, and whether that is a barrier; `masks` is where
    in the record of a warp those are that lanes gave to a collective.  `most_resident` CTAs are under way at once;
    each has `saved` bytes for what calls keep.
    """

    threads: int
    partial_barriers: bool
    cta_size: int
    most_resident: int
    saved: int
    masks: int
    waits: dict[int, tuple[int, bool]]

    def resident(self, ctas: int) -> int:
        """How many CTAs of a grid are under way at once."""
        return min(ctas, self.most_resident)


class Facts(NamedTuple):
    """Of a version of a kernel and of those from which warps come to it, whose places and works have the first numbers.

    `frames` are the functions it is made of, by their numbers in the image, and how many instructions each has; an
    instruction's number counts through all of them.  There are at most `most_sites` in all versions.  `pointers` is where
    in the bank the parameters are that may be pointers, `streamed` those that have a bit in the record (`streams`).
    `stack` is 0 where no thread has local memory; `asks` are the functions of the device that it calls.
    """

    name: str
    function: int
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

    @property
    def side_by_side(self) -> bool:
        """Are its CTAs under way together, since they may wait for each other?"""
        return self.suspended.most_resident > 1

    @property
    def in_order(self) -> bool:
        """Must its CTAs run one after the other?  What they print would be mixed, and their blocks of memory too."""
        return self.side_by_side or not IN_ORDER.isdisjoint(self.device_functions) or self.launches

    @property
    def launches(self) -> bool:
        """May it launch grids?"""
        return any(name.startswith(LAUNCHING) for name in self.device_functions)

    def bound(self, image: Image, place: int) -> Bound:
        """An instruction by its number."""
        ends = list(accumulate(count for _, count in self.frames))
        at = bisect_right(ends, place)
        number, count = self.frames[at]
        return image.function_numbered(number).instructions[place - (ends[at] - count)]
