"""Nodes of graphs that record an event, or wait for one (driver API, "Graph Management")."""

from __future__ import annotations

import time

from ptxvm.dataclass import dataclass
from ptxvm.driver.event import Event
from ptxvm.driver.graph import Prepared, Task
from ptxvm.driver.launch_checks import Checked
from ptxvm.driver.queue import Mark

WAIT_EVENT, RECORD_EVENT = 6, 7  # CUgraphNodeType


@dataclass(frozen=True)
class Reach(Task):
    """Reach an event, at the point that the launch of the graph has recorded."""

    mark: Mark
    is_short = True

    def run(self, checked: Checked | None) -> None:
        """Note that the stream has reached the event."""
        if checked is not None and checked.order is not None:
            checked.order.record(self.mark.order)
        self.cancel()

    def cancel(self) -> None:
        """The event is reached: what waits for it goes on, and finds the error."""
        self.mark.reach(time.perf_counter())


@dataclass(frozen=True)
class Hold(Task):
    """Wait for the last record that an event had when the graph was launched, if it had one."""

    mark: Mark | None

    @property
    def is_short(self) -> bool:
        """Is the event reached?"""
        return self.mark is None or self.mark.is_reached

    def run(self, checked: Checked | None) -> None:
        """Wait for the event."""
        if self.mark is None:
            return
        self.mark.hold()
        if checked is not None and checked.order is not None:
            checked.order.wait(self.mark.order)


@dataclass(eq=False)
class EventNode(Prepared):
    """A node that records an event, or waits for one."""

    event: Event
    records: bool

    def prepared(self) -> Task:
        """The task for one launch, which counts as the last record of the event from then on."""
        if not self.records:
            return Hold(self.event.mark)
        self.event.mark, self.event.capture = Mark(), None
        self.event.settle()
        return Reach(self.event.mark)


__all__ = ["RECORD_EVENT", "WAIT_EVENT", "EventNode"]
