"""Uninitialised registers in instrumented code: a mask of the lanes that have written a register, where it may be read before.

Only the registers that `cfg.unset_registers` names have masks.  These are in memory, a word of 32 bits for each register and
warp, so that they outlive suspensions and changes of version.
"""

from __future__ import annotations

from collections.abc import Iterable

from ptxvm.algebra.types import pred, u32
from ptxvm.analysis.program import Bound
from ptxvm.analysis.symbols import Register
from ptxvm.analysis.unset import use
from ptxvm.engine.jit.ir.lane_values import Affine
from ptxvm.engine.jit.node.node import NodeBuilder


class UnsetCheck:
    """Writes the checks of one instruction, and the masks of the registers that it writes."""

    def __init__(self, at: NodeBuilder, bound: Bound) -> None:
        self.at, self.bound, self.code, self.width = at, bound, at.code, at.code.width
        self.word = f"i{self.width}"
        unset = at.kernel.unset_registers
        self.number = unset.number if unset is not None and at.node.frame.parent is None else {}
        self.unset = unset.uses.get(bound, frozenset()) if unset is not None and self.number else frozenset()
        self.used = use(bound) if self.number else None
        self.passing = bool(bound.i.of.passed)

    def guard(self) -> None:
        """Suspect a lane whose guard is unset: each lane that comes to the instruction reads it."""
        if self.used is not None:
            self.at.guard = self.at.region_guard
            self._suspect(self.used.guards)

    def reads(self) -> None:
        """Suspect an active lane that reads an unset register, or gives it to another function."""
        if self.used is not None:
            self._suspect((*self.used.reads, *(() if self.passing else self.used.passes)))
            self._suspect(self.used.updates, self.bound.i.of.enabling)

    def writes(self) -> None:
        """Mark the registers that the active lanes have written; what an instruction makes of an unset one is unset.

        The marks are coarse: of several operands that it passes on, as `selp` does, each must be set.
        """
        if self.used is None:
            return
        passed = [each for each in self.used.passes if each in self.unset] if self.passing else []
        for register in self.used.writes:
            if register in self.number:
                self._mark(register, [each for each in passed if (each.type is pred) == (register.type is pred)])

    def _suspect(self, registers: Iterable[Register], enabling: str | None = None) -> None:
        """Suspect the active lanes; only those for which a predicate holds, if the instruction reads no more."""
        code = self.code
        wrong = ""
        for register in registers:
            if register in self.unset:
                missing = code.emit(f"xor {self.word} {self._load(register)}, -1")
                wrong = code.emit(f"or {self.word} {wrong}, {missing}") if wrong else missing
        if not wrong:
            return
        lanes = self.at.active_vector()
        if lanes is not None:
            wrong = code.emit(f"and {self.word} {wrong}, {code.mask_bits(lanes)}")
        if enabling is not None:
            enabled = self.at.alg.vector(pred, self.at.operand(self.bound, enabling).raw)
            wrong = code.emit(f"and {self.word} {wrong}, {code.mask_bits(enabled)}")
        good = code.label()
        code.branch(code.emit(f"icmp eq {self.word} {wrong}, 0"), good, "suspect", likely=True)
        code.block(good)

    def _mark(self, register: Register, sources: list[Register]) -> None:
        code, word, active = self.code, self.word, self.at.active_vector()
        marks = "-1"
        for source in sources:
            marks = code.emit(f"and {word} {marks}, {self._given(self._load(source))}")
        if active is not None:
            bits = code.mask_bits(active)
            own, others = code.emit(f"and {word} {marks}, {bits}"), code.emit(f"xor {word} {bits}, -1")
            rest = code.emit(f"and {word} {self._load(register)}, {others}")
            marks = code.emit(f"or {word} {own}, {rest}")
        code.run(f"store {word} {marks}, ptr {self._masks(register)}, align 4")

    def _given(self, marks: str) -> str:
        """The marks of the lanes whose values have reached these lanes: of others where a collective has passed them on."""
        if self.at.given_by is None:
            return marks
        self.code.one_warp()
        there = self.at.alg.integer("shr", u32, Affine(marks), self.at.given_by)
        given = self.at.alg.compare("ne", u32, self.at.alg.integer("and", u32, there, Affine(1)), Affine(0))
        return self.code.mask_bits(self.at.alg.vector(pred, given))

    def _load(self, register: Register) -> str:
        return self.code.emit(f"load {self.word}, ptr {self._masks(register)}, align 4", pure=False)

    def _masks(self, register: Register) -> str:
        kernel = self.at.kernel
        masks = kernel.context(self.code, "register_masks")
        first = self.code.emit(f"add i32 {kernel.warp_among}, {self.number[register] * kernel.warps_together}")
        return self.code.emit(f"getelementptr i32, ptr {masks}, i32 {first}")
