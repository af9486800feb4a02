"""Calls: functions are inlined, or entered by the call stack; `.param` variables are in the frame of their function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, pred, u32, u64
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Register, Variable
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Crash, Unsupported
from ptxvm.engine import argument_words, call_targets
from ptxvm.engine.dynamic_parallelism import FUNCTIONS
from ptxvm.engine.jit.abi.host import Host
from ptxvm.engine.jit.cfg import call_stack
from ptxvm.engine.jit.cfg.nodes import Frame
from ptxvm.engine.jit.ir.lane_values import Affine
from ptxvm.engine.jit.memory import local_marks
from ptxvm.engine.jit.memory.memory import Memory
from ptxvm.engine.jit.node import marked_values, stack
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.engine.jit.node.port import Argument, Call, Result
from ptxvm.engine.jit.node.register_shapes import Key
from ptxvm.machine.builtins import Function as DeviceFunction
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.per_lane import Array, LaneNumbers

FRAME_ALIGNMENT = 16


def call(at: NodeBuilder, bound: Bound, action: Call) -> bool:
    """Pass the arguments, or call a function of the device; does control enter a function?"""
    callee = at.node.callee
    if at.node.calls or action.function is None:
        out_of_line(at, bound, action)
        return True
    if callee is None:
        if not action.function.defined:
            library(at, bound, action.function, action.arguments, action.results)
        return False
    if callee.root.shared:
        last = stack.start(at, callee) + callee.end
        stack.check(at, bound, last, stack.Overflow(f"the call of '{callee.function.name}'", at.kernel.stack_size))
    if callee.extra is not None:
        at.assign((callee.extra, 0), u32, Value(at.alg, u32, Affine(0)))
    passed = Passed.of(at, bound, callee, action.arguments)
    local_marks.forget(at, callee)
    passed.assign(at, bound, callee)
    return True


@dataclass(frozen=True, slots=True)
class Passed:
    """The values of the arguments of a call, and the marks of those that are pointers with marks, by their registers."""

    values: Sequence[list[Value]]
    marks: Mapping[Key, Value]

    @staticmethod
    def of(at: NodeBuilder, bound: Bound, callee: Frame, arguments: Sequence[Argument]) -> Passed:
        """Those of a call."""
        marks = marked_values.moved(at, at.node.frame, arguments, callee, callee.body.signature.parameters)
        return Passed(argument_values(at, bound, callee, arguments), marks)

    def assign(self, at: NodeBuilder, bound: Bound, callee: Frame) -> None:
        """Assign them to the parameters of the function."""
        for formal, value in zip(callee.body.signature.parameters, self.values, strict=False):
            assign(at, bound, callee, formal, value)
        marked_values.assign(at, self.marks)


def argument_values(at: NodeBuilder, bound: Bound, callee: Frame, arguments: Sequence[Argument]) -> list[list[Value]]:
    """The values of the arguments."""
    formals = callee.body.signature.parameters
    return [actual_value(at, bound, at.node.frame, a, f) for f, a in zip(formals, arguments, strict=False)]


def out_of_line(at: NodeBuilder, bound: Bound, action: Call) -> None:
    """Call functions whose code stands elsewhere: one function, or for each lane the one at its address."""
    at.needs_local()
    held, guard = [], at.guard
    if action.pointer is not None:
        refuse_addresses(at, bound, action.pointer)
    for callee, back in at.node.calls:
        chosen = None if action.pointer is None else action.pointer.eq(address(at, callee.function))
        held.append((callee, back, chosen, Passed.of(at, bound, callee, action.arguments)))
    kept = call_stack.spilled_registers(at.kernel.graph, at.node)
    first = stack.end(at, at.node.frame)
    for callee, back, chosen, passed in held:
        at.guard = guard if chosen is None else chosen.raw if guard is None else at.alg.integer("and", pred, guard, chosen.raw)
        stack.push(at, bound, kept, (callee, back), first)
        local_marks.forget(at, callee)
        passed.assign(at, bound, callee)
        action.targets.append((at.guard, callee.at[0]))
    at.guard = guard


def address(at: NodeBuilder, function: Function) -> Value:
    """The address of a function."""
    number, more = at.kernel.image.address_number(function)
    found: Value = Value(at.alg, u64, Affine(at.kernel.address(number))) + more
    return found


def refuse_addresses(at: NodeBuilder, bound: Bound, index: Value) -> None:
    """Fault where a pointer is the address of none of the possible callees."""
    known: Value = Value(at.alg, pred, Affine(0))
    for callee, _ in at.node.calls:
        known = known | index.eq(address(at, callee.function))
    at.refuse(bound, ~known, NoFunction(), [(u64, index.raw)])


@dataclass(frozen=True, slots=True)
class NoFunction:
    """Host call: the fault of a call through a wrong pointer."""

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> None:
        """Refuse it."""
        for each in np.unique(values[0]):
            said = call_targets.refusal(host.image, bound, int(each))
            if said is not None:
                raise AccessFault("invalid-call", said, lane_index=int(np.argmax(values[0] == each)))
        raise Crash("a call through a pointer may enter a function that was not compiled with it; please report this")


def copy_results(at: NodeBuilder, callee: Frame) -> None:
    """Copy the results of a call to its registers or variables."""
    bound = callee.call or at.node.call
    if bound is None:
        return
    targets = bound.results()
    pairs = list(zip(callee.body.signature.results, targets, strict=False))
    values = [None if t is None else actual_value(at, bound, callee, formal, t) for formal, t in pairs]
    marks = marked_values.moved(at, callee, [formal for formal, _ in pairs], at.node.frame, targets)
    marks = marked_values.returned(at, callee, marks)
    if callee.shared:
        stack.pop(at, call_stack.spilled_registers(at.kernel.graph, at.node))
    for (_, target), value in zip(pairs, values, strict=True):
        if value is not None:
            assign(at, bound, at.node.frame, target, value)
    marked_values.assign(at, marks)


def actual_value(at: NodeBuilder, bound: Bound, frame: Frame, node: Argument, formal: Register | Variable) -> list[Value]:
    """The value of an argument: of a register or constant, or the words of a `.param` variable."""
    if isinstance(node, Variable):
        found = []
        for offset, type in words(node, formal.alignment if isinstance(formal, Variable) else FRAME_ALIGNMENT):
            found += Memory(at, bound).load(Space.LOCAL, type, parameter_address(at, frame, node, offset))
        return found
    if isinstance(node, Register):
        number = at.kernel.graph.number(node, frame)
        return [at.slot((number, part), node.type) for part in range(node.count)]
    if (known := argument_words.constant(node, formal, bound)) is not None:
        type, bits = known
        return [Value(at.alg, type, at.alg.const(type, bits))]
    raise Unsupported("an argument of a call that is neither a register, a constant nor a variable, in the JIT")


def assign(at: NodeBuilder, bound: Bound, frame: Frame, target: Result, values: list[Value]) -> None:
    """Assign a value to a register, or to a `.param` variable."""
    if target is None:  # `_`: the result is dropped
        return
    if isinstance(target, Register):
        number = at.kernel.graph.number(target, frame)
        for part, value in enumerate(regrouped(values, target)):
            at.assign((number, part), target.type, value)
        return
    step = 0
    for value in values:
        type = value.type.as_bits
        Memory(at, bound).store(Space.LOCAL, type, parameter_address(at, frame, target, step), [value.view(type)])
        step += type.bytes


def regrouped(values: list[Value], target: Register) -> list[Value]:
    """The same bytes as the elements of a register."""
    type, words = target.type.as_bits, [value.view(value.type.as_bits) for value in values]
    if len(words) == target.count == 1 and words[0].type.bits != type.bits:
        return [words[0].view(words[0].type.as_unsigned).to(type)]
    if all(word.type is type for word in words):
        return words
    made = []
    for parts in argument_words.partition([word.type.bytes for word in words], [type.bytes] * target.count):
        joined, shift = None, 0
        for number, first, count in parts:
            word = words[number].view(words[number].type.as_unsigned) >> 8 * first
            piece = word.to(type.as_unsigned) << shift
            joined, shift = piece if joined is None else joined | piece, shift + 8 * count
        if joined is not None:
            made.append(joined.view(type))
    return made


def parameter_address(at: NodeBuilder, frame: Frame, variable: Variable, offset: int) -> Value:
    """The address of a `.param` variable in local memory."""
    _, own = at.kernel.image.locate(variable, frame.function)
    fixed = Value(at.alg, u64, Affine(frame.offset + own + offset))
    return stack.start(at, frame) + fixed if frame.root.shared else fixed


def words(variable: Variable, alignment: int) -> list[tuple[int, Type]]:
    """A variable as words that are aligned in it and in its counterpart: their offsets and types."""
    size = variable.size or variable.element_size
    step = min(8, variable.alignment, alignment, size & -size)
    return [(offset, Type.named[f"b{8 * step}"]) for offset in range(0, size, step)]


# ── the library ─────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """Host call: a function of the device, whose result is an integer or none."""

    name: str
    runs: ClassVar[bool] = False  # can it run grids?

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> list[Array] | None:
        """Call it for the active lanes."""
        answer = self.handler(host)(host, threads, [np.ascontiguousarray(v).astype(np.uint64) for v in values])
        return None if answer is None else [np.asarray(answer).astype(np.int64)]

    def handler(self, host: Host) -> DeviceFunction:
        """The function."""
        found = host.library.get(self.name)
        if found is None:
            raise Crash(f"the device has lost its function '{self.name}'; please report this")
        return found


@dataclass(frozen=True, slots=True)
class LaunchCall(LibraryCall):
    """Host call: a function of dynamic parallelism."""

    runs: ClassVar[bool] = True

    def handler(self, host: Host) -> DeviceFunction:
        """The function."""
        children = host.launch.children
        if children is None:
            raise Crash(f"'{self.name}' is called in a launch that was to launch no grids; please report this")
        found: DeviceFunction = children.functions[self.name]
        return found


@dataclass(frozen=True, slots=True)
class MissingBody:
    """Host call: the fault of a call of a function without a body."""

    name: str

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> None:
        """Refuse it."""
        raise AccessFault("invalid-call", f"the function '{self.name}' has no body")


def library(
    at: NodeBuilder, bound: Bound, function: Function, arguments: Sequence[Argument], results: Sequence[Result]
) -> None:
    """Call a function of the device."""
    work = device_function(at, function.name)
    if work is None:
        at.host_call(bound, MissingBody(function.name), [], [])
        return
    at.needs_local()
    if at.kernel.marks_local:  # it may read bytes of local memory that have no value
        at.suspect_if(at.alg.const(pred, 1))
    inputs = []
    for formal, node in zip(function.signature.parameters, arguments, strict=False):
        held = actual_value(at, bound, at.node.frame, node, formal)
        inputs += [(u64, word.view(word.type.as_unsigned).to(u64).raw) for word in held]
    wanted = bool(results and function.signature.results)
    outputs = at.host_call(bound, work, inputs, [Type.named["s64"]] if wanted else [])
    if wanted:
        type = function.signature.results[0].type.as_bits
        bits = outputs[0].to(type.as_signed).view(type)
        assign(at, bound, at.node.frame, results[0], [bits])


def device_function(at: NodeBuilder, name: str) -> LibraryCall | None:
    """The host call for a function of the device; None if it has none of that name."""
    if name in FUNCTIONS:
        return LaunchCall(name)
    return None if at.kernel.image.library.get(name) is None else LibraryCall(name)
