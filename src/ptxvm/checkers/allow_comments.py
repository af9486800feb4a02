"""Comments that allow a finding at an instruction: `// ptxvm: allow CODE`."""

from __future__ import annotations

import re

from ptxvm.analysis.program import Bound

ALLOW = re.compile(r"//\s*ptxvm:\s*allow\s+([\w-]+(?:\s*,\s*[\w-]+)*)")


def allowed_at(bound: Bound) -> frozenset[str]:
    """The codes that a comment `// ptxvm: allow CODE` names, on a line of the instruction or alone on the line above."""
    program = bound.program
    if program is None:
        return frozenset()
    source = program.source
    first, last = (source.location(place)[0] for place in (bound.node.start, bound.node.end))
    above = source.line(first - 1).strip() if first > 1 else ""
    lines = [above if above.startswith("//") else "", *(source.line(line) for line in range(first, last + 1))]
    return frozenset(word for line in lines for found in ALLOW.findall(line) for word in re.split(r"[,\s]+", found) if word)


__all__ = ["allowed_at"]
