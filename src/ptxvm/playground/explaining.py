"""Explains the instruction under the cursor: its parts in words, what it computes in the lanes of a warp, and pictures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ptxvm.algebra.types import pred
from ptxvm.diagnostics.errors import PTXVMError
from ptxvm.playground.requests import ExplainRequest, RequestError
from ptxvm.playground.values import shown
from ptxvm.reference.accesses import access_of, place_of
from ptxvm.reference.directive_words import DIRECTIVES
from ptxvm.reference.drawings import memory_of_access, of_computation, of_lanes
from ptxvm.reference.evaluation import BadValue, constants_of
from ptxvm.reference.instruction_parts import modifiers_of, operands_of, requirements
from ptxvm.reference.page import Page
from ptxvm.reference.reading import NotUnderstood, Reading, read
from ptxvm.reference.warp import LANE, NotTogether, can_run, lane_values, needed, run

LABEL = re.compile(r"\s*[\w$]+\s*:(?!:)")
COMMENT = re.compile(r"//.*|/\*.*?\*/", re.DOTALL)
DIRECTIVE = re.compile(r"\s*(\.[a-z_0-9]+)")

Rows = Sequence[Sequence[str]]


def explain(request: ExplainRequest) -> dict[str, object]:
    """What a line of PTX is; `found` is empty where it has no instruction and no directive."""
    text = LABEL.sub("", COMMENT.sub(" ", request.text)).strip()
    if (directive := DIRECTIVE.match(text)) is not None:
        return of_directive(directive[1])
    try:
        reading = read(text) if text.strip("{} \t\n;") else None
    except NotUnderstood as refused:
        return {"found": "wrong", "title": text, "summary": "; ".join(d.message for d in refused.diagnostics)}
    if reading is None:
        return {"found": ""}
    return of_instruction(reading, named(request.values))


def of_directive(word: str) -> dict[str, object]:
    """A directive, with the section that describes it."""
    if word not in DIRECTIVES:
        return {"found": ""}
    section, said = DIRECTIVES[word]
    return {"found": "directive", "title": word, "summary": f"{said}.", "section": f"PTX ISA {section}"}


def named(values: Sequence[str]) -> dict[str, str]:
    """The values of registers, of texts NAME=VALUE."""
    pairs = [each.partition("=") for each in values]
    return {name.strip(): value.strip() for name, _, value in pairs if value.strip()}


def of_instruction(reading: Reading, given: Mapping[str, str]) -> dict[str, object]:
    """An instruction: its parts, and what it does with values."""
    page, i = Page(reading.decoded.of), reading.decoded
    return {
        "found": "instruction",
        "title": reading.text,
        "summary": page.summary,
        "section": page.section,
        "form": f"{i.form.text};",
        "needs": requirements(i),
        "modifiers": modifiers_of(i),
        "operands": operands_of(reading.bound, constants_of(reading)),
        "effects": page.effects,
        **computed(reading, given),
    }


# ── what it computes ────────────────────────────────────────────────────────────────────


def computed(reading: Reading, given: Mapping[str, str]) -> dict[str, object]:
    """The values that lanes read and write, and the pictures; a register that has no value has the number of the lane."""
    try:
        if (place := place_of(reading)) is not None:
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
    drawn = of_computation(reading, {name: bits[0] for name, bits in inputs.items() if len({*bits}) == 1})
    outputs = [
        {"name": lanes.name, "type": lanes.type.name, "values": [shown(lanes.type, bits) for bits in lanes.bits]}
        for lanes in step.outputs
    ]
    return {
        "inputs": [(name, known[name].name, text) for name, text in texts.items()],
        "outputs": outputs,
        "pictures": [*drawn, *of_lanes([reading], inputs, [step])],
    }


__all__ = ["explain"]
