"""Misuse of barriers: warps that diverge at one, counts that do not agree, masks that name the wrong lanes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt

from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.isa.cta_barrier import aligned, reduction
from ptxvm.isa.special_registers import WARP
from ptxvm.isa.summary import only_synchronises_lanes
from ptxvm.machine.events import BarrierKey, Masks, Scene, Threads
from ptxvm.machine.faults import plural


def diverged(groups: Sequence[tuple[Bound, Threads]], scene: Scene) -> Iterator[tuple[Bound, int, str]]:
    """Warps whose lanes came to an aligned barrier only in part: the instruction, a lane, and the message."""
    size = scene.shape.threads
    together: dict[Bound, list[Threads]] = {}
    for bound, threads in groups:
        together.setdefault(bound, []).append(threads)
    for bound, parts in together.items():
        if not aligned(bound.i):
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
    """The count and kind of the first arrival at a barrier in a phase, and the threads that have come."""

    count: int | None
    line: int
    how: str
    arrived: set[int] = field(default_factory=set)


def described(bound: Bound) -> str:
    """The kind of an arrival: a reduction, or none."""
    operation = reduction(bound.i)
    return f"a reduction (.red.{operation})" if operation else "no reduction"


class BarrierCounts:
    """The thread counts with which instructions arrive at the barriers of a CTA (PTX 9.7.13.1)."""

    def __init__(self) -> None:
        self._expected: dict[BarrierKey, Expected] = {}

    def joined(
        self, key: BarrierKey, how: str, line: int, threads: Threads, count: int | None, size: int
    ) -> Iterator[tuple[str, str]]:
        """Threads arrive at a barrier, in a CTA of `size` threads: findings about the kind of arrival and about the count."""
        first = self._expected.setdefault(key, Expected(count, line, how))
        again = not first.arrived.isdisjoint(threads.tolist())
        first.arrived.update(threads.tolist())
        if how != first.how:
            yield "invalid-barrier", f"{how} here and {first.how} at line {first.line} meet at barrier {key[1]} in one phase"
        if said := self._miscounted(first, key[1], count, size, again=again):
            yield "barrier-count", said

    def _miscounted(self, first: Expected, number: int, count: int | None, size: int, *, again: bool) -> str:
        arrived = WARP * len({thread % size // WARP for thread in first.arrived})
        capacity = -(-size // WARP) * WARP
        if count is not None and count % WARP:
            return f"{count} threads are expected at this barrier, which is no multiple of {WARP}"
        if count is not None and count > capacity:
            return f"{count} threads are expected at this barrier, and the CTA has {size}"
        if (count or capacity) != (first.count or capacity):
            return (
                f"{count or size} threads are expected at barrier {number} here, and {first.count or size} at line {first.line}"
            )
        if arrived > (count or capacity):
            return f"{arrived} threads come to barrier {number} in one phase, and {count or size} are expected"
        return f"a warp comes twice to barrier {number} in one phase, before the others have come" if again else ""

    def opened(self, key: BarrierKey, size: int) -> str:
        """A phase ends: the finding if the barrier is for the whole CTA, and some threads of the CTA had ended."""
        first = self._expected.pop(key, None)
        if first is None or first.count is not None or len(first.arrived) >= size:
            return ""
        return (
            f"{plural(size - len(first.arrived), 'thread')} of the CTA ended before this barrier, which is for all {size}: "
            "the hardware does not wait for them, and the manual does not promise that"
        )


def misnamed(bound: Bound, masks: Masks, lanes: npt.NDArray[np.int64], gone: Masks) -> Iterator[tuple[str, int, str]]:
    """Findings about the member masks of lanes at a collective: the kind, the position of a lane, and the message.

    `gone` has a bit for each ended lane of the warp; `bar.warp.sync` must not name such a lane (PTX 9.7.13.2).
    """
    own = masks >> lanes.astype(np.uint32) & np.uint32(1)
    for n in np.flatnonzero(own == 0).tolist()[:1]:
        yield "invalid-mask", n, f"lane {lanes[n]} is not in the mask {int(masks[n]):#010x} that it gives"
    if only_synchronises_lanes(bound.i):
        for n in np.flatnonzero(masks & gone).tolist()[:1]:
            yield (
                "invalid-mask",
                n,
                f"the mask {int(masks[n]):#010x} names lanes that ended before: {int(masks[n] & gone[n]):#010x}",
            )


def needs_whole_warps(bound: Bound) -> bool:
    """Does the collective imply all lanes, as matrix instructions do (PTX 9.7.14)?"""
    return "membermask" not in bound.operands


def whole(masks: Masks, threads: Threads, gone: Masks, size: int) -> Iterator[tuple[str, int, str]]:
    """Findings about lanes at a collective for whole warps, in a CTA of `size` threads."""
    missing = masks & (gone | ~present(threads, size))
    for n in np.flatnonzero(missing).tolist()[:1]:
        said = f"this needs all {WARP} lanes of the warp, and some have ended or are none of the CTA: {int(missing[n]):#010x}"
        yield "incomplete-warp", n, said


def present(threads: Threads, size: int) -> Masks:
    """The mask of existing lanes in the warp of each thread, in a CTA of `size` threads."""
    lanes = np.minimum(size - threads // WARP * WARP, WARP)
    return ((np.int64(1) << lanes) - 1).astype(np.uint32)


def absent(threads: Threads, lanes: Masks, members: Masks, gone: Masks, size: int) -> str:
    """The reason why the first of these threads must not read the value of its source lane."""
    lane, bit = int(lanes[0]) % WARP, 1 << int(lanes[0]) % WARP
    if not int(present(threads, size)[0]) & bit:
        why = f"which is none of the {size} threads of the CTA"
    elif int(gone[0]) & bit:
        why = "which has ended"
    else:
        why = f"which is not among the lanes that take part: {int(members[0]):#010x}"
    return f"lane {int(threads[0]) % WARP} reads from lane {lane}, {why}; what it gets is not defined"
