"""Requests that set breakpoints.  Each replaces those that it has set before."""

from __future__ import annotations

from collections.abc import Callable

from ptxvm.algebra.types import Type
from ptxvm.debug.breakpoints import Breakpoint, CodeBreakpoint, line_of
from ptxvm.debug.dap.adapter import Adapter, Arguments, Refused, handler
from ptxvm.debug.dap.ids import Json, bytes_of, data_identifier, data_of, instruction_address, instruction_at
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
            ignore = hits_to_pass(each.get("hitCondition"))
            made = make(each)
            made.ignore = ignore
        except (NotThere, NoValue, Refused) as wrong:
            found.append({"verified": False, "message": str(wrong)})
            continue
        adapter.owned.setdefault(owner, []).append(made.number)
        found.append({"verified": True, "id": made.number} | placed(adapter, made))
    return found


def hits_to_pass(text: str | None) -> int:
    """How many warps pass before one stops: `3` is the third, and so is `>= 3`."""
    if not text:
        return 0
    try:
        return max(int(text.strip().removeprefix(">=").removeprefix("==").strip()) - 1, 0)
    except ValueError:
        raise Refused(f"a hit condition is a number, not '{text}'") from None


def placed(adapter: Adapter, made: Breakpoint) -> Json:
    """Where a breakpoint in the code is."""
    if not isinstance(made, CodeBreakpoint):
        return {}
    number, index = min(made.sites)
    line = line_of(adapter.session.code.routines[number], index, None, adapter.session.kernel_routine)
    reference = {"instructionReference": instruction_address(number, index)}
    return reference | ({"line": line} if line is not None else {})


@handler("setBreakpoints")
def set_breakpoints(adapter: Adapter, arguments: Arguments) -> Json:
    """Breakpoints at lines of the PTX, or of a source that .loc names."""
    name = source_name(adapter.session, arguments["source"])

    def make(each: Arguments) -> Breakpoint:
        return adapter.session.break_at(f"{name}:{int(each['line'])}", each.get("condition") or "")

    found = replaced(adapter, f"source {name}", list(arguments.get("breakpoints") or ()), make)
    for each, wanted in zip(found, arguments.get("breakpoints") or (), strict=True):
        if each["verified"]:
            each["line"] = shown_line(adapter, int(str(each["id"])), name, int(wanted["line"]))
    return {"breakpoints": found}


def shown_line(adapter: Adapter, number: int, name: str, wanted: int) -> int:
    """The line of a breakpoint in its file, which is below the wanted one where that has no instruction."""
    made = adapter.session.breakpoints.get(number)
    routine, index = min(made.sites) if isinstance(made, CodeBreakpoint) else (0, 0)
    line = line_of(adapter.session.code.routines[routine], index, name, adapter.session.kernel_routine)
    return wanted if line is None else line


@handler("setFunctionBreakpoints")
def set_function_breakpoints(adapter: Adapter, arguments: Arguments) -> Json:
    """Breakpoints at the beginning of functions; a name may also be what `break` takes, as `opcode ld.global*`."""

    def make(each: Arguments) -> Breakpoint:
        return adapter.session.break_at(str(each["name"]), each.get("condition") or "")

    return {"breakpoints": replaced(adapter, "function", list(arguments["breakpoints"]), make)}


@handler("setInstructionBreakpoints")
def set_instruction_breakpoints(adapter: Adapter, arguments: Arguments) -> Json:
    """Breakpoints at instructions of the disassembly."""

    def make(each: Arguments) -> Breakpoint:
        number, index = instruction_at(str(each["instructionReference"]), int(each.get("offset") or 0))
        routines = adapter.session.code.routines
        if not 0 <= number < len(routines) or index >= routines[number].end:
            raise Refused("there is no instruction")
        name = routines[number].function.name
        return adapter.session.break_at(f"*{name}+{index}", each.get("condition") or "")

    return {"breakpoints": replaced(adapter, "instruction", list(arguments["breakpoints"]), make)}


@handler("dataBreakpointInfo")
def data_breakpoint_info(adapter: Adapter, arguments: Arguments) -> Json:
    """Can what a variable, an expression or an address names be watched?"""
    name = str(arguments["name"])
    if arguments.get("asAddress"):
        wanted = bytes_of(name, size=int(arguments.get("bytes") or 1))
        return watchable(data_identifier(wanted, parse_type(wanted.size), name), name)
    if (reference := arguments.get("variablesReference")) is not None:
        children = adapter.handles.get(int(reference))
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
        wanted, type, name = data_of(str(each["dataId"]))
        accesses = ACCESSES[each.get("accessType") or "write"]
        return adapter.session.watch_bytes(wanted, type, name, accesses, each.get("condition") or "")

    return {"breakpoints": replaced(adapter, "data", list(arguments["breakpoints"]), make)}


@handler("setExceptionBreakpoints")
def set_exception_breakpoints(adapter: Adapter, arguments: Arguments) -> Json:
    """What stops the run when it is found: faults, the first NaN."""
    filters = dict.fromkeys(arguments.get("filters") or (), "")
    filters |= {each["filterId"]: each.get("condition") or "" for each in arguments.get("filterOptions") or ()}
    return {"breakpoints": adapter.catch(filters)}


@handler("breakpointLocations")
def breakpoint_locations(adapter: Adapter, arguments: Arguments) -> Json:
    """The lines of a source that have instructions."""
    name, first = source_name(adapter.session, arguments["source"]), int(arguments["line"])
    last, session = int(arguments.get("endLine") or first), adapter.session
    lines = {
        line_of(routine, index, name, session.kernel_routine)
        for routine in session.code.routines for index in range(routine.end)
    }  # fmt: skip
    return {"breakpoints": [{"line": line} for line in sorted(n for n in lines if n is not None) if first <= line <= last]}


__all__: list[str] = []
