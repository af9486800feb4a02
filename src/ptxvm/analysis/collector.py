"""Python's cyclic garbage collector, paused where much is made that stays: a collection then looks at all of it in vain."""

from __future__ import annotations

import gc


class NoCollection:
    """Within `with` nothing is collected, in any thread; it may be nested."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._before:
            gc.enable()
