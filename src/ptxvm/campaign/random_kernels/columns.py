"""Columns: an array in which each thread has a column of its own, so that rows are contiguous over the threads.

It is what coalesced kernels access.  Rows have cells of 16, 8, 4, 2 and 1 bytes.  Which column a thread has is a permutation
of the threads of the grid: as they stand, backwards, or one that mixes lanes, warps or CTAs.
"""

from __future__ import annotations

import numpy as np

from ptxvm.campaign.random_kernels import strategies as st
from ptxvm.campaign.random_kernels.memory import CELLS, letters_of, misplaced, size_of
from ptxvm.campaign.random_kernels.parts import GUARD, REGISTERS, D, F, P, R, Statement
from ptxvm.machine.per_lane import Array

CELL_SIZES = (16, 8, 4, 2, 1)  # bytes, in the order in which the array has their rows
ROWS = 4  # of each size
COLUMN = ROWS * sum(CELL_SIZES)  # bytes of a thread
PERMUTATIONS = [
    "mov.u32 %column, %n5;",
    "mov.u32 %column, %n5;",
    "sub.u32 %column, %total, 1;\nsub.u32 %column, %column, %n5;",
    "add.u32 %column, %n5, 7;\nrem.u32 %column, %column, %total;",
    "xor.b32 %column, %n5, 1;\nsetp.ge.u32 %q1, %column, %total;\n@%q1 mov.u32 %column, %n5;",
    """mov.u32 %t0, %ntid.y;
    mad.lo.u32 %column, %n0, %t0, %n1;
    mov.u32 %t0, %ntid.z;
    mad.lo.u32 %column, %column, %t0, %n2;
    sub.u32 %t0, %n5, %thread;
    add.u32 %column, %column, %t0;""",
]
"""The columns of threads."""
INDICES = ["{few}", "%xj@n", "%xj@n", "0"]
"""The row that is accessed, or the first of several."""
LIMITS = ["mov.u32 %xj@n, %few;", "mov.u32 %xj@n, %ctaid.x;", "mov.u32 %xj@n, {r};", "shr.u32 %xj@n, %thread, 5;"]
USES = [
    *[""] * 4, "add.u32 {r}, {r}, {r};", "fma.rn.f32 {f}, {f}, {f}, {f};", "add.s64 {d}, {d}, {d};", "max.s32 {r}, {r}, {r};",
    "setp.lt.s32 {p}, {r}, {r};", "setp.gt.f32 {p}, {f}, {f};", "xor.b32 {r}, {r}, {r};",
]  # fmt: skip


def column_registers(permutation: str) -> list[str]:
    """The lines that compute which column a thread has."""
    return [f"    {line.strip()}" for line in permutation.splitlines()]


def by_column(array: Array, threads: int) -> Array:
    """The array with a row for each column."""
    found, at = [], 0
    for size in CELL_SIZES:
        cells = array[at : at + ROWS * threads * size].reshape(ROWS, threads, size)
        found.append(cells.transpose(1, 0, 2).reshape(threads, -1))
        at += cells.size
    return np.concatenate(found, axis=1)


@st.composite
def cell_access(draw: st.Draw, cell: int, where: str, *, stray: bool) -> list[str]:
    """A load or a store of a cell, or of a part of it."""
    type = draw(st.sampled_from([each for each in CELLS if size_of(each) <= cell]))
    stores = draw(st.booleans())
    size, letter = size_of(type), draw(st.sampled_from(letters_of(type, store=stores)))
    counts = [n for n in (1, 2, 4) if n * size <= cell and n <= REGISTERS[letter][1]]
    count = draw(st.sampled_from([*counts, counts[-1]]))
    at = size * count * draw(st.integers(0, cell // (size * count) - 1))
    names = [f"%{letter}{n}" for n in draw(st.samples(range(REGISTERS[letter][1]), count))]
    group = f"{{{', '.join(names)}}}" if count > 1 else names[0]
    modifiers = f"{draw(st.sampled_from(['.global', '.global', '']))}{f'.v{count}' * (count > 1)}.{type}"
    lines = [f"mov.b64 %t1, {where};", draw(misplaced("%t1", size * count))] if stray else []
    place = f"[{'%t1' if stray else where}+{at}]"
    access = f"st{modifiers} {place}, {group};" if stores else f"ld{modifiers} {group}, {place};"
    return [*lines, f"{draw(GUARD)}{access}"]


@st.composite
def column(draw: st.Draw, *, stray: bool) -> Statement:
    """Accesses of a cell of the thread's column, or of one cell after the other in a loop."""
    cell = draw(st.sampled_from(CELL_SIZES))
    begin = ROWS * sum(each for each in CELL_SIZES if each > cell)
    few, index = draw(st.integers(0, ROWS - 1)), draw(st.sampled_from(INDICES))
    lines = [draw(st.sampled_from(LIMITS)).format(r=draw(R)), f"and.b32 %xj@n, %xj@n, {ROWS - 1};"] * index.startswith("%")
    lines += [f"mov.u32 %xi@n, {index.format(few=few)};", "mad.lo.u32 %xi@n, %xi@n, %total, %column;"]
    lines += [f"mad.wide.u32 %ya@n, %total, {begin}, %columns;", f"mad.wide.u32 %ya@n, %xi@n, {cell}, %ya@n;"]
    body = list[str]()
    for _ in range(draw(st.integers(1, 4))):
        body += draw(cell_access(cell, "%ya@n", stray=stray))
        body += [draw(st.sampled_from(USES)).format(r=draw(R), d=draw(D), f=draw(F), p=draw(P))]
    if draw(st.booleans()):
        return Statement("\n".join([*lines, *body]))
    count = "%few" if index == "0" and draw(st.booleans()) else str(draw(st.integers(1, ROWS - few)) if index == "{few}" else 1)
    lines += [f"mul.wide.u32 %yb@n, %total, {cell};", f"mov.u32 %xk@n, {count};", f"min.u32 %xk@n, %xk@n, {ROWS};"]
    lines += ["setp.eq.u32 %za@n, %xk@n, 0;\n@%za@n bra END@n;", "LOOP@n:", *body, "add.s64 %ya@n, %ya@n, %yb@n;"]
    lines += ["sub.u32 %xk@n, %xk@n, 1;\nsetp.ne.u32 %za@n, %xk@n, 0;\n@%za@n bra LOOP@n;", "END@n:"]
    return Statement("\n".join(lines), turns=ROWS)


__all__ = ["COLUMN", "PERMUTATIONS", "by_column", "column", "column_registers"]
