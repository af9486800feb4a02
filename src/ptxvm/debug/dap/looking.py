"""Requests that look: threads, stacks, variables, expressions, memory and code; and those that change values."""

from __future__ import annotations

import base64
from itertools import chain, islice

from ptxvm.analysis.program import Bound
from ptxvm.debug import inspection
from ptxvm.debug.commands.command import Style
from ptxvm.debug.dap.adapter import Adapter, handler
from ptxvm.debug.dap.fields import Arguments, Refused, text as text_in, whole
from ptxvm.debug.dap.ids import Json, Warp, bytes_of, frame_identifier, instruction_address, instruction_at
from ptxvm.debug.dap.sources import source_of
from ptxvm.debug.focus import NotThere, shown
from ptxvm.debug.stops import Reason
from ptxvm.debug.values import NoValue
from ptxvm.diagnostics.kernel_names import displayed

MOST_THREADS = 1024
MOST_BYTES = 1 << 24
MOST_INSTRUCTIONS = 1 << 16
PAGE = 1024  # elements that are made where none are asked for by number


@handler("threads")
def threads(adapter: Adapter, arguments: Arguments) -> Json:  # noqa: ARG001 - a Handler
    """The warps of the blocks that run, those of the block in focus first."""
    session = adapter.held
    if session is None or not session.is_running:
        return {"threads": []}
    cta = session.execution.focus.cta
    others = (each for each in inspection.warps(session) if each.cta != cta)
    found: dict[int, str] = {}
    for each in islice(chain(inspection.warps(session, cta), others), MOST_THREADS):
        if each.mask:
            found[Warp(each.cta, each.warp).identifier(adapter.warps)] = f"block {shown(each.block)} warp {each.warp}"
    if adapter.thread not in found:  # that of the last stop, which may be over
        focus = session.execution.focus
        found[adapter.thread] = f"block {shown(session.shape.ctaid(focus.cta))} warp {focus.warp} (ended)"
    return {"threads": [{"id": number, "name": name} for number, name in found.items()]}


@handler("stackTrace")
def stack_trace(adapter: Adapter, arguments: Arguments) -> Json:
    """The functions that a lane of a warp is in."""
    thread, session = whole(arguments, "threadId"), adapter.session
    try:
        adapter.look(thread)
    except NotThere:
        return {"stackFrames": [], "totalFrames": 0}
    places, schedule = session.execution.places(), session.execution.schedule
    frames = places.stack(session.execution.lane(schedule)) if places is not None and schedule is not None else []
    first = max(whole(arguments, "startFrame", 0), 0)
    last = first + (max(whole(arguments, "levels", 0), 0) or len(frames))
    lane = session.execution.focus.lane
    found = []
    for level, frame in list(enumerate(frames))[first:last]:
        made: Json = {
            "id": frame_identifier(thread, level),
            "name": f"{displayed(frame.routine.function.name)} [lane {lane}]",
            "column": 1,
        }
        source = source_of(adapter, frame.bound, frame.location)
        made |= {"line": 0} if source is None else {"source": source[0], "line": source[1]}
        made["instructionPointerReference"] = instruction_address(frame.routine.number, frame.index)
        found.append(made)
    return {"stackFrames": found, "totalFrames": len(frames)}


@handler("scopes")
def scopes(adapter: Adapter, arguments: Arguments) -> Json:
    """The scopes of a frame."""
    adapter.look_at_frame(arguments)
    return {"scopes": list(adapter.variables.scopes())}


@handler("variables")
def variables(adapter: Adapter, arguments: Arguments) -> Json:
    """The variables within something, or a page of them."""
    children = adapter.handles.get(whole(arguments, "variablesReference"))
    start, count = max(whole(arguments, "start", 0), 0), max(whole(arguments, "count", 0), 0) or PAGE
    return {"variables": list(children.make(start, count))}


@handler("setVariable")
def set_variable(adapter: Adapter, arguments: Arguments) -> Json:
    """Change a variable."""
    children = adapter.handles.get(whole(arguments, "variablesReference"))
    children.look()
    return changed(adapter, children.place(text_in(arguments, "name")), text_in(arguments, "value"))


@handler("setExpression")
def set_expression(adapter: Adapter, arguments: Arguments) -> Json:
    """Change what an expression names."""
    adapter.look_at_frame(arguments)
    return changed(adapter, text_in(arguments, "expression"), text_in(arguments, "value"))


def changed(adapter: Adapter, target: str, value: str) -> Json:
    """Change a register or memory; its new value."""
    new = adapter.session.assign(target, value)
    return {"value": inspection.text_of(new), "type": f".{new.type.name}"}


@handler("evaluate")
def evaluate(adapter: Adapter, arguments: Arguments) -> Json:
    """The value of an expression; in the console also what a command says."""
    adapter.look_at_frame(arguments)
    text, session = text_in(arguments, "expression"), adapter.session
    try:
        made = adapter.variables.contents(text, session.value(text))
    except NoValue:
        if arguments.get("context") != "repl":
            raise
        return carried_out(adapter, text)
    return {"result": made.pop("value"), **made}


def carried_out(adapter: Adapter, text: str) -> Json:
    """What a command of the debugger says; where it runs the kernel, the stop is told after it."""
    console = adapter.console()
    before = adapter.session.stop
    lines = list(console.execute(text))
    if console.failed:
        raise Refused("\n".join(each.text for each in lines if each.style is Style.ERROR))
    stop = adapter.session.stop
    if stop is not None and stop is not before:
        adapter.handles.clear()
        adapter.after.append(lambda: adapter.stopped(stop))
    return {"result": "\n".join(each.text.expandtabs(4) for each in lines), "variablesReference": 0}


@handler("completions")
def completions(adapter: Adapter, arguments: Arguments) -> Json:
    """What a line of the console may become."""
    text = text_in(arguments, "text")[: max(whole(arguments, "column") - 1, 0)]
    found = adapter.console().complete(text)
    return {"targets": [{"label": each, "start": 0, "length": len(text)} for each in found]}


@handler("exceptionInfo")
def exception_info(adapter: Adapter, arguments: Arguments) -> Json:  # noqa: ARG001 - a Handler
    """The fault, or what was caught."""
    stop = adapter.session.stop
    if stop is None or stop.reason not in (Reason.FAULT, Reason.CATCHPOINT):
        raise Refused("the run has not stopped for a finding")
    name = stop.fault.kind if stop.fault is not None else stop.finding
    return {"exceptionId": name, "description": stop.message, "breakMode": "always"}


# ── memory ──────────────────────────────────────────────────────────────────────────────


@handler("readMemory")
def read_memory(adapter: Adapter, arguments: Arguments) -> Json:
    """Bytes of memory."""
    count = whole(arguments, "count")
    if not 0 <= count <= MOST_BYTES:
        raise Refused(f"up to {MOST_BYTES} bytes are read at once")
    wanted = bytes_of(text_in(arguments, "memoryReference"), whole(arguments, "offset", 0), count)
    found = adapter.session.read_bytes(wanted)
    made: Json = {"address": f"{wanted.start & (1 << 64) - 1:#x}", "data": base64.b64encode(found).decode()}
    return made | ({"unreadableBytes": count - len(found)} if len(found) < count else {})


@handler("writeMemory")
def write_memory(adapter: Adapter, arguments: Arguments) -> Json:
    """Change bytes of memory."""
    written = text_in(arguments, "data")
    try:
        data = base64.b64decode(written, validate=True)
    except ValueError as wrong:
        raise Refused(f"the data are no base64: {wrong}") from None
    wanted = bytes_of(text_in(arguments, "memoryReference"), whole(arguments, "offset", 0), len(data))
    there = len(adapter.session.read_bytes(wanted))
    if there < len(data) and not arguments.get("allowPartial"):
        raise Refused(f"{there} of {len(data)} bytes can be written")
    return {"bytesWritten": adapter.session.write_bytes(wanted, data)}


# ── code ────────────────────────────────────────────────────────────────────────────────


@handler("disassemble")
def disassemble(adapter: Adapter, arguments: Arguments) -> Json:
    """Instructions around an address: those of its function, and beyond them instructions that are none."""
    count = whole(arguments, "instructionCount")
    if not 0 <= count <= MOST_INSTRUCTIONS:
        raise Refused(f"up to {MOST_INSTRUCTIONS} instructions are shown at once")
    number, index = instruction_at(text_in(arguments, "memoryReference"), whole(arguments, "offset", 0))
    routines = adapter.session.code.routines
    if not 0 <= number < len(routines):
        raise Refused("there is no function at that address")
    first = index + whole(arguments, "instructionOffset", 0)
    code = routines[number].function.instructions
    found = []
    for at in range(first, first + count):
        if 0 <= at < len(code):
            found.append(instruction(adapter, number, at, code[at]))
        else:
            found.append({"address": instruction_address(number, at), "instruction": "", "presentationHint": "invalid"})
    return {"instructions": found}


def instruction(adapter: Adapter, number: int, index: int, bound: Bound) -> Json:
    """An instruction of the disassembly."""
    made: Json = {"address": instruction_address(number, index), "instruction": bound.text}
    made |= {"symbol": bound.function.name} if not index and bound.function is not None else {}
    source = source_of(adapter, bound, bound.location)
    return made if source is None else made | {"location": source[0], "line": source[1]}


__all__: list[str] = []
