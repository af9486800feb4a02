"""Comments that allow a finding at an instruction: `// ptxvm: allow CODE`."""

from __future__ import annotations

from ptxvm.analysis.program import Bound
from ptxvm.diagnostics.suppressions import in_comments


def allowed_at(bound: Bound) -> frozenset[str]:
    """The codes that a comment `// ptxvm: allow CODE` names, on a line of the instruction or alone on the line above."""
    program = bound.program
    if program is None:
        return frozenset()
    source = program.source
    return in_comments(source, *(source.location(place)[0] for place in (bound.node.start, bound.node.end)))


__all__ = ["allowed_at"]
