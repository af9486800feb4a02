"""Dynamic parallelism: the functions by which kernels launch grids, and the order in which these grids run.

A child grid may begin at any time after its launch, and its parent has ended when all children have (CUDA C++
programming guide, "CUDA Dynamic Parallelism").  Here the children run when all CTAs of the parent have ended: one after
the other in the order of their launches, each with its own children; grids of the stream `cudaStreamTailLaunch` run last.
CTAs are unordered, so the children of the first CTA come first, whatever the engine ran first.  `cudaDeviceSynchronize`
runs the grids that the CTA has launched, on the same thread of the host; of a grid that is run instruction by instruction they
are `awaited`, and run before its next one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Function
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.engine.child_grids import ChildGrid, LaunchListener, RuntimeCall, SuspendedGrid
from ptxvm.engine.protocol import Counters
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.builtins import Caller, Extent, Function as DeviceFunction, Results
from ptxvm.machine.faults import AccessFault, plural
from ptxvm.machine.image import Image, KernelFacts
from ptxvm.machine.launch import LaunchShape, check_shared
from ptxvm.machine.per_lane import Addresses, LaneNumbers
from ptxvm.machine.window import elsewhere

SUCCESS, INVALID_VALUE, INVALID_CONFIGURATION, SYNC_DEPTH_EXCEEDED, UNSUPPORTED_LIMIT = 0, 1, 9, 68, 215  # cudaError_t
MOST_WAITS = 24  # the greatest depth of grids that wait for their children (cudaLimitDevRuntimeSyncDepth)
OF_THE_CTA = frozenset({0, 1, 2})  # the null stream, cudaStreamLegacy and cudaStreamPerThread
TAIL_LAUNCH = 3  # cudaStreamTailLaunch
FIRE_AND_FORGET = 4  # cudaStreamFireAndForget
DISABLE_TIMING = 2  # cudaEventDisableTiming
STREAMS = count(0x5000)  # handles of streams and events that kernels make
GRIDS = count(1)
BUFFER_ALIGNMENT = 64

Run = Callable[[Function, LaunchShape, int, int], Counters]
"""Runs one grid: a kernel, its shape, the address of its parameters, bytes of dynamic shared memory."""


class Children:
    """The child grids that kernels of an image have launched."""

    def __init__(self, image: Image) -> None:
        self.image, self.memory = image, image.memory
        self.functions = {name: self._of_threads(function) for name, function in FUNCTIONS.items()}
        self.run: Run | None = None
        self.is_open = False  # does a grid run?
        self.listener: LaunchListener | None = None
        self.counters = Counters()
        self.waiting: list[ChildGrid] = []
        self.awaited: list[ChildGrid] = []  # those for which threads of a stepped grid wait, in order
        self._grid = self._waits = 0
        self._generations: list[list[ChildGrid]] = []  # those that `next_child` has still to give
        self._parents: list[ChildGrid] = []  # those that it has given and that have not ended with all that they launched
        self._waiters: list[RuntimeCall] = []  # the calls that wait for what is awaited
        self._suspended: list[SuspendedGrid] = []  # stepped grids that wait for others
        self._buffers: dict[int, Allocation] = {}
        self._prepared: dict[int, ChildGrid] = {}
        self._errors: dict[tuple[int, tuple[Extent, Extent]], int] = {}
        self._streams: dict[int, int] = {}  # streams that kernels have made, and the grid of each
        self._events: dict[int, int] = {}  # the same for events
        self._recorders: dict[int, tuple[int, Extent]] = {}  # the CTA that has recorded an event last
        self._kept: dict[int, object] = {}  # windows of the parent, so that no window of a child reuses an address

    # ── running ─────────────────────────────────────────────────────────────────────────

    def grid(
        self,
        run: Run,
        kernel: Function,
        shape: LaunchShape,
        parameters: int,
        shared: int,
        listener: LaunchListener | None = None,
    ) -> Counters:
        """Run a grid and all grids that it launches."""
        self.open(run, listener)
        try:
            self._count(run(kernel, shape, parameters, shared))
            self.finish()
        finally:
            self.close()
        return self.counters

    def open(self, run: Run | None, listener: LaunchListener | None = None) -> None:
        """A grid begins whose threads may launch others, for `run` to run; without it, for `next_child` to give."""
        self.run, self.counters, self.listener = run, Counters(), listener
        self._grid = self._waits = 0
        self.is_open = True

    def finish(self) -> None:
        """The grid has run to its end: run all grids that it launched."""
        self._finish(self._take())
        if self._buffers and self.listener is not None:
            self.listener.unlaunched([*self._buffers.values()])

    def next_child(self) -> ChildGrid | None:
        """The grid that runs when one has run to its end: the first of its children, or else of those before."""
        self._generations.append(self._take())
        while self._generations and not self._generations[-1]:
            self._generations.pop()
            ended = self._parents.pop() if self._parents else None
            if ended is not None and self.listener is not None:
                self.listener.ended(ended)
        if not self._generations:
            return None
        self._parents.append(self._generations[-1].pop(0))
        return self._parents[-1]

    def suspend(self) -> None:
        """The stepped grid that runs waits: `next_child` gives what is `awaited`, and all that this launches."""
        self._suspended.append(SuspendedGrid(self._grid, self.waiting, self._generations, self._parents, self._waiters))
        self.waiting, self._generations, self._parents, self.awaited, self._waiters = [], [self.awaited], [], [], []
        self._waits += 1

    def resume(self) -> None:
        """The grid that was suspended last goes on."""
        grid = self._suspended.pop()
        self._grid, self.waiting, self._generations, self._parents = grid.number, grid.waiting, grid.generations, grid.parents
        self._waits -= 1
        if self.listener is not None:
            for call in grid.waiters:
                self.listener.waited(call)

    def begin(self, child: ChildGrid) -> Allocation:
        """Let a child grid begin that runs by itself; its parameters, in memory that ends with it."""
        bank = self.memory.allocate(len(child.buffer.bytes), 256, Space.PARAM, "the parameters", writable=False)
        bank.bytes[:] = child.buffer.bytes
        if self.listener is not None:
            self.listener.begins(child, bank)
        self._release(child.buffer)
        self._grid = next(GRIDS)
        return bank

    @property
    def is_launching(self) -> bool:
        """Do grids wait that were launched?"""
        return bool(self.waiting or self._generations)

    def close(self) -> None:
        """The grid has ended, with all others or by a fault."""
        self.run = self.listener = None
        self.is_open = False
        self._generations, self._parents, self._suspended, self.awaited, self._waiters = [], [], [], [], []
        self._forget()

    def _finish(self, first: list[ChildGrid]) -> None:
        """Run some grids, each followed at once by its children: a grid ends after its children."""
        elders, self.waiting = self.waiting, []
        generations, parents = [first], list[ChildGrid]()
        while generations:
            if generations[-1]:
                parents.append(generations[-1].pop(0))
                self._begin(parents[-1])
                generations.append(self._take())
            else:
                generations.pop()
                if parents and self.listener is not None:
                    self.listener.ended(parents[-1])
                del parents[-1:]
        self.waiting = elders

    def _begin(self, child: ChildGrid) -> None:
        """Run one child grid."""
        if self.run is None:
            raise Unsupported("a launch from the device without a grid")
        bank = self.memory.allocate(len(child.buffer.bytes), 256, Space.PARAM, "the parameters", writable=False)
        parent, self._grid = self._grid, next(GRIDS)
        try:
            bank.bytes[:] = child.buffer.bytes
            if self.listener is not None:
                self.listener.begins(child, bank)
            self._release(child.buffer)
            self._count(self.run(child.kernel, child.shape, bank.start, child.shared))
        finally:
            self._grid = parent
            self.memory.release(bank)

    def _take(self, cta: tuple[int, Extent] | None = None) -> list[ChildGrid]:
        """Take the grids that run now, in order: all that wait, or the waiting grids of a CTA."""
        taken = [child for child in self.waiting if cta is None or (cta == child.cta and not child.last)]
        self.waiting = [child for child in self.waiting if child not in taken]
        return sorted(taken, key=lambda child: child.order)

    def _count(self, done: Counters) -> None:
        self.counters.instructions += done.instructions
        self.counters.thread_instructions += done.thread_instructions
        self.counters.steps += done.steps

    def _forget(self) -> None:
        """Release the buffers that were not launched with, and drop the grids that a fault keeps from running."""
        for buffer in [*self._buffers.values()]:
            self._release(buffer)
        for held in (
            self.waiting,
            self._buffers,
            self._prepared,
            self._errors,
            self._streams,
            self._events,
            self._recorders,
            self._kept,
        ):
            held.clear()

    def _release(self, buffer: Allocation) -> None:
        self.memory.release(self._buffers.pop(buffer.start))

    # ── the functions, for one thread ───────────────────────────────────────────────────

    def get_parameter_buffer(self, call: RuntimeCall, alignment: int, size: int) -> int:
        """Allocate a buffer for the parameters of a launch."""
        buffer = self.memory.allocate(max(size, 1), max(alignment, BUFFER_ALIGNMENT), name="the parameters of a launch")
        self._buffers[buffer.start] = buffer
        if self.listener is not None:
            self.listener.asked(buffer, call)
        return buffer.start

    def launch_device(self, call: RuntimeCall, kernel: int, buffer: int, *rest: int) -> int:
        """Launch a kernel: its address, its parameters, grid, block, shared memory and stream."""
        *sizes, shared, stream = rest
        child = self._child(call, kernel, buffer, sizes, shared)
        return INVALID_CONFIGURATION if child is None else self._launch(call, child, stream)

    def get_parameter_buffer_v2(self, call: RuntimeCall, kernel: int, *rest: int) -> int:
        """Allocate a buffer for the parameters, shape and shared memory of a launch; null where the shape is invalid."""
        *sizes, shared = rest
        buffer = self.get_parameter_buffer(call, BUFFER_ALIGNMENT, self.image.parameters(self._kernel(call, kernel)).size)
        child = self._child(call, kernel, buffer, sizes, shared)
        if child is None:
            self._release(self._buffers[buffer])
            return 0
        self._prepared[buffer] = child
        return buffer

    def launch_device_v2(self, call: RuntimeCall, buffer: int, stream: int) -> int:
        """Launch the kernel of a buffer."""
        child = self._prepared.pop(buffer, None)
        if child is None:
            raise AccessFault("invalid-launch", f"{buffer:#x} is no buffer for a launch", buffer, lane_index=call.position)
        return self._launch(call, child, stream)

    def device_synchronize(self, call: RuntimeCall) -> int:
        """Wait for the grids that the CTA has launched."""
        if self._waits == MOST_WAITS:
            self._errors[call.thread] = SYNC_DEPTH_EXCEEDED
            return SYNC_DEPTH_EXCEEDED
        if self.run is None:
            self.awaited += self._take(call.cta)
            if self.awaited:
                self._waiters.append(call)
            elif self.listener is not None:
                self.listener.waited(call)
            return SUCCESS
        self._waits += 1
        with elsewhere(call.cohort.windows.values()):
            self._finish(self._take(call.cta))
        self._waits -= 1
        if self.listener is not None:
            self.listener.waited(call)
        return SUCCESS

    def get_last_error(self, call: RuntimeCall) -> int:
        """The last error of the thread; it is reset."""
        return self._errors.pop(call.thread, SUCCESS)

    def peek_at_last_error(self, call: RuntimeCall) -> int:
        """The last error of the thread."""
        return self._errors.get(call.thread, SUCCESS)

    def stream_create_with_flags(self, call: RuntimeCall, target: int, flags: int) -> int:
        """Make a stream; here all grids run in the order of their launches, whatever their streams."""
        stream = next(STREAMS)
        self._put(call, target, np.uint64(stream))
        self._streams[stream] = call.grid
        return SUCCESS

    def stream_destroy(self, call: RuntimeCall, stream: int) -> int:
        """End the use of a stream."""
        self._check_stream(call, stream)
        del self._streams[stream]
        return SUCCESS

    def event_create_with_flags(self, call: RuntimeCall, target: int, flags: int) -> int:
        """Make an event, for the order of streams alone; without cudaEventDisableTiming it is an error."""
        if flags != DISABLE_TIMING:
            self._errors[call.thread] = INVALID_VALUE
            return INVALID_VALUE
        event = next(STREAMS)
        self._put(call, target, np.uint64(event))
        self._events[event] = call.grid
        return SUCCESS

    def event_record(self, call: RuntimeCall, event: int, stream: int, flags: int = 0) -> int:
        """Record an event on a stream: the grids of a CTA run in the order of their launches, so it has its place already."""
        self._check_event(call, event)
        self._check_choice(call, stream)
        self._recorders[event] = call.cta
        if self.listener is not None:
            self.listener.recorded(event, call, stream)
        return SUCCESS

    def stream_wait_event(self, call: RuntimeCall, stream: int, event: int, flags: int) -> int:
        """Let a stream wait for an event, behind which its grids run in any case."""
        self._check_event(call, event)
        self._check_choice(call, stream)
        if self._recorders.get(event, call.cta) != call.cta:
            raise Unsupported("cudaStreamWaitEvent for an event that another CTA has recorded")
        if self.listener is not None:
            self.listener.awaits(event, call, stream)
        return SUCCESS

    def event_destroy(self, call: RuntimeCall, event: int) -> int:
        """End the use of an event."""
        self._check_event(call, event)
        del self._events[event]
        return SUCCESS

    def get_device(self, call: RuntimeCall, target: int) -> int:
        """Store the number of the device."""
        self._put(call, target, np.int32(self.memory.table.device))
        return SUCCESS

    def device_get_limit(self, call: RuntimeCall, target: int, number: int) -> int:
        """Store a limit of the device."""
        if (value := self._facts().limit(number)) is None:
            return UNSUPPORTED_LIMIT
        self._put(call, target, np.uint64(value))
        return SUCCESS

    def func_get_attributes(self, call: RuntimeCall, target: int, kernel: int) -> int:
        """Store the attributes of a kernel (cudaFuncAttributes)."""
        words = np.frombuffer(self._facts().attributes(self._kernel(call, kernel)), np.uint64)
        for n, word in enumerate(words):
            self._put(call, target + word.nbytes * n, word)
        return SUCCESS

    def occupancy(self, call: RuntimeCall, target: int, kernel: int, threads: int, shared: int, flags: int = 0) -> int:
        """Store how many blocks of a kernel a multiprocessor holds."""
        self._put(call, target, np.int32(self._facts().resident_blocks(self._kernel(call, kernel), threads, shared)))
        return SUCCESS

    def _facts(self) -> KernelFacts:
        """The facts of kernels on the device; Unsupported without a driver."""
        if self.image.facts is None:
            raise Unsupported("attributes and occupancy of kernels, asked by a kernel, without a driver", "ptxvm.driver")
        return self.image.facts

    def _put(self, call: RuntimeCall, target: int, value: np.generic) -> None:
        """Store a value at the address that the thread has passed."""
        try:
            where, lanes = np.array([target], np.uint64), np.array([call.lane])
            self.memory.store(value.dtype, where, np.array([value]), lanes=lanes)
        except AccessFault as fault:
            raise fault.at_lane(call.position) from None
        if self.listener is not None and (found := self.memory.table.find(target)) is not None:
            self.listener.stored(found, target - found.origin, value.nbytes)

    def _check_event(self, call: RuntimeCall, event: int) -> None:
        """Refuse an event of another grid."""
        self._check_made(call, event, self._events, "event")

    def _check_choice(self, call: RuntimeCall, stream: int) -> None:
        """Refuse a stream of another grid; every thread has those without a number of their own."""
        if stream not in OF_THE_CTA and stream not in (TAIL_LAUNCH, FIRE_AND_FORGET):
            self._check_stream(call, stream)

    def _check_stream(self, call: RuntimeCall, stream: int) -> None:
        """Refuse a stream of another grid."""
        self._check_made(call, stream, self._streams, "stream")

    def _check_made(self, call: RuntimeCall, handle: int, made: Mapping[int, int], noun: str) -> None:
        """Refuse what no thread of this grid has made; `made` has the grid of each handle."""
        grid = made.get(handle)
        if grid is None:
            raise AccessFault("invalid-launch", f"{handle:#x} is no {noun}", handle, lane_index=call.position)
        if grid != call.grid:
            said = f"the {noun} {handle:#x} was made by another grid, and only the threads of that one may use it"
            raise AccessFault("invalid-launch", said, handle, lane_index=call.position)

    def _launch(self, call: RuntimeCall, child: ChildGrid, stream: int) -> int:
        self._check_choice(call, stream)
        child.cta, child.last = call.cta, stream == TAIL_LAUNCH
        windows = call.cohort.windows.values()
        self._kept.update({id(each): each for window in windows for each in window.allocation.owners})
        self.waiting.append(child)
        if self.listener is not None:
            self.listener.launched(child, call, stream)
        return SUCCESS

    def _child(self, call: RuntimeCall, kernel: int, buffer: int, sizes: Sequence[int], shared: int) -> ChildGrid | None:
        """A child grid; None, and an error of the thread, where the shape is invalid for the kernel."""
        if buffer not in self._buffers:
            raise AccessFault("invalid-launch", f"{buffer:#x} is no buffer for a launch", buffer, lane_index=call.position)
        function = self._kernel(call, kernel)
        given, taken = self._buffers[buffer].size, self.image.parameters(function).size
        if given < taken:
            said = f"the buffer has {plural(given)}, and the parameters of '{function.name}' take {taken}"
            raise AccessFault("invalid-launch", said, buffer, lane_index=call.position)
        try:
            shape = LaunchShape.of(tuple(sizes[:3]), tuple(sizes[3:]))
            shape.check(function)
            check_shared(function, self.image.declared_shared(function), shared)
        except ValueError:
            self._errors[call.thread] = INVALID_CONFIGURATION
            return None
        return ChildGrid(function, shape, shared, self._buffers[buffer])

    def _kernel(self, call: RuntimeCall, address: int) -> Function:
        """The kernel at an address."""
        function = self.image.function_at(address)
        if function is None or not function.entry or not function.defined:
            raise AccessFault("invalid-launch", f"{address:#x} is the address of no kernel", address, lane_index=call.position)
        return function

    def _of_threads(self, function: Callable[..., int]) -> DeviceFunction:
        """A library function that calls `function` for one lane after the other."""

        def handler(cohort: Caller, lanes: LaneNumbers, arguments: Sequence[Addresses]) -> Results:
            if not self.is_open:
                raise Unsupported("a launch from the device without a grid")
            columns = [column.tolist() for column in arguments]
            rows = zip(*columns, strict=True) if columns else [()] * len(lanes)
            calls = [RuntimeCall(self._grid, cohort, lane, position) for position, lane in enumerate(lanes.tolist())]
            answers = [function(self, call, *row) for call, row in zip(calls, rows, strict=True)]
            return np.array(answers, np.uint64)

        return handler


_FUNCTIONS: dict[str, Callable[..., int]] = {
    "GetParameterBuffer": Children.get_parameter_buffer,
    "GetParameterBufferV2": Children.get_parameter_buffer_v2,
    "LaunchDevice": Children.launch_device,
    "LaunchDeviceV2": Children.launch_device_v2,
    "DeviceSynchronize": Children.device_synchronize,
    "GetLastError": Children.get_last_error,
    "PeekAtLastError": Children.peek_at_last_error,
    "StreamCreateWithFlags": Children.stream_create_with_flags,
    "StreamDestroy": Children.stream_destroy,
    "StreamWaitEvent": Children.stream_wait_event,
    "EventCreateWithFlags": Children.event_create_with_flags,
    "EventRecord": Children.event_record,
    "EventRecordWithFlags": Children.event_record,
    "EventDestroy": Children.event_destroy,
    "GetDevice": Children.get_device,
    "DeviceGetLimit": Children.device_get_limit,
    "FuncGetAttributes": Children.func_get_attributes,
    "OccupancyMaxActiveBlocksPerMultiprocessor": Children.occupancy,
    "OccupancyMaxActiveBlocksPerMultiprocessorWithFlags": Children.occupancy,
}
"""By their names without `cuda`."""
OF_STREAMS = ("LaunchDevice", "LaunchDeviceV2", "StreamWaitEvent", "EventRecord", "EventRecordWithFlags")
"""Those that are there twice: with `_ptsz`, stream 0 is the default stream of the thread, which is the same here."""
FUNCTIONS = {
    f"{prefix}{name}{suffix}": function
    for prefix in ("cuda", "__cudaCDP2")
    for name, function in _FUNCTIONS.items()
    for suffix in ("", "_ptsz")[: 1 + (name in OF_STREAMS)]
}
"""By their names before CUDA 12, and since."""
