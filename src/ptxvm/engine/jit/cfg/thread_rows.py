"""The mapping of threads to lanes: in which lanes of its warps the threads of a CTA run.

A warp is 32 consecutive threads (PTX 3.1).  Rows of 18 or 20 threads then begin at another lane in each warp, so that no
coordinate of a thread is affine in its lane, and neighbours in a row are no neighbours in memory for a vector.  Where no thread
can tell which others are in its warp, each row may begin at a lane of its own: rows are padded to a piece of a warp or to
whole warps, and nothing runs in the lanes behind a row.
"""

from __future__ import annotations

from functools import cached_property
from itertools import product
from math import prod

from ptxvm.analysis.flow import reads_and_writes
from ptxvm.analysis.program import Bound, Function
from ptxvm.dataclass import dataclass
from ptxvm.engine.call_targets import called
from ptxvm.engine.jit.abi.specialisation import Specialisation
from ptxvm.engine.jit.cfg import divergence_sources, thread_order
from ptxvm.engine.jit.cfg.kernel_analysis import KernelAnalysis
from ptxvm.engine.loops import innermost_loops
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.launch import Extent

WHOLE = (1 << WARP) - 1  # the mask of a warp with all its lanes
MOST_WARPS = 2  # in place of one: lanes that run nothing must not cost more than rows gain
PER_ACCESS = 16  # instructions of the innermost loops for each access that depends on the place of a thread: rows pay off there


@dataclass(frozen=True)
class ThreadRows:
    """The block of a launch, and the same with padded rows: what its threads take of the lanes of warps."""

    block: Extent
    lanes: Extent

    @property
    def padded(self) -> bool:
        """Are there lanes between the threads?"""
        return self.lanes != self.block

    @property
    def count(self) -> int:
        """The number of lanes from the first thread to the last one."""
        return prod(self.lanes)

    @property
    def warps(self) -> int:
        """The number of warps."""
        return -(-self.count // WARP)

    @property
    def has_whole_warps(self) -> bool:
        """Do all lanes of some warp begin?"""
        return WHOLE in self.masks

    @property
    def has_partial_warps(self) -> bool:
        """Do some lanes of a warp not begin?"""
        return any(mask != WHOLE for mask in self.masks)

    @cached_property
    def masks(self) -> tuple[int, ...]:
        """The lanes that begin, of each warp."""
        if not self.padded:
            whole, rest = divmod(self.count, WARP)
            return (WHOLE,) * whole + ((1 << rest) - 1,) * (rest > 0)
        found = [0] * self.warps
        across, down, _ = self.lanes
        for z, y, x in product(*map(range, reversed(self.block))):
            number = (z * down + y) * across + x
            found[number // WARP] |= 1 << number % WARP
        return tuple(found)


def thread_rows(analysis: KernelAnalysis, wanted: Specialisation) -> ThreadRows:
    """The lanes for the threads of a CTA: padded rows where they pay off and nobody can tell."""
    block = wanted.block
    lanes = padded_rows(block)
    possible = lanes != block and wanted.plain and not wanted.scalar
    return ThreadRows(block, lanes if possible and thread_order.warps_are_hidden(analysis) and _walks_rows(analysis) else block)


def padded_rows(block: Extent) -> Extent:
    """A block with its rows padded, so that coordinates are affine in lanes; the block itself where that makes too many."""
    x, y, z = block
    if y == z == 1:
        return block
    across = _padded(x, WARP)
    down = y if z == 1 else _padded(y, max(1, WARP // across))  # the rows of a warp
    padded = ThreadRows(block, (across, down, z))
    return padded.lanes if padded.warps <= MOST_WARPS * ThreadRows(block, block).warps else block


def _padded(count: int, whole: int) -> int:
    """The least piece of a whole, a power of two, that has so many; else the least multiple of the whole."""
    return min(1 << (count - 1).bit_length(), -(-count // whole) * whole)


def _walks_rows(analysis: KernelAnalysis) -> bool:
    """Are accesses that depend on the place of a thread a good part of its work?"""
    accesses = work = 0
    for function in called(analysis.image, analysis.function):
        counted = _hottest(function)
        lanes = divergence_sources.lane_dependent(function.instructions)
        accesses += sum(bool(bound.summary.accesses) and bool(reads_and_writes(bound)[0] & lanes) for bound in counted)
        work += len(counted)
    return accesses * PER_ACCESS >= work


def _hottest(function: Function) -> list[Bound]:
    """The instructions of the innermost loops; all where there are none."""
    code = function.instructions
    inner = [bound for first, last in innermost_loops(code) for bound in code[first : last + 1]]
    return inner or code
