"""Calls: the code of a function stands where it is called; `.param` variables lie in the frame of their function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxvm.algebra.types import Type, u64
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Register, Variable
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.engine.jit.memory import Memory
from ptxvm.engine.jit.plan import Frame, results_of
from ptxvm.engine.jit.ports import Action
from ptxvm.engine.jit.raw import Lin
from ptxvm.syntax import tree

if TYPE_CHECKING:
    from ptxvm.engine.jit.emitter import Emitter

FRAME_ALIGNMENT = 16


def call(at: Emitter, bound: Bound, action: Action) -> None:
    """Pass the arguments; or ask the library for what the device has ready."""
    arguments, results = action.extra
    callee = at.node.callee
    if callee is None:
        library(at, bound, action.symbol, arguments, results)
        action.verb = "next"
        return
    for formal, actual in zip(callee.function.signature.parameters, arguments, strict=False):
        give(at, bound, callee, formal, actual_value(at, bound, at.node.frame, actual, formal))


def hand_back(at: Emitter, callee: Frame) -> None:
    """Copy the results to where the call wants them."""
    if callee.call is None:
        return
    for formal, target in zip(callee.function.signature.results, results_of(callee.call), strict=False):
        if target is None:
            continue
        give(at, callee.call, at.node.frame, target, actual_value(at, callee.call, callee, formal, target))


def actual_value(at: Emitter, bound: Bound, frame: Frame, node: Any, formal: Any) -> list[Value]:
    """The value of an argument: of a register or constant, or the words of a `.param` variable."""
    if isinstance(node, Variable):
        found = []
        for offset, type in words(node, formal.alignment if isinstance(formal, Variable) else FRAME_ALIGNMENT):
            found += Memory(at, bound).load("local", type, place(at, frame, node, offset))
        return found
    if isinstance(node, Register):
        return [at.slot((node.index + frame.registers, 0), node.type)]
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
        at.assign((target.index + frame.registers, 0), target.type, value)
        return
    step = 0
    for value in values:
        type = value.type.as_bits
        Memory(at, bound).store("local", type, place(at, frame, target, step), [value.view(type)])
        step += type.bytes


def place(at: Emitter, frame: Frame, variable: Variable, offset: int) -> Value:
    """Where a `.param` variable lies in local memory."""
    _, own = at.kernel.image.place(variable, frame.function)
    return Value(at.alg, u64, Lin(frame.offset + own + offset))


def words(variable: Variable, alignment: int) -> list[tuple[int, Type]]:
    """The offsets and types of the words, aligned in both, that make up a variable."""
    size = variable.size or variable.element_size
    step = min(8, variable.alignment, alignment, size & -size)
    return [(offset, Type.named[f"b{8 * step}"]) for offset in range(0, size, step)]


# ── the library ─────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """A function that the device provides."""

    name: str

    def __call__(self, machine: Any, bound: Bound, threads: Any, values: list[Any]) -> list[Any] | None:
        """Call it for the active lanes."""
        handler = machine.library.get(self.name)
        answer = handler(machine.cohort, threads, [np.ascontiguousarray(v).astype(np.uint64) for v in values])
        return None if answer is None else [np.asarray(answer).astype(np.int64)]


def library(at: Emitter, bound: Bound, function: Function, arguments: list[Any], results: list[Any]) -> None:
    """Ask Python."""
    if not at.kernel.has_library(function.name):
        raise Unsupported(f"a call of '{function.name}', which has no body, in the JIT")
    at.needs_local()
    inputs = []
    for formal, node in zip(function.signature.parameters, arguments, strict=False):
        value = actual_value(at, bound, at.node.frame, node, formal)[0]
        value = value.view(value.type.as_unsigned).to(u64)
        inputs.append((u64, value.raw))
    wanted = bool(results and function.signature.results)
    outputs = at.outside(bound, LibraryCall(function.name), inputs, [Type.named["s64"]] if wanted else [])
    if wanted:
        type = function.signature.results[0].type.as_bits
        bits = outputs[0].to(type.as_signed).view(type)
        give(at, bound, at.node.frame, results[0], [bits])
