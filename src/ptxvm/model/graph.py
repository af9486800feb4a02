"""An execution as a drawing: threads side by side, time downwards, an arrow for each relation (SVG)."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from ptxvm.model.axioms_6_4 import PTX64
from ptxvm.model.enumerate import Candidate
from ptxvm.model.explain import EDGES, Step, cycle
from ptxvm.model.relations import Relation

COLOURS = {
    "rf": "#c0392b",
    "co": "#7d5a2b",
    "fr": "#d68910",
    "sync": "#1f6fb2",
    "cause": "#8e44ad",
    "po": "#9aa0a6",
    "obs": "#2e8b57",
    "dep": "#555555",
    "sc": "#1f6fb2",
}
WIDTH, HEIGHT, GAP, ROW, MARGIN = 290, 30, 190, 60, 40
DRAWN = ("po", "rf", "co", "fr", "sync", "cause")


def svg(candidate: Candidate) -> str:
    """The drawing of an execution; where it breaks an axiom, the cycle stands out."""
    x = candidate.execution
    places = positions(x)
    right = max(left for left, _ in places.values()) + WIDTH + 2 * MARGIN
    bottom = max(top for _, top in places.values()) + HEIGHT + MARGIN
    wrong = cycle(candidate)
    shown = sorted({*steps(x), *wrong}, key=lambda step: (step in wrong, DRAWN.index(step.edge) if step.edge in DRAWN else 9))
    body = [
        *(_title(name, left) for name, left in _columns(x, places)),
        *(_arrow(step, places, n, bold=step in wrong) for n, step in enumerate(shown)),
        *(_box(x, i, place, candidate) for i, place in places.items()),
        *_legend({step.edge for step in shown}, bottom),
        *(
            [_verdict(f"forbidden by {candidate.broken.name} ({candidate.broken.section(type(x))})", bottom)]
            if candidate.broken
            else []
        ),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{right}" height="{bottom + 50}" '
        f'viewBox="0 0 {right} {bottom + 50}" font-family="monospace" font-size="12">\n'
        f"<title>{escape(x.test.name)}, PTX {x.name}</title>\n"
        f'<rect width="100%" height="100%" fill="white"/>\n<defs>{"".join(_head(name) for name in COLOURS)}</defs>\n'
        + "\n".join(body)
        + "\n</svg>\n"
    )


def steps(x: PTX64) -> list[Step]:
    """The arrows that a reader needs: of orders what the other arrows do not give, of causality what reaches memory."""
    seen = (x.causality & x.overlap) - x.same_thread - x.synchronizes
    chosen = {
        "po": _reduced(x.program_order),
        "rf": x.reads_from,
        "co": _reduced(x.coherence),
        "fr": x.from_reads - x.from_reads.then(x.coherence) - x.read_modify_write,
        "sync": x.synchronizes,
        "cause": seen - seen.then(x.coherence) - x.reads_from.then(seen),
    }
    return [Step(a, name, b) for name, relation in chosen.items() for a, b in relation if a != b]


def _reduced(relation: Relation) -> Relation:
    """Without the pairs that two others give."""
    return relation - relation.then(relation)


def positions(x: PTX64) -> dict[int, tuple[int, int]]:
    """Where each event stands: a column for each thread, initial writes in a row above."""
    found: dict[int, tuple[int, int]] = {}
    rows: dict[str, int] = {}
    column = {thread.name: n for n, thread in enumerate(x.test.threads)}
    for i, event in enumerate(x.events):
        if event.thread is None:
            n = len(found)
            found[i] = (MARGIN + n * (WIDTH + GAP // 2), MARGIN - 20)
        else:
            row = rows[event.thread.name] = rows.get(event.thread.name, 0) + 1
            found[i] = (MARGIN + column[event.thread.name] * (WIDTH + GAP), MARGIN + row * ROW)
    return found


def _columns(x: PTX64, places: dict[int, tuple[int, int]]) -> Iterable[tuple[str, int]]:
    seen: dict[str, int] = {}
    for i, event in enumerate(x.events):
        if event.thread is not None:
            gpu, _, cta = event.thread.cta
            seen.setdefault(f"{event.thread.name}  (gpu {gpu}, cta {cta})", places[i][0])
    return seen.items()


def _title(name: str, left: int) -> str:
    return f'<text x="{left}" y="{MARGIN + 45}" font-weight="bold">{escape(name)}</text>'


def _box(x: PTX64, i: int, place: tuple[int, int], candidate: Candidate) -> str:
    left, top = place
    event = x.events[i]
    value = candidate.known.get(event.key)
    text = f"{event.kind.value} {event.text}" + (f" = {value}" if value is not None else "")
    return (
        f'<rect x="{left}" y="{top}" width="{WIDTH}" height="{HEIGHT}" rx="4" fill="#f6f8fa" stroke="#57606a"/>'
        f'<text x="{left + 8}" y="{top + 19}">{escape(text[:38])}<title>{escape(str(event))}</title></text>'
    )


def _arrow(step: Step, places: dict[int, tuple[int, int]], n: int, *, bold: bool) -> str:
    """A curve between two boxes; each bends a little differently, so that none hides another."""
    (ax, ay), (bx, by) = places[step.first], places[step.second]
    colour = COLOURS[step.edge]
    if ax == bx:
        side = 0 if step.edge == "po" else 1
        x1 = x2 = ax + (WIDTH // 3 if side == 0 else WIDTH)
        y1, y2 = (ay + HEIGHT, by) if by > ay else (ay, by + HEIGHT)
        bend = 0 if side == 0 else 30 + 8 * (n % 4)
        if side:
            y1, y2 = ay + HEIGHT // 2, by + HEIGHT // 2
        path = f"M{x1},{y1} C{x1 + bend},{y1} {x2 + bend},{y2} {x2},{y2}"
        middle = (x1 + bend * 3 // 4, (y1 + y2) // 2)
    else:
        rightwards = bx > ax
        x1, x2 = (ax + WIDTH, bx) if rightwards else (ax, bx + WIDTH)
        y1, y2 = ay + HEIGHT // 2, by + HEIGHT // 2
        lift = 10 * (n % 5) - 20
        path = f"M{x1},{y1} C{(x1 + x2) // 2},{y1 + lift} {(x1 + x2) // 2},{y2 + lift} {x2},{y2}"
        middle = ((x1 + x2) // 2, (y1 + y2) // 2 + lift)
    width = 3 if bold else 1.3
    dash = ' stroke-dasharray="5 3"' if step.edge == "cause" else ""
    return (
        f'<path class="{step.edge}" d="{path}" fill="none" stroke="{colour}" stroke-width="{width}"{dash} '
        f'marker-end="url(#{step.edge})"/>'
        f'<text x="{middle[0]}" y="{middle[1]}" fill="{colour}" font-size="11" paint-order="stroke" stroke="white" '
        f'stroke-width="3">{step.edge}</text>'
    )


def _head(name: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto" '
        f'markerUnits="userSpaceOnUse"><path d="M0,0 L8,4 L0,8 z" fill="{COLOURS[name]}"/></marker>'
    )


def _legend(names: set[str], bottom: int) -> Iterable[str]:
    for n, name in enumerate(name for name in EDGES if name in names):
        yield (
            f'<text x="{MARGIN + n % 4 * 190}" y="{bottom + 16 * (n // 4)}" fill="{COLOURS[name]}">{name}: {EDGES[name]}</text>'
        )


def _verdict(text: str, bottom: int) -> str:
    return f'<text x="{MARGIN}" y="{bottom + 40}" font-weight="bold" fill="{COLOURS["rf"]}">{escape(text)}</text>'
