"""Spill layout: the record of a suspended warp, with lane masks, spilled registers and operands of collectives.

A record has a header and a lane mask for each node.  The rest depends on how the warp stopped.  If it waits at one node,
the stack slots that are live there follow the header.  If its lanes are at several nodes, the operands of collectives and
then all stack slots follow the masks.  If another version takes over, one cell for each register follows the operands of
collectives, for which some lanes may wait already.
"""

from __future__ import annotations

from functools import cached_property

from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Crash
from ptxvm.engine.jit.abi.launch_record import HEADER
from ptxvm.engine.jit.cfg.control_flow_graph import ControlFlowGraph
from ptxvm.engine.jit.cfg.nodes import Node
from ptxvm.engine.jit.node.register_shapes import CARRY, Key, Registers, alignment, size_of, slot_name
from ptxvm.isa.special_registers import WARP

CELL = 512  # bytes of a register of all lanes, or of an operand of a collective
Slot = tuple[str, str, int]  # a stack slot, its type, and its offset in the record


@dataclass
class SpillLayout:
    """The layout for all versions of a kernel; `pools` are the mnemonics of its collectives."""

    graph: ControlFlowGraph
    registers: Registers
    pools: list[str]
    width: int

    @cached_property
    def _order(self) -> dict[Key, int]:
        """The registers that live across nodes, numbered."""
        live = 0
        for node in self.graph.nodes:
            live |= node.live_in
        across = sorted([(n, part) for frame in self.graph.numbered for r in frame.body.registers
                       for n in (r.index + frame.registers,) for part in range(r.count) if live >> n & 1]
                      + [(n, part) for r, n in self.graph.module.items() for part in range(r.count)]
                      + [(n, 0) for n in (*self.graph.stack_registers, *self.graph.marks.values())])  # fmt: skip
        return {CARRY: 0, **{k: 1 + n for n, k in enumerate(across)}}

    @property
    def exchange(self) -> int:
        """The offset of the operands of collectives: the member masks, then the payloads."""
        return HEADER + -(-4 * len(self.graph.nodes) // 64) * 64

    @property
    def after_exchange(self) -> int:
        """The offset of the stack slots, in a general version."""
        return self.exchange + 4 * WARP + 2 * CELL * len(self.pools)

    def payload(self, mnemonic: str, number: int) -> int:
        """The offset of an operand of a collective."""
        return self.exchange + 4 * WARP + CELL * (2 * self.pools.index(mnemonic) + number)

    def cell(self, key: Key) -> int:
        """The offset of a register, for another version that takes over."""
        return self.after_exchange + CELL * self._order[key]

    @property
    def record_size(self) -> int:
        """Bytes of the record of a warp, for all versions and states."""
        return self.after_exchange + CELL * (2 + len(self._order))

    def waiting(self, node: Node, *, full: bool) -> list[Slot]:
        """The stack slots that a whole or a partial warp spills when it waits at a node."""
        at, found = HEADER, []
        for key, part, llvm in self.registers.slots(full=full):
            if key != CARRY and not node.live_in >> key[0] & 1:
                continue
            step = alignment(llvm)
            at = -(-at // step) * step
            found.append((slot_name(key, part), llvm, at))
            at += size_of(llvm)
        if at > self.record_size * (self.width // WARP):
            raise Crash(f"the registers of a warp need {at} bytes of its record of {self.record_size}; please report this")
        return found

    def anywhere(self, slots: list[tuple[Key, str, str]]) -> list[Slot]:
        """The offsets of some stack slots, in a general version."""
        at, found = self.after_exchange, []
        for key, part, llvm in slots:
            at = -(-at // alignment(llvm)) * alignment(llvm)
            found.append((slot_name(key, part), llvm, at))
            at += size_of(llvm)
        return found
