"""Pictures over time: the lanes of a warp, instruction by instruction, and CTAs on the threads of the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from html import escape

from ptxvm.isa.special_registers import WARP
from ptxvm.profile.timeline import Piece
from ptxvm.profile.trace import Step
from ptxvm.reference.accesses import in_ranges, neighbours
from ptxvm.reference.pictures import box, color, label, picture, titled

LEFT, TOP, WIDE, HIGH = 40.0, 18.0, 7.0, 7.0
EVERY = 10  # instructions between two numbers on the axis
NUMBERED = (0, 8, 16, 24, 31)
ON, OFF = 0.75, 0.16  # opacity of lanes whose guard holds, and of others

WIDTH, ROW = 700.0, 26.0
TICKS = 5
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def lanes_over_time(steps: Sequence[Step], key: Callable[[Step], str]) -> str:
    """A column for each instruction, a row for each lane; each line of PTX has its colour, and lanes that wait have none.

    `key` names the line of a step in the page.
    """
    lines = {line: n for n, line in enumerate(sorted({step.line for step in steps}))}
    parts = [label(LEFT - 6, TOP + (lane + 0.5) * HIGH, lane, "end", size=9, opacity=0.7) for lane in NUMBERED]
    for n, step in enumerate(steps):
        x, shade = LEFT + n * WIDE, lines[step.line] / len(lines)
        if n % EVERY == 0:
            parts.append(label(x + WIDE / 2, 9, n, size=9, opacity=0.7))
        name = f"<title>{escape(said(step))}</title>"
        parts.append(f"<g data-line='{escape(key(step))}' fill='{color(shade, 1)}'>{name}{column(step, x)}</g>")
    return picture(LEFT + len(steps) * WIDE + 8, TOP + WARP * HIGH + 8, "The lanes of a warp over time", parts)


def column(step: Step, x: float) -> str:
    """The lanes that execute an instruction, those whose guard does not hold paler; short, as a warp has hundreds of them."""
    return "".join(
        f"<path d='{''.join(map(partial(run, x), neighbours(lanes)))}' fill-opacity='{opacity:g}'/>"
        for lanes, opacity in ((step.on, ON), (sorted(step.off), OFF))
        if lanes
    )


def run(x: float, lanes: tuple[int, int]) -> str:
    """Neighbouring lanes, as a part of a path."""
    first, last = lanes
    return f"M{x:g} {TOP + first * HIGH:g}h{WIDE - 1:g}v{(last - first + 1) * HIGH - 1:g}h{1 - WIDE:g}z"


def said(step: Step) -> str:
    """A step, in a line."""
    off = f", guard off in {in_ranges(sorted(step.off))}" if step.off else ""
    return f"line {step.line}: {step.text} (lanes {in_ranges(step.lanes)}{off})"


def ctas_over_time(pieces: Sequence[Piece]) -> str:
    """A row for each thread of the host, a bar for each piece of the grid."""
    threads, end = max(piece.thread for piece in pieces) + 1, max(piece.ended for piece in pieces)
    left = 74.0
    parts = [label(left - 8, 8 + (n + 0.5) * ROW, f"thread {n}", "end", size=11) for n in range(threads)]
    for n, piece in enumerate(pieces):
        x, wide = left + piece.began / end * WIDTH, max((piece.ended - piece.began) / end * WIDTH, 0.5)
        ctas = f"CTA {piece.first}" if piece.last == piece.first + 1 else f"CTAs {piece.first}-{piece.last - 1}"
        text = f"{ctas} on thread {piece.thread}: from {duration(piece.began)} to {duration(piece.ended)}"
        inside = [
            box(x, 10 + piece.thread * ROW, wide, ROW - 4, color(0.12 + n * 0.381966))
        ]  # the golden section: unlike neighbours
        if wide > 6.6 * len(ctas) + 6:
            inside.append(label(x + wide / 2, 8 + (piece.thread + 0.5) * ROW, ctas, size=11))
        parts.append(titled(text, inside))
    below = 12 + threads * ROW
    parts += [
        label(left + n / TICKS * WIDTH, below + 8, duration(n / TICKS * end), size=10, opacity=0.7) for n in range(TICKS + 1)
    ]
    return picture(left + WIDTH + 34, below + 20, "CTAs over the threads of the host", parts)


def duration(seconds: float) -> str:
    """A time in the unit that fits."""
    size, unit = next((each for each in UNITS if seconds >= each[0]), UNITS[-1])
    return f"{seconds / size:.3g} {unit}"


__all__ = ["ctas_over_time", "lanes_over_time"]
