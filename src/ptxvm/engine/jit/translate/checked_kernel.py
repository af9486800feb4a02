"""The facts of instrumented code that a launch with checks needs: they outlive the translation, which takes much memory."""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm.analysis.program import Bound, Function
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.cfg.unset_registers import UnsetRegisters
from ptxvm.engine.jit.memory import cta_clocks, pending_copies
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.engine.jit.node.instrumentation import Shadow


@dataclass(frozen=True, eq=False)
class CheckedKernel:
    """A kernel as instrumented code has it."""

    function: Function
    functions: frozenset[Function]  # with those that it calls
    instructions: Sequence[Bound]  # of all of them
    shadow: Shadow | None
    unset_registers: UnsetRegisters | None  # which may be read before they are written
    masks_size: int  # of theirs, in bytes
    several: Sequence[Bound]  # accesses whose variable only a run tells
    address_bits: int
    loses_local: bool  # local memory may be read before it is written, and nothing marks what is
    clock_words: int  # of the clocks of warps; 0 where they have none
    watches_mbarriers: bool  # for misuse
    reductions: tuple[str, ...]  # of its barriers
    copies_size: int  # of the log of asynchronous copies, in bytes; 0 where there is none
    follows_fences: bool  # and strong accesses
    runs_beside: bool  # other CTAs, which wait for each other

    @classmethod
    def of(cls, kernel: KernelContext) -> CheckedKernel:
        """The facts, from the first version of a kernel."""
        unset, functions = kernel.unset_registers, frozenset(frame.function for frame in kernel.graph.frames)
        return cls(
            kernel.function, functions, kernel.instructions, kernel.shadow, unset,
            unset.size(kernel.warps_together) if unset is not None else 0,
            kernel.graph.bounded.several, kernel.image.memory.address_bits,
            kernel.uses_local and not kernel.marks_local, cta_clocks.words(kernel) if kernel.clocked else 0,
            kernel.watches_mbarriers, kernel.reductions, pending_copies.log_size(kernel) if kernel.logs_copies else 0,
            kernel.follows_fences, kernel.runs_beside,
        )  # fmt: skip

    def know_doubts(self, before: CheckedKernel | None) -> None:
        """Take over the doubts of versions that a translation before this one has written."""
        if self.shadow is not None and before is not None and before.shadow is not None:
            self.shadow.doubts |= before.shadow.doubts
