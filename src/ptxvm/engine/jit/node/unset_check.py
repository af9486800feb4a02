"""Undefined values in instrumented code: a mask of the lanes in which a register is defined, where it may not be.

Only the registers that `cfg.unset_registers` names have masks.  These are in memory, a word of 32 bits for each register and
warp, so that they outlive suspensions and changes of version.  What is computed from an undefined value counts as undefined;
where one is observed, the exact checker, which follows bits, decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ptxvm.algebra.types import pred, u32
from ptxvm.analysis.program import Bound
from ptxvm.analysis.symbols import Register
from ptxvm.analysis.unset import use
from ptxvm.engine.jit.ir.lane_values import Affine, Raw
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
        self.observes = bool(bound.i.of.effects - {"cc"})  # an address is computed by `mem`: that is suspected, too

    def guard(self, guard: Raw | None) -> None:
        """Suspect a lane whose guard is undefined, if the instruction observes it: each lane that comes to it reads the guard.

        So where the guard is the same for all lanes: the instruction may not be written, or be skipped.
        """
        if self.used is not None and (self.observes or isinstance(guard, Affine)):
            self.at.guard = self.at.region_guard
            self._suspect(self.used.guards)

    def reads(self) -> None:
        """Suspect an active lane that observes an undefined register, or gives it to another function."""
        if self.used is not None and self.observes:
            self._suspect((*self.used.reads, *(() if self.bound.i.of.passed else self.used.passes)))
            self._suspect(self.used.updates, self.bound.i.of.enabling)

    def writes(self) -> None:
        """Mark the registers that the active lanes have written: defined, if all is that they come from.

        The marks are coarse: both operands of `selp` count.  With an undefined guard all lanes have an undefined result.
        """
        if self.used is None:
            return
        sources = self.used.passes if self.observes else (*self.used.passes, *self.used.reads)
        sources = tuple(each for each in sources if each in self.unset)
        guards = () if self.observes else tuple(each for each in self.used.guards if each in self.unset)
        for register in self.used.writes:
            if register in self.number:
                exchanged = self.observes and register.type is pred  # `shfl` computes it without what it passes on
                self._mark(register, () if exchanged else sources, guards)

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

    def _mark(self, register: Register, sources: Sequence[Register], guards: Sequence[Register]) -> None:
        code, word, active = self.code, self.word, self.at.active_vector()
        marks = "-1"
        for source in sources:
            marks = code.emit(f"and {word} {marks}, {self._given(self._load(source))}")
        if active is not None:
            bits = code.mask_bits(active)
            own, others = code.emit(f"and {word} {marks}, {bits}"), code.emit(f"xor {word} {bits}, -1")
            rest = code.emit(f"and {word} {self._load(register)}, {others}")
            marks = code.emit(f"or {word} {own}, {rest}")
        for guard in guards:
            kept = self._load(guard)
            if (absent := self._absent()) is not None:
                kept = code.emit(f"or {word} {kept}, {absent}")
            marks = code.emit(f"and {word} {marks}, {kept}")
        code.run(f"store {word} {marks}, ptr {self._masks(register)}, align 4")

    def _absent(self) -> str | None:
        """The lanes that do not come to the instruction; None if all do."""
        guard, self.at.guard = self.at.guard, self.at.region_guard
        here = self.at.active_vector()
        self.at.guard = guard
        return None if here is None else self.code.emit(f"xor {self.word} {self.code.mask_bits(here)}, -1")

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
        masks = kernel.launch_field(self.code, "register_masks")
        first = self.code.emit(f"add i32 {kernel.warp_among}, {self.number[register] * kernel.warps_together}")
        return self.code.emit(f"getelementptr i32, ptr {masks}, i32 {first}")
