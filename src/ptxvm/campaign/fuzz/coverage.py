"""Coverage of a case: lines of the package that ran, codes of diagnostics, and mnemonics of declared instructions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import ptxvm.syntax

PACKAGE = str(Path(ptxvm.syntax.__file__).parents[1])
EVERY = 256
"""One case of so many is traced: that takes ten times as long."""


class Coverage:
    """What the cases of a process have shown."""

    def __init__(self) -> None:
        self.known: set[str] = set()

    def new(self, features: Iterable[str]) -> tuple[str, ...]:
        """The features that no case before has shown."""
        found = sorted(set(features) - self.known)
        self.known.update(found)
        return tuple(found)


class Tracer:
    """Traces the lines of the package, but no function all of whose lines have been seen: that is what is slow."""

    def __init__(self) -> None:
        self._unseen: dict[CodeType, set[int]] = {}  # the lines of each function that has been called
        self._new: set[str] = set()

    def traced(self, work: Callable[[], object]) -> set[str]:
        """The lines that some work runs, and none before has run, as features."""
        self._new = set()
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            work()
        finally:
            sys.settrace(before)
        return self._new

    def _called(self, frame: FrameType, _event: str, _: Any) -> Any:  # noqa: ANN401 - the protocol of `sys.settrace`
        code, unseen = frame.f_code, self._unseen.get(frame.f_code)
        if unseen is None:
            ours = code.co_filename.startswith(PACKAGE)
            unseen = self._unseen[code] = {line for *_, line in code.co_lines() if line is not None and ours}
            unseen.discard(code.co_firstlineno)  # of which no event tells
        if not unseen:
            return None
        new, file = self._new, code.co_filename[len(PACKAGE) + 1 :]

        def line(frame: FrameType, event: str, _: Any) -> Any:  # noqa: ANN401
            if event == "line" and frame.f_lineno in unseen:
                unseen.remove(frame.f_lineno)
                new.add(f"{file}:{frame.f_lineno}")
            return line

        return line


__all__ = ["EVERY", "Coverage", "Tracer"]
