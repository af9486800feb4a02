"""Calls of functions of the client by streams and graphs, which must not use the driver (driver API, `cuLaunchHostFunc`)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial


class HostCall(threading.local):
    """Does the thread run a function of the client for a stream or a graph?"""

    is_running = False


HERE = HostCall()


def host_call(called: Callable[..., None], *arguments: object) -> Callable[[], None]:
    """A call of a function of the client, to be run by a stream or a graph."""
    return partial(_run, called, arguments)


def _run(called: Callable[..., None], arguments: tuple[object, ...]) -> None:
    HERE.is_running = True
    try:
        called(*arguments)
    finally:
        HERE.is_running = False


__all__ = ["HERE", "host_call"]
