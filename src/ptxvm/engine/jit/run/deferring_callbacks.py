"""The callbacks of a launch whose asynchronous work is deferred: it has a queue for each cluster that is resident."""

from __future__ import annotations

from ptxvm.diagnostics.errors import Fault
from ptxvm.engine import faults
from ptxvm.engine.jit.abi.host import DeferredWork
from ptxvm.engine.jit.abi.launch_record import AT
from ptxvm.engine.jit.run.callbacks import Callbacks
from ptxvm.engine.jit.run.work_queue import WorkQueue
from ptxvm.machine.faults import AccessFault


class DeferringCallbacks(Callbacks):
    """The callbacks of deferred code."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self._queues: dict[int, tuple[WorkQueue, int]] = {}  # by the first slot of the cluster, with its first CTA

    @property
    def deferral(self) -> WorkQueue:
        """The queue of the cluster of the CTA that runs."""
        slot = int(self.record[AT["slot"]])
        first = slot - slot % self.cluster_size
        if first not in self._queues:
            cta, size = super().cta_of(first * self.threads_per_cta), self.threads_per_cta
            when, seed = self.launch.asynchronous
            chosen = [seed, cta] if when == "random" else None
            self._queues[first] = WorkQueue(first * size, self.cluster_size * size, self._finish, chosen), cta
        return self._queues[first][0]

    def cta_of(self, thread: int) -> int:
        """The CTA of a thread, which may be one of another cluster than that of the CTA that runs."""
        slot = thread // self.threads_per_cta
        first = slot - slot % self.cluster_size
        return self._queues[first][1] + slot - first if first in self._queues else super().cta_of(thread)

    def settle(self, slot: int) -> None:
        """End all work of the cluster at a slot, whose CTAs have ended."""
        try:
            with self.memory.lock:
                if slot in self._queues:
                    self._queues[slot][0].end()
                self._queues.pop(slot, None)
        except BaseException as error:  # noqa: BLE001 - it is raised again when the code has returned
            self._queues.pop(slot, None)
            self._failed(error)

    def settle_all(self) -> None:
        """End all work: no CTA runs any more."""
        for slot in list(self._queues):
            if self.launch.raised is None:
                self.settle(slot)
        self._queues.clear()

    def _tick(self) -> int:
        """Time has passed: a thread may look for the oldest work in memory, which no wait tells."""
        try:
            with self.memory.lock:
                for queue, _ in self._queues.values():
                    queue.end(most=1)
        except BaseException as error:  # noqa: BLE001 - it is raised again when the code has returned
            self._failed(error)
            return 1
        return super()._tick()

    def _finish(self, work: DeferredWork) -> None:
        """Do work; a fault gets the place where the work began."""
        try:
            work.finish(self)
        except AccessFault as wrong:
            thread = int(work.threads[wrong.lane_index])
            where = self.launch.shape.ctaid(self.cta_of(thread)), self.tid(thread)
            place = faults.place(self.facts.name, work.bound, *where)
            raise Fault(wrong.kind, str(wrong), address=wrong.address, size=wrong.size, place=place) from None


__all__ = ["DeferringCallbacks"]
