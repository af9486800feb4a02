"""Misuse of barriers: warps that diverge at one, counts that do not agree, masks that name the wrong lanes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxvm.analysis.program import Bound
from ptxvm.machine.events import Scene, Threads

WARP = 32


def aligned(bound: Bound) -> bool:
    """Must all lanes of a warp execute this together?  `bar` is `barrier….aligned` (PTX 9.7.13.1)."""
    return bound.node.opcode == "bar" or "aligned" in bound.node.words


def diverged(groups: Sequence[tuple[Bound, Threads]], scene: Scene) -> Iterator[tuple[Bound, int, str]]:
    """Warps that did not come whole to one aligned barrier: the instruction, a lane, and what is wrong."""
    size = scene.shape.threads
    together: dict[Bound, list[Threads]] = {}
    for bound, threads in groups:
        together.setdefault(bound, []).append(threads)
    for bound, parts in together.items():
        if not aligned(bound):
            continue
        threads = np.concatenate(parts) - scene.first
        warps, first, counts = np.unique(threads // size * 64 + threads % size // WARP, return_index=True, return_counts=True)
        for warp, at, count in zip(warps.tolist(), first.tolist(), counts.tolist(), strict=True):
            lanes = min(WARP, size - warp % 64 * WARP)
            if count < lanes:
                said = f"{count} of the {lanes} lanes of a warp came to this barrier, which needs all of them together"
                yield bound, int(threads[at]) + scene.first, said


@dataclass(slots=True)
class Expected:
    """What the first who came to a barrier said, and who has come."""

    count: int | None
    line: int
    come: set[int] = field(default_factory=set)


class BarrierCounts:
    """The counts with which threads come to the barriers of their CTAs (PTX 9.7.13.1)."""

    def __init__(self) -> None:
        self._expected: dict[Any, Expected] = {}

    def joined(self, key: Any, line: int, threads: Threads, count: int | None, size: int) -> Iterator[str]:
        """Threads of a CTA of some size come to a barrier: what is wrong with their count."""
        first = self._expected.setdefault(key, Expected(count, line))
        again = not first.come.isdisjoint(threads.tolist())
        first.come.update(threads.tolist())
        come = WARP * len({thread % size // WARP for thread in first.come})
        room = -(-size // WARP) * WARP
        if count is not None and count % WARP:
            yield f"{count} threads are expected at this barrier, which is no multiple of {WARP}"
        elif count is not None and count > room:
            yield f"{count} threads are expected at this barrier, and the CTA has {size}"
        elif (count or room) != (first.count or room):
            yield (
                f"{count or size} threads are expected at barrier {key[1]} here, and {first.count or size} at line {first.line}"
            )
        elif come > (count or room):
            yield f"{come} threads come to barrier {key[1]} in one phase, and {count or size} are expected"
        elif again:
            yield f"a warp comes twice to barrier {key[1]} in one phase, before the others have come"

    def opened(self, key: Any) -> None:
        """The next phase begins."""
        self._expected.pop(key, None)


def misnamed(
    bound: Bound, masks: npt.NDArray[np.uint32], lanes: npt.NDArray[np.int64], gone: npt.NDArray[np.uint32]
) -> Iterator[tuple[int, str]]:
    """What is wrong with the masks of lanes that come to a collective: the position of a lane, and what.

    `gone` has a bit for each lane of the warp that has ended, which `bar.warp.sync` must not name (PTX 9.7.13.2).
    """
    own = masks >> lanes.astype(np.uint32) & np.uint32(1)
    for n in np.flatnonzero(own == 0).tolist()[:1]:
        yield n, f"lane {lanes[n]} is not in the mask {int(masks[n]):#010x} that it gives"
    if bound.node.opcode == "bar":
        for n in np.flatnonzero(masks & gone).tolist()[:1]:
            yield n, f"the mask {int(masks[n]):#010x} names lanes that ended before: {int(masks[n] & gone[n]):#010x}"
