"""Accesses to registers of asynchronous products that have not been waited for (PTX 9.7.15.7.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ptxvm.analysis.flow import registers_in
from ptxvm.analysis.program import Bound
from ptxvm.engine.interp.async_products import Product
from ptxvm.engine.interp.segment import Slots
from ptxvm.machine.per_lane import Lanes, RegisterFile

Use = tuple[Bound, int, str]
"""An instruction, the lane that executes it, and what is wrong."""


def touched(
    products: Sequence[Product], code: Sequence[Bound], places: Slots, lanes: Lanes, file: RegisterFile
) -> Iterator[Use]:
    """The instructions of a segment that use registers of products that lanes have started and not waited for."""
    for product in products:
        some = product.lanes if lanes is None else np.intersect1d(product.lanes, lanes)
        if product.file is not file or not len(some):
            continue
        started = product.work.bound
        for bound in code:
            name = None if bound.guard() is not None else used(bound, started, places)
            if name is not None:
                said = f"register {name} belongs to the product{line_of(started)}, which has not been waited for"
                yield bound, int(some[0]), said


def used(bound: Bound, started: Bound, places: Slots) -> str | None:
    """A register of D that an instruction uses, or one of A that it writes; products of one shape may share D."""
    of_d, of_a = slots(started, "d", places), slots(started, "a", places)
    again = bound.i.of.updates and bound.i.bound.get("mnk") == started.i.bound.get("mnk")
    for name in bound.operands:
        mine = slots(bound, name, places)
        hit = set(mine) & set(of_d) if not (again and name in bound.i.of.updates) else set()
        if name in bound.written:
            hit |= set(mine) & set(of_a)
        if hit:
            return mine[min(hit)]
    return None


def slots(bound: Bound, operand: str, places: Slots) -> dict[int, str]:
    """The slots of the registers of an operand, with their names."""
    node = bound.operands.get(operand)
    return {} if node is None else {places.of(each): each.name for each in registers_in(node, bound)}


def line_of(bound: Bound) -> str:
    """Where an instruction stands, for a message."""
    program = bound.program
    return "" if program is None else f" of line {program.source.location(bound.node.start)[0]}"
