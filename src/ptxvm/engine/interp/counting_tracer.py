"""A tracer whose code tells the cohort of guards."""

from __future__ import annotations

from ptxvm.analysis.program import Bound
from ptxvm.engine.interp.segment import Tracer


class CountingTracer(Tracer):
    """Traces instructions, and before each that has a guard a count of the lanes that it passes by."""

    def instruction(self, bound: Bound, stage: str = "run") -> None:
        """Trace one instruction; one that waits is counted when lanes arrive."""
        guard = self.guard_of(bound)
        if guard is not None and (stage == "arrive" or "waits" not in bound.i.of.effects):
            self.code.run(f"C.guarded({self.code.refer(bound)}, L, {guard})")
        super().instruction(bound, stage)


__all__ = ["CountingTracer"]
