"""Spill layout: where the record of a suspended warp holds masks of lanes, registers, and what lanes give to a collective.

A record begins with a header and the mask of the lanes that stand at each node.  What follows depends on how the warp
stopped.  Where it waits at one node, the stack slots that are live there follow the header.  Where its lanes may stand
anywhere, the exchange of its collectives and then all stack slots follow the masks.  Where it goes on in another version
of its kernel, one cell for each register follows the masks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ptxvm.diagnostics.errors import Crash
from ptxvm.engine.jit.abi.launch_record import HEADER
from ptxvm.engine.jit.cfg.nodes import Node, Plan
from ptxvm.engine.jit.node.register_shapes import CARRY, Key, Registers, alignment, size_of, slot_name
from ptxvm.isa.special_registers import WARP

CELL = 512  # bytes of a register of a warp, by lanes; or of what its lanes give to a collective
Slot = tuple[str, str, int]  # a stack slot, its type, and where it lies in the record


@dataclass
class SpillLayout:
    """The record of a warp, for all versions of a kernel; `pools` are the collectives at which lanes wait for each other."""

    plan: Plan
    registers: Registers
    pools: list[str]
    width: int

    @cached_property
    def _order(self) -> dict[Key, int]:
        """The registers that live across nodes, numbered."""
        live = 0
        for node in self.plan.nodes:
            live |= node.live_in
        kept = sorted([(n, part) for frame in self.plan.frames for r in frame.function.registers
                       for n in (r.index + frame.registers,) for part in range(r.count) if live >> n & 1]
                      + [(n, part) for r, n in self.plan.module.items() for part in range(r.count)]
                      + [(n, 0) for n in self.plan.measures])  # fmt: skip
        return {CARRY: 0, **{k: 1 + n for n, k in enumerate(kept)}}

    @property
    def exchange(self) -> int:
        """Where lanes leave what they give to a collective: the masks of members, then the payloads."""
        return HEADER + -(-4 * len(self.plan.nodes) // 64) * 64

    @property
    def after_exchange(self) -> int:
        """Where stack slots follow, of a warp whose lanes may stand anywhere."""
        return self.exchange + 4 * WARP + 2 * CELL * len(self.pools)

    def payload(self, mnemonic: str, number: int) -> int:
        """Where lanes leave an operand of a collective."""
        return self.exchange + 4 * WARP + CELL * (2 * self.pools.index(mnemonic) + number)

    def cell(self, key: Key) -> int:
        """Where a register lies that is handed over to another version."""
        return self.exchange + CELL * self._order[key]

    @property
    def record_size(self) -> int:
        """Bytes of a warp's record, in all versions, however its lanes stand."""
        return self.after_exchange + CELL * (2 + len(self._order))

    def waiting(self, node: Node) -> list[Slot]:
        """The stack slots of a warp that waits at a node."""
        at, found = HEADER, []
        for key, part, llvm in self.registers.slots():
            if key != CARRY and not node.live_in >> key[0] & 1:
                continue
            step = alignment(llvm)
            at = -(-at // step) * step
            found.append((slot_name(key, part), llvm, at))
            at += size_of(llvm)
        if at > self.record_size * (self.width // WARP):
            raise Crash("the registers of a warp do not fit its record")
        return found

    def anywhere(self, slots: list[tuple[Key, str, str]]) -> list[Slot]:
        """Some stack slots of a warp whose lanes may stand anywhere."""
        at, found = self.after_exchange, []
        for key, part, llvm in slots:
            at = -(-at // alignment(llvm)) * alignment(llvm)
            found.append((slot_name(key, part), llvm, at))
            at += size_of(llvm)
        return found
