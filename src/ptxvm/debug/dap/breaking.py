"""Requests that set breakpoints.  Each replaces those that it has set before."""

from __future__ import annotations

from collections.abc import Callable

from ptxvm.algebra.types import Type
from ptxvm.debug.breakpoints import Breakpoint, hit_condition_of, line_of
from ptxvm.debug.dap.adapter import Adapter, handler
from ptxvm.debug.dap.fields import Arguments, Refused, an_object, needed, objects, text, texts, whole
from ptxvm.debug.dap.ids import Json, bytes_of, data_identifier, data_of, instruction_at
from ptxvm.debug.dap.sources import source_name
from ptxvm.debug.expressions import parse
from ptxvm.debug.focus import NotThere
from ptxvm.debug.values import MemoryPlace, NoValue

ACCESSES = {"read": "read", "write": "write", "readWrite": "access"}


def replaced(adapter: Adapter, owner: str, wanted: list[Arguments], make: Callable[[Arguments], Breakpoint]) -> list[Json]:
    """The breakpoints of an owner, anew: each with its number, or what is wrong with it."""
    adapter.forget(owner)
    found: list[Json] = []
    for each in wanted:
        try:
            hits = hit_condition_of(text(each, "hitCondition", ""))
            made = make(each)
            made.hit_condition = hits
        except (NotThere, NoValue, Refused) as wrong:
            found.append({"verified": False, "message": str(wrong)})
            continue
        adapter.owned.setdefault(owner, []).append(made.number)
        found.append({"id": made.number} | adapter.placed(made))
    return found


def break_at(adapter: Adapter, place: str, each: Arguments) -> Breakpoint:
    """A breakpoint of a request, or a logpoint; one of a program waits for a launch that has the place."""
    held = adapter.held
    return adapter.breakpoints.break_at(
        place, held.here if held is not None else None, text(each, "condition", ""), message=text(each, "logMessage", ""),
        waits=adapter.program is not None,
    )  # fmt: skip


@handler("setBreakpoints")
def set_breakpoints(adapter: Adapter, arguments: Arguments) -> Json:
    """Breakpoints at lines of the PTX, or of a source that .loc names."""
    name = source_name(adapter, an_object(needed(arguments, "source"), "'source'"))

    _ = adapter.breakpoints

    def make(each: Arguments) -> Breakpoint:
        return break_at(adapter, f"{name}:{max(whole(each, 'line'), 0)}", each)

    return {"breakpoints": replaced(adapter, f"source {name}", objects(arguments, "breakpoints"), make)}


@handler("setFunctionBreakpoints")
def set_function_breakpoints(adapter: Adapter, arguments: Arguments) -> Json:
    """Breakpoints at the beginning of functions; a name may also be what `break` takes, as `opcode ld.global*`."""

    def make(each: Arguments) -> Breakpoint:
        return break_at(adapter, text(each, "name"), each)

    return {"breakpoints": replaced(adapter, "function", objects(arguments, "breakpoints"), make)}


@handler("setInstructionBreakpoints")
def set_instruction_breakpoints(adapter: Adapter, arguments: Arguments) -> Json:
    """Breakpoints at instructions of the disassembly."""

    def make(each: Arguments) -> Breakpoint:
        number, index = instruction_at(text(each, "instructionReference"), whole(each, "offset", 0))
        routines = adapter.session.code.routines
        if not 0 <= number < len(routines) or index >= routines[number].end:
            raise Refused("there is no instruction")
        name = routines[number].function.name
        return break_at(adapter, f"*{name}+{index}", each)

    return {"breakpoints": replaced(adapter, "instruction", objects(arguments, "breakpoints"), make)}


@handler("dataBreakpointInfo")
def data_breakpoint_info(adapter: Adapter, arguments: Arguments) -> Json:
    """Can what a variable, an expression or an address names be watched?  If not, the description says why."""
    try:
        return watchable_data(adapter, arguments)
    except (NotThere, NoValue) as wrong:
        return {"dataId": None, "description": str(wrong)}


def watchable_data(adapter: Adapter, arguments: Arguments) -> Json:
    """The answer for what can be watched; NotThere and NoValue say why something cannot."""
    name = text(arguments, "name")
    if arguments.get("asAddress"):
        wanted = bytes_of(name, size=whole(arguments, "bytes", 1))
        if not 0 < wanted.size == len(adapter.session.read_bytes(wanted)):
            raise NotThere(f"there are no {wanted.size} bytes at {name}")
        return watchable(data_identifier(wanted, parse_type(wanted.size), name), name)
    if arguments.get("variablesReference"):
        children = adapter.handles.get(whole(arguments, "variablesReference"))
        children.look()
        name = children.place(name)
    else:
        adapter.look_at_frame(arguments)
    view = adapter.session.view()
    place = parse(name).place(view)
    if not isinstance(place, MemoryPlace):
        return {"dataId": None, "description": f"{name} is not in memory"}
    size = place.type.bytes * (place.count if place.dimensions else 1)
    return watchable(data_identifier(adapter.session.bytes_at(view, place, size), place.type, name), name)


def parse_type(size: int) -> Type:
    """The type of so many bytes without one."""
    return Type.named[f"b{8 * size}"] if size in (1, 2, 4, 8) else Type.named["b8"]


def watchable(identifier: str, name: str) -> Json:
    """The answer for what can be watched."""
    return {"dataId": identifier, "description": name, "accessTypes": list(ACCESSES), "canPersist": False}


@handler("setDataBreakpoints")
def set_data_breakpoints(adapter: Adapter, arguments: Arguments) -> Json:
    """Watchpoints."""

    def make(each: Arguments) -> Breakpoint:
        wanted, type, name = data_of(text(each, "dataId"))
        access = text(each, "accessType", "write")
        if access not in ACCESSES:
            raise Refused(f"there is no access type '{access}': there are {', '.join(ACCESSES)}")
        return adapter.session.watch_bytes(wanted, type, name, ACCESSES[access], text(each, "condition", ""))

    return {"breakpoints": replaced(adapter, "data", objects(arguments, "breakpoints"), make)}


@handler("setExceptionBreakpoints")
def set_exception_breakpoints(adapter: Adapter, arguments: Arguments) -> Json:
    """What stops the run when it is found: faults, the first NaN."""
    filters = [(name, "") for name in texts(arguments, "filters")]
    filters += [(text(each, "filterId"), text(each, "condition", "")) for each in objects(arguments, "filterOptions")]
    return {"breakpoints": adapter.catch(filters)}


@handler("breakpointLocations")
def breakpoint_locations(adapter: Adapter, arguments: Arguments) -> Json:
    """The lines of a source that have instructions."""
    name = source_name(adapter, an_object(needed(arguments, "source"), "'source'"))
    first, session = whole(arguments, "line"), adapter.session
    last = whole(arguments, "endLine", first)
    lines = {
        line_of(routine, index, name, session.kernel_routine)
        for routine in session.code.routines for index in range(routine.end)
    }  # fmt: skip
    return {"breakpoints": [{"line": line} for line in sorted(n for n in lines if n is not None) if first <= line <= last]}


__all__: list[str] = []
