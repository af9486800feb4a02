"""Which variable of shared or local memory an address comes from, so that an access can be held to it.

The analysis goes forward over a function.  A register holds an address of one variable, or a number, or nobody knows what.
An address plus or minus a number is one of the same variable; so is what `mov`, `cvta` and `cvt` make of it.  Whatever
else is done with an address, and whatever comes from two sides, is not followed.
"""

from __future__ import annotations

from ptxvm.analysis.flow import Segment, registers_in
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.shapes import names_in
from ptxvm.analysis.symbols import Register, Variable
from ptxvm.syntax import tree

SPACES = frozenset({"shared", "local"})
SAME = frozenset({"mov", "cvta", "cvt"})

Origin = Variable | str
NUMBER, UNKNOWN = "a number", "unknown"
Origins = dict[Register, Origin]  # of the registers that have been written


def origins(function: Function, segments: list[Segment]) -> dict[Bound, Variable]:
    """The variables of the accesses that certainly belong to one."""
    if not any(each.space in SPACES and each.size for each in named_variables(function)):
        return {}
    entry: list[Origins | None] = [None] * len(segments)
    entry[0] = {each: NUMBER for each in function.registers if each.of_module}
    work = [0]
    while work:
        n = work.pop()
        known = dict(entry[n] or {})
        for bound in function.instructions[segments[n].start : segments[n].end]:
            step(bound, known)
        for successor in segments[n].successors:
            before = entry[successor]
            merged = known if before is None else merge(before, known)
            if merged != before:
                entry[successor] = merged
                work.append(successor)
    found: dict[Bound, Variable] = {}
    for segment, reached in zip(segments, entry, strict=True):
        if reached is not None:
            found |= accesses(function, segment, dict(reached))
    return found


def accesses(function: Function, segment: Segment, known: Origins) -> dict[Bound, Variable]:
    """Those of a segment."""
    found = {}
    for bound in function.instructions[segment.start : segment.end]:
        variable = accessed(bound, known)
        if variable is not None:
            found[bound] = variable
        step(bound, known)
    return found


def named_variables(function: Function) -> set[Variable]:
    """The variables that the code of a function names."""
    found = set()
    for bound in function.instructions:
        for node in bound.operands.values():
            found |= {symbol for name in names_in(node) if isinstance(symbol := bound.scope.find(name.text), Variable)}
    return found


def merge(one: Origins, other: Origins) -> Origins:
    """What is known where two paths meet."""
    together = dict(one)
    for register, origin in other.items():
        before = together.get(register, origin)
        together[register] = origin if before == origin else UNKNOWN
    return together


def accessed(bound: Bound, known: Origins) -> Variable | None:
    """The variable that an instruction accesses, where that is certain; those of two addresses are not followed."""
    if "mem" not in bound.i.of.effects or bound.node.opcode in SAME:
        return None
    addresses = [node for node in bound.operands.values() if isinstance(node, tree.Address)]
    if len(addresses) != 1 or len(addresses[0].items) != 1:
        return None
    origin = origin_of(addresses[0].items[0], bound, known)
    return origin if isinstance(origin, Variable) and origin.space in SPACES and origin.size else None


def origin_of(node: tree.Operand, bound: Bound, known: Origins) -> Origin:
    """Where the value of an operand comes from."""
    if isinstance(node, tree.Binary) and node.op in ("+", "-"):
        return origin_of(node.left, bound, known)
    if isinstance(node, tree.Index):
        node = node.name
    if not isinstance(node, tree.Name):
        return UNKNOWN if any(registers_in(node, bound)) else NUMBER
    symbol = bound.scope.find(node.text)
    if isinstance(symbol, Register):
        return known.get(symbol, NUMBER) if symbol.count == 1 else UNKNOWN
    return symbol if isinstance(symbol, Variable) and symbol.space in SPACES else NUMBER


def step(bound: Bound, known: Origins) -> None:
    """Past one instruction."""
    destinations = {*bound.i.destinations(), "ret"} if bound.node.opcode == "call" else set(bound.i.destinations())
    made = result(bound, known)
    for name in destinations & bound.operands.keys():
        if isinstance(bound.operands[name], tree.Address):
            continue
        for register in registers_in(bound.operands[name], bound):
            kept = bound.node.guard is not None and register in known and known[register] != made
            known[register] = UNKNOWN if kept or register.count > 1 else made


def result(bound: Bound, known: Origins) -> Origin:
    """Where the result of an instruction comes from."""
    sources = {n: o for n, o in bound.operands.items() if n in bound.i.of.sources and not isinstance(o, tree.Address)}
    given = {name: origin_of(node, bound, known) for name, node in sources.items()}
    if all(origin == NUMBER for origin in given.values()):
        return NUMBER
    variables = [each for each in given.values() if each != NUMBER]
    if len(variables) != 1:
        return UNKNOWN
    opcode, (name,) = bound.node.opcode, [n for n, each in given.items() if each != NUMBER]
    follows = opcode in SAME or opcode == "add" or (opcode, name) in (("sub", "a"), ("mad", "c"))
    return variables[0] if follows and "cc" not in bound.node.words else UNKNOWN
