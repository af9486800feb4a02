"""The translations that a process remembers: a bounded cache, least recently used out first, over all modules.

A translation is asked for again where a kernel is compiled better, or its lanes part: it is worth keeping a while, and takes
much more memory than its text.  One that is forgotten is made again.
"""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import ref

if TYPE_CHECKING:
    from ptxvm.engine.jit.translate.translation import Translation

MOST = 8  # translations
MOST_TEXT = 4 << 20  # characters of LLVM assembly in them; the last one is kept, however long


class Remembered:
    """A kernel, and its translation while that is remembered."""

    def __init__(self, make: Callable[[], Translation]) -> None:
        self.make = make
        self.size = 0  # characters
        self.translation: Translation | None = None


class RecentTranslations:
    """The kernels whose translations are remembered, the last used one at the end.  A module that is dropped drops its own."""

    def __init__(self, most: int = MOST, most_text: int = MOST_TEXT) -> None:
        self.most, self.most_text = most, most_text
        self._used: list[ref[Remembered]] = []
        self._lock = allocate_lock()

    def get(self, of: Remembered) -> Translation:
        """The translation of a kernel, remembered or new."""
        with self._lock:
            found = of.translation = of.translation or of.make()
            self._use(of)
        return found

    def measure(self, of: Remembered, text: str) -> None:
        """Account for the text of a version, and forget what is too much."""
        with self._lock:
            of.size = max(of.size, len(text))
            self._use(of)

    def _use(self, of: Remembered) -> None:
        alive = [each for reference in self._used if (each := reference()) is not None and each is not of]
        if of.translation is not None:
            alive.append(of)
        while len(alive) > 1 and (len(alive) > self.most or sum(each.size for each in alive) > self.most_text):
            alive.pop(0).translation = None
        self._used = [ref(each) for each in alive]


RECENT = RecentTranslations()
"""Those of this process."""
