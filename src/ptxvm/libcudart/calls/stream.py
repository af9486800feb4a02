"""Streams and events, where the driver's functions have other parameters."""

from __future__ import annotations

from ptxvm.libcuda.calls import stream as driver
from ptxvm.libcudart.runtime_state import function


@function("cudaStreamCreate")
def create(out: int) -> None:
    """A new stream of the thread's device."""
    driver.create(out, 0)


@function("cudaEventCreate")
def create_event(out: int) -> None:
    """A new event of the thread's device."""
    driver.create_event(out, 0)
