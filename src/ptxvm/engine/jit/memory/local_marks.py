"""Marks of local memory in instrumented code: a byte for each of its bytes, has the thread written it?

They lie as the memory does, interleaved or in one piece for each thread, at a fixed distance from it.  A call begins with
variables that have no value, whatever an earlier call has left in their place.
"""

from __future__ import annotations

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import u64
from ptxvm.engine.jit.cfg.nodes import Frame
from ptxvm.engine.jit.ir.lane_values import Affine, Raw
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.memory.addressing import Addressing
from ptxvm.engine.jit.memory.interleaved_local import InterleavedLocal
from ptxvm.engine.jit.node import stack
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.isa.special_registers import WARP


class LocalMarks:
    """Loads and stores of marks, for the active lanes; the offsets are those of the memory."""

    def __init__(self, at: NodeBuilder, addressing: Addressing) -> None:
        self.at, self.code, self.addressing = at, at.code, addressing
        where = at.kernel.launch_field_pointer(at.code, "local_marks")
        self.distance = at.code.emit(f"load i64, ptr {where}, align 8")

    def load(self, llvm: str, size: int, raw: Raw, count: int) -> list[str]:
        """The marks of every lane's elements."""
        if self.at.kernel.local_grain:
            return self._rows().load(llvm, size, raw, count)
        return self.addressing.load(Space.GENERIC, llvm, size, self._addresses(raw), count)

    def store(self, llvm: str, size: int, raw: Raw, vectors: list[str]) -> None:
        """Store the marks of every lane's elements."""
        if self.at.kernel.local_grain:
            self._rows().store(llvm, size, raw, vectors)
        else:
            self.addressing.store(Space.GENERIC, llvm, size, self._addresses(raw), vectors)

    def _rows(self) -> InterleavedLocal:
        return InterleavedLocal(self.at, self.addressing, self.code.emit(f"add i64 %local.address, {self.distance}"))

    def _addresses(self, raw: Raw) -> Raw:
        return self.at.alg.integer("add", u64, self.addressing.flat(Space.LOCAL, raw), Affine(self.distance))

    # ── calls ───────────────────────────────────────────────────────────────────────────

    def forget(self, frame: Frame) -> None:
        """Take the marks of a frame away that the active lanes enter."""
        first, size = stack.start(self.at, frame) + frame.offset, frame.end - frame.offset
        if self.at.kernel.local_grain:
            self._forget_rows(frame.offset, size)
            return
        code, width = self.code, self.at.width
        lanes = self.at.active_vector()
        bits = "-1" if lanes is None else code.mask_bits(lanes)
        helper = code.unit.helper(f"ptxvm.forget.{width}", runtime("forget_stacks", width=width))
        code.unit.declare(f"llvm.cttz.i{width}", f"i{width}", f"i{width}", "i1 immarg")
        code.unit.declare("llvm.memset.p0.i64", "void", "ptr", "i8", "i64", "i1 immarg")
        addresses = self.at.alg.vector(u64, self._addresses(first.raw))
        code.run(f"call void @{helper}(<{width} x i64> {addresses}, i64 {size}, i{width} {bits})")

    def _forget_rows(self, offset: int, size: int) -> None:
        """Take marks away in rows: the memory of all lanes at one offset."""
        code, kernel, grain = self.code, self.at.kernel, self.at.kernel.local_grain
        helper = code.unit.helper("ptxvm.forget.rows", runtime("forget_rows", bits=8 * grain))
        start = code.emit(f"add i64 %local.address, {self.distance}")
        lanes = self.at.active_vector()
        for warp in code.warps():
            first = code.emit(f"add i64 {start}, {offset * WARP + warp * WARP * kernel.local_stride}")
            bits = "-1" if lanes is None else code.warp_bits(lanes, warp)
            code.run(f"call void @{helper}(i64 {first}, i64 {-(-size // grain)}, i32 {bits})")


def forget(at: NodeBuilder, frame: Frame) -> None:
    """Let the variables of a function that the active lanes enter have no value, in code that looks for such."""
    if at.kernel.marks_local and frame.end > frame.offset:
        at.needs_local()
        LocalMarks(at, Addressing(at)).forget(frame)
