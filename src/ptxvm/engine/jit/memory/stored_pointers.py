"""Pointers that were in memory: with the check `memory`, the variable of shared or local memory that they come from.

A pointer that is stored must point into its own variable, and the place that it is stored in must not outlive that: else the
kernel is suspicious.  So the variable in which a loaded value points is the one that it comes from.  Values of fewer than 64
bits that are loaded count as numbers, and none that is stored, or that an atomic gets, may be an address.
"""

from __future__ import annotations

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import pred, u64
from ptxvm.algebra.value import Value, select
from ptxvm.analysis.flow import variables_in
from ptxvm.analysis.program import Bound
from ptxvm.analysis.symbols import Variable
from ptxvm.engine.jit.cfg.nodes import Frame
from ptxvm.engine.jit.ir.lane_values import Raw
from ptxvm.engine.jit.memory import variable_bounds
from ptxvm.engine.jit.memory.addressing import Addressing
from ptxvm.engine.jit.node import marked_values, stack
from ptxvm.engine.jit.node.marked_values import IN_LOCAL, NUMBER
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.engine.jit.node.register_shapes import Key
from ptxvm.isa.effects import Access, Verb


def check(at: NodeBuilder, addressing: Addressing, bound: Bound, access: Access, space: Space, raw: Raw) -> None:
    """Suspect a store of a pointer that points beyond its variable, or into one that may end before the place does.

    All updates by pointers are suspicious.
    """
    bounded = at.kernel.graph.bounded
    if bound not in bounded.stores or not bounded.spaces:
        return
    for value, mark in marked_values.stored_by(at, bound):
        real = marked_values.is_pointer(mark)
        if value.type.bits < u64.bits or access.verb is not Verb.WRITE:
            at.suspect_if(real.raw)
            continue
        local = (mark & IN_LOCAL).ne(0)
        begin, end = marked_values.extent(mark)
        first = variable_bounds.window_offset(at, addressing, value.to(u64), local)
        inside = first.compare("ge", begin) & first.compare("lt", end)
        good = inside & (~local | _outlives(at, addressing, bound, space, raw, begin))
        at.suspect_if((real & ~good).raw)


def _outlives(at: NodeBuilder, addressing: Addressing, bound: Bound, space: Space, raw: Raw, begin: Value) -> Value:
    """Does a variable of local memory that begins at an offset live at least as long as the place of a store?

    It does where it is one of the kernel, or where the place lies behind its beginning, in the same frame or a later one.
    """
    frame, false = at.node.frame, Value(at.alg, pred, at.alg.const(pred, 0))
    if space in (Space.SHARED, Space.GLOBAL):
        return false
    if space not in (Space.GENERIC, Space.LOCAL):
        results = frame.function.signature.results
        mine = begin.compare("ge", stack.start(at, frame) + frame.offset)
        gives_back = any(each in results for node in bound.operands.values() for each in variables_in(node, bound))
        return ~mine if gives_back else ~false
    at.needs_local()
    place = Value(at.alg, u64, raw)
    offset = place - Value(at.alg, u64, addressing.base(Space.LOCAL)) if space is Space.GENERIC else place
    there = offset.compare("lt", offset.lift(at.kernel.stack_size))
    return there & (begin.compare("lt", begin.lift(_end_of_kernel(at))) | offset.compare("ge", begin))


def _end_of_kernel(at: NodeBuilder) -> int:
    """Where the variables of the kernel end in local memory; those of the module lie before."""
    return at.kernel.graph.frames[0].end


def loaded(at: NodeBuilder, bound: Bound) -> dict[Key, Value]:
    """The marks of what an instruction has loaded, by the keys of their registers."""
    found: dict[Key, Value] = {}
    for key, value in marked_values.loaded_by(at, bound):
        none = Value(at.alg, u64, at.alg.const(u64, NUMBER))
        found[key] = _into(at, value.to(u64), none) if value.type.bits == u64.bits else none
    return found


def _into(at: NodeBuilder, value: Value, none: Value) -> Value:
    """The mark of the variable that a value points into."""
    addressing, mark, unknown = Addressing(at), none, False
    for variable in sorted(at.kernel.graph.bounded.variables, key=lambda each: each.name):
        frame = _frame_of(at, variable)
        unknown |= variable.space is Space.LOCAL and (frame is None or frame.root.shared)
        if frame is None:
            continue
        if variable.space is Space.LOCAL:
            at.needs_local()
        offset = value - Value(at.alg, u64, addressing.base(variable.space))
        whole = marked_values.of_variable(at, variable, frame)
        begin, end = marked_values.extent(whole)
        mark = select(offset.compare("ge", begin) & offset.compare("lt", end), whole, mark)
    if unknown:  # the variables of callers, of which only they know where these are
        at.needs_local()
        offset = value - Value(at.alg, u64, addressing.base(Space.LOCAL))
        at.suspect_if((offset.compare("lt", offset.lift(at.kernel.stack_size)) & mark.eq(NUMBER)).raw)
    return mark


def _frame_of(at: NodeBuilder, variable: Variable) -> Frame | None:
    """The frame, of this function or of its callers, that has a variable; None where it is not known."""
    frame: Frame | None = at.node.frame
    if variable.space is not Space.LOCAL or variable in at.kernel.image.module_local.offsets:
        return frame
    while frame is not None and variable not in at.kernel.image.frame(frame.function).offsets:
        frame = frame.parent
    return frame
