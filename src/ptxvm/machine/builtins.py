"""The functions that the device provides to every module: vprintf, malloc, free, __assertfail.

Each takes the caller, the numbers of the lanes that call, and one array of u64 for each argument, and returns
an array of results, or None.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from ptxvm.machine.faults import AccessFault
from ptxvm.machine.memory import Memory
from ptxvm.machine.per_lane import Addresses, LaneNumbers

if TYPE_CHECKING:
    import numpy.typing as npt

    from ptxvm.machine.heap import Heap, HeapState

Extent = tuple[int, int, int]
Results: TypeAlias = "npt.NDArray[np.int64] | npt.NDArray[np.uint64] | None"

WORDS: dict[int, np.dtype[np.generic]] = {4: np.dtype(np.uint32), 8: np.dtype(np.uint64)}


class Caller(Protocol):
    """The threads that call a function of the device."""

    def coordinates(self, lane: int) -> tuple[Extent, Extent]:
        """The CTA and the thread of a lane, as (x, y, z)."""


Function = Callable[[Caller, LaneNumbers, Sequence[Addresses]], Results]


def to_stdout(text: str) -> None:
    """The sink for what kernels print, unless the caller gives another."""
    sys.stdout.write(text)


def to_stderr(text: str) -> None:
    """The sink for assertions that failed, which CUDA prints there (CUDA C++ Programming Guide, Assertion)."""
    sys.stderr.write(text)


def nowhere(text: str) -> None:
    """The sink of a kernel whose output is not wanted, as when it runs again."""


class Library:
    """The functions of a device, by name; `output` collects what they print, and a sink receives it as well."""

    def __init__(
        self, memory: Memory, heap: Heap | None = None, sink: Callable[[str], None] = to_stdout,
        error_sink: Callable[[str], None] = to_stderr,
    ) -> None:  # fmt: skip
        self.memory, self.sink, self.error_sink = memory, sink, error_sink
        self._heap = heap
        self.output: list[str] = []
        self.functions: dict[str, Function] = {
            "vprintf": self.vprintf,
            "malloc": self.malloc,
            "free": self.free,
            "__assertfail": self.assertfail,
        }

    @property
    def heap(self) -> Heap:
        """The heap, made when it is first used."""
        if self._heap is None:
            from ptxvm.machine.heap import Heap  # noqa: PLC0415 - few kernels ask for memory

            self._heap = Heap(self.memory)
        return self._heap

    @property
    def heap_state(self) -> HeapState | None:
        """The blocks of the heap, to be put back; None where there is no heap yet."""
        return None if self._heap is None else self._heap.state

    @heap_state.setter
    def heap_state(self, state: HeapState | None) -> None:
        if self._heap is not None:
            self._heap.state = state or self._heap.empty

    def get(self, name: str) -> Function | None:
        """The function of a name."""
        return self.functions.get(name)

    def print(self, text: str, *, error: bool = False) -> None:
        """Record and forward text that a kernel prints, or an assertion that failed."""
        self.output.append(text)
        (self.error_sink if error else self.sink)(text)

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Send nothing to the sink meanwhile, for a kernel that runs again."""
        sinks = self.sink, self.error_sink
        self.send_to(nowhere, nowhere)
        try:
            yield
        finally:
            self.send_to(*sinks)

    def send_to(self, sink: Callable[[str], None], error_sink: Callable[[str], None]) -> None:
        """Give what kernels print, and assertions that failed, to other sinks."""
        self.sink, self.error_sink = sink, error_sink

    # ── the functions ───────────────────────────────────────────────────────────────────

    def vprintf(self, caller: Caller, lanes: LaneNumbers, arguments: Sequence[Addresses]) -> Results:  # noqa: ARG002
        """Print; returns how many arguments were taken, -1 for a null format."""
        from ptxvm.machine import printf  # noqa: PLC0415 - most kernels print nothing

        formats, buffers = arguments
        texts = [""] * len(lanes)
        taken = np.full(len(lanes), -1, np.int64)
        for address in np.unique(formats[formats != 0]):
            mine = np.flatnonzero(formats == address)
            pieces = printf.parse(self._string(int(address), lanes, int(mine[0])))
            slots = printf.layout(pieces)
            columns = [self._column(buffers[mine] + np.uint64(at), size, lanes[mine], mine) for at, size in slots]
            taken[mine] = len(slots)
            for row, position in enumerate(mine.tolist()):
                read = partial(self._string, lanes=lanes, position=position)
                texts[position] = printf.render(pieces, iter([column[row] for column in columns]), read)
        self.print("".join(texts))
        return taken

    def _string(self, address: int, lanes: LaneNumbers, position: int) -> str:
        """The string at a lane's pointer; a fault names that lane."""
        try:
            return self.memory.read_string(address, int(lanes[position]))
        except AccessFault as fault:
            raise fault.at_lane(position) from None

    def _column(self, address: Addresses, size: int, lanes: LaneNumbers, positions: LaneNumbers) -> list[int]:
        """One argument of all lanes."""
        try:
            values: list[int] = self.memory.load(WORDS[size], address, lanes=lanes).tolist()
        except AccessFault as fault:
            raise fault.at_lane(int(positions[fault.lane_index])) from None
        return values

    def malloc(self, caller: Caller, lanes: LaneNumbers, arguments: Sequence[Addresses]) -> Results:  # noqa: ARG002
        """A block of the heap, or null."""
        return np.array([self.heap.malloc(size) for size in arguments[0].tolist()], np.uint64)

    def free(self, caller: Caller, lanes: LaneNumbers, arguments: Sequence[Addresses]) -> Results:  # noqa: ARG002
        """Free a block."""
        for position, address in enumerate(arguments[0].tolist()):
            self.heap.free(address, position)
        return None

    def assertfail(self, caller: Caller, lanes: LaneNumbers, arguments: Sequence[Addresses]) -> Results:
        """The fault of the first lane whose assertion failed."""
        messages, files, numbers, functions, *_ = ([int(value) for value in column] for column in arguments)
        said = []
        for lane, message, file, number, function in zip(lanes.tolist(), messages, files, numbers, functions, strict=True):
            text, where, name = (self.memory.read_string(at, lane) if at else "" for at in (message, file, function))
            cta, thread = (",".join(map(str, index)) for index in caller.coordinates(lane))
            line = number & 0xFFFF_FFFF
            said.append(f"{where}:{line}: {name}: block: [{cta}], thread: [{thread}] Assertion `{text}` failed.")
        self.print("".join(f"{line}\n" for line in said), error=True)
        raise AccessFault("assertion", said[0])
