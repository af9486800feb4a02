"""The fixed point of translation: nodes are written again until no register changes its shape.

A worklist holds the nodes to write.  A node reads the shapes that are known so far; one that widens the shape of a register
puts the readers of that register back on the list.
"""

from __future__ import annotations

from ptxvm.algebra.types import pred, u32, u64
from ptxvm.diagnostics.errors import Crash
from ptxvm.engine.jit.cfg import reachability
from ptxvm.engine.jit.cfg.nodes import Node
from ptxvm.engine.jit.functions import warp_function
from ptxvm.engine.jit.ir.builder import TooWideError
from ptxvm.engine.jit.lower.emitter import Emitter
from ptxvm.engine.jit.lower.terminators import Terminator
from ptxvm.engine.jit.memory import streaming_stores
from ptxvm.engine.jit.node import counters
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.engine.jit.node.divergent_regions import DivergenceError
from ptxvm.engine.jit.node.register_shapes import CARRY, Urgency
from ptxvm.engine.jit.translate.worklist import Worklist

MOST_ROUNDS = 1000  # each masks a node, or adds a node at which lanes may wait


def translate(kernel: KernelContext) -> str:
    """The text of the module of one version of a kernel; raises DivergenceError where the straight version is of no use."""
    kernel.outputs = streaming_stores.streamable(kernel)
    _initialise_registers(kernel)
    FixedPoint(kernel).run()
    return warp_function.module(kernel)


def _initialise_registers(kernel: KernelContext) -> None:
    """Give registers that may be read before they are written the value zero."""
    first, registers = kernel.nodes[0], kernel.registers
    for frame in kernel.graph.numbered:
        for register in frame.body.registers:
            if first.live_in >> register.index + frame.registers & 1:
                for part in range(register.count):
                    registers.initial((register.index + frame.registers, part), register.type)
    for register, index in kernel.graph.module.items():
        for part in range(register.count):
            registers.initial((index, part), register.type)
    for index in kernel.graph.stack_registers:
        registers.initial((index, 0), u32)
    for index in kernel.graph.marks.values():
        registers.initial((index, 0), u64)
    if any("cc" in bound.i.of.effects for bound in kernel.instructions):
        registers.initial(CARRY, pred)


class FixedPoint:
    """Writes the nodes of a kernel until no shape changes."""

    def __init__(self, kernel: KernelContext) -> None:
        self.kernel, self.nodes = kernel, kernel.nodes
        self.queues = tuple(Worklist(lambda n: self.nodes[n].rank) for _ in Urgency)

    @property
    def queue(self) -> Worklist:
        """The worklist of the highest urgency."""
        return self.queues[Urgency.SHAPE]

    def run(self) -> None:
        """Write all reachable nodes, for whole warps and for partial ones."""
        kernel = self.kernel
        everything = reachability.reachable(self.nodes, {0})
        if kernel.rows.has_whole_warps or kernel.scalar:
            self.queue.update((n, True) for n in everything)
        self._settle()  # whole warps come first: what they do not vary, partial ones keep apart
        if kernel.straight and not kernel.divergent_regions.regions:
            return
        if not kernel.straight and (kernel.rows.has_partial_warps or not kernel.main):
            self._mask(everything)
        for _ in range(MOST_ROUNDS):
            self._settle()
            if not self._part(everything):
                return
        said = f"the nodes at which lanes of '{kernel.function.name}' may wait still change after {MOST_ROUNDS} rounds"
        raise Crash(f"{said}; please report this (engine='interp' runs the kernel)")

    def _part(self, everything: set[int]) -> bool:
        """Mask the nodes that diverged lanes reach; must any node be written again?"""
        kernel = self.kernel
        before = kernel.waiting
        starts = {s for n in kernel.divergent for s in self.nodes[n].successors}
        if kernel.general:
            starts |= everything if kernel.fair else self._dispatched() & everything
        self._mask(kernel.divergent_regions.inside if kernel.straight else reachability.reachable(self.nodes, starts))
        kernel.waiting = self._others()
        changed = (n for n, (old, new) in enumerate(zip(before, kernel.waiting, strict=True)) if old != new)
        self.queue.update((n, False) for n in changed if n in kernel.masked)
        return bool(self.queue)

    def _dispatched(self) -> set[int]:
        """The nodes that the lane scheduler enters without divergence: after waits, and after shared functions."""
        backs = {number for frame in self.kernel.graph.frames for number in frame.backs}
        return {node.number for node in self.nodes if node.waits} | backs

    def _others(self) -> list[frozenset[int]]:
        """For each node, the nodes at which other lanes may wait while it runs."""
        if not self.kernel.general:
            return reachability.waiting(self.nodes, self.kernel.divergent)
        return [frozenset(self.kernel.masked - {node.number}) for node in self.nodes]

    def _mask(self, numbers: set[int]) -> None:
        """Let nodes run for some lanes of a warp."""
        self.queue.update((n, False) for n in numbers - self.kernel.masked)
        self.kernel.masked |= numbers

    def _settle(self) -> None:
        """Write nodes until no shape changes."""
        while queue := next(filter(None, self.queues), None):
            number, full = user = queue.pop()
            for each in self.queues:
                each.discard(user)
            self.kernel.written[user] = self._written(self.nodes[number], full=full).written_code()
            for stale, urgency in self.kernel.registers.stale:
                self.queues[urgency].add(stale)
            self.kernel.registers.stale.clear()

    def _written(self, node: Node, *, full: bool) -> Emitter:
        emitter = Emitter(self.kernel, node, full=full)
        try:
            emitter.run()
            counters.node(emitter)
            if emitter.events is not None:
                emitter.events.over = True
            emitter.store_registers()
            Terminator(emitter).run()
        except (DivergenceError, TooWideError):
            if not full or self.kernel.graph.repeats(node) or not self.kernel.graph.has_loops:  # what is left would not pay off
                raise
            return self._left_to_others(node)
        return emitter

    def _left_to_others(self, node: Node) -> Emitter:
        """End the straight version before a node; the masked version runs it warp by warp."""
        self.kernel.endings.add(node.number)
        emitter = Emitter(self.kernel, node, full=True)
        emitter.leaves = True
        emitter.code.jump(emitter.name("leave"))
        return emitter
