"""The counter of a launch: an engine tells it what groups of lanes do, and it adds that up for each instruction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Bound, Function
from ptxvm.dataclass import dataclass
from ptxvm.isa.arithmetic import float_operations
from ptxvm.isa.effects import Collective, Jump, Verb
from ptxvm.profile.metrics import COUNTED, POSITION, WIDTHS, WORDS
from ptxvm.profile.warp_accesses import Ints, contention, global_traffic, requests, shared_traffic

Counts = npt.NDArray[np.int64]
"""The counted metrics of an instruction, each at its `POSITION`."""

APART = 256  # bytes: for the counters allocations begin at multiples of it, as those of cudaMalloc do
ARRIVALS = frozenset({Collective.BARRIER, Collective.ARRIVAL, Collective.CLUSTER_BARRIER, Collective.CLUSTER_ARRIVAL})
BRANCHES = frozenset({Jump.GOTO, Jump.SWITCH})


@dataclass(eq=False)
class Counter:
    """Counts what groups of lanes do; each method is called for lanes of several warps at once."""

    _executed: dict[tuple[Function, int, int], list[int]] = field(default_factory=dict)
    _counts: dict[Bound, Counts] = field(default_factory=dict)

    def executed(self, function: Function, start: int, end: int, warps: int, lanes: int) -> None:
        """Groups of lanes of so many warps have executed instructions `start` to `end` of a function."""
        found = self._executed.setdefault((function, start, end), [0, 0])
        found[0] += warps
        found[1] += lanes

    def guarded(self, bound: Bound, off: int) -> None:
        """So many active lanes have passed an instruction by: its guard did not hold."""
        self._add(bound, thread_inst_executed_true=-off)

    def branched(self, bound: Bound, divergent: int) -> None:
        """The lanes of so many warps are at several places after a branch."""
        self._add(bound, divergent_branches=divergent)

    def accessed(
        self, bound: Bound, space: Space, verb: Verb, size: int, warps: Ints, lanes: Ints, addresses: Ints
    ) -> None:  # fmt: skip
        """Lanes have accessed `size` bytes each: the warp of each, its number in the warp, and its address.

        An address in global memory counts from a multiple of 256, one in shared memory from bank 0.
        """
        name = f"{space}_{WORDS[verb]}"
        found = {f"{name}_requests": requests(warps), f"{name}_bytes": size * len(addresses)}
        if space is Space.GLOBAL:
            traffic = global_traffic(warps, addresses, size)
            found |= {
                f"{name}_sectors": traffic.sectors,
                f"{name}_sectors_ideal": traffic.ideal,
                f"{name}_lines": traffic.lines,
            }
        elif space is Space.SHARED:
            passes = shared_traffic(warps, lanes, addresses, verb, size)
            found |= {f"{name}_wavefronts": passes.wavefronts, f"{name}_wavefronts_ideal": passes.ideal}
        if verb is Verb.UPDATE:
            rivals = contention(warps, addresses)
            found |= {"atomic_operations": len(addresses), "atomic_addresses": rivals.addresses, "atomic_steps": rivals.steps}
        self._add(bound, **found)

    def copied(self, bound: Bound, size: int) -> None:
        """A bulk or tensor copy moves so many bytes."""
        self._add(bound, bulk_copy_bytes=size)

    def sampled(self, bound: Bound, warps: int) -> None:
        """So many warps have asked the texture unit."""
        self._add(bound, texture_requests=warps)

    def _add(self, bound: Bound, **counts: int) -> None:
        row = self._counts.get(bound)
        if row is None:
            row = self._counts[bound] = no_counts()
        for name, count in counts.items():
            row[POSITION[name]] += count

    def counts(self) -> dict[Bound, Counts]:
        """The counted metrics of every instruction that was executed."""
        found = {bound: row.copy() for bound, row in self._counts.items()}
        for (function, start, end), (warps, lanes) in self._executed.items():
            for bound in function.instructions[start:end]:
                row = found.setdefault(bound, no_counts())
                row[POSITION["inst_executed"]] += warps
                row[POSITION["thread_inst_executed"]] += lanes
                row[POSITION["thread_inst_executed_true"]] += lanes
        return completed(found)


def no_counts() -> Counts:
    """The counts of an instruction that has done nothing."""
    return np.zeros(len(COUNTED), np.int64)


def completed(counts: dict[Bound, Counts]) -> dict[Bound, Counts]:
    """The counts of instructions, with the metrics that follow from how often they were executed."""
    for bound, row in counts.items():
        for name, cause, factor in consequences(bound):
            row[POSITION[name]] += factor * row[POSITION[cause]]
    return counts


def consequences(bound: Bound) -> Iterator[tuple[str, str, int]]:
    """The metrics that follow from the declaration of an instruction: each with the metric that it is so many times."""
    summary, floats = bound.summary, float_operations(bound.i)
    if floats.operations and floats.bits in WIDTHS:
        yield f"fp{floats.bits}_operations", "thread_inst_executed_true", floats.operations
    if summary.jump in BRANCHES:
        yield "branches", "inst_executed", 1
    if summary.collective in ARRIVALS:
        yield "barriers", "inst_executed", 1
    if summary.multiply_adds:
        yield "tensor_operations", "inst_executed", 2 * summary.multiply_adds


__all__ = ["APART", "Counter", "Counts", "completed", "consequences", "no_counts"]
