"""The state of the C interface: handles of objects, the current contexts of each thread, and the functions by name."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache, wraps
from itertools import count
from typing import TypeVar

from ptxvm.driver.captures import CaptureMode
from ptxvm.driver.cells import CONTEXT, DEFAULT, FAILURE
from ptxvm.driver.context import Context, Stream, refuse_unsafe
from ptxvm.driver.graph import Graph, Node, UserObject
from ptxvm.driver.graph_executables import Executable
from ptxvm.driver.imports import import_named
from ptxvm.driver.results import DriverError, Result
from ptxvm.driver.system import FIT, Driver
from ptxvm.isa.directives import MOST_PARAMETER_BYTES
from ptxvm.libcuda import embedded
from ptxvm.libcuda.host_calls import HERE
from ptxvm.libcuda.records import Records, Stack
from ptxvm.libcuda.threads import PerThread
from ptxvm.machine.opaque import Opaque
from ptxvm.named_tuple import NamedTuple

Implementation = Callable[..., None]
F = TypeVar("F", bound=Implementation)
R = TypeVar("R")
T = TypeVar("T")
FUNCTIONS: dict[str, Implementation] = {}
"""The implemented functions, by symbol; they raise errors as exceptions."""
OF_ANY_STATE: set[str] = set()
"""Those that also work after a kernel has failed."""
STATELESS: set[str] = set()
"""The functions that work before `cuInit` too, and in a fork of an initialised process."""
NO_HANDLE: dict[type, Result] = {
    **dict.fromkeys((Graph, Node, Executable, UserObject), Result.INVALID_VALUE),
    Context: Result.INVALID_CONTEXT,
}
"""The error for a handle that is none, by the type of the object, where it is not INVALID_HANDLE (driver API, "Returns")."""
Gather = Callable[[int, int, int, int], int]
"""Takes the addresses of pointers to arguments and of their places, their number, and the address of a block; 0 where a
pointer may point nowhere."""
NO_STREAM, LEGACY_STREAM, STREAM_OF_THREAD = range(3)  # null, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD


def function(*symbols: str, any_state: bool = False, stateless: bool = False) -> Callable[[F], F]:
    """Enter a function under its symbols; for `any_state` and `stateless` see `OF_ANY_STATE` and `STATELESS`."""

    def enter(implementation: F) -> F:
        for symbol in symbols:
            FUNCTIONS[symbol] = implementation
            if any_state:
                OF_ANY_STATE.add(symbol)
            if stateless:
                STATELESS.add(symbol)
        return implementation

    return enter


def with_default_of_thread(function: Callable[..., R]) -> Callable[..., R]:
    """A function for which stream 0 is the default stream of the calling thread (CUDA C++ guide, "Default Stream")."""

    @wraps(function)
    def call(*arguments: object) -> R:
        thread = session().thread
        thread.has_default = True
        try:
            return function(*arguments)
        finally:
            thread.has_default = False

    return call


def then_failure(release: Callable[..., None]) -> Callable[..., None]:
    """A function that releases what it names in any state, and then tells the error of the context, as other calls do."""

    @wraps(release)
    def call(*arguments: object) -> None:
        release(*arguments)
        if (context := session().stack.current) is not None:
            context.raise_failure()

    return call


Life = object  # of a context: another one after a reset


class OpaqueObject(NamedTuple):
    """A texture or surface that a client holds, and the structures that describe it."""

    object: Opaque
    life: Life  # of the context with which it ends
    resource: bytes
    sampling: bytes = b""
    view: bytes = b""


class Handles:
    """The objects that clients hold, by number; those of `Records` are addresses, the others are not."""

    def __init__(self) -> None:
        self.records = Records()
        self.objects: dict[int, object] = {}
        self.numbers: dict[int, int] = {}  # by the id of the object; the handle keeps the object alive
        self.lives: dict[int, object] = {}  # of the contexts with which handles end, by handle
        self._next = count(0x1000_0000, 0x40)

    def handle(self, object: object, wanted: int | None = None) -> int:
        """The handle of an object: if it has none, a new one, or the `wanted` one."""
        if (known := self.numbers.get(id(object))) is not None:
            return known
        number = wanted or self.records.number(object) or next(self._next)
        self.objects[number], self.numbers[id(object)] = object, number
        if isinstance(object, Context):
            object.cells[DEFAULT] = self.handle(object.default_stream)
        elif isinstance(object, Stream):
            object.queue.cells[CONTEXT] = self.handle(object.context)
        return number

    def own(self, object: object, life: object) -> int:
        """The handle of an object that ends with a context, by its life (driver API, `cuCtxDestroy`)."""
        number = self.handle(object)
        self.lives[number] = life
        return number

    def end(self, life: object) -> None:
        """Forget the handles of a context that has ended."""
        for handle in [number for number, each in list(self.lives.items()) if each is life]:
            self.drop(handle)

    def object(self, handle: int, type: type[T]) -> T:
        """The object of a handle; DriverError where it is of another type, or of none."""
        found = self.objects.get(handle)
        if not isinstance(found, type):
            raise DriverError(NO_HANDLE.get(type, Result.INVALID_HANDLE), f"{handle:#x} is no handle of a {type.__name__}")
        return found

    def drop(self, handle: int) -> None:
        """Forget a handle."""
        found = self.objects.pop(handle)
        del self.numbers[id(found)]
        self.lives.pop(handle, None)
        if isinstance(found, Context) and found.cells[DEFAULT]:
            self.drop(found.cells[DEFAULT])
        self.records.drop(found, handle)


class ThreadState(PerThread):
    """The state of each thread: how strictly it lets captures refuse calls, and its default streams, by context.

    `has_default` while it calls a function for which stream 0 is its own default stream; `arguments` has room for those of
    a launch.
    """

    capture_mode = CaptureMode.GLOBAL
    has_default = False

    def __init__(self) -> None:
        super().__init__()
        self.streams: dict[Context, Stream] = {}
        self.arguments = ctypes.create_string_buffer(MOST_PARAMETER_BYTES)


class Session:
    """The state of the interface in a process."""

    def __init__(self) -> None:
        self.driver = Driver()
        self.handles = Handles()
        self.opaque: dict[int, OpaqueObject] = {}  # by the handle that kernels get
        for each in self.driver.primary:
            each.owners += (self,)
        self.initialised = False
        self.forked = False  # from a process that had initialised it
        os.register_at_fork(after_in_child=self.leave)
        self.stack = Stack(self.handles.objects, self.handles.handle)
        """The contexts of the calling thread."""
        self.thread = ThreadState()
        self.kept: dict[str, ctypes.Array[ctypes.c_char]] = {}  # strings that clients were given
        self.lent: dict[int, tuple[object, object]] = {}
        self.listeners: list[Callable[[bool], None]] = []  # libraries that depend on the initialisation of the driver
        self.address_of: Callable[[str], int] = _not_loaded  # the address of an exported function
        self.gather: Gather | None = None  # native code that copies the arguments of a launch into a block

    def own(self, object: object) -> int:
        """The handle of an object that ends with the current context."""
        return self.handles.own(object, self.context.life)

    def end(self, life: object) -> None:
        """Forget what clients hold of a context that has ended: handles, textures and surfaces."""
        self.handles.end(life)
        for number in [number for number, each in list(self.opaque.items()) if each.life is life]:
            del self.opaque[number]

    def initialise(self) -> None:
        """Initialise the driver; DriverError without a device, or in a child of an initialised process."""
        if self.forked:
            raise DriverError(Result.NOT_INITIALIZED, "the driver was initialised before a fork")
        if not self.driver.devices:
            raise DriverError(Result.NO_DEVICE)
        import_named()
        self.initialised = True
        for listener in self.listeners:
            listener(True)  # noqa: FBT003 - it has one parameter
        embedded.initialised()

    def leave(self) -> None:
        """Refuse all calls in a child process, as CUDA does (driver API, `cuInit`)."""
        self.forked |= self.initialised
        self.initialised = False
        for listener in self.listeners:
            listener(False)  # noqa: FBT003

    def text(self, value: str) -> int:
        """The address of a string that lives as long as the process."""
        if value not in self.kept:
            self.kept[value] = ctypes.create_string_buffer(value.encode())
        return ctypes.addressof(self.kept[value])

    def keep(self, owner: object, value: T) -> T:
        """Keep an object alive whose address a client has: as long as the process lives, or until the owner's next one."""
        self.lent[id(owner)] = (owner, value)
        return value

    @property
    def context(self) -> Context:
        """The current context, to be used; DriverError where there is none, or it has ended."""
        context = self.any_context
        if context.cells[FAILURE] == Result.CONTEXT_IS_DESTROYED:
            context.raise_failure()
        return context

    @property
    def any_context(self) -> Context:
        """The current context, which may have ended if it is a primary one; DriverError where there is none."""
        if (context := self.stack.current) is None:
            if self.stack.has_ended:
                raise DriverError(Result.CONTEXT_IS_DESTROYED, "the current context of the thread was destroyed")
            raise DriverError(Result.INVALID_CONTEXT, "the thread has no current context")
        return context

    def stream(self, handle: int) -> Stream:
        """A stream by its handle; 0 is the default one of the current context, or of the thread in it."""
        if handle > STREAM_OF_THREAD:
            found = self.handles.object(handle, Stream)
            if found.context.is_detached:
                raise DriverError(Result.STREAM_DETACHED, "the green context of the stream was destroyed")
            return found
        if handle == LEGACY_STREAM or (handle == NO_STREAM and not self.thread.has_default):
            return self.context.default_stream
        context, streams = self.context, self.thread.streams
        if context not in streams:
            streams[context] = Stream(context)
        return streams[context]

    def refuse_unsafe(self) -> None:
        """DriverError for a call that captures do not see, such as an allocation, while one prohibits it."""
        refuse_unsafe(self.thread.capture_mode)

    def check(self, *, any_state: bool) -> None:
        """DriverError where the driver was not initialised, or, unless for `any_state`, a kernel of the context has failed."""
        if any_state:
            self.check_initialised()
        else:
            self.check_usable()

    def check_initialised(self) -> None:
        """DriverError where the driver was not initialised."""
        if not self.initialised:
            said = "the driver was initialised before a fork" if self.forked else "cuInit was not called"
            raise DriverError(Result.NOT_INITIALIZED, said)

    def check_usable(self) -> None:
        """DriverError where the driver was not initialised, the context failed, or a stream calls the client.

        A context that has ended is no error of functions that need none.
        """
        if not self.initialised:
            self.check_initialised()
        if HERE.is_running:
            raise DriverError(Result.NOT_PERMITTED, "a function that a stream or a graph calls must not use the driver")
        context = self.stack.current
        if context is not None and context.cells[FAILURE] not in FIT:
            context.raise_failure()


def _not_loaded(name: str) -> int:
    raise DriverError(Result.NOT_INITIALIZED, f"the library of {name} was not loaded")


@cache
def session() -> Session:
    """The session of the process."""
    return Session()


__all__ = [
    "FUNCTIONS",
    "NO_HANDLE",
    "OF_ANY_STATE",
    "Handles",
    "OpaqueObject",
    "Session",
    "function",
    "session",
    "then_failure",
    "with_default_of_thread",
]
