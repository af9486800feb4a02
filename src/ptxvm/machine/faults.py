"""Faults of accesses, before the engine adds the instruction and the thread."""

from __future__ import annotations

from ptxvm.analysis.program import Bound


class AccessFault(Exception):  # noqa: N818 - it becomes a `Fault`
    """An access that memory refuses; the engine adds the place and raises it as `diagnostics.errors.Fault`.

    `kind` is `out-of-bounds`, `misaligned`, `read-only`, `use-after-free`, `null-pointer`, `wrong-space`,
    `double-free`, `invalid-free` or `assertion`; `lane_index` is the index, in the arrays that the engine gave, of the
    first lane that did it.
    """

    def __init__(self, kind: str, message: str, address: int = 0, size: int = 0, lane_index: int = 0) -> None:
        super().__init__(message)
        self.kind, self.message, self.address, self.size, self.lane_index = kind, message, address, size, lane_index

    def at_lane(self, lane_index: int) -> AccessFault:
        """The same fault for another lane, for tests of one lane at a time."""
        return AccessFault(self.kind, self.message, self.address, self.size, lane_index)

    def placed(self, bound: Bound, lane: int) -> PlacedFault:
        """The fault with its instruction and the number of its lane in the cohort."""
        return PlacedFault(self, bound, lane)


class PlacedFault(AccessFault):
    """A refused access whose instruction and lane are known."""

    def __init__(self, fault: AccessFault, bound: Bound, lane: int) -> None:
        super().__init__(fault.kind, fault.message, fault.address, fault.size, fault.lane_index)
        self.bound, self.lane = bound, lane


def plural(count: int, noun: str = "byte") -> str:
    """`1 byte`, `4 bytes`."""
    return f"{count} {noun}" + "s" * (count != 1)
