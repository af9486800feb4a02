"""Provenance: the variable of shared or local memory that an address comes from, for bounds checks of accesses.

This is a forward data-flow analysis of a function.  A register holds an address of one variable; a number; a value that was
made of addresses but is none (LOST: a product, a difference); or perhaps an address of one of several objects (SEVERAL).
An address plus or minus a number is an address of the same variable; so are copies, conversions and masked bits of it:
`isa.origins` derives this from the meaning of an instruction.
SEVERAL is the result of joining two paths or two operands, of `alloca` and `malloc`, and of memory, arguments and results in
which an address may have been stored.  Only a run can decide the object of such a value: `engine.interp.provenance` follows it.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import field

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.flow import Segment, registers_in, segments
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.shapes import names_in
from ptxvm.analysis.symbols import Register, Variable
from ptxvm.dataclass import dataclass
from ptxvm.isa.summary import origins as origins_of_results
from ptxvm.syntax import tree

SPACES = frozenset({Space.SHARED, Space.LOCAL})
ALLOCATOR = "malloc"
WORD = 32  # the fewest bits of a value that can be an address

Origin = Variable | str
NUMBER, LOST, SEVERAL = "a number", "lost", "several"
Origins = dict[Register, Origin]  # only registers that have been written


@dataclass
class EscapedOrigins:
    """The origins of values that a program has stored to memory, and that functions take and give back.

    What is in `.param` variables counts as taken.
    """

    memory: Origin = NUMBER
    parameters: Origin = NUMBER
    results: Origin = NUMBER

    def store(self, origin: Origin) -> None:
        """Record a value that is stored."""
        self.memory = together(self.memory, _kept(origin))

    def take(self, origin: Origin) -> None:
        """Record a value that a function takes."""
        self.parameters = together(self.parameters, _kept(origin))

    def give_back(self, origin: Origin) -> None:
        """Record a value that a function gives back in a register."""
        self.results = together(self.results, _kept(origin))


@dataclass
class Provenance:
    """The provenance of a function: accesses to one known variable, and accesses that only a run can decide.

    `followed` are the registers that may hold an address, and `stores` the instructions that may store one; `escaped` has the
    origins of the values in memory and in parameters.
    """

    certain: dict[Bound, Variable] = field(default_factory=dict)
    several: list[Bound] = field(default_factory=list)
    stores: list[Bound] = field(default_factory=list)
    followed: set[Register] = field(default_factory=set)
    escaped: EscapedOrigins = field(default_factory=EscapedOrigins)


def origins(function: Function, escaped: EscapedOrigins | None = None) -> Provenance:
    """The provenance of the addresses of a function, which reads and extends `escaped`."""
    return ProvenanceAnalysis(function, segments(function), EscapedOrigins() if escaped is None else escaped).provenance()


def of_program(functions: Iterable[Function]) -> dict[Function, Provenance]:
    """The provenance of all addresses of functions that call each other: a fixed point over `escaped`."""
    every = list(dict.fromkeys(functions))
    escaped, before = EscapedOrigins(), None
    found: dict[Function, Provenance] = {}
    while before != escaped:
        before = copy(escaped)
        found = {function: origins(function, escaped) for function in every}
    return found


def _kept(origin: Origin) -> Origin:
    """What is known of a value that has been somewhere else."""
    return SEVERAL if isinstance(origin, Variable) else origin


def together(one: Origin, other: Origin) -> Origin:
    """The join of two origins, where two paths meet."""
    if one == other:
        return one
    return LOST if {one, other} == {NUMBER, LOST} else SEVERAL


def merge(one: Origins, other: Origins) -> Origins:
    """The join of all registers; a register that was not written on one path has the origin of the other path."""
    return one | {register: together(one.get(register, origin), origin) for register, origin in other.items()}


@dataclass
class ProvenanceAnalysis:
    """The data-flow analysis of one function."""

    function: Function
    segments: list[Segment]
    escaped: EscapedOrigins

    def provenance(self) -> Provenance:
        """The provenance of the function."""
        found = Provenance(escaped=self.escaped)
        for segment, entry in zip(self.segments, self.entries(), strict=True):
            if entry is None:
                continue
            known = dict(entry)
            for bound in self.code(segment):
                self.access(bound, known, found)
                self.step(bound, known)
                found.followed |= {register for register in written(bound) if known.get(register, NUMBER) != NUMBER}
            found.followed |= {register for register, origin in entry.items() if origin != NUMBER}
        return found

    def code(self, segment: Segment) -> list[Bound]:
        """The instructions of a segment."""
        return self.function.instructions[segment.start : segment.end]

    def entries(self) -> list[Origins | None]:
        """The origins at the beginning of each segment; None for an unreachable segment."""
        entry: list[Origins | None] = [None] * len(self.segments)
        if not entry:
            return entry
        formals = () if self.function.entry else self.function.signature.parameters
        initial: Origins = {each: NUMBER for each in self.function.registers if each.of_module}
        entry[0] = initial | {each: self.escaped.parameters for each in formals if isinstance(each, Register)}
        work = [0]
        while work:
            n = work.pop()
            known = dict(entry[n] or {})
            for bound in self.code(self.segments[n]):
                self.step(bound, known)
            for successor in self.segments[n].successors:
                before = entry[successor]
                merged = known if before is None else merge(before, known)
                if merged != before:
                    entry[successor] = merged
                    work.append(successor)
        return entry

    def access(self, bound: Bound, known: Origins, found: Provenance) -> None:
        """Record the variable of an access, or that only a run can decide it."""
        if not reaches_memory(bound):
            return
        if any(origin not in (NUMBER, LOST) for origin in values(bound, known)):
            found.stores.append(bound)
        places = [node for node in bound.operands.values() if isinstance(node, tree.Address)]
        each = [origin_of(place.items[0], bound, known) for place in places if place.items]
        variables = [origin for origin in each if isinstance(origin, Variable)]
        plain = len(places) == len(each) and all(len(place.items) == 1 for place in places)
        if plain and len(variables) == 1 and SEVERAL not in each:  # other addresses, as of a copy, belong to no object
            if variables[0].space in SPACES and variables[0].size:
                found.certain[bound] = variables[0]
        elif any(origin not in (NUMBER, LOST) for origin in each):
            found.several.append(bound)

    def step(self, bound: Bound, known: Origins) -> None:
        """Apply one instruction to the origins."""
        self.leave(bound, known)
        made = self.result(bound, known)
        for register in written(bound):
            if register.of_module:
                continue  # the times of its writes are unknown: it counts as a number here
            partly = bound.node.guard is not None or register.count > 1
            known[register] = together(known.get(register, made), made) if partly else made

    def leave(self, bound: Bound, known: Origins) -> None:
        """Record the origins that an instruction stores or passes on."""
        escaped = self.escaped
        if bound.calls:
            if (callee := bound.callee()) is not None and callee.name == ALLOCATOR:
                escaped.take(SEVERAL)
                escaped.give_back(SEVERAL)
            for register in (r for node in bound.operands.values() for r in registers_in(node, bound)):
                escaped.take(known.get(register, NUMBER))
            return
        if reaches_memory(bound):
            for origin in values(bound, known):
                if Space.PARAM in bound.summary.spaces:
                    escaped.take(origin)
                else:
                    escaped.store(origin)
        if bound.i.of.ends:
            for each in self.function.signature.results:
                if isinstance(each, Register):
                    escaped.give_back(known.get(each, NUMBER))

    def result(self, bound: Bound, known: Origins) -> Origin:
        """The origin of the result of an instruction."""
        if bound.calls:
            return self.escaped.results
        if bound.summary.grows_stack:
            return SEVERAL
        if bound.summary.maps_cluster:  # an address in the memory of another CTA
            return LOST
        if reaches_memory(bound):
            return self.loaded(bound)
        origins = [(name, origin) for name, origin in sources(bound, known) if origin != NUMBER]
        if not origins:
            return NUMBER
        if all(origin == LOST for _, origin in origins):
            return LOST
        if len(bound.i.of.passed) == 1 and not bound.i.of.effects:  # a copy
            return origins[0][1]
        if bound.i.of.effects or bound.i.of.rearranges:
            return self.moved(bound, origins)
        made, names = origins_of_results(bound.i), {name for name, _ in origins}
        if not any(each.operands for each in made):
            return LOST
        follows = len(origins) == 1 and all(names <= each.operands and not each.chosen for each in made)
        return origins[0][1] if follows else SEVERAL

    def moved(self, bound: Bound, origins: list[tuple[str, Origin]]) -> Origin:
        """The origin of the result of an instruction with effects, or of one that rearranges bits."""
        converts = bound.summary.converts_address and len(origins) == 1
        return origins[0][1] if converts else SEVERAL

    def loaded(self, bound: Bound) -> Origin:
        """The origin of a loaded value; the parameters of a kernel are numbers from the host."""
        if Space.PARAM not in bound.summary.spaces:
            return self.escaped.memory
        names = [name for node in bound.operands.values() for name in names_in(node)]
        symbols = {bound.scope.find(name.text) for name in names}
        host = self.function.entry and not symbols.isdisjoint(self.function.signature.parameters)
        return NUMBER if host else self.escaped.parameters


def reaches_memory(bound: Bound) -> bool:
    """May the instruction access memory by an address?"""
    relates = bound.summary.converts_address or (bound.summary.maps_cluster and not bound.summary.accesses)
    return bool(bound.i.of.effects & {"mem", "tasks"}) and not relates


def origin_of(node: tree.Operand, bound: Bound, known: Origins) -> Origin:
    """The origin of an operand's value."""
    while isinstance(node, tree.Binary) and node.op in ("+", "-"):
        node = node.left
    if isinstance(node, tree.Index):
        node = node.name
    if not isinstance(node, tree.Name):
        found = [known.get(register, NUMBER) for register in registers_in(node, bound)]
        return NUMBER if all(origin == NUMBER for origin in found) else SEVERAL
    symbol = bound.scope.find(node.text)
    if isinstance(symbol, Register):
        return known.get(symbol, NUMBER)
    return symbol if isinstance(symbol, Variable) and symbol.space in SPACES else NUMBER


def sources(bound: Bound, known: Origins) -> list[tuple[str, Origin]]:
    """The origins of the values that an instruction reads, by operand name."""
    every = {name: node for name, node in bound.operands.items() if name in bound.i.of.sources}
    return [(name, origin_of(node, bound, known)) for name, node in every.items() if not isinstance(node, tree.Address)]


def values(bound: Bound, known: Origins) -> list[Origin]:
    """The origins of the values that an access may store."""
    found: list[Origin] = []
    for name, node in bound.operands.items():
        if name in bound.i.of.sources and not isinstance(node, tree.Address):
            items = node.items if isinstance(node, tree.Vector) else [node]
            found += [origin_of(item, bound, known) for item in items]
    return found


def written(bound: Bound) -> list[Register]:
    """The registers that an instruction writes."""
    nodes = [bound.operands[name] for name in bound.written & bound.operands.keys()]
    return [each for node in nodes if not isinstance(node, tree.Address) for each in registers_in(node, bound)]
