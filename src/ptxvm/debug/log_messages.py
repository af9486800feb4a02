"""The messages of logpoints: a text with expressions in braces, and what lanes say by it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from ptxvm.dataclass import dataclass
from ptxvm.debug.expressions import Expression, parse
from ptxvm.debug.values import NoValue, View, bits_of
from ptxvm.engine.interp import value_text
from ptxvm.isa.special_registers import WARP

PART = re.compile(r"\{\{|\}\}|\{(?P<expression>[^{}]*)\}|(?P<text>[^{}]+)|(?P<wrong>[{}])")


@dataclass(frozen=True, slots=True)
class LogMessage:
    """A text and expressions, in their order."""

    text: str
    parts: tuple[str | Expression, ...]

    def of_lanes(self, view: View) -> list[str]:
        """What each lane of a view says."""
        columns = [[part] * len(view.lanes) if isinstance(part, str) else values(part, view) for part in self.parts]
        return ["".join(row) for row in zip(*columns, strict=True)] if columns else [""] * len(view.lanes)


def log_message(text: str) -> LogMessage:
    """The message that a text is; NoValue where a brace is alone or an expression is none.  A doubled brace is a brace."""
    parts: list[str | Expression] = []
    for found in PART.finditer(text):
        if found["wrong"]:
            raise NoValue(f"'{found['wrong']}' is alone: an expression stands in braces, and a brace is written twice")
        parts.append(parse(found["expression"]) if found["expression"] is not None else found["text"] or found[0][0])
    return LogMessage(text, tuple(parts))


def values(expression: Expression, view: View) -> list[str]:
    """The value of an expression for each lane, or why it has none."""
    try:
        found = expression.values(view)
    except NoValue as wrong:
        return [f"<{wrong}>"] * len(view.lanes)
    return [value_text.text(found.type, bits) for bits in bits_of(found)]


def said_by_warps(message: LogMessage, view: View) -> Iterator[tuple[int, int, list[int], str]]:
    """CTA, warp, lanes and text: lanes of a warp that say the same come together, in the order of the first of them."""
    layout = view.schedule.cohort.layout
    groups: dict[tuple[int, int, str], list[int]] = {}
    for lane, text in zip(view.lanes.tolist(), message.of_lanes(view), strict=True):
        key = int(layout.ctas[layout.cta[lane]]), int(layout.thread[lane]) // WARP, text
        groups.setdefault(key, []).append(int(layout.lane[lane]))
    for (cta, warp, text), lanes in groups.items():
        yield cta, warp, lanes, text


def lane_text(lanes: list[int]) -> str:
    """`lane 5`, `lanes 0-3,8`."""
    runs = np.split(np.array(lanes), np.flatnonzero(np.diff(lanes) != 1) + 1)
    said = ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)
    return f"lane{'s' * (len(lanes) > 1)} {said}"


__all__ = ["LogMessage", "lane_text", "log_message", "said_by_warps"]
