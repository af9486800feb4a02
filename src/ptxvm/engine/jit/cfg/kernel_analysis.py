"""The analysis of a kernel: what is known before translation, and is the same for all of its versions."""

from __future__ import annotations

from functools import cache, cached_property, partial

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Bound, Function
from ptxvm.engine import spin_loops
from ptxvm.engine.call_targets import called
from ptxvm.engine.jit.cfg import divergence_sources, grid_stride, loop_strides, requirements, row_walks
from ptxvm.engine.jit.cfg.control_flow_graph import ControlFlowGraph
from ptxvm.engine.jit.cfg.local_pointers import became_local, in_local_space
from ptxvm.engine.jit.cfg.loop_strides import Stride
from ptxvm.engine.jit.cfg.nodes import Frame
from ptxvm.engine.jit.cfg.parameter_registers import in_registers
from ptxvm.engine.jit.cfg.row_walks import Walk
from ptxvm.engine.jit.cfg.unset_registers import UnsetRegisters
from ptxvm.machine.image import Image


class KernelAnalysis:
    """The answers about a kernel, each found when the first version asks."""

    def __init__(
        self, image: Image, function: Function, *, ordered: bool = False, deferred: bool = False, registers: bool = True
    ) -> None:
        """With `registers`, parameters of calls are in registers where they can be."""
        self._body = cache(partial(translated, registers=registers))
        self.image, self.function, self.ordered, self.deferred = image, function, ordered, deferred
        self._graphs: dict[tuple[bool, bool], ControlFlowGraph] = {}
        self._memory_dependent: dict[Function, int] = {}
        self._place_dependent: dict[Function, int] = {}

    def graph(self, *, general: bool, bounded: bool = False) -> ControlFlowGraph:
        """The control flow graph; the `general` one is that of a version with a lane scheduler.

        In a `bounded` one the variables of accesses are known, and pointers to one of several have marks.
        """
        if (general, bounded) not in self._graphs:
            self._graphs[general, bounded] = ControlFlowGraph(
                self.image,
                self.function,
                general=general,
                spinning=self.spinning,
                ordered=self.ordered,
                deferred=self.deferred,
                bounded=bounded,
                body=self._body,
            )
        return self._graphs[general, bounded]

    def partial_barriers(self, cluster_size: int) -> bool:
        """Does it need the lane scheduler: for barriers of some threads, and functions whose code stands once?"""
        return cluster_size > 1 or self._partial_barriers

    @cached_property
    def _partial_barriers(self) -> bool:
        return (
            self.unbounded or requirements.partial_barriers(self.image, self.function) or bool(self.graph(general=False).shared)
        )

    @cached_property
    def unbounded(self) -> bool:
        """Is the depth of its stack unknown?"""
        return requirements.unbounded(self.image, self.function)

    @cached_property
    def device_functions(self) -> frozenset[str]:
        """The functions of the device that it calls."""
        return requirements.device_functions(self.image, self.function)

    @cached_property
    def spinning(self) -> frozenset[Bound]:
        """The branches at the ends of its spin loops."""
        return spin_loops.spins(self.image, self.function)

    @cached_property
    def polls(self) -> bool:
        """Does it look for the ends of phases of mbarriers?"""
        functions = called(self.image, self.function)
        return any(bound.summary.polls for each in functions for bound in each.instructions)

    @cached_property
    def unset_registers(self) -> UnsetRegisters:
        """The registers that may be read before they are written."""
        return UnsetRegisters(self.function)

    @cached_property
    def grid_strides(self) -> frozenset[Bound]:
        """The branches at the ends of its grid-stride loops."""
        return grid_stride.grid_strides(self.function)

    @cached_property
    def row_walks(self) -> dict[Bound, Walk]:
        """The loads of it, and of the functions that it calls, that walk along rows."""
        functions = called(self.image, self.function)
        return {bound: walk for each in functions for bound, walk in row_walks.row_walks(each).items()}

    @cached_property
    def loop_strides(self) -> dict[Bound, Stride]:
        """How far the loops of it, and of the functions that it calls, move addresses."""
        functions = called(self.image, self.function)
        return {bound: stride for each in functions for bound, stride in loop_strides.loop_strides(each).items()}

    @cached_property
    def local_grain(self) -> int:
        """The grain in bytes in which its local memory can be interleaved; 0 where it cannot."""
        functions = list(called(self.image, self.function))
        once = self.unbounded or self.graph(general=False).shared  # their variables lie where a register of the thread says
        return 0 if once and len(functions) > 1 else requirements.local_grain(list(map(self._body, functions)))

    @cached_property
    def makes_local_generic(self) -> bool:
        """Does it, or a function that it calls, make generic addresses of local memory?"""
        functions = called(self.image, self.function)
        return any(bound.summary.generic_of is Space.LOCAL for each in functions for bound in self._body(each).instructions)

    @cached_property
    def grows_stack(self) -> bool:
        """May its threads or those functions use `alloca`?"""
        return any(bound.summary.grows_stack for each in called(self.image, self.function) for bound in each.instructions)

    @cached_property
    def became_local(self) -> frozenset[Bound]:
        """The accesses of local memory whose offsets have 64 bits that count."""
        functions = called(self.image, self.function)
        return frozenset(bound for each in functions for bound in became_local(each, self._body(each)))

    def memory_dependent(self, frame: Frame) -> int:
        """The registers of a function that depend on loaded values, as a mask."""
        if frame.function not in self._memory_dependent:
            self._memory_dependent[frame.function] = divergence_sources.memory_dependent(frame.code)
        return self._memory_dependent[frame.function]

    def place_dependent(self, frame: Frame) -> int:
        """The registers of a function that depend on the place of a thread in its CTA, but not on the CTA, as a mask."""
        if frame.function not in self._place_dependent:
            self._place_dependent[frame.function] = divergence_sources.place_dependent(
                frame.function, divergence_sources.lane_dependent(frame.code)
            )
        return self._place_dependent[frame.function]


def translated(function: Function, *, registers: bool) -> Function:
    """A function as it is translated."""
    return in_local_space(in_registers(function) if registers else function)
