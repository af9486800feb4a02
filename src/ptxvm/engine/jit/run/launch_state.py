"""The state of a launch that the host threads share."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from ptxvm.diagnostics.errors import Place
from ptxvm.engine.jit.abi.metadata import Facts
from ptxvm.engine.limits import Limits
from ptxvm.engine.protocol import Counters
from ptxvm.machine.image import Image
from ptxvm.machine.launch import LaunchShape
from ptxvm.machine.running_graph import RUNNING

if TYPE_CHECKING:
    from ptxvm.engine.dynamic_parallelism import Children
    from ptxvm.engine.jit.run.recording import Recording
    from ptxvm.machine.cluster_queue import ClusterQueue
    from ptxvm.machine.environment import Environment
    from ptxvm.profile.timeline import Timeline


class Launch:
    """The limit, the error and the counters of a grid; `children` are the grids that it launches.

    CTAs begin in order, and those before `limit` run to their end.  So the error that is raised is that of the first CTA
    that failed, however many threads run the grid.
    """

    def __init__(
        self, image: Image, facts: Facts, shape: LaunchShape, limits: Limits | None, children: Children | None = None,
        timeline: Timeline | None = None, recording: Recording | None = None, asynchronous: tuple[str, int] = ("", 0),
    ) -> None:  # fmt: skip
        """`asynchronous` says when deferred work ends, and the seed of random choices."""
        self.image, self.facts, self.shape, self.limits, self.children = image, facts, shape, limits, children
        self.timeline, self.recording, self.graph = timeline, recording, RUNNING.get()
        self.asynchronous = asynchronous
        self.steps = self.instructions = self.thread_instructions = 0
        self.limit = shape.ctas
        self.raised: BaseException | None = None
        self._lock = allocate_lock()

    def failed(self, cta: int, error: BaseException) -> None:
        """A CTA has failed."""
        with self._lock:
            if self.raised is None or cta < self.limit:
                self.limit, self.raised = cta, error

    def interrupted(self, error: BaseException) -> None:
        """The user has interrupted: all CTAs stop."""
        self.failed(-1, error)

    def counted(self, instructions: int, thread_instructions: int) -> None:
        """Add the instructions of a host thread."""
        with self._lock:
            self.instructions += instructions
            self.thread_instructions += thread_instructions

    def passed(self, steps: int, place: Callable[[], Place]) -> None:
        """Time has passed; raises a timeout at the place if the limit is exceeded."""
        with self._lock:
            self.steps += steps
        if self.limits is not None and self.limits.late:
            raise self.limits.timed_out(place())

    @cached_property
    def clusters(self) -> ClusterQueue:
        """The clusters that have not begun, of a grid whose threads may cancel them."""
        from ptxvm.machine.cluster_queue import ClusterQueue  # noqa: PLC0415 - few kernels do

        return ClusterQueue(self.shape)

    @cached_property
    def environment(self) -> Environment:
        """The special registers of the launch."""
        from ptxvm.machine.environment import Environment  # noqa: PLC0415 - few kernels ask for it

        program = self.image.function_numbered(self.facts.function).program
        dynamic, total = (self.facts.constants[name] for name in ("dynamic_smem_size", "total_smem_size"))
        architecture = program.target.number if program is not None else 0
        reserved, cooperative = self.image.shared.reserved, self.shape.cooperative
        grid = None if self.recording is None else self.recording.grid
        return Environment(
            self.image.memory, dynamic, total, architecture, reserved, self.graph, cooperative=cooperative, grid=grid
        )  # fmt: skip

    def counters(self) -> Counters:
        """The counters of the grid; raises its error."""
        if self.raised is not None:
            raise self.raised
        return Counters(self.instructions, self.thread_instructions, self.steps)

    def release(self) -> None:
        """The grid has ended."""
        if "environment" in self.__dict__:
            self.environment.release()
