"""Merged bounds checks: one comparison for all accesses of a node to a window whose addresses differ by constants.

The first access is compared for the lowest and the highest of them, whose constants are filled in when the node is complete.
All accesses of a node happen unless one faults.  So if the comparison fails, one of them is out of bounds: a side exit
restarts the node in the next version, which checks each access by itself.
"""

from __future__ import annotations

from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.ir.lane_values import Affine, Raw, Terms, wrapped
from ptxvm.engine.jit.memory.lane_offsets import LaneOffsets
from ptxvm.engine.jit.node.node import NodeBuilder

Key = tuple[int, tuple[int, int], str, Terms, int]


@dataclass(slots=True)
class ByteRange:
    """The bytes that accesses of one size touch, relative to the first of them."""

    number: int
    log: int
    elements: int  # of the size, that the window or variable holds
    first: int
    low: int
    high: int

    @property
    def texts(self) -> dict[str, str]:
        """The placeholders of its bounds in the lines of the node, and their values."""
        limit = max(self.elements - ((self.high - self.low) >> self.log), 0)
        return {f"@low.{self.number}@": str(self.low - self.first), f"@limit.{self.number}@": str(limit)}


class MergedRangeChecks:
    """The merged checks of a node for whole warps."""

    def __init__(self, at: NodeBuilder) -> None:
        self.at, self.code = at, at.code
        self._found: dict[Key, ByteRange] = {}

    def covers(self, low: Raw, size: int, part: tuple[int, int]) -> bool:
        """Does a merged check cover an access?  `part` is its part of the window: the first byte, and the count."""
        at = self.at
        if not at.full or at.kernel.shapeless or at.kernel.scalar or not isinstance(low, Affine):
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
            found = self._found[key] = ByteRange(len(self._found), size.bit_length() - 1, room // size, first, first, first)
            self._compare(found, low.base, box.least - begin)
        found.low, found.high = min(found.low, first), max(found.high, first + box.span)
        return True

    def _compare(self, range_: ByteRange, base: str, distance: int) -> None:
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
        """Fill in the bounds."""
        texts = {name: text for each in self._found.values() for name, text in each.texts.items()}
        if not texts:
            return
        for n, line in enumerate(self.code.lines):
            if "@l" in line:
                for name, text in texts.items():
                    line = line.replace(name, text)  # noqa: PLW2901
                self.code.lines[n] = line
