"""What an explained instruction computes in the lanes of a warp, or accesses, and the pictures of that."""

from __future__ import annotations

from collections.abc import Mapping

from ptxvm.algebra.types import pred
from ptxvm.diagnostics.errors import PTXVMError
from ptxvm.engine.interp.value_text import text as shown
from ptxvm.playground.requests import RequestError
from ptxvm.reference.accesses import access_of, place_of
from ptxvm.reference.drawings import memory_of_access, of_lanes
from ptxvm.reference.evaluation import BadValue
from ptxvm.reference.reading import Reading
from ptxvm.reference.warp import LANE, NotTogether, can_run, lane_values, needed, run


def computed(reading: Reading, given: Mapping[str, str]) -> dict[str, object]:
    """The values that lanes read and write, and the pictures; a register that has no value has the number of the lane."""
    try:
        if reading.bound.node.guard is None and (place := place_of(reading)) is not None:
            usual = f"{LANE}*{place.size}"
            value = given.get(place.register, usual)
            access = access_of(place, lane_values(value, place.type))
            return {"inputs": [(place.register, place.type.name, value)], "pictures": [memory_of_access(access)]}
        if not can_run(reading):
            return {"pictures": of_lanes([reading], {}, [])}
        return in_lanes(reading, given)
    except BadValue as wrong:
        raise RequestError(str(wrong)) from None
    except (NotTogether, PTXVMError) as wrong:
        return {"note": str(wrong).partition("\n")[0]}


def in_lanes(reading: Reading, given: Mapping[str, str]) -> dict[str, object]:
    """What an instruction writes in the lanes of a warp."""
    known = needed([reading])
    texts = {name: given.get(name, f"{LANE}%2" if type is pred else LANE) for name, type in known.items()}
    inputs = {name: lane_values(text, known[name]) for name, text in texts.items()}
    (step,) = run([reading], inputs)
    outputs = [
        {"name": lanes.name, "type": lanes.type.name, "values": [shown(lanes.type, bits) for bits in lanes.bits]}
        for lanes in step.outputs
    ]
    return {
        "inputs": [(name, known[name].name, text) for name, text in texts.items()],
        "outputs": outputs,
        "pictures": of_lanes([reading], inputs, [step]),
    }


__all__ = ["computed"]
