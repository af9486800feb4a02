"""Signals during a launch: an exception of a handler inside a callback would be lost, so the launch raises it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import FrameType

from ptxvm.engine.jit.run.launch_state import Launch

# The C module: `signal` makes enumerations, which takes longer than a small kernel.
_raw = import_module("_signal")
GET: Callable[[int], object] = _raw.getsignal
SET: Callable[[int, object], object] = _raw.signal
# Signals whose handlers raise: Ctrl-C, termination, and the timeout of a test.
KINDS = [int(getattr(_raw, name)) for name in ("SIGINT", "SIGTERM", "SIGALRM") if hasattr(_raw, name)]


class SignalHandler:
    """Wraps a handler: its exception interrupts the launch."""

    def __init__(self, usual: Callable[[int, FrameType | None], object], launch: Launch) -> None:
        self.usual, self.launch = usual, launch

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        try:
            self.usual(number, frame)
        except BaseException as error:  # noqa: BLE001 - the launch raises it
            self.launch.interrupted(error)


class Signals:
    """While entered, an error of a handler interrupts the launch, which raises it when all its threads have stopped.

    Of nested launches the inner one raises it, within the outer one.  Python runs handlers in the main thread only, so
    elsewhere this does nothing.  A launch that is repeated enters the same object again.
    """

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self._before: list[tuple[int, object]] = []
        self._made: dict[int, SignalHandler] = {}  # the last wrapper for each signal

    def __enter__(self) -> None:
        for number in KINDS:
            handler = GET(number)
            if callable(handler):
                usual, made = handler.usual if isinstance(handler, SignalHandler) else handler, self._made.get(number)
                if made is None or made.usual is not usual:
                    made = self._made[number] = SignalHandler(usual, self.launch)
                try:
                    SET(number, made)
                except ValueError:  # this is not the main thread
                    return
                self._before.append((number, handler))

    def __exit__(self, *error: object) -> None:
        while self._before:
            SET(*self._before.pop())
