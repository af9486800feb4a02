"""Records of contexts, streams and events, whose addresses are their handles; and the stack of contexts of each thread.

Native code reads both, and changes the stacks (`native.ll`).
"""

from __future__ import annotations

import ctypes
import mmap
from collections import deque
from collections.abc import Callable, Iterable, MutableSequence
from typing import overload

from ptxvm.driver import cells
from ptxvm.driver.cells import Cells
from ptxvm.driver.context import Context, Stream
from ptxvm.driver.event import Event
from ptxvm.libcuda.threads import PerThread

WORD = 8
SIZE = cells.COUNT * WORD
MOST = 1 << 21  # records at once: 64 MiB of addresses; only the used pages take memory
SOONEST = 1 << 12  # dropped records before the oldest one is reused: a client may use a handle too long
DEPTH, ROOM, FIRST = range(3)  # of a stack: the number of contexts, the capacity, and the handle of the lowest


class Records:
    """The records of a process."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, MOST * SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._words = memoryview(self._memory).cast("Q")
        self.start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self.end = self.start + MOST * SIZE
        self._fresh = 0
        self._free: deque[int] = deque()

    def number(self, object: object) -> int | None:
        """A new record for a context, stream or event, with its cells: the address; None for others, or if all are in use."""
        if not isinstance(object, Context | Stream | Event):
            return None
        if len(self._free) > SOONEST:
            index = self._free.popleft()
        elif self._fresh < MOST:
            index, self._fresh = self._fresh, self._fresh + 1
        else:
            return None
        bind(object, self._words[index * cells.COUNT : (index + 1) * cells.COUNT])
        return self.start + index * SIZE

    def drop(self, object: object, number: int) -> None:
        """Drop the record of an object, if it has one; the object gets cells of its own again."""
        if isinstance(object, Context | Stream | Event) and self.start <= number < self.end:
            index = (number - self.start) // SIZE
            bind(object, [0] * cells.COUNT)
            self._words[index * cells.COUNT + cells.KIND] = cells.NO_KIND
            self._free.append(index)


def bind(object: Context | Stream | Event, shared: Cells) -> None:
    """Move the cells of an object."""
    if isinstance(object, Stream):
        object.queue.bind(shared)
    else:
        object.cells = cells.bound(object.cells, shared)


class ThreadStack(PerThread):
    """The stack of handles of each thread: words that native code finds by a key of the C library."""

    def __init__(self, key: int) -> None:
        super().__init__()
        self.key = key
        self.words: Cells
        self.grow([0, 0])

    def grow(self, old: Iterable[int]) -> None:
        """Enlarge the stack."""
        before = list(old)
        words = WORDS.pop() if WORDS and len(before) <= FIRST else (ctypes.c_uint64 * max(64, 2 * len(before)))()
        for n, word in enumerate(before):
            words[n] = word
        words[ROOM] = len(words) - FIRST
        self.held = Held(words)  # gives them up when the thread has ended
        self.words = memoryview(words).cast("B").cast("Q")
        ctypes.CDLL(None).pthread_setspecific(self.key, ctypes.c_void_p(ctypes.addressof(words)))


Words = ctypes.Array[ctypes.c_uint64]
WORDS: list[Words] = []
"""Words of threads that have ended: destructors of C++ may still read them."""


class Held:
    """The words of a thread."""

    def __init__(self, words: Words) -> None:
        self.words = words

    def __del__(self) -> None:
        """The thread has ended, or its stack is enlarged."""
        self.words[DEPTH] = 0
        WORDS.append(self.words)


class Stack(MutableSequence[Context]):
    """The contexts of the calling thread; the last one is current."""

    def __init__(self, objects: dict[int, object], handle_of: Callable[[Context], int]) -> None:
        made = ctypes.c_uint()
        ctypes.CDLL(None).pthread_key_create(ctypes.byref(made), None)
        self.key = made.value
        self._objects, self._handle_of = objects, handle_of
        self._thread = ThreadStack(self.key)

    @property
    def current(self) -> Context | None:
        """The current context; None where there is none, or it was destroyed."""
        words = self._thread.words
        depth = words[DEPTH]
        found = self._objects.get(words[FIRST - 1 + depth]) if depth else None
        return found if isinstance(found, Context) else None

    @property
    def has_ended(self) -> bool:
        """Is the current context destroyed?"""
        return self.current is None and bool(self._thread.words[DEPTH])

    def _all(self) -> list[Context]:
        words = self._thread.words
        found = (self._objects.get(words[FIRST + n]) for n in range(words[DEPTH]))
        return [each for each in found if isinstance(each, Context)]

    def _keep(self, contexts: list[Context]) -> None:
        handles = [self._handle_of(each) for each in contexts]
        words = self._thread.words
        if len(handles) > words[ROOM]:
            self._thread.grow([0, 0, *handles])
        for n, handle in enumerate(handles):
            self._thread.words[FIRST + n] = handle
        self._thread.words[DEPTH] = len(handles)

    def __len__(self) -> int:
        """The number of contexts."""
        return len(self._all())

    @overload
    def __getitem__(self, index: int) -> Context: ...
    @overload
    def __getitem__(self, index: slice) -> list[Context]: ...
    def __getitem__(self, index: int | slice) -> Context | list[Context]:
        """A context, or several."""
        return self._all()[index]

    @overload
    def __setitem__(self, index: int, value: Context) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[Context]) -> None: ...
    def __setitem__(self, index: int | slice, value: Context | Iterable[Context]) -> None:
        """Replace a context, or several."""
        contexts = self._all()
        contexts[index] = value  # type: ignore[index,assignment]  # as the overloads say
        self._keep(contexts)

    def __delitem__(self, index: int | slice) -> None:
        """Remove a context, or several."""
        contexts = self._all()
        del contexts[index]
        self._keep(contexts)

    def insert(self, index: int, value: Context) -> None:
        """Insert a context."""
        contexts = self._all()
        contexts.insert(index, value)
        self._keep(contexts)


__all__ = ["Records", "Stack"]
