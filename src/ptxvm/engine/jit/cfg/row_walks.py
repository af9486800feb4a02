"""Walks along rows: loads whose address each iteration of a loop moves on, in a loop that changes no memory.

A thread that sums a row of a matrix, follows a string or multiplies the elements of a sparse row reads memory in order, though
the lanes of its warp read far from each other.  What such a loop will load, it may load early: nothing in it writes memory or
waits for a write, and weak loads need not see what another thread writes meanwhile (PTX 8).
"""

from __future__ import annotations

from ptxvm.algebra.memory_order import Order
from ptxvm.algebra.state_space import Space
from ptxvm.analysis.flow import address_registers, bit_of
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Register
from ptxvm.dataclass import dataclass
from ptxvm.engine.data_flow import data_flow, dependent, written
from ptxvm.engine.loops import innermost_loops
from ptxvm.isa.effects import Verb

SPACES = (Space.GLOBAL, Space.CONST, Space.GENERIC)


@dataclass(frozen=True, slots=True)
class Walk:
    """The loads behind one register in the loop that begins at an instruction."""

    loop: int
    register: Register


def only_reads(bound: Bound) -> bool:
    """Does it do nothing to memory but weak loads, of which there are some?"""
    accesses = bound.summary.accesses
    return bool(accesses) and all(each.verb is Verb.READ and each.order in (None, Order.WEAK) for each in accesses)


def is_quiet(bound: Bound) -> bool:
    """Is what was loaded before still what memory holds afterwards: does it compute, branch or load?"""
    effects = bound.i.of.effects - {"cc", "flow"}
    return not bound.calls and (not effects or (effects == {"mem"} and only_reads(bound)))


def row_walks(function: Function) -> dict[Bound, Walk]:
    """The loads of innermost loops that are on such a walk; the addresses of others depend on what the loop loads, or stay."""
    code, found = function.instructions, dict[Bound, Walk]()
    for first, last in innermost_loops(code):
        body = code[first : last + 1]
        if not all(is_quiet(bound) for bound in body):
            continue
        flows = data_flow(body)
        loaded = written([b for b in body if any(each.window is not Space.PARAM for each in b.summary.accesses)])
        moving = written(body) & ~(loaded | dependent(flows, loaded))
        for bound in body:
            registers = list(address_registers(bound))
            if len(registers) == 1 and bit_of(registers[0]) & moving and _is_single(bound):
                found[bound] = Walk(first, registers[0])
    return found


def _is_single(bound: Bound) -> bool:
    """Is it one load of memory that threads share?"""
    return len(bound.summary.accesses) == 1 and bound.summary.accesses[0].window in SPACES
