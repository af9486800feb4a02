"""The summary of an instruction: its accesses, jumps and waits, derived from its meaning.

A meaning is executable, so it tells by itself what it does to the machine: it runs once over ports that write down what
they are asked, and over values that know only which operands they come from.  So whatever is declared in the catalog
answers the questions of engines, checkers and models, and nothing but the catalog lists instructions by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator
from functools import lru_cache

from ptxvm.algebra.memory_order import Order
from ptxvm.algebra.ports import Symbol
from ptxvm.algebra.types import Type, u32, u64
from ptxvm.isa.catalog import load_catalog
from ptxvm.isa.effects import COMPUTES, Summary
from ptxvm.isa.model import ISA, PORTS, Decoded
from ptxvm.isa.operand_types import Shape
from ptxvm.isa.origins import Origin, operand, origin_of
from ptxvm.isa.recording import Record


def summary(i: Decoded) -> Summary:
    """The summary of an instruction whose operands are known (`i.shapes`)."""
    if not i.of.effects:
        return COMPUTES
    known: Summary | None = i.__dict__.get("_summary")
    if known is None:
        known = i.__dict__["_summary"] = _run(i)[0]
    return known


def origins(i: Decoded) -> tuple[Origin, ...]:
    """The origins of the results of an instruction whose operands are known, in order."""
    known: tuple[Origin, ...] | None = i.__dict__.get("_origins")
    if known is None:
        known = i.__dict__["_origins"] = _run(i)[1]
    return known


@lru_cache(maxsize=1024)
def calls(opcode: str) -> bool:
    """Do the instructions of an opcode call functions?  It is asked before they are recognised, too."""
    load_catalog()
    flows = [Decoded(of, form, {}) for of, form in ISA.by_opcode.get(opcode, ()) if "flow" in of.effects]
    return any(summary(i).calls for i in flows)


def only_synchronises_lanes(i: Decoded) -> bool:
    """Does it wait for lanes of the warp and exchange nothing, as `bar.warp.sync` does (PTX 9.7.13.2)?"""
    return i.of.effects == {"warp", "waits"} and not i.destinations()


def orders_lanes(i: Decoded) -> bool:
    """Does it order the accesses of the lanes that meet at it?

    `bar.warp.sync` does (PTX 9.7.13.2), and what the lanes do as one that ends with a release: `tensormap.cp_fenceproxy`
    publishes what any of them has written (9.7.13.16).  Other collectives do not.
    """
    together = {"warp", "waits"} <= i.of.effects and not i.destinations()
    return only_synchronises_lanes(i) or (together and any(each.order is Order.RELEASE for each in summary(i).fences))


def widens(i: Decoded) -> bool:
    """Does it compute an integer of 64 bits from a first operand that is one of 32?"""
    if i.of.effects or not i.of.sources:
        return False
    made = [i.type_of(name) for name in i.destinations()]
    first = i.type_of(i.of.sources[0])
    narrow = first is not None and first.is_int and first.bits == 32
    return narrow and any(type is not None and type.is_int and type.bits == 64 for type in made)


# ── running a meaning ───────────────────────────────────────────────────────────────────


def _run(i: Decoded) -> tuple[Summary, tuple[Origin, ...]]:
    record = Record()
    arguments = [record if name in PORTS else _operand(i, name) for name in i.of.parameters]
    results = i.of.meaning(i, *arguments)
    waits = inspect.isgenerator(results)
    if waits:
        results = _last(results)
    made = results if isinstance(results, tuple) else (results,)
    found = Summary(tuple(dict.fromkeys(record.accesses)), tuple(record.fences), waits=waits, **record.found)
    return found, tuple(origin_of(value) for value in made)


def _last(waiting: Generator[object, object, object]) -> object:
    """What an instruction gives that waits: each time it gets what it asks for."""
    try:
        outcome = next(waiting)
        while True:
            outcome = waiting.send(outcome)
    except StopIteration as end:
        return end.value


def _operand(i: Decoded, name: str) -> Symbol:
    shape = i.shapes.get(name)
    return None if shape is None else _abstract(shape, i.type_of(name), name)


def _abstract(shape: Shape, type: Type | None, name: str) -> Symbol:
    """An operand as an engine would give it to the meaning: a value, a list of values, a symbol, or None for `_`."""
    match shape.kind:
        case "sink":
            return None
        case "address" if len(shape.items) == 1:
            return operand(u64, name)
        case "address" | "vector" | "group" | "pair":
            return [_abstract(item, type, name) for item in shape.items]
        case "register" if isinstance(shape.detail, int) and shape.detail > 1:
            return [operand(type or shape.type or u32, name) for _ in range(shape.detail)]
        case "label" | "table" | "prototype" | "string":
            return shape
        case "function" | "variable" if type is None:
            return shape
    return operand(type or shape.type or u64, name)
