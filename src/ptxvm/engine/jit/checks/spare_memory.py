"""Memory that instrumented launches leave to later ones, of whatever kernel.

To touch memory that the host has not backed yet costs more than to copy it, and more than all checks of a short kernel.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.memory.tags import BEFORE, EPOCH
from ptxvm.engine.jit.node.instrumentation import GRAIN
from ptxvm.machine.backing import Bytes

if TYPE_CHECKING:
    import numpy.typing as npt

LINE = 64  # bytes that the processor caches together
START = BEFORE  # the epoch of the first grid in fresh memory
MOST_TAGS = 1 << 30  # bytes of tags that are kept
MOST_COPIES = 256 << 20  # bytes of copies that are kept


@dataclass(slots=True)
class TagMemory:
    """Memory for tags: its words, and the epoch of the next grid, which is later than all tags in it; so nothing clears it.

    `backed` has the pieces that the host has backed, the number of words by the first one.  `marked` says that there may be
    tags of bytes without a value.  The last launch went through so many epochs.
    """

    tags: npt.NDArray[np.uint32]
    epoch: int = 0
    backed: dict[int, int] = field(default_factory=dict)
    marked: bool = False
    last: int = 0

    @classmethod
    def fresh(cls, count: int) -> TagMemory:
        """Memory for some tags; the host only backs what is touched."""
        words = np.zeros(count + LINE // GRAIN, np.uint32)
        return cls(words[-words.ctypes.data % LINE // GRAIN :], START)

    @property
    def size(self) -> int:
        """The bytes that the host has backed, at most."""
        return sum(each.nbytes for each in self.pieces())

    def pieces(self) -> Iterator[npt.NDArray[np.uint32]]:
        """All words that may be tags, each in one piece."""
        end = 0
        for first, count in sorted(self.backed.items()):
            start, end = max(first, end), max(first + count, end)
            yield self.tags[start:end]

    def touch(self, first: int, count: int) -> npt.NDArray[np.uint32]:
        """The words of a piece, which the host is about to back."""
        self.backed[first] = max(self.backed.get(first, 0), count)
        return self.tags[first : first + count]

    def leave(self, epoch: int) -> None:
        """A launch has ended in an epoch."""
        self.last, self.epoch = epoch - self.epoch, epoch + EPOCH

    def begin(self, most: int) -> None:
        """A launch begins: where it would come to an epoch that is too late, there are no tags any more."""
        if self.epoch + self.last + self.last // 4 < most:
            return
        for piece in self.pieces():
            piece[:] = 0
        self.epoch, self.marked = START, False


class SpareTags:
    """The memory for tags that no launch uses."""

    def __init__(self) -> None:
        self._held: list[TagMemory] = []
        self._lock = threading.Lock()

    def take(self, count: int) -> TagMemory:
        """Memory for some tags: what an earlier launch has left, or fresh memory."""
        with self._lock:
            found = next((each for each in self._held if len(each.tags) >= count), None)
            if found is not None:
                self._held.remove(found)
        return found or TagMemory.fresh(count)

    def give(self, memory: TagMemory) -> None:
        """Leave memory to later launches; what was left first is dropped where there is too much."""
        with self._lock:
            self._held.insert(0, memory)
            while sum(each.size for each in self._held) > MOST_TAGS:
                self._held.pop()


class SpareCopies:
    """The memory for copies that no launch uses."""

    def __init__(self) -> None:
        self._held: list[Bytes] = []
        self._lock = threading.Lock()

    def take(self, size: int) -> Bytes:
        """Memory for a copy: what an earlier launch has left, if it is not much too large, or fresh memory."""
        with self._lock:
            for number, each in enumerate(self._held):
                if size <= each.nbytes <= 2 * size:
                    return self._held.pop(number)[:size]
        return np.empty(size, np.uint8)

    def give(self, copy: Bytes) -> None:
        """Leave memory to later launches; what was left first is dropped where there is too much."""
        with self._lock:
            self._held.insert(0, copy if copy.base is None else copy.base)
            while sum(each.nbytes for each in self._held) > MOST_COPIES:
                self._held.pop()


TAGS, COPIES = SpareTags(), SpareCopies()
