"""Pictures of the reference, as SVG made from the declarations: bytes, lanes, truth tables and fragments.

They stand inside the page, so that lines and letters have the colour of its text (`currentColor`) and fills are
translucent: both read well on a light page and on a dark one.
"""

from __future__ import annotations

import colorsys
import re
from collections.abc import Iterable, Sequence
from html import escape

from ptxvm.isa.fragments import Fragment
from ptxvm.isa.special_registers import WARP
from ptxvm.reference import boolean
from ptxvm.reference.matrices import pieces
from ptxvm.reference.permutation import byte_selections

FONT = "font-family='ui-monospace, SFMono-Regular, Menlo, monospace'"
WORD_SIZE = 10


# ── the few shapes that the pictures are made of ────────────────────────────────────────


def picture(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    """A whole picture; the title is read aloud by screen readers."""
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:g} {height:g}' width='{width:g}' role='img' "
        f"style='max-width: 100%; height: auto' {FONT} font-size='12' fill='currentColor' stroke='none'>"
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )


def box(x: float, y: float, width: float, height: float, fill: str = "none") -> str:
    """A cell."""
    return (
        f"<rect x='{x:g}' y='{y:g}' width='{width:g}' height='{height:g}' fill='{fill}' stroke='currentColor' "
        "stroke-opacity='.5'/>"
    )


def grid(x: float, y: float, columns: int, width: float, height: float) -> str:
    """A row of empty cells."""
    upright = "".join(f"M{x + n * width:g} {y:g}v{height:g}" for n in range(1, columns))
    path = f"M{x:g} {y:g}h{columns * width:g}v{height:g}h{-columns * width:g}z{upright}"
    return f"<path d='{path}' fill='none' stroke='currentColor' stroke-opacity='.5'/>"


def outline(x: float, y: float, width: float, height: float) -> str:
    """The path of a cell, for `outlined`."""
    return f"M{x:g} {y:g}h{width:g}v{height:g}h{-width:g}z"


def outlined(fills: Iterable[tuple[str, str]]) -> str:
    """Many cells: for each fill the paths of those that have it."""
    paths = "".join(f"<path fill='{fill}' d='{path}'/>" for fill, path in fills)
    return f"<g stroke='currentColor' stroke-opacity='.5'>{paths}</g>"


def word(x: float, y: float, text: object) -> str:
    """A text of `words`; `y` is its middle."""
    return f"<text x='{x:.5g}' y='{y + WORD_SIZE * 0.36:.5g}'>{escape(str(text))}</text>"


def words(texts: Iterable[str], anchor: str = "middle", opacity: float = 1) -> str:
    """Many small texts, which have their looks in common."""
    faint = f" opacity='{opacity:g}'" if opacity < 1 else ""
    return f"<g text-anchor='{anchor}' font-size='{WORD_SIZE}'{faint}>{''.join(texts)}</g>"


def titled(title: str, parts: Iterable[str]) -> str:
    """Shapes with a title, which shows where the pointer rests on them."""
    return f"<g><title>{escape(title)}</title>{''.join(parts)}</g>"


def label(x: float, y: float, text: object, anchor: str = "middle", size: float = 12, opacity: float = 1) -> str:
    """A text; `y` is its middle."""
    faint = f" opacity='{opacity:g}'" if opacity < 1 else ""
    said = escape(str(text))
    return f"<text x='{x:g}' y='{y + size * 0.36:.4g}' text-anchor='{anchor}' font-size='{size:g}'{faint}>{said}</text>"


def line(x1: float, y1: float, x2: float, y2: float, *, color: str = "currentColor", dashed: bool = False) -> str:
    """A line that ends in a dot, where the value goes."""
    dashes = " stroke-dasharray='4 3'" if dashed else ""
    return (
        f"<line x1='{x1:g}' y1='{y1:g}' x2='{x2:g}' y2='{y2:g}' stroke='{color}' stroke-width='1.6'{dashes}/>"
        f"<circle cx='{x2:g}' cy='{y2:g}' r='3' fill='{color}'/>"
    )


def stroke(points: Iterable[tuple[float, float]], *, dashed: bool = False, faint: bool = False) -> str:
    """A line through points."""
    through = " ".join(f"{x:.5g},{y:.5g}" for x, y in points)
    dashes = " stroke-dasharray='5 4'" if dashed else ""
    width, opacity = ("1", " stroke-opacity='.5'") if faint else ("1.6", "")
    return f"<polyline points='{through}' fill='none' stroke='currentColor' stroke-width='{width}'{opacity}{dashes}/>"


def color(part: float, opacity: float = 0.28) -> str:
    """A fill for a place between 0 and 1 of the circle of colours."""
    red, green, blue = (round(255 * c) for c in colorsys.hls_to_rgb(part % 1, 0.5, 0.75))
    return f"rgba({red}, {green}, {blue}, {opacity:g})"


# ── prmt: where the bytes go ────────────────────────────────────────────────────────────


def bytes_of_prmt(control: int, mode: str | None = None) -> str:
    """The eight bytes of `b` and `a`, and the four of the result; a dashed line takes the sign only."""
    cell, gap, top, bottom = 56, 24, 34, 138
    left = 16.0

    def at(number: int) -> float:
        """The left edge of a byte of the sources: 7 to 4 are those of `b`."""
        return left + (7 - number) * cell + (gap if number < 4 else 0)

    def of_result(number: int) -> float:
        return left + (2 + 3 - number) * cell + gap / 2

    parts = [label(at(7) + 2 * cell, 16, "b"), label(at(3) + 2 * cell, 16, "a")]
    for number in range(8):
        name = f"{'b' if number > 3 else 'a'}.b{number & 3}"
        parts += [
            box(at(number), top, cell, 28, color(number / 8)),
            label(at(number) + cell / 2, top + 14, f"{number}: {name}"),
        ]
    for number, pick in enumerate(byte_selections(control, mode)):
        source = pick.byte + (4 if pick.operand == "b" else 0)
        middle = of_result(number) + cell / 2
        parts += [
            line(at(source) + cell / 2, top + 28, middle, bottom, color=color(source / 8, 0.95), dashed=pick.sign),
            box(of_result(number), bottom, cell, 28, color(source / 8)),
            label(middle, bottom + 14, f"d.b{number}"),
        ]
        if not mode:
            parts.append(label(middle, bottom + 42, f"{control >> 4 * number & 0xF:x}", opacity=0.8))
    said = f".{mode}, c = {control}" if mode else f"c = 0x{control:04x}"
    parts.append(label(of_result(3) - 14, bottom + (14 if mode else 42), said, "end", opacity=0.8))
    return picture(2 * left + 8 * cell + gap, bottom + 60, f"prmt with control {control:#06x}", parts)


# ── lop3: the table ─────────────────────────────────────────────────────────────────────


def table_of_lop3(table: int) -> str:
    """The eight rows of a function of three bits, side by side, and what the function is."""
    cell, height, left, top = 40, 26, 60, 12
    parts = []
    rows = [*boolean.VARIABLES.items(), ("d", table)]
    for row, (name, bits) in enumerate(rows):
        y = top + row * height + (6 if name == "d" else 0)
        parts.append(label(left - 14, y + height / 2, name, "end"))
        for column, number in enumerate(range(7, -1, -1)):
            bit = bits >> number & 1
            fill = color(0.6 if name == "d" else 0.1, 0.4 if name == "d" else 0.22) if bit else "none"
            x = left + column * cell
            parts += [box(x, y, cell, height, fill), label(x + cell / 2, y + height / 2, bit)]
    below = top + 4 * height + 6
    for column, number in enumerate(range(7, -1, -1)):
        parts.append(label(left + column * cell + cell / 2, below + 12, f"bit {number}", size=10, opacity=0.7))
    name = boolean.name(table)
    said = f"immLut = 0x{table:02X}: d = {boolean.expression(table)}" + (f"  ({name})" if name else "")
    parts.append(label(left, below + 34, said, "start"))
    return picture(left + 8 * cell + 60, below + 50, f"The truth table {table:#04x} of lop3", parts)


# ── shfl: the lanes ─────────────────────────────────────────────────────────────────────


def lanes_of_shuffle(title: str, sources: Sequence[int], found: Sequence[bool]) -> str:
    """From which lane each lane gets its value; where the predicate is false, it keeps its own (dashed)."""
    cell, left, top, bottom = 26, 64, 26, 116
    count = len(sources)
    parts = [label(left - 8, top + 12, "a", "end"), label(left - 8, bottom + 12, "d", "end"), label(4, 10, title, "start")]
    for lane in range(count):
        x = left + lane * cell
        parts += [
            box(x, top, cell, 24, color(lane / count)),
            label(x + cell / 2, top + 12, lane, size=11),
        ]
    for lane, source in enumerate(sources):
        x = left + lane * cell
        ends = (left + source * cell + cell / 2, top + 24, x + cell / 2, bottom)
        parts += [
            line(*ends, color=color(source / count, 0.95), dashed=not found[lane]),
            box(x, bottom, cell, 24, color(source / count)),
            label(x + cell / 2, bottom + 12, source, size=11),
        ]
    return picture(left + count * cell + 12, bottom + 34, title, parts)


# ── wmma and mma: the fragments ─────────────────────────────────────────────────────────


def matrix_of_fragment(name: str, fragment: Fragment, types: Sequence[str] = ()) -> str:
    """Which lane holds each element of a matrix, and as which of its elements, `T5: 2-3`; for further types, too."""
    found = pieces(fragment)
    rows, columns = fragment.shape
    longest = max(piece.count for piece in found)
    down = found[0].down
    size = 6.2 * (max(len(piece.elements) for piece in found) + 5) + 8
    wide = max(6.0, size if down else size / longest)
    high = max(1.2, 20 / longest) if down else 20.0
    left, top = 34, 40
    caption = f"{name}: {rows} x {columns}, {', '.join(f'.{each}' for each in types or [fragment.type.name])}"
    outlines, words_of_lanes = dict[int, str](), list[str]()
    for piece in found:
        across, along = (1, piece.count) if down else (piece.count, 1)
        x, y, width, height = left + piece.column * wide, top + piece.row * high, across * wide, along * high
        outlines[piece.lane] = outlines.get(piece.lane, "") + outline(x, y, width, height)
        words_of_lanes.append(word(x + width / 2, y + height / 2, f"T{piece.lane}: {piece.elements}"))
    cells = [
        outlined((color(lane / WARP, 0.25), path) for lane, path in outlines.items()),
        words(words_of_lanes),
    ]
    step_right, step_down = (1, longest) if down else (longest, 1)
    columns_of = [word(left + n * wide + 3, top - 8, n) for n in range(0, columns, step_right)]
    rows_of = [word(left - 6, top + n * high + (10 if step_down == 1 else 7), n) for n in range(0, rows, step_down)]
    cells += [words(columns_of, "start", 0.7), words(rows_of, "end", 0.7)]
    parts = [label(left, 12, caption, "start"), f"<g class='cells'>{''.join(cells)}</g>"]
    title = f"The fragment of {name}: which lane holds which element"
    return picture(max(left + columns * wide, 7.4 * len(caption) + left) + 8, top + rows * high + 8, title, parts)


CELLS = re.compile(r"<g class='cells'>((?:<g [^>]*>.*?</g>)*)</g>")


def share(page: str) -> str:
    """A page that has equal cells once: the later pictures use those of the first."""
    known: dict[str, int] = {}

    def once(found: re.Match[str]) -> str:
        number = len(known)
        if (first := known.setdefault(found[1], number)) != number:
            return f"<use href='#cells-{first}'/>"
        return f"<g id='cells-{number}'>{found[1]}</g>"

    return CELLS.sub(once, page)


__all__ = ["bytes_of_prmt", "lanes_of_shuffle", "matrix_of_fragment", "share", "table_of_lop3"]
