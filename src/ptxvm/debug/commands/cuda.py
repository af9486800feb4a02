"""Commands for the focus, and what `info cuda` lists, in cuda-gdb's words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from ptxvm.debug import inspection
from ptxvm.debug.commands.command import GAP, BadCommand, Debugger, Line, command
from ptxvm.debug.commands.data import registers_called
from ptxvm.debug.commands.running import COORDINATES, named_focus, none, ones
from ptxvm.debug.focus import coordinates, shown
from ptxvm.debug.inspection import WarpView
from ptxvm.diagnostics.kernel_names import displayed
from ptxvm.isa.special_registers import WARP

GROUP = "Threads"
LANE = 2
"""The columns of the table of lanes that say which lane it is: the mark of the focus, and the number."""
COORDINATE = re.compile(r"\([^)]*\)?|[^\s,(]+")
"""A word, or a place in brackets; commas between them may stand, as cuda-gdb prints them."""


@command("cuda", usage="[kernel K] [block B] [thread T] [warp W] [lane L]", group=GROUP)
def cuda(debugger: Debugger, text: str) -> Iterator[Line]:
    """Let another thread have the focus: `cuda block 1 thread (3,0,0)`, `cuda warp 2 lane 5`; without one, name it.

    `cuda kernel block thread` names these coordinates alone.  Of kernels and grids there is the one that runs, as `info cuda
    kernels` has it; of devices and SMs there is number 0.
    """
    words = COORDINATE.findall(text)
    if all(word in COORDINATES for word in words):
        found = inspection.focus_coordinates(debugger.session) | ones(debugger)
        yield Line(inspection.named({name: found[name] for name in words}) or inspection.focus_text(debugger.session))
        return
    yield from focused(debugger, words)


def focused(debugger: Debugger, words: list[str]) -> Iterator[Line]:
    """Give another thread the focus."""
    if len(words) % 2:
        raise BadCommand(f"the number of the {words[-1]} is missing")
    debugger.session.focus_on(named_focus(debugger, words))
    yield from debugger.tell_focus()
    yield from debugger.where()


@command("thread", usage="(X,Y,Z)", group=GROUP)
def thread(debugger: Debugger, text: str) -> Iterator[Line]:
    """Let another thread of the block have the focus."""
    yield from focused(debugger, ["thread", text])


@command("block", usage="(X,Y,Z)", group=GROUP)
def block(debugger: Debugger, text: str) -> Iterator[Line]:
    """Let the first thread of another block have the focus."""
    yield from focused(debugger, ["block", text])


@command("warp", usage="NUMBER", group=GROUP)
def warp(debugger: Debugger, text: str) -> Iterator[Line]:
    """Let the first lane of another warp of the block have the focus."""
    yield from focused(debugger, ["warp", text])


@command("lane", usage="NUMBER", group=GROUP)
def lane(debugger: Debugger, text: str) -> Iterator[Line]:
    """Let another lane of the warp have the focus."""
    yield from focused(debugger, ["lane", text])


@command("info cuda devices", group=GROUP)
def devices(debugger: Debugger, text: str) -> Iterator[Line]:
    """List the devices: the virtual machine is one."""
    none(text)
    program = debugger.session.kernel.program
    target = str(program.target) if program is not None else ""
    yield from debugger.table(("Dev", "Description", "SM Type", "Lanes/Warp"), [("*", "0", "ptxvm", target, str(WARP))])


@command("info cuda kernels", group=GROUP)
def kernels(debugger: Debugger, text: str) -> Iterator[Line]:
    """List the kernels that run: the one that is debugged, those that it launched, and those that wait for them."""
    none(text)
    session = debugger.session
    status = "Not started"
    if session.is_running:
        status = "Active" if session.execution.grid.running else "Ended"
    rows, parent = [], "-"
    for number, kernel, shape in session.launches:
        mark, name = "*" if number == session.launch[0] else " ", displayed(kernel.name)
        rows.append((mark, str(number), parent, "0", str(number + 1), status, shown(shape.grid), shown(shape.block), name))
        parent = str(number)
    yield from debugger.table(("Kernel", "Parent", "Dev", "Grid", "Status", "GridDim", "BlockDim", "Invocation"), rows)


@command("info cuda blocks", group=GROUP)
def blocks(debugger: Debugger, text: str) -> Iterator[Line]:
    """List the blocks that have begun and not ended, in runs."""
    none(text)
    session = debugger.session
    live = [cta for cta, views in groupby(inspection.warps(session), key=lambda each: each.cta) if any(v.mask for v in views)]
    if not live:
        raise BadCommand("no block runs")
    rows = []
    for _, run in groupby(enumerate(sorted(live)), key=lambda each: each[1] - each[0]):
        ctas = [cta for _, cta in run]
        mark = "*" if session.execution.focus.cta in ctas else " "
        first, last = (shown(session.shape.ctaid(cta)) for cta in (ctas[0], ctas[-1]))
        rows.append((mark, first, last, str(len(ctas)), "running"))
    yield from debugger.table(("BlockIdx", "To BlockIdx", "Count", "State"), rows)


@command("info cuda warps", group=GROUP)
def warps(debugger: Debugger, text: str) -> Iterator[Line]:
    """List the warps of the block in focus: the lanes of the group that runs next, those at other places, and the line."""
    none(text)
    focus, rows = debugger.session.execution.focus, []
    for each in inspection.warps(debugger.session, focus.cta):
        mark = "*" if each.warp == focus.warp else " "
        first = each.groups[0] if each.groups else None
        active = first.mask if first is not None else 0
        line = str(first.line) if first is not None else "-"
        rows.append((mark, str(each.warp), f"0x{active:08x}", f"0x{each.mask & ~active:08x}", line, shown(each.block)))
    if not rows:
        raise BadCommand("the block in focus does not run")
    yield from debugger.table(("Wp", "Active Lanes Mask", "Divergent Lanes Mask", "Line", "BlockIdx"), rows)


@command("info cuda lanes", usage="[EXPRESSION...]", group=GROUP)
def lanes(debugger: Debugger, text: str) -> Iterator[Line]:
    """The warp in focus as a table: for each lane its thread, what it does, its line, and the values of EXPRESSIONs.

    `info cuda lanes %r1 %f2 %p1`, `info cuda lanes %r*`, which is all registers that begin so; above the table stand the
    groups of lanes that are at one place, with their masks.  What a terminal is too narrow for stands in a table below.
    """
    session = debugger.session
    names = [name for word in text.split() for name in matching(debugger, word)]
    views = inspection.warp_lanes(session, names)
    if not views:
        raise BadCommand("the block in focus does not run")
    for column, name in enumerate(names):
        if not any(each.values and each.values[column] for each in views):
            session.value(name)  # it says why the expression has no value
    focus = session.execution.focus
    view = next(each for each in inspection.warps(session, focus.cta) if each.warp == focus.warp)
    yield from groups(view)
    rows = [
        ("*" if each.lane == focus.lane else " ", str(each.lane), each.status, shown(each.thread), str(each.line or "-"),
         *(each.values or ("",) * len(names))) for each in views
    ]  # fmt: skip
    headings = (" ", "Ln", "State", "ThreadIdx", "Line", *names)
    for part in fitting([max(map(len, column)) for column in zip(headings, *rows, strict=True)], debugger.columns):
        yield from debugger.table([headings[n] for n in part], [[row[n] for n in part] for row in rows])


def matching(debugger: Debugger, word: str) -> list[str]:
    """The registers that `%r*` stands for; else the expression itself."""
    return [each.name for each in registers_called(debugger.session, word)] if word.endswith("*") else [word]


def fitting(widths: Sequence[int], columns: int | None) -> list[list[int]]:
    """The numbers of columns of these widths, in parts that fit a terminal: the mark and the lane are in each."""
    parts = [list(range(LANE))]
    for n, width in enumerate(widths[LANE:], LANE):
        used = sum(widths[each] + len(GAP) for each in parts[-1])
        if columns is not None and used + width > columns and len(parts[-1]) > LANE:
            parts.append(list(range(LANE)))
        parts[-1].append(n)
    return parts


def groups(view: WarpView) -> Iterator[Line]:
    """The groups of lanes of a warp: a mask, the line, the instruction."""
    yield Line(f"Warp {view.warp} of block {shown(view.block)}: {'diverged' if len(view.groups) > 1 else 'converged'}")
    for each in view.groups:
        waits = "" if each.status == "active" else f"  ({each.status})"
        yield Line(f"  0x{each.mask:08x}  {each.line}  {each.text}{waits}")


@command("info cuda threads", group=GROUP)
def threads(debugger: Debugger, text: str) -> Iterator[Line]:
    """List the threads of all blocks that run, in runs that are at one line."""
    none(text)
    session = debugger.session
    focus, rows = session.execution.focus, []
    for first, last, count, line, text_ in inspection.thread_runs(session):
        here = first <= (focus.cta, focus.thread) <= last
        ends = ((session.shape.ctaid(cta), coordinates(number, session.shape.block)) for cta, number in (first, last))
        cells = [shown(each) for end in ends for each in end]
        rows.append(("*" if here else " ", *cells, str(count), str(line), text_))
    yield from debugger.table(("BlockIdx", "ThreadIdx", "To BlockIdx", "To ThreadIdx", "Count", "Line", "Instruction"), rows)


@command("info cuda barriers", group=GROUP)
def barriers(debugger: Debugger, text: str) -> Iterator[Line]:
    """List the barriers at which threads have arrived: how many have, and how many must; of clusters by their first block.

    Then the mbarriers in shared memory: the parity of the phase, its arrivals, and the announced bytes that have not come.
    """
    none(text)
    found, made = inspection.barriers(debugger.session), list(inspection.mbarriers(debugger.session))
    if not found and not made:
        raise BadCommand("no thread waits at a barrier, and there is no mbarrier")
    focus = debugger.session.shape.ctaid(debugger.session.execution.focus.cta)
    rows = [
        ("*" if each.block == focus else " ", shown(each.block), "cluster" if each.number is None else str(each.number),
         str(each.arrived), str(each.expected)) for each in found
    ]  # fmt: skip
    if rows:
        yield from debugger.table(("BlockIdx", "Barrier", "Arrived", "Expected"), rows)
    lines = [
        ("*" if each.block == focus else " ", shown(each.block), f"{each.address:#x}", str(each.phase), str(each.arrived),
         str(each.expected), str(each.bytes)) for each in made
    ]  # fmt: skip
    if lines:
        yield from debugger.table(("BlockIdx", "Mbarrier", "Phase", "Arrived", "Expected", "Bytes"), lines)


__all__: list[str] = []
