"""The executable graph whose node a launch is, as its kernel sees it (PTX 10.33, `%current_graph_exec`)."""

from __future__ import annotations

from contextvars import ContextVar

from ptxvm.named_tuple import NamedTuple


class RunningGraph(NamedTuple):
    """A graph that runs: its handle if it is one for launches from the device, and the address of its record, 0 for none.

    `ptxvm.driver.device_graphs` says what the record holds.
    """

    handle: int = 0
    record: int = 0


RUNNING: ContextVar[RunningGraph] = ContextVar("the graph that runs", default=RunningGraph())  # noqa: B039 - it is immutable
"""The graph that launches on this thread belong to."""

__all__ = ["RUNNING", "RunningGraph"]
