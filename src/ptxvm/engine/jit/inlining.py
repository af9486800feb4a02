"""Calls: the code of a function stands where it is called; `.param` variables lie in the frame of their function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ptxvm.algebra.types import Type, pred, u32, u64
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Register, Variable
from ptxvm.diagnostics.errors import Crash, Unsupported
from ptxvm.engine.children import FUNCTIONS
from ptxvm.engine.jit import stack
from ptxvm.engine.jit.memory import Memory
from ptxvm.engine.jit.plan import Frame
from ptxvm.engine.jit.ports import Action
from ptxvm.engine.jit.raw import Lin
from ptxvm.machine.faults import AccessFault
from ptxvm.syntax import tree

if TYPE_CHECKING:
    from ptxvm.engine.jit.emitter import Emitter

FRAME_ALIGNMENT = 16


def call(at: Emitter, bound: Bound, action: Action) -> None:
    """Pass the arguments; or ask the library for what the device has ready."""
    arguments, results = action.extra
    callee = at.node.callee
    if at.node.calls or action.symbol is None:
        away(at, bound, action, arguments)
        return
    if callee is None:
        if not action.symbol.defined:
            library(at, bound, action.symbol, arguments, results)
        action.verb = "next"
        return
    if callee.root.shared:
        last = stack.start(at, callee) + callee.end
        stack.check(at, bound, last, stack.Overflow(f"the call of '{callee.function.name}'", at.kernel.stack_size))
    if callee.extra is not None:
        at.assign((callee.extra, 0), u32, Value(at.alg, u32, Lin(0)))
    values = passed(at, bound, callee, arguments)
    for formal, value in zip(callee.function.signature.parameters, values, strict=False):
        give(at, bound, callee, formal, value)


def passed(at: Emitter, bound: Bound, callee: Frame, arguments: list[Any]) -> list[list[Value]]:
    """The values of the arguments."""
    formals = callee.function.signature.parameters
    return [actual_value(at, bound, at.node.frame, a, f) for f, a in zip(formals, arguments, strict=False)]


def away(at: Emitter, bound: Bound, action: Action, arguments: list[Any]) -> None:
    """Call functions that stand elsewhere: one, or each lane the one at its address."""
    at.needs_local()
    held, guard = [], at.guard
    if action.index is not None:
        refuse_addresses(at, bound, action.index)
    for callee, back in at.node.calls:
        chosen = None if action.index is None else action.index.eq(address(at, callee.function))
        held.append((callee, back, chosen, passed(at, bound, callee, arguments)))
    kept = stack.kept_registers(at.node)
    first, action.index = stack.end(at, at.node.frame), None
    for callee, back, chosen, values in held:
        at.guard = guard if chosen is None else chosen.raw if guard is None else at.alg.integer("and", pred, guard, chosen.raw)
        stack.push(at, bound, kept, (callee, back), first)
        for formal, value in zip(callee.function.signature.parameters, values, strict=False):
            give(at, bound, callee, formal, value)
        action.ways.append((at.guard, callee.at[0]))
    at.guard = guard


def address(at: Emitter, function: Function) -> Value:
    """That of a function."""
    number, more = at.kernel.image.address_number(function)
    found: Value = Value(at.alg, u64, Lin(at.kernel.address(number))) + more
    return found


def refuse_addresses(at: Emitter, bound: Bound, index: Value) -> None:
    """Where no function of the list begins, nothing is called."""
    known: Value = Value(at.alg, pred, Lin(0))
    for callee, _ in at.node.calls:
        known = known | index.eq(address(at, callee.function))
    at.refuse(bound, ~known, NoFunction(), [(u64, index.raw)])


@dataclass(frozen=True, slots=True)
class NoFunction:
    """A call through a pointer to something else."""

    def __call__(self, machine: Any, bound: Bound, threads: Any, values: list[Any]) -> None:
        """Refuse it; where the function has no code of its own, say so."""
        for each in np.unique(values[0]):
            first = int(np.argmax(values[0] == each))
            function = machine.image.function_at(int(each))
            if function is None:
                said = f"the call goes to {int(each):#x}, where no function is"
                raise AccessFault("invalid-call", said, lane_index=first)
            if not function.defined:
                raise AccessFault("invalid-call", f"the function '{function.name}' has no body", lane_index=first)
        raise Crash("a function is called whose address nothing was known to take")


def hand_back(at: Emitter, callee: Frame) -> None:
    """Copy the results to where the call wants them."""
    bound = callee.call or at.node.call
    if bound is None:
        return
    targets = bound.results()
    pairs = list(zip(callee.function.signature.results, targets, strict=False))
    values = [None if t is None else actual_value(at, bound, callee, formal, t) for formal, t in pairs]
    if callee.shared:
        stack.pop(at, stack.kept_registers(at.node))
    for (_, target), value in zip(pairs, values, strict=True):
        if value is not None:
            give(at, bound, at.node.frame, target, value)


def actual_value(at: Emitter, bound: Bound, frame: Frame, node: Any, formal: Any) -> list[Value]:
    """The value of an argument: of a register or constant, or the words of a `.param` variable."""
    if isinstance(node, Variable):
        found = []
        for offset, type in words(node, formal.alignment if isinstance(formal, Variable) else FRAME_ALIGNMENT):
            found += Memory(at, bound).load("local", type, place(at, frame, node, offset))
        return found
    if isinstance(node, Register):
        return [at.slot((at.kernel.plan.number(node, frame), 0), node.type)]
    if isinstance(node, tree.Integer):
        type = formal.type.as_bits
        return [Value(at.alg, type, at.alg.const(type, node.value))]
    if isinstance(node, tree.Float):
        type = Type.named[f"b{node.width}"]
        return [Value(at.alg, type, Lin(node.bits))]
    raise Unsupported("an argument of a call that is neither a register, a constant nor a variable, in the JIT")


def give(at: Emitter, bound: Bound, frame: Frame, target: Any, values: list[Value]) -> None:
    """To a register, or to a `.param` variable."""
    if target is None:  # `_`: nobody wants it
        return
    if isinstance(target, Register):
        (value,) = values
        value = value.view(value.type.as_bits)
        if value.type.bits != target.type.bits:
            value = value.view(value.type.as_unsigned).to(target.type.as_bits)
        at.assign((at.kernel.plan.number(target, frame), 0), target.type, value)
        return
    step = 0
    for value in values:
        type = value.type.as_bits
        Memory(at, bound).store("local", type, place(at, frame, target, step), [value.view(type)])
        step += type.bytes


def place(at: Emitter, frame: Frame, variable: Variable, offset: int) -> Value:
    """Where a `.param` variable lies in local memory."""
    _, own = at.kernel.image.place(variable, frame.function)
    fixed = Value(at.alg, u64, Lin(frame.offset + own + offset))
    return stack.start(at, frame) + fixed if frame.root.shared else fixed


def words(variable: Variable, alignment: int) -> list[tuple[int, Type]]:
    """The offsets and types of the words, aligned in both, that make up a variable."""
    size = variable.size or variable.element_size
    step = min(8, variable.alignment, alignment, size & -size)
    return [(offset, Type.named[f"b{8 * step}"]) for offset in range(0, size, step)]


# ── the library ─────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """A function that the device provides; what it answers is an integer, or nothing."""

    name: str
    runs: ClassVar[bool] = False  # may it run grids?

    def __call__(self, machine: Any, bound: Bound, threads: Any, values: list[Any]) -> list[Any] | None:
        """Call it for the active lanes."""
        answer = self.handler(machine)(machine.cohort, threads, [np.ascontiguousarray(v).astype(np.uint64) for v in values])
        return None if answer is None else [np.asarray(answer).astype(np.int64)]

    def handler(self, machine: Any) -> Any:
        """The function."""
        return machine.library.get(self.name)


@dataclass(frozen=True, slots=True)
class LaunchCall(LibraryCall):
    """One of those by which kernels launch others."""

    runs: ClassVar[bool] = True

    def handler(self, machine: Any) -> Any:
        """The function."""
        return machine.launch.children.functions[self.name]


@dataclass(frozen=True, slots=True)
class NoBody:
    """A call of a function that is declared only."""

    name: str

    def __call__(self, machine: Any, bound: Bound, threads: Any, values: list[Any]) -> None:
        """Refuse it."""
        raise AccessFault("invalid-call", f"the function '{self.name}' has no body")


def library(at: Emitter, bound: Bound, function: Function, arguments: list[Any], results: list[Any]) -> None:
    """Ask Python."""
    work = device_function(at, function.name)
    if work is None:
        at.outside(bound, NoBody(function.name), [], [])
        return
    at.needs_local()
    inputs = []
    for formal, node in zip(function.signature.parameters, arguments, strict=False):
        held = actual_value(at, bound, at.node.frame, node, formal)
        inputs += [(u64, word.view(word.type.as_unsigned).to(u64).raw) for word in held]
    wanted = bool(results and function.signature.results)
    outputs = at.outside(bound, work, inputs, [Type.named["s64"]] if wanted else [])
    if wanted:
        type = function.signature.results[0].type.as_bits
        bits = outputs[0].to(type.as_signed).view(type)
        give(at, bound, at.node.frame, results[0], [bits])


def device_function(at: Emitter, name: str) -> LibraryCall | None:
    """A function that the device provides."""
    if name in FUNCTIONS:
        return LaunchCall(name)
    return None if at.kernel.image.library.get(name) is None else LibraryCall(name)
