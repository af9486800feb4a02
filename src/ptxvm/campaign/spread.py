"""One grid on several processes or machines: CTAs in ranges, each on its own copy of the arrays; their writes are joined.

That is right where no CTA depends on another.  `obstacle` looks at the instructions first.  Then recorded code tells which
bytes each range has read and written.  Where two ranges wrote a byte differently, or one read what another wrote,
that is a race: it is a finding, and nothing is joined.  Arrays that the kernel only reduces into begin with the neutral
element in each range, and the partial results are joined by the operation.  What cannot be cut runs whole, in this process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.outputs import outputs, written_parameters
from ptxvm.analysis.program import Bound
from ptxvm.analysis.reductions import Reduction, joinable, reductions
from ptxvm.api import Kernel, Module, load
from ptxvm.campaign.byte_sets import ByteSet, are_apart
from ptxvm.campaign.case import outcome
from ptxvm.campaign.declaration import CaseLimits
from ptxvm.campaign.outcome import Job, Outcome
from ptxvm.campaign.session import runner
from ptxvm.diagnostics.errors import Crash, Fault, Unsupported
from ptxvm.engine.call_targets import called
from ptxvm.engine.jit.checks import prefilter
from ptxvm.engine.jit.checks.cta_range import CtaRange
from ptxvm.engine.jit.run.recording import Recording
from ptxvm.engine.launch import launch
from ptxvm.isa.effects import Collective, Verb
from ptxvm.machine import options
from ptxvm.machine.events import Finding
from ptxvm.machine.launch import launch_shape
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.per_lane import Array
from ptxvm.machine.result import LaunchResult

PATIENCE = CaseLimits(1e6)  # a grid takes as long as it takes
PIECES = 2  # ranges for each process, so that all end at about the same time
CLUSTER = (Collective.CLUSTER_BARRIER, Collective.CLUSTER_ARRIVAL)
NOBODY, SEVERAL = -1, -2


class Blank(NamedTuple):
    """An array whose contents the kernel does not read: it is not sent."""

    shape: tuple[int, ...]
    dtype: str


class Neutral(NamedTuple):
    """An array that the kernel only reduces into: it begins with the neutral element of the operation, and is not sent."""

    shape: tuple[int, ...]
    dtype: str
    reduction: Reduction


class Joinable(NamedTuple):
    """Bytes of an array, and what they hold, one after the other."""

    where: ByteSet
    values: Array


@dataclass
class RangeAccesses:
    """What a range of CTAs did: the bytes of each array that it wrote and read, by the number of the argument."""

    written: dict[int, Joinable] = field(default_factory=dict)
    read: dict[int, ByteSet] = field(default_factory=dict)
    others: tuple[str, ...] = ()  # variables of the module that it changed
    misjudged: bool = False  # it writes to an array that it was not expected to write to
    result: LaunchResult | None = None
    fault: Fault | None = None
    doubt: str = ""  # why it could not be run


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
    scheduler: str | None = None,
) -> SpreadLaunch:
    """Run a grid in ranges of CTAs, on processes of this machine or on a Dask cluster, and join what they wrote.

    The arguments are those of `Kernel.launch`; arrays are NumPy's.  Where two ranges race, `result.findings` says where, and
    the arrays stay as they were.  A fault is that of the first CTAs that have one.  What cannot be cut runs whole in this
    process, and `reason` says why.
    """
    workers = os.cpu_count() or 1 if workers is None else options.count("workers", workers)
    shape = launch_shape(grid, block)
    reason = obstacle(kernel, args)
    if not reason:
        cuts = cut(shape.ctas, workers * PIECES)
        found = run_ranges(kernel, (shape.grid, shape.block, shared), args, cuts, (workers, scheduler))
        reason = next((each.doubt for each in found if each.doubt), "") or written_elsewhere(found)
        if not reason:
            return SpreadLaunch(joined(kernel, args, cuts, found), tuple(cuts))
    return SpreadLaunch(kernel.launch(shape.grid, shape.block, args, shared=shared), (), reason)


def cut(ctas: int, pieces: int) -> list[range]:
    """The CTAs of a grid in ranges of about one size."""
    edges = [ctas * n // pieces for n in range(pieces + 1)]
    return [range(start, stop) for start, stop in pairwise(edges) if start < stop]


# ── what stands in the way ──────────────────────────────────────────────────────────────


def obstacle(kernel: Kernel, args: Sequence[object]) -> str:
    """Why the CTAs of a kernel may depend on each other, or its arguments cannot be copied; empty where nothing says so."""
    if len(kernel.module.programs) > 1:
        return "the module is linked of several"
    arrays = [(n, each) for n, each in enumerate(args) if isinstance(each, np.ndarray)]
    odd = [n for n, each in enumerate(args) if not isinstance(each, np.ndarray | np.generic | int | float | bytes)]
    if odd:
        return f"argument {odd[0]} is no NumPy array, number or bytes"
    if "reqnctapercluster" in kernel.function.directives:
        return "its CTAs are in clusters"
    for n, one in arrays:
        if overlapping := next((m for m, other in arrays if m > n and np.may_share_memory(one, other)), None):
            return f"arguments {n} and {overlapping} may overlap"
    if kernel.module.jit.spins(kernel.function):
        return "it has a loop that waits for what another thread writes"
    return dependence(kernel, args)


def dependence(kernel: Kernel, args: Sequence[object]) -> str:
    """Why the instructions of a kernel may make its CTAs depend on each other; empty where they do not."""
    joins, image = joinable(kernel.function), kernel.module.image
    if joins and (odd := [n for n, each in reduced(kernel).items() if not fits(args[n], each)]):
        return f"argument {odd[0]} does not consist of the elements of its atomic operations"
    for function in called(image, kernel.function):
        for bound in function.instructions:
            if bound not in joins and (why := exchanges(bound)):
                line, _ = function.program.source.location(bound.node.head_start) if function.program else (0, 0)
                return f"'{bound.i.mnemonic}' at line {line} {why}"
    return ""


def reduced(kernel: Kernel) -> dict[int, Reduction]:
    """The arguments that a kernel only reduces into, by their numbers."""
    parameters = list(kernel.function.signature.parameters)
    return {parameters.index(each): how for each, how in reductions(kernel.function).items()}


def fits(value: object, how: Reduction) -> bool:
    """Is an argument an array of whole elements?"""
    return isinstance(value, np.ndarray) and not value.nbytes % how.type.bytes and not value.ctypes.data % how.type.bytes


def exchanges(bound: Bound) -> str:
    """Why an instruction may make a CTA depend on others; empty where it does not."""
    found = bound.summary
    if found.asks_textures or any(each.window in (Space.TEXTURE, Space.SURFACE) for each in found.accesses):
        return "uses a texture, a sampler or a surface, which is bound in this process"
    if bound.calls:
        return "" if prefilter.called(bound) == "" else "calls a function of the device"
    if not prefilter.known(bound) or found.cancels or found.maps_cluster or found.collective in CLUSTER:
        return "has effects beyond its CTA"
    outside = [each for each in found.accesses if each.window not in (Space.SHARED, Space.LOCAL, Space.PARAM, Space.CONST)]
    if any(each.verb is Verb.UPDATE for each in outside):
        return "is an atomic operation on memory that all CTAs share"
    if any(each.strong for each in outside):
        return "is ordered with accesses of other CTAs"
    return ""


# ── a range, in another process ─────────────────────────────────────────────────────────


@dataclass(frozen=True)
class RangeWorkload:
    """The ranges of a grid.

    Arrays of which the numbers are in `written` are copied and recorded.  The kernel may read the others, and a write to
    one of them shows that the guess was wrong.
    """

    text: str
    target: str
    entry: str
    launch: tuple[tuple[int, int, int], tuple[int, int, int], int]
    args: tuple[object, ...]
    ranges: tuple[range, ...]
    written: frozenset[int]
    variables: Mapping[int, bytes]  # those of the module that are not what it gives them (`Image.changed`)

    def run(self, job: Job) -> Outcome:
        """Run a range; what it touched is the value of the outcome."""
        found = RangeAccesses()
        ended = outcome(lambda: self._accessed(found, self.ranges[job.number]))
        return replace(ended, value=found)

    def _accessed(self, found: RangeAccesses, ctas: range) -> None:
        kernel = loaded(self.text, self.target).kernel(self.entry)
        kernel.module.image.change(self.variables)
        numbers = [n for n, each in enumerate(self.args) if n in self.written and size_of(each)]
        recording = Recording([size_of(self.args[n]) for n in numbers])
        args = [self._own(each, recording, numbers.index(n) if n in numbers else None) for n, each in enumerate(self.args)]
        engine = CtaRange(kernel.module.jit, ctas, recording)
        grid, block, shared = self.launch
        try:
            found.result = launch(engine, kernel.function, LaunchOptions(grid, block, shared), args)
        except Unsupported as missing:
            found.doubt = str(missing)
        except Fault as fault:
            found.misjudged, found.fault = self._protected(fault, args), fault
        for at, n in enumerate(numbers):
            where = ByteSet.of_map(recording.written(at))
            found.written[n] = Joinable(where, where.taken(recording.array(at)))
            found.read[n] = ByteSet.of_map(recording.read(at))
        found.others = tuple(str(each) for each in engine.changed)
        if engine.changed:
            loaded.cache_clear()  # its variables are not what they were

    @staticmethod
    def _own(value: object, recording: Recording, number: int | None) -> object:
        """The range's own copy of an argument, in a recording; without a number it is one that shall not be written."""
        if number is None:
            if not isinstance(value, np.ndarray):
                return np.zeros(value.shape, value.dtype) if isinstance(value, Blank | Neutral) else value
            own = value.view()
            own.flags.writeable = False
            return own
        held = recording.array(number)
        if isinstance(value, Neutral):
            held.view(element(value.reduction))[...] = neutral(value.reduction)
        if isinstance(value, np.ndarray):
            held.view(value.dtype).reshape(value.shape)[...] = value
        if not isinstance(value, Blank | Neutral | np.ndarray):
            raise Crash(f"argument {value} is no array, and is recorded")
        return held.view(value.dtype).reshape(value.shape)

    def _protected(self, fault: Fault, args: Sequence[object]) -> bool:
        """Is a fault at an array that could be written, but was not expected to be?"""
        for n, (given, own) in enumerate(zip(self.args, args, strict=True)):
            if n in self.written or not isinstance(given, np.ndarray) or not isinstance(own, np.ndarray):
                continue
            start = own.ctypes.data
            if given.flags.writeable and fault.address is not None and start <= fault.address < start + own.nbytes:
                return True
        return False


@lru_cache(maxsize=1)
def loaded(text: str, target: str) -> Module:
    """The module of a grid, which all of its ranges in a process use."""
    return load(text.encode(), target)


def size_of(value: object) -> int:
    """The bytes of an array; 0 for what is none."""
    if isinstance(value, Blank | Neutral):
        return int(np.prod(value.shape, dtype=np.int64)) * np.dtype(value.dtype).itemsize
    return value.nbytes if isinstance(value, np.ndarray) else 0


# ── all ranges ──────────────────────────────────────────────────────────────────────────


def run_ranges(
    kernel: Kernel, how: tuple[tuple[int, int, int], tuple[int, int, int], int], args: Sequence[object], cuts: Sequence[range],
    where: tuple[int, str | None],
) -> list[RangeAccesses]:  # fmt: skip
    """Run all ranges; once more where a guess was wrong: an array that is not read after all, or is written."""
    program = kernel.module.programs[0]
    parameters = list(kernel.function.signature.parameters)
    unread = {parameters.index(each) for each in outputs(kernel.function).values()}
    written = unread | {parameters.index(each) for each in written_parameters(kernel.function)}
    whole = tuple(neutral_of(each, reduced(kernel).get(n)) for n, each in enumerate(args))
    sent = tuple(blank(each) if n in unread else each for n, each in enumerate(whole))
    text, target = program.source.text, str(program.target)
    workload = RangeWorkload(text, target, kernel.name, how, sent, tuple(cuts), frozenset(written), kernel.module.image.changed)
    found = performed(workload, where)
    if any(each.misjudged or any(n in unread and ranges for n, ranges in each.read.items()) for each in found):
        writable = frozenset(n for n, each in enumerate(args) if isinstance(each, np.ndarray) and each.flags.writeable)
        found = performed(replace(workload, args=whole, written=writable), where)
    return found


def blank(value: object) -> object:
    """What is sent for an argument whose contents are not read."""
    return Blank(value.shape, value.dtype.str) if isinstance(value, np.ndarray) else value


def neutral_of(value: object, how: Reduction | None) -> object:
    """What is sent for an argument; nothing but its shape where the kernel only reduces into it."""
    return value if how is None or not isinstance(value, np.ndarray) else Neutral(value.shape, value.dtype.str, how)


def element(how: Reduction) -> np.dtype[np.generic]:
    """The NumPy type of the elements of a reduction."""
    kind = "f" if how.type.is_float else "i" if how.type.is_signed else "u"
    return np.dtype(f"{kind}{how.type.bytes}")


def neutral(how: Reduction) -> int:
    """The neutral element of a reduction."""
    signed, bits = how.type.is_signed, how.type.bits
    match how.operation:
        case "min":
            return (1 << bits - signed) - 1
        case "max":
            return -1 << bits - 1 if signed else 0
        case "and":
            return -1 if signed else (1 << bits) - 1
    return 0


OPERATIONS = {
    "add": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "min": np.minimum, "max": np.maximum,
}  # fmt: skip


def performed(workload: RangeWorkload, where: tuple[int, str | None]) -> list[RangeAccesses]:
    """What all ranges did, in their order."""
    workers, scheduler = where
    accesses: dict[int, RangeAccesses] = {}
    with runner(workload, min(workers, len(workload.ranges)), scheduler, PATIENCE) as pool:
        for done in pool.outcomes(Job(n) for n in range(len(workload.ranges))):
            for each in done:
                if not isinstance(each.outcome.value, RangeAccesses) or each.outcome.failed:
                    raise Crash(f"CTAs {workload.ranges[each.number]}: {each.outcome.message}")
                accesses[each.number] = each.outcome.value
    return [accesses[n] for n in sorted(accesses)]


def written_elsewhere(found: Sequence[RangeAccesses]) -> str:
    """The variables of the module that some range wrote: those of the ranges are not joined."""
    names = sorted({name for each in found for name in each.others})
    return f"it writes to {', '.join(names)}" if names else ""


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
                yield f"{earlier} and {shown(cuts, k)} write byte {at} of argument {self.number} differently"
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
                yield f"{shown(cuts, k)} read byte {at} of argument {self.number}, which {writers} write"


def shown(cuts: Sequence[range], number: int) -> str:
    """A range of CTAs, in words."""
    return f"CTAs {cuts[number].start} to {cuts[number].stop - 1}" if number >= 0 else "several CTAs"


def race(kernel: str, text: str) -> Finding:
    """The finding of a race between ranges."""
    return Finding("race", text, space="global", kernel=kernel, missing="nothing orders CTAs of one grid")


__all__ = ["SpreadLaunch", "obstacle", "spread"]
