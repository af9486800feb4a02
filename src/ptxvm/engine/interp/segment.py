"""A segment of a kernel as a Python function over lane arrays.

    def segment(R, L, C):       # the register file of the frame, the lanes, the cohort
        t1 = R[3]; t2 = R[4]
        t5 = t1 + t2
        R[7] = t5
        return None, None

There are two of each: one for all lanes of the cohort (L is None, registers are rebound) and one for some of them
(L is an array of lane numbers, registers are read and written at those lanes).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, pred, u64
from ptxvm.algebra.value import Value
from ptxvm.analysis.flow import Segment, reads_and_writes, registers_in
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Register, Variable
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.engine.interp import arrays, ports
from ptxvm.engine.interp.ports import Action, Request
from ptxvm.engine.interp.trace import TraceAlgebra, TracedCode
from ptxvm.engine.operands import Operands, OperandValue, fitting
from ptxvm.isa.effects import Jump
from ptxvm.isa.model import PORTS
from ptxvm.machine.image import Image, Placement
from ptxvm.machine.per_lane import Lanes, PerLane, RegisterFile

PORT = {
    "mem": ports.Memory, "warp": ports.Warp, "cta": ports.Cta, "cluster": ports.Cluster, "flow": ports.Flow,
    "clock": ports.Clock, "tex": ports.Textures, "tasks": ports.Tasks, "tmem": ports.TensorMemory,
    "cc": ports.ConditionCode,
}  # fmt: skip
CARRY_SLOT = 0

BASES = {
    Placement.PARAMETER: "C.parameters(L)", Placement.FRAME: "C.frame(L)", Placement.GENERIC_FRAME: "C.generic_frame(L)",
}  # fmt: skip
Suspended = Generator[Any, Any, Any]  # a request, an outcome and results, each of the type that its port has
"""A meaning that waits: it yields a request, is sent what the other lanes gave, and returns its results."""


@dataclass(eq=False, slots=True)
class TracedSegment:
    """A traced segment: `run(R, L, C)`, for a wait also `arrive`; and the action or request at its end."""

    run: Callable[..., PerLane]
    source: str
    action: Action | None = None
    request: Request | None = None
    arrive: Callable[..., PerLane] | None = None


class Slots:
    """The slots of registers in a file; slot 0 holds the carry flag.

    A slot below 0 is one of the module's registers (PTX 5.1.1), which all functions of a thread share: `~slot` in `C.own`.
    """

    def __init__(self, registers: Iterable[Register], module: Slots | None = None) -> None:
        self.module = module
        self.first: dict[Register, int] = {}
        self.types: list[Type] = [pred]
        for register in registers:
            self.first[register] = len(self.types)
            self.types += [register.type] * register.count

    def of(self, register: Register, part: int = 0) -> int:
        """The slot of a register, or of an element of a vector register."""
        if register.of_module and self.module is not None:
            return ~self.module.of(register, part)
        return self.first[register] + part

    def has(self, register: Register) -> bool:
        """Has a register a slot: does the function use it, or is it one of the module's?"""
        return register in self.first or (register.of_module and self.module is not None and self.module.has(register))

    def fresh_file(self) -> list[PerLane]:
        """A file of zeros, which are uniform."""
        return [arrays.const(t, 0) for t in self.types]

    def slots(self, registers: Iterable[Register]) -> Iterator[tuple[int, Register]]:
        """The slots of registers of the function, element by element."""
        for register in registers:
            if register in self.first:
                yield from ((self.first[register] + part, register) for part in range(register.count))


@dataclass(slots=True)
class Tracer(Operands):
    """Traces the instructions of one segment."""

    function: Function
    slots: Slots
    image: Image
    whole: bool
    clustered: bool = False  # do launches have clusters of several CTAs?
    code: TracedCode = field(default_factory=TracedCode)
    current: dict[int, Value] = field(default_factory=dict)
    written: set[int] = field(default_factory=set)
    action: Action | None = None
    request: Request | None = None
    guard: str | None = None
    alg: TraceAlgebra = field(init=False)

    def __post_init__(self) -> None:
        self.alg = TraceAlgebra(self.code)

    # ── instructions ────────────────────────────────────────────────────────────────────

    def instruction(self, bound: Bound, stage: str = "run") -> None:
        """Trace one instruction; `stage` is `arrive` or `run` for an instruction that waits."""
        i = bound.i
        self.guard = self.guard_of(bound)
        found_ports = {p: self.port(p, bound) for p in i.of.parameters if p in PORTS and p in PORT}
        if missing := [p for p in i.of.parameters if p in PORTS and p not in PORT]:
            raise Unsupported(f"'{i.mnemonic}' in the interpreter", f"port {missing[0]}")
        if isinstance(carry := found_ports.get("cc"), ports.ConditionCode):
            self.wire_carry(carry)
        if isinstance(tasks := found_ports.get("tasks"), ports.Tasks) and i.of.updates:
            tasks.updated = self.slots_of(bound, i.of.updates)
        if isinstance(tensors := found_ports.get("tmem"), ports.TensorMemory):
            tensors.written = self.slots_of(bound, i.destinations())
        result = i.of.meaning(i, *self.arguments(bound, found_ports))
        if inspect.isgenerator(result):
            result = self.staged(result, bound, stage)
            if stage == "arrive":
                return
        if isinstance(flow := found_ports.get("flow"), ports.Flow):
            self.action = flow.action
        self.commit(bound, result)

    def arguments(self, bound: Bound, found_ports: Mapping[str, ports.Port]) -> list[Any]:  # ports, and operands of any kind
        """The arguments of a meaning: its ports, and the values of its operands."""
        return [found_ports[p] if p in found_ports else self.operand(bound, p) for p in bound.i.of.parameters]

    def port(self, name: str, bound: Bound) -> ports.Port:
        """A port of the machine for an instruction."""
        return PORT[name](self.alg, bound, self.guard)

    def peers(self, bound: Bound, types: tuple[Type, ...]) -> ports.Peers:
        """The lanes that have met at a collective."""
        return ports.Peers(self.alg, bound, None, types)

    def staged(self, meaning: Suspended, bound: Bound, stage: str) -> OperandValue:
        """Trace a waiting instruction: up to the wait (`arrive`), or past it."""
        request: Request = next(meaning)
        self.request = request
        if stage == "arrive":
            return None
        sent = self.peers(bound, request.types) if request.wait is ports.Wait.WARP else ports.Votes(self.alg, bound, None)
        self.guard = None  # only lanes whose guard held have waited
        try:
            meaning.send(sent)
        except StopIteration as end:
            return end.value
        raise Unsupported(f"'{bound.i.mnemonic}' waits twice")

    def wire_carry(self, port: ports.ConditionCode) -> None:
        """Connect the port to the carry flag."""

        def write(value: Value) -> None:
            self.assign(CARRY_SLOT, pred, value)

        port.read = lambda: self.slot(CARRY_SLOT, pred)
        port.write = write

    def slots_of(self, bound: Bound, names: Iterable[str]) -> list[int]:
        """The slots of the registers in some operands."""
        nodes = [bound.operands[name] for name in names]
        return [self.slots.of(register) for node in nodes for register in registers_in(node, bound)]

    def guard_of(self, bound: Bound) -> str | None:
        """The variable with the guard's value."""
        guard = bound.guard()
        if guard is None:
            return None
        value = self.slot(self.slots.of(guard[0]), pred)
        raw: str = (~value).raw if guard[1] else value.raw
        return raw

    # ── registers ───────────────────────────────────────────────────────────────────────

    def slot(self, slot: int, type: Type) -> Value:
        """The value in a slot of the file."""
        if slot not in self.current:
            name = self.code.emit(variable_of(slot), origin=f"R{slot}")
            if not self.whole:
                taken = self.code.emit(f"{name}.take(L) if {name}.ndim else {name}")
                name = taken
            self.current[slot] = Value(self.alg, type, name)
        return self.current[slot]

    def assign(self, slot: int, type: Type, value: Value) -> None:
        """Give a slot a new value, where the guard holds."""
        value = fitting(value, type)
        if self.guard is not None:
            old = self.slot(slot, type)
            value = Value(self.alg, type, self.alg.select(type, self.guard, value.raw, old.raw))
        self.current[slot] = value
        self.written.add(slot)

    def key(self, register: Register, part: int = 0) -> int:
        """The slot of a register."""
        return self.slots.of(register, part)

    # ── what is known of operands ───────────────────────────────────────────────────────

    def special_register(self, bound: Bound, name: str, type: Type, *, volatile: bool) -> Value:
        """The value of a special register, from the cohort."""
        raw = self.code.emit(f"C.special({name!r}, L)", pure=not volatile)
        dtype = self.code.refer(arrays.dtype(type))
        return Value(self.alg, type, self.code.emit(f"{raw}.astype({dtype})", pure=not volatile))

    def function_address(self, function: Function) -> Value:
        """The address of a function, the same for all lanes."""
        return Value(self.alg, u64, self.alg.const(u64, self.image.function_address(function)))

    def variable_address(self, variable: Variable, offset: int = 0) -> Value:
        """The address of a variable in its own space; parameters have generic addresses."""
        where, at = self.image.locate(variable, self.function)
        if where is Placement.ABSOLUTE:
            known = Value(self.alg, u64, self.alg.const(u64, at + offset))
            if not self.clustered or variable.space.window is not Space.SHARED:
                return known
            return Value(self.alg, u64, self.code.emit("C.mem.shared_base(L)")) + known
        raw = self.code.emit(BASES[where], pure=where is Placement.PARAMETER)
        return Value(self.alg, u64, raw) + int(at + offset)

    def to_generic(self, bound: Bound, space: Space, address: Value) -> Value:
        """A generic address, by the port `mem`."""
        return ports.Memory(self.alg, bound, None).to_generic(space, address)

    # ── the function ────────────────────────────────────────────────────────────────────

    def finish(self, returned: str, live: int | None) -> tuple[Callable[..., PerLane], str]:
        """The Python function of the code so far."""
        end = [*self.stores(live), f"return {returned}"]
        body = [*self.code.needed(end), *end]
        source = "def segment(R, L, C):\n    " + "\n    ".join(body) + "\n"
        names: dict[str, Any] = {**self.code.names, "put": put}  # the namespace of traced code
        exec(compile(source, f"<{self.function.name}>", "exec"), names)  # noqa: S102 - our own source
        return names["segment"], source

    def stores(self, live: int | None) -> Iterator[str]:
        """The writes of the registers that are live after the segment."""
        taken: set[str] = set()
        for slot in sorted(self.written):
            if live is not None and slot > 0 and not self.is_live(slot, live):
                continue
            raw: str = self.current[slot].raw
            if not self.whole:
                yield f"put({'R' if slot >= 0 else 'C.own'}, {max(slot, ~slot)}, L, {raw}, C.size)"
                continue
            origin = self.code.origin.get(raw, raw)
            if origin == f"R{slot}" and raw == self.code.known.get(variable_of(slot)):
                continue
            shared = origin in taken or origin.startswith("R")
            taken.add(origin)
            yield f"{variable_of(slot)} = {raw}.copy()" if shared and origin != "constant" else f"{variable_of(slot)} = {raw}"

    def is_live(self, slot: int, live: int) -> bool:
        """Is the register of a slot live after the segment?"""
        register = next(r for r in reversed(self.function.registers) if self.slots.first[r] <= slot)
        return bool(live >> register.index & 1)


def variable_of(slot: int) -> str:
    """The expression for a slot in traced code."""
    return f"R[{slot}]" if slot >= 0 else f"C.own[{~slot}]"


def put(file: RegisterFile, slot: int, lanes: Lanes, value: PerLane, size: int) -> None:
    """Write a register at some lanes; a uniform register becomes an array first."""
    dtype = file[slot]
    if not dtype.ndim:
        file[slot] = whole = np.empty(size, dtype.dtype)
        whole[...] = dtype
        dtype = whole
    dtype[lanes] = value


def trace(function: Function, segment: Segment, tracer_of: Callable[[], Tracer]) -> TracedSegment:
    """The code of a segment, written by a new tracer."""
    code = function.instructions[segment.start : segment.end]
    tracer = tracer_of()
    if len(code) == 1 and "waits" in code[0].i.of.effects:
        return trace_wait(segment, tracer, tracer_of())
    for bound in code:
        tracer.instruction(bound)
    action = tracer.action
    if action is None:
        run, source = tracer.finish("None, None", segment.live_out)
    else:
        raws = "".join(f"{r}, " for r in action.raws)
        live = segment.live_out
        if action.jump is Jump.CALL:  # which reads its arguments from the file
            live |= reads_and_writes(code[-1])[0]
        run, source = tracer.finish(f"{tracer.guard}, ({raws})", live)
    return TracedSegment(run, source, action)


def trace_wait(segment: Segment, before: Tracer, after: Tracer) -> TracedSegment:
    """Trace an instruction at which a warp can wait: up to the wait, and past it."""
    (bound,) = before.function.instructions[segment.start : segment.end]
    before.instruction(bound, "arrive")
    request = before.request
    if request is None:
        raise Unsupported(f"'{bound.i.mnemonic}' in the interpreter", "no request")
    raws = "".join(f"{r}, " for r in request.raws)
    arrive, source = before.finish(f"{before.guard}, ({raws})", None)
    after.instruction(bound, "run")
    run, more = after.finish("None, None", segment.live_out)
    return TracedSegment(run, source + more, None, request, arrive)
