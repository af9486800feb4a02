"""Signals while compiled code runs: what their handlers raise would be lost in a callback, and is kept for the launch."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import FrameType
from typing import Any

from ptxvm.engine.jit.run.launch_state import Launch

# The module as C has it: `signal` makes enumerations, which takes longer than a small kernel.
_raw = import_module("_signal")
GET: Callable[[int], Any] = _raw.getsignal
SET: Callable[[int, Any], Any] = _raw.signal
# Those whose handlers raise: Ctrl-C, and what ends a process or a test that takes too long.
KINDS = [int(getattr(_raw, name)) for name in ("SIGINT", "SIGTERM", "SIGALRM") if hasattr(_raw, name)]


class Handler:
    """Does what another handler does, and interrupts a launch where that raises."""

    def __init__(self, usual: Callable[[int, FrameType | None], Any], launch: Launch) -> None:
        self.usual, self.launch = usual, launch

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """A signal has come."""
        try:
            self.usual(number, frame)
        except BaseException as error:  # noqa: BLE001 - the launch raises it
            self.launch.interrupted(error)


class Signals:
    """While it is entered, an error of a handler interrupts the launch, which raises it when all its threads have stopped.

    Of launches in launches it is the inner one that raises it, in the middle of the outer one.  Python runs handlers in
    the main thread only, so elsewhere there is nothing to do.
    """

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self._before: list[tuple[int, Any]] = []

    def __enter__(self) -> None:
        for number in KINDS:
            handler = GET(number)
            if callable(handler):
                try:
                    SET(number, Handler(handler.usual if isinstance(handler, Handler) else handler, self.launch))
                except ValueError:  # this is not the main thread
                    return
                self._before.append((number, handler))

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before:
            SET(number, handler)
