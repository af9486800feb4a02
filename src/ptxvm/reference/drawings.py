"""The pictures of explained instructions: bytes, truth tables, lanes, fragments, memory; and a file that holds them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import pred
from ptxvm.isa.special_registers import WARP
from ptxvm.profile.warp_accesses import BANKS, LINE, SECTOR, WORD
from ptxvm.reference import boolean
from ptxvm.reference.accesses import WarpAccess, in_ranges
from ptxvm.reference.evaluation import Quantity, constants_of, number
from ptxvm.reference.matrices import fragments_of, matrix_of
from ptxvm.reference.pictures import box, bytes_of_prmt, color, grid, label, matrix_of_fragment, picture, table_of_lop3
from ptxvm.reference.reading import Reading
from ptxvm.reference.warp import Lanes, WarpStep, needed, optional
from ptxvm.syntax.printer import print_operand

SIZE = re.compile(r"viewBox='0 0 (\S+) (\S+)'")
HEAD = re.compile(r"<svg (.*?) style='[^']*'")
GAP = 12
COLORS = (
    "<style>svg { color: black; background: white } "
    "@media (prefers-color-scheme: dark) { svg { color: #ddd; background: #131416 } }</style>"
)
"""A file has no page around it, whose colours it could take."""


def of_computation(reading: Reading, inputs: Mapping[str, int]) -> list[str]:
    """What one lane computes: the bytes of prmt, the table of lop3; nothing of other instructions."""
    constants, operands = constants_of(reading), reading.bound.operands
    match reading.decoded.of.name:
        case "prmt":
            control = constants.get("c", inputs.get(print_operand(operands["c"])))
            return [] if control is None else [bytes_of_prmt(control, reading.decoded.mode or None)]
        case "lop3" if "immLut" in constants:
            return [table_of_lop3(constants["immLut"] & boolean.ALL)]
    return []


def of_lanes(readings: Sequence[Reading], inputs: Mapping[str, tuple[int, ...]], steps: Sequence[WarpStep]) -> list[str]:
    """What a warp does: the fragments of matrices, what a lane computes where all compute the same, registers, and memory."""
    drawn = [
        matrix_of_fragment(matrix_of(reading.decoded, operand), fragment)
        for reading in readings
        for operand, fragment in fragments_of(reading.decoded).items()
    ]
    alike = {name: bits[0] for name, bits in inputs.items() if len(set(bits)) == 1}
    drawn += [each for reading in readings for each in of_computation(reading, alike)]
    known = needed(readings) | optional(readings) if inputs else {}
    registers = [Lanes(name, known[name], bits) for name, bits in inputs.items()]
    registers += [lanes for step in steps for lanes in step.outputs]
    accesses = [memory_of_access(step.access) for step in steps if step.access is not None and step.access.addresses]
    return [*drawn, *([registers_of_lanes(registers)] if registers else []), *accesses]


# ── lanes ───────────────────────────────────────────────────────────────────────────────


def registers_of_lanes(registers: Sequence[Lanes]) -> str:
    """A row of lanes for each register; equal values have one colour, and lanes that did nothing are empty.

    What all lanes have stands once, across the row.
    """
    texts = [[_value(lanes, lane) if lanes.known[lane] else "-" for lane in range(WARP)] for lanes in registers]
    alike = [len(set(row)) == 1 and all(lanes.active) for lanes, row in zip(registers, texts, strict=True)]
    differing = [row for row, same in zip(texts, alike, strict=True) if not same]
    wide = max([26.0, *(7.4 * len(text) + 6 for row in differing for text in row)])
    left, high = 12 + 7.4 * max(len(lanes.name) for lanes in registers), 24
    shades = {value: n for n, value in enumerate(dict.fromkeys(text for row in texts for text in row))}
    parts = [label(left + (lane + 0.5) * wide, 10, lane, size=10, opacity=0.7) for lane in range(WARP)]
    for n, (lanes, row) in enumerate(zip(registers, texts, strict=True)):
        y = 20 + n * (high + 8)
        parts.append(label(left - 8, y + high / 2, lanes.name, "end"))
        if alike[n]:
            whole = WARP * wide
            parts += [
                box(left, y, whole, high, color(shades[row[0]] / len(shades))),
                label(left + whole / 2, y + high / 2, row[0], size=11),
            ]
            continue
        for lane, text in enumerate(row):
            fill = color(shades[text] / len(shades)) if lanes.active[lane] else "none"
            x = left + lane * wide
            parts += [box(x, y, wide, high, fill), label(x + wide / 2, y + high / 2, text, size=11)]
    return picture(left + WARP * wide + 8, 20 + len(registers) * (high + 8), "The registers of the lanes of a warp", parts)


def _value(lanes: Lanes, lane: int) -> str:
    bits = lanes.bits[lane]
    return str(bits) if lanes.type is pred else number(Quantity("", "", lanes.type, bits))


# ── memory ──────────────────────────────────────────────────────────────────────────────


def memory_of_access(access: WarpAccess) -> str:
    """The words that lanes access: a row for each 128 bytes, which are a line, and one word of each bank."""
    cell, high, top = 25.0, 22.0, 30.0
    rows = {number: list(words) for number, words in groupby(access.words, key=lambda word: word * WORD // LINE)}
    left = max(74.0, 12 + 6.2 * max(len(access.address_text(row * LINE)) for row in rows))
    parts = list(_head(access, left, cell))
    for n, (row, words) in enumerate(rows.items()):
        y = top + n * high
        parts.append(label(left - 6, y + high / 2, access.address_text(row * LINE), "end", size=10, opacity=0.7))
        parts.append(grid(left, y, LINE // WORD, cell, high))
        for word in words:
            lanes, x = access.words[word], left + word % BANKS * cell
            text = in_ranges(lanes) if len(lanes) < WARP else "all"
            parts += [box(x, y, cell, high, color(lanes[0] / WARP)), label(x + cell / 2, y + high / 2, text, size=_size(text))]
    below = top + len(rows) * high
    return picture(left + LINE // WORD * cell + 8, below + 8, "The words that the lanes of a warp access", parts)


def _head(access: WarpAccess, left: float, cell: float) -> Iterator[str]:
    """The banks of shared memory, or the sectors of a line."""
    if access.space is Space.SHARED:
        yield label(left - 6, 18, "bank", "end", size=10, opacity=0.7)
        yield from (label(left + (bank + 0.5) * cell, 18, bank, size=10, opacity=0.7) for bank in range(BANKS))
        return
    wide = SECTOR // WORD * cell
    for n in range(LINE // SECTOR):
        yield box(left + n * wide, 6, wide, 20)
        yield label(left + (n + 0.5) * wide, 16, f"sector +{n * SECTOR}", size=10, opacity=0.7)


def _size(text: str) -> float:
    """Of letters that fit a cell."""
    return min(11.0, 36.0 / len(text))


# ── files ───────────────────────────────────────────────────────────────────────────────


def standalone(drawn: Sequence[str]) -> str:
    """A file of pictures below each other, whose colours follow those of the viewer."""
    sizes = [tuple(map(float, found.groups())) for each in drawn if (found := SIZE.search(each))]
    tops = [sum(height + GAP for _, height in sizes[:n]) for n in range(len(sizes))]
    # A picture within a picture has the height that is said, without which it is as high as all of them.
    moved = [
        HEAD.sub(rf"<svg y='{top:g}' height='{height:g}' \1", each, count=1)
        for each, top, (_, height) in zip(drawn, tops, sizes, strict=True)
    ]
    return picture(max(width for width, _ in sizes), tops[-1] + sizes[-1][1], "ptxvm explain", [COLORS, *moved]) + "\n"
