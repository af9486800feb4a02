"""Cases as text: kernels of some instructions with the same operands, each with its runs."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from random import Random

from one_instruction import Case, bits, read

from conformance_files.operands import HARD, RECORDED, Unsaid, draw
from conformance_files.silicon import edges
from conformance_files.variables import declarations

ROOM = 64  # bytes of results of one kernel
TOGETHER = 8  # instructions of one kernel


def text(head: str, source: str, cases: list[Case], rows: int) -> str:
    """A file: kernels of some instructions with the same operands, each with its runs."""
    parts = []
    for n, group in enumerate(groups(cases)):
        runs = [f"//: run {call}  // {source}\n" for call in calls(f"k{n}", group, rows)]
        parts.append("".join(runs) + kernel(f"k{n}", group))
    said = "\n".join(parts)
    return f"// Written by tools/conformance.py from {source}.\n{head}{declarations(said)}\n{said}"


def groups(cases: Iterable[Case]) -> Iterator[list[Case]]:
    """Instructions with the same operands, some at a time."""
    by_operands: dict[str, list[Case]] = {}
    for case in cases:
        by_operands.setdefault(case.operands, []).append(case)
    for same in by_operands.values():
        group: list[Case] = []
        for case in same:
            if len(group) == TOGETHER or size([*group, case]) > ROOM:
                yield group
                group = []
            group.append(case)
        yield group


def size(group: list[Case]) -> int:
    """How many bytes the results take."""
    type, at = places(group)[-1]
    return at + bits(type) // 8


def places(group: list[Case]) -> list[tuple[str, int]]:
    """The type and the offset of every result."""
    found, at = [], 0
    for type in " ".join(case.results for case in group).split():
        width = bits(type) // 8
        at = -(-at // width) * width
        found.append((type, at))
        at += width
    return found


def kernel(name: str, group: list[Case]) -> str:
    """Load the operands, run the instructions, store the results."""
    operands = dict(zip("abcf", group[0].operands.split(), strict=False))
    registers, loads = [".reg .b64 %out;", ".reg .b16 %t;"], ["ld.param.u64 %out, [out];"]
    for n, t in operands.items():
        held = "b16" if t == "pred" else f"b{bits(t)}"
        registers.append(f".reg .{held} %{n};")
        loads.append(f"ld.param.{held} %{n}, [{n}];")
        if t == "pred":
            registers.append(f".reg .pred %q{n};")
            loads.append(f"setp.ne.s16 %q{n}, %{n}, 0;")
    body, offsets = [], iter(places(group))
    for k, case in enumerate(group):
        where = {n: f"%q{n}" if t == "pred" else f"%{n}" for n, t in operands.items()}
        stores = []
        for n, t in zip("de", case.results.split(), strict=False):
            where[n] = f"%{n}{k}"
            registers.append(f".reg .{'pred' if t == 'pred' else f'b{bits(t)}'} %{n}{k};")
            _, at = next(offsets)
            if t == "pred":
                stores.append(f"selp.b16 %t, 1, 0, %{n}{k}; st.global.u8 [%out+{at}], %t;")
            else:
                stores.append(f"st.global.b{bits(t)} [%out+{at}], %{n}{k};")
        body += [case.body.format(**where), *stores]
    parameters = [".param .u64 out", *(f".param .b{16 if t == 'pred' else bits(t)} {n}" for n, t in operands.items())]
    lines = [" ".join(registers), " ".join(loads), *body, "ret;"]
    return f".visible .entry {name}({', '.join(parameters)})\n{{\n" + "".join(f"    {line}\n" for line in lines) + "}\n"


def calls(name: str, group: list[Case], rows: int) -> Iterator[str]:
    """What runs give: `k0(1, 2) == (3, 4) : b32, b32`."""
    random = Random(zlib.crc32(" ".join(case.text for case in group).encode()))  # noqa: S311 - to be had again
    types = group[0].operands.split()
    results = [type for type, _ in places(group)]
    made, seen, hard = 0, set(), iter(edges() if types == [RECORDED] else HARD.get(group[0].operands, []))
    for attempt in range(40 * rows):
        row = next(hard, None) or tuple(draw(t, random) for t in types)
        if attempt == 4 and len(types) > 1 and types[0] == types[1]:
            row = (row[0], row[0], *row[2:])
        if row in seen:
            continue
        seen.add(row)
        try:
            values = [value for case in group for value in wanted(case, row)]
        except Unsaid:
            continue
        cut = [hex(v & (1 << bits(t)) - 1) for v, t in zip(values, results, strict=True)]
        said = ", ".join("u8" if t == "pred" else f"b{bits(t)}" for t in results)
        shape = "<<<1, 32>>>" if re.search("wmma|match|bar", group[0].text) else ""
        yield f"{name}{shape}({', '.join(map(hex, row))}) == ({', '.join(cut)}) : {said}"
        made += 1
        if made == rows:
            return


def wanted(case: Case, row: tuple[int, ...]) -> tuple[int, ...]:
    """The results by definition."""
    given = case.reference(*[read(x, t) for x, t in zip(row, case.operands.split(), strict=True)])
    values = given if isinstance(given, tuple) else (given,)
    return tuple(int(v) for v in values)
