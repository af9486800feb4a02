"""The pieces of an asynchronous transfer of one thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ptxvm.dataclass import dataclass

if TYPE_CHECKING:
    import numpy.typing as npt

    from ptxvm.machine.per_lane import Addresses

Operands = Mapping[str, Sequence[int]]
"""The operands of an instruction for one thread, by name."""


@dataclass(slots=True)
class Pieces:
    """The pieces of `unit` bytes that a transfer of one thread moves.

    `target` has the address of each in the space of the target.  It comes from `source`, or from `data`, a row of bytes for
    each piece; a copy that packs elements has more sources (`reductions.moved`).  Pieces that are not `present` are `fill`,
    or left as they are where that is None.  `amount` is the number of bytes that each mbarrier of `barriers` counts;
    `element` is the type of what is combined or converted.
    """

    unit: int
    target: Addresses
    source: Addresses | None = None
    data: npt.NDArray[np.uint8] | None = None
    present: npt.NDArray[np.bool_] | None = None
    fill: bytes | None = None
    amount: int = 0
    barriers: tuple[int, ...] = ()
    element: str = ""

    def repeats(self, other: Pieces) -> bool:
        """Does it move the same pieces, from and to the same places?"""
        pairs = (
            (self.target, other.target), (self.source, other.source), (self.data, other.data), (self.present, other.present),
        )  # fmt: skip
        return self.unit == other.unit and all(
            np.array_equal(mine, theirs) if mine is not None and theirs is not None else mine is theirs
            for mine, theirs in pairs
        )

    def split(self, parts: int) -> list[Pieces]:
        """Equal parts that follow each other: a multicast has one for each CTA that it goes to."""
        size = len(self.target) // max(parts, 1)
        slices = [slice(n * size, (n + 1) * size) for n in range(parts)]
        return [
            replace(
                self, target=self.target[each], source=None if self.source is None else self.source[each],
                data=None if self.data is None else self.data[each],
                present=None if self.present is None else self.present[each],
            )
            for each in slices
        ]  # fmt: skip

    def read(self) -> tuple[Addresses | None, npt.NDArray[np.intp]]:
        """The addresses that are read, and the positions of these pieces."""
        every = np.arange(len(self.target))
        if self.source is None:
            return None, every
        if self.present is None:
            return self.source, every
        some = np.flatnonzero(self.present)
        return self.source[some], some

    def filled(self, found: npt.NDArray[np.uint8], some: npt.NDArray[np.intp]) -> tuple[npt.NDArray[np.uint8], Addresses]:
        """The bytes of the pieces that are written, a row for each, and where they go; `found` are those of some pieces."""
        if len(some) == len(self.target):
            return found, self.target
        if self.fill is None:
            return found, self.target[some]
        rows = np.empty((len(self.target), self.unit), np.uint8)
        rows[:] = np.resize(np.frombuffer(self.fill, np.uint8), self.unit)
        rows[some] = found
        return rows, self.target
