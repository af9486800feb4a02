"""Records what the warps of a CTA do, instruction by instruction, so that the page can go forwards and backwards through it.

The whole launch runs once, on the interpreter, before the first step is shown: to go back costs nothing.  What a step wrote is
recorded, not what every register holds; the page puts the registers together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ptxvm.engine.interp.value_text import text as shown
from ptxvm.isa.special_registers import WARP
from ptxvm.playground.launching import document, extent, launched
from ptxvm.playground.requests import RequestError, StepRequest
from ptxvm.profile.trace import Datum, Step, Touched, Trace

MOST_STEPS = 4096
"""Instructions of all warps that are recorded."""

Cells = str | list[list[object]]
"""One value for all lanes that have one, or pairs of lanes and values."""


def step(request: StepRequest) -> dict[str, object]:
    """A launch, and what a CTA did in it."""
    if request.checks or request.schedules > 1:
        raise RequestError("a launch is followed without checks, in one schedule")
    grid, block = extent("grid", request.grid), extent("block", request.block)
    if not 0 <= request.cta < math.prod(grid):
        raise RequestError(f"there is no CTA {request.cta}; the grid has {math.prod(grid)}")
    warps = -(-math.prod(block) // WARP)
    trace = Trace(request.cta, limit=max(1, MOST_STEPS // warps))
    done = launched(request, trace=trace)
    left = sum(trace.executed.values()) - len(trace.steps)
    return {**document(done), "steps": [fields(each) for each in trace.steps], "left": left, "warps": warps, "cta": request.cta}


def fields(step: Step) -> dict[str, object]:
    """A step: which lanes did it, what they read and wrote, and where they go on."""
    return {
        "warp": step.warp.warp,
        "line": step.line,
        "text": step.text,
        "lanes": mask(step.lanes),
        "on": mask(step.on),
        "reads": [datum(each) for each in step.reads],
        "writes": [datum(each) for each in step.writes],
        "accesses": [access(each) for each in step.accesses],
        "targets": cells({lane: str(line) for lane, line in step.targets.items()}),
    }


def mask(lanes: tuple[int, ...] | list[int]) -> int:
    """Lanes as bits of a number."""
    return sum(1 << lane for lane in lanes)


def datum(found: Datum) -> dict[str, object]:
    """A value that was read or written; of an address its place."""
    values = {lane: found.places.get(lane) or shown(found.type, bits) for lane, bits in found.bits.items()}
    return {"name": found.text, "type": found.type.name, "values": cells(values)}


def access(found: Touched) -> dict[str, object]:
    """An access to memory: where, and the elements."""
    values = {lane: " ".join(shown(found.type, bits) for bits in some) for lane, some in found.values.items()}
    return {
        "verb": str(found.verb), "space": str(found.space), "type": found.type.name, "bytes": found.size,
        "places": cells(dict(found.places)), "values": cells(values),
    }  # fmt: skip


def cells(values: Mapping[int, str]) -> Cells:
    """The values of lanes; one alone where all of a warp have it."""
    if len(values) == WARP and len({*values.values()}) == 1:
        return next(iter(values.values()))
    return [[lane, value] for lane, value in values.items()]


__all__ = ["step"]
