"""`ptxvm explain 'INSTRUCTION; INSTRUCTION; ...'`: one instruction, several whose values go on, or what lanes exchange."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from rich.text import Text

from ptxvm.algebra.types import Type, pred
from ptxvm.cli.explain_access import explain_access
from ptxvm.cli.explain_instruction import Rows, chosen, explain_instruction, options, print_insight, print_reading, shown
from ptxvm.cli.failures import FINDINGS, WrongCall, say
from ptxvm.cli.terminal import aligned, console, filled, has_color, labelled, width
from ptxvm.diagnostics import render
from ptxvm.isa.catalog.matrix import shared_matrices
from ptxvm.isa.fragments import Fragment
from ptxvm.isa.special_registers import WARP
from ptxvm.reference.access_pictures import lanes_of_access
from ptxvm.reference.accesses import place_of
from ptxvm.reference.drawings import memory_of_access, of_computation, of_lanes, standalone
from ptxvm.reference.evaluation import Quantity, number
from ptxvm.reference.matrices import fragments_of, matrix_of, pieces
from ptxvm.reference.page import Page
from ptxvm.reference.reading import NotUnderstood, Reading, read_all
from ptxvm.reference.warp import LANE, Lanes, NotTogether, WarpStep, can_run, is_collective, lane_values, needed, run
from ptxvm.syntax import tree
from ptxvm.syntax.printer import print_operand

IN_A_ROW = 8
"""Lanes in a row of a table."""

USUAL = LANE
USUAL_PREDICATE = f"{LANE}%2"
"""What registers have in lanes where `--set` says nothing."""


def explain_text(subject: str, values: Sequence[str], svg: str | None = None) -> int:
    """Explain the instructions of a text; `values` are those of registers, as NAME=VALUE, `svg` a file for pictures."""
    try:
        readings = read_all(subject)
    except NotUnderstood as refused:
        text = render([(refused.source, refused.diagnostics)], width=width(), color=has_color(sys.stderr))
        return say(text.rstrip("\n"), FINDINGS)
    drawn = explain_readings(readings, named(values))
    if svg is not None:
        write_pictures(svg, drawn)
    return 0


def explain_readings(readings: Sequence[Reading], values: Mapping[str, str]) -> list[str]:
    """Print what instructions are and do: one access, one lane, or a warp; the pictures of it."""
    first, *others = readings
    if not others and (place := place_of(first)) is not None:
        access = explain_access(first, place, values)
        print_fragments(first)
        print_matrices(first)
        return [lanes_of_access(access), memory_of_access(access), *of_lanes(readings, {}, [])]
    if not others and not is_collective(first) and not _guarded(first) and not _of_lanes(values):
        return of_computation(first, explain_instruction(first, values))
    return explain_lanes(readings, values)


def write_pictures(path: str, drawn: Sequence[str]) -> None:
    """Write pictures to a file, below each other."""
    if not drawn:
        raise WrongCall("--svg: there is no picture of this")
    try:
        Path(path).write_text(standalone(drawn), encoding="utf-8")
    except OSError as wrong:
        raise WrongCall(f"cannot write '{path}': {wrong.strerror or wrong}") from None


def explain_lanes(readings: Sequence[Reading], values: Mapping[str, str]) -> list[str]:
    """Print what instructions do in the lanes of a warp; the pictures of it."""
    alone = len(readings) == 1
    runs = [can_run(reading) for reading in readings]
    if values and not all(runs):
        text = readings[runs.index(False)].text
        raise WrongCall(f"--set has no use here: '{text}' does not work on registers alone")
    try:
        inputs = inputs_of(readings, values) if all(runs) else {}
        steps = run(readings, inputs) if all(runs) and inputs.keys() == needed(readings).keys() else []
    except NotTogether as wrong:
        raise WrongCall(str(wrong)) from None
    if alone:
        print_reading(readings[0])
        print_fragments(readings[0])
        if inputs or any(step.outputs for step in steps) or (all(runs) and not steps):
            console().print()
    print_inputs(readings, inputs)
    if alone:
        print_results(steps)
    else:
        print_sequence(readings, steps)
    if all(runs) and not steps:
        if not alone:
            console().print()
        console().print(labelled("result", [(f"depends on values: {options(list(needed(readings)))}",)]))
    return of_lanes(readings, inputs, steps)


def named(values: Sequence[str]) -> dict[str, str]:
    """The values by their names."""
    found = {}
    for each in values:
        name, equals, value = (part.strip() for part in each.partition("="))
        if not equals:
            raise WrongCall(f"--set takes NAME=VALUE, not '{each}'")
        found[name] = value
    return found


def _guarded(reading: Reading) -> bool:
    return reading.bound.node.guard is not None and can_run(reading)


def _of_lanes(values: Mapping[str, str]) -> bool:
    """Do values differ from lane to lane?"""
    return any(LANE in value or value.count(",") == WARP - 1 for value in values.values())


def inputs_of(readings: Sequence[Reading], values: Mapping[str, str]) -> dict[str, tuple[int, ...]]:
    """The registers that are read, in all lanes; what lanes exchange has their numbers where nothing is given."""
    known = needed(readings)
    if not values and any(map(is_collective, readings)) and not any(fragments_of(reading.decoded) for reading in readings):
        values = {name: USUAL_PREDICATE if type is pred else USUAL for name, type in known.items()}
    reader = "the instruction does" if len(readings) == 1 else "the instructions do"
    return chosen(values, known, reader, lane_values)


# ── what goes in and comes out ──────────────────────────────────────────────────────────


def print_inputs(readings: Sequence[Reading], inputs: Mapping[str, tuple[int, ...]]) -> None:
    """The values of registers."""
    known = needed(readings) if inputs else {}
    rows = [row for name, bits in inputs.items() for row in in_lanes(Lanes(name, known[name], bits))]
    if rows:
        console().print(labelled("values", rows))


def print_results(steps: Sequence[WarpStep]) -> None:
    """What each instruction wrote."""
    for step in steps:
        rows = results(step)
        if rows or step.reading.decoded.destinations():
            console().print(labelled("result", rows or [("is thrown away: `_`",)]))


def print_sequence(readings: Sequence[Reading], steps: Sequence[WarpStep]) -> None:
    """Each instruction, what it does in a line, and what it wrote."""
    out = console()
    for n, reading in enumerate(readings):
        if n or steps:
            out.print()
        out.print(Text(reading.text, style="bold"), soft_wrap=True)
        out.print(Text(filled(Page(reading.decoded.of).headline)))
        if steps:
            known = {lanes.name: lanes.bits[0] for step in steps[:n] for lanes in step.outputs if lanes.is_uniform}
            print_insight(reading, known)
            print_results(steps[n : n + 1])


def results(step: WarpStep) -> Rows:
    """The rows of what an instruction wrote."""
    rows = [row for lanes in step.outputs for row in in_lanes(lanes)]
    if step.outputs and not all(step.outputs[0].active):
        rows.append(("", "a lane in brackets has its old value: its guard is false"))
    return rows


def in_lanes(lanes: Lanes) -> Rows:
    """A register: its one value, or those of all lanes in a table."""
    if lanes.is_uniform:
        return shown(Quantity("", lanes.name, lanes.type, lanes.bits[0]))
    cells = [_cell(lanes.type, bits, active=active) for bits, active in zip(lanes.bits, lanes.active, strict=True)]
    wide = max(map(len, cells))
    rows: Rows = []
    for first in range(0, WARP, IN_A_ROW):
        said = " ".join(f"{cell:>{wide}}" for cell in cells[first : first + IN_A_ROW])
        rows.append(("" if first else lanes.name, f"lanes {first}-{first + IN_A_ROW - 1}", said))
    return rows


def _cell(type: Type, bits: int, *, active: bool) -> str:
    said = str(bits) if type is pred else number(Quantity("", "", type, bits)).replace(", ", ",")
    return said if active else f"({said})"


# ── matrices ────────────────────────────────────────────────────────────────────────────


def print_fragments(reading: Reading) -> None:
    """Which lane holds which elements of each matrix."""
    out, i = console(), reading.decoded
    same: dict[tuple[str, tuple[tuple[str, ...], ...]], list[str]] = {}
    for operand, fragment in fragments_of(i).items():
        rows, columns = fragment.shape
        said = f"{rows} × {columns} of .{fragment.type.name}"
        same.setdefault((said, tuple(held(fragment))), []).append(matrix_of(i, operand))
    for (said, table), names in same.items():
        out.print()
        out.print(Text.assemble((" and ".join(names), "bold"), f", {said}: lane and elements of its registers"))
        for line in aligned(table, range(1, WARP), width()):
            out.print(Text(f"  {line}"), soft_wrap=True)


def print_matrices(reading: Reading) -> None:
    """Which lanes have the addresses of the rows of each matrix, and which registers hold it."""
    moved = shared_matrices(reading.decoded)
    if moved is None:
        return
    vector = next(node for node in reading.bound.operands.values() if isinstance(node, tree.Vector))
    registers, rows = moved.fragment.registers, moved.fragment.shape[0]
    found = []
    for n in range(moved.number):
        names = ", ".join(map(print_operand, vector.items[n * registers : (n + 1) * registers]))
        found.append((f"{n}: rows at the addresses of lanes {n * rows}-{(n + 1) * rows - 1}, held in {names}",))
    console().print()
    console().print(labelled("matrices", found))


def held(fragment: Fragment) -> Iterator[tuple[str, ...]]:
    """The rows of a matrix as cells such as `5:2-3`."""
    for row, found in groupby(sorted(pieces(fragment), key=lambda p: (p.row, p.column)), key=lambda p: p.row):
        there = list(found)
        place = f"{row}" if not there[0].down or there[0].count == 1 else f"{row}-{row + there[0].count - 1}"
        yield place, *(f"{piece.lane}:{piece.elements}" for piece in there)
