"""Interception of launches: the debugger runs those of a program, in place of the engines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from ptxvm.analysis.program import Function
    from ptxvm.machine.image import Image
    from ptxvm.machine.launch_options import LaunchOptions
    from ptxvm.machine.result import LaunchResult

Runs: TypeAlias = "Callable[[Image, Function, LaunchOptions, Sequence[object]], LaunchResult]"
"""Runs a kernel of an image to its end."""


class Interceptor:
    """The function that runs launches in place of the engines; None where the engines run them."""

    runs: Runs | None = None


INTERCEPTOR = Interceptor()


@contextmanager
def intercepted(runs: Runs) -> Iterator[None]:
    """Within it all launches of the process are run so."""
    before, INTERCEPTOR.runs = INTERCEPTOR.runs, runs
    try:
        yield
    finally:
        INTERCEPTOR.runs = before


__all__ = ["INTERCEPTOR", "intercepted"]
