"""`ptxvm explain 'INSTRUCTION; INSTRUCTION; ...'`: one instruction, several whose values go on, or what lanes exchange."""

from __future__ import annotations

import sys
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from rich.text import Text

from ptxvm.algebra.types import pred
from ptxvm.cli.explain_access import explain_access, neighbours_at, print_access
from ptxvm.cli.explain_instruction import (
    Rows,
    chosen,
    explain_instruction,
    no_result,
    options,
    print_insight,
    print_reading,
    shown,
)
from ptxvm.cli.failures import FINDINGS, WrongCall, say
from ptxvm.cli.terminal import GAP, LABEL, aligned, console, filled, has_color, labelled, width
from ptxvm.diagnostics import render
from ptxvm.isa.catalog.matrix import shared_matrices
from ptxvm.isa.fragments import Fragment
from ptxvm.isa.model import Decoded
from ptxvm.isa.special_registers import WARP
from ptxvm.reference.access_pictures import lanes_of_access
from ptxvm.reference.accesses import in_ranges, place_of
from ptxvm.reference.drawings import memory_of_access, of_computation, of_lanes, standalone
from ptxvm.reference.evaluation import Quantity, hexadecimal, number, wanted
from ptxvm.reference.matrices import fragments_of, matrix_of, period, pieces
from ptxvm.reference.page import Page
from ptxvm.reference.reading import NotUnderstood, Reading, read_all
from ptxvm.reference.syntax_lines import syntax_lines
from ptxvm.reference.warp import (
    LANE,
    Lanes,
    NotTogether,
    WarpStep,
    can_run,
    goes_on,
    is_collective,
    lane_values,
    masks,
    needed,
    optional,
    run,
    written_by,
)
from ptxvm.syntax import tree
from ptxvm.syntax.printer import print_operand

FEW_MASKS = 4
"""Different masks of a warp that are shown bit by bit."""

UNKNOWN = "-"
"""Stands for a value that nothing gave."""

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
    if not others and not _guarded(first) and (place := place_of(first)) is not None:
        access = explain_access(first, place, values)
        print_fragments(first.decoded)
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
    followed = readings if alone else readings[:-1]
    jump = next((reading for reading in followed if not goes_on(reading)), None)
    possible = jump is None
    try:
        idle = _not_executed(readings, values) if possible else jump
        if values and idle is not None:
            raise WrongCall(f"--set has no use here: '{idle.text}' {no_result(idle)}")
        inputs = inputs_of(readings, values) if possible else {}
        steps = run(readings, inputs) if possible and inputs.keys() >= needed(readings).keys() else []
    except NotTogether as wrong:
        raise WrongCall(str(wrong)) from None
    if alone:
        print_reading(readings[0])
        print_fragments(readings[0].decoded)
        print_matrices(readings[0])
        if inputs or any(step.outputs or step.access for step in steps) or (possible and not steps):
            console().print()
    print_inputs(readings, inputs)
    if alone:
        print_results(steps, masks(readings), last=True)
    else:
        print_sequence(readings, steps)
    if possible and not steps:
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
    return reading.bound.node.guard is not None


def _of_lanes(values: Mapping[str, str]) -> bool:
    """Do values differ from lane to lane?"""
    return any(LANE in value or value.count(",") == WARP - 1 for value in values.values())


def _not_executed(readings: Sequence[Reading], names: Collection[str]) -> Reading | None:
    """The first instruction that reads one of these registers, if only instructions that are not executed here do."""
    known = needed(readings).keys() | optional(readings).keys()
    given = {*names, *(f"%{name}" for name in names)} - known
    return next((each for each in readings if not can_run(each) and wanted(each).keys() & given), None)


def inputs_of(readings: Sequence[Reading], values: Mapping[str, str]) -> dict[str, tuple[int, ...]]:
    """The registers that are read, in all lanes; what lanes exchange has their numbers where nothing is given."""
    known = needed(readings)
    if not values and len(readings) == 1 and (place := place_of(readings[0])) is not None:
        values = {name: USUAL_PREDICATE if type is pred else neighbours_at(place) for name, type in known.items()}
    elif not values and any(map(is_collective, readings)) and not any(fragments_of(each.decoded) for each in readings):
        values = {name: USUAL_PREDICATE if type is pred else USUAL for name, type in known.items()}
    reader = "the instruction does" if len(readings) == 1 else "the instructions do"
    return chosen(values, known, reader, lane_values, optional(readings))


# ── what goes in and comes out ──────────────────────────────────────────────────────────


def print_inputs(readings: Sequence[Reading], inputs: Mapping[str, tuple[int, ...]]) -> None:
    """The values of registers."""
    known = needed(readings) | optional(readings) if inputs else {}
    of_lanes = masks(readings)
    rows = [row for name, bits in inputs.items() for row in in_lanes(Lanes(name, known[name], bits), of_lanes)]
    if rows:
        console().print(labelled("values", rows))


def print_results(steps: Sequence[WarpStep], of_lanes: Collection[str], *, last: bool = False) -> None:
    """What each instruction accessed and wrote; the bits of some registers are lanes.

    What the `last` instruction loads is left out where it has no value: nothing goes on with it.
    """
    for step in steps:
        if (place := place_of(step.reading)) is not None and step.access is not None:
            print_access(place, step.access, place.register)
        if step.unknown and last:
            continue
        rows = results(step, of_lanes)
        if rows or step.reading.decoded.destinations():
            console().print(labelled("result", rows or [("is thrown away: `_`",)]))


def print_sequence(readings: Sequence[Reading], steps: Sequence[WarpStep]) -> None:
    """Each instruction, what it does in a line, and what it wrote."""
    out = console()
    for n, reading in enumerate(readings):
        if n or steps:
            out.print()
        out.print(Text("\n".join(syntax_lines(reading.text, width())), style="bold"), soft_wrap=True)
        out.print(Text(filled(Page(reading.decoded.of).headline)))
        if steps:
            known = {lanes.name: lanes.bits[0] for step in steps[:n] for lanes in step.outputs if lanes.is_uniform}
            print_insight(reading, known)
            print_results(steps[n : n + 1], masks(readings), last=n == len(readings) - 1 and not can_run(reading))


def results(step: WarpStep, of_lanes: Collection[str]) -> Rows:
    """The rows of what an instruction wrote; the bits of some registers are lanes."""
    if step.unknown:
        return [without_value(step)]
    if step.outputs and not any(step.outputs[0].active):
        return [row for lanes in step.outputs for row in unwritten(lanes)]
    rows = [row for lanes in step.outputs for row in in_lanes(lanes, of_lanes)]
    kept = [known for lanes in step.outputs for active, known in zip(lanes.active, lanes.known, strict=True) if not active]
    if any(kept):
        rows.append(("", "a lane in brackets has its old value: its guard is false"))
    if not all(kept):
        rows.append(("", f"a lane with {UNKNOWN} has its old value, which is not known: its guard is false"))
    return rows


def without_value(step: WarpStep) -> tuple[str, ...]:
    """Why it is not known what an instruction wrote."""
    lacking = " and ".join(step.unknown)
    if {name for name, _ in written_by(step.reading)} >= {*step.unknown} and not can_run(step.reading):
        return (lacking, f"is not known; to go on with a value: {options(step.unknown)}")
    return (f"depends on {lacking}, which {'is' if len(step.unknown) == 1 else 'are'} not known",)


def unwritten(lanes: Lanes) -> Rows:
    """A register that no lane writes: the value that it keeps, where all lanes have the same one."""
    said = "is not written: the guard is false in every lane"
    if all(lanes.known) and len(set(lanes.bits)) == 1:
        (first, *others) = shown(Quantity("", lanes.name, lanes.type, lanes.bits[0]))
        return [first, *others, ("", "", said)]
    return [(lanes.name, said)]


def in_lanes(lanes: Lanes, of_lanes: Collection[str] = ()) -> Rows:
    """A register: its one value, or those of all lanes in a table; the bits of a mask are lanes."""
    is_mask = lanes.name in of_lanes
    if is_mask and all(lanes.active) and len(set(lanes.bits)) <= FEW_MASKS:
        return [row for mask in dict.fromkeys(lanes.bits) for row in mask_rows(lanes, mask)]
    if lanes.is_uniform:
        return shown(Quantity("", lanes.name, lanes.type, lanes.bits[0]))
    cells = [_cell(lanes, lane, is_mask=is_mask) for lane in range(WARP)]
    wide = max(map(len, cells))
    room = width() - LABEL - len(GAP) - len(f"{lanes.name}{GAP}lanes 24-31{GAP}")
    together = next(count for count in (8, 4, 2, 1) if count * (wide + 1) - 1 <= room or count == 1)
    rows: Rows = []
    for first in range(0, WARP, together):
        said = " ".join(f"{cell:>{wide}}" for cell in cells[first : first + together])
        rows.append(("" if first else lanes.name, f"lanes {first}-{first + together - 1}", said))
    return rows


def _cell(lanes: Lanes, lane: int, *, is_mask: bool) -> str:
    if not lanes.known[lane]:
        return UNKNOWN
    quantity = Quantity("", "", lanes.type, lanes.bits[lane])
    said = str(quantity.bits) if lanes.type is pred else hexadecimal(quantity) if is_mask else number(quantity)
    return said.replace(", ", ",") if lanes.active[lane] else f"({said.replace(', ', ',')})"


def mask_rows(lanes: Lanes, mask: int) -> Rows:
    """A mask in hexadecimal and binary digits, the lanes that it names, and the lanes that have it where not all do."""
    binary = f"{mask:0{WARP}b}"
    digits = " ".join(binary[at : at + 8] for at in range(0, WARP, 8))
    first = next(lane for lane in range(WARP) if lanes.bits[lane] == mask)
    named = in_ranges([lane for lane in range(WARP) if mask >> lane & 1])
    rows: Rows = [
        (lanes.name if first == 0 else "", hexadecimal(Quantity("", "", lanes.type, mask)), digits),
        ("", "", f"lanes {named}" if named else "no lane"),
    ]
    if len(set(lanes.bits)) > 1:
        rows.append(("", "", f"in lanes {in_ranges([lane for lane in range(WARP) if lanes.bits[lane] == mask])}"))
    return rows


# ── matrices ────────────────────────────────────────────────────────────────────────────


def print_fragments(i: Decoded) -> None:
    """Which lane holds which elements of each matrix."""
    out = console()
    same: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for operand, fragment in fragments_of(i).items():
        rows, columns = fragment.shape
        said = f"{rows} × {columns} of .{fragment.type.name}"
        same.setdefault((said, tuple(_fragment_lines(fragment, width() - len(GAP)))), []).append(matrix_of(i, operand))
    for (said, lines), names in same.items():
        out.print()
        out.print(Text.assemble((" and ".join(names), "bold"), f", {said}: lane and its elements"))
        for line in lines:
            out.print(Text(f"{GAP}{line}"), soft_wrap=True)


def _fragment_lines(fragment: Fragment, columns: int) -> list[str]:
    """The rows of a matrix; of one that is too wide for a line, its first columns, and how it goes on."""
    again = period(fragment)
    lines = list(aligned(tuple(held(fragment)), range(1, WARP), columns))
    if max(map(len, lines)) <= columns:
        return lines
    return _parts(fragment, columns) if again is None else [*_parts(again.of(fragment), columns), again.said]


def _parts(fragment: Fragment, columns: int) -> list[str]:
    """The rows of a matrix, as many columns at a time as a line has room for: halves, quarters, and so on."""
    wide = fragment.shape[1]
    while True:
        tables = [
            list(aligned(tuple(held(fragment, range(n, n + wide))), range(1, WARP), columns))
            for n in range(0, fragment.shape[1], wide)
        ]
        if wide % 2 or max(len(line) for table in tables for line in table) <= columns:
            break
        wide //= 2
    if len(tables) == 1:
        return tables[0]
    headed = [[f"columns {n * wide}-{(n + 1) * wide - 1}", *table] for n, table in enumerate(tables)]
    return [line for table in headed for line in table]


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


def held(fragment: Fragment, columns: Container[int] | None = None) -> Iterator[tuple[str, ...]]:
    """The rows of a matrix, or of some of its columns, as cells such as `5:2-3`."""
    chosen = [piece for piece in pieces(fragment) if columns is None or piece.column in columns]
    for row, found in groupby(sorted(chosen, key=lambda p: (p.row, p.column)), key=lambda p: p.row):
        there = list(found)
        place = f"{row}" if not there[0].down or there[0].count == 1 else f"{row}-{row + there[0].count - 1}"
        yield place, *(f"{piece.lane}:{piece.elements}" for piece in there)
