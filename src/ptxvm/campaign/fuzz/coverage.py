"""Coverage of a case: lines of the package that ran, codes of diagnostics, and mnemonics of declared instructions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import ptxvm.syntax

PACKAGE = str(Path(ptxvm.syntax.__file__).parents[1])
EVERY = 16
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


def traced(work: Callable[[], object]) -> set[str]:
    """The lines of the package that some work runs, as features."""
    found: set[tuple[str, int]] = set()

    def line(frame: FrameType, event: str, _: Any) -> Any:  # noqa: ANN401 - the protocol of `sys.settrace`
        if event == "line":
            found.add((frame.f_code.co_filename, frame.f_lineno))
        return line

    def called(frame: FrameType, _event: str, _: Any) -> Any:  # noqa: ANN401
        return line if frame.f_code.co_filename.startswith(PACKAGE) else None

    before = sys.gettrace()
    sys.settrace(called)
    try:
        work()
    finally:
        sys.settrace(before)
        shown = {f"{Path(file).relative_to(PACKAGE)}:{number}" for file, number in found}
    return shown


__all__ = ["EVERY", "Coverage", "traced"]
