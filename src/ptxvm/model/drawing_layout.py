"""Layout of an execution graph: a column for each thread, time downwards."""

from __future__ import annotations

from ptxvm.dataclass import dataclass
from ptxvm.model.axioms_6_4 import PTX64
from ptxvm.model.enumerate import Candidate
from ptxvm.model.memory_events import EventKind
from ptxvm.model.relations import Relation, members
from ptxvm.model.values import evaluate

LETTER, PADDING = 7.3, 10
HEIGHT, ROW, GAP, MARGIN = 28, 58, 120, 30
TOP = 3 * MARGIN + HEIGHT
"""Where the first row of the threads begins, below the initial writes and the names of the threads."""


@dataclass(frozen=True)
class Box:
    """The box of an event: its position, its size and its text."""

    left: float
    top: float
    width: float
    text: str
    column: int
    """-1 for initial writes, which stand above."""

    @property
    def middle(self) -> tuple[float, float]:
        """The centre of the box."""
        return self.left + self.width / 2, self.top + HEIGHT / 2


@dataclass(frozen=True)
class DrawingLayout:
    """The boxes by event number, the names of the columns, and the size of the drawing."""

    boxes: dict[int, Box]
    titles: list[tuple[float, str]]
    width: float
    height: float


def layout(candidate: Candidate) -> DrawingLayout:
    """Place the events in a column for each thread."""
    x = candidate.execution
    texts = {i: _text(candidate, i) for i in range(x.count)}
    row = rows(x)
    boxes: dict[int, Box] = {}
    titles: list[tuple[float, str]] = []
    left = float(MARGIN)
    threads = [thread for thread in x.test.threads if any(event.thread is thread for event in x.events)]
    for column, thread in enumerate(threads):
        mine = [i for i, event in enumerate(x.events) if event.thread is thread]
        gpu, _, cta = thread.cta
        title = f"{thread.name} \N{MIDDLE DOT} gpu {gpu}, cta {cta}"
        width = wide(max([title, *(texts[i] for i in mine)], key=len))
        titles.append((left, title))
        boxes |= {i: Box(left, TOP + row[i] * ROW, width, texts[i], column) for i in mine}
        left += width + GAP
    over = float(MARGIN)
    for i in members(x.initial):
        boxes[i] = Box(over, MARGIN, wide(texts[i]), texts[i], -1)
        over += wide(texts[i]) + GAP / 2
    bottom = max((box.top for box in boxes.values()), default=TOP) + HEIGHT
    return DrawingLayout(boxes, titles, max(left - GAP, over - GAP / 2) + 2 * MARGIN, bottom + MARGIN)


def rows(x: PTX64) -> list[int]:
    """The row of each event: below all events that precede it, if the relations have no cycle."""
    own = x.program_order
    order = own | x.synchronizes | (x.reads_from - x.same_thread)
    for relation in (order, own | x.synchronizes, own):
        if relation.is_acyclic:
            return _depths(relation.between(~x.initial, ~0), x.count)
    return _depths(own, x.count)


def _depths(relation: Relation, count: int) -> list[int]:
    """The length of the longest path to each event."""
    depth = [0] * count
    for _ in range(count):
        for a, b in relation:
            depth[b] = max(depth[b], depth[a] + 1)
    return depth


def wide(text: str) -> float:
    """The width of a box with this text."""
    return len(text) * LETTER + 2 * PADDING


def _text(candidate: Candidate, i: int) -> str:
    event = candidate.execution.events[i]
    half = {"A": "arrive: ", "B": "wait: "}.get(event.kind.value, "")
    if event.kind is EventKind.READ:
        return f"{event.text} \N{RIGHTWARDS ARROW} {candidate.known[event.key]}"
    value = evaluate(event.value, candidate.known) if event.kind is EventKind.WRITE and event.thread else None
    shown = value is None or (event.atomic is None and event.text.endswith((f" {value}", f"{value}}}")))
    return half + event.text + ("" if shown else f" = {value}")
