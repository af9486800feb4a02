"""Host calls: the protocol of the host for compiled code, and of the Python functions behind such calls.

Launches of ready code do not import this module: only annotations name its types.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from dataclasses import field
from typing import TYPE_CHECKING, ClassVar, Protocol, Self, TypeAlias

import numpy as np

from ptxvm.algebra.asynchronous import AsyncKind
from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Place
from ptxvm.machine.per_lane import Array, LaneNumbers

if TYPE_CHECKING:
    from ptxvm.engine.dynamic_parallelism import Children
    from ptxvm.engine.jit.abi.tile_product import TileFunction, TileProduct
    from ptxvm.engine.limits import Limits
    from ptxvm.machine.builtins import Library
    from ptxvm.machine.cluster_queue import ClusterQueue
    from ptxvm.machine.environment import Environment
    from ptxvm.machine.image import Image
    from ptxvm.machine.launch import LaunchShape
    from ptxvm.machine.memory import Memory
    from ptxvm.machine.tensor_engine import InPlace
    from ptxvm.machine.tensor_memory import TensorMemory
    from ptxvm.machine.texture_unit import Operands, Work
    from ptxvm.machine.window import Window


class GridLaunch(Protocol):
    """The launch that compiled code belongs to (`run.launch_state`)."""

    @property
    def shape(self) -> LaunchShape:
        """Its grid."""

    @property
    def limits(self) -> Limits | None:
        """The limits of instructions and seconds."""

    @property
    def clusters(self) -> ClusterQueue:
        """The clusters of its grid that have not begun."""

    @property
    def children(self) -> Children | None:
        """The grids that it launches; None where its kernel launches none."""


class ColumnWaits(Protocol):
    """The warps that wait for columns of tensor memory (`run.column_waits`)."""

    def arrive(self, bound: Bound, threads: LaneNumbers, columns: int) -> None:
        """Lanes of a warp of the CTA that runs wait; when all that live have come, the warp asks for its columns."""

    def grant(self, bound: Bound, thread: int) -> None:
        """Release the warps of the CTA that runs for which there are columns now; `thread` is one of its threads."""


class PlanTables(Protocol):
    """Tables of plans for compiled code, which are empty when a launch begins (`run.plan_tables`).

    `calls` has the code of products that the host calls.
    """

    calls: dict[Hashable, list[InPlace | None]]

    def copy(self, words: Sequence[int], offsets: Array) -> None:
        """Enter the plan of a tensor copy (`abi.copy_plan`), and the offsets of its rows."""

    def product(self, words: Sequence[int], tables: Sequence[Array]) -> None:
        """Enter the plan of a product (`abi.tensor_record`), and the tables that it names."""

    def texture(self, words: Sequence[int], *arrays: Array) -> None:
        """Enter the plan of look-ups in a texture (`abi.texture_plan`), and the arrays that its words name."""

    def surface(self, words: Sequence[int], array: Array) -> None:
        """Enter the plan of a surface (`abi.surface_plan`), and its array."""

    @property
    def copies(self) -> Array:
        """Memory for copies of A and B, and for a whole A that was sparse: a row for each."""

    @property
    def kept(self) -> Array:
        """Memory for D before a product in several parts."""

    @property
    def room(self) -> Array:
        """Memory for functions that multiply tiles."""


class Host(Protocol):
    """The host as a host call sees it (`run.callbacks`)."""

    @property
    def image(self) -> Image:
        """The program in memory."""

    @property
    def memory(self) -> Memory:
        """The memory of the device."""

    @property
    def library(self) -> Library:
        """The functions of the device."""

    @property
    def windows(self) -> Mapping[Space, Window]:
        """Shared and local memory, by space."""

    @property
    def launch(self) -> GridLaunch:
        """The launch."""

    @property
    def environment(self) -> Environment:
        """The special registers of the launch."""

    def coordinates(self, lane: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """The CTA and the thread of a lane."""

    def tensor_memory(self, bound: Bound, thread: int) -> TensorMemory:
        """The tensor memory of a thread's CTA, which an instruction uses."""

    def tile_function(self, tile: TileProduct) -> TileFunction | None:
        """The function that multiplies tiles of matrices; None where there is none."""

    @property
    def columns(self) -> ColumnWaits:
        """The warps that wait for columns of tensor memory."""

    @property
    def barrier_record(self) -> int:
        """The address of the barrier record of the CTA that runs (`abi.cta_barriers`)."""

    def cta_of(self, thread: int) -> int:
        """The number of the CTA of a thread of the cluster that runs."""

    @property
    def plan_tables(self) -> PlanTables:
        """The tables that compiled code has of tensor copies, tensor memory, textures and surfaces."""

    def remember_cells(self, bound: Bound, thread: int) -> None:
        """Tell compiled code of the tensor memory of a thread's CTA (`abi.tensor_record`)."""

    @property
    def cluster_size(self) -> int:
        """The number of CTAs of a cluster."""

    @property
    def threads_per_cta(self) -> int:
        """The number of threads of a CTA."""

    def place(self, number: int, thread: int) -> Place:
        """The source place of an instruction, and the thread that ran it."""

    @property
    def deferral(self) -> Deferral:
        """The queue of deferred work of the CTA that runs, and of its cluster."""

    def look_up(self, work: Work, operands: Operands) -> None:
        """Called before the texture unit is asked; an observed launch checks the shadow memory here."""


HostCall: TypeAlias = Callable[[Host, Bound, LaneNumbers, list[Array]], list[Array] | None]
"""Takes the host, the instruction, the numbers of the active lanes' threads, and their operands; gives their results."""

# ── deferred work ───────────────────────────────────────────────────────────────────────


class Role(enum.Enum):
    """The relation of asynchronous work to the work behind it."""

    COPY = enum.auto()  # arrivals of its thread come after it
    TRANSFER = enum.auto()  # nothing waits for it in the queue
    ARRIVAL = enum.auto()  # comes after all earlier work of its kind of its thread
    CELLS = enum.auto()  # work of one thread on tensor memory: that of a CTA ends in order, and arrivals come after it
    STORE = enum.auto()  # a store of a warp to tensor memory: it ends as a whole
    PRODUCT = enum.auto()  # a product of a warp: it ends as a whole, after those that the warp began before


@dataclass
class DeferredWork:
    """Asynchronous work that threads of deferred code started with one instruction; that of each may end at a time of its own.

    A host call puts it in the queue of its cluster.  It ends in a later one: where a thread waits for it, or where the machine
    chooses.  `groups` counts, for each thread, the groups that it had committed before; the queue sets it.
    """

    role: ClassVar[Role]
    bound: Bound
    kind: AsyncKind
    threads: LaneNumbers
    groups: Array = field(default_factory=lambda: np.empty(0, np.int64), init=False)

    def of(self, positions: Array) -> Self:
        """The work of the threads at some positions."""
        part = copy(self)
        part.threads, part.groups = self.threads[positions], self.groups[positions]
        return part

    def finish(self, host: Host) -> None:
        """Do it; AccessFault, with the position of a thread, where it is wrong."""
        raise NotImplementedError


class Deferral(Protocol):
    """The queue of deferred work of a cluster (`run.work_queue`)."""

    under_way: list[DeferredWork]
    accumulators: dict[tuple[int, int], Array]
    """What products have made of registers, by the first thread of the warp and the register: a wait gives it to the code."""

    def start(self, work: DeferredWork) -> None:
        """Threads start work."""

    def commit(self, threads: LaneNumbers, kind: AsyncKind) -> None:
        """Threads make a group of the work of a kind that they have started."""

    def wait(self, threads: LaneNumbers, kind: AsyncKind, left: int) -> None:
        """Threads wait for all but their `left` latest groups."""

    def poll(self, threads: LaneNumbers) -> None:
        """Threads have found that a phase of an mbarrier is not over."""
