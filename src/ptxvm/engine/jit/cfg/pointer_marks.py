"""Pointer marks: registers that may hold addresses of one of several variables, where only a run tells of which.

With the check `memory` an access must stay within the variable that its address comes from (`analysis.provenance`).  Where a
pointer is chosen, passed to a function, or exchanged with another one in a loop, a register beside the pointer has the mark of
its variable (`node.marked_values`).  A pointer that was in memory has no mark: such accesses are left to the exact checker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.flow import registers_in, variables_in
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.provenance import (
    ALLOCATOR,
    NUMBER,
    SPACES,
    WORD,
    Provenance,
    ProvenanceAnalysis,
    of_program,
    reaches_memory,
    written,
)
from ptxvm.analysis.symbols import Register, Variable
from ptxvm.dataclass import dataclass
from ptxvm.named_tuple import NamedTuple
from ptxvm.syntax import tree


class Place(NamedTuple):
    """A register of a function."""

    function: Function
    register: Register


@dataclass(frozen=True, slots=True)
class BoundedAccesses:
    """The accesses that must stay within a variable.

    `certain` are those of one variable, `marked` those by a pointer with a mark, with the register that it is in.  `several`
    have a variable of which only a run tells, and which no mark follows.  `registers` are those that need a mark, by function,
    and `spaces` those of the variables that marks tell of.
    """

    certain: Mapping[Bound, Variable] = field(default_factory=dict)
    marked: Mapping[Bound, Register] = field(default_factory=dict)
    several: Sequence[Bound] = ()
    registers: Mapping[Function, frozenset[Register]] = field(default_factory=dict)
    spaces: frozenset[Space] = frozenset()


def bounded_accesses(functions: Iterable[Function], callees: Callable[[Bound], Iterable[Function]]) -> BoundedAccesses:
    """Those of functions that call each other; `callees` are the ones of them that a call may enter."""
    certain: dict[Bound, Variable] = {}
    marked: dict[Bound, Register] = {}
    several: list[Bound] = []
    every = of_program(functions)
    places: set[Place] = set()
    search = _Search(every, callees)
    for function, found in every.items():
        certain |= found.certain
        for bound in found.several:
            pointer = _pointer(bound)
            sources = search.sources(Place(function, pointer)) if pointer is not None else None
            if pointer is None or sources is None:
                several.append(bound)
                continue
            marked[bound] = pointer
            places |= sources
    registers = {function: frozenset(each.register for each in places if each.function is function) for function in every}
    return BoundedAccesses(certain, marked, several, registers, search.spaces(places))


def _pointer(bound: Bound) -> Register | None:
    """The register with the address of an access, alone or with an offset; None where it has several, or another kind."""
    places = [node for node in bound.operands.values() if isinstance(node, tree.Address)]
    if len(places) != 1 or len(places[0].items) != 1:
        return None
    node = places[0].items[0]
    while isinstance(node, tree.Binary) and node.op in ("+", "-"):
        node = node.left
    found = bound.scope.find(node.text) if isinstance(node, tree.Name) else None
    return found if isinstance(found, Register) else None


class _Search:
    """Finds the registers that the values of a register come from, through calls as well."""

    def __init__(self, every: Mapping[Function, Provenance], callees: Callable[[Bound], Iterable[Function]]) -> None:
        self.every = every
        self.analyses = {each: ProvenanceAnalysis(each, [], found.escaped) for each, found in every.items()}
        self.writers: dict[Place, list[Bound]] = defaultdict(list)
        self.passed: dict[Place, list[tuple[Function, Bound, tree.Operand]]] = defaultdict(list)  # of formals, what calls pass
        self.returned: dict[tuple[Bound, Register], set[Place] | None] = {}  # the results of functions that a call gives back
        self._known: dict[Place, frozenset[Place] | None] = {}
        for function in every:
            for bound in function.instructions:
                for register in written(bound):
                    self.writers[Place(function, register)].append(bound)
                for callee in callees(bound) if bound.calls else ():
                    self._link(function, bound, callee)

    def _link(self, function: Function, bound: Bound, callee: Function) -> None:
        """Note what a call passes to a function, and what that returns."""
        arguments, formals = bound.operands.get("args"), callee.signature
        given = arguments.items if isinstance(arguments, tree.Group) else []
        for formal, node in zip(formals.parameters, given, strict=False):
            if isinstance(formal, Register):
                self.passed[Place(callee, formal)].append((function, bound, node))
        for formal, target in zip(formals.results, bound.results(), strict=False):
            if isinstance(target, Register):
                known = self.returned.get((bound, target), set())
                more = {Place(callee, formal)} if isinstance(formal, Register) else None
                self.returned[bound, target] = None if known is None or more is None else known | more

    def sources(self, place: Place) -> frozenset[Place] | None:
        """All registers with addresses that one depends on, with itself; None where one has values that have no mark."""
        if place not in self._known:
            self._known[place] = self._sources(place)
        return self._known[place]

    def spaces(self, places: Iterable[Place]) -> frozenset[Space]:
        """The spaces of the variables whose addresses some registers get."""
        every = (bound for place in places for bound in self.writers[place] if not bound.calls)
        nodes = ((node, bound) for bound in every for name, node in bound.operands.items() if name in bound.i.of.sources)
        return frozenset(each.space for node, bound in nodes for each in variables_in(node, bound) if each.space in SPACES)

    def _sources(self, place: Place) -> frozenset[Place] | None:
        found, work = {place}, [place]
        while work:
            each = work.pop()
            if not _can_be_marked(each.register):
                return None
            for read in self._reads(each):
                if read is None:
                    return None
                work += read - found
                found |= read
        return frozenset(found)

    def _reads(self, place: Place) -> Iterator[set[Place] | None]:
        """What each write of a register depends on, and what calls pass in it; None for what has no mark."""
        for function, bound, node in self.passed[place]:
            yield self._actual(function, bound, node)
        if place.register in place.function.signature.parameters and not self.passed[place]:
            yield None  # from a call that is not seen
        for bound in self.writers[place]:
            yield self._result(bound, place) if bound.calls else self._read(bound, place.function)

    def _actual(self, function: Function, bound: Bound, node: tree.Operand) -> set[Place] | None:
        """What an argument depends on."""
        symbol = bound.scope.find(node.text) if isinstance(node, tree.Name) else None
        if isinstance(symbol, Variable):
            return None
        return {Place(function, symbol)} & self._followed(function) if isinstance(symbol, Register) else set()

    def _result(self, bound: Bound, place: Place) -> set[Place] | None:
        """What the result of a call depends on; of functions of the device only that of the allocator is an address."""
        function = bound.callee()
        if (bound, place.register) in self.returned:
            return self.returned[bound, place.register]
        return set() if function is not None and function.name != ALLOCATOR else None

    def _followed(self, function: Function) -> set[Place]:
        return {Place(function, each) for each in self.every[function].followed}

    def _read(self, bound: Bound, function: Function) -> set[Place] | None:
        """The registers with addresses that a result depends on; None where it has no mark."""
        if bound.summary.grows_stack or bound.summary.maps_cluster:
            return None
        if reaches_memory(bound):
            return set() if self.analyses[function].loaded(bound) == NUMBER else None
        followed = {each for each in self.every[function].followed if each.type.bits >= WORD}  # narrower ones count as numbers
        nodes = [node for name, node in bound.operands.items() if name in bound.i.of.sources]
        parts = [node for node in nodes if isinstance(node, tree.Vector)]
        if any(each in followed for node in parts for each in registers_in(node, bound)):
            return None
        if any(variable.space in SPACES and not variable.size for node in nodes for variable in variables_in(node, bound)):
            return None
        read = {Place(function, each) for node in nodes for each in registers_in(node, bound) if each in followed}
        simple = not bound.i.of.effects or bound.summary.converts_address
        return read if simple or not read else None


def _can_be_marked(register: Register) -> bool:
    return not register.of_module and register.count == 1 and register.type.bits >= WORD


def numbered(found: BoundedAccesses, frames: Iterable[tuple[Function, int]], first: int) -> Iterator[tuple[int, int]]:
    """The registers that need a mark, and those of the marks from `first` on; of frames the function and the first register."""
    known: set[int] = set()
    for function, begin in frames:
        for register in sorted(found.registers.get(function, ()), key=lambda each: each.index):
            if (number := begin + register.index) not in known:
                yield number, first + len(known)
                known.add(number)
