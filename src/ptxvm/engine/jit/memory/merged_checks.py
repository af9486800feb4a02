"""Accesses of a window whose addresses differ by constants only: one comparison tells of all that a node does.

The first of them is compared for the lowest and the highest; they are put in when the node has been written to its
end.  All of a node's accesses happen, or an earlier one is wrong, so where the comparison fails, one of them is: the
warp begins the node again in the next version, which looks at each by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxvm.engine.jit.ir.lane_values import Affine, Raw, Terms, wrapped
from ptxvm.engine.jit.memory.addressing import LaneOffsets
from ptxvm.engine.jit.node.node import NodeBuilder

Key = tuple[int, tuple[int, int], str, Terms, int]


@dataclass(slots=True)
class Range:
    """What some accesses of a size touch, in bytes from the first one."""

    number: int
    log: int
    elements: int  # of the size that may be touched
    first: int
    low: int
    high: int

    @property
    def texts(self) -> dict[str, str]:
        """What stands for its ends while the node is being written."""
        limit = max(self.elements - ((self.high - self.low) >> self.log), 0)
        return {f"@low.{self.number}@": str(self.low - self.first), f"@limit.{self.number}@": str(limit)}


class Ranges:
    """Those of a node that whole warps run."""

    def __init__(self, at: NodeBuilder) -> None:
        self.at, self.code = at, at.code
        self._found: dict[Key, Range] = {}

    def covers(self, low: Raw, size: int, part: tuple[int, int]) -> bool:
        """Is an access compared together with others?  `part` is where in the window it may be: first byte, and how many."""
        at = self.at
        if not at.full or at.kernel.shapeless or not isinstance(low, Affine):
            return False
        box = LaneOffsets.of(low, at.width)
        begin, room = part
        if box is None or not box.fits(size) or isinstance(low.base, int) or begin % size:
            return False
        root, offset = self.code.sums.get(low.base, (low.base, 0))
        first = wrapped(offset + box.least, 32)
        key = size, part, root, low.terms, first % size
        found = self._found.get(key)
        if at.guard is not None or at.nested:  # not of all lanes, or not always
            return found is not None and found.low <= first and first + box.span <= found.high
        if found is None:
            if at.dirty:
                return False  # the node cannot begin again
            found = self._found[key] = Range(len(self._found), size.bit_length() - 1, room // size, first, first, first)
            self._compare(found, low.base, box.least - begin)
        found.low, found.high = min(found.low, first), max(found.high, first + box.span)
        return True

    def _compare(self, range_: Range, base: str, distance: int) -> None:
        code, number, log = self.code, range_.number, range_.log
        here = code.emit(f"add i32 {base}, {wrapped(distance, 32)}", pure=False)
        lowest = code.emit(f"add i32 {here}, @low.{number}@", pure=False)
        if log:
            lowest = code.intrinsic("i32", "llvm.fshr.i32", ("i32", lowest), ("i32", lowest), ("i32", str(log)))
        good = code.label()
        inside = code.emit(f"icmp ult i32 {lowest}, @limit.{number}@", pure=False)
        code.branch(inside, good, self.at.name("leave"), likely=True)
        code.block(good)
        self.at.leaves = True

    def settle(self) -> None:
        """Put the ends in."""
        texts = {name: text for each in self._found.values() for name, text in each.texts.items()}
        if not texts:
            return
        for n, line in enumerate(self.code.lines):
            if "@l" in line:
                for name, text in texts.items():
                    line = line.replace(name, text)  # noqa: PLW2901
                self.code.lines[n] = line
