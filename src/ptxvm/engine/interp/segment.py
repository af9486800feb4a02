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
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ptxvm.algebra.types import Type, f32, f64, pred, u32, u64
from ptxvm.algebra.value import Value
from ptxvm.analysis import constants
from ptxvm.analysis.flow import Segment, reads_and_writes, registers_in
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.scope import special
from ptxvm.analysis.shapes import VECTOR_PARTS
from ptxvm.analysis.symbols import Label, Prototype, Register, Table, Variable
from ptxvm.analysis.unset import use
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.engine.interp import arrays, ports
from ptxvm.engine.interp.ports import Action, Request
from ptxvm.engine.interp.trace import Code, TraceAlgebra
from ptxvm.isa.model import PORTS, Decoded
from ptxvm.isa.special_registers import COMPONENTS, SPECIAL
from ptxvm.syntax import tree

PORT = {
    "mem": ports.Memory, "warp": ports.Warp, "cta": ports.Cta, "flow": ports.Flow, "clock": ports.Clock,
    "tex": ports.Textures, "tasks": ports.Tasks,
    "cc": ports.ConditionCode,
}  # fmt: skip
CARRY = -1


@dataclass(eq=False, slots=True)
class Compiled:
    """A traced segment: `run(R, L, C)`, or `arrive` and `run` for one that waits; and what follows it."""

    run: Callable[..., Any]
    source: str
    action: Action | None = None
    request: Request | None = None
    arrive: Callable[..., Any] | None = None


@dataclass(eq=False, slots=True)
class Followed:
    """What an instruction does with registers that may be unset."""

    bound: Bound
    reads: tuple[Register, ...]
    writes: tuple[Register, ...]
    passes: tuple[Register, ...]
    guards: tuple[Register, ...]


class Slots:
    """Where registers lie in a file; slot 0 holds the carry flag.

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

    def fresh_file(self) -> list[Any]:
        """A file of zeros, which are uniform."""
        return [arrays.const(t, 0) for t in self.types]


@dataclass(slots=True)
class Tracer:
    """Traces the instructions of one segment."""

    function: Function
    slots: Slots
    image: Any
    whole: bool
    code: Code = field(default_factory=Code)
    current: dict[int, Value] = field(default_factory=dict)
    written: set[int] = field(default_factory=set)
    action: Action | None = None
    request: Request | None = None
    guard: str | None = None
    followed: frozenset[Register] = frozenset()
    alg: TraceAlgebra = field(init=False)

    def __post_init__(self) -> None:
        self.alg = TraceAlgebra(self.code)

    # ── instructions ────────────────────────────────────────────────────────────────────

    def instruction(self, bound: Bound, stage: str = "run") -> None:
        """One instruction; `stage` is `arrive` or `run` for one that waits."""
        i = bound.i
        self.guard = self.guard_of(bound)
        if self.followed and (stage == "arrive" or "waits" not in i.of.effects):
            self.follow(bound)
        given = {p: PORT[p](self.alg, bound, self.guard) for p in i.of.parameters if p in PORTS and p in PORT}
        if missing := [p for p in i.of.parameters if p in PORTS and p not in PORT]:
            raise Unsupported(f"'{i.mnemonic}' in the interpreter", f"port {missing[0]}")
        if "cc" in given:
            self.wire_carry(given["cc"])
        arguments = [given[p] if p in given else self.operand(bound, p) for p in i.of.parameters]
        result = i.of.meaning(i, *arguments)
        if inspect.isgenerator(result):
            result = self.staged(result, bound, stage)
            if stage == "arrive":
                return
        if isinstance(flow := given.get("flow"), ports.Flow):
            self.action = flow.action
        self.commit(bound, i, result)

    def follow(self, bound: Bound) -> None:
        """Tell which registers that may be unset the instruction reads, writes and passes on."""
        used = use(bound)
        every = (used.reads, used.writes, used.passes, used.guards)
        parts = [tuple(each for each in part if each in self.followed) for part in every]
        if any(parts):
            self.code.run(f"C.follow({self.code.refer(Followed(bound, *parts))}, L, {self.guard})")

    def staged(self, meaning: Any, bound: Bound, stage: str) -> Any:
        """Up to the wait, or past it."""
        request: Request = next(meaning)
        self.request = request
        if stage == "arrive":
            return None
        sent = (
            ports.Peers(self.alg, bound, None, request.types) if request.verb == "warp" else ports.Votes(self.alg, bound, None)
        )
        self.guard = None  # only lanes whose guard held have waited
        try:
            meaning.send(sent)
        except StopIteration as end:
            return end.value
        raise Unsupported(f"'{bound.i.mnemonic}' waits twice")

    def wire_carry(self, port: Any) -> None:
        """Let the port read and write the flag."""

        def write(value: Value) -> None:
            self.assign(0, pred, value)

        port.read = lambda: self.slot(0, pred)
        port.write = write

    def guard_of(self, bound: Bound) -> str | None:
        """The variable with the guard's value."""
        guard = bound.guard()
        if guard is None:
            return None
        value = self.slot(self.slots.of(guard[0]), pred)
        raw: str = (~value).raw if guard[1] else value.raw
        return raw

    def commit(self, bound: Bound, i: Decoded, result: Any) -> None:
        """Write the results to the destinations."""
        names = i.destinations()
        if result is None or not names:
            return
        values = result if isinstance(result, tuple) else (result,)
        for name, value in zip(names, values, strict=False):
            node = bound.operands.get(name)
            if node is not None:
                self.write(bound, node, value)

    # ── registers ───────────────────────────────────────────────────────────────────────

    def slot(self, slot: int, type: Type) -> Value:
        """What a slot of the file holds."""
        if slot not in self.current:
            name = self.code.emit(place(slot), origin=f"R{slot}")
            if not self.whole:
                taken = self.code.emit(f"{name}.take(L) if {name}.ndim else {name}")
                name = taken
            self.current[slot] = Value(self.alg, type, name)
        return self.current[slot]

    def assign(self, slot: int, type: Type, value: Value) -> None:
        """Give a slot a new value, where the guard holds."""
        if value.type.bits != type.bits:
            value = value.to(type.as_bits if type.is_float else type)
        value = value.view(type) if value.type is not pred else value
        if self.guard is not None:
            old = self.slot(slot, type)
            value = Value(self.alg, type, self.alg.select(type, self.guard, value.raw, old.raw))
        self.current[slot] = value
        self.written.add(slot)

    def write(self, bound: Bound, node: tree.Operand, value: Any) -> None:
        """A value to a destination."""
        if isinstance(node, tree.Vector):
            for item, element in zip(node.items, value if isinstance(value, list) else [value], strict=True):
                self.write(bound, item, element)
            return
        if not isinstance(node, tree.Name) or node.text == "_":
            return
        register = bound.scope.find(node.text)
        if isinstance(value, list):
            if register.count > 1:
                for n, element in enumerate(value):
                    self.assign(self.slots.of(register, n), register.type, element)
                return
            (value,) = value
        part = VECTOR_PARTS.get(node.component or "", 0) if register.count > 1 else 0
        self.assign(self.slots.of(register, part), register.type, value)

    # ── operands ────────────────────────────────────────────────────────────────────────

    def operand(self, bound: Bound, name: str) -> Any:
        """An operand as the meaning gets it: a Value, a list of them, a symbol, or None where it was left out."""
        node = bound.operands.get(name)
        if node is None:
            return None
        return self.value(bound, node, bound.i.type_of(name), split="split" in bound.i.operand_type(name).marks)

    def value(self, bound: Bound, node: tree.Operand, type: Type | None, *, split: bool = False) -> Any:
        """The value of an operand, as its type."""
        match node:
            case tree.Address():
                if len(node.items) == 1:
                    return self.address(bound, node.items[0])
                return [self.value(bound, item, type) for item in node.items]
            case tree.Vector():
                element = type
                if split and type is not None:
                    element = Type.named[f"b{type.bits // len(node.items)}"]
                return [self.value(bound, item, element) for item in node.items]
            case tree.Group():
                return [self.argument(bound, item) for item in node.items]
            case tree.Name():
                return self.named(bound, node, type)
            case tree.Unary(op="!"):
                return ~self.value(bound, node.operand, type)
            case tree.Unary(op="-") if not isinstance(node.operand, tree.Integer | tree.Float):
                if any(True for _ in registers_in(node.operand, bound)):  # its sign is a flag of the instruction
                    return self.value(bound, node.operand, type)
        return self.constant(bound, node, type or u64)

    def argument(self, bound: Bound, node: tree.Operand) -> Any:
        """An argument of a call: the symbol of a register or `.param` variable, or a constant's node."""
        if isinstance(node, tree.Name) and (symbol := bound.scope.find(node.text)) is not None:
            return symbol
        return node

    def named(self, bound: Bound, node: tree.Name, type: Type | None) -> Any:
        """What a name stands for."""
        symbol = bound.scope.find(node.text)
        if isinstance(symbol, Register):
            return self.register(symbol, node.component, type)
        if isinstance(symbol, Label | Table | Prototype):
            return symbol
        if isinstance(symbol, Function):
            if type is None:
                return symbol
            return self.fit(Value(self.alg, u64, self.alg.const(u64, self.image.function_address(symbol))), type)
        if isinstance(symbol, Variable):
            return self.fit(self.variable_address(symbol), type or u64)
        if node.text == "WARP_SZ":
            return Value(self.alg, type or u32, self.alg.const(type or u32, 32))
        return self.special(node, type)

    def register(self, register: Register, component: str | None, type: Type | None) -> Any:
        """A register's value; a vector register is a list of its elements."""
        if register.count > 1:
            if component is None:
                return [self.fit(self.slot(self.slots.of(register, n), register.type), type) for n in range(register.count)]
            return self.fit(self.slot(self.slots.of(register, VECTOR_PARTS[component]), register.type), type)
        return self.fit(self.slot(self.slots.of(register), register.type), type)

    def fit(self, value: Value, type: Type | None) -> Value:
        """A register's bits as an operand of a type: the low ones of a wider register."""
        if type is None or value.type is type or pred in (value.type, type):
            return value
        if value.type.bits != type.bits:
            value = value.view(value.type.as_unsigned).to(type.as_unsigned)
        return value.view(type)

    def special(self, node: tree.Name, type: Type | None) -> Any:
        """A special register; the counters differ at each reading.  A vector as a whole is a list."""
        found = special(node.text, node.component)
        if found is None:
            raise Unsupported(f"the special register {node.text}")
        if node.component is None and found.name in SPECIAL and SPECIAL[found.name].count > 1:
            return [self.special(tree.Name(node.text, part), type) for part in "xyzw"]
        name = found.name + (f".{'xyzw'[COMPONENTS[found.component]]}" if found.component else "")
        volatile = SPECIAL[found.name].volatile if found.name in SPECIAL else False
        raw = self.code.emit(f"C.special({name!r}, L)", pure=not volatile)
        held = self.code.refer(arrays.dtype(found.type))
        value = Value(self.alg, found.type, self.code.emit(f"{raw}.astype({held})", pure=not volatile))
        return self.fit(value, type)

    def variable_address(self, variable: Variable, offset: int = 0) -> Value:
        """Where a variable is, in its own space; parameters are at generic addresses."""
        where, at = self.image.place(variable, self.function)
        if where == "absolute":
            return Value(self.alg, u64, self.alg.const(u64, at + offset))
        base = {"parameter": "C.parameters(L)", "frame": "C.frame(L)", "generic frame": "C.generic_frame(L)"}[where]
        raw = self.code.emit(base, pure=where == "parameter")
        return Value(self.alg, u64, raw) + int(at + offset)

    def address(self, bound: Bound, node: tree.Operand) -> Value:
        """The address that `[…]` names, before the base of its window is added."""
        offset = 0
        if isinstance(node, tree.Binary) and node.op in ("+", "-"):
            found = constants.evaluate(node.right, lambda _: None)
            offset = int(found) if node.op == "+" else -int(found)  # type: ignore[arg-type]
            node = node.left
        if isinstance(node, tree.Name):
            symbol = bound.scope.find(node.text)
            if isinstance(symbol, Variable):
                return self.in_space(bound, symbol, offset)
            value: Value = self.named(bound, node, None)
            return value.view(value.type.as_unsigned).to(u64) + offset if offset else value.view(value.type.as_unsigned).to(u64)
        if isinstance(node, tree.Index):
            symbol = bound.scope.find(node.name.text)
            at = int(constants.evaluate(node.index, lambda _: None)) * symbol.element_size  # type: ignore[arg-type]
            return self.in_space(bound, symbol, offset + at)
        return self.constant(bound, node, u64) + offset

    def in_space(self, bound: Bound, variable: Variable, offset: int) -> Value:
        """The address of a variable as this instruction needs it: generic where it names no space."""
        value = self.variable_address(variable, offset)
        generic = not any(w.partition("::")[0] in SPACES for w in bound.node.words)
        if generic and variable.space in ("shared", "local") and "mem" in bound.i.of.effects:
            return ports.Memory(self.alg, bound, None).to_generic(variable.space, value)
        return value

    def constant(self, bound: Bound, node: tree.Operand, type: Type) -> Value:
        """A constant expression as a value of a type."""
        if isinstance(node, tree.Float):
            return self.float_constant(node, type)
        found = constants.evaluate(node, bound.scope.find)
        if isinstance(found, constants.Address):
            value = self.variable_address(found.symbol, found.offset) if isinstance(found.symbol, Variable) else Value(
                self.alg, u64, self.alg.const(u64, self.image.function_address(found.symbol) + found.offset)
            )  # fmt: skip
            return self.fit(value, type)
        if type.is_float or type.is_packed:
            if isinstance(found, float):
                return Value(self.alg, type, self.alg.const(type, found))
            return Value(self.alg, type.as_bits, self.alg.const(type.as_bits, found)).view(type)
        if type is pred:
            return Value(self.alg, pred, self.alg.const(pred, bool(found)))
        return Value(self.alg, type, self.alg.const(type, int(found)))

    def float_constant(self, node: tree.Float, type: Type) -> Value:
        """A literal by its bits; a double literal for f32 is rounded."""
        if node.width == type.bits:
            bits = node.bits
        elif node.width == f64.bits and type.bits == f32.bits:
            bits = int(np.uint64(node.bits).view(np.float64).astype(np.float32).view(np.uint32))
        elif node.width == f32.bits and type.bits == f64.bits:
            bits = int(np.uint32(node.bits).view(np.float32).astype(np.float64).view(np.uint64))
        else:
            bits = node.bits
        return Value(self.alg, type.as_bits, self.alg.const(type.as_bits, bits)).view(type)

    # ── the function ────────────────────────────────────────────────────────────────────

    def finish(self, returned: str, live: int | None) -> tuple[Callable[..., Any], str]:
        """The Python function of the code so far."""
        end = [*self.stores(live), f"return {returned}"]
        body = [*self.code.needed(end), *end]
        source = "def segment(R, L, C):\n    " + "\n    ".join(body) + "\n"
        names: dict[str, Any] = {**self.code.names, "put": put}
        exec(compile(source, f"<{self.function.name}>", "exec"), names)  # noqa: S102 - our own source
        return names["segment"], source

    def stores(self, live: int | None) -> Any:
        """The writes of the registers that are still needed."""
        taken: set[str] = set()
        for slot in sorted(self.written):
            if live is not None and slot > 0 and not self.is_live(slot, live):
                continue
            raw = self.current[slot].raw
            if not self.whole:
                yield f"put({'R' if slot >= 0 else 'C.own'}, {max(slot, ~slot)}, L, {raw}, C.size)"
                continue
            origin = self.code.origin.get(raw, raw)
            if origin == f"R{slot}" and raw == self.code.known.get(place(slot)):
                continue
            shared = origin in taken or origin.startswith("R")
            taken.add(origin)
            yield f"{place(slot)} = {raw}.copy()" if shared and origin != "constant" else f"{place(slot)} = {raw}"

    def is_live(self, slot: int, live: int) -> bool:
        """Is the register of a slot needed after the segment?"""
        register = next(r for r in reversed(self.function.registers) if self.slots.first[r] <= slot)
        return bool(live >> register.index & 1)


SPACES = {"global", "shared", "local", "const", "param"}


def place(slot: int) -> str:
    """Where traced code finds a slot."""
    return f"R[{slot}]" if slot >= 0 else f"C.own[{~slot}]"


def put(file: list[Any], slot: int, lanes: Any, value: Any, size: int) -> None:
    """Write a register at some lanes; a uniform one becomes an array first."""
    held = file[slot]
    if not held.ndim:
        file[slot] = whole = np.empty(size, held.dtype)
        whole[...] = held
        held = whole
    held[lanes] = value


def trace(
    function: Function, segment: Segment, slots: Slots, image: Any, *, whole: bool, followed: frozenset[Register] = frozenset()
) -> Compiled:
    """The code of a segment, for all lanes or for some; `followed` are registers of which it tells whether they are set."""
    code = function.instructions[segment.start : segment.end]
    if len(code) == 1 and "waits" in code[0].i.of.effects:
        return trace_wait(
            segment, Tracer(function, slots, image, whole, followed=followed), Tracer(function, slots, image, whole)
        )
    tracer = Tracer(function, slots, image, whole, followed=followed)
    if followed and segment.start == 0:
        tracer.code.run(f"C.unset_all({tracer.code.refer(followed)}, L)")
    for bound in code:
        tracer.instruction(bound)
    action = tracer.action
    if action is None:
        run, source = tracer.finish("None, None", segment.live_out)
    else:
        raws = "".join(f"{r}, " for r in action.raws)
        live = segment.live_out
        if action.verb == "call":  # which reads its arguments from the file
            live |= reads_and_writes(code[-1])[0]
        run, source = tracer.finish(f"{tracer.guard}, ({raws})", live)
    return Compiled(run, source, action)


def trace_wait(segment: Segment, before: Tracer, after: Tracer) -> Compiled:
    """An instruction at which a warp can wait: up to the wait, and past it."""
    (bound,) = before.function.instructions[segment.start : segment.end]
    before.instruction(bound, "arrive")
    request = before.request
    if request is None:
        raise Unsupported(f"'{bound.i.mnemonic}' in the interpreter", "no request")
    raws = ", ".join(str(r) for r in request.raws)
    arrive, source = before.finish(f"{before.guard}, ({raws},)", None)
    after.instruction(bound, "run")
    run, more = after.finish("None, None", segment.live_out)
    return Compiled(run, source + more, None, request, arrive)
