"""Scopes and variables: registers by type, special registers, parameters, memory by space, and the lanes of the warp."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import TypeAlias

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.symbols import Variable, spelling
from ptxvm.debug import inspection
from ptxvm.debug.dap.ids import Children, Handles, Json, memory_reference
from ptxvm.debug.focus import Focus, shown
from ptxvm.debug.inspection import RegisterView
from ptxvm.debug.session import Session
from ptxvm.debug.source_types import ArrayOf, Structure
from ptxvm.debug.values import MemoryPlace, NoValue, Values

MEMORY = (
    ("Shared", (Space.SHARED,)), ("Local", (Space.LOCAL,)), ("Global and constant", (Space.GLOBAL, Space.CONST)),
)  # fmt: skip
Make: TypeAlias = Callable[[], Iterable[Json]]
"""Makes some variables."""


class Variables:
    """Makes the variables of a thread and a frame of a session: those that it is about when this is made."""

    def __init__(self, session: Session, handles: Handles) -> None:
        self.session, self.handles = session, handles
        self.focus, self.frame = session.execution.focus, session.frame

    def look(self) -> None:
        """Let the session be about the thread and the frame."""
        self.session.execution.focus, self.session.frame = self.focus, self.frame

    def within(self, make: Make) -> int:
        """A reference for some variables."""

        def page(start: int, count: int) -> Iterator[Json]:
            self.look()
            return islice(make(), start, start + count)

        return self.handles.add(Children(page, self.look))

    # ── scopes ──────────────────────────────────────────────────────────────────────────

    def scopes(self) -> Iterator[Json]:
        """The scopes."""
        if any(each.is_local for each in self.session.view().source_variables.values()):
            yield self.scope("Locals", self.locals, hint="locals")
        registers = inspection.registers(self.session)
        for type in dict.fromkeys(each.type for each in registers):
            yield self.scope(f"Registers .{type}", partial(self.registers, type), hint="registers")
        yield self.scope("Parameters", self.parameters, hint="arguments")
        known = inspection.variables(self.session)
        for name, spaces in MEMORY:
            mine = [each for each in known if each.space.window in spaces]
            if mine:
                yield self.scope(name, partial(self.memory, mine))
        yield self.scope("Special registers", self.special, hint="registers", expensive=True)
        yield self.scope("Lanes", self.lanes, expensive=True)

    def scope(self, name: str, make: Make, *, hint: str = "", expensive: bool = False) -> Json:
        """A scope."""
        made: Json = {"name": name, "expensive": expensive, "variablesReference": self.within(make)}
        return made | ({"presentationHint": hint} if hint else {})

    # ── registers ───────────────────────────────────────────────────────────────────────

    def registers(self, type: str | None = None) -> Iterator[Json]:
        """The registers of a type, or all."""
        return register_variables(each for each in inspection.registers(self.session) if type in (None, each.type))

    def special(self) -> Iterator[Json]:
        """The special registers, which cannot be changed."""
        for each in register_variables(inspection.special_registers(self.session)):
            yield each | {"presentationHint": {"attributes": ["readOnly"]}}

    def lanes(self) -> Iterator[Json]:
        """The lanes of the warp, each with its registers within it."""
        for each in inspection.warp_lanes(self.session):
            where = f" at line {each.line}" if each.line else ""
            yield {
                "name": f"lane {each.lane}", "value": f"thread {shown(each.thread)}: {each.status}{where}",
                "variablesReference": self.of_lane(each.lane) if each.line else 0,
            }  # fmt: skip

    def of_lane(self, lane: int) -> int:
        """A reference for the registers of another lane of the warp."""
        other = Variables(self.session, self.handles)
        other.focus, other.frame = Focus(self.focus.cta, self.focus.warp, lane), 0
        return other.within(other.registers)

    # ── the source ──────────────────────────────────────────────────────────────────────

    def locals(self) -> Iterator[Json]:
        """The variables of the source."""
        for name, each in self.session.view().source_variables.items():
            if each.is_local:
                yield self.variable(name, "")

    def members(self, expression: str, structure: Structure) -> int:
        """A reference for the members of a structure."""
        return self.within(lambda: (self.variable(f"{expression}.{name}", "", name) for name in structure.members))

    # ── memory ──────────────────────────────────────────────────────────────────────────

    def parameters(self) -> Iterator[Json]:
        """The parameters of the function."""
        for each in self.session.view().routine.function.signature.parameters:
            yield self.variable(each.name, spelling(each))

    def memory(self, known: Iterable[Variable]) -> Iterator[Json]:
        """Variables in memory."""
        for each in known:
            yield self.variable(each.name, f".{each.space} {spelling(each)}")

    def variable(self, expression: str, type: str, name: str = "") -> Json:
        """What an expression names, as a variable; an array has its elements within it."""
        shown: Json = {"name": name or expression, "type": type, "evaluateName": expression, "variablesReference": 0}
        try:
            return shown | self.contents(expression, self.session.value(expression))
        except NoValue as wrong:
            return shown | {"value": f"<{wrong}>"}

    def contents(self, expression: str, found: Values | MemoryPlace) -> Json:
        """The value of an expression: text, and references to its memory and its elements."""
        made: Json = {"variablesReference": 0}
        try:
            place = self.session.place(expression)
        except NoValue:
            place = None
        if place is not None:
            made["memoryReference"] = memory_reference(self.session.bytes_at(self.session.view(), place, place.type.bytes))
        if isinstance(found, MemoryPlace) and isinstance(found.source, Structure):
            made |= {"variablesReference": self.members(expression, found.source), "type": found.source.name}
            return made | {"value": inspection.text_at(self.session, found)}
        if isinstance(found, MemoryPlace) and isinstance(found.source, ArrayOf):
            return made | {"value": inspection.text_at(self.session, found)} | self.elements(expression, found.source.count)
        if isinstance(found, MemoryPlace):
            shape = "][".join(map(str, found.dimensions))
            return made | {"value": f".{found.type.name}[{shape}]"} | self.elements(expression, found.dimensions[0])
        made["value"] = inspection.text_of(found)
        name = place.variable.name if place is not None and place.variable is not None else ""
        pointee = self.session.execution.pointees.get(name) if place is not None and not place.dimensions else None
        if pointee is None or f"{expression}".endswith("]"):
            return made
        count = self.session.pointed_at(name)
        return made | {"value": f"{made['value']} → .{pointee.name}[{count}]"} | self.elements(expression, count)

    def elements(self, expression: str, size: int) -> Json:
        """A reference for the elements of an array."""

        def page(start: int, count: int) -> Iterator[Json]:
            self.look()
            for number in range(start, min(size, start + count)):
                yield self.variable(f"{expression}[{number}]", "", f"[{number}]")

        children = Children(page, self.look, partial(operator.add, expression))
        return {"variablesReference": self.handles.add(children), "indexedVariables": size}


def register_variables(registers: Iterable[RegisterView]) -> Iterator[Json]:
    """Registers as variables."""
    for each in registers:
        yield {
            "name": each.name, "value": each.value, "type": f".{each.type}", "evaluateName": each.name,
            "variablesReference": 0,
        }  # fmt: skip


__all__ = ["Variables"]
