"""The shape table of a kernel: its PTX beside the shape of each value, and how it accesses memory.

The rows are those of the version that runs first.  Varying values and accesses lane by lane cost time.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ptxvm.algebra.types import Type
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.cfg.nodes import Node
from ptxvm.engine.jit.ir.lane_values import Affine, Pattern, Raw, wrapped
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.engine.jit.show.causes import BEHIND, ENDS, IN_STEP, MAY_PART, PARTED, causes
from ptxvm.engine.jit.translate.register_pressure import most_registers
from ptxvm.isa.special_registers import WARP

HEADINGS = ("line", "instruction", "value", "memory, control")
WIDEST = 44  # columns of an instruction
LEGEND = """\
A value is a constant (= 5), uniform (one scalar for all lanes), affine in the
number of the lane (base + 4·lane; u is a scalar that the code computes, lane%16
and lane/16 count within and between groups of 16 lanes), or varies (a vector).
Memory: one place for all lanes is a broadcast or a single store; rows are
contiguous, for some lanes each, or permuted between memory and the lanes;
gathers, scatters and accesses lane by lane are slow.  Control: lanes stay
together, or may part and meet again; a warp that is "together, else masked"
goes on in the masked version if its lanes part; CTAs of a large launch run a
loop in step if it strides by the size of the grid; what is masked has no shapes
here."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """An instruction, the shapes of its results, and a note on its access or branch."""

    line: int
    text: str
    value: str
    note: str


def shapes(kernel: KernelContext) -> str:
    """The table of a kernel that has been translated."""
    noted = list(_noted(kernel))
    rows = [TableRow(bound.line, bound.text, value, note) for bound, value, note in noted]
    slow = list(causes(kernel, noted))
    widths = [max([len(HEADINGS[n]), *(len(cells(row)[n]) for row in rows)]) for n in range(3)]
    lines = [_line(HEADINGS, widths), _line(["─" * w for w in (*widths, len(HEADINGS[3]))], widths)]
    lines += [_line(cells(row), widths) for row in rows]
    return "\n".join([title(kernel), "", *lines, "", *(["Slow:", *slow, ""] if slow else []), LEGEND])


def title(kernel: KernelContext) -> str:
    """Which version this is."""
    x, y, z = kernel.rows.block
    block = " × ".join(str(n) for n in (x, y, z) if n > 1) or "1"
    padded = f", rows padded to {kernel.rows.lanes[0]} lanes" if kernel.rows.padded else ""
    if not kernel.straight:
        how = "lanes may part anywhere, one warp at a time with masks"
    elif kernel.width == WARP:
        how = "whole warps, one at a time"
    else:
        how = f"whole warps, {kernel.width // WARP} abreast"
    size = f"CTAs of {block} threads{padded}; a vector has {kernel.width} lanes"
    return f"{kernel.function.name}: {how}\n{size}\nat most {most_registers(kernel)} vector registers live"


def cells(row: TableRow) -> tuple[str, str, str, str]:
    """The cells of a row as they are printed."""
    text = row.text if len(row.text) <= WIDEST else row.text[: WIDEST - 1] + "…"
    return str(row.line) if row.line else "", text, row.value, row.note


def _line(words: tuple[str, ...] | list[str], widths: list[int]) -> str:
    line, text, value, note = words
    return f"{line:>{widths[0]}}  {text:<{widths[1]}}  {value:<{widths[2]}}  {note}".rstrip()


def _noted(kernel: KernelContext) -> Iterator[tuple[Bound, str, str]]:
    """Each instruction with the shapes of its results and a note on its access or branch.

    Where this version ends, and behind it, there are no shapes: the masked version runs what is left.
    """
    reached = _reached(kernel)
    for node in kernel.nodes:
        if node.number in kernel.endings or node.number not in reached:
            ends = node.number in kernel.endings and node.number in reached
            yield from ((bound, "", ENDS if ends and not n else BEHIND) for n, bound in enumerate(node.code) if not node.waits)
            continue
        found = kernel.written.get((node.number, True)) or kernel.written.get((node.number, False))
        if found is None:
            continue
        for position, bound in enumerate(node.code):
            if node.waits and not position:
                continue  # the barrier stands at the end of the node before
            values = dict.fromkeys(describe(value) for at, _, value in found.definitions if at == position)
            note = found.notes.get(position, "")
            last = position == len(node.code) - 1
            yield bound, ", ".join(values), note or (_leaving(kernel, node) if last else "")


def _reached(kernel: KernelContext) -> set[int]:
    """The numbers of the nodes that this version comes to."""
    work, reached = [0], set[int]()
    while work:
        number = work.pop()
        if number not in reached:
            reached.add(number)
            work += kernel.nodes[number].successors if number not in kernel.endings else ()
    return reached


def _leaving(kernel: KernelContext, node: Node) -> str:
    """Whether lanes stay together at the end of a node."""
    if len(set(node.successors)) < 2 and node.number not in kernel.parting:
        return ""
    in_step = IN_STEP if node.code and node.code[-1] in kernel.grid_strides else ""
    if node.number in kernel.parting:
        return PARTED + in_step
    return (MAY_PART if node.number in kernel.divergent else "together") + in_step


# ── values ──────────────────────────────────────────────────────────────────────────────


def describe(value: Value) -> str:
    """The shape of a value in a word or a formula."""
    return shape(value.type, value.raw)


def shape(type: Type, raw: Raw) -> str:
    """The same for a raw value."""
    if not isinstance(raw, Affine):
        return "constants" if raw.lanes is not None else "varies"
    if raw.constant is not None:
        return f"= {number(type, raw.constant)}"
    if not raw.terms:
        return "uniform"
    bits = type.bits
    parts = [] if raw.base == 0 else ["base" if isinstance(raw.base, str) else str(wrapped(raw.base, bits))]
    return " + ".join([*parts, *(_term(pattern, u, bits) for pattern, u in raw.terms)])


def number(type: Type, bits: int) -> str:
    """A constant as a number of its type."""
    if type.kind == "p":
        return "true" if bits & 1 else "false"
    if type.is_float and not type.is_packed and type.name in ("f32", "f64"):
        code, size = ("f", "I") if type.bits == 32 else ("d", "Q")
        return f"{struct.unpack(f'<{code}', struct.pack(f'<{size}', bits))[0]:.6g}"
    signed = wrapped(bits, type.bits)
    return str(signed) if abs(signed) < 1 << 20 else hex(bits)


def _term(pattern: Pattern, u: int | str, bits: int) -> str:
    lanes = _pattern(pattern)
    if isinstance(u, str):
        return f"u·{lanes}"
    factor = wrapped(u, bits)
    return lanes if factor == 1 else f"{factor}·{lanes}"


def _pattern(pattern: Pattern) -> str:
    """A vector of constants as a formula of the lane."""
    lanes = range(len(pattern))
    if pattern == tuple(lanes):
        return "lane"
    size = 2
    while size < len(pattern):
        if pattern == tuple(n % size for n in lanes):
            return f"lane%{size}"
        if pattern == tuple(n // size for n in lanes):
            return f"lane/{size}"
        size *= 2
    return "K[lane]"
