"""Write-only parameters: no load or atomic of the kernel uses an address that comes from them.

For every register, the analysis finds the 64-bit parameters that its values may come from, through any operations in any order;
a value from memory comes from none.  The result serves to choose how to store.  It is no proof: memory that several parameters
reach, or an address in memory reaches, may be read all the same.
"""

from __future__ import annotations

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.flow import bit_of, reads_and_writes, registers_in, variables_in
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Register, Variable
from ptxvm.isa.effects import Verb
from ptxvm.syntax import tree

Parameters = frozenset[Variable]
NONE: Parameters = frozenset()
WORD = 8  # size of an address in bytes
WINDOWS = {Space.SHARED, Space.LOCAL, Space.CONST, Space.PARAM}
POINTED_TO = {Space.GLOBAL, Space.GENERIC}  # the spaces of what a parameter points to


def outputs(function: Function) -> dict[Bound, Variable]:
    """The stores whose address comes from one parameter that the function only writes through, with that parameter."""
    known = sources(function)
    stores: dict[Bound, Variable] = {}
    read: set[Variable] = set()
    for bound in function.instructions if known else ():
        if not reaches_memory(bound):
            continue
        through = used(bound, known)
        if not only_writes(bound):
            read |= through
        elif len(through) == 1:
            (stores[bound],) = through
    return {bound: parameter for bound, parameter in stores.items() if parameter not in read}


def written_parameters(function: Function) -> set[Variable]:
    """The parameters that some write, atomic or call of the function uses an address from."""
    known = sources(function)
    writing = (bound for bound in function.instructions if known and reaches_memory(bound) and not only_reads(bound))
    return {parameter for bound in writing for parameter in used(bound, known)}


def read_parameters(function: Function) -> set[Variable] | None:
    """The parameters that some read, atomic or call of the function uses an address from.

    None where one may use an address from elsewhere: where no parameter contributes to it, or a word from memory does.
    """
    known, strange = sources(function), from_memory(function)
    found: set[Variable] = set()
    for bound in function.instructions:
        spaces = read_spaces(bound)
        if not (spaces or bound.calls):
            continue
        through = used(bound, known)
        if not (spaces <= POINTED_TO and through) or bound.summary.bulk or strange & reads_and_writes(bound)[0]:
            return None
        found |= through
    return found


def read_spaces(bound: Bound) -> set[Space]:
    """The spaces that an instruction reads, but for those that are a CTA's, a thread's, or constant."""
    return {access.space.window for access in bound.summary.accesses if access.verb is not Verb.WRITE} - WINDOWS


def from_memory(function: Function) -> int:
    """The registers that an address in memory contributes to, as bits."""
    strange, before = 0, -1
    while strange != before:
        before = strange
        for bound in function.instructions:
            if reaches_memory(bound):
                made = [each for each in written(bound) if bound.calls or each.type.bits >= 8 * WORD]
            else:
                made = written(bound) if strange & reads_and_writes(bound)[0] else []
            for register in made:
                strange |= bit_of(register)
    return strange


def pointers(function: Function) -> list[Variable]:
    """The parameters that may be pointers: those of one 64-bit word."""
    return [each for each in function.signature.parameters if isinstance(each, Variable) and each.size == WORD]


def sources(function: Function) -> dict[Register, Parameters]:
    """The parameters that the value of each register may come from."""
    words, known = set(pointers(function)), dict[Register, Parameters]()
    telling = 0  # the registers that come from a parameter, as bits
    grows = bool(words)
    while grows:
        grows = False
        for bound in function.instructions:
            if not (telling & reads_and_writes(bound)[0] or bound.summary.reads):
                continue
            made = frozenset(loaded(bound) & words) or through_registers(bound, known)
            for register in written(bound) if made else ():
                before = known.get(register, NONE)
                if not made <= before:
                    known[register], grows = before | made, True
                    telling |= bit_of(register)
    return known


def reaches_memory(bound: Bound) -> bool:
    """Does an instruction, or its callee, access memory other than parameters?"""
    if bound.calls:
        return True
    return "mem" in bound.i.of.effects and not bound.summary.converts_address and Space.PARAM not in bound.summary.spaces


def only_writes(bound: Bound) -> bool:
    """Is every access of the instruction a write?"""
    return bool(bound.summary.accesses) and all(access.verb is Verb.WRITE for access in bound.summary.accesses)


def only_reads(bound: Bound) -> bool:
    """Is every access of the instruction a read?"""
    return bool(bound.summary.accesses) and all(access.verb is Verb.READ for access in bound.summary.accesses)


def loaded(bound: Bound) -> set[Variable]:
    """The parameters that an instruction loads."""
    if not bound.summary.reads or Space.PARAM not in bound.summary.spaces:
        return set()
    addresses = (node for node in bound.operands.values() if isinstance(node, tree.Address))
    return {variable for node in addresses for variable in variables_in(node, bound)}


def through_registers(bound: Bound, known: dict[Register, Parameters]) -> Parameters:
    """The parameters that the result of an instruction comes from: those of its sources."""
    if reaches_memory(bound):
        return NONE
    return NONE.union(
        *(known.get(register, NONE) for n, o in bound.operands.items() if n in bound.i.of.sources
          for register in registers_in(o, bound))
    )  # fmt: skip


def written(bound: Bound) -> list[Register]:
    """The registers that an instruction writes."""
    places = [bound.operands[name] for name in bound.i.destinations() if name in bound.operands]
    return [register for node in places if not isinstance(node, tree.Address) for register in registers_in(node, bound)]


def used(bound: Bound, known: dict[Register, Parameters]) -> Parameters:
    """The parameters that the addresses of an access may come from; of a call, those of all its operands."""
    nodes = [node for node in bound.operands.values() if isinstance(node, tree.Address) or bound.calls]
    return NONE.union(*(known.get(register, NONE) for node in nodes for register in registers_in(node, bound)))
