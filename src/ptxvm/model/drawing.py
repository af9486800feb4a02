"""Execution graphs drawn as SVG: threads side by side, time downwards, an arrow for each relation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from html import escape

from ptxvm.model.axioms_6_4 import PTX64
from ptxvm.model.cycle_explanation import EDGES, CycleStep, cycle
from ptxvm.model.drawing_layout import HEIGHT, LETTER, MARGIN, TOP, Box, DrawingLayout, layout
from ptxvm.model.enumerate import Candidate
from ptxvm.model.relations import Relation

COLOURS = {
    "rf": "#c0392b",
    "co": "#9a6b2f",
    "fr": "#d68910",
    "sync": "#2f81c7",
    "cause": "#a257c4",
    "po": "#9aa0a6",
    "obs": "#2e8b57",
    "dep": "#767676",
    "sc": "#2f81c7",
}
STYLE = """\
.execution { color: #1f2328; background: #ffffff; max-width: 100%; height: auto; }
.execution text { fill: currentColor; }
.execution .event { fill: #f6f8fa; stroke: #57606a; }
.execution .initial, .execution .halo { fill: #ffffff; }
@media (prefers-color-scheme: dark) {
  .execution { color: #d5d7da; background: #131416; }
  .execution .event { fill: #24292f; stroke: #8b949e; }
  .execution .initial, .execution .halo { fill: #131416; }
}"""
"""The colours of a drawing follow those of the viewer; a page may set them by the class."""

FIRST = ("sc", "sync", "fr", "rf", "co", "dep", "obs", "cause", "po")
"""The order of the relations; the first relation of an arrow gives its colour."""
LINE = 15  # the height of a label
Point = tuple[float, float]


def svg(candidate: Candidate) -> str:
    """The drawing of an execution; where it breaks an axiom, the cycle stands out."""
    x = candidate.execution
    plan = layout(candidate)
    wrong = cycle(candidate)
    together = arrows([*steps(x), *wrong], wrong)
    said = f"forbidden by {candidate.broken.name} ({candidate.broken.section(type(x))})" if candidate.broken else ""
    names = {step.edge for each in together for step in each}
    legend = [f"{name}: {EDGES[name]}" for name in EDGES if name in names]
    width = max(plan.width, 2 * MARGIN + max(map(len, [*legend, said]), default=0) * LETTER, 4 * 185 + MARGIN)
    height = plan.height + 20 * (len(legend) // 4 + 1) + (30 if said else 0)
    labels: list[Point] = []
    body = [
        *(f'<text x="{left:.0f}" y="{TOP - 14}" font-weight="bold">{escape(name)}</text>' for left, name in plan.titles),
        *(_arrow(each, plan, labels, bold=any(step in wrong for step in each)) for each in together),
        *(_box(box, str(x.events[i])) for i, box in plan.boxes.items()),
        *labelled(together, plan, labels, wrong),
        *_legend(names, plan.height + 10),
    ]
    if said:
        body.append(
            f'<text x="{MARGIN}" y="{height - 14:.0f}" font-weight="bold" style="fill: {COLOURS["rf"]}">{escape(said)}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" class="execution" font-family="monospace" font-size="12">\n'
        f"<title>{escape(x.test.name)}, PTX {x.name}</title>\n"
        f"<style>\n{STYLE}\n</style>\n"
        f"<defs>{''.join(_head(name) for name in COLOURS)}</defs>\n" + "\n".join(body) + "\n</svg>\n"
    )


# ── which arrows ────────────────────────────────────────────────────────────────────────


def steps(x: PTX64) -> list[CycleStep]:
    """The arrows that a reader needs: orders without the pairs that other arrows imply, and causality that reaches memory.

    The order of initial writes before all other writes has no arrow.
    """
    seen = (x.causality & x.overlap) - x.same_thread - x.synchronizes
    chosen = {
        "po": _reduced(x.program_order),
        "rf": x.reads_from,
        "co": _reduced(x.coherence).between(~x.initial, ~0),
        "fr": x.from_reads - x.from_reads.then(x.coherence) - x.read_modify_write,
        "sync": x.synchronizes - x.same_thread,
        "cause": seen - seen.then(x.coherence) - x.reads_from.then(seen),
    }
    return [CycleStep(a, name, b) for name, relation in chosen.items() for a, b in relation if a != b]


def _reduced(relation: Relation) -> Relation:
    """The relation without the pairs that its other pairs imply."""
    return relation - relation.then(relation)


def arrows(all_steps: Iterable[CycleStep], wrong: list[CycleStep]) -> list[list[CycleStep]]:
    """One arrow for each pair of events, with all its relations; arrows of the cycle come last, on top."""
    found: dict[tuple[int, int], list[CycleStep]] = {}
    for step in all_steps:
        mine = found.setdefault((step.first, step.second), [])
        if step not in mine:
            mine.append(step)
    for mine in found.values():
        mine.sort(key=lambda step: (step not in wrong, FIRST.index(step.edge)))
    return sorted(found.values(), key=lambda mine: mine[0] in wrong)


# ── shapes ──────────────────────────────────────────────────────────────────────────────


def curve(a: Box, b: Box) -> tuple[Point, Point, Point, Point]:
    """The start of an arrow, its two control points, and its end."""
    (ax, ay), (bx, by) = a.middle, b.middle
    if a.column < 0:  # down from an initial write
        side = bx - b.width / 2 if ax <= bx else bx + b.width / 2
        start = ax, a.top + HEIGHT
        return start, (ax, (start[1] + by) / 2), (side + (-40 if side < bx else 40), by), (side, by)
    if a.column == b.column:
        if 0 < by - ay < 2 * HEIGHT + 10:
            return (ax, ay + HEIGHT / 2), (ax, ay + HEIGHT / 2), (bx, by - HEIGHT / 2), (bx, by - HEIGHT / 2)
        side, bend = ax + a.width / 2, 30 + abs(by - ay) / 6
        return (side, ay), (side + bend, ay), (side + bend, by), (side, by)
    forward = bx > ax
    ay, by = (ay - 5, by - 5) if forward else (ay + 5, by + 5)  # keep the two arrows of a pair apart
    start = (ax + a.width / 2 if forward else ax - a.width / 2), ay
    end = (bx - b.width / 2 if forward else bx + b.width / 2), by
    reach = (end[0] - start[0]) * 0.4
    lift = 0 if abs(ay - by) > HEIGHT else (-12 if forward else 12)
    return start, (start[0] + reach, ay + lift), (end[0] - reach, by + lift), end


def at(points: tuple[Point, Point, Point, Point], t: float) -> Point:
    """A point of the Bézier curve."""
    weights = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
    return (
        sum(weight * point[0] for weight, point in zip(weights, points, strict=True)),
        sum(weight * point[1] for weight, point in zip(weights, points, strict=True)),
    )


def _arrow(together: list[CycleStep], plan: DrawingLayout, labels: list[Point], *, bold: bool) -> str:
    first = together[0]
    points = curve(plan.boxes[first.first], plan.boxes[first.second])
    labels.append(at(points, 0.5))
    (a, b), (c, d), (e, f), (g, h) = points
    path = f"M{a:.0f},{b:.0f} C{c:.0f},{d:.0f} {e:.0f},{f:.0f} {g:.0f},{h:.0f}"
    dash = ' stroke-dasharray="5 3"' if first.edge == "cause" else ""
    classes = " ".join(step.edge for step in together)
    return (
        f'<path class="{classes}" d="{path}" fill="none" stroke="{COLOURS[first.edge]}" '
        f'stroke-width="{2.6 if bold else 1.3}"{dash} marker-end="url(#{first.edge})"/>'
    )


def labelled(
    together: list[list[CycleStep]], plan: DrawingLayout, middles: list[Point], wrong: list[CycleStep]
) -> Iterator[str]:
    """The labels of the arrows, placed where they hide nothing; program order has none."""
    taken: defaultdict[int, list[Point]] = defaultdict(list)
    boxes = list(plan.boxes.values())
    for each, _ in zip(together, middles, strict=True):
        text = " ".join(step.edge for step in each)
        if text == "po" and not any(step in wrong for step in each):
            continue
        points = curve(plan.boxes[each[0].first], plan.boxes[each[0].second])
        half = len(text) * LETTER / 2 + 2
        candidates = [at(points, t / 100) for t in (50, 40, 60, 30, 70, 22, 78)]
        x, y = next((point for point in candidates if not _hides(point, half, taken, boxes)), candidates[0])
        if points[0] == points[1]:  # beside a straight arrow between neighbours
            x += half + 6
        taken[int(y // LINE)].append((x, y))
        weight = ' font-weight="bold"' if any(step in wrong for step in each) else ""
        yield (
            f'<rect x="{x - half:.0f}" y="{y - 8:.0f}" width="{2 * half:.0f}" height="{LINE}" class="halo" opacity="0.85"/>'
            f'<text x="{x:.0f}" y="{y + 4:.0f}" text-anchor="middle" style="fill: {COLOURS[each[0].edge]}"{weight}>'
            f"{text}</text>"
        )


def _hides(point: Point, half: float, taken: Mapping[int, list[Point]], boxes: list[Box]) -> bool:
    """Would a label there hide another, or a box?  `taken` has the labels by line: only the lines beside one can meet it."""
    x, y = point
    line = int(y // LINE)
    near = (other for each in (line - 1, line, line + 1) for other in taken.get(each, ()))
    over = any(abs(x - other[0]) < 2 * half + 4 and abs(y - other[1]) < LINE for other in near)
    return over or any(
        box.left - half < x < box.left + box.width + half and box.top - 8 < y < box.top + HEIGHT + 8 for box in boxes
    )


def _box(box: Box, whole: str) -> str:
    kind = "event initial" if box.column < 0 else "event"
    return (
        f'<rect x="{box.left:.0f}" y="{box.top:.0f}" width="{box.width:.0f}" height="{HEIGHT}" rx="4" '
        f'class="{kind}"/>'
        f'<text x="{box.left + 10:.0f}" y="{box.top + 18:.0f}">{escape(box.text)}<title>{escape(whole)}</title></text>'
    )


def _head(name: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" orient="auto" '
        f'markerUnits="userSpaceOnUse"><path d="M0,0 L8,4 L0,8 z" fill="{COLOURS[name]}"/></marker>'
    )


def _legend(names: set[str], top: float) -> Iterator[str]:
    for n, name in enumerate(name for name in EDGES if name in names):
        yield (
            f'<text x="{MARGIN + n % 4 * 185}" y="{top + 20 * (n // 4):.0f}" style="fill: {COLOURS[name]}">'
            f"{name}: {EDGES[name]}</text>"
        )
