"""The state of a grid between two instructions: kept as bytes, and put back.

What does not change, such as code, is shared; memory is kept in chunks, and a chunk that is as it was in the state before is
shared with that.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterable, Iterator
from functools import _lru_cache_wrapper
from types import BuiltinFunctionType, FunctionType
from typing import Any, ClassVar

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.analysis.program import Bound, Function, Program
from ptxvm.analysis.symbols import Label, Register, Table, Variable
from ptxvm.dataclass import dataclass
from ptxvm.engine.interp.accesses import Access, CopyInstruction, Transferring
from ptxvm.engine.interp.executable import Executable
from ptxvm.engine.interp.lanes import LaneLayout
from ptxvm.engine.interp.origins import Origins
from ptxvm.engine.interp.routine import Routine
from ptxvm.engine.interp.segment import TracedSegment
from ptxvm.engine.interp.stepping import SteppedGrid
from ptxvm.isa.model import Decoded
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.environment import Environment
from ptxvm.machine.image import Image
from ptxvm.machine.launch import LaunchShape
from ptxvm.machine.memory import Memory
from ptxvm.machine.per_lane import Array
from ptxvm.machine.window import Window
from ptxvm.syntax import tree

CHUNK = 1 << 16  # bytes
SHARED = (
    Access, CopyInstruction, Transferring,
    Allocation, Bound, BuiltinFunctionType, Decoded, Environment, Executable, Function, FunctionType, Image, Label, LaneLayout,
    LaunchShape, Memory, Origins, Program, Register, Routine, Table, TracedSegment, Type, Variable, Window, _lru_cache_wrapper,
    tree.Node,
)  # fmt: skip
"""Classes whose objects a state refers to, for they do not change while a grid runs, or are put back apart.

`Origins` only grows: traced segments, which stay, have its numbers.
"""


class _Pickler(pickle.Pickler):
    """Copies what changes, and refers to what does not."""

    is_shared: ClassVar[dict[type, bool]] = {}

    def __init__(self, file: io.BytesIO, shared: list[object], more: Iterable[object]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.shared = shared
        self.numbers: dict[int, int] = {}
        for each in more:
            self.number(each)

    def persistent_id(self, thing: object) -> int | None:
        """The number of a shared object."""
        kind = type(thing)
        known = self.is_shared.get(kind)
        if known is None:
            known = self.is_shared[kind] = issubclass(kind, SHARED)
        return self.number(thing) if known else self.numbers.get(id(thing))

    def number(self, thing: object) -> int:
        """The number of an object, a new one for a new object."""
        found = self.numbers.setdefault(id(thing), len(self.shared))
        if found == len(self.shared):
            self.shared.append(thing)
        return found


class _Unpickler(pickle.Unpickler):
    """Makes copies of what changes."""

    def __init__(self, file: io.BytesIO, shared: list[object]) -> None:
        super().__init__(file)
        self.shared = shared

    def persistent_load(self, number: Any) -> object:  # noqa: ANN401 - pickle's own signature
        """The shared object of a number."""
        return self.shared[number]


@dataclass(frozen=True, slots=True)
class KeptAllocation:
    """An allocation, what keeps its memory alive, and its bytes in chunks; no chunks where a kernel cannot change them."""

    allocation: Allocation
    owners: tuple[Array, ...]
    uses: int
    foreign: int
    chunks: tuple[Array, ...]

    def put_back(self) -> None:
        """Let the allocation be as it was."""
        allocation = self.allocation
        allocation.live, allocation.uses, allocation.foreign = True, self.uses, self.foreign
        allocation.owners[:] = self.owners
        for at, chunk in zip(range(0, allocation.size, CHUNK), self.chunks, strict=False):
            allocation.bytes[at : at + len(chunk)] = chunk


class GridState:
    """The state of a grid at one time, and a copy of all memory that the grid may change."""

    def __init__(self, grid: SteppedGrid, before: GridState | None = None) -> None:
        self.shared: list[object] = []
        file = io.BytesIO()
        pickler = _Pickler(file, self.shared, (grid.observer, grid.code.children, grid.code.library))
        library, children = grid.code.library, grid.code.children
        changing = {name: value for name, value in vars(children).items() if name not in ("functions", "run")}
        self.launches = [*grid.suspended, grid.launch]
        launches = [(each.running, each.left, each.opened.clusters) for each in self.launches]
        pickler.dump((launches, grid.counters, changing, library.heap_state, grid.watching))
        self.bytes, self.begun = file.getvalue(), grid.begun
        self.printed = len(library.output)
        known = {id(each.allocation): each for each in before.allocations} if before is not None else {}
        self.allocations: list[KeptAllocation] = [kept(each, known.get(id(each))) for each in grid.image.memory.table.items]

    @property
    def chunks(self) -> Iterator[Array]:
        """The copies of memory, some of which other states share."""
        return (chunk for each in self.allocations for chunk in each.chunks)

    def put_back(self, grid: SteppedGrid) -> None:
        """Let the grid be as it was."""
        memory, library = grid.image.memory, grid.code.library
        launches, grid.counters, changing, heap, grid.watching = _Unpickler(io.BytesIO(self.bytes), self.shared).load()
        wanted = {id(each.allocation) for each in self.allocations}
        for allocation in list(memory.table.items):
            if id(allocation) not in wanted:
                memory.hide(allocation)
        present = {id(each) for each in memory.table.items}
        for each in self.allocations:
            each.put_back()
            if id(each.allocation) not in present:
                memory.show(each.allocation)
        *grid.suspended, grid.launch = self.launches
        grid.begun = self.begun
        for launch, (running, left, clusters) in zip(self.launches, launches, strict=True):
            launch.running, launch.left = running, left
            vars(launch.opened.clusters).update(vars(clusters))
            for schedule in running:
                schedule.cohort.clusters = launch.opened.clusters
        vars(grid.code.children).update(changing)
        library.heap_state = heap
        del library.output[self.printed :]


def kept(allocation: Allocation, before: KeptAllocation | None) -> KeptAllocation:
    """An allocation with a copy of its bytes, where a kernel can change them."""
    chunks: tuple[Array, ...] = ()
    if allocation.writable and allocation.space in (Space.GLOBAL, Space.SHARED, Space.LOCAL) and not allocation.yields:
        old = before.chunks if before is not None else ()
        parts = (allocation.bytes[at : at + CHUNK] for at in range(0, allocation.size, CHUNK))
        chunks = tuple(chunk(part, old[n] if n < len(old) else None) for n, part in enumerate(parts))
    return KeptAllocation(allocation, tuple(allocation.owners), allocation.uses, allocation.foreign, chunks)


def chunk(held: Array, before: Array | None) -> Array:
    """A copy of some bytes, or the copy of before where they have not changed."""
    return before if before is not None and np.array_equal(held, before) else held.copy()


__all__ = ["GridState"]
