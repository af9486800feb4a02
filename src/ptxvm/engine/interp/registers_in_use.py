"""Registers of asynchronous work that has not been waited for: what uses them (PTX 9.7.15.7.3, 9.7.16.6.4.5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from ptxvm.analysis.flow import changes, reads_and_writes, registers_in
from ptxvm.analysis.program import Bound
from ptxvm.engine.interp.async_products import StartedProduct
from ptxvm.engine.interp.segment import Slots
from ptxvm.engine.interp.tensor_tasks import TensorLoad
from ptxvm.machine.per_lane import Lanes, RegisterFile
from ptxvm.named_tuple import NamedTuple

Work: TypeAlias = StartedProduct | TensorLoad


class EarlyUse(NamedTuple):
    """An instruction that uses a register too early, the lane that executes it, what is wrong, and what has the register."""

    bound: Bound
    lane: int
    said: str
    started: Bound


def touched(
    works: Sequence[Work], code: Sequence[Bound], numbering: Slots, lanes: Lanes, file: RegisterFile
) -> Iterator[EarlyUse]:
    """The instructions of a segment that use registers of work that lanes have started and not waited for."""
    for work in works:
        some = work.lanes if lanes is None else np.intersect1d(work.lanes, lanes)
        if work.registers.file is not file or not len(some):
            continue
        find = of_product if isinstance(work, StartedProduct) else of_load
        for bound in code:
            if (said := find(work.bound, bound, numbering)) is not None:
                yield EarlyUse(bound, int(some[0]), said, work.bound)


def of_product(started: Bound, bound: Bound, numbering: Slots) -> str | None:
    """A register of D that an instruction uses, or one of A that it writes; products of one shape may share D."""
    if bound.guard() is not None:
        return None
    of_d, of_a = slots(started, "d", numbering), slots(started, "a", numbering)
    again = bound.i.of.updates and bound.i.bound.get("mnk") == started.i.bound.get("mnk")
    for name in bound.operands:
        mine = slots(bound, name, numbering)
        hit = set(mine) & set(of_d) if not (again and name in bound.i.of.updates) else set()
        if name in bound.written:
            hit |= set(mine) & set(of_a)
        if hit:
            return f"register {mine[min(hit)]} belongs to the product{line_of(started)}, which has not been waited for"
    return None


def of_load(started: Bound, bound: Bound, numbering: Slots) -> str | None:
    """A register of a load from tensor memory that an instruction writes before `tcgen05.wait::ld`: the load may come after.

    What reads it gets what was loaded (PTX 9.7.16.6.4.5); compilers rely on that.
    """
    loaded = {slot: name for operand in started.written for slot, name in slots(started, operand, numbering).items()}
    for name in bound.written:
        if hit := set(slots(bound, name, numbering)) & set(loaded):
            return f"register {loaded[min(hit)]} is written before tcgen05.wait::ld waits for the load{line_of(started)}"
    return None


def awaits(load: TensorLoad, code: Sequence[Bound], lanes: Lanes, file: RegisterFile) -> bool:
    """Does a segment read or write registers of a load, or leave its function?  Then the load ends before (9.7.16.6.4.5)."""
    if load.registers.file is not file or not (lanes is None or np.isin(load.lanes, lanes).any()):
        return False
    results = changes(load.bound)
    return any(results & (reads_and_writes(bound)[0] | changes(bound)) or leaves(bound) for bound in code)


def leaves(bound: Bound) -> bool:
    """Does it leave the function, whose registers another call may get?"""
    return bound.i.of.ends and not bound.operands


def slots(bound: Bound, operand: str, numbering: Slots) -> dict[int, str]:
    """The slots of the registers of an operand, with their names."""
    node = bound.operands.get(operand)
    return {} if node is None else {numbering.of(each): each.name for each in registers_in(node, bound)}


def line_of(bound: Bound) -> str:
    """The line of an instruction, for a message."""
    return f" of line {bound.line}" if bound.line else ""
