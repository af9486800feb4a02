"""A range of the CTAs of a grid, in another process: its own copies of the arrays, and what it did to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache, partial

import numpy as np

from ptxvm.analysis.reductions import Reduction
from ptxvm.api import Module, load
from ptxvm.campaign.byte_sets import ByteSet
from ptxvm.campaign.case import outcome
from ptxvm.campaign.outcome import Job, Outcome
from ptxvm.campaign.own_slices import Slice
from ptxvm.campaign.page_server import PageAddress, RemotePages
from ptxvm.campaign.shared_file import Placed, SharedFile, Stored
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Crash, Fault, Unsupported
from ptxvm.engine.jit.checks.cta_range import CtaRange
from ptxvm.engine.jit.run.paged_array import DemandPaging, PagedArray
from ptxvm.engine.jit.run.recording import Recording, backed
from ptxvm.engine.launch import launch
from ptxvm.machine import backing
from ptxvm.machine.backing import Bytes
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.per_lane import Array
from ptxvm.machine.result import LaunchResult
from ptxvm.named_tuple import NamedTuple


class Blank(NamedTuple):
    """An array whose contents the kernel does not read: it is not sent."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]


class Neutral(NamedTuple):
    """An array that the kernel only reduces into: it begins with the neutral element of the operation, and is not sent."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    reduction: Reduction


class Paged(NamedTuple):
    """An array whose pages are sent when they are touched; `writable` is the array that it was made from."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    writable: bool


class Joinable(NamedTuple):
    """Bytes of an array, and what they hold, one after the other."""

    where: ByteSet
    values: Array


@dataclass
class RangeAccesses:
    """What a range of CTAs did: the bytes of each array that it wrote and read, by the number of the argument.

    With a file, what it wrote is `stored` there.
    """

    written: dict[int, Joinable] = field(default_factory=dict)
    stored: dict[int, tuple[ByteSet, Stored]] = field(default_factory=dict)
    read: dict[int, ByteSet] = field(default_factory=dict)
    others: tuple[str, ...] = ()  # variables of the module that it changed
    misjudged: bool = False  # it writes to an array that it was not expected to write to
    result: LaunchResult | None = None
    fault: Fault | None = None
    doubt: str = ""  # why it could not be run


@dataclass(frozen=True)
class RangeWorkload:
    """The ranges of a grid.

    Arrays of which the numbers are in `written` are recorded, each range having its own.  The kernel may read the others,
    and a write to one of them shows that the guess was wrong.  With a `file` the arrays are in it, and so are the results;
    without one, for other machines, they are sent: the paged ones in parts, by the process at the address `pages`.  Their
    addresses are `shifts` bytes beyond multiples of `backing.LINE`.  The grid has a number, and all of its ranges have it.  A
    range runs on so many `threads`, by default as many as the process may use.  Where it runs in the process that joins the
    results, what it wrote `stays` where it is.  Of arrays with `slices` each CTA writes all of its own: none is recorded.  The
    arrays with numbers in `direct` are those of the launch themselves.
    """

    text: str
    target: str
    entry: str
    launch: tuple[tuple[int, int, int], tuple[int, int, int], int]
    args: tuple[object, ...]
    shifts: tuple[int, ...]
    ranges: tuple[range, ...]
    written: frozenset[int]
    variables: Mapping[int, bytes]  # those of the module that are not what it gives them (`Image.changed`)
    grid: int
    file: SharedFile | None = None
    pages: PageAddress | None = None
    threads: int | None = None
    stays: bool = False
    slices: Mapping[int, Slice] = field(default_factory=dict)
    direct: frozenset[int] = frozenset()

    @property
    def recorded(self) -> list[int]:
        """The numbers of the arrays that are recorded."""
        unrecorded = self.slices.keys() | self.direct
        return [n for n, each in enumerate(self.args) if n in self.written - unrecorded and size_of(each)]

    @property
    def area(self) -> int:
        """The bytes that a range may leave in the file: those of its recording, then all of its slices."""
        return self.recording().size + sum(size_of(self.args[n]) for n in self.slices)

    def recording(self) -> Recording:
        """A recording of these arrays."""
        made = Recording([size_of(self.args[n]) for n in self.recorded], [self.shifts[n] for n in self.recorded])
        made.grid = self.grid
        return made

    def run(self, job: Job) -> Outcome:
        """Run a range; what it touched is the value of the outcome."""
        found = RangeAccesses()
        ended = outcome(lambda: self._accessed(found, job.number))
        return replace(ended, value=found)

    def _accessed(self, found: RangeAccesses, number: int) -> None:
        kernel = loaded(self.text, self.target, tuple(self.variables.items())).kernel(self.entry)
        recording, slots = self.recording(), {n: at for at, n in enumerate(self.recorded)}
        remote = self._remote
        args = [self._own(n, each, recording, slots.get(n)) for n, each in enumerate(self.args)]
        copies = {n: PagedArray(recording.array(slots[n]), partial(copy, each)) for n, each in remote.items() if n in slots}
        recording.paging = DemandPaging(list({**remote, **copies}.values())) if remote else None
        engine = CtaRange(kernel.module.jit, self.ranges[number], recording)
        grid, block, shared = self.launch
        try:
            found.result = launch(engine, kernel.function, LaunchOptions(grid, block, shared, threads=self.threads), args)
        except Unsupported as missing:
            found.doubt = str(missing)
        except Fault as fault:
            found.misjudged, found.fault = self._protected(fault, args), fault
        for n, at in slots.items():
            where = touched(recording.written(at))
            values = where.taken(recording.array(at))
            if self.file is None or self.stays:
                found.written[n] = Joinable(where, values)
            else:
                found.stored[n] = where, self.file.write(number, recording.starts[at], values)
            found.read[n] = touched(recording.read(at))
        self._leave_slices(found, number, args, recording.size)
        recording.forget_maps()
        found.others = tuple(str(each) for each in engine.changed)
        if engine.changed:
            loaded.cache_clear()  # its variables are not what they were

    def _leave_slices(self, found: RangeAccesses, number: int, args: Sequence[object], offset: int) -> None:
        """Tell of the slices of a range, which it has written whole; in the file they are from an offset on."""
        ctas = self.ranges[number]
        for n, each in self.slices.items():
            own = args[n]
            if n in self.direct or not isinstance(own, np.ndarray) or found.result is None:
                continue
            edges = np.clip([each.first + each.step * ctas.start, each.first + each.step * ctas.stop], 0, own.nbytes)
            where = ByteSet(own.nbytes, edges.reshape(1, 2))
            values = where.taken(own.reshape(-1).view(np.uint8))
            if self.file is None:
                found.written[n] = Joinable(where, values)
            else:
                found.stored[n] = where, self.file.write(number, offset, values)
            offset += own.nbytes

    @property
    def _remote(self) -> dict[int, PagedArray]:
        """The arrays whose pages come when they are touched, as they were before the launch."""
        sizes = tuple((n, size_of(each), self.shifts[n]) for n, each in enumerate(self.args) if isinstance(each, Paged))
        return remote_arrays(self.pages, sizes) if self.pages is not None else {}

    def _own(self, number: int, value: object, recording: Recording, slot: int | None) -> object:
        """The range's own copy of an argument, in a recording; without a slot it is one that shall not be written."""
        if slot is None:
            return self._unrecorded(number, value)
        held = recording.array(slot)
        if isinstance(value, Blank):
            recording.expect_output(slot)
        if isinstance(value, Placed) and self.file is not None:
            recording.fill(slot, self.file.descriptor, value.offset)
        if isinstance(value, Neutral):
            held.view(element(value.reduction))[...] = neutral(value.reduction)
        if isinstance(value, np.ndarray):
            held.view(value.dtype).reshape(value.shape)[...] = value
        if not isinstance(value, Placed | Paged | Neutral | Blank | np.ndarray):
            raise Crash(f"argument {value} is no array, and is recorded")
        return held.view(value.dtype).reshape(value.shape)

    def _unrecorded(self, number: int, value: object) -> object:
        """An argument that is not recorded: an array of the launch itself, one with slices, or what shall not be written."""
        if number in self.direct:
            return value
        if number in self.slices and isinstance(value, Blank):
            return backing.congruent(size_of(value), self.shifts[number]).view(value.dtype).reshape(value.shape)
        return self._protected_copy(number, value)

    def _protected_copy(self, number: int, value: object) -> object:
        """An argument that shall not be written."""
        if isinstance(value, Paged):
            own = self._remote[number].bytes.view(value.dtype).reshape(value.shape)
            own.flags.writeable = False
            return own
        if isinstance(value, Placed) and self.file is not None:
            return self.file.read_only(value)
        if not isinstance(value, Blank | Neutral | np.ndarray):
            return value
        own = backing.congruent(size_of(value), self.shifts[number]).view(value.dtype).reshape(value.shape)
        if isinstance(value, np.ndarray):
            own[...] = value
        own.flags.writeable = False
        return own

    def _protected(self, fault: Fault, args: Sequence[object]) -> bool:
        """Is a fault at an array that could be written, but was not expected to be?"""
        for n, (given, own) in enumerate(zip(self.args, args, strict=True)):
            if n in self.written or not isinstance(own, np.ndarray) or fault.address is None:
                continue
            writable = (
                given.writable if isinstance(given, Placed | Paged) else isinstance(given, np.ndarray) and given.flags.writeable
            )
            if writable and 0 <= fault.address - own.ctypes.data < own.nbytes:
                return True
        return False


@lru_cache(maxsize=1)
def loaded(text: str, target: str, variables: tuple[tuple[int, bytes], ...]) -> Module:
    """The module of a grid, with the contents of variables (`Image.change`); all of its ranges in a process use it.

    It reaches no memory of the process but its own and that of its arguments: what else a kernel accesses is not recorded.
    """
    module = load(text.encode(), target).apart()
    module.image.change(dict(variables))
    return module


@lru_cache(maxsize=1)
def remote_arrays(address: PageAddress, sizes: tuple[tuple[int, int, int], ...]) -> dict[int, PagedArray]:
    """The arrays of another process, by number, size and shift; all ranges in this process use what has been fetched."""
    pages = RemotePages(address)
    return {n: PagedArray(backing.congruent(size, shift), partial(pages.fill, n)) for n, size, shift in sizes}


def copy(origin: PagedArray, first: int, end: int, room: Bytes) -> None:
    """Fill room with bytes of a paged array."""
    origin.fetch(first, end)
    room[:] = origin.bytes[first:end]


def touched(map: Bytes) -> ByteSet:
    """The bytes that a map of a recording has ones for."""
    return ByteSet.of_map(map, backed(map))


def size_of(value: object) -> int:
    """The bytes of an array; 0 for what is none."""
    if isinstance(value, Blank | Neutral | Paged):
        return int(np.prod(value.shape, dtype=np.int64)) * value.dtype.itemsize
    return value.nbytes if isinstance(value, np.ndarray | Placed) else 0


def element(how: Reduction) -> np.dtype[np.generic]:
    """The NumPy type of the elements of a reduction."""
    kind = "f" if how.type.is_float else "i" if how.type.is_signed else "u"
    return np.dtype(f"{kind}{how.type.bytes}")


def neutral(how: Reduction) -> float:
    """The neutral element of a reduction."""
    signed, bits = how.type.is_signed, how.type.bits
    if how.type.is_float:
        return -0.0  # a sum, to which 0.0 would change the sign of zeros
    match how.operation:
        case "min":
            return (1 << bits - signed) - 1
        case "max":
            return -1 << bits - 1 if signed else 0
        case "and":
            return -1 if signed else (1 << bits) - 1
    return 0


__all__ = ["Blank", "Joinable", "Neutral", "Paged", "RangeAccesses", "RangeWorkload", "element", "loaded", "neutral"]
