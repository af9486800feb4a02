"""The constant distances of the lanes of an affine address, and the chunks of lanes that are contiguous or at one address."""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.ir.lane_values import Affine, Pattern, sums

LEAST = 8  # lanes of a chunk


@dataclass(frozen=True, slots=True)
class LaneOffsets:
    """The constant distances of the lanes from a base: the least, the span to the greatest, and all."""

    least: int
    span: int
    offsets: Pattern

    @classmethod
    def of(cls, raw: Affine, width: int) -> LaneOffsets | None:
        """The offsets of an affine address; None if a distance is known only at run time."""
        offsets = constant_offsets(raw, width)
        if offsets is None:
            return None
        return cls(min(offsets), max(offsets) - min(offsets), offsets)

    def fits(self, size: int) -> bool:
        """Are all distances between lanes multiples of the size?"""
        return all((n - self.least) % size == 0 for n in self.offsets)


def constant_offsets(raw: Affine, width: int) -> Pattern | None:
    """The distance of each lane from the base, if all are constant."""
    return None if raw.moving else sums(0, raw.fixed, width)


@dataclass(frozen=True, slots=True)
class Chunk:
    """The lanes `first` to `first + count` of an access, at contiguous addresses or all at one."""

    first: int
    count: int
    contiguous: bool
    offset: int  # the constant part of the address of its first lane
    steps: tuple[tuple[int, str], ...]  # the scalars that are added, each with its factor


def pieces(raw: Affine, size: int, width: int) -> list[Chunk] | None:
    """The access as the fewest chunks of equal length; None for a gather or scatter."""
    fixed, moving = sums(0, raw.fixed, width), raw.moving
    count = width
    while count >= LEAST:
        found = []
        for first in range(0, width, count):
            if (piece := _piece(fixed, moving, first, count, size)) is None:
                break
            found.append(piece)
        else:
            return found
        count //= 2
    return None


def _piece(fixed: Pattern, moving: Sequence[tuple[Pattern, str]], first: int, count: int, size: int) -> Chunk | None:
    """A chunk of lanes that differ by constants only, at one address or contiguous."""
    end, steps = first + count, []
    for pattern, u in moving:
        factor = pattern[first]
        if pattern[first:end].count(factor) != count:
            return None
        if factor:
            steps.append((factor, u))
    own = fixed[first:end]
    contiguous = own == tuple(range(own[0], own[0] + size * count, size))
    if contiguous or own.count(own[0]) == count:
        return Chunk(first, count, contiguous=contiguous, offset=own[0], steps=tuple(steps))
    return None
