"""One grid on several processes or machines: CTAs in ranges, each on its own copy of the arrays; their writes are joined.

Of several processes of this machine this one is the first, and runs ranges too.

That is right where no CTA depends on another.  `obstacle` looks at the instructions first.  Then recorded code tells which
bytes each range has read and written.  Where two ranges wrote a byte differently, or one read what another wrote,
that is a race: it is a finding, and nothing is joined.  Arrays that the kernel only reduces into begin with the neutral
element in each range, and the partial results are joined by the operation.  What cannot be cut runs whole, in this process.

Where all arrays that a kernel writes are only written, each CTA to a slice of its own (`own_slices`), no two ranges can race:
this process writes to the arrays themselves, and those of which each CTA writes its whole slice are not recorded.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np

from ptxvm.analysis.outputs import outputs, written_parameters
from ptxvm.analysis.reductions import Reduction, joinable
from ptxvm.api import Kernel
from ptxvm.campaign.byte_sets import ByteSet, are_apart
from ptxvm.campaign.cluster import Cluster, address_of, workers_that_fail
from ptxvm.campaign.declaration import CaseLimits
from ptxvm.campaign.grid_range import Blank, Joinable, Neutral, Paged, RangeAccesses, RangeWorkload, element, neutral
from ptxvm.campaign.obstacles import obstacle, reduced
from ptxvm.campaign.outcome import Job
from ptxvm.campaign.own_slices import Slice, own_slices
from ptxvm.campaign.page_server import PageServer, address_towards, reaches
from ptxvm.campaign.shared_file import SharedFile, shared
from ptxvm.campaign.work_sharing import WorkSharing
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Crash, Fault
from ptxvm.engine.jit.run.cta_distribution import processors
from ptxvm.machine import backing, options, settings
from ptxvm.machine.cluster_of_machines import Client
from ptxvm.machine.device import allocation_at
from ptxvm.machine.device_array import DeviceArray
from ptxvm.machine.environment import LAUNCHES
from ptxvm.machine.events import Finding
from ptxvm.machine.launch import LaunchShape, launch_shape
from ptxvm.machine.per_lane import Array
from ptxvm.machine.result import LaunchResult

PATIENCE = CaseLimits(1e6)  # a grid takes as long as it takes
SHARE = 2  # a range is this part of what would be a worker's own of the CTAs that are left ...
LAST = 32  # ... down to this part of the whole ...
FEW = 256  # ... and to so many CTAs
PIECE = 1 << 24  # bytes that a range writes of arrays that are not recorded: its memory is soon used again
LARGE = 1 << 20  # bytes of an array, of which a cluster is sent pages
NOBODY, SEVERAL = -1, -2
NO_ARRAYS: Mapping[int, object] = MappingProxyType({})


log = logging.getLogger("ptxvm.campaign")


@dataclass(frozen=True)
class SpreadLaunch:
    """The result of a launch on several processes: `ranges` are the CTAs of each, empty where it ran whole, for a `reason`."""

    result: LaunchResult
    ranges: tuple[range, ...] = ()
    reason: str = ""


def spread(
    kernel: Kernel,
    grid: options.Extent,
    block: options.Extent,
    args: Sequence[object],
    *,
    shared: int = 0,
    workers: int | None = None,
    scheduler: str | Client | None = None,
) -> SpreadLaunch:
    """Run a grid in ranges of CTAs, on processes of this machine or on a Dask cluster, and join what they wrote.

    `workers` is the number of processes, of which this one is the first, by default one for each core.  `scheduler` is the
    address of Dask's, or a client of it.  The other arguments are those of `Kernel.launch`.  Where two ranges race,
    `result.findings` says where, and the arrays stay as they were.  A fault is that of the first CTAs that have one; what
    others have written may stay, as in a launch.  What cannot be cut runs whole in this process, and `reason` says why.
    """
    workers = os.cpu_count() or 1 if workers is None else options.count("workers", workers)
    shape = launch_shape(grid, block)
    arrays = [each.array if isinstance(each, DeviceArray) and each.memory is kernel.module.memory else each for each in args]
    reason = obstacle(kernel, arrays)
    if not reason:
        slices = slices_of(kernel, shape, arrays)
        cuts = cut(shape.ctas, workers, PIECE // max(1, sum(each.step for each in slices.values())) if slices else shape.ctas)
        found = run_ranges(kernel, (shape.grid, shape.block, shared), arrays, cuts, slices, (workers, scheduler))
        reason = next((each.doubt for each in found if each.doubt), "") or accessed_elsewhere(found)
        if not reason:
            return SpreadLaunch(joined(kernel, arrays, cuts, found), tuple(cuts))
    return SpreadLaunch(kernel.launch(shape.grid, shape.block, args, shared=shared), (), reason)


def launch_on(
    client: Client, kernel: Kernel, grid: options.Extent, block: options.Extent, args: Sequence[object], shared: int
) -> LaunchResult:
    """Run a grid on the cluster of a client of Dask, for `Kernel.launch`.

    A race is a `Fault`, and leaves the arrays as they were.  What cannot be cut runs whole in this process, and the log has a
    warning that says why.
    """
    found = spread(kernel, grid, block, args, shared=shared, scheduler=client)
    if found.reason:
        log.warning("kernel %s runs whole, in this process: %s", kernel.name, found.reason)
    for each in found.result.findings:
        raise Fault(each.kind, each.message)
    return found.result


def cut(ctas: int, workers: int, most: int) -> list[range]:
    """The CTAs of a grid in ranges: large ones first, and ever smaller ones, so that all workers end at about the same time.

    None has more CTAs than `most`, unless that is less than a small range has.
    """
    found, start = list[range](), 0
    least = min(max(FEW, ctas // (LAST * workers)), -(-ctas // (SHARE * workers)))
    while start < ctas:
        size = min(max(least, min((ctas - start) // (SHARE * workers), most)), ctas - start)
        found.append(range(start, start + size))
        start += size
    return found


# ── all ranges ──────────────────────────────────────────────────────────────────────────


def run_ranges(
    kernel: Kernel, how: tuple[tuple[int, int, int], tuple[int, int, int], int], args: Sequence[object], cuts: Sequence[range],
    slices: Mapping[int, Slice], where: tuple[int, str | Client | None],
) -> list[RangeAccesses]:  # fmt: skip
    """Run all ranges; once more where a guess was wrong: an array that is not read after all, or is written."""
    program = kernel.module.programs[0]
    parameters = list(kernel.function.signature.parameters)
    unread = {parameters.index(each) for each in outputs(kernel.function).values()}
    written = unread | {parameters.index(each) for each in written_parameters(kernel.function)}
    whole = tuple(neutral_of(each, reduced(kernel).get(n)) for n, each in enumerate(args))
    sent = tuple(blank(each) if n in unread else each for n, each in enumerate(whole))
    text, target = program.source.text, str(program.target)
    shifts = tuple(each.ctypes.data % backing.LINE if isinstance(each, np.ndarray) else 0 for each in args)
    changed = kernel.module.image.changed
    workload = RangeWorkload(
        text, target, kernel.name, how, sent, shifts, tuple(cuts), frozenset(written), changed, next(LAUNCHES),
        slices={n: each for n, each in slices.items() if each.whole},
    )  # fmt: skip
    found = performed(workload, where, {n: args[n] for n in slices})
    if any(each.misjudged or any(n in unread and ranges for n, ranges in each.read.items()) for each in found):
        writable = frozenset(n for n, each in enumerate(args) if isinstance(each, np.ndarray) and each.flags.writeable)
        found = performed(replace(workload, args=whole, written=writable, slices={}), where)
    return found


def slices_of(kernel: Kernel, shape: LaunchShape, args: Sequence[object]) -> dict[int, Slice]:
    """The slices of all arrays that a kernel writes, where it only writes them and no two CTAs the same byte; else none.

    Nothing that is written beyond the end of such an array lies in another one.
    """
    found = own_slices(kernel.function, args, shape)
    arrays = {n: each for n, each in enumerate(args) if isinstance(each, np.ndarray)}
    spans = {n: (each.ctypes.data, each.ctypes.data + each.nbytes) for n, each in arrays.items()}
    for n, each in found.items():
        first = spans[n][0] + each.first
        end = first + each.step * shape.ctas
        apart = all(m == n or stop <= first or end <= start for m, (start, stop) in spans.items())
        if not apart or not arrays[n].flags.c_contiguous or not arrays[n].flags.writeable:
            return {}
    return found


def blank(value: object) -> object:
    """What is sent for an argument whose contents are not read."""
    return Blank(value.shape, value.dtype) if isinstance(value, np.ndarray) else value


def neutral_of(value: object, how: Reduction | None) -> object:
    """What is sent for an argument; nothing but its shape where the kernel only reduces into it."""
    return value if how is None or not isinstance(value, np.ndarray) else Neutral(value.shape, value.dtype, how)


OPERATIONS = {
    "add": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "min": np.minimum, "max": np.maximum,
}  # fmt: skip


def performed(
    workload: RangeWorkload, where: tuple[int, str | Client | None], direct: Mapping[int, object] = NO_ARRAYS
) -> list[RangeAccesses]:
    """What all ranges did, in their order; processes of this machine share the arrays in a file.

    Of `direct` arrays, by their numbers, this process writes its slices to them themselves.
    """
    workers, scheduler = where
    if scheduler is not None:
        with served(workload, scheduler) as sent:
            return ranges(sent, workers, scheduler, sent)
    arrays = {n: each for n, each in enumerate(workload.args) if isinstance(each, np.ndarray) and each.nbytes}
    with shared(list(arrays.values()), workload.area, len(workload.ranges)) as (file, placed):
        args = dict(enumerate(workload.args)) | dict(zip(arrays, placed, strict=True))
        threads = settings.threads() or max(1, processors() // workers)
        theirs = replace(workload, args=tuple(args.values()), file=file, threads=threads)
        own = replace(theirs, args=tuple({**args, **direct}.values()), stays=True, direct=frozenset(direct))
        found = ranges(theirs, workers, None, own)
        for each in found:
            each.written |= {n: Joinable(where, file.read(values)) for n, (where, values) in each.stored.items()}
        return found


@contextmanager
def served(workload: RangeWorkload, scheduler: str | Client) -> Iterator[RangeWorkload]:
    """The work of a cluster: large arrays stay here, and their pages are sent when they are touched."""
    arrays = {n: each for n, each in enumerate(workload.args) if isinstance(each, np.ndarray) and each.nbytes >= LARGE}
    address = address_of(scheduler)
    if not arrays or not address.startswith("tcp://"):
        yield workload
        return
    with PageServer(arrays, address_towards(address)) as server:
        if unreached := workers_that_fail(scheduler, partial(reaches, server.address)):
            log.warning("arrays are sent whole: %s reach no port of %s", ", ".join(unreached), server.address.host)
            yield workload
            return
        paged = {n: Paged(each.shape, each.dtype, each.flags.writeable) for n, each in arrays.items()}
        args = tuple(paged.get(n, each) for n, each in enumerate(workload.args))
        yield replace(workload, args=args, pages=server.address)


def ranges(workload: RangeWorkload, workers: int, scheduler: str | Client | None, own: RangeWorkload) -> list[RangeAccesses]:
    """What all ranges did, in their order, as they tell it; processes of this machine stay for the next launch.

    This process, if it is one of them, runs its `own` workload.
    """
    accesses: dict[int, RangeAccesses] = {}
    direct = {n: each for n, each in enumerate(own.args) if n in own.direct and isinstance(each, np.ndarray)}
    with runner(workload, min(workers, len(workload.ranges)), scheduler, own) as pool:
        for done in pool.outcomes(Job(n) for n in range(len(workload.ranges))):
            for each in done:
                if not isinstance(each.outcome.value, RangeAccesses) or each.outcome.failed:
                    raise Crash(f"CTAs {workload.ranges[each.number]}: {each.outcome.message}")
                accesses[each.number] = each.outcome.value
                take_slices(each.outcome.value, direct, own.file)
    return [accesses[n] for n in sorted(accesses)]


def take_slices(found: RangeAccesses, direct: Mapping[int, Array], file: SharedFile | None) -> None:
    """Write what a range of another process wrote to arrays of which each CTA has its own slice, as soon as it has ended."""
    if file is None:
        return
    for n in found.stored.keys() & direct.keys():
        where, values = found.stored.pop(n)
        _write(direct[n], [Joinable(where, file.read(values))])
        file.forget(values)


def runner(
    workload: RangeWorkload, processes: int, scheduler: str | Client | None, own: RangeWorkload
) -> WorkSharing | Cluster:
    """What runs the ranges: processes of this machine, or a cluster."""
    if scheduler is None:
        return WorkSharing(workload, processes, PATIENCE, own)
    return Cluster(workload, scheduler, PATIENCE, keep=True)


def accessed_elsewhere(found: Sequence[RangeAccesses]) -> str:
    """What some range accesses that is no argument: variables of the module that it writes to, or memory that it has not."""
    names = sorted({name for each in found for name in each.others})
    if names:
        return f"it writes to {', '.join(names)}"
    missed = (each.fault.address for each in found if each.fault is not None and each.fault.address is not None)
    known = next((there for each in missed if (there := allocation_at(each)) is not None), None)
    return "" if known is None else f"it accesses {known}, which is no argument"


def joined(kernel: Kernel, args: Sequence[object], cuts: Sequence[range], found: Sequence[RangeAccesses]) -> LaunchResult:
    """Write what all ranges wrote to the arrays, unless some of them race; raises the fault of the first that has one."""
    for each in found:
        if each.fault is not None:
            raise each.fault
    results = [each.result for each in found if each.result is not None]
    total = replace(
        results[0], instructions=sum(r.instructions for r in results), findings=[],
        thread_instructions=sum(r.thread_instructions for r in results), steps=sum(r.steps for r in results),
        seconds=max(r.seconds for r in results), output="".join(r.output for r in results),
    )  # fmt: skip
    arrays = {n: each for n, each in enumerate(args) if isinstance(each, np.ndarray)}
    sums = reduced(kernel) if joinable(kernel.function) else {}
    written = {n for n in arrays if any(n in each.written for each in found)}
    whole = {n: found_of(n, found) for n in written - sums.keys()}
    unclear = {n: JoinedArray(n, arrays[n], len(cuts)) for n, each in whole.items() if not are_apart(*each)}
    for joins in unclear.values():
        total.findings += [race(kernel.name, text) for text in joins.take(cuts, found)][:1]
    if not total.findings:
        for n in whole:
            _write(arrays[n], [each.written[n] for each in found if n in each.written])
        for n in written & sums.keys():
            _reduce(arrays[n], sums[n], [each.written[n] for each in found if n in each.written])
    return total


def found_of(number: int, found: Sequence[RangeAccesses]) -> tuple[list[ByteSet], list[ByteSet]]:
    """The bytes of an array that each range wrote, and those that it read."""
    nothing = ByteSet(0, np.empty((0, 2), np.int64))
    written = [each.written[number].where if number in each.written else nothing for each in found]
    return written, [each.read.get(number, nothing) for each in found]


def _write(array: Array, parts: Sequence[Joinable]) -> None:
    """Write bytes to an array."""
    target = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    for where, values in parts:
        where.put(target, values)
    if not np.shares_memory(target, array):
        array[...] = target.view(array.dtype).reshape(array.shape)


def _reduce(array: Array, how: Reduction, partial: Sequence[Joinable]) -> None:
    """Join partial results with what an array holds."""
    total = np.ascontiguousarray(array).reshape(-1).view(element(how)).copy()
    for each in partial:
        own, there = np.full(len(total), neutral(how), element(how)), np.zeros(array.nbytes, np.bool_)
        each.where.put(own.view(np.uint8), each.values)
        there[each.where.index] = True
        with np.errstate(over="ignore", invalid="ignore"):
            OPERATIONS[how.operation](total, own, out=total, where=there.reshape(-1, how.type.bytes).any(axis=1))
    _write(array, [Joinable(ByteSet(array.nbytes, np.array([[0, array.nbytes]])), total.view(np.uint8))])


class JoinedArray:
    """What the ranges wrote to an array: each byte, and the range that wrote it."""

    def __init__(self, number: int, array: Array, ranges: int) -> None:
        self.number = number
        self.owner = np.full(array.nbytes, NOBODY, np.int8 if ranges < 1 << 7 else np.int32)
        self.values = np.zeros(array.nbytes, np.uint8)

    def take(self, cuts: Sequence[range], found: Sequence[RangeAccesses]) -> Iterator[str]:
        """Take what each range wrote; gives the races, in words."""
        for k, each in enumerate(found):
            writes = each.written.get(self.number)
            if writes is None:
                continue
            where = writes.where.index
            before, now = self.values[where], writes.values
            known = self.owner[where]
            if (wrong := np.flatnonzero((known != NOBODY) & (before != now))).size:
                at = int(np.arange(len(self.owner))[where][wrong[0]])
                earlier = shown(cuts, known[wrong[0]])
                yield f"{earlier} and {shown(cuts, k)} write different values to byte {at} of argument {self.number}"
            self.values[where] = now
            self.owner[where] = np.where(known == NOBODY, k, SEVERAL)
        for k, each in enumerate(found):
            reads = each.read.get(self.number)
            if reads is None or not reads:
                continue
            where = reads.index
            owner = self.owner[where]
            wrong = np.flatnonzero((owner != NOBODY) & (owner != k))
            if wrong.size:
                at = int(np.arange(len(self.owner))[where][wrong[0]])
                writers = shown(cuts, self.owner[at])
                yield f"byte {at} of argument {self.number} is read by {shown(cuts, k)} and written by {writers}"


def shown(cuts: Sequence[range], number: int) -> str:
    """A range of CTAs, in words."""
    if number < 0:
        return "several CTAs"
    return f"CTA {cuts[number].start}" if len(cuts[number]) == 1 else f"CTAs {cuts[number].start} to {cuts[number].stop - 1}"


def race(kernel: str, text: str) -> Finding:
    """The finding of a race between ranges."""
    return Finding("race", text, space="global", kernel=kernel, missing="nothing orders CTAs of one grid")


__all__ = ["SpreadLaunch", "cut", "launch_on", "spread"]
